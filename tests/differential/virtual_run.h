// SPDX-License-Identifier: Apache-2.0
// Runs a stream between soft devices of this process, in virtual time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

struct VirtualOptions {
  // A run in which nothing happens for so long, in virtual time, is ended.
  std::chrono::seconds silence{200};
  // Called with a line for each frame and event, with its time; null for none.
  std::function<void(const std::string& line)> log;
};

struct VirtualOutcome {
  Trace trace;
  // Of each frame that a device sent or received, and each event, with their
  // times: the same for the same stream.
  uint64_t hash = 0;
  uint64_t frames = 0;      // That devices sent.
  uint64_t virtual_ns = 0;  // That the run took.
};

// All in this thread: sides, devices, wire. Waiting takes no time, as the clock
// jumps to the next event.
// Precondition: in this process libfabric is used by nothing else, and
// FI_HEDDLE_* are as they were at the first run.
VirtualOutcome RunVirtually(const Stream& stream,
                            const VirtualOptions& options);

}  // namespace heddle::differential
