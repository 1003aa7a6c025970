// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <vector>

#include "Vheddle_group_pick.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/queue/rng.h"

namespace heddle::test {
namespace {

constexpr uint32_t kSources = 32;  // In groups of four.

// A request is withdrawn by a drop, or when what was taken is over.
TEST(GroupPickTest, FairToRequestsThatStayThoughOthersComeAndGo) {
  sim::model::ClockedModel<Vheddle_group_pick> dut;
  Rng rng(Seed(1));
  std::array<uint32_t, kSources> waited{};
  uint32_t valid = 0;
  uint32_t staying = 0;  // Those that are not dropped.
  uint32_t taken = kSources;
  uint32_t takes = 0;
  for (int cycle = 0; cycle < 100000; ++cycle) {
    if (rng() % 4 == 0) valid |= 1u << rng() % kSources;
    if (rng() % 8 == 0) {
      staying |= 1u << rng() % kSources;
      valid |= staying;
    }
    dut->valid_i = valid;
    // A request that was taken falls before the next is taken.
    uint32_t drop = kSources;
    if (taken != kSources) {
      if (rng() % 3 == 0) drop = taken;
    } else if (rng() % 8 == 0) {
      const uint32_t source = rng() % kSources;
      if ((valid & ~staying) >> source & 1) drop = source;
    }
    dut->drop_i = drop != kSources;
    dut->drop_idx_i = static_cast<uint8_t>(drop % kSources);
    dut->take_i = 0;
    dut.Settle();
    if (dut->valid_o && taken == kSources) {
      const uint32_t winner = dut->idx_o;
      ASSERT_TRUE(valid >> winner & 1) << "no request";
      if (winner != drop && rng() % 2 == 0) {
        dut->take_i = 1;
        taken = winner;
        ++takes;
        for (uint32_t s = 0; s < kSources; ++s) {
          const bool waiting = s != winner && (staying >> s & 1);
          waited[s] = waiting ? waited[s] + 1 : 0;
          ASSERT_LT(waited[s], kSources) << "source " << s;
        }
      }
    }
    dut.Tick();
    if (drop != kSources) {
      valid &= ~(1u << drop);
      staying &= ~(1u << drop);
      if (drop == taken) taken = kSources;
    }
  }
  EXPECT_GT(takes, 5000u);
}

TEST(GroupPickTest, OffersARequestAfterTwoCycles) {
  sim::model::ClockedModel<Vheddle_group_pick> dut;
  dut->valid_i = 1u << 21;
  dut.Tick();
  EXPECT_EQ(dut->valid_o, 0);
  dut.Tick();
  dut.Settle();
  EXPECT_EQ(dut->valid_o, 1);
  EXPECT_EQ(dut->idx_o, 21);
}

}  // namespace
}  // namespace heddle::test
