// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/range_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <random>

#include "tests/seed.h"

namespace heddle::semantics {
namespace {

using Set = RangeSet<4>;
using Added = Set::Added;

TEST(RangeSet, TouchingRangesBecomeOne) {
  Set set;
  EXPECT_EQ(set.Add(10, 20), Added::kNew);
  EXPECT_EQ(set.Add(30, 40), Added::kNew);
  EXPECT_EQ(set.count(), 2U);
  EXPECT_EQ(set.Add(20, 30), Added::kNew);
  EXPECT_EQ(set.count(), 1U);
  EXPECT_FALSE(set.Covers(10));
  EXPECT_EQ(set.Add(0, 10), Added::kNew);
  EXPECT_EQ(set.count(), 1U);
  EXPECT_TRUE(set.Covers(40));
  EXPECT_FALSE(set.Covers(41));
  EXPECT_EQ(set.bytes(), 40U);
}

TEST(RangeSet, BytesThatCameBeforeAreToldFromNewOnes) {
  Set set;
  EXPECT_EQ(set.Add(10, 20), Added::kNew);
  EXPECT_EQ(set.Add(10, 20), Added::kDuplicate);
  EXPECT_EQ(set.Add(12, 18), Added::kDuplicate);
  EXPECT_EQ(set.Add(15, 15), Added::kDuplicate);
  EXPECT_EQ(set.Add(5, 11), Added::kOverlap);
  EXPECT_EQ(set.Add(19, 25), Added::kOverlap);
  EXPECT_EQ(set.Add(5, 25), Added::kOverlap);
  EXPECT_EQ(set.bytes(), 10U);
}

TEST(RangeSet, FullSetRefusesARangeThatTouchesNone) {
  Set set;
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(set.Add(i * 10, i * 10 + 5), Added::kNew);
  }
  EXPECT_EQ(set.Add(100, 110), Added::kFull);
  EXPECT_EQ(set.Add(6, 9), Added::kFull);
  EXPECT_EQ(set.bytes(), 20U);
  EXPECT_EQ(set.Add(5, 10), Added::kNew);
  EXPECT_EQ(set.Add(100, 110), Added::kNew);
}

TEST(RangeSet, AgreesWithABitmapForRandomRanges) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr uint64_t kBytes = 48;
  for (uint32_t round = 0; round < 3000; ++round) {
    Set set;
    std::bitset<kBytes> model;
    for (uint32_t step = 0; step < 24; ++step) {
      const uint64_t begin = random() % kBytes;
      const uint64_t end = std::min(begin + random() % 8, kBytes);
      std::bitset<kBytes> range;
      for (uint64_t i = begin; i < end; ++i) {
        range.set(i);
      }
      const std::bitset<kBytes> both = model | range;
      size_t ranges = 0;
      for (uint64_t i = 0; i < kBytes; ++i) {
        ranges += both[i] && (i == 0 || !both[i - 1]) ? 1 : 0;
      }
      const Added expected = (range & ~model).none() ? Added::kDuplicate
                             : (range & model).any() ? Added::kOverlap
                             : ranges > 4            ? Added::kFull
                                                     : Added::kNew;
      ASSERT_EQ(set.Add(begin, end), expected)
          << "round " << round << " step " << step;
      if (expected == Added::kNew) {
        model = both;
      }
      ASSERT_EQ(set.bytes(), model.count());
      uint64_t prefix = 0;
      while (prefix < kBytes && model[prefix]) {
        ++prefix;
      }
      ASSERT_TRUE(set.Covers(prefix));
      ASSERT_FALSE(set.Covers(prefix + 1));
    }
  }
}

}  // namespace
}  // namespace heddle::semantics
