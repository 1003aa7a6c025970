// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <deque>
#include <iostream>
#include <vector>

#include "Vheddle_store.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle::test {
namespace {

constexpr size_t kDepth = 16;

// A model that differs in nothing but the two cycles of latency.
TEST(StoreTest, CommittedWordsLeaveOrderedAndRolledBackOnesNever) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    std::cout << "seed " << seed << "\n";
    sim::model::ClockedModel<Vheddle_store> dut;
    sim::base::Random rng(seed);
    std::deque<uint32_t> committed;
    std::vector<uint32_t> pending;
    uint64_t passed = 0, forgotten = 0, refused = 0;
    uint32_t unoffered = 0;  // Cycles since a word should have been offered.
    for (int cycle = 0; cycle < 60000; ++cycle) {
      const double fill = cycle / 500 % 2 ? 0.8 : 0.3;
      const uint32_t end = rng.Below(10);
      dut->write_i = rng.Chance(fill);
      dut->data_i = static_cast<uint32_t>(rng.Next());
      dut->commit_i = end == 0;
      dut->rollback_i = end == 1;
      dut->ready_i = rng.Chance(1 - fill);
      dut.Settle();
      ASSERT_EQ(dut->full_o, committed.size() + pending.size() == kDepth);
      ASSERT_EQ(dut->empty_o, committed.empty() && pending.empty());
      if (dut->valid_o) {
        ASSERT_FALSE(committed.empty());
        ASSERT_EQ(dut->data_o, committed.front());
      }
      unoffered = dut->valid_o || committed.empty() ? 0 : unoffered + 1;
      ASSERT_LE(unoffered, 1u);
      const bool full = dut->full_o;
      if (dut->valid_o && dut->ready_i) {
        committed.pop_front();
        ++passed;
      }
      // The end of a group acts before a write of the same cycle.
      if (dut->commit_i) {
        committed.insert(committed.end(), pending.begin(), pending.end());
        pending.clear();
      }
      if (dut->rollback_i) {
        forgotten += pending.size();
        pending.clear();
      }
      if (dut->write_i) {
        if (full) {
          ++refused;
        } else {
          pending.push_back(dut->data_i);
        }
      }
      dut.Tick();
    }
    EXPECT_GT(passed, 1000u);
    EXPECT_GT(forgotten, 1000u);
    EXPECT_GT(refused, 100u);
  }
}

}  // namespace
}  // namespace heddle::test
