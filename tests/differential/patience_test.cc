// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/patience.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
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

// Two that want one CPU wait for each other.
TEST(PatienceTest, ReadsWhatTheKernelTells) {
  EXPECT_EQ(WaitedForCpu(-1).count(), 0) << "nobody";
  if (access("/proc/self/schedstat", R_OK) != 0) {
    GTEST_SKIP() << "this kernel has no /proc/PID/schedstat";
  }
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int cpu = sched_getcpu();
  ASSERT_GE(cpu, 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(cpu), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const pid_t own = getpid();
  const pid_t rival = fork();
  if (rival == 0) {
    while (getppid() == own) {
    }
    _exit(0);
  }
  ASSERT_GT(rival, 0);
  const auto had = WaitedForCpu(own);
  const auto deadline = Patience::Clock::now() + seconds(200);
  while (WaitedForCpu(own) == had && Patience::Clock::now() < deadline) {
  }
  EXPECT_GT(WaitedForCpu(own), had);
  EXPECT_EQ(kill(rival, SIGKILL), 0);
  EXPECT_EQ(waitpid(rival, nullptr, 0), rival);
  EXPECT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace heddle::differential
