// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <iostream>
#include <optional>

#include "Vheddle_ages.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle::test {
namespace {

// As in CMakeLists.txt: the counter of ticks wraps some 600 times in the test.
constexpr uint32_t kEntries = 16;
constexpr uint32_t kWrap = 256;

TEST(AgesTest, AnEntryIsYoungOnceHoweverOftenTheTicksWrap) {
  constexpr uint64_t kSeed = 1;
  std::cout << "seed " << kSeed << "\n";
  sim::base::Random rng(kSeed);
  sim::model::ClockedModel<Vheddle_ages> dut;
  for (uint32_t i = 0; i < kEntries; ++i) dut.Tick();
  ASSERT_TRUE(dut->ready_o);

  uint64_t now = 0;
  std::array<std::optional<uint64_t>, kEntries> marked{};
  std::array<uint32_t, 2> seen{};
  uint32_t past_wrap = 0;
  bool held = false;
  for (int cycle = 0; cycle < 2'500'000; ++cycle) {
    // Time stands often: an age equals the span in many looks. Marks are rare
    // enough for entries to grow old.
    const uint32_t span = cycle / 500'000 == 3 ? 0 : 40;
    const bool get = cycle % 2 == 0 && rng.Chance(0.9);
    const uint32_t got = rng.Below(kEntries);
    const bool mark = rng.Chance(0.001);
    const uint32_t idx = rng.Chance(0.5) ? got : rng.Below(kEntries);
    dut->span_i = static_cast<uint8_t>(span);
    dut->get_i = get;
    dut->get_idx_i = static_cast<uint8_t>(got);
    dut->mark_i = mark;
    dut->mark_idx_i = static_cast<uint8_t>(idx);
    dut->now_i = static_cast<uint8_t>(now % kWrap);
    if (mark) marked[idx] = now;
    dut.Tick();
    now += rng.Chance(1.0 / 16);
    dut->now_i = static_cast<uint8_t>(now % kWrap);
    dut->mark_i = 0;
    dut.Settle();
    if (get) {
      held = marked[got] && now - *marked[got] < span;
      past_wrap += marked[got] && now - *marked[got] >= kWrap;
      ++seen[held];
    }
    ASSERT_EQ(dut->young_o, held)
        << "entry " << got << ", cycle " << cycle << ", tick " << now;
  }
  EXPECT_GT(seen[0], 10000u);
  EXPECT_GT(seen[1], 10000u);
  EXPECT_GT(past_wrap, 10000u);
}

}  // namespace
}  // namespace heddle::test
