// SPDX-License-Identifier: Apache-2.0
// Identity of a process that survives reuse of its number.
#pragma once

#include <cstdint>

namespace heddle::sim::base {

struct ProcessId {
  uint32_t pid = 0;
  uint32_t start = 0;  // Low bits of the start time, in clock ticks.
  uint64_t space = 0;  // Its PID namespace.

  static ProcessId Self();

  enum class State : uint8_t {
    kRuns,     // Or waits, or is of another PID namespace, where it is not
               // visible.
    kStopped,  // By a signal or a debugger.
    kEnded,    // Killed and not yet reaped included.
  };
  State Look() const;
  bool Alive() const { return Look() != State::kEnded; }

  bool operator==(const ProcessId&) const = default;
};

}  // namespace heddle::sim::base
