// SPDX-License-Identifier: Apache-2.0
// What an endpoint may do, by the capabilities of its info.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "host/lib/backend/device_profile.h"

namespace heddle::ofi {

// A capability with none of its modifiers means all directions (fi_getinfo(3)).
struct EndpointCaps {
  bool sends = false;
  bool receives = false;
  bool reads = false;
  bool writes = false;
  bool is_read = false;     // By peers.
  bool is_written = false;  // By peers.
  bool region_events = false;
  bool fences = false;
  bool tag_sends = false;
  bool tag_receives = false;
  bool multi_recv = false;
  bool directed = false;

  static constexpr EndpointCaps Of(uint64_t caps) noexcept {
    constexpr uint64_t kMessages = FI_SEND | FI_RECV;
    constexpr uint64_t kRma =
        FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    caps |= (caps & kMessages) == 0 ? kMessages : 0;
    caps |= (caps & kRma) == 0 ? kRma : 0;
    const bool rma = (caps & FI_RMA) != 0;
    const bool tagged = (caps & FI_TAGGED) != 0;
    const bool messages = (caps & FI_MSG) != 0 || (!rma && !tagged);
    return {.sends = messages && (caps & FI_SEND) != 0,
            .receives = messages && (caps & FI_RECV) != 0,
            .reads = rma && (caps & FI_READ) != 0,
            .writes = rma && (caps & FI_WRITE) != 0,
            .is_read = rma && (caps & FI_REMOTE_READ) != 0,
            .is_written = rma && (caps & FI_REMOTE_WRITE) != 0,
            .region_events = (caps & FI_RMA_EVENT) != 0,
            .fences = (caps & FI_FENCE) != 0,
            .tag_sends = tagged && (caps & FI_SEND) != 0,
            .tag_receives = tagged && (caps & FI_RECV) != 0,
            .multi_recv = (caps & FI_MULTI_RECV) != 0,
            .directed = (caps & FI_DIRECTED_RECV) != 0};
  }

  bool transmits() const noexcept {
    return sends || tag_sends || reads || writes;
  }
  bool receives_any() const noexcept { return receives || tag_receives; }
  // Its untagged receives match: tagged messages do not wait for them.
  bool matches() const noexcept {
    return receives && (tag_receives || multi_recv || directed);
  }
  bool is_target() const noexcept { return is_read || is_written; }

  // What it needs that a device does not have, as capabilities of libfabric.
  uint64_t LackingOf(const backend::DeviceCapabilities& device) const noexcept {
    return ((reads || is_read) && !device.reads ? FI_READ : 0) |
           ((writes || is_written) && !device.writes ? FI_WRITE : 0) |
           (region_events && !device.region_events ? FI_RMA_EVENT : 0) |
           (fences && !device.fences ? FI_FENCE : 0) |
           ((tag_sends || tag_receives) && !device.tagged ? FI_TAGGED : 0) |
           (multi_recv && !device.multi_recv ? FI_MULTI_RECV : 0) |
           (directed && !device.matching ? FI_DIRECTED_RECV : 0);
  }
};

}  // namespace heddle::ofi
