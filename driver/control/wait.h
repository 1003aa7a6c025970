// SPDX-License-Identifier: Apache-2.0
// Waiting for a device on the control path.
#pragma once

#include <chrono>
#include <thread>

#include "driver/device.h"

namespace heddle {

// Returns true as soon as `done()` does; false when `limit` has passed or the
// device has failed. Runs the device on this thread if it has a progress hook,
// else polls.
template <typename Done>
bool WaitFor(Device& device, std::chrono::nanoseconds limit, Done done) {
  // Time and health are checked after this number of polls: both cost more.
  constexpr uint32_t kPollsPerCheck = 64;
  const uint64_t deadline_ns =
      device.now_ns() + static_cast<uint64_t>(limit.count());
  const ProgressHook hook = device.progress_hook();
  while (true) {
    for (uint32_t i = 0; i < kPollsPerCheck; ++i) {
      if (done()) {
        return true;
      }
      if (hook.step != nullptr) {
        hook.step(hook.cookie);
      }
    }
    if (device.failed() || device.now_ns() >= deadline_ns) {
      return done();
    }
    // Another thread may drive the device.
    std::this_thread::yield();
  }
}

}  // namespace heddle
