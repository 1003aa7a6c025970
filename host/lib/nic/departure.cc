// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/departure.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "host/lib/nic/nic.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::nic {
namespace {

constexpr int kSilentRtos = 4;
constexpr std::chrono::seconds kLimit{2};
constexpr std::chrono::microseconds kFirstWait{20};
// Longer than any departure that no lock stops.
constexpr std::chrono::seconds kExitLimit{3};

}  // namespace

// Those of this process that have not begun. A child process inherits none: the
// PDCs are its parent's.
class Departures {
 public:
  static Departures& Get() {
    // Never destroyed: exit handlers use it.
    static Departures* const departures = new Departures;
    return *departures;
  }

  void Add(Departure* departure) {
    const std::lock_guard lock(mutex_);
    if (!registered_) {
      registered_ = std::atexit([] { Get().LeaveAtExit(); }) == 0;
    }
    list_.push_back(departure);
    listed_ = list_.size();
  }

  // False: the exit has taken care of it, or it is a parent process's.
  bool Remove(Departure* departure) {
    const std::lock_guard lock(mutex_);
    const bool found = std::erase(list_, departure) != 0;
    listed_ = list_.size();
    return found;
  }

 private:
  Departures() { (void)pthread_atfork(BeforeFork, InParent, InChild); }

  // Held over the fork, so that the child finds the list whole.
  static void BeforeFork() { Get().mutex_.lock(); }
  static void InParent() { Get().mutex_.unlock(); }
  static void InChild() {
    Get().list_.clear();
    Get().listed_ = 0;
    Get().mutex_.unlock();
  }

  // A signal handler that exits may have stopped a call that holds a lock of
  // the library or of a device. So another thread leaves, and this one
  // continues the exit when that thread makes no headway.
  void LeaveAtExit() noexcept {
    if (listed_ == 0) {
      return;
    }
    try {
      std::thread([this] { LeaveAll(); }).detach();
    } catch (...) {  // Without a thread, as without a signal.
      LeaveAll();
      return;
    }
    std::unique_lock lock(exit_mutex_);
    for (uint32_t before = left_; !done_; before = left_) {
      if (!headway_.wait_for(lock, kExitLimit,
                             [&] { return done_ || left_ != before; })) {
        return;
      }
    }
  }

  void LeaveAll() noexcept {
    const std::lock_guard lock(mutex_);
    for (Departure* const departure : list_) {
      departure->Leave();
      Report(false);
    }
    list_.clear();
    listed_ = 0;
    Report(true);
  }

  void Report(bool done) {
    const std::lock_guard lock(exit_mutex_);
    ++left_;
    done_ = done;
    headway_.notify_one();
  }

  std::mutex exit_mutex_;  // Guards the next three.
  std::condition_variable headway_;
  uint32_t left_ = 0;  // Departures that the exit has ended.
  bool done_ = false;
  std::mutex mutex_;
  std::vector<Departure*> list_;
  std::atomic<size_t> listed_ = 0;  // Size of `list_`, without its lock.
  bool registered_ = false;
};

Departure::Departure(Nic& nic, std::chrono::nanoseconds rto)
    : nic_(nic), rto_(rto) {
  Departures::Get().Add(this);
}

Departure::~Departure() {
  if (Departures::Get().Remove(this)) {
    Leave();
  }
}

void Departure::Leave() noexcept {
  try {
    ClosePdcs();
  } catch (...) {
    // Without memory peers find out by themselves.
  }
}

void Departure::ClosePdcs() {
  if (nic_.device().failed() ||
      !nic_.info().Has(contract::kCapabilityClosePdcs)) {
    return;
  }
  const auto now_of_device = [this] {
    return std::chrono::nanoseconds(nic_.device().now_ns());
  };
  const auto limit = now_of_device() + kLimit;
  std::chrono::nanoseconds silent = limit;
  auto again = now_of_device() + rto_;  // A request to close may be lost.
  uint32_t least = UINT32_MAX;
  bool repeated = false;
  Result<uint32_t> open = nic_.admin().ClosePdcs();
  for (std::chrono::nanoseconds wait = kFirstWait; open.ok();
       wait = std::min<std::chrono::nanoseconds>(2 * wait, rto_ / 2)) {
    const auto now = now_of_device();
    if (open.value() < least) {
      least = open.value();
      silent = now + kSilentRtos * rto_;
    }
    if (open.value() == 0 || now >= limit || (repeated && now >= silent)) {
      return;
    }
    if (const backend::Progressor* device = nic_.progressor()) {
      while (now_of_device() < now + wait) {
        device->step(device->cookie);
      }
    } else {
      std::this_thread::sleep_for(wait);
    }
    if (now >= again) {
      again = now + rto_;
      repeated = true;
      open = nic_.admin().ClosePdcs();
    } else {
      open = nic_.admin().CountPdcs();
    }
  }
}

}  // namespace heddle::nic
