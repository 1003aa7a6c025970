// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <deque>
#include <vector>

#include "Vheddle_slow_path.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/net/stream.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/records/packed.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

namespace wire = contract::wire;
using contract::Icmpv6Type;
using contract::Statistic;
using Bytes = std::vector<uint8_t>;

constexpr uint16_t kIpv4 = 0x0800;
constexpr uint16_t kArp = 0x0806;
constexpr uint16_t kIpv6 = 0x86dd;
constexpr uint16_t kVlan = 0x8100;
constexpr uint8_t kIcmp = 58;
constexpr int kUntagged = -1;
constexpr uint32_t kWindow = contract::kSlowPathWindowTicks;

// A frame of `size` bytes whose contents are noise but for what decides.
Bytes Frame(sim::base::Random& rng, size_t size, uint16_t ethertype,
            int vlan = kUntagged) {
  Bytes frame = RandomBytes(rng, size);
  size_t at = 12;
  if (vlan != kUntagged) {
    frame[at] = kVlan >> 8;
    frame[at + 1] = kVlan & 255;
    // Priority bits are nobody's business.
    frame[at + 2] = static_cast<uint8_t>((frame[at + 2] & 0xf0) | vlan >> 8);
    frame[at + 3] = static_cast<uint8_t>(vlan);
    at += 4;
  }
  frame[at] = static_cast<uint8_t>(ethertype >> 8);
  frame[at + 1] = static_cast<uint8_t>(ethertype);
  return frame;
}

Bytes Icmp(sim::base::Random& rng, size_t size, uint8_t type,
           int vlan = kUntagged, uint8_t next_header = kIcmp) {
  Bytes frame = Frame(rng, size, kIpv6, vlan);
  const size_t ip = vlan == kUntagged ? 14 : 18;
  frame[ip + 6] = next_header;
  frame[ip + wire::Ipv6::kBytes] = type;
  return frame;
}

class SlowPathTest : public ::testing::Test {
 protected:
  SlowPathTest() { Configure(); }

  void Configure() { rtl::Drive(dut_->port_i, port_); }

  void Cycle() {
    dut_.Settle();
    for (size_t i = 0; i < stats_.size(); ++i) {
      stats_[i] += dut_->stat_o >> i & 1;
    }
    if (dut_->head_valid_o && dut_->head_ready_i) {
      heads_.push_back(rtl::Sample<rtl::FrameHead>(dut_->head_o));
    }
    dut_.Tick();
  }
  void Send(const Bytes& frame, bool bad = false) {
    for (size_t i = 0; i < Beats(frame.size()); ++i) {
      PutBeat(dut_->tdata_i, frame, i, rng_);
      const bool last = i + 1 == Beats(frame.size());
      const size_t bytes = last ? frame.size() - i * kStrobe : kStrobe;
      for (size_t lane = 0; lane < kStrobe; ++lane) {
        PutBits(dut_->tkeep_i, lane, 1, lane < bytes);
      }
      dut_->tvalid_i = 1;
      dut_->tlast_i = last;
      dut_->tuser_i = last && bad;
      Cycle();
      // A gap shows that nothing depends on beats in a row.
      dut_->tvalid_i = 0;
      if (gaps_ && rng_.Chance(0.3)) Cycle();
    }
  }
  void Idle(int cycles) {
    for (int i = 0; i < cycles; ++i) Cycle();
  }
  void Pop() {
    dut_->rx_pop_i = 1;
    Cycle();
    dut_->rx_pop_i = 0;
  }
  // The waiting frame, read word by word.
  Bytes Waiting() {
    Bytes frame;
    dut_.Settle();
    const size_t size = dut_->rx_bytes_o;
    for (size_t at = 0; at < size; at += 4) {
      dut_->rx_word_i = static_cast<uint8_t>(at / 4);
      Cycle();
      dut_.Settle();
      for (size_t i = at; i < at + 4 && i < size; ++i) {
        frame.push_back(
            static_cast<uint8_t>(dut_->rx_data_o >> (8 * (i - at))));
      }
    }
    return frame;
  }
  uint64_t Count(Statistic statistic) const {
    return stats_[static_cast<size_t>(statistic)];
  }
  // Exactly `frame` was handed over.
  void ExpectTaken(const Bytes& frame) {
    const uint64_t before = Count(Statistic::kSlowPathRx);
    Send(frame);
    Idle(2);
    EXPECT_EQ(Count(Statistic::kSlowPathRx), before + 1);
    EXPECT_EQ(Waiting(), frame);
    Pop();
    EXPECT_EQ(dut_->rx_bytes_o, 0);
    EXPECT_EQ(Count(Statistic::kSlowPathDrops), 0u);
    WindowPasses();
  }
  // `frame` is none of the slow path's.
  void ExpectIgnored(const Bytes& frame, bool bad = false) {
    const uint64_t before = Count(Statistic::kSlowPathRx);
    Send(frame, bad);
    Idle(2);
    EXPECT_EQ(dut_->rx_bytes_o, 0);
    EXPECT_EQ(Count(Statistic::kSlowPathRx), before);
    EXPECT_EQ(Count(Statistic::kSlowPathDrops), 0u);
  }
  void WindowPasses() {
    dut_->tick_i = 1;
    Idle(kWindow);
    dut_->tick_i = 0;
    Idle(1);
    EXPECT_EQ(dut_->deadline_valid_o, 0);
  }

  sim::base::Random rng_{TestSeed()};
  sim::model::ClockedModel<Vheddle_slow_path> dut_;
  contract::PortCfg port_{.enable = 1};
  std::array<uint64_t, 64> stats_{};
  std::vector<rtl::FrameHead> heads_;
  bool gaps_ = false;
};

TEST_F(SlowPathTest, TakesArpAndNeighborDiscovery) {
  for (const bool gaps : {false, true}) {
    gaps_ = gaps;
    ExpectTaken(Frame(rng_, 60, kArp));
    ExpectTaken(Icmp(rng_, 86, 135));
    ExpectTaken(Icmp(rng_, 86, 136));
    ExpectTaken(Frame(rng_, contract::kSlowPathRxBytes, kArp));
    ExpectTaken(Frame(rng_, 61, kArp));
  }
}

TEST_F(SlowPathTest, TakesOnlyFramesOfThePortsVlan) {
  ExpectTaken(Frame(rng_, 64, kArp, 0));  // Priority-tagged.
  ExpectIgnored(Frame(rng_, 64, kArp, 5));
  port_.vlan = 0x805;
  Configure();
  ExpectTaken(Frame(rng_, 64, kArp, 0x805));
  ExpectTaken(Icmp(rng_, 90, 135, 0x805));
  ExpectTaken(Icmp(rng_, 90, 136, 0x805));
  ExpectIgnored(Frame(rng_, 64, kArp));
  ExpectIgnored(Frame(rng_, 64, kArp, 0));
  ExpectIgnored(Frame(rng_, 64, kArp, 5));
  ExpectIgnored(Icmp(rng_, 86, 135));
}

TEST_F(SlowPathTest, LeavesAllOtherFramesToTheParser) {
  ExpectIgnored(Frame(rng_, 100, kIpv4));
  ExpectIgnored(Frame(rng_, 100, 0x88cc));
  ExpectIgnored(Icmp(rng_, 100, 128));                 // Echo.
  ExpectIgnored(Icmp(rng_, 100, 134));                 // Router's.
  ExpectIgnored(Icmp(rng_, 100, 137));                 // Redirect.
  ExpectIgnored(Icmp(rng_, 100, 135, kUntagged, 17));  // UDP.
  ExpectIgnored(Icmp(rng_, 100, 128, 0));
  // A VLAN tag behind the port's own.
  Bytes twice = Frame(rng_, 100, kVlan, 0);
  twice[20] = 0x08;
  twice[21] = 0x06;
  ExpectIgnored(twice);
}

TEST_F(SlowPathTest, BadFramesAndADisabledPortHandNothingOver) {
  ExpectIgnored(Frame(rng_, 60, kArp), true);
  port_.enable = 0;
  Configure();
  ExpectIgnored(Frame(rng_, 60, kArp));
}

TEST_F(SlowPathTest, ALongerFrameIsDroppedAndCounted) {
  for (const size_t size : {257, 300, 1500}) {
    Send(Frame(rng_, size, kArp));
    Idle(2);
    EXPECT_EQ(dut_->rx_bytes_o, 0);
  }
  Send(Frame(rng_, 1500, kIpv4));
  Idle(2);
  EXPECT_EQ(Count(Statistic::kSlowPathDrops), 3u);
}

TEST_F(SlowPathTest, KeepsAFewFramesInOrderAndDropsTheRest) {
  std::vector<Bytes> frames;
  for (size_t i = 0; i < contract::kSlowPathFrames + 2; ++i) {
    frames.push_back(Frame(rng_, 60 + 7 * i, kArp));
    Send(frames.back());
  }
  Idle(2);
  EXPECT_EQ(Count(Statistic::kSlowPathRx), contract::kSlowPathFrames);
  EXPECT_EQ(Count(Statistic::kSlowPathDrops), 2u);
  Pop();
  frames.push_back(Frame(rng_, 60, kArp));
  Send(frames.back());
  Idle(2);
  for (const size_t i : {1, 2, 3, 6}) {
    EXPECT_EQ(Waiting(), frames[i]) << i;
    Pop();
  }
  EXPECT_EQ(dut_->rx_bytes_o, 0);
  Pop();  // Of nothing.
  EXPECT_EQ(dut_->rx_bytes_o, 0);
  EXPECT_EQ(dut_->idle_o, 1);
}

TEST_F(SlowPathTest, LimitsTheFramesOfAWindowAndSaysWhenItEnds) {
  uint64_t dropped = 0;
  for (int window = 0; window < 3; ++window) {
    for (size_t i = 0; i < contract::kSlowPathRate + 3; ++i) {
      Send(Frame(rng_, 60, kArp));
      Idle(2);
      EXPECT_EQ(dut_->rx_bytes_o != 0, i < contract::kSlowPathRate) << i;
      Pop();
    }
    dropped += 3;
    EXPECT_EQ(Count(Statistic::kSlowPathDrops), dropped);
    EXPECT_EQ(dut_->deadline_valid_o, 1);
    EXPECT_EQ(dut_->deadline_o, kWindow);
    dut_->tick_i = 1;
    Idle(kWindow - 1);
    dut_->tick_i = 0;
    Idle(1);
    EXPECT_EQ(dut_->deadline_o, 1u);
    Send(Frame(rng_, 60, kArp));
    Idle(2);
    EXPECT_EQ(Count(Statistic::kSlowPathDrops), ++dropped);
    dut_->tick_i = 1;
    Idle(1);
    dut_->tick_i = 0;
    Idle(1);
    EXPECT_EQ(dut_->deadline_valid_o, 0);
  }
}

TEST_F(SlowPathTest, RandomTrafficLosesNothingThatItDoesNotCount) {
  dut_->tick_i = 1;  // Windows pass quickly.
  std::deque<Bytes> sent;
  uint64_t wanted = 0;
  uint64_t taken = 0;
  const auto take = [&] {
    const Bytes frame = Waiting();
    while (!sent.empty() && sent.front() != frame) sent.pop_front();
    ASSERT_FALSE(sent.empty()) << "a frame that nobody sent, or out of order";
    sent.pop_front();
    ++taken;
    Pop();
  };
  gaps_ = true;
  for (int i = 0; i < 2000; ++i) {
    const size_t size = 60 + rng_.Below(rng_.Chance(0.1) ? 1400 : 200);
    const bool bad = rng_.Chance(0.1);
    Bytes frame;
    bool slow = true;
    switch (rng_.Below(5)) {
      case 0:
        frame = Frame(rng_, size, kArp);
        break;
      case 1:
        frame = Icmp(rng_, size, 135 + rng_.Below(2) % 2);
        break;
      case 2:
        frame = Icmp(rng_, size, 135 + rng_.Below(2) % 2, 0);
        break;
      case 3:
        frame = Frame(rng_, size, kIpv4);
        slow = false;
        break;
      default:
        frame = Frame(rng_, size, kArp, 9);
        slow = false;
        break;
    }
    wanted += slow && !bad ? 1 : 0;
    if (slow && !bad) sent.push_back(frame);
    Send(frame, bad);
    dut_.Settle();
    if (dut_->rx_bytes_o != 0 && rng_.Chance(0.6)) {
      ASSERT_NO_FATAL_FAILURE(take());
    }
  }
  Idle(2);
  while (dut_->rx_bytes_o != 0) ASSERT_NO_FATAL_FAILURE(take());
  EXPECT_EQ(Count(Statistic::kSlowPathRx), taken);
  EXPECT_EQ(Count(Statistic::kSlowPathRx) + Count(Statistic::kSlowPathDrops),
            wanted);
  EXPECT_GT(taken, wanted / 2);
  EXPECT_LT(taken, wanted);
}

TEST_F(SlowPathTest, FirmwaresFrameIsAHeaderStackThatWaitsForItsTurn) {
  // What was written behind the frame's end is not sent.
  const Bytes window = RandomBytes(rng_, 120);
  const Bytes frame(window.begin(), window.begin() + 90);
  for (size_t at = 0; at < window.size(); at += 4) {
    uint32_t word = 0;
    for (size_t i = at; i < at + 4; ++i) {
      word |= uint32_t{window[i]} << (8 * (i - at));
    }
    dut_->tx_wen_i = 1;
    dut_->tx_word_i = static_cast<uint8_t>(at / 4);
    dut_->tx_data_i = word;
    Cycle();
    dut_->tx_wen_i = 0;
    dut_.Settle();
    EXPECT_EQ(dut_->tx_data_o, word);
  }
  EXPECT_EQ(dut_->idle_o, 1);
  dut_->tx_go_i = 1;
  dut_->tx_bytes_i = 90;
  Cycle();
  dut_->tx_bytes_i = 10;  // Ignored while busy, as is a write.
  dut_->tx_wen_i = 1;
  dut_->tx_word_i = 0;
  dut_->tx_data_i = ~0u;
  Idle(5);
  EXPECT_EQ(dut_->tx_busy_o, 1);
  EXPECT_EQ(dut_->idle_o, 0);
  EXPECT_EQ(Count(Statistic::kSlowPathTx), 0u);
  dut_->tx_go_i = 0;
  dut_->tx_wen_i = 0;
  dut_->head_ready_i = 1;
  Idle(3);
  EXPECT_EQ(dut_->tx_busy_o, 0);
  EXPECT_EQ(Count(Statistic::kSlowPathTx), 1u);
  ASSERT_EQ(heads_.size(), 1u);
  EXPECT_EQ(heads_[0].length, 90);
  EXPECT_EQ(heads_[0].payload_bytes, 0);
  EXPECT_EQ(heads_[0].trailer, 0);
  const Bytes bytes = heads_[0].bytes.WireBytes();
  EXPECT_EQ(Bytes(bytes.begin(), bytes.begin() + 90), frame);
  EXPECT_EQ(Bytes(bytes.begin() + 90, bytes.begin() + 120), Bytes(30, 0));
}

TEST_F(SlowPathTest, ALongerFrameOfFirmwareIsCutAndAnEmptyOneIsNone) {
  dut_->head_ready_i = 1;
  dut_->tx_go_i = 1;
  dut_->tx_bytes_i = 145;
  Cycle();
  dut_->tx_bytes_i = 0;
  Idle(4);
  ASSERT_EQ(heads_.size(), 1u);
  EXPECT_EQ(heads_[0].length, contract::kSlowPathTxBytes);
  // Words beyond a frame do not exist.
  dut_->tx_go_i = 0;
  dut_->tx_wen_i = 1;
  dut_->tx_word_i = 36;
  dut_->tx_data_i = 1;
  Cycle();
  EXPECT_EQ(dut_->tx_data_o, 0u);
}

}  // namespace
}  // namespace heddle::test
