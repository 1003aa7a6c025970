// SPDX-License-Identifier: Apache-2.0
// Where an endpoint is: IPv4 address and libfabric port, and their UET form.
#pragma once

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::nic {

// Source: contract parameters `pid_bits` and `ri_block`.
struct PeerAddress {
  uint32_t ipv4 = 0;  // Host order: the first octet is most significant.
  uint16_t port = 0;  // RI block x 4096 + PIDonFEP.

  uint16_t pid_on_fep() const noexcept {
    return static_cast<uint16_t>(port & ((1U << contract::kPidBits) - 1));
  }
  uint16_t first_ri() const noexcept {
    return static_cast<uint16_t>((port >> contract::kPidBits) *
                                 contract::kRiBlock);
  }
  // UET initiator of what the endpoint sends: {8'b0, PIDonFEP, first RI}.
  uint32_t initiator() const noexcept {
    return (uint32_t{pid_on_fep()} << 12U) | first_ri();
  }

  bool operator==(const PeerAddress&) const = default;
};

}  // namespace heddle::nic
