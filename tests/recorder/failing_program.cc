// SPDX-License-Identifier: Apache-2.0
// Tests that fail, for recorder_test.py.
#include <cstdio>
#include <random>

#include "Vheddle_fifo.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

constexpr int kCycles = 5000;

// Moves random words through the queue until `cycle`, which fails.
void RunUntil(int cycle, uint32_t seed) {
  std::mt19937 random(seed);
  sim::model::ClockedModel<Vheddle_fifo> dut;
  for (int i = 1; i < cycle; ++i) {
    dut->valid_i = random() % 2;
    dut->ready_i = random() % 2;
    dut->data_i = static_cast<uint8_t>(random());
    dut.Tick();
  }
  EXPECT_EQ(cycle, 0) << "first word " << random();
}

TEST(Failing, AfterManyCycles) {
  RunUntil(kCycles, 1);
}

TEST(Failing, AtASeed) {
  RunUntil(100, TestSeed());
}

TEST(Failing, NotAgain) {
  sim::model::ClockedModel<Vheddle_fifo> dut;
  const bool again = std::getenv("HEDDLE_RECORD_DIRECTORY") != nullptr;
  EXPECT_TRUE(again);
}

TEST(Failing, Not) {
  sim::model::ClockedModel<Vheddle_fifo> dut;
  dut.Tick();
}

}  // namespace
}  // namespace heddle::test
