// SPDX-License-Identifier: Apache-2.0
// Where a simulated device takes its time from.
#pragma once

#include <cstdint>

#include "hw/sim/base/clock.h"

namespace heddle::sim::base {

// The host's monotonic clock, or a variable that a simulation moves. A copy
// reads the same clock, which outlives it. Thread safety: any with the host's
// clock; that of the variable's owner else.
class TimeSource {
 public:
  TimeSource() = default;
  explicit TimeSource(const uint64_t* now_ns) : now_ns_(now_ns) {}

  uint64_t now_ns() const {
    return now_ns_ == nullptr ? MonotonicNs() : *now_ns_;
  }
  // Of time stamps in captures.
  uint64_t stamp_ns() const {
    return now_ns_ == nullptr ? RealtimeNs() : *now_ns_;
  }

 private:
  const uint64_t* now_ns_ = nullptr;
};

}  // namespace heddle::sim::base
