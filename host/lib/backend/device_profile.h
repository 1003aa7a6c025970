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

  // Those that have a transmit context and `receivers` receive contexts each.
  constexpr size_t endpoints(size_t receivers = 1) const noexcept {
    const size_t most = rx_contexts / receivers;
    return tx_contexts < most ? tx_contexts : most;
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
  // Receives match by sender, and messages that precede theirs are kept.
  bool matching = false;
  bool tagged = false;            // With `matching`: also by tag.
  bool multi_recv = false;        // With `matching`: many messages a buffer.
  bool write_after_read = false;  // That order is kept.

  constexpr bool rma() const noexcept { return reads || writes; }
};

// Thread safety: immutable. Read once, when a device is found or opened.
struct DeviceProfile {
  DeviceCapabilities has;
  DeviceLimits limits;
};

}  // namespace heddle::backend
