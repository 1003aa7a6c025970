// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/stream_lines.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "gtest/gtest.h"

namespace heddle::sim::base {
namespace {

constexpr uint8_t kBefore = 0xee;
constexpr size_t kMost = 5 * kLineBytes;

// From each place in a line, as callers have theirs anywhere.
TEST(StreamLinesTest, BodiesOfEachLengthFillTheirLinesAndNoOther) {
  std::array<uint8_t, 16> head;
  std::iota(head.begin(), head.end(), 200);
  std::array<uint8_t, kMost + kLineBytes> source;
  std::iota(source.begin(), source.end(), 1);
  for (size_t bytes = 0; bytes <= kMost; ++bytes) {
    const size_t at = bytes * 7 % kLineBytes;
    SCOPED_TRACE(testing::Message() << bytes << " bytes from " << at);
    const auto body = std::span<const uint8_t>(source).subspan(at, bytes);
    alignas(kLineBytes) std::array<uint8_t, kMost + 3 * kLineBytes> memory;
    memory.fill(kBefore);
    auto expected = memory;
    const auto to = expected.begin() + kLineBytes;
    const auto end = std::ranges::copy(body, std::ranges::copy(head, to).out);
    const size_t lines = (head.size() + bytes + kLineBytes - 1) / kLineBytes;
    std::fill(end.out, to + lines * kLineBytes, 0);
    StreamLines(&memory[kLineBytes], head, body);
    EXPECT_EQ(memory, expected);
  }
}

}  // namespace
}  // namespace heddle::sim::base
