// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/interrupt_fds.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace heddle::sim::base {

InterruptFds::~InterruptFds() {
  for (const int fd : fds_) {
    if (fd >= 0) {
      close(fd);
    }
  }
}

int InterruptFds::Fd(uint32_t vector) {
  const std::lock_guard lock(mutex_);
  if (vector >= kVectors) {
    return -1;
  }
  if (fds_[vector] < 0) {
    fds_[vector] = eventfd(early_[vector], EFD_NONBLOCK | EFD_CLOEXEC);
  }
  return fds_[vector];
}

void InterruptFds::Raise(uint32_t vector) {
  const std::lock_guard lock(mutex_);
  if (vector >= kVectors) {
    return;
  }
  if (fds_[vector] < 0) {
    ++early_[vector];
  } else {
    eventfd_write(fds_[vector], 1);
  }
}

void InterruptFds::RaiseAll() {
  for (uint32_t vector = 0; vector < kVectors; ++vector) {
    Raise(vector);
  }
}

}  // namespace heddle::sim::base
