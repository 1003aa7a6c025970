// SPDX-License-Identifier: Apache-2.0
// How long nothing may happen in a run.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <optional>

#include "tests/differential/stream.h"

namespace heddle::differential {

// Time in which a side waited for a CPU does not count: simulated NICs do not
// count it either (hw/sim/rtl/tick_clock.h), so what they wait for takes longer
// by that.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  // How long each side's process has waited for a CPU so far.
  using Waited = std::array<std::chrono::nanoseconds, kMaxSides>;

  Patience(std::chrono::nanoseconds limit, Clock::time_point now)
      : limit_(limit), since_(now) {}

  // Something happened.
  void Restart(Clock::time_point now) {
    since_ = now;
    waited_.reset();
  }
  // Nothing did; has that been so for too long? The sides' waits count from the
  // first call behind a `Restart` on.
  bool IsOver(Clock::time_point now, const Waited& waited);

  Clock::time_point since() const { return since_; }

 private:
  const std::chrono::nanoseconds limit_;
  Clock::time_point since_;
  std::optional<Waited> waited_;
};

// Of the first thread of a process; 0 where the kernel does not tell.
std::chrono::nanoseconds WaitedForCpu(pid_t process);

}  // namespace heddle::differential
