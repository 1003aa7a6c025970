// SPDX-License-Identifier: Apache-2.0
// Waits for what the kernel reports of a function: errors, and its removal.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "driver/result.h"
#include "driver/vfio/descriptor.h"
#include "driver/vfio/interrupts.h"
#include "driver/vfio/kernel.h"

namespace heddle::vfio {

// A thread of its own, `heddle-vfio`, that blocks all signals and sleeps.
//
// Ownership: of the interrupts and the thread, which destruction ends.
class FaultWatch {
 public:
  // `report` gets one line, on that thread, at most once for each of the two.
  // Errors: those of the kernel, with the call that failed in `message`.
  static Result<std::unique_ptr<FaultWatch>> Start(
      Kernel& kernel, int device_fd,
      std::function<void(const std::string&)> report, std::string& message);

  FaultWatch(const FaultWatch&) = delete;
  FaultWatch& operator=(const FaultWatch&) = delete;
  ~FaultWatch();

 private:
  FaultWatch() = default;

  void Run();

  std::function<void(const std::string&)> report_;
  InterruptLine error_;
  InterruptLine request_;
  Descriptor stop_;
  std::thread thread_;
};

}  // namespace heddle::vfio
