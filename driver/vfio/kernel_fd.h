// SPDX-License-Identifier: Apache-2.0
// A file descriptor with an owner.
#pragma once

#include <utility>

#include "driver/vfio/kernel.h"

namespace heddle::vfio {

class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(Kernel& kernel, int fd) : kernel_(&kernel), fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept
      : kernel_(other.kernel_), fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(kernel_, other.kernel_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) {
      kernel_->Close(fd_);
    }
  }

  int fd() const { return fd_; }

 private:
  Kernel* kernel_ = nullptr;
  int fd_ = -1;
};

}  // namespace heddle::vfio
