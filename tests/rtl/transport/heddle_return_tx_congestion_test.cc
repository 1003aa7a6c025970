// SPDX-License-Identifier: Apache-2.0
// Congestion windows of return data, fixed and under NSCC.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "tests/rtl/transport/return_tx_fixture.h"

namespace heddle::test {
namespace {

using contract::NackCode;

constexpr uint32_t kNominal = 4096 + 108;  // What a packet counts in a window.

class ReturnTxCongestionTest : public ReturnTxTest {
 protected:
  void SetWindow(uint32_t packets, uint32_t base_rtt_ns = 0) {
    bench_.config.payload_mtu = 4096;
    bench_.transport.cwnd_bytes = packets * kNominal;
    bench_.transport.base_rtt_ns = base_rtt_ns;
    bench_.transport.congestion = base_rtt_ns != 0 ? 1 : 0;
    bench_.SetConfig();
    bench_.Run(4);
  }
};

TEST_F(ReturnTxCongestionTest, FixedWindowIsWhatLeavesUnanswered) {
  constexpr uint32_t kAsked = 26;
  uint32_t pdc = 0;
  for (const uint32_t packets : {1U, 2U, 5U, 7U, 25U, 26U, 63U}) {
    SetWindow(packets);
    ++pdc;
    for (uint32_t i = 0; i < kAsked; ++i) Ask(pdc);
    bench_.Run(400);
    ASSERT_EQ(bench_.sent.size(), std::min(packets, kAsked)) << packets;
    EXPECT_EQ(bench_.sent.back().ar, 1) << "the window is closed";
    bench_.sent.clear();
    // What an ACK gives back leaves.
    bench_.acks.push_back(Ack(pdc, kReturnStart));
    bench_.Run(50);
    EXPECT_EQ(bench_.sent.size(), packets < kAsked ? 1U : 0U) << packets;
    bench_.sent.clear();
  }
}

TEST_F(ReturnTxCongestionTest, ClosedWindowDelaysNoOther) {
  SetWindow(2);
  for (int i = 0; i < 6; ++i) Ask(5);
  for (int i = 0; i < 2; ++i) Ask(6);
  bench_.Run(100);
  std::map<uint32_t, int> sent;
  for (const rtl::ReturnPacket& packet : bench_.sent) ++sent[packet.pdc];
  EXPECT_EQ(sent[5], 2);
  EXPECT_EQ(sent[6], 2);
}

// What is sent again counts as what was sent first did.
TEST_F(ReturnTxCongestionTest, WindowHoldsForWhatIsSentAgain) {
  SetWindow(4);
  for (int i = 0; i < 10; ++i) Ask(5);
  bench_.Run(100);
  EXPECT_EQ(Sent(), (Psns{0, 1, 2, 3}));
  bench_.acks.push_back(Nack(5, kReturnStart + 1, NackCode::kRodOoo));
  bench_.Run(100);
  EXPECT_EQ(Sent(), (Psns{0, 1, 2, 3}));
  bench_.acks.push_back(Ack(5, kReturnStart + 2));
  bench_.Run(100);
  EXPECT_EQ(Sent(), (Psns{4, 5, 6}));
}

// Initiators behind one line; they answer what asks for it or came marked.
class Bottleneck {
 public:
  struct Options {
    uint32_t delay = 100;  // Cycles, each way.
    uint32_t service = 8;  // Cycles for a packet.
    size_t queue = 24;     // Packets.
    size_t marking = 6;
  };
  explicit Bottleneck(const Options& options) : options_(options) {}

  void Take(const rtl::ReturnPacket& packet, uint64_t now) {
    const auto waiting = static_cast<size_t>(std::count_if(
        line_.begin(), line_.end(),
        [now](const Frame& frame) { return frame.leaves > now; }));
    if (waiting >= options_.queue) {
      ++lost;
      return;
    }
    const bool mark = waiting >= options_.marking;
    marked += mark ? 1 : 0;
    free_ = std::max(free_, now) + options_.service;
    line_.push_back({packet, mark, free_});
  }
  // At most one packet that arrived.
  bool Arrives(uint64_t now, rtl::ReturnPacket* packet, bool* mark) {
    if (line_.empty() || now < line_.front().leaves + options_.delay) {
      return false;
    }
    *packet = line_.front().packet;
    *mark = line_.front().mark;
    line_.pop_front();
    return true;
  }

  uint64_t lost = 0, marked = 0;

 private:
  struct Frame {
    rtl::ReturnPacket packet;
    bool mark;
    uint64_t leaves;
  };
  Options options_;
  std::deque<Frame> line_;
  uint64_t free_ = 0;
};

struct Shared {
  uint64_t cycles = 0, lost = 0, marked = 0;
  uint32_t least = 0, most = 0;  // Packets of the PDCs, halfway.
};

class ReturnIncastTest : public ReturnTxCongestionTest {
 protected:
  static constexpr uint32_t kEach = 600;
  static constexpr uint32_t kDelay = 100;

  Shared Share(const std::vector<uint32_t>& pdcs) {
    Bottleneck line({.delay = kDelay});
    Shared outcome;
    bench_.config.rto_ticks = 3000;
    bench_.config.rto_max_ticks = 6000;
    bench_.config.dead_ticks = 1000000;
    bench_.SetConfig();
    bench_.ticking = true;
    uint32_t done = 0;
    uint64_t now = 0;
    for (; now < 400000 && done < kEach * pdcs.size(); ++now) {
      if (bench_.jobs.empty()) {
        const uint32_t pdc = pdcs[now % pdcs.size()];
        if (asked_[pdc] < kEach && bench_.HasRoom(pdc)) Ask(pdc);
      }
      bench_.Cycle();
      for (const rtl::ReturnPacket& packet : bench_.sent)
        line.Take(packet, now);
      bench_.sent.clear();
      rtl::ReturnPacket packet;
      bool mark = false;
      if (line.Arrives(now, &packet, &mark)) done += Receive(packet, mark, now);
      while (!back_.empty() && back_.front().at <= now) {
        bench_.acks.push_back(back_.front().ack);
        back_.pop_front();
      }
      if (done <= kEach * pdcs.size() / 2) {
        outcome.least = outcome.most = next_[pdcs[0]];
        for (const uint32_t pdc : pdcs) {
          outcome.least = std::min(outcome.least, next_[pdc]);
          outcome.most = std::max(outcome.most, next_[pdc]);
        }
      }
    }
    EXPECT_EQ(done, kEach * pdcs.size());
    outcome.cycles = now;
    outcome.lost = line.lost;
    outcome.marked = line.marked;
    return outcome;
  }

 private:
  struct Answer {
    rtl::AckEvent ack;
    uint64_t at;
  };
  uint32_t Receive(const rtl::ReturnPacket& packet, bool mark, uint64_t now) {
    uint32_t& next = next_[packet.pdc];
    const uint32_t number = packet.psn - kReturnStart;
    if (number == next) {
      ++next;
      gap_[packet.pdc] = false;
      if (packet.ar != 0 || packet.retx != 0 || mark) {
        rtl::AckEvent ack = Ack(packet.pdc, packet.psn);
        ack.m = mark ? 1 : 0;
        ack.retx = packet.retx;
        back_.push_back({ack, now + kDelay});
      }
      return 1;
    }
    if (static_cast<int32_t>(number - next) < 0) {
      back_.push_back({Ack(packet.pdc, kReturnStart + next - 1), now + kDelay});
    } else if (!gap_[packet.pdc] || packet.retx != 0) {
      back_.push_back(
          {Nack(packet.pdc, packet.psn, NackCode::kRodOoo), now + kDelay});
      gap_[packet.pdc] = true;
    }
    return 0;
  }

  std::map<uint32_t, uint32_t> next_;
  std::map<uint32_t, bool> gap_;
  std::deque<Answer> back_;
};

TEST_F(ReturnIncastTest, WithoutAWindowTheLineLosesALot) {
  EXPECT_GT(Share({3, 70, 140, 255}).lost, 2000U);
}

TEST_F(ReturnIncastTest, NsccSharesTheLineAndLosesLittleThere) {
  SetWindow(26, 2 * kDelay * ReturnTxBench::kCycleNs);
  const Shared with = Share({3, 70, 140, 255});
  EXPECT_LT(with.lost, 400U);
  EXPECT_GT(with.marked, 0U);
  EXPECT_LT(with.cycles, 4 * kEach * 8 * 3) << "the line was idle";
  EXPECT_GT(with.least, with.most / 4);
}

TEST_F(ReturnIncastTest, OneReaderFillsTheLine) {
  SetWindow(26, 2 * kDelay * ReturnTxBench::kCycleNs);
  const Shared alone = Share({9});
  EXPECT_EQ(alone.lost, 0U);
  EXPECT_LT(alone.cycles, kEach * 8 * 3 / 2);
}

}  // namespace
}  // namespace heddle::test
