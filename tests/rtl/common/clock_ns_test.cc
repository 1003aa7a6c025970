// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iostream>

#include "Vheddle_clock_ns.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle::test {
namespace {

using Clock = sim::model::ClockedModel<Vheddle_clock_ns>;

// A tick after so many cycles, and the cycle after whose edge it shows; the
// time never runs back.
void Tick(Clock& dut, uint32_t cycles) {
  for (uint32_t i = 0; i <= cycles; ++i) {
    dut->tick_i = i + 1 == cycles ? 1 : 0;
    const uint32_t before = dut->now_o;
    dut.Tick();
    ASSERT_LT(dut->now_o - before, uint32_t{1} << 31U) << "Monotonic";
  }
}

TEST(ClockNsTest, TicksAreExactHoweverManyCyclesLeadUpToThem) {
  constexpr uint64_t kSeed = 1;
  std::cout << "seed " << kSeed << "\n";
  sim::base::Random rng(kSeed);
  // With ticks of 2^30 ns the time wraps.
  for (const uint32_t tick_ns : {1U, 127U, 100'000U, 1'000'003U, 1U << 30U}) {
    SCOPED_TRACE(tick_ns);
    Clock dut;
    dut->tick_ns_i = tick_ns;
    uint32_t expected = 0;
    for (int i = 0; i < 200; ++i) {
      ASSERT_NO_FATAL_FAILURE(
          Tick(dut, 1 + rng.Below(2 * contract::kTickCycles)));
      expected += tick_ns;
      ASSERT_EQ(dut->now_o, expected);
    }
  }
}

TEST(ClockNsTest, CyclesDivideATickAndWaitForTheNext) {
  constexpr uint32_t kCycleNs = 1000;
  Clock dut;
  dut->tick_ns_i = kCycleNs * contract::kTickCycles;
  for (uint32_t cycle = 0; cycle < 2 * contract::kTickCycles; ++cycle) {
    dut.Tick();
    ASSERT_EQ(dut->now_o,
              kCycleNs * std::min(cycle, contract::kTickCycles - 1));
  }
}

TEST(ClockNsTest, WithoutALengthOfTicksNoTimePasses) {
  Clock dut;
  dut->tick_ns_i = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(Tick(dut, 2 * contract::kTickCycles));
    EXPECT_EQ(dut->now_o, 0U);
  }
}

}  // namespace
}  // namespace heddle::test
