// SPDX-License-Identifier: Apache-2.0
// Ticks of a free-running NIC from the host's clock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle::sim {

// Owes the NIC one tick per `tick_ns` that passed, but at most `kMaxStep` ticks
// for one look at the clock: time in which this process was stopped must not
// look like silence of its peers. Whoever waits looks at least that often.
// Thread safety: none.
class TickClock {
 public:
  TickClock(uint64_t tick_ns, uint64_t now_ns)
      : tick_ns_(tick_ns), last_ns_(now_ns) {}

  // Takes note of the time. With `hold` what passed does not count: the NIC
  // waits for somebody who is behind, not for somebody who is silent.
  void Advance(uint64_t now_ns, bool hold) {
    const uint64_t passed = (now_ns - last_ns_) / tick_ns_;
    last_ns_ += passed * tick_ns_;
    owed_ += hold ? 0 : std::min(passed, kMaxStep);
  }

  uint64_t owed() const { return owed_; }
  void Take() { --owed_; }
  // Time without a timer running need not be made up for.
  void Forget() { owed_ = 0; }

  static constexpr uint64_t kMaxStep = 100;

 private:
  const uint64_t tick_ns_;
  uint64_t last_ns_;
  uint64_t owed_ = 0;
};

}  // namespace heddle::sim
