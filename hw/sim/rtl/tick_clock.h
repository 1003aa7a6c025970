// SPDX-License-Identifier: Apache-2.0
// Ticks of a free-running NIC from the host's clock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle::sim::rtl {

// Owes the NIC one tick per `tick_ns` that passed, but for one look at the
// clock at most as many as the caller allows: time in which this process was
// stopped must not look like silence of its peers.
//
// An idle NIC gets its ticks when a timer ends or something is to be done,
// which may be long after they were due: such late ticks must not be for timers
// that began meanwhile. Thread safety: none.
class TickClock {
 public:
  TickClock(uint64_t tick_ns, uint64_t now_ns)
      : tick_ns_(tick_ns), last_ns_(now_ns) {}

  // Takes note of the time. Of what passed, up to `limit` ticks count.
  void Advance(uint64_t now_ns, uint64_t limit) {
    const uint64_t passed = (now_ns - last_ns_) / tick_ns_;
    last_ns_ += passed * tick_ns_;
    owed_ += std::min(passed, limit);
  }

  // The idle NIC begins to work: what is still owed is late from here on.
  void BeginWork() {
    late_ += owed_;
    owed_ = 0;
  }

  // Owed and not late.
  uint64_t owed() const { return owed_; }
  void Take() { --owed_; }

  // Ticks that an idle NIC whose next timer ends after `deadline` of them has
  // waited. Nothing tells when that timer began, so that late ticks count for
  // up to half of its time.
  uint64_t Waited(uint64_t deadline) const {
    return owed_ + (late_ <= deadline / 2 ? late_ : 0);
  }
  // Whether an idle NIC is to be given ticks, one after the other: its timer
  // has ended, or more are late than count, and no timer is as short as those
  // of retransmissions.
  bool Due(uint64_t deadline) const {
    return Waited(deadline) >= deadline ||
           (deadline > kLongTicks && late_ > deadline / 2);
  }
  void TakeWaited(uint64_t deadline) {
    const bool counts = late_ <= deadline / 2 || deadline > kLongTicks;
    --(late_ > 0 && counts ? late_ : owed_);
  }
  // Time without a timer running need not be made up for.
  void Forget() {
    owed_ = 0;
    late_ = 0;
  }

  // The limit while the NIC waits; a waiter looks at least that often.
  static constexpr uint64_t kMaxStep = 100;
  // The limit after a wait for peers, however long. An answer arrives within
  // two such steps of its request, which are to end no timer of a
  // retransmission.
  static constexpr uint64_t kWaitStep = 16;
  // Longer than the longest time between retransmissions.
  static constexpr uint64_t kLongTicks = 8192;

 private:
  const uint64_t tick_ns_;
  uint64_t last_ns_;
  uint64_t owed_ = 0;
  uint64_t late_ = 0;
};

}  // namespace heddle::sim::rtl
