// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <iostream>

#include "Vheddle_mem.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle::test {
namespace {

constexpr uint32_t kDepth = 64;

TEST(MemTest, InitialisedWordsReadZeroOnceReady) {
  sim::model::ClockedModel<Vheddle_mem> dut;
  dut->wen_i = 1;  // Ignored until `ready_o`.
  dut->wdata_i = 0xffffffff;
  dut->waddr_i = 3;
  uint32_t cycles = 0;
  while (!dut->ready_o && cycles < 2 * kDepth) {
    dut.Tick();
    ++cycles;
  }
  ASSERT_TRUE(dut->ready_o);
  EXPECT_EQ(cycles, kDepth);
  dut->wen_i = 0;
  for (uint32_t i = 0; i < kDepth; ++i) {
    dut->raddr_i = static_cast<uint8_t>(i);
    dut.Tick();
    EXPECT_EQ(dut->rdata_o, 0u) << "word " << i;
    EXPECT_FALSE(dut->error_o);
  }
}

TEST(MemTest, ReadsAreCoherentWithAWriteOfTheSameCycle) {
  constexpr uint64_t kSeed = 1;
  std::cout << "seed " << kSeed << "\n";
  sim::model::ClockedModel<Vheddle_mem> dut;
  for (uint32_t i = 0; i < kDepth; ++i) dut.Tick();
  ASSERT_TRUE(dut->ready_o);
  sim::base::Random rng(kSeed);
  std::array<uint32_t, kDepth> model{};
  uint32_t met = 0;
  for (int cycle = 0; cycle < 50000; ++cycle) {
    const uint32_t waddr = rng.Below(kDepth);
    const uint32_t raddr = rng.Chance(0.3) ? waddr : rng.Below(kDepth);
    const auto data = static_cast<uint32_t>(rng.Next());
    dut->wen_i = rng.Chance(0.7);
    dut->waddr_i = static_cast<uint8_t>(waddr);
    dut->wdata_i = data;
    dut->raddr_i = static_cast<uint8_t>(raddr);
    if (dut->wen_i) model[waddr] = data;
    met += dut->wen_i && waddr == raddr;
    dut.Tick();
    ASSERT_EQ(dut->rdata_o, model[raddr]);
    ASSERT_FALSE(dut->error_o);
  }
  EXPECT_GT(met, 1000u);
}

}  // namespace
}  // namespace heddle::test
