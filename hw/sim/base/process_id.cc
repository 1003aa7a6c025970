// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/process_id.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
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

ProcessId ProcessId::Self() {
  thread_local ProcessId self;
  const auto pid = static_cast<uint32_t>(getpid());
  if (self.pid != pid) {  // The first time, or the first after a fork.
    self = {.pid = pid, .space = PidSpace()};
    char state = 0;
    if (!ReadStat(pid, &state, &self.start)) {
      self.start = 0;
    }
  }
  return self;
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
