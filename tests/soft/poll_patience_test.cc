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

}  // namespace
}  // namespace heddle::soft
