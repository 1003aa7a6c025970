// SPDX-License-Identifier: Apache-2.0
// Time of the host.
#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace heddle::sim::base {

inline constexpr uint64_t kNsPerSecond = 1000000000;

inline uint64_t ClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond +
         static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t MonotonicNs() {
  return ClockNs(CLOCK_MONOTONIC);
}
inline uint64_t RealtimeNs() {
  return ClockNs(CLOCK_REALTIME);
}

inline timespec ToTimespec(uint64_t ns) {
  return {static_cast<time_t>(ns / kNsPerSecond),
          static_cast<long>(ns % kNsPerSecond)};
}

inline void SleepNs(uint64_t ns) {
  timespec left = ToTimespec(ns);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

}  // namespace heddle::sim::base
