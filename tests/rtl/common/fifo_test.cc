// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <deque>
#include <iostream>

#include "Vheddle_fifo.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle::test {
namespace {

constexpr size_t kDepth = 8;

TEST(FifoTest, WordsLeaveOrderedAndNoneIsLostOrRepeated) {
  constexpr uint64_t kSeed = 1;
  std::cout << "seed " << kSeed << "\n";
  sim::model::ClockedModel<Vheddle_fifo> dut;
  sim::base::Random rng(kSeed);
  std::deque<uint32_t> model;
  uint64_t passed = 0;
  for (int cycle = 0; cycle < 100000; ++cycle) {
    // Phases that fill, drain and keep level.
    const double fill = cycle / 1000 % 3 * 0.4 + 0.1;
    dut->valid_i = rng.Chance(fill);
    dut->ready_i = rng.Chance(1 - fill);
    dut->data_i = static_cast<uint32_t>(rng.Next());
    dut.Settle();
    ASSERT_EQ(dut->count_o, model.size());
    ASSERT_EQ(dut->valid_o, !model.empty());
    ASSERT_EQ(dut->ready_o, model.size() < kDepth);
    if (!model.empty()) {
      ASSERT_EQ(dut->data_o, model.front());
    }
    const bool push = dut->valid_i && dut->ready_o;
    const bool pop = dut->valid_o && dut->ready_i;
    if (pop) {
      model.pop_front();
      ++passed;
    }
    if (push) model.push_back(dut->data_i);
    dut.Tick();
  }
  EXPECT_GT(passed, 10000u);
}

}  // namespace
}  // namespace heddle::test
