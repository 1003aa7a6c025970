// SPDX-License-Identifier: Apache-2.0
// Fabric addresses (IPv4 or IPv6) in the form of the contract's layouts.
// Freestanding: firmware, models and the host share it.
#pragma once

#include <stdint.h>

namespace heddle::contract {

// As `fa_lo` and `fa_hi` of the contract: IPv4 in the low 32 bits of `lo`; the
// first octet is the most significant.
struct FabricAddress {
  uint64_t lo = 0;
  uint64_t hi = 0;
  bool ipv6 = false;

  static constexpr FabricAddress Ipv4(uint32_t address) {
    return {.lo = address, .hi = 0, .ipv6 = false};
  }
  static constexpr FabricAddress Ipv6(uint64_t high, uint64_t low) {
    return {.lo = low, .hi = high, .ipv6 = true};
  }

  // Neither unspecified nor multicast, nor the broadcast address of IPv4.
  constexpr bool is_unicast() const {
    if (ipv6) {
      return (lo | hi) != 0 && hi >> 56U != 0xff;
    }
    return hi == 0 && lo != 0 && lo < 0xffffffff && lo >> 28U != 0xe;
  }

  bool operator==(const FabricAddress&) const = default;
};

}  // namespace heddle::contract
