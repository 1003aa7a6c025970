// SPDX-License-Identifier: Apache-2.0
#include "tools/heddle/ladder.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "driver/device.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/soft_device.h"
#include "tools/heddle/command.h"

namespace heddle::tool {
namespace {

// What of a device does not work.
enum class Fault : uint8_t {
  kNone,
  kMagic,       // Identity.
  kStuckBit,    // Bit 40 of the command ring's address.
  kSharedBit,   // Both ring registers are one.
  kConstant,    // A limit can be written.
  kNoMapping,   // Host memory cannot be mapped.
  kVector,      // Vector 3 goes nowhere.
  kNoDoorbell,  // Receive buffers are never seen.
};

// A device behind a fault.
class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::unique_ptr<Device> device, Fault fault)
      : device_(std::move(device)), fault_(fault), dead_(eventfd(0, 0)) {}
  ~FaultyDevice() override { close(dead_); }

  const std::string& name() const override { return device_->name(); }
  uint32_t ReadRegister32(uint32_t offset) override {
    if (fault_ == Fault::kMagic && offset == contract::kBar0MagicOffset) {
      return 0;
    }
    if (fault_ == Fault::kConstant && offset == contract::kBar0DatapathOffset &&
        written_ != 0) {
      return written_;
    }
    return device_->ReadRegister32(offset);
  }
  uint64_t ReadRegister64(uint32_t offset) override {
    if (fault_ == Fault::kSharedBit &&
        offset == contract::kBar0AdminAnswerBaseOffset) {
      return device_->ReadRegister64(offset) | 1u;
    }
    return device_->ReadRegister64(offset);
  }
  void WriteRegister32(uint32_t offset, uint32_t value) override {
    if (offset == contract::kBar0DatapathOffset) {
      written_ = value;
    }
    device_->WriteRegister32(offset, value);
  }
  void WriteRegister64(uint32_t offset, uint64_t value) override {
    constexpr uint64_t kStuck = uint64_t{1} << 40;
    const bool stuck = fault_ == Fault::kStuckBit &&
                       offset == contract::kBar0AdminCommandBaseOffset;
    device_->WriteRegister64(offset, stuck ? value & ~kStuck : value);
  }
  Doorbell doorbell(uint32_t bar2_offset) override {
    Doorbell doorbell = device_->doorbell(bar2_offset);
    if (fault_ == Fault::kNoDoorbell) {
      doorbell.notify = [](void* /*cookie*/, uint32_t /*offset*/,
                           uint64_t /*value*/) {};
    }
    return doorbell;
  }
  ProgressHook progress_hook() override { return device_->progress_hook(); }
  Result<Iova> Map(void* address, size_t bytes) override {
    if (fault_ == Fault::kNoMapping) {
      return Errno{ENOMEM};
    }
    return device_->Map(address, bytes);
  }
  void Unmap(Iova iova, size_t bytes) override { device_->Unmap(iova, bytes); }
  int interrupt_fd(uint32_t vector) override {
    return fault_ == Fault::kVector && vector == 3
               ? dead_
               : device_->interrupt_fd(vector);
  }
  Result<bool> Reset() override { return device_->Reset(); }
  bool failed() const override { return device_->failed(); }
  std::string failure() const override { return device_->failure(); }
  void WatchFailure(FailureHook hook) override { device_->WatchFailure(hook); }

 private:
  std::unique_ptr<Device> device_;
  const Fault fault_;
  uint32_t written_ = 0;
  const int dead_;
};

struct Outcome {
  std::string step;  // That failed; empty: none.
  std::string says;
};

Outcome Climb(Fault fault) {
  sim::device::DeviceOptions options;
  options.wire.name = "ladder-" + std::to_string(getpid());
  options.wire.ip = 0x0a000001;
  std::string message;
  auto soft = soft::SoftDevice::Open(options, &message);
  EXPECT_TRUE(soft.ok()) << message;
  FaultyDevice device(std::move(soft.value()), fault);
  // A fault that is waited for takes this long; what works never does.
  constexpr std::chrono::milliseconds kShort{2000};
  const bool waits = fault == Fault::kVector || fault == Fault::kNoDoorbell;
  Ladder ladder(device, waits ? kShort : Ladder::kLimit);
  for (const Ladder::Step& step : Ladder::kSteps) {
    try {
      EXPECT_FALSE((ladder.*step.run)().empty());
    } catch (const CommandError& error) {
      return {step.name, error.what()};
    }
  }
  return {};
}

TEST(LadderTest, DeviceThatWorksPassesEveryStep) {
  EXPECT_EQ(Climb(Fault::kNone).step, "");
}

TEST(LadderTest, EachFaultEndsAtTheStepThatLooksForIt) {
  const struct {
    Fault fault;
    const char* step;
    const char* says;
  } cases[] = {
      {Fault::kMagic, "identity", "0"},
      {Fault::kStuckBit, "registers", "where 0x10000000000 was written"},
      {Fault::kSharedBit, "registers", "changes another"},
      {Fault::kConstant, "registers", "datapath, which is constant"},
      {Fault::kNoMapping, "memory", "Cannot allocate memory"},
      {Fault::kVector, "interrupts", "vector 3 is not raised"},
  };
  for (const auto& expected : cases) {
    const Outcome outcome = Climb(expected.fault);
    EXPECT_EQ(outcome.step, expected.step) << outcome.says;
    EXPECT_NE(outcome.says.find(expected.says), std::string::npos)
        << outcome.says;
  }
}

TEST(LadderTest, MessagesThatDoNotComeAreNotWaitedForForEver) {
  const Outcome outcome = Climb(Fault::kNoDoorbell);
  EXPECT_EQ(outcome.step, "interrupts") << outcome.says;
  EXPECT_NE(outcome.says.find("2000 ms"), std::string::npos) << outcome.says;
}

}  // namespace
}  // namespace heddle::tool
