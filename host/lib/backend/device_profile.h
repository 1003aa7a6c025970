// SPDX-License-Identifier: Apache-2.0
// What a device offers, as data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::backend {

// How many objects a domain of the device can have.
struct DeviceLimits {
  size_t tx_contexts = 0;
  size_t rx_contexts = 0;
  size_t completion_queues = 0;
  size_t counters = 0;
  size_t regions = 0;  // Of memory that peers may reach.

  // An endpoint has a context of each kind.
  constexpr size_t endpoints() const noexcept {
    return tx_contexts < rx_contexts ? tx_contexts : rx_contexts;
  }
};

// What it does, besides messages.
struct DeviceCapabilities {
  bool reads = false;
  bool writes = false;
  bool fences = false;
  bool delivery_complete = false;
  bool region_events = false;    // Peers' operations tell of themselves.
  bool counters = false;         // Of completed operations.
  bool remote_segments = false;  // Several pieces of a peer's memory at once.
  bool relative_addressing = false;

  constexpr bool rma() const noexcept { return reads || writes; }
};

// Thread safety: immutable. Read once, when a device is found or opened.
struct DeviceProfile {
  DeviceCapabilities has;
  DeviceLimits limits;
};

}  // namespace heddle::backend
