// SPDX-License-Identifier: Apache-2.0
// Frames into heddle_rx_parser; what leaves it against the reference.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <utility>

#include "Vheddle_rx_parser.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/net/rx_frames.h"
#include "tests/rtl/net/rx_reference.h"
#include "tests/rtl/net/stream.h"

namespace heddle::test {

using contract::Statistic;

template <typename Port>
Fields ReadPacket(const Port& port) {
  Fields fields;
  rtl::RxPacket packet;
  rtl::RxPacket::Fields(packet,
                        [&](const char* name, auto&, size_t low, size_t bits) {
                          if (const uint64_t value = GetBits(port, low, bits)) {
                            fields[name] = value;
                          }
                        });
  return fields;
}

struct Sent {
  Bytes frame;
  Verdict verdict;
  bool bad = false;  // MAC error.
};

class RxParserBench {
 public:
  explicit RxParserBench(uint64_t seed,
                         const contract::PortCfg& port = DefaultPort())
      : rng_(seed) {
    std::cout << "seed " << seed << ", " << HEDDLE_DATA_W << " bits\n";
    SetPort(port);
    SetTrims({});
    dut_->tvalid_i = 0;
    dut_->pkt_ready_i = 0;
    dut_->pay_ready_i = 0;
  }

  double gap = 0.2;  // Chance of a cycle without a beat.
  double take = 1;   // Chance that a packet or beat is taken.
  bool may_overflow = false;

  void SetPort(const contract::PortCfg& port) {
    port_ = port;
    rtl::Drive(dut_->port_i, port);
  }
  const contract::PortCfg& port() const { return port_; }
  void SetTrims(const Trims& trims) {
    trims_ = trims;
    dut_->trimmed_dscp_i =
        static_cast<uint16_t>(trims.lasthop << 6 | trims.path);
  }

  void Post(Bytes frame, bool bad = false) {
    Verdict verdict = Judge(frame, bad, port_, trims_);
    todo_.push_back({std::move(frame), std::move(verdict), bad});
  }

  void Step() {
    dut_->tvalid_i = 0;
    lasts_ <<= 1;
    if (!todo_.empty() && !rng_.Chance(gap)) DriveBeat();
    dut_->pkt_ready_i = rng_.Chance(take);
    dut_->pay_ready_i = rng_.Chance(take);
    dut_.Settle();
    WatchStatistics();
    if (dut_->pkt_valid_o && first_valid_ < 0) first_valid_ = cycle_;
    if (dut_->pay_valid_o && first_pay_ < 0) first_pay_ = cycle_;
    if (dut_->pkt_squash_o) {
      ASSERT_EQ(std::erase_if(taken_,
                              [&](const Taken& taken) {
                                return taken.cycle + kVerdict == cycle_;
                              }),
                1u);
      ++squashed;
    }
    if (!taken_.empty() && taken_.front().cycle + kVerdict <= cycle_) {
      ASSERT_FALSE(due_packets_.empty()) << "a packet is not Verified";
      ASSERT_EQ(taken_.front().fields, due_packets_.front());
      taken_.pop_front();
      due_packets_.pop_front();
      ++packets;
    }
    if (dut_->pkt_valid_o && dut_->pkt_ready_i) {
      // Only two cycles after a last beat a packet may precede its verdict.
      ASSERT_TRUE(taken_.size() < due_packets_.size() || ((lasts_ >> 2) & 1))
          << "a packet is not Verified";
      taken_.push_back({cycle_, ReadPacket(dut_->pkt_o)});
    }
    if (dut_->pay_valid_o && dut_->pay_ready_i) WatchPayload();
    dut_.Tick();
    ++cycle_;
  }

  // Until all frames are judged; then, if all is taken, until idle.
  void RunToEnd(int limit) {
    int steps = 0;
    for (; steps < limit; ++steps) {
      if (todo_.empty() && in_flight_.empty() && due_packets_.empty() &&
          due_payload_.empty()) {
        break;
      }
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_LT(steps, limit);
    for (int i = 0; i < 10; ++i) Step();
    EXPECT_TRUE(dut_->idle_o);
    EXPECT_FALSE(dut_->pkt_valid_o);
    EXPECT_FALSE(dut_->pay_valid_o);
  }
  void RunInput(int limit) {
    for (int i = 0; i < limit; ++i) {
      if (todo_.empty() && in_flight_.empty()) return;
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    FAIL() << "not all frames judged";
  }

  sim::base::Random& rng() { return rng_; }
  std::map<Statistic, uint64_t> counts;
  uint64_t packets = 0;
  uint64_t squashed = 0;
  int64_t last_sent() const { return last_sent_; }
  int64_t first_valid() const { return first_valid_; }
  int64_t first_pay() const { return first_pay_; }

 private:
  // A packet that was taken, squashed until so many cycles later.
  static constexpr int64_t kVerdict = 2;
  struct Taken {
    int64_t cycle;
    Fields fields;
  };

  void DriveBeat() {
    const Sent& sent = todo_.front();
    PutBeat(dut_->tdata_i, sent.frame, beat_, rng_);
    const bool last = beat_ + 1 == Beats(sent.frame.size());
    for (size_t i = 0; i < kStrobe; ++i) {
      PutBits(dut_->tkeep_i, i, 1, beat_ * kStrobe + i < sent.frame.size());
    }
    dut_->tvalid_i = 1;
    dut_->tlast_i = last;
    dut_->tuser_i = last && sent.bad;
    ++beat_;
    if (last) {
      in_flight_.push_back(sent);
      todo_.pop_front();
      beat_ = 0;
      last_sent_ = cycle_;
      lasts_ |= 1;
    }
  }

  void WatchStatistics() {
    const uint64_t stat = GetBits(dut_->stat_o, 0, 64);
    if (stat == 0) {
      ASSERT_EQ(dut_->rx_bytes_o, 0);
      return;
    }
    ASSERT_FALSE(in_flight_.empty());
    const Sent sent = in_flight_.front();
    in_flight_.pop_front();
    ASSERT_EQ(dut_->rx_bytes_o, sent.frame.size());
    const auto bit = [](Statistic s) {
      return uint64_t{1} << static_cast<unsigned>(s);
    };
    uint64_t expected = bit(Statistic::kRxFrames);
    Statistic reason = sent.verdict.reason;
    const bool good = reason == Statistic::kRxFrames;
    if (!port_.enable) {
      ASSERT_EQ(stat, expected);
      return;
    }
    if (!sent.verdict.quiet) expected |= bit(reason);
    if (may_overflow && good && !sent.verdict.quiet &&
        stat == (expected | bit(Statistic::kDropOverflow))) {
      ++counts[Statistic::kDropOverflow];
      return;
    }
    ASSERT_EQ(stat, expected)
        << "expected reason " << static_cast<int>(reason) << " of a frame of "
        << sent.frame.size() << " bytes";
    ++counts[reason];
    if (!good || sent.verdict.quiet) return;
    due_packets_.push_back(sent.verdict.fields);
    if (!sent.verdict.payload.empty()) {
      due_payload_.push_back(sent.verdict.payload);
    }
  }

  void WatchPayload() {
    ASSERT_FALSE(due_payload_.empty());
    const Bytes& payload = due_payload_.front();
    for (size_t i = 0; i < kStrobe; ++i) {
      const size_t at = out_beat_ * kStrobe + i;
      if (at < payload.size()) {
        ASSERT_EQ(PinBytes(dut_->pay_data_o)[i], payload[at])
            << "byte " << at << " of " << payload.size();
      }
    }
    if (++out_beat_ == Beats(payload.size())) {
      out_beat_ = 0;
      due_payload_.pop_front();
    }
  }

  sim::model::ClockedModel<Vheddle_rx_parser> dut_;
  sim::base::Random rng_;
  contract::PortCfg port_;
  Trims trims_;
  int64_t cycle_ = 0;
  int64_t last_sent_ = -1, first_valid_ = -1, first_pay_ = -1;
  std::deque<Sent> todo_, in_flight_;
  size_t beat_ = 0, out_beat_ = 0;
  unsigned lasts_ = 0;  // Bit i: a last beat was sent i cycles ago.
  std::deque<Taken> taken_;
  std::deque<Fields> due_packets_;
  std::deque<Bytes> due_payload_;
};

}  // namespace heddle::test
