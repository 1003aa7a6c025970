// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/poll_patience.h"

#include <gtest/gtest.h>

namespace heddle::soft {
namespace {

// A wait that ends in a sleep, and the work that wakes it.
void Sleep(PollPatience* patience) {
  patience->NoteSleep();
  patience->NoteWork();
}

// Leaves `patience` where it spins least.
void Discourage(PollPatience* patience) {
  for (uint32_t i = 0; i < PollPatience::kSleepsPerTry / 2; ++i) {
    Sleep(patience);
  }
}

TEST(PollPatienceTest, SpinsLessWhenItHadToSleep) {
  PollPatience patience;
  EXPECT_EQ(patience.spin_ns(), PollPatience::kMostNs);
  Sleep(&patience);
  EXPECT_EQ(patience.spin_ns(), PollPatience::kMostNs / 2);
  Discourage(&patience);
  EXPECT_EQ(patience.spin_ns(), PollPatience::kLeastNs);
}

TEST(PollPatienceTest, SpinsMoreWhenWorkCameMeanwhile) {
  PollPatience patience;
  Discourage(&patience);
  patience.NoteWork();
  EXPECT_EQ(patience.spin_ns(), 2 * PollPatience::kLeastNs);
  for (int i = 0; i < 10; ++i) {
    patience.NoteWork();
  }
  EXPECT_EQ(patience.spin_ns(), PollPatience::kMostNs);
}

TEST(PollPatienceTest, LearnsOnceFromAWaitOfSeveralSleeps) {
  PollPatience patience;
  for (int i = 0; i < 5; ++i) {
    patience.NoteSleep();
  }
  EXPECT_EQ(patience.spin_ns(), PollPatience::kMostNs / 2);
}

TEST(PollPatienceTest, TriesTheWholeTimeOnceInAWhile) {
  PollPatience patience;
  uint32_t tries = 0;
  for (uint32_t i = 0; i < 10 * PollPatience::kSleepsPerTry; ++i) {
    Sleep(&patience);
    tries += patience.spin_ns() == PollPatience::kMostNs ? 1 : 0;
  }
  EXPECT_EQ(tries, 10U);
}

TEST(PollPatienceTest, AWaitYieldsOnceAndCountsAsASleep) {
  PollPatience patience;
  ASSERT_TRUE(patience.MayYield());
  patience.NoteYield(PollPatience::kLongYieldNs - 1);
  EXPECT_EQ(patience.spin_ns(), PollPatience::kMostNs / 2);
  EXPECT_FALSE(patience.MayYield()) << "the rest of this wait sleeps";
  patience.NoteWork();
  EXPECT_TRUE(patience.MayYield());
  EXPECT_EQ(patience.spin_ns(), PollPatience::kMostNs / 2);
}

TEST(PollPatienceTest, EachLongYieldStopsYieldsForTwiceAsManyWaits) {
  PollPatience patience;
  const auto pause_after = [&](uint64_t yield_ns) {
    patience.NoteYield(yield_ns);
    patience.NoteWork();
    uint32_t waits = 0;
    for (; !patience.MayYield(); ++waits) {
      Sleep(&patience);
    }
    return waits;
  };
  constexpr uint64_t kLong = PollPatience::kLongYieldNs;
  for (uint32_t pause = PollPatience::kFirstPause;
       pause <= PollPatience::kMaxPause; pause *= 2) {
    EXPECT_EQ(pause_after(kLong), pause);
  }
  EXPECT_EQ(pause_after(kLong), PollPatience::kMaxPause);
  EXPECT_EQ(pause_after(kLong - 1), 0U);
  EXPECT_EQ(pause_after(kLong), PollPatience::kFirstPause);
}

}  // namespace
}  // namespace heddle::soft
