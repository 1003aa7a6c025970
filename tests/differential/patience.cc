// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/patience.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace heddle::differential {

using std::chrono::nanoseconds;

bool Patience::IsOver(Clock::time_point now, const Waited& waited) {
  if (!waited_) {
    waited_ = waited;
  }
  nanoseconds longest{0};  // A process that follows another begins with 0.
  for (uint32_t side = 0; side < kMaxSides; ++side) {
    longest = std::max(longest, waited.at(side) - waited_->at(side));
  }
  return now - since_ - longest > limit_;
}

nanoseconds WaitedForCpu(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/schedstat");
  int64_t ran_ns = 0;
  int64_t waited_ns = 0;
  return file >> ran_ns >> waited_ns ? nanoseconds(waited_ns) : nanoseconds(0);
}

}  // namespace heddle::differential
