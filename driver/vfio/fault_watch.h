// SPDX-License-Identifier: Apache-2.0
// Waits for what the kernel reports of a function, errors and its removal, and
// looks whether it is there.
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

// A thread of its own, `heddle-vfio`, that blocks all signals and sleeps. Once
// a second it asks: not every function that vanishes is reported.
//
// Ownership: of the interrupts and the thread, which destruction ends.
class FaultWatch {
 public:
  // `report` gets one line, on that thread, at most once for each of the three;
  // `answers`, called there, says whether the function is there.
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
  Descriptor stop_;
  std::thread thread_;
};

}  // namespace heddle::vfio
