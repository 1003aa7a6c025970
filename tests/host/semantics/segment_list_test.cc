// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/segment_list.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/host/semantics/below.h"
#include "tests/seed.h"

namespace heddle::semantics {
namespace {

using List = SegmentList<4>;

TEST(SegmentList, BytesAcrossSegmentsComeInPieces) {
  List list;
  ASSERT_TRUE(list.Add({100, 10, 1}));
  ASSERT_TRUE(list.Add({0, 0, 2}));
  ASSERT_TRUE(list.Add({200, 5, 3}));
  ASSERT_TRUE(list.Add({300, 10, 4}));
  EXPECT_EQ(list.bytes(), 25U);
  std::vector<Segment> pieces;
  const auto visit = [&](const Segment& piece) { pieces.push_back(piece); };
  ASSERT_TRUE(list.ForEach(8, 9, visit));
  EXPECT_EQ(pieces,
            (std::vector<Segment>{{108, 2, 1}, {200, 5, 3}, {300, 2, 4}}));
  pieces.clear();
  ASSERT_TRUE(list.ForEach(10, 1, visit));
  EXPECT_EQ(pieces, (std::vector<Segment>{{200, 1, 3}}));
  pieces.clear();
  EXPECT_TRUE(list.ForEach(25, 0, visit));
  EXPECT_FALSE(list.ForEach(25, 1, visit));
  EXPECT_FALSE(list.ForEach(26, 0, visit));
  EXPECT_FALSE(list.ForEach(1, ~uint64_t{0}, visit));
  EXPECT_TRUE(pieces.empty());
}

TEST(SegmentList, TooManyTooLongAndWrappingOnesAreRefused) {
  List list;
  EXPECT_FALSE(list.Add({~uint64_t{0} - 1, 3, 0}));
  EXPECT_FALSE(list.Add({0, uint64_t{contract::kMaxMessageBytes} + 1, 0}));
  EXPECT_TRUE(list.Add({0, contract::kMaxMessageBytes, 0}));
  EXPECT_FALSE(list.Add({0, 1, 0}));
  for (int i = 1; i < 4; ++i) {
    EXPECT_TRUE(list.Add({0, 0, 0}));
  }
  EXPECT_FALSE(list.Add({0, 0, 0}));
  EXPECT_EQ(list.count(), 4U);
}

TEST(SegmentList, AgreesWithAByteByByteWalk) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (uint32_t round = 0; round < 5000; ++round) {
    List list;
    std::vector<uint64_t> addresses;  // Of each byte of the message.
    for (uint32_t i = 0; i < 4; ++i) {
      const uint64_t base = 1000 * (i + 1);
      const uint32_t length = Below(random, 4);
      ASSERT_TRUE(list.Add({base, length, 0}));
      for (uint32_t byte = 0; byte < length; ++byte) {
        addresses.push_back(base + byte);
      }
    }
    const uint32_t offset = Below(random, 14);
    const uint32_t length = Below(random, 14);
    std::vector<uint64_t> walked;
    const bool inside = list.ForEach(offset, length, [&](const Segment& piece) {
      EXPECT_NE(piece.length, 0U);
      for (uint64_t byte = 0; byte < piece.length; ++byte) {
        walked.push_back(piece.address + byte);
      }
    });
    ASSERT_EQ(inside, offset + length <= addresses.size());
    std::vector<uint64_t> expected;
    for (uint32_t i = offset; inside && i < offset + length; ++i) {
      expected.push_back(addresses[i]);
    }
    ASSERT_EQ(walked, expected);
  }
}

}  // namespace
}  // namespace heddle::semantics
