// SPDX-License-Identifier: Apache-2.0
// Locks that the data path takes or, by threading model, leaves out.
#pragma once

#include <atomic>
#include <cstdint>

namespace heddle::backend {

// A lock held for the length of one post or one poll. Spins: holders make no
// system call.
class SpinLock {
 public:
  void lock() noexcept {
    while (flag_.exchange(true, std::memory_order_acquire)) {
      while (flag_.load(std::memory_order_relaxed)) {
        Pause();
      }
    }
  }
  [[nodiscard]] bool try_lock() noexcept {
    return !flag_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { flag_.store(false, std::memory_order_release); }

 private:
  static void Pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<bool> flag_{false};
};

// The library serializes: several threads may use one object, or one
// completion queue and the endpoints bound to it (FI_THREAD_SAFE,
// FI_THREAD_FID, FI_THREAD_ENDPOINT).
struct Locked {
  static constexpr bool kLocks = true;

  class Guard {
   public:
    explicit Guard(SpinLock& lock) noexcept : lock_(lock) { lock_.lock(); }
    ~Guard() { lock_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    SpinLock& lock_;
  };

  static uint32_t FetchAdd(std::atomic<uint32_t>& count,
                           uint32_t value) noexcept {
    return count.fetch_add(value, std::memory_order_relaxed);
  }
};

// The application serializes everything that shares a completion queue
// (FI_THREAD_COMPLETION, FI_THREAD_DOMAIN).
struct Unlocked {
  static constexpr bool kLocks = false;

  class Guard {
   public:
    explicit Guard(SpinLock& /*lock*/) noexcept {}
  };

  static uint32_t FetchAdd(std::atomic<uint32_t>& count,
                           uint32_t value) noexcept {
    const uint32_t before = count.load(std::memory_order_relaxed);
    count.store(before + value, std::memory_order_relaxed);
    return before;
  }
};

}  // namespace heddle::backend
