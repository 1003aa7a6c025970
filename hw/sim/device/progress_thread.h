// SPDX-License-Identifier: Apache-2.0
// The thread that works for a device between polls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace heddle::sim::device {

// Runs `step` whenever there is work, but stands back while polls are seen: it
// looks for new ones every `kGraceNs`. `Take` has it go on at once, for a host
// that is about to sleep.
//
// Thread safety: any thread.
class ProgressThread {
 public:
  // What the thread calls, without a lock of its own held.
  struct Work {
    // When there is something to do, monotonic: 0 for now, UINT64_MAX for
    // never.
    std::function<uint64_t()> due;
    // Does some of it.
    std::function<void()> step;
    // What each `wake` changes.
    std::function<uint32_t()> wakes;
    // Sleeps at most so long, or until a `wake`, also if one came since `wakes`
    // answered so.
    std::function<void(uint32_t wakes, uint64_t timeout_ns)> sleep;
    std::function<void()> wake;
  };

  // `name` is that of the thread: at most 15 characters, static.
  ProgressThread(const char* name, Work work)
      : name_(name), work_(std::move(work)) {}
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  // Precondition: stopped, or never started.
  ~ProgressThread() = default;

  // Starts it; nothing when it runs. Its signals are blocked.
  void Start() {
    if (!started_.load(std::memory_order_acquire)) {
      StartSlowly();
    }
  }
  // Ends and joins it; it cannot be started again.
  void Stop();
  // In a child after fork the thread is the parent's.
  void Forget();

  // Data path: the host polls. A lost count does no harm.
  void NotePoll() {
    polls_.store(polls_.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
  }
  // The polls end here, or after a few more: the thread goes on at once.
  void Take();
  // Work has come up, after it shows in `due`: wakes a thread that would sleep
  // longer. Once: the same work needs no other wake, which may be news to the
  // caller itself.
  void NoteWork(uint64_t due_ns) {
    uint64_t until = sleeps_until_ns_.load();
    while (due_ns < until) {
      if (sleeps_until_ns_.compare_exchange_weak(until, due_ns)) {
        work_.wake();
        return;
      }
    }
  }

  // Whoever polled within this time is expected to poll again.
  static constexpr uint64_t kGraceNs = 1000000;
  // Last looks at its queue of a host that is about to sleep.
  static constexpr uint64_t kLastPolls = 64;

 private:
  void StartSlowly();
  void Main();
  // True if there was no poll since the last call, or the host is about to
  // sleep; else waits for a while.
  bool IsTurn(uint64_t* polls);
  bool taken() const { return polls_ <= taken_until_; }

  const char* const name_;
  const Work work_;
  std::atomic<uint64_t> polls_ = 0;
  std::atomic<uint64_t> taken_until_ = 0;      // Count of polls.
  std::atomic<uint64_t> sleeps_until_ns_ = 0;  // 0: awake.
  std::atomic<bool> started_ = false;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  // Apart, so that a child after fork can leave it alone: to destroy one on
  // which a thread waited at the fork waits for that thread for ever.
  std::unique_ptr<std::condition_variable> wake_ =
      std::make_unique<std::condition_variable>();
  std::thread thread_;
};

}  // namespace heddle::sim::device
