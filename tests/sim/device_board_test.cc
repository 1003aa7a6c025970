// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/device_board.h"

#include "gtest/gtest.h"

namespace heddle::sim {
namespace {

uint64_t IdleNs(uint64_t pdc_idle_ns, uint64_t dead_ns) {
  DeviceOptions options;
  options.pdc_idle_ns = pdc_idle_ns;
  options.dead_ns = dead_ns;
  return DeviceBoard(options, /*slot=*/0, /*tick_ns=*/1000).pdc_idle_ns;
}

TEST(DeviceBoardTest, IdlePdcsCloseBeforeTheirTargetsForgetThem) {
  EXPECT_EQ(IdleNs(0, 5'000'000), 5'000'000U);
  EXPECT_EQ(IdleNs(3'000'000, 5'000'000), 3'000'000U);
  EXPECT_EQ(IdleNs(9'000'000, 5'000'000), 5'000'000U);
}

}  // namespace
}  // namespace heddle::sim
