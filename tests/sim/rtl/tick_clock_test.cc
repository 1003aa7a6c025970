// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/rtl/tick_clock.h"

#include "gtest/gtest.h"

namespace heddle::sim::rtl {
namespace {

constexpr uint64_t kTick = 100;
constexpr uint64_t kNever = UINT64_MAX;

TEST(TickClockTest, OwesATickPerPeriodAndLosesNoFraction) {
  TickClock clock(kTick, 1000);
  for (uint64_t now = 1000; now <= 1000 + 10 * kTick; now += 30) {
    clock.Advance(now, TickClock::kMaxStep);
  }
  clock.Advance(1000 + 10 * kTick, TickClock::kMaxStep);
  EXPECT_EQ(clock.owed(), 10u);
  clock.Take();
  EXPECT_EQ(clock.owed(), 9u);
}

TEST(TickClockTest, TimeBeyondTheLimitDoesNotCount) {
  TickClock clock(kTick, 0);
  clock.Advance(1000000 * kTick, 3);
  EXPECT_EQ(clock.owed(), 3u);
  clock.Advance(1000001 * kTick, 3);
  EXPECT_EQ(clock.owed(), 4u);
  clock.Advance(1000006 * kTick, 0);
  EXPECT_EQ(clock.owed(), 4u);
}

TEST(TickClockTest, LateTicksCountForUpToHalfOfATimer) {
  TickClock clock(kTick, 0);
  clock.Advance(101 * kTick, kNever);
  EXPECT_EQ(clock.Waited(200), 101u) << "began before";
  clock.BeginWork();
  EXPECT_EQ(clock.owed(), 0u);
  EXPECT_EQ(clock.Waited(200), 0u) << "may have just begun";
  EXPECT_EQ(clock.Waited(202), 101u);
  clock.Advance(104 * kTick, kNever);
  EXPECT_EQ(clock.owed(), 3u);
  EXPECT_EQ(clock.Waited(200), 3u);
  EXPECT_EQ(clock.Waited(202), 104u);
}

TEST(TickClockTest, TimerEndsAfterItsTicksThoughTheyWereLate) {
  constexpr uint64_t kRetry = 200;
  TickClock clock(kTick, 0);
  clock.Advance(60 * kTick, kNever);
  clock.BeginWork();
  clock.Advance(199 * kTick, kNever);
  EXPECT_FALSE(clock.Due(kRetry));
  clock.Advance(200 * kTick, kNever);
  uint64_t deadline = kRetry;
  for (; clock.Due(deadline) && deadline > 0; --deadline) {
    clock.TakeWaited(deadline);
  }
  EXPECT_EQ(deadline, 0u);
}

TEST(TickClockTest, ManyLateTicksAreMadeUpForWithoutShortTimersOnly) {
  constexpr uint64_t kLong = 100000;
  TickClock clock(kTick, 0);
  clock.Advance(kLong * kTick, kNever);
  clock.BeginWork();
  EXPECT_FALSE(clock.Due(TickClock::kLongTicks)) << "a retransmission";
  uint64_t deadline = kLong + 1;
  while (clock.Due(deadline)) {
    clock.TakeWaited(deadline--);
  }
  EXPECT_EQ(deadline, TickClock::kLongTicks);
}

TEST(TickClockTest, NothingIsOwedWithoutTimers) {
  TickClock clock(kTick, 0);
  clock.Advance(5 * kTick, kNever);
  clock.BeginWork();
  clock.Advance(6 * kTick, kNever);
  clock.Forget();
  EXPECT_EQ(clock.Waited(kNever), 0u);
}

}  // namespace
}  // namespace heddle::sim::rtl
