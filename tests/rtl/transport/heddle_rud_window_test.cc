// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "Vheddle_rud_window.h"
#include "hw/sim/base/random.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

constexpr uint32_t kWindow = 64;

// A set of PSNs beside the block.
TEST(RudWindowTest, MovesBehindEveryRunAndForgetsNothing) {
  sim::base::Random random(TestSeed());
  Vheddle_rud_window dut;
  for (int round = 0; round < 50; ++round) {
    uint32_t expected = random.Chance(0.5)
                            ? 0u - random.Below(100)
                            : static_cast<uint32_t>(random.Next());
    std::set<uint32_t> came;
    uint64_t ahead = 0;
    const uint32_t reach = 1 + random.Below(80);
    for (int i = 0; i < 400; ++i) {
      const uint32_t psn = expected + random.Below(reach) - random.Below(3);
      dut.expected_i = expected;
      if (psn - expected >= kWindow) continue;
      dut.marked_i = ahead | uint64_t{1} << (psn - expected);
      dut.eval();
      came.insert(psn);
      while (came.contains(expected)) ++expected;
      ASSERT_EQ(dut.expected_o, expected);
      ahead = dut.run_o < kWindow ? dut.marked_i >> dut.run_o : 0;
      for (uint32_t bit = 0; bit < kWindow; ++bit) {
        ASSERT_EQ((ahead >> bit) & 1, came.contains(expected + bit)) << bit;
      }
    }
  }
}

TEST(RudWindowTest, AFullWindowIsPassedAtOnce) {
  Vheddle_rud_window dut;
  dut.expected_i = 0xffffffff;
  dut.marked_i = ~uint64_t{0};
  dut.eval();
  EXPECT_EQ(dut.expected_o, 63u);
  EXPECT_EQ(dut.run_o, kWindow);
}

}  // namespace
}  // namespace heddle::test
