// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/patience.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace heddle::differential {
namespace {

using std::chrono::seconds;
constexpr Patience::Clock::time_point kStart{seconds(1000)};

TEST(PatienceTest, EndsWhenNothingHappenedForTheLimit) {
  Patience patience(seconds(20), kStart);
  EXPECT_FALSE(patience.IsOver(kStart + seconds(20), {}));
  EXPECT_TRUE(patience.IsOver(kStart + seconds(21), {}));
  patience.Restart(kStart + seconds(21));
  EXPECT_EQ(patience.since(), kStart + seconds(21));
  EXPECT_FALSE(patience.IsOver(kStart + seconds(41), {}));
  EXPECT_TRUE(patience.IsOver(kStart + seconds(42), {}));
}

TEST(PatienceTest, TimeWithoutACpuDoesNotCount) {
  Patience patience(seconds(20), kStart);
  EXPECT_FALSE(patience.IsOver(kStart, {seconds(100), seconds(5)}));
  EXPECT_FALSE(
      patience.IsOver(kStart + seconds(30), {seconds(103), seconds(15)}));
  EXPECT_TRUE(
      patience.IsOver(kStart + seconds(31), {seconds(103), seconds(15)}));
  patience.Restart(kStart + seconds(31));
  EXPECT_FALSE(
      patience.IsOver(kStart + seconds(40), {seconds(103), seconds(15)}));
  EXPECT_TRUE(
      patience.IsOver(kStart + seconds(52), {seconds(103), seconds(15)}))
      << "waits before the last sign are none of this silence";
}

TEST(PatienceTest, ProcessThatFollowsAnotherTakesNothingAway) {
  Patience patience(seconds(20), kStart);
  EXPECT_FALSE(patience.IsOver(kStart, {seconds(100), seconds(5)}));
  EXPECT_FALSE(patience.IsOver(kStart + seconds(20), {seconds(0), seconds(5)}));
}

TEST(PatienceTest, ReadsWhatTheKernelTells) {
  EXPECT_GE(WaitedForCpu(getpid()).count(), 0);
  EXPECT_EQ(WaitedForCpu(-1).count(), 0) << "nobody";
}

}  // namespace
}  // namespace heddle::differential
