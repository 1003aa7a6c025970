// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <iostream>
#include <optional>

#include "Vheddle_rr_arbiter.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle::test {
namespace {

constexpr uint32_t kSources = 4;

TEST(RrArbiterTest, GrantStaysPutWhenAnEarlierSourceArrivesDuringAStall) {
  sim::model::ClockedModel<Vheddle_rr_arbiter> dut;
  dut->valid_i = 0b0100;
  dut->last_i = 0b1111;
  dut->ready_i = 0;
  dut.Tick();
  dut->valid_i = 0b0101;
  dut.Settle();
  EXPECT_EQ(dut->idx_o, 2);
}

TEST(RrArbiterTest, PacketsAreAtomicAndGrantsAreFair) {
  constexpr uint64_t kSeed = 1;
  std::cout << "seed " << kSeed << "\n";
  sim::model::ClockedModel<Vheddle_rr_arbiter> dut;
  sim::base::Random rng(kSeed);
  std::array<uint32_t, kSources> beats_left{};
  std::array<uint32_t, kSources> packets_waited{};
  std::optional<uint32_t> open_packet;  // Source of an unfinished packet.
  uint32_t packets = 0;

  for (int cycle = 0; cycle < 100000; ++cycle) {
    uint32_t valid = 0;
    uint32_t last = 0;
    for (uint32_t s = 0; s < kSources; ++s) {
      if (beats_left[s] == 0 && rng.Below(3) == 0) {
        beats_left[s] = 1 + rng.Below(4);
      }
      valid |= uint32_t{beats_left[s] > 0} << s;
      last |= uint32_t{beats_left[s] == 1} << s;
    }
    dut->valid_i = static_cast<uint8_t>(valid);
    dut->last_i = static_cast<uint8_t>(last);
    dut->ready_i = rng.Chance(0.5);
    dut.Settle();

    if (dut->valid_o && dut->ready_i) {
      const uint32_t winner = dut->idx_o;
      ASSERT_EQ(open_packet.value_or(winner), winner);
      ASSERT_EQ(dut->ready_o, 1u << winner);
      open_packet = dut->last_o ? std::nullopt : std::optional(winner);
      --beats_left[winner];
      packets += dut->last_o;
      for (uint32_t s = 0; dut->last_o && s < kSources; ++s) {
        const bool waiting = s != winner && (valid >> s & 1);
        packets_waited[s] = waiting ? packets_waited[s] + 1 : 0;
        ASSERT_LT(packets_waited[s], kSources) << "source " << s;
      }
    }
    dut.Tick();
  }
  EXPECT_GT(packets, 10000u);
}

}  // namespace
}  // namespace heddle::test
