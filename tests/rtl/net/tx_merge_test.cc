// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "Vheddle_tx_merge.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

constexpr uint32_t kPatience = 4;

class Bench {
 public:
  sim::model::ClockedModel<Vheddle_tx_merge> dut;
  uint8_t next_data = 0;  // Names of the frames offered.
  uint8_t next_slow = 0;
  std::vector<uint8_t> data_out, slow_out;
  uint32_t passed = 0;  // Data frames since the slow one waits.
  uint32_t most_passed = 0;

  void Cycle(bool data, bool slow, bool ready) {
    // An offer stays until it is taken.
    data_ = data_ || data;
    slow_ = slow_ || slow;
    dut->data_valid_i = data_;
    dut->slow_valid_i = slow_;
    rtl::Drive(dut->data_i,
               rtl::FrameHead{.length = next_data, .payload_bytes = 9});
    rtl::Drive(dut->slow_i,
               rtl::FrameHead{.length = next_slow, .payload_bytes = 0});
    dut->head_ready_i = ready;
    dut.Settle();
    const bool taken_data = data_ && dut->data_ready_o;
    const bool taken_slow = slow_ && dut->slow_ready_o;
    EXPECT_FALSE(taken_data && taken_slow);
    EXPECT_EQ(taken_data || taken_slow, dut->head_valid_o && ready);
    const auto head = rtl::Sample<rtl::FrameHead>(dut->head_o);
    if (taken_data) {
      EXPECT_EQ(head.payload_bytes, 9);
      data_out.push_back(head.length);
      ++next_data;
      data_ = false;
      passed += slow_ ? 1 : 0;
    }
    if (taken_slow) {
      EXPECT_EQ(head.payload_bytes, 0);
      slow_out.push_back(head.length);
      ++next_slow;
      slow_ = false;
      most_passed = std::max(most_passed, passed);
      passed = 0;
    }
    dut.Tick();
  }

 private:
  bool data_ = false;
  bool slow_ = false;
};

TEST(TxMergeTest, NeitherSideIsStarvedByTheOther) {
  Bench bench;
  for (int i = 0; i < 200; ++i) bench.Cycle(true, true, true);
  EXPECT_EQ(bench.most_passed, kPatience);
  EXPECT_EQ(bench.slow_out.size(), 40u);
  EXPECT_EQ(bench.data_out.size(), 160u);
}

TEST(TxMergeTest, DataGoesFirstAndAnIdlePathIsTheSlowPaths) {
  Bench bench;
  bench.Cycle(true, true, true);
  EXPECT_EQ(bench.data_out.size(), 1u);
  EXPECT_EQ(bench.slow_out.size(), 0u);
  bench.Cycle(false, false, true);
  EXPECT_EQ(bench.slow_out.size(), 1u);
}

// The assertion that an offer is held is part of the model.
TEST(TxMergeTest, EveryFrameGoesOnceAndInOrderWhateverTheStalls) {
  sim::base::Random rng(TestSeed());
  Bench bench;
  for (int i = 0; i < 20000; ++i) {
    bench.Cycle(rng.Chance(0.5), rng.Chance(0.3), rng.Chance(0.6));
  }
  for (size_t i = 0; i < bench.data_out.size(); ++i) {
    ASSERT_EQ(bench.data_out[i], static_cast<uint8_t>(i));
  }
  for (size_t i = 0; i < bench.slow_out.size(); ++i) {
    ASSERT_EQ(bench.slow_out[i], static_cast<uint8_t>(i));
  }
  EXPECT_LE(bench.most_passed, kPatience);
  EXPECT_GT(bench.slow_out.size(), 1000u);
}

}  // namespace
}  // namespace heddle::test
