// SPDX-License-Identifier: Apache-2.0
// Waits for the kernel's reports of a function's errors and removal, and checks
// that the function is present.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "driver/result.h"
#include "driver/vfio/interrupts.h"
#include "driver/vfio/kernel.h"
#include "driver/vfio/kernel_fd.h"

namespace heddle::vfio {

// A thread of its own, `heddle-vfio`, that blocks all signals and sleeps. It
// checks once a second: the kernel does not report every function that
// vanishes.
//
// Ownership: of the interrupts and the thread, which destruction ends.
class FaultWatch {
 public:
  // `report` gets one line, on that thread, at most once for each of the three;
  // `answers`, called there, returns whether the function is present.
  // Errors: those of the kernel, with the call that failed in `message`.
  static Result<std::unique_ptr<FaultWatch>> Start(
      Kernel& kernel, int device_fd,
      std::function<void(const std::string&)> report,
      std::function<bool()> answers, std::string& message);

  FaultWatch(const FaultWatch&) = delete;
  FaultWatch& operator=(const FaultWatch&) = delete;
  ~FaultWatch();

 private:
  FaultWatch() = default;

  void Run();

  std::function<void(const std::string&)> report_;
  std::function<bool()> answers_;
  InterruptLine error_;
  InterruptLine request_;
  KernelFd stop_;
  std::thread thread_;
};

}  // namespace heddle::vfio
