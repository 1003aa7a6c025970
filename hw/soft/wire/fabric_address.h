// SPDX-License-Identifier: Apache-2.0
// Addresses as the contract states them.
#pragma once

#include <cstdint>

namespace heddle::soft::wire {

// As in contract `av_entry`: IPv4 in the low 32 bits of `lo`, first octet most
// significant.
struct FabricAddress {
  uint64_t lo = 0;
  uint64_t hi = 0;
  bool ipv6 = false;

  bool operator==(const FabricAddress&) const = default;
};

}  // namespace heddle::soft::wire
