// SPDX-License-Identifier: Apache-2.0
// Random header stacks and payloads against the frames they must become.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <iostream>
#include <optional>
#include <vector>

#include "Vheddle_tx_framer.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/net/stream.h"

namespace heddle::test {
namespace {

struct Frame {
  std::vector<uint8_t> header;
  std::vector<uint8_t> payload;
  std::optional<uint32_t> crc = std::nullopt;
};

class Bench {
 public:
  explicit Bench(uint64_t seed) : rng_(seed) {
    std::cout << "seed " << seed << ", " << HEDDLE_DATA_W << " bits\n";
    dut_->head_valid_i = 0;
    dut_->pay_valid_i = 0;
  }

  double offer = 0.6;
  double ready = 0.8;

  void Post(Frame frame) {
    due_.push_back(frame);
    todo_.push_back(std::move(frame));
  }

  void Step() {
    if (!dut_->head_valid_i && !todo_.empty() && rng_.Chance(offer)) {
      const Frame& frame = todo_.front();
      // Header bytes beyond its length are noise.
      std::vector<uint8_t> header = RandomBytes(rng_, rtl::kHdrBytes);
      std::ranges::copy(frame.header, header.begin());
      // Without a trailer its value is noise.
      rtl::Drive(
          dut_->head_i,
          rtl::FrameHead{
              .bytes = rtl::Wide<rtl::kHdrW>::FromWireBytes(header),
              .length = static_cast<uint8_t>(frame.header.size()),
              .payload_bytes = static_cast<uint16_t>(frame.payload.size()),
              .trailer = frame.crc.has_value(),
              .crc = frame.crc.value_or(
                  static_cast<uint32_t>(rng_.Next() >> 32))});
      dut_->head_valid_i = 1;
      for (size_t i = 0; i < Beats(frame.payload.size()); ++i) {
        stored_.push_back({frame.payload, i});
      }
      todo_.pop_front();
    }
    dut_->pay_valid_i = !stored_.empty();
    if (!stored_.empty()) {
      PutBeat(dut_->pay_data_i, stored_.front().first, stored_.front().second,
              rng_);
    }
    dut_->tready_i = rng_.Chance(ready);
    dut_.Settle();
    const bool head = dut_->head_valid_i && dut_->head_ready_o;
    const bool pay = dut_->pay_valid_i && dut_->pay_ready_o;
    Watch();
    dut_.Tick();
    ++cycle_;
    if (head) dut_->head_valid_i = 0;
    if (pay) stored_.pop_front();
  }

  void RunToEnd(int limit) {
    for (int i = 0; i < limit && !due_.empty(); ++i) {
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_TRUE(due_.empty());
    for (int i = 0; i < 3; ++i) Step();
    EXPECT_TRUE(stored_.empty());
    EXPECT_TRUE(dut_->idle_o);
  }

  sim::base::Random& rng() { return rng_; }
  uint64_t cycle() const { return cycle_; }
  uint64_t beats() const { return beats_; }
  uint64_t first_beat() const { return first_beat_; }
  uint64_t last_beat() const { return last_beat_; }

 private:
  void Watch() {
    if (!dut_->tvalid_o) {
      ASSERT_TRUE(seen_.empty()) << "a frame is not Whole";
      ASSERT_FALSE(dut_->frame_o);
      return;
    }
    if (!dut_->tready_i) {
      ASSERT_FALSE(dut_->frame_o);
      return;
    }
    if (beats_++ == 0) first_beat_ = cycle_;
    last_beat_ = cycle_;
    size_t kept = 0;
    while (kept < kStrobe && GetBits(dut_->tkeep_o, kept, 1)) ++kept;
    for (size_t i = kept; i < kStrobe; ++i) {
      ASSERT_EQ(GetBits(dut_->tkeep_o, i, 1), 0u);
    }
    const uint8_t* data = PinBytes(dut_->tdata_o);
    seen_.insert(seen_.end(), data, data + kept);
    ASSERT_EQ(dut_->frame_o, dut_->tlast_o);
    if (!dut_->tlast_o) {
      ASSERT_EQ(kept, kStrobe);
      return;
    }
    ASSERT_FALSE(due_.empty());
    std::vector<uint8_t> expected = due_.front().header;
    expected.insert(expected.end(), due_.front().payload.begin(),
                    due_.front().payload.end());
    for (uint32_t i = 0; i < 4 && due_.front().crc; ++i) {
      expected.push_back(static_cast<uint8_t>(*due_.front().crc >> (8 * i)));
    }
    expected.resize(std::max<size_t>(expected.size(), 60));  // Padded.
    ASSERT_EQ(seen_, expected) << "header " << due_.front().header.size()
                               << " payload " << due_.front().payload.size();
    ASSERT_EQ(dut_->frame_bytes_o, expected.size());
    seen_.clear();
    due_.pop_front();
  }

  sim::model::ClockedModel<Vheddle_tx_framer> dut_;
  sim::base::Random rng_;
  uint64_t cycle_ = 0, beats_ = 0, first_beat_ = 0, last_beat_ = 0;
  std::deque<Frame> todo_, due_;
  std::deque<std::pair<std::vector<uint8_t>, size_t>> stored_;
  std::vector<uint8_t> seen_;
};

TEST(TxFramerTest, FramesAreHeaderPayloadTrailerAndPadding) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Bench bench(seed);
    bench.offer = seed % 2 ? 0.3 : 1;
    bench.ready = seed < 3 ? 1 : 0.6;
    for (int i = 0; i < 400; ++i) {
      Frame frame;
      frame.header =
          RandomBytes(bench.rng(), 1 + bench.rng().Below(rtl::kHdrBytes));
      const uint32_t most = i % 8 == 0 ? 8193 : i % 8 < 5 ? 200 : 1;
      frame.payload = RandomBytes(bench.rng(), bench.rng().Below(most));
      if (bench.rng().Chance(0.5)) {
        frame.crc = static_cast<uint32_t>(bench.rng().Next());
      }
      bench.Post(std::move(frame));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000000));
  }
}

// Every way in which the end of the header, of the payload and of the trailer
// meet a beat.
TEST(TxFramerTest, EveryPairOfHeaderAndShortPayloadLengthIsRight) {
  Bench bench(11);
  bench.offer = bench.ready = 1;
  for (size_t header = 14; header <= rtl::kHdrBytes; header += 2) {
    for (size_t payload = 0; payload <= kStrobe + 1; payload += 3) {
      bench.Post({RandomBytes(bench.rng(), header),
                  RandomBytes(bench.rng(), payload)});
      bench.Post({RandomBytes(bench.rng(), header),
                  RandomBytes(bench.rng(), payload),
                  static_cast<uint32_t>(bench.rng().Next())});
    }
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000000));
}

TEST(TxFramerTest, ABeatPerCycleLeavesAcrossFrames) {
  Bench bench(21);
  bench.offer = bench.ready = 1;
  for (uint32_t i = 0; i < 500; ++i) {
    bench.Post({RandomBytes(bench.rng(), 98),
                RandomBytes(bench.rng(), i % 5 == 0 ? 4096 : 8),
                static_cast<uint32_t>(bench.rng().Next())});
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000000));
  EXPECT_EQ(bench.last_beat() - bench.first_beat() + 1, bench.beats());
}

}  // namespace
}  // namespace heddle::test
