// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/nic_function.h"

#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/driver/fake_device.h"
#include "tests/sim/vfio_user/bytes.h"
#include "tests/sim/vfio_user/memory_file.h"

namespace heddle::sim::vfio_user {
namespace {

constexpr uint64_t kIova = 0x10000;
constexpr uint64_t kBytes = 4096;

// A function on fake devices, and what these reach of its clients' memory.
class NicFunctionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = NicFunction::Open(
        [this](GuestDma& memory, std::string*) { return OpenFake(memory); }, {},
        &message_);
    ASSERT_TRUE(opened.ok());
    function_ = std::move(opened.value());
  }

  Result<FunctionDevice> OpenFake(GuestDma& memory) {
    memory_ = &memory;
    if (refused_) {
      return Errno{ENOMEM};
    }
    auto device = std::make_unique<FakeDevice>();
    device->bus.context_counts = counts_;
    device_ = device.get();
    ++opened_;
    return FunctionDevice{
        .device = std::move(device),
        .exclusively = [](const std::function<void()>& work) { work(); }};
  }

  void Attach() {
    ASSERT_TRUE(
        function_->MapDma(kIova, kBytes, file_.Copy(), 0, /*writable=*/true)
            .ok());
    TurnOn();
  }
  void TurnOn() {
    ASSERT_TRUE(function_->WriteRegion(
        VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND,
        Bytes(uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER})));
  }
  bool DeviceReachesMemory() {
    return memory_->Write(kIova, std::vector<uint8_t>(8));
  }

  const MemoryFile file_{kBytes};
  std::string message_;
  uint32_t counts_ = 0;
  bool refused_ = false;
  int opened_ = 0;
  FakeDevice* device_ = nullptr;
  GuestDma* memory_ = nullptr;
  std::unique_ptr<NicFunction> function_;
};

TEST_F(NicFunctionTest, Bar2HasTheBanksThatItsDeviceNeeds) {
  EXPECT_EQ(function_->region_bytes(VFIO_PCI_BAR2_REGION_INDEX),
            contract::kBankBytes);
  counts_ = 900U << 16 | 100;
  SetUp();
  EXPECT_EQ(function_->region_bytes(VFIO_PCI_BAR2_REGION_INDEX),
            16 * uint64_t{contract::kBankBytes});
}

TEST_F(NicFunctionTest, DeviceServesOneClientAfterTheOther) {
  for (int i = 0; i < 2; ++i) {
    Attach();
    EXPECT_TRUE(DeviceReachesMemory());
    function_->Detach();
    EXPECT_FALSE(DeviceReachesMemory());
  }
  EXPECT_EQ(opened_, 1);
}

// What its client made is still on it.
TEST_F(NicFunctionTest, DeviceThatDoesNotComeBackIsNotTheNextClients) {
  Attach();
  device_->dead = true;
  function_->Detach();
  EXPECT_EQ(opened_, 2);
  Attach();
  EXPECT_TRUE(DeviceReachesMemory());
}

TEST_F(NicFunctionTest, DeviceThatCannotBeReplacedReachesNoMemory) {
  Attach();
  device_->dead = true;
  refused_ = true;
  function_->Detach();
  Attach();
  EXPECT_FALSE(DeviceReachesMemory());
  refused_ = false;
  function_->Detach();
  Attach();
  EXPECT_TRUE(DeviceReachesMemory());
}

TEST_F(NicFunctionTest, ResetThatFailsIsToldAndMemoryWaitsForOneThatWorks) {
  Attach();
  device_->dead = true;
  EXPECT_FALSE(function_->Reset().ok());
  TurnOn();
  EXPECT_FALSE(DeviceReachesMemory());
  device_->dead = false;
  ASSERT_TRUE(function_->Reset().ok());
  EXPECT_FALSE(DeviceReachesMemory()) << "not a bus master";
  TurnOn();
  EXPECT_TRUE(DeviceReachesMemory());
}

TEST_F(NicFunctionTest, FunctionLevelResetThatFailsIsToldToo) {
  constexpr uint32_t kControl = pci::ConfigSpace::kExpress + PCI_EXP_DEVCTL;
  const std::vector<std::byte> reset = {std::byte{0},
                                        std::byte{PCI_EXP_DEVCTL_BCR_FLR >> 8}};
  EXPECT_TRUE(
      function_->WriteRegion(VFIO_PCI_CONFIG_REGION_INDEX, kControl, reset));
  device_->dead = true;
  EXPECT_FALSE(
      function_->WriteRegion(VFIO_PCI_CONFIG_REGION_INDEX, kControl, reset));
}

}  // namespace
}  // namespace heddle::sim::vfio_user
