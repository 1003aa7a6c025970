// SPDX-License-Identifier: Apache-2.0
// Runs one test in a child process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "tests/conformance/verdict.h"

namespace heddle::conformance {

// Settings of a run, set before the first test.
struct Settings {
  std::string provider;
  std::chrono::milliseconds limit{60'000};  // A test ends by then.
  // A wait in a test ends after this much time of the processor, however busy
  // the machine is, or half the limit.
  std::chrono::milliseconds wait{5'000};
  uint32_t seed = 1;
};
Settings& CurrentSettings();

// Runs the test `name` in a child that the limit ends, with all processes that
// it started. The runner itself never calls the library, so that each child
// starts from the same state.
Outcome RunTest(const std::string& name);

// Removes the segments that the stock provider shm leaves where a process was
// killed: it names them by the process, and refuses to open (FI_EBUSY) in a
// later one of the same number. So a process calls this before it opens, and
// one that kills another before the number is free.
void RemoveSegments(pid_t process);

// --- For tests; each sets the verdict of a test without failed assertions.

// The provider does not offer what the test needs.
void NotOffered(const std::string& what);
// The provider refuses by an errno that the page permits; `result` is negative.
void Refused(const std::string& what, int result);

}  // namespace heddle::conformance
