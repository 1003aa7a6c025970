// SPDX-License-Identifier: Apache-2.0
// The interrupts of a VFIO device as eventfds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/result.h"
#include "driver/vfio/kernel.h"
#include "driver/vfio/kernel_fd.h"

namespace heddle::vfio {

// The interrupts of one index (MSI-X vectors, the error or the request
// interrupt), each with its eventfd.
//
// Ownership: of the eventfds; borrows kernel and device, which outlive it.
// Destruction turns the interrupts off.
class InterruptLine {
 public:
  // Turns on up to `most` of them, all with one call: older kernels do not add
  // vectors to those that are on. Fewer when the machine has not as many left.
  // A device without any has none, which is no error.
  // Errors: those of the kernel, with the call that failed in `message`.
  static Result<InterruptLine> Open(Kernel& kernel, int device_fd,
                                    uint32_t index, uint32_t most,
                                    std::string& message);

  InterruptLine() = default;
  InterruptLine(InterruptLine&& other) noexcept { Swap(other); }
  InterruptLine& operator=(InterruptLine&& other) noexcept {
    Swap(other);
    return *this;
  }
  InterruptLine(const InterruptLine&) = delete;
  InterruptLine& operator=(const InterruptLine&) = delete;
  ~InterruptLine();

  uint32_t count() const { return static_cast<uint32_t>(events_.size()); }
  // -1 if there is none.
  int fd(uint32_t vector) const {
    return vector < events_.size() ? events_[vector].fd() : -1;
  }

 private:
  // 0, or how many there could be, none of which is on then.
  Result<int> TurnOn();

  void Swap(InterruptLine& other) noexcept {
    std::swap(kernel_, other.kernel_);
    std::swap(device_fd_, other.device_fd_);
    std::swap(index_, other.index_);
    std::swap(on_, other.on_);
    std::swap(events_, other.events_);
  }

  Kernel* kernel_ = nullptr;
  int device_fd_ = -1;
  uint32_t index_ = 0;
  bool on_ = false;
  std::vector<KernelFd> events_;
};

}  // namespace heddle::vfio
