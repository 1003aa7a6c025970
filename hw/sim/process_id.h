// SPDX-License-Identifier: Apache-2.0
// Identity of a process that survives reuse of its number.
#pragma once

#include <cstdint>

namespace heddle::sim {

struct ProcessId {
  uint32_t pid = 0;
  uint32_t start = 0;  // Low bits of the start time, in clock ticks.
  uint64_t space = 0;  // Its PID namespace.

  static ProcessId Self();

  // False once the process has ended, killed and not yet reaped included.
  // A process of another PID namespace cannot be looked up; it counts as alive.
  bool Alive() const;

  bool operator==(const ProcessId&) const = default;
};

}  // namespace heddle::sim
