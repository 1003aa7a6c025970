// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>

#include "Vheddle_ring_state.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

constexpr uint32_t kContexts = rtl::kNumTx;
constexpr uint32_t kSlots = 4096;

// Contexts restart with various ring sizes while others are used.
TEST(RingStateTest, CleanAfterRestartAndCoherentWhileUsed) {
  sim::model::ClockedModel<Vheddle_ring_state> dut;
  Rng rng(Seed(1));
  std::array<uint32_t, kContexts> log2{};
  std::array<std::array<uint8_t, kSlots>, kContexts> model{};
  uint32_t alive = 0;  // Restarted at least once.
  uint32_t checked = 0;
  int32_t read = -1;  // What the last cycle read.
  for (int cycle = 0; cycle < 300000; ++cycle) {
    dut->restart_i = 0;
    if (cycle % 500 == 0) {
      const uint32_t c = rng() % kContexts;
      dut->restart_i = static_cast<uint16_t>(1u << c);
      alive |= 1u << c;
      log2[c] = 3 + rng() % 6;
      model[c].fill(0);
      if (read >= 0 && static_cast<uint32_t>(read) >> 12 == c) {
        read = -1;
      }
      for (uint32_t i = 0; i < kContexts; ++i) {
        PutBits(dut->log2_i, i * 4, 4, log2[i]);
      }
    }
    const uint32_t usable = alive & ~dut->dirty_o & ~dut->restart_i;
    const uint32_t c = rng() % kContexts;
    const uint32_t slot = rng() % (1u << log2[c]) & (rng() % 2 ? 7 : 0xfff);
    const uint32_t address = c << 12 | slot;
    dut->wen_i = (usable >> c & 1) && rng() % 2;
    dut->waddr_i = static_cast<uint16_t>(address);
    dut->wdata_i = rng() & 1;
    dut->raddr_i = static_cast<uint16_t>(address);
    if (rng() % 2) {  // Another slot than the written one.
      const uint32_t other = rng() % kContexts;
      dut->raddr_i =
          static_cast<uint16_t>(other << 12 | (rng() % (1u << log2[other])));
    }
    dut.Settle();
    if (read >= 0) {
      const uint32_t of = static_cast<uint32_t>(read);
      ASSERT_EQ(dut->rdata_o, model[of >> 12][of & 0xfff])
          << "context " << (of >> 12) << " slot " << (of & 0xfff);
      ++checked;
    }
    if (dut->wen_i) {
      model[c][slot] = dut->wdata_i;
    }
    const uint32_t of = dut->raddr_i;
    read = usable >> (of >> 12) & 1 ? static_cast<int32_t>(of) : -1;
    dut.Tick();
    // A restart in between invalidates what was read.
    if (read >= 0 && (dut->restart_i >> (read >> 12) & 1)) {
      read = -1;
    }
  }
  EXPECT_GT(checked, 100000u);
}

TEST(RingStateTest, EveryContextIsCleanedThoughAllRestartAtOnce) {
  sim::model::ClockedModel<Vheddle_ring_state> dut;
  for (uint32_t i = 0; i < kContexts; ++i) {
    PutBits(dut->log2_i, i * 4, 4, 5);
  }
  dut->restart_i = 0xffff;
  dut.Tick();
  dut->restart_i = 0;
  EXPECT_EQ(dut->dirty_o, 0xffff);
  for (int i = 0; i < 16 * 40 && dut->dirty_o; ++i) {
    dut.Tick();
  }
  EXPECT_EQ(dut->dirty_o, 0);
}

}  // namespace
}  // namespace heddle::test
