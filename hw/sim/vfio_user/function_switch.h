// SPDX-License-Identifier: Apache-2.0
// Which virtual functions are on.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "hw/sim/base/owned_fd.h"

namespace heddle::sim::vfio_user {

// One function: its physical one turns it on and off, its server looks.
//
// Thread safety: any thread.
class FunctionSwitch {
 public:
  explicit FunctionSwitch(bool on)
      : on_(on), changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Set(bool on) {
    constexpr uint64_t kOne = 1;
    if (on_.exchange(on) != on) {
      [[maybe_unused]] const ssize_t told =
          write(changed_.get(), &kOne, sizeof(kOne));
    }
  }
  bool on() const { return on_; }

  // Readable when it was set since; `Forget` makes it not so.
  int changed_fd() const { return changed_.get(); }
  void Forget() {
    uint64_t times = 0;
    [[maybe_unused]] const ssize_t got =
        read(changed_.get(), &times, sizeof(times));
  }

 private:
  std::atomic<bool> on_;
  base::OwnedFd changed_;
};

}  // namespace heddle::sim::vfio_user
