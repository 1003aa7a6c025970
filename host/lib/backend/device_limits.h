// SPDX-License-Identifier: Apache-2.0
// How many objects a domain of a device can have.
#pragma once

#include <cstddef>

namespace heddle::backend {

// As the device's registers say.
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

}  // namespace heddle::backend
