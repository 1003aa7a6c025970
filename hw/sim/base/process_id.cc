// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/process_id.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::sim::base {
namespace {

constexpr int kStartField = 22;  // Of /proc/<pid>/stat, see proc(5).
constexpr int kStateField = 3;

// Reads state and start time; false with errno set if there is no process.
bool ReadStat(uint32_t pid, char* state, uint32_t* start) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%u/stat", pid);
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  std::array<char, 1024> text{};
  const ssize_t bytes = read(fd, text.data(), text.size() - 1);
  close(fd);
  if (bytes <= 0) {
    errno = ESRCH;
    return false;
  }
  // The name may hold spaces and parentheses; fields go on behind the last.
  const char* at = std::strrchr(text.data(), ')');
  if (at == nullptr || at[1] == '\0') {
    errno = EPROTO;
    return false;
  }
  *state = at[2];
  at += 2;
  for (int field = kStateField; field < kStartField && at != nullptr; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  if (at == nullptr) {
    errno = EPROTO;
    return false;
  }
  *start = static_cast<uint32_t>(std::strtoull(at, nullptr, 10));
  return true;
}

uint64_t PidSpace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

// Read the first time, and the first time after a fork. Threads that do so at
// once store the same values, and the number last: it makes the others valid.
// No thread-local variable: LeakSanitizer crashes over those of a library that
// was loaded later while another thread begins.
ProcessId ProcessId::Self() {
  static constinit std::atomic<uint32_t> known_pid = 0;
  static constinit std::atomic<uint32_t> known_start = 0;
  static constinit std::atomic<uint64_t> known_space = 0;
  const auto pid = static_cast<uint32_t>(getpid());
  if (known_pid.load(std::memory_order_acquire) != pid) {
    char state = 0;
    uint32_t start = 0;
    if (!ReadStat(pid, &state, &start)) {
      start = 0;
    }
    known_start.store(start, std::memory_order_relaxed);
    known_space.store(PidSpace(), std::memory_order_relaxed);
    known_pid.store(pid, std::memory_order_release);
  }
  return {.pid = pid,
          .start = known_start.load(std::memory_order_relaxed),
          .space = known_space.load(std::memory_order_relaxed)};
}

ProcessId::State ProcessId::Look() const {
  const ProcessId self = Self();
  if (space != self.space || *this == self) {
    return State::kRuns;
  }
  char state = 0;
  uint32_t now_start = 0;
  if (!ReadStat(pid, &state, &now_start)) {
    return errno != ENOENT && errno != ESRCH ? State::kRuns : State::kEnded;
  }
  if (state == 'Z' || state == 'X' || now_start != start) {
    return State::kEnded;
  }
  return state == 'T' || state == 't' ? State::kStopped : State::kRuns;
}

}  // namespace heddle::sim::base
