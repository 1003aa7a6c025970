// SPDX-License-Identifier: Apache-2.0
// Where the switch sends a frame.
#pragma once

#include <cstdint>
#include <span>

namespace heddle::sim {

inline constexpr uint32_t kSlots = 64;  // Functions at one address.

struct Route {
  enum class Kind : uint8_t {
    kNone,  // Not a frame the switch can route.
    kPort,  // To the function that claimed `port` at `ip`.
    kSlot,  // To the function in `slot` at `ip`.
  };
  Kind kind = Kind::kNone;
  uint32_t ip = 0;    // Destination, first octet most significant.
  uint16_t port = 0;  // libfabric port: RI block x 4096 + PIDonFEP.
  uint8_t slot = 0;
};

// Requests that open a PDC and datagrams go by their SES address, everything
// else by the slot bits of dpdcid. Only lengths needed to read those fields
// are checked; bad frames reach their destination, which counts them.
Route FindRoute(std::span<const uint8_t> frame);

}  // namespace heddle::sim
