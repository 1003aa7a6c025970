// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/interrupts.h"

#include <linux/vfio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace heddle::vfio {

Result<InterruptLine> InterruptLine::Open(Kernel& kernel, int device_fd,
                                          uint32_t index, uint32_t most,
                                          std::string& message) {
  const auto failed = [&](const char* call, Errno error) {
    message = "interrupt " + std::to_string(index) + ": " + call + ": " +
              std::strerror(static_cast<int>(error));
    return error;
  };
  InterruptLine line;
  line.kernel_ = &kernel;
  line.device_fd_ = device_fd;
  line.index_ = index;
  vfio_irq_info info{};
  info.argsz = sizeof(info);
  info.index = index;
  const Result<int> asked =
      kernel.Control(device_fd, VFIO_DEVICE_GET_IRQ_INFO, &info);
  if (!asked.ok() && asked.error() == Errno{EINVAL}) {
    return line;  // This kernel, or this device, does not have the index.
  }
  if (!asked.ok()) {
    return failed("VFIO_DEVICE_GET_IRQ_INFO", asked.error());
  }
  const uint32_t count = std::min(info.count, most);
  if (count == 0 || (info.flags & VFIO_IRQ_INFO_EVENTFD) == 0) {
    return line;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const Result<int> event = kernel.CreateEvent();
    if (!event.ok()) {
      return failed("eventfd", event.error());
    }
    line.events_.emplace_back(kernel, event.value());
  }
  for (;;) {
    const Result<int> set = line.TurnOn();
    if (!set.ok()) {
      return failed("VFIO_DEVICE_SET_IRQS", set.error());
    }
    if (set.value() == 0) {
      break;
    }
    // So many vectors are left in the machine; none is on.
    const auto left = static_cast<size_t>(set.value());
    if (left >= line.events_.size()) {
      return failed("VFIO_DEVICE_SET_IRQS", Errno{EIO});
    }
    line.events_.resize(left);
  }
  line.on_ = true;
  return line;
}

Result<int> InterruptLine::TurnOn() {
  const auto count = static_cast<uint32_t>(events_.size());
  std::vector<std::byte> request(sizeof(vfio_irq_set) +
                                 count * sizeof(int32_t));
  vfio_irq_set head{};
  head.argsz = static_cast<uint32_t>(request.size());
  head.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  head.index = index_;
  head.count = count;
  std::memcpy(request.data(), &head, sizeof(head));
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t fd = events_[i].fd();
    std::memcpy(request.data() + sizeof(head) + i * sizeof(fd), &fd,
                sizeof(fd));
  }
  return kernel_->Control(device_fd_, VFIO_DEVICE_SET_IRQS, request.data());
}

InterruptLine::~InterruptLine() {
  if (!on_) {
    return;
  }
  vfio_irq_set off{};
  off.argsz = sizeof(off);
  off.flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
  off.index = index_;
  if (!kernel_->Control(device_fd_, VFIO_DEVICE_SET_IRQS, &off).ok()) {
    // A device that is gone has none; closing its file ends the rest.
  }
}

}  // namespace heddle::vfio
