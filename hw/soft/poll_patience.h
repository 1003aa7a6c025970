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
// Thread safety: any; a lost update does no harm.
class PollPatience {
 public:
  static constexpr uint64_t kMostNs = 50000;
  // More than a round trip to a peer that spins: else one side could not follow
  // the other that has found back.
  static constexpr uint64_t kLeastNs = 3000;
  static constexpr uint32_t kSleepsPerTry = 64;

  uint64_t spin_ns() const noexcept {
    return sleeps_.load(std::memory_order_relaxed) % kSleepsPerTry == 0
               ? kMostNs
               : spin_ns_.load(std::memory_order_relaxed);
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
    const uint64_t spin = spin_ns_.load(std::memory_order_relaxed);
    spin_ns_.store(std::max(spin / 2, kLeastNs), std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> spin_ns_{kMostNs};
  std::atomic<uint32_t> sleeps_{1};  // Waits that ended in one.
  std::atomic<bool> slept_{false};   // Nothing was found since.
};

}  // namespace heddle::soft
