// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/differential/generator.h"

namespace heddle::differential {
namespace {

bool Has(const Stream& stream, Verb verb) {
  return std::any_of(stream.operations.begin(), stream.operations.end(),
                     [verb](const Operation& o) { return o.verb == verb; });
}

Stream Long() {
  return Generate(1, {.operations = 300, .faults = {.loss = 0.1}});
}

TEST(ShrinkTest, LeavesWhatIsNeededToFail) {
  const auto fails = [](const Stream& stream) {
    return Has(stream, Verb::kCancel) && Has(stream, Verb::kInjectData);
  };
  ASSERT_TRUE(fails(Long()));
  const Stream small = Shrink(Long(), fails, 1000);
  ASSERT_EQ(small.operations.size(), 3U);
  EXPECT_TRUE(fails(small));
  EXPECT_EQ(small.operations.back().verb, Verb::kSync);
  EXPECT_EQ(small.setup.faults, WireFaults{});
}

TEST(ShrinkTest, WhatNeedsBadWiresKeepsThem) {
  const auto fails = [](const Stream& stream) {
    return stream.setup.faults.loss > 0;
  };
  const Stream small = Shrink(Long(), fails, 1000);
  EXPECT_EQ(small.operations.size(), 1U);
  EXPECT_EQ(small.setup.faults, Long().setup.faults);
}

TEST(ShrinkTest, AFailureThatDoesNotComeAgainStaysWhole) {
  uint32_t runs = 0;
  const Stream same = Shrink(
      Long(),
      [&runs](const Stream&) {
        ++runs;
        return false;
      },
      50);
  EXPECT_EQ(same, Long());
  EXPECT_LE(runs, 50U);
}

}  // namespace
}  // namespace heddle::differential
