// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/tick_clock.h"

#include "gtest/gtest.h"

namespace heddle::sim {
namespace {

constexpr uint64_t kTick = 100;

TEST(TickClockTest, OwesATickPerPeriodAndLosesNoFraction) {
  TickClock clock(kTick, 1000);
  for (uint64_t now = 1000; now <= 1000 + 10 * kTick; now += 30) {
    clock.Advance(now, false);
  }
  clock.Advance(1000 + 10 * kTick, false);
  EXPECT_EQ(clock.owed(), 10u);
  clock.Take();
  EXPECT_EQ(clock.owed(), 9u);
}

TEST(TickClockTest, StopOfTheProcessCountsAsAShortWhileOnly) {
  TickClock clock(kTick, 0);
  clock.Advance(1000000 * kTick, false);
  EXPECT_EQ(clock.owed(), TickClock::kMaxStep);
  clock.Advance(1000001 * kTick, false);
  EXPECT_EQ(clock.owed(), TickClock::kMaxStep + 1);
}

TEST(TickClockTest, TimeOnHoldDoesNotCount) {
  TickClock clock(kTick, 0);
  clock.Advance(5 * kTick, true);
  EXPECT_EQ(clock.owed(), 0u);
  clock.Advance(6 * kTick, false);
  EXPECT_EQ(clock.owed(), 1u);
}

}  // namespace
}  // namespace heddle::sim
