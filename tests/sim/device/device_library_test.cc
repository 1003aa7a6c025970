// SPDX-License-Identifier: Apache-2.0
// The C entry points of the library of either kind, compiled in, so that they
// are called without the dynamic loader.
#include "hw/sim/device/device_library.h"

#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/sim/device/device_test.h"

extern "C" HeddleSimOpen heddle_sim_open;
extern "C" HeddleSimIdentity heddle_sim_identity;

namespace heddle::sim::device {
namespace {

class DeviceLibraryTest : public DeviceTest {
 protected:
  std::unique_ptr<Device> Open(const char* kind, uint32_t device_abi,
                               uint64_t contract_hash) {
    const HeddleSimOption option{.name = "wire", .value = name_.c_str()};
    return std::unique_ptr<Device>(
        heddle_sim_open(kind, device_abi, contract_hash, &option, 1, &error_));
  }
  bool Says(const std::string& text) const {
    return std::string(error_.message).find(text) != std::string::npos;
  }

  const char* const kind_ = TestedDevice().name;
  HeddleSimError error_{};
};

TEST_F(DeviceLibraryTest, OtherVersionsAreRefusedWithBothNumbers) {
  EXPECT_EQ(Open(kind_, kDeviceAbi + 1, contract::kContractHash), nullptr);
  EXPECT_EQ(error_.error, EPROTO);
  EXPECT_TRUE(Says("ABI " + std::to_string(kDeviceAbi) + ", the driver " +
                   std::to_string(kDeviceAbi + 1)))
      << error_.message;
  EXPECT_EQ(Open(kind_, kDeviceAbi, contract::kContractHash ^ 1), nullptr);
  EXPECT_EQ(error_.error, EPROTO);
  uint64_t word = 0;
  EXPECT_EQ(heddle_sim_identity(kind_, kDeviceAbi + 1, contract::kContractHash,
                                &word, 1, &error_),
            EPROTO);
}

TEST_F(DeviceLibraryTest, KindThatItDoesNotHaveIsRefused) {
  const std::string other = std::string(kind_) == "soft" ? "rtl" : "soft";
  EXPECT_EQ(Open(other.c_str(), kDeviceAbi, contract::kContractHash), nullptr);
  EXPECT_EQ(error_.error, ENOTSUP);
  EXPECT_TRUE(Says("no device of kind " + other)) << error_.message;
  uint64_t word = 0;
  EXPECT_EQ(heddle_sim_identity(other.c_str(), kDeviceAbi,
                                contract::kContractHash, &word, 1, &error_),
            ENOTSUP);
}

TEST_F(DeviceLibraryTest, SettingThatIsRefusedIsNamed) {
  const HeddleSimOption option{.name = "loss", .value = "2"};
  EXPECT_EQ(heddle_sim_open(kind_, kDeviceAbi, contract::kContractHash, &option,
                            1, &error_),
            nullptr);
  EXPECT_EQ(error_.error, EINVAL);
  EXPECT_TRUE(Says("loss=2")) << error_.message;
}

TEST_F(DeviceLibraryTest, IdentityIsThatOfTheDevice) {
  // Registers that do not change: up to the limits, and the counts.
  std::array<uint64_t, 8> known{};
  ASSERT_EQ(heddle_sim_identity(kind_, kDeviceAbi, contract::kContractHash,
                                known.data(), known.size(), &error_),
            0)
      << error_.message;
  const auto device = Open(kind_, kDeviceAbi, contract::kContractHash);
  ASSERT_NE(device, nullptr) << error_.message;
  EXPECT_EQ(device->name(), TestedDevice().domain);
  EXPECT_EQ(device->ReadRegister32(contract::kBar0MagicOffset),
            contract::kBar0MagicReset);
  EXPECT_EQ(device->interrupt_fd(1000), -1);
  for (const uint32_t word : {0U, 1U, 2U, 3U, 6U, 7U}) {
    EXPECT_EQ(known[word], device->ReadRegister64(word * 8)) << word;
  }
}

}  // namespace
}  // namespace heddle::sim::device
