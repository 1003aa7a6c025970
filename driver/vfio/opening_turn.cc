// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/opening_turn.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

namespace heddle::vfio {

OpeningTurn::OpeningTurn(const Sysfs& sysfs, const PciAddress& address,
                         std::chrono::nanoseconds limit) {
  const std::string path = sysfs.PathOf(address) + "/vendor";
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    return;
  }
  constexpr std::chrono::milliseconds kPause{1};
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    taken_ = flock(fd_, LOCK_EX | LOCK_NB) == 0;
    const bool later = !taken_ && (errno == EWOULDBLOCK || errno == EINTR);
    if (!later || std::chrono::steady_clock::now() >= end) {
      return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

OpeningTurn::~OpeningTurn() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

}  // namespace heddle::vfio
