// SPDX-License-Identifier: Apache-2.0
// How long a poller that finds nothing spins before it sleeps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace heddle::soft {

// A spinner sees a frame at once, but where there are more runnable threads
// than CPUs it keeps the very thread that would send the frame from running.
// Which of the two it is shows in what spinning has brought: the time doubles
// when work came while a poller spun, and halves when it had to sleep. Once in
// `kSleepsPerTry` waits the whole time is spent, so that two sides that wake
// each other find back to spinning.
//
// A wait yields once before it sleeps: two sides of one CPU so hand it over
// without a sleep and a wake. Where a third thread takes the CPU a yield costs
// a time slice, so that each long one stops yields for twice as many waits.
//
// Thread safety: any; a lost update does no harm.
class PollPatience {
 public:
  static constexpr uint64_t kMostNs = 50000;
  // A peer on the same CPU cannot run meanwhile. It may be less than a round
  // trip to a peer that spins: the next try of the whole time succeeds then.
  static constexpr uint64_t kLeastNs = 1000;
  static constexpr uint32_t kSleepsPerTry = 64;
  // A yield that takes longer gave the CPU to a thread that does not wait for
  // this one.
  static constexpr uint64_t kLongYieldNs = 100000;
  // Waits without a yield after a long one, first and at most.
  static constexpr uint32_t kFirstPause = 256;
  static constexpr uint32_t kMaxPause = 65536;

  uint64_t spin_ns() const noexcept {
    return sleeps_.load(std::memory_order_relaxed) % kSleepsPerTry == 0
               ? kMostNs
               : spin_ns_.load(std::memory_order_relaxed);
  }

  // Is a yield worth its time before the sleep of this wait? One is.
  bool MayYield() const noexcept {
    return pause_left_.load(std::memory_order_relaxed) == 0 &&
           !slept_.load(std::memory_order_relaxed);
  }

  // A poller has found nothing for `spin_ns`, and yielded for `yield_ns`.
  void NoteYield(uint64_t yield_ns) noexcept {
    NoteSleep();
    const uint32_t pause = pause_.load(std::memory_order_relaxed);
    if (yield_ns < kLongYieldNs) {
      pause_.store(kFirstPause, std::memory_order_relaxed);
    } else {
      pause_left_.store(pause, std::memory_order_relaxed);
      pause_.store(std::min(2 * pause, kMaxPause), std::memory_order_relaxed);
    }
  }

  // A poller found work after it had found none for a while.
  void NoteWork() noexcept {
    if (slept_.load(std::memory_order_relaxed)) {
      slept_.store(false, std::memory_order_relaxed);
      return;
    }
    const uint64_t spin = spin_ns_.load(std::memory_order_relaxed);
    if (spin < kMostNs) {
      spin_ns_.store(std::min(2 * spin, kMostNs), std::memory_order_relaxed);
    }
  }

  // A poller has found nothing for `spin_ns` and goes to sleep. One that sleeps
  // again without having found anything learns no more from it.
  void NoteSleep() noexcept {
    if (slept_.exchange(true, std::memory_order_relaxed)) {
      return;
    }
    sleeps_.fetch_add(1, std::memory_order_relaxed);
    const uint32_t left = pause_left_.load(std::memory_order_relaxed);
    pause_left_.store(left - (left != 0 ? 1 : 0), std::memory_order_relaxed);
    const uint64_t spin = spin_ns_.load(std::memory_order_relaxed);
    spin_ns_.store(std::max(spin / 2, kLeastNs), std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> spin_ns_{kMostNs};
  std::atomic<uint32_t> sleeps_{1};  // Waits that ended in one.
  std::atomic<bool> slept_{false};   // Nothing was found since.
  std::atomic<uint32_t> pause_{kFirstPause};
  std::atomic<uint32_t> pause_left_{0};  // Waits until the next yield.
};

}  // namespace heddle::soft
