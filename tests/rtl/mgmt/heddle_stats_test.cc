// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>

#include "Vheddle_stats.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/queue/bench.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

TEST(StatsTest, EveryStrobeAndByteCountIsAdded) {
  sim::model::ClockedModel<Vheddle_stats> dut;
  Rng rng(Seed(2));
  std::array<uint64_t, 64> expected{};
  for (int i = 0; i < 20000; ++i) {
    for (uint32_t source = 0; source < 3; ++source) {
      const uint64_t strobe = (uint64_t{rng() & rng()} << 32 | rng()) & rng();
      PutBits(dut->strobe_i, source * rtl::kNumStat, rtl::kNumStat, strobe);
      for (uint32_t s = 0; s < 64; ++s) {
        expected[s] += strobe >> s & 1;
      }
    }
    dut->tx_bytes_i = rng() % 3 ? 0 : rng() & 0x3fff;
    dut->rx_bytes_i = rng() % 3 ? 0 : rng() & 0x3fff;
    expected[size_t(contract::Statistic::kTxBytes)] += dut->tx_bytes_i;
    expected[size_t(contract::Statistic::kRxBytes)] += dut->rx_bytes_i;
    dut.Tick();
  }
  std::memset(&dut->strobe_i, 0, sizeof dut->strobe_i);
  dut->tx_bytes_i = 0;
  dut->rx_bytes_i = 0;
  for (uint32_t s = 0; s < 64; ++s) {
    dut->index_i = uint8_t(s);
    dut.Settle();
    EXPECT_EQ(dut->value_o, expected[s]) << "counter " << s;
  }
}

}  // namespace
}  // namespace heddle::test
