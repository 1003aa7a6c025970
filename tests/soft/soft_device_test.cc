// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/soft_device.h"

#include <string>

#include "gtest/gtest.h"
#include "hw/sim/clock.h"
#include "tests/sim/device_test.h"
#include "tests/sim/soft_kind.h"

namespace heddle::sim {

DeviceKind TestedDevice() {
  return SoftKind();
}

namespace {

using SoftDeviceTest = DeviceTest;

TEST_F(SoftDeviceTest, HasTheNameOfItsDomain) {
  std::string message;
  const auto device = TestedDevice().open(Options(kIpA), &message);
  ASSERT_TRUE(device.ok()) << message;
  EXPECT_EQ(device.value()->name(), "soft0");
  EXPECT_EQ(device.value()->interrupt_fd(1000), -1);
}

TEST_F(SoftDeviceTest, AnIdleDeviceSleeps) {
  const auto a = Node::Open(Options(kIpA), 100);
  ASSERT_TRUE(a);
  const uint64_t cpu_before = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  SleepNs(300000000);
  const uint64_t cpu = ClockNs(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  EXPECT_LT(cpu, 60000000u) << "ns of CPU in 300 ms of idleness";
}

}  // namespace
}  // namespace heddle::sim
