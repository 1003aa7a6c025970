// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/device/progress_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "hw/sim/base/clock.h"

namespace heddle::sim::device {
namespace {

constexpr uint64_t kLongestSleepNs = base::kNsPerSecond;

}  // namespace

void ProgressThread::StartSlowly() {
  const std::lock_guard lock(mutex_);
  if (started_ || stopping_) {
    return;
  }
  // The new thread inherits the mask: signals are for the application's own.
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { Main(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  pthread_setname_np(thread_.native_handle(), name_);
  started_.store(true, std::memory_order_release);
}

void ProgressThread::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_->notify_all();
  }
  if (thread_.joinable()) {
    work_.wake();
    thread_.join();
  }
}

void ProgressThread::Forget() {
  static_cast<void>(wake_.release());
  if (thread_.joinable()) {
    thread_.detach();
  }
}

void ProgressThread::Take() {
  const uint64_t until = polls_.load(std::memory_order_relaxed) + kLastPolls;
  // The lock: a thread that is about to wait must not miss it.
  const std::lock_guard lock(mutex_);
  taken_until_ = until;
  wake_->notify_all();
}

bool ProgressThread::IsTurn(uint64_t* polls) {
  const uint64_t now = polls_.load(std::memory_order_relaxed);
  if (now == *polls || taken()) {
    return true;
  }
  *polls = now;
  std::unique_lock lock(mutex_);
  wake_->wait_for(lock, std::chrono::nanoseconds(kGraceNs),
                  [this] { return stopping_ || taken(); });
  return false;
}

void ProgressThread::Main() {
  uint64_t polls = 0;
  while (!stopping_) {
    if (!IsTurn(&polls)) {
      continue;
    }
    const uint64_t now = base::MonotonicNs();
    const uint64_t until = std::min(work_.due(), now + kLongestSleepNs);
    if (until <= now) {
      work_.step();
      continue;
    }
    // Published before the last look, so that work that does not show in it
    // finds a thread to be woken; a poller may have seen that wake before this
    // thread sleeps.
    sleeps_until_ns_ = until;
    const uint32_t wakes = work_.wakes();
    if (work_.due() >= until && !stopping_) {
      work_.sleep(wakes, until - now);
    }
    sleeps_until_ns_ = 0;
  }
}

}  // namespace heddle::sim::device
