// SPDX-License-Identifier: Apache-2.0
// Random payloads, some of which the host refused, against a model.
#include <cstdint>
#include <deque>
#include <iostream>
#include <vector>

#include "Vheddle_tx_payload.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/crc32c.h"
#include "tests/rtl/net/stream.h"

namespace heddle::test {
namespace {

struct Payload {
  std::vector<uint8_t> bytes;
  bool refused = false;
};

class Bench {
 public:
  explicit Bench(uint64_t seed) : rng_(seed) {
    std::cout << "seed " << seed << ", " << HEDDLE_DATA_W << " bits\n";
    dut_->len_valid_i = 0;
    dut_->rsp_valid_i = 0;
    dut_->rec_ready_i = 0;
    dut_->out_ready_i = 0;
  }

  double give = 0.8;  // Chance that a beat is there.
  double record = 0.7;
  double take = 0.7;  // Chance that a stored beat is taken.

  void Post(Payload payload) { todo_.push_back(std::move(payload)); }

  void Step() {
    // Length first, then the data, as the request is made before the read.
    if (!dut_->len_valid_i && lengths_ < todo_.size() && rng_.Chance(0.5)) {
      dut_->len_valid_i = 1;
      dut_->len_bytes_i = static_cast<uint16_t>(todo_[lengths_].bytes.size());
    }
    if (!dut_->rsp_valid_i && sent_ < lengths_ && rng_.Chance(give)) {
      const Payload& payload = todo_[sent_];
      PutBeat(dut_->rsp_data_i, payload.bytes, beat_, rng_);
      const bool last = beat_ + 1 == Beats(payload.bytes.size());
      dut_->rsp_valid_i = 1;
      dut_->rsp_last_i = last;
      dut_->rsp_error_i = last ? payload.refused : rng_.Chance(0.5);
    }
    dut_->rec_ready_i = rng_.Chance(record);
    // Only beats of accepted records are asked for, as the framer does.
    dut_->out_ready_i = allowed_ > 0 && rng_.Chance(take);
    dut_.Settle();
    const bool len = dut_->len_valid_i && dut_->len_ready_o;
    const bool rsp = dut_->rsp_valid_i && dut_->rsp_ready_o;
    if (rsp && dut_->rsp_last_i) stored_ = sent_ + 1;
    if (dut_->rec_valid_o && dut_->rec_ready_i) WatchRecord();
    if (dut_->out_valid_o && dut_->out_ready_i) WatchBeat();
    dut_.Tick();
    ++cycle_;
    if (len) {
      ++lengths_;
      dut_->len_valid_i = 0;
    }
    if (rsp) {
      dut_->rsp_valid_i = 0;
      ++beat_;
      if (dut_->rsp_last_i) {
        ++sent_;
        beat_ = 0;
      }
    }
  }

  void RunToEnd(int limit) {
    for (int i = 0; i < limit; ++i) {
      if (recorded_ == todo_.size() && allowed_ == 0) break;
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_EQ(recorded_, todo_.size());
    ASSERT_EQ(allowed_, 0u);
    for (int i = 0; i < 10; ++i) Step();
    EXPECT_FALSE(dut_->out_valid_o);
    EXPECT_FALSE(dut_->rec_valid_o);
  }

  sim::base::Random& rng() { return rng_; }
  uint64_t cycle() const { return cycle_; }
  uint64_t recorded() const { return recorded_; }
  uint64_t stored() const { return stored_; }

 private:
  void WatchRecord() {
    ASSERT_LT(recorded_, stored_) << "a record is not Complete";
    const Payload& payload = todo_[recorded_];
    ASSERT_EQ(static_cast<bool>(dut_->rec_error_o), payload.refused);
    if (!payload.refused) {
      ASSERT_EQ(dut_->rec_crc_o, Crc32cState(0, payload.bytes))
          << payload.bytes.size() << " bytes";
      allowed_ += Beats(payload.bytes.size());
      due_.push_back(payload.bytes);
    }
    ++recorded_;
  }

  void WatchBeat() {
    ASSERT_FALSE(due_.empty());
    const std::vector<uint8_t>& bytes = due_.front();
    for (size_t i = 0; i < kStrobe; ++i) {
      const size_t at = out_beat_ * kStrobe + i;
      if (at < bytes.size()) {
        ASSERT_EQ(PinBytes(dut_->out_data_o)[i], bytes[at]);
      }
    }
    --allowed_;
    if (++out_beat_ == Beats(bytes.size())) {
      out_beat_ = 0;
      due_.pop_front();
    }
  }

  sim::model::ClockedModel<Vheddle_tx_payload> dut_;
  sim::base::Random rng_;
  uint64_t cycle_ = 0;
  std::vector<Payload> todo_;
  size_t lengths_ = 0, sent_ = 0, stored_ = 0, recorded_ = 0;
  size_t beat_ = 0, out_beat_ = 0, allowed_ = 0;
  std::deque<std::vector<uint8_t>> due_;
};

TEST(TxPayloadTest, RecordsAreCompleteInOrderWithCrc) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Bench bench(seed);
    bench.take = 0.2 + 0.2 * static_cast<double>(seed % 5);
    bench.record = seed % 2 ? 0.1 : 0.9;
    for (int i = 0; i < 300; ++i) {
      const uint32_t most = i % 3 == 0 ? 8192 : i % 3 == 1 ? 8 : 300;
      bench.Post({RandomBytes(bench.rng(), 1 + bench.rng().Below(most)),
                  bench.rng().Chance(seed % 2 ? 0.3 : 0)});
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(4000000));
  }
}

TEST(TxPayloadTest, CrcIsRightOfAllOnesAndAllZeros) {
  Bench bench(11);
  for (uint32_t size : {1u, 2u, 63u, 64u, 65u, 4096u, 8191u, 8192u}) {
    bench.Post({std::vector<uint8_t>(size, 0xff), false});
    bench.Post({std::vector<uint8_t>(size, 0x00), false});
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(100000));
}

TEST(TxPayloadTest, TwoLargestPacketsAreHeldWhileNoneLeaves) {
  Bench bench(21);
  bench.take = 0;
  bench.record = 0;
  for (int i = 0; i < 3; ++i)
    bench.Post({RandomBytes(bench.rng(), 8192), false});
  for (int i = 0; i < 20000; ++i) bench.Step();
  EXPECT_EQ(bench.stored(), 2u);
  bench.take = bench.record = 1;
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(100000));
}

TEST(TxPayloadTest, ABeatPerCyclePassesThrough) {
  Bench bench(31);
  bench.give = bench.take = bench.record = 1;
  for (int i = 0; i < 100; ++i) {
    bench.Post({RandomBytes(bench.rng(), 4096), false});
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000000));
  // The first payload leaves when it is complete.
  const double per = static_cast<double>(bench.cycle() - 4096 / kStrobe) / 100;
  std::cout << per << " cycles per 4 KiB\n";
  EXPECT_LE(per, 4096.0 / kStrobe + 1);
}

}  // namespace
}  // namespace heddle::test
