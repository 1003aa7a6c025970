// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/range_table.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/random.h"

namespace heddle::sim::base {
namespace {

TEST(RangeTableTest, EmptyAndWrappingRangesAreRefused) {
  RangeTable table;
  EXPECT_FALSE(table.Add(0x1000, 0));
  EXPECT_FALSE(table.Add(UINT64_MAX - 10, 20));
  EXPECT_EQ(table.size(), 0u);
}

TEST(RangeTableTest, OverlappingRangesAreRemovedEachOnItsOwn) {
  RangeTable table;
  ASSERT_TRUE(table.Add(100, 100));
  ASSERT_TRUE(table.Add(150, 100));
  EXPECT_TRUE(table.Covers(100, 150));
  EXPECT_FALSE(table.Remove(100, 150)) << "no such range was added";
  EXPECT_TRUE(table.Remove(100, 100));
  EXPECT_FALSE(table.Covers(149, 1));
  EXPECT_TRUE(table.Covers(150, 100));
  EXPECT_FALSE(table.Remove(100, 100)) << "it was removed already";
}

// Random ranges over a small space, against one counter per byte.
TEST(RangeTableTest, AgreesWithAByteMapOnRandomRanges) {
  constexpr uint32_t kBytes = 200;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RangeTable table;
    std::array<int, kBytes> counts{};
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    for (int step = 0; step < 200; ++step) {
      if (ranges.empty() || random.Below(2) == 0) {
        const uint32_t start = random.Below(kBytes - 1);
        const uint32_t bytes = 1 + random.Below(kBytes - start - 1);
        ASSERT_TRUE(table.Add(start, bytes));
        ranges.emplace_back(start, bytes);
      } else {
        const uint32_t which =
            random.Below(static_cast<uint32_t>(ranges.size()));
        ASSERT_TRUE(table.Remove(ranges[which].first, ranges[which].second));
        ranges.erase(ranges.begin() + which);
      }
      counts.fill(0);
      for (const auto& [start, bytes] : ranges) {
        for (uint32_t i = start; i < start + bytes; ++i) {
          ++counts[i];
        }
      }
      for (uint32_t i = 0; i < kBytes;) {
        bool mapped = false;
        const uint64_t run = table.Run(i, kBytes - i, &mapped);
        ASSERT_GT(run, 0u);
        for (uint64_t j = i; j < i + run; ++j) {
          ASSERT_EQ(mapped, counts[j] > 0) << "byte " << j;
        }
        i += static_cast<uint32_t>(run);
      }
      for (uint32_t i = 0; i < kBytes; ++i) {
        ASSERT_EQ(table.Covers(i, 1), counts[i] > 0) << "byte " << i;
      }
    }
  }
}

TEST(RangeTableTest, AroundIsMappedAndHoldsThePosition) {
  RangeTable table;
  ASSERT_TRUE(table.Add(100, 100));
  ASSERT_TRUE(table.Add(150, 100));
  for (uint64_t position = 90; position < 260; ++position) {
    SCOPED_TRACE(position);
    const RangeTable::Span span = table.Around(position);
    if (position < 100 || position >= 250) {
      EXPECT_EQ(span.start, span.end);
      continue;
    }
    EXPECT_LE(span.start, position);
    EXPECT_GT(span.end, position);
    EXPECT_TRUE(table.Covers(span.start, span.end - span.start));
  }
}

}  // namespace
}  // namespace heddle::sim::base
