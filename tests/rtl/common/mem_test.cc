// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>

#include "Vheddle_mem.h"
#include "Vheddle_mem___024root.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "verilated.h"

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

// Random writes, and upsets of one bit of a word or of its parity. Each read is
// compared with the word as it stands in the memory, and `error_o` with the
// upsets; reads follow a write of the same word after 0, 1, 2 and more cycles.
TEST(MemTest, ParityReportsTheUpsetWordsAlone) {
  constexpr uint64_t kSeed = 2;
  constexpr uint32_t kNear = 3;
  std::cout << "seed " << kSeed << "\n";
  sim::model::ClockedModel<Vheddle_mem> dut;
  for (uint32_t i = 0; i < kDepth; ++i) dut.Tick();
  ASSERT_TRUE(dut->ready_o);
  Verilated::assertOn(false);  // `ParityHolds_A` fires with `error_o`.
  auto& words = dut->rootp->heddle_mem__DOT__words;
  auto& parity = dut->rootp->heddle_mem__DOT__gen_parity__DOT__parity;
  sim::base::Random rng(kSeed);
  std::array<uint32_t, kDepth> model{};
  std::array<bool, kDepth> upset{};
  std::array<int, kDepth> written{};
  std::array<uint32_t, kNear + 1> distances{};
  uint32_t errors = 0;
  uint32_t latest = 0;
  for (int cycle = kNear; cycle < 100000; ++cycle) {
    // Its parity is in the memory, too: no write of it was in the last cycle.
    const uint32_t hit = rng.Below(kDepth);
    if (rng.Chance(0.05) && cycle - written[hit] > 1) {
      if (rng.Chance(0.5)) {
        const uint32_t bit = 1u << rng.Below(32);
        words[hit] ^= bit;
        model[hit] ^= bit;
      } else {
        parity[hit] ^= 1;
      }
      upset[hit] = !upset[hit];
    }
    const uint32_t waddr = rng.Chance(0.3) ? latest : rng.Below(kDepth);
    const uint32_t raddr = rng.Chance(0.5) ? latest : rng.Below(kDepth);
    dut->wen_i = rng.Chance(0.5);
    dut->waddr_i = static_cast<uint8_t>(waddr);
    dut->wdata_i = static_cast<uint32_t>(rng.Next());
    dut->raddr_i = static_cast<uint8_t>(raddr);
    if (dut->wen_i) {
      latest = waddr;
      model[waddr] = dut->wdata_i;
      upset[waddr] = false;
      written[waddr] = cycle;
    }
    ++distances[std::min<uint32_t>(cycle - written[raddr], kNear)];
    dut.Tick();
    ASSERT_EQ(dut->rdata_o, model[raddr]) << "cycle " << cycle;
    ASSERT_EQ(dut->error_o, upset[raddr]) << "cycle " << cycle;
    errors += dut->error_o;
  }
  Verilated::assertOn(true);
  for (const uint32_t count : distances) EXPECT_GT(count, 1000u);
  EXPECT_GT(errors, 1000u);
}

}  // namespace
}  // namespace heddle::test
