// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/faults.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace heddle::sim {
namespace {

std::vector<uint32_t> Send(const FaultOptions& options, uint32_t frames) {
  FaultyLine line(options);
  std::vector<Frame> out;
  for (uint32_t i = 0; i < frames; ++i) {
    line.Push({static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8),
               static_cast<uint8_t>(i >> 16)},
              &out);
  }
  line.Flush(&out);
  EXPECT_FALSE(line.holding());
  std::vector<uint32_t> numbers;
  for (const Frame& frame : out) {
    numbers.push_back(frame[0] | frame[1] << 8 | frame[2] << 16);
  }
  return numbers;
}

TEST(FaultsTest, NoFaultsNoChange) {
  const auto numbers = Send({}, 1000);
  ASSERT_EQ(numbers.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST(FaultsTest, SameSeedSameFaults) {
  const FaultOptions options{
      .seed = 7, .loss = 0.1, .duplicate = 0.1, .reorder = 0.1};
  FaultOptions other = options;
  other.seed = 8;
  EXPECT_EQ(Send(options, 1000), Send(options, 1000));
  EXPECT_NE(Send(options, 1000), Send(other, 1000));
}

TEST(FaultsTest, EachFaultHappensAboutAsOftenAsAsked) {
  constexpr uint32_t kFrames = 20000;
  const auto lossy =
      Send({.seed = 1, .loss = 0.1, .duplicate = 0, .reorder = 0}, kFrames);
  EXPECT_NEAR(static_cast<double>(lossy.size()), kFrames * 0.9, 200);
  const auto doubled =
      Send({.seed = 1, .loss = 0, .duplicate = 0.1, .reorder = 0}, kFrames);
  EXPECT_NEAR(static_cast<double>(doubled.size()), kFrames * 1.1, 200);
}

TEST(FaultsTest, ReorderedFramesAreOvertakenByAFewOnly) {
  constexpr uint32_t kFrames = 5000;
  const auto numbers =
      Send({.seed = 1, .loss = 0, .duplicate = 0, .reorder = 0.05}, kFrames);
  ASSERT_EQ(numbers.size(), kFrames) << "none may be lost";
  uint32_t displaced = 0;
  for (uint32_t i = 0; i < kFrames; ++i) {
    const uint32_t distance = numbers[i] > i ? numbers[i] - i : i - numbers[i];
    EXPECT_LE(distance, FaultInjector::kMaxOvertaking + 1);
    displaced += numbers[i] < i && distance > 0;
  }
  EXPECT_GT(displaced, kFrames / 50);
}

}  // namespace
}  // namespace heddle::sim
