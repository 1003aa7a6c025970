// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed through the `Kernel` that opened it.
#pragma once

#include <utility>

#include "driver/vfio/kernel.h"

namespace heddle::vfio {

class KernelFd {
 public:
  KernelFd() = default;
  KernelFd(Kernel& kernel, int fd) : kernel_(&kernel), fd_(fd) {}
  KernelFd(KernelFd&& other) noexcept
      : kernel_(other.kernel_), fd_(std::exchange(other.fd_, -1)) {}
  KernelFd& operator=(KernelFd&& other) noexcept {
    std::swap(kernel_, other.kernel_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  KernelFd(const KernelFd&) = delete;
  KernelFd& operator=(const KernelFd&) = delete;
  ~KernelFd() {
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
