// SPDX-License-Identifier: Apache-2.0
// The steps of `heddle selftest`, from the first register to messages.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "driver/control/admin_queue.h"
#include "driver/control/device_info.h"
#include "driver/device.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::tool {

class SelfLoop;

// Each step throws CommandError or returns a description of its result. A step
// depends on the preceding ones in `kSteps`.
//
// Thread safety: none. Ownership: borrows the device.
class Ladder {
 public:
  // `limit` is the time-out of each wait for the device.
  explicit Ladder(Device& device, std::chrono::milliseconds limit = kLimit)
      : device_(device), limit_(limit) {}

  std::string Identity();
  std::string Registers();
  std::string Memory();
  std::string Interrupts();
  std::string Wire();
  std::string Rings();

  struct Step {
    const char* name;
    std::string (Ladder::*run)();
  };
  static const std::array<Step, 6> kSteps;
  static constexpr std::chrono::milliseconds kLimit{10000};

 private:
  void WalkBits(uint32_t offset, uint64_t lowest);
  void Interrupt(uint8_t vector);
  void Exchange(SelfLoop& loop, uint32_t bytes, uint32_t seed);
  uint64_t Count(contract::Statistic statistic) {
    return ReadStatistic(device_, statistic);
  }

  Device& device_;
  const std::chrono::milliseconds limit_;
  DeviceInfo info_;
  std::unique_ptr<AdminQueue> admin_;
  PortInfo port_;
};

}  // namespace heddle::tool
