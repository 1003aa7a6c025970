// SPDX-License-Identifier: Apache-2.0
#include "driver/control/device_info.h"

#include <cerrno>
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/driver/fake_device.h"

namespace heddle {
namespace {

using std::chrono::milliseconds;

class DeviceInfoTest : public ::testing::Test {
 protected:
  // 0 or the error; the text is in `message_`.
  int Open() {
    Result<DeviceInfo> info = WaitReady(device_, milliseconds(20), message_);
    if (info.ok()) {
      info_ = info.value();
      return 0;
    }
    return static_cast<int>(info.error());
  }
  bool Says(const std::string& text) const {
    return message_.find(text) != std::string::npos;
  }

  FakeDevice device_;
  DeviceInfo info_;
  std::string message_;
};

TEST_F(DeviceInfoTest, LimitsAreThoseOfTheRegisters) {
  ASSERT_EQ(Open(), 0) << message_;
  EXPECT_EQ(info_.counts.tx_contexts, 2U);
  EXPECT_EQ(info_.counts.rx_contexts, 2U);
  EXPECT_EQ(info_.counts.completion_queues, 3U);
  EXPECT_EQ(info_.interrupt_vectors, 4U);
  EXPECT_EQ(info_.messages, 512U);
  EXPECT_EQ(info_.pdcs, 64U);
  EXPECT_EQ(info_.datapath_bits, 512U);
  EXPECT_EQ(info_.payload_mtu_max_bytes, 8192U);
  EXPECT_TRUE(info_.link_up);
  EXPECT_TRUE(info_.Has(contract::kCapabilitySend | contract::kCapabilityRod));
  EXPECT_FALSE(
      info_.Has(contract::kCapabilitySend | contract::kCapabilityWrite));
}

TEST_F(DeviceInfoTest, CountsBeyondOneBankComeFromTheirOwnRegisters) {
  device_.bus.context_counts = 1000U << 16 | 300;
  device_.bus.queue_counts = 65535U << 16 | 700;
  device_.bus.region_count = 65536;
  ASSERT_EQ(Open(), 0) << message_;
  EXPECT_EQ(info_.counts.tx_contexts, 300U);
  EXPECT_EQ(info_.counts.rx_contexts, 1000U);
  EXPECT_EQ(info_.counts.completion_queues, 700U);
  EXPECT_EQ(info_.counts.counters, 65535U);
  EXPECT_EQ(info_.counts.regions, 65536U);
}

TEST_F(DeviceInfoTest, OtherHardwareIsRefused) {
  device_.magic = 0x12345678;
  EXPECT_EQ(Open(), ENODEV);
  EXPECT_TRUE(Says("fake0") && Says("0x12345678")) << message_;
}

TEST_F(DeviceInfoTest, AbsentHardwareIsRefused) {
  device_.lost = true;
  EXPECT_EQ(Open(), EIO);
  EXPECT_TRUE(Says("all ones")) << message_;
}

TEST_F(DeviceInfoTest, OtherContractMajorIsRefusedWithBothNumbers) {
  device_.bus.version = 41U << 16 | 3;
  EXPECT_EQ(Open(), EPROTO);
  EXPECT_TRUE(Says("version 41") &&
              Says("version " + std::to_string(contract::kContractMajor)))
      << message_;
}

TEST_F(DeviceInfoTest, LaterContractMinorIsAccepted) {
  constexpr uint32_t kLater = contract::kContractMinor + 1;
  device_.bus.version = contract::kContractMajor << 16 | kLater;
  ASSERT_EQ(Open(), 0);
  EXPECT_EQ(info_.contract_minor, kLater);
}

TEST_F(DeviceInfoTest, DeviceThatDoesNotBecomeReadyTimesOut) {
  device_.bus.status = 0;
  EXPECT_EQ(Open(), ETIMEDOUT);
  EXPECT_TRUE(Says("not ready")) << message_;
}

TEST_F(DeviceInfoTest, StoppedFirmwareIsNamedWithItsStatus) {
  device_.bus.status = contract::kBar0DeviceStatusFatalMask;
  device_.bus.fatal_cause = 0x00020102;
  EXPECT_EQ(Open(), EIO);
  EXPECT_TRUE(Says("0x20102;")) << message_;
}

TEST_F(DeviceInfoTest, FailureOfTheDeviceIsPassedOn) {
  device_.bus.status = 0;
  device_.failure_text = "assertion X_A";
  EXPECT_EQ(Open(), EIO);
  EXPECT_TRUE(Says("assertion X_A")) << message_;
}

TEST_F(DeviceInfoTest, StatisticsAreReadByTheirNumber) {
  EXPECT_EQ(ReadStatistic(device_, contract::Statistic::kTxFrames), 0U);
  EXPECT_EQ(ReadStatistic(device_, contract::Statistic::kDropPsn), 31U);
}

}  // namespace
}  // namespace heddle
