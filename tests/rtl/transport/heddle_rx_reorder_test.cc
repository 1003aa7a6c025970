// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "Vheddle_rx_reorder.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

constexpr unsigned kBeatBytes = sizeof(Vheddle_rx_reorder::pay_data_i);
constexpr uint32_t kSlots = 64;
constexpr int kPatience = 64;
constexpr uint16_t kPacket = 4096;

using Bytes = std::vector<uint8_t>;

// A packet of a WRITE in the midst of its message; the PDC is in its dpdcid.
rtl::RxPacket Packet(uint16_t pdc, uint32_t psn, uint16_t bytes = kPacket) {
  rtl::RxPacket packet;
  packet.pds_type = contract::PdsType::kRodReq;
  packet.dpdcid = pdc;
  packet.psn = psn;
  packet.opcode = static_cast<uint8_t>(contract::SesOpcode::kWrite);
  packet.payload_bytes = bytes;
  return packet;
}

uint8_t ByteOf(const rtl::RxPacket& packet, size_t at) {
  return static_cast<uint8_t>(packet.dpdcid * 131 + packet.psn * 29 + at / 64 +
                              at);
}

// The block with heddle_rx_parser before it, and after it heddle_accept, for
// which each PDC is a ROD PDC of its rules, and heddle_place.
class Buffer {
 public:
  // The decision about a packet.
  struct Decision {
    uint16_t pdc;
    uint32_t psn;
    enum { kAccepted, kKept, kEarly, kDuplicate, kRefused } what;

    bool operator==(const Decision&) const = default;
  };

  void Push(const rtl::RxPacket& packet) {
    packets_.push_back({packet});
    for (size_t at = 0; at < packet.payload_bytes; at += kBeatBytes) {
      arriving_.push_back(Beat(packet, at));
    }
  }
  // A packet that is void two cycles after it was taken.
  void PushSquashed(const rtl::RxPacket& packet) {
    packets_.push_back({packet, true});
  }
  void End(uint16_t pdc) { ends_.push_back(pdc); }

  void Cycle();
  void RunUntilIdle(int limit = 200'000) {
    for (int i = 0; i < limit; ++i) {
      Cycle();
      if (packets_.empty() && arriving_.empty() && !busy_ && ends_.empty() &&
          !inside_ && leaving_.empty() && dut_->idle_o) {
        return;
      }
    }
    FAIL() << "not idle: " << packets_.size() << " packets, " << leaving_.size()
           << " beats to leave";
  }
  std::vector<uint32_t> Accepted(uint16_t pdc) const {
    std::vector<uint32_t> psns;
    for (const Decision& decision : decisions) {
      if (decision.pdc == pdc && decision.what == Decision::kAccepted) {
        psns.push_back(decision.psn);
      }
    }
    return psns;
  }
  size_t Count(decltype(Decision::what) what) const {
    return static_cast<size_t>(
        std::count_if(decisions.begin(), decisions.end(),
                      [&](const Decision& d) { return d.what == what; }));
  }

  std::vector<Decision> decisions;
  std::map<uint16_t, uint32_t> expected;  // By PDC.
  std::map<uint16_t, int> refusals;  // The PDC refuses so many that it expects.
  uint64_t cycle = 0;
  uint64_t moved = 0;       // Beats that left.
  uint64_t last_moved = 0;  // The cycle of the last one.
  bool hold = false;        // heddle_place takes nothing.
  double stall = 0;
  sim::base::Random* random = nullptr;

 private:
  bool Stalls() { return stall > 0 && random->Chance(stall); }
  static Bytes Beat(const rtl::RxPacket& packet, size_t at) {
    Bytes beat(kBeatBytes, 0xee);
    const size_t bytes =
        std::min<size_t>(kBeatBytes, packet.payload_bytes - at);
    for (size_t i = 0; i < bytes; ++i) beat[i] = ByteOf(packet, at + i);
    return beat;
  }
  void Decide();

  sim::model::ClockedModel<Vheddle_rx_reorder> dut_;
  struct Pushed {
    rtl::RxPacket packet;
    bool squashed = false;
  };
  std::deque<Pushed> packets_;
  std::deque<Bytes> arriving_, leaving_;
  std::deque<uint16_t> ends_;
  // heddle_accept decides `packet_`, with `look_`; `entered_` is looked up in
  // the cycle in which nothing is decided.
  bool busy_ = false;
  bool inside_ = false;
  uint64_t squash_at_ = 0;  // The cycle in which what is inside is void.
  rtl::RxPacket packet_;
  rtl::RxPacket entered_;
  rtl::Reorder look_;
};

void Buffer::Decide() {
  const uint16_t pdc = packet_.dpdcid;
  uint32_t& next = expected[pdc];
  const uint32_t ahead = packet_.psn - next;
  Decision decision = {pdc, packet_.psn, Decision::kDuplicate};
  if (ahead == 0 && refusals[pdc] > 0) {
    decision.what = Decision::kRefused;
    --refusals[pdc];
  } else if (ahead == 0) {
    decision.what = Decision::kAccepted;
    ++next;
  } else if (ahead < 512) {
    decision.what =
        look_.room && ahead < kSlots ? Decision::kKept : Decision::kEarly;
  }
  decisions.push_back(decision);
  rtl::ReorderVerdict verdict;
  verdict.decided = true;
  verdict.keep = decision.what == Decision::kKept;
  verdict.early = verdict.keep || decision.what == Decision::kEarly;
  verdict.moved = true;
  verdict.pdc = static_cast<uint8_t>(pdc);
  verdict.expected = next;
  rtl::Drive(dut_->verdict_i, verdict);
  if (verdict.keep) return;
  for (size_t at = 0; at < packet_.payload_bytes; at += kBeatBytes) {
    leaving_.push_back(Beat(packet_, at));
  }
}

void Buffer::Cycle() {
  ++cycle;
  if (!dut_->pkt_valid_i && !packets_.empty() && !Stalls()) {
    dut_->pkt_valid_i = 1;
    rtl::Drive(dut_->pkt_i, packets_.front().packet);
  }
  if (!dut_->pay_valid_i && !arriving_.empty() && !Stalls()) {
    dut_->pay_valid_i = 1;
    std::memcpy(PinBytes(dut_->pay_data_i), arriving_.front().data(),
                kBeatBytes);
  }
  rtl::Drive(dut_->verdict_i, rtl::ReorderVerdict{});
  const bool squashes = squash_at_ == cycle;
  const bool is_void = squash_at_ >= cycle;
  dut_->pkt_squash_i = squashes;
  const bool decides = busy_ && (is_void || !Stalls());
  if (decides) {
    Decide();
  } else if (!busy_ && !inside_ && !ends_.empty()) {
    rtl::ReorderVerdict verdict;
    verdict.ended = true;
    verdict.pdc = static_cast<uint8_t>(ends_.front());
    rtl::Drive(dut_->verdict_i, verdict);
    ends_.pop_front();
  }
  const bool looks = inside_ && !busy_ && !is_void && !Stalls();
  dut_->pkt_ready_i =
      (!inside_ || looks || squashes) && ends_.empty() && !Stalls();
  dut_->pay_ready_i = !hold && !leaving_.empty() && !Stalls();
  rtl::Drive(dut_->look_pkt_i, entered_);
  dut_->look_pdc_i = static_cast<uint8_t>(entered_.dpdcid);
  rtl::Drive(dut_->decided_pkt_i, packet_);
  dut_.Settle();

  if (decides) busy_ = false;
  if (looks) {
    busy_ = true;
    inside_ = false;
    packet_ = entered_;
    look_ = rtl::Sample<rtl::Reorder>(dut_->look_o);
  }
  if (squashes) inside_ = false;
  if (dut_->pay_valid_o && dut_->pay_ready_i) {
    Bytes beat(kBeatBytes);
    std::memcpy(beat.data(), PinBytes(dut_->pay_data_o), kBeatBytes);
    ASSERT_EQ(beat, leaving_.front()) << "beat " << moved;
    leaving_.pop_front();
    ++moved;
    last_moved = cycle;
  }
  const bool pay_taken = dut_->pay_valid_i && dut_->pay_ready_o;
  const bool taken = dut_->pkt_valid_i && dut_->pkt_ready_o;
  if (dut_->pkt_valid_o && dut_->pkt_ready_i) {
    inside_ = true;
    entered_ = rtl::Sample<rtl::RxPacket>(dut_->pkt_o);
  }
  dut_.Tick();
  if (pay_taken) {
    arriving_.pop_front();
    dut_->pay_valid_i = 0;
  }
  if (taken) {
    if (packets_.front().squashed) squash_at_ = cycle + 2;
    packets_.pop_front();
    dut_->pkt_valid_i = 0;
  }
}

using Decision = Buffer::Decision;

TEST(RxReorderTest, WhatFollowsAMissingPacketIsOfferedWhenItIsExpected) {
  Buffer buffer;
  for (const uint32_t psn : {0, 2, 3, 4, 1}) buffer.Push(Packet(7, psn));
  buffer.RunUntilIdle();
  buffer.Push(Packet(7, 5));
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Accepted(7), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(buffer.Count(Decision::kKept), 3u);
  EXPECT_EQ(buffer.Count(Decision::kEarly), 0u);
}

TEST(RxReorderTest, PacketsOfOthersPassMeanwhile) {
  Buffer buffer;
  for (const uint32_t psn : {1, 2}) buffer.Push(Packet(7, psn));
  for (const uint32_t psn : {0, 1, 2}) buffer.Push(Packet(8, psn));
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Accepted(8).size(), 3u);
  EXPECT_EQ(buffer.Accepted(7).size(), 0u);
  buffer.Push(Packet(7, 0));
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Accepted(7).size(), 3u);
}

TEST(RxReorderTest, SquashedPacketsLeaveNoTrace) {
  Buffer buffer;
  for (const uint32_t psn : {1, 0, 2, 3, 4}) {
    buffer.PushSquashed(Packet(7, psn));
    buffer.Push(Packet(7, psn));
    buffer.PushSquashed(Packet(8, psn));
  }
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Accepted(7), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(buffer.Count(Decision::kKept), 1u);
  EXPECT_EQ(buffer.decisions.size(), 6u) << "one is offered twice";
}

TEST(RxReorderTest, SecondGapWaitsForItsPacket) {
  Buffer buffer;
  for (const uint32_t psn : {1, 2, 4, 5, 0, 6, 3}) {
    buffer.Push(Packet(7, psn));
  }
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Accepted(7), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(RxReorderTest, OnlyWhatLastsLongIsKept) {
  struct Case {
    const char* what;
    rtl::RxPacket packet;
    bool kept;
  };
  std::vector<Case> cases = {
      {"rest of a message", Packet(1, 1, 8), true},
      {"whole message of 1 KiB", Packet(1, 1, 1024), true},
      {"short message", Packet(1, 1, 1023), false},
      {"longer than a slot", Packet(1, 1, kPacket + 1), false},
      {"SYN", Packet(1, 1), false},
      {"READ of 4 KiB", Packet(1, 1, 0), true},
      {"short READ", Packet(1, 1, 0), false},
  };
  cases[1].packet.som = cases[2].packet.som = true;
  cases[4].packet.syn = true;
  for (size_t i : {5, 6}) {
    cases[i].packet.som = true;
    cases[i].packet.opcode = static_cast<uint8_t>(contract::SesOpcode::kRead);
    cases[i].packet.read_bytes = i == 5 ? kPacket : 8;
  }
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Buffer buffer;
    buffer.Push(c.packet);
    buffer.Push(Packet(1, 0));
    buffer.RunUntilIdle();
    EXPECT_EQ(buffer.Accepted(1).size(), c.kept ? 2u : 1u);
    EXPECT_EQ(buffer.Count(Decision::kEarly), c.kept ? 0u : 1u);
  }
}

TEST(RxReorderTest, OnePdcUsesTheBufferUntilPatienceEnds) {
  Buffer buffer;
  buffer.Push(Packet(1, 1));
  for (int i = 0; i < kPatience; ++i) {
    buffer.Push(Packet(2, static_cast<uint32_t>(1 + i % 8)));
  }
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Count(Decision::kEarly), size_t{kPatience});
  // The packet that was kept is gone: it is expected, not offered.
  buffer.Push(Packet(1, 0));
  buffer.Push(Packet(2, 1));
  buffer.Push(Packet(2, 0));
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Accepted(1), (std::vector<uint32_t>{0}));
  EXPECT_EQ(buffer.Accepted(2), (std::vector<uint32_t>{0, 1}));
}

TEST(RxReorderTest, ProgressOfThePdcRenewsItsUse) {
  Buffer buffer;
  buffer.Push(Packet(1, 1));
  buffer.Push(Packet(1, 3));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kPatience - 1; ++i) buffer.Push(Packet(2, 1));
    buffer.Push(Packet(1, static_cast<uint32_t>(2 * round)));
  }
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Accepted(1), (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(RxReorderTest, NothingIsKeptOfAPdcThatEnds) {
  Buffer buffer;
  for (const uint32_t psn : {1, 2, 3}) buffer.Push(Packet(1, psn));
  buffer.RunUntilIdle();
  buffer.End(1);
  buffer.RunUntilIdle();
  buffer.expected[1] = 0;
  buffer.Push(Packet(1, 0));
  buffer.Push(Packet(2, 1));
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Accepted(1), (std::vector<uint32_t>{0}));
  EXPECT_EQ(buffer.Count(Decision::kKept), 4u) << "the buffer is free";
}

// The copy that arrives is accepted before the one that is kept is offered.
TEST(RxReorderTest, NothingStaysKeptOfWhichACopyWasAccepted) {
  Buffer buffer;
  buffer.hold = true;
  for (const uint32_t psn : {0, 1, 2}) buffer.Push(Packet(2, psn));
  for (const uint32_t psn : {1, 0, 1}) buffer.Push(Packet(1, psn));
  while (buffer.decisions.size() != 6) buffer.Cycle();
  EXPECT_EQ(buffer.Accepted(1), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(buffer.Count(Decision::kKept), 1u);
  buffer.hold = false;
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Count(Decision::kDuplicate), 0u);
  buffer.Push(Packet(2, 4));
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Count(Decision::kKept), 2u) << "the buffer is free";
}

TEST(RxReorderTest, RefusedPacketIsNotOfferedTwice) {
  Buffer buffer;
  for (const uint32_t psn : {2, 3, 1}) buffer.Push(Packet(1, psn));
  buffer.RunUntilIdle();
  buffer.Push(Packet(1, 0));
  buffer.refusals[1] = 0;
  buffer.RunUntilIdle();
  ASSERT_EQ(buffer.Accepted(1).size(), 4u);
  for (const uint32_t psn : {5, 6}) buffer.Push(Packet(1, psn));
  buffer.RunUntilIdle();
  buffer.Push(Packet(1, 4));
  buffer.RunUntilIdle();
  for (const uint32_t psn : {8, 9}) buffer.Push(Packet(1, psn));
  buffer.RunUntilIdle();
  // 7 is accepted, 8 is offered and refused, 9 stays.
  buffer.Push(Packet(1, 7));
  while (buffer.Accepted(1).size() != 8) buffer.Cycle();
  buffer.refusals[1] = 1;
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Count(Decision::kRefused), 1u);
  EXPECT_EQ(buffer.expected[1], 8u);
  buffer.Push(Packet(1, 8));
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.expected[1], 10u);
}

// A backlog is kept here: the parser's store has no room for it.
TEST(RxReorderTest, ArrivalsAtLineRateAreTakenWhileOthersLeave) {
  constexpr uint32_t kPackets = 300;
  constexpr uint64_t kBeats = kPacket / kBeatBytes;
  Buffer buffer;
  buffer.expected[1] = 0;
  for (uint32_t psn = 1; psn < 20; ++psn) buffer.Push(Packet(1, psn));
  buffer.Push(Packet(1, 0));
  for (uint32_t psn = 20; psn < kPackets; ++psn) buffer.Push(Packet(1, psn));
  while (buffer.moved == 0) buffer.Cycle();
  const uint64_t begin = buffer.cycle;
  EXPECT_LT(begin, 21 * kBeats);
  buffer.RunUntilIdle();
  EXPECT_EQ(buffer.Accepted(1).size(), size_t{kPackets});
  EXPECT_EQ(buffer.moved, kPackets * kBeats);
  // A bubble in each packet would be 300 cycles.
  EXPECT_LT(buffer.last_moved - begin, kPackets * kBeats + 32);
}

// Senders whose packets are dropped retransmit them a round trip later and send
// others again; one refuses, one ends, all slots are used, heddle_place stalls.
TEST(RxReorderTest, RandomSendersArriveOnceAndInOrder) {
  sim::base::Random random(TestSeed());
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Buffer buffer;
    buffer.random = &random;
    buffer.stall = random.Chance(0.5) ? 0 : 0.3;
    const uint16_t pdcs = static_cast<uint16_t>(1 + random.Below(4));
    const double loss = random.Chance(0.5) ? 0.02 : 0.2;
    const uint32_t trip = 1 + random.Below(80);
    struct Missing {
      uint32_t at;
      uint16_t pdc;
      uint32_t psn;
    };
    std::map<uint16_t, uint32_t> next;
    for (uint16_t pdc = 0; pdc < pdcs; ++pdc) {
      next[pdc] = buffer.expected[pdc] =
          random.Chance(0.3) ? 0xffff'ffe0u : random.Below(1000);
      buffer.refusals[pdc] = 0;
    }
    const std::map<uint16_t, uint32_t> first = next;
    std::map<std::pair<uint16_t, uint32_t>, rtl::RxPacket> sent;
    std::deque<Missing> missing;
    const auto push = [&](uint16_t pdc, uint32_t psn, uint32_t now) {
      auto& packet = sent[{pdc, psn}];
      if (packet.dpdcid == 0) {
        const uint16_t bytes = static_cast<uint16_t>(
            random.Chance(0.7) ? 256 : 1 + random.Below(600));
        packet = Packet(pdc, psn, bytes);
        packet.source_port = 1;
        packet.som = random.Chance(0.02);  // Short: cannot be kept.
      }
      if (random.Chance(loss)) {
        missing.push_back({now + trip, pdc, psn});
      } else {
        buffer.Push(packet);
      }
    };
    for (uint32_t step = 0; step < 400; ++step) {
      while (!missing.empty() && missing.front().at <= step) {
        const Missing again = missing.front();
        missing.pop_front();
        push(again.pdc, again.psn, step);
      }
      const uint16_t pdc = static_cast<uint16_t>(random.Below(pdcs));
      if (random.Chance(0.05) && next[pdc] != first.at(pdc)) {
        push(pdc, next[pdc] - 1, step);
      }
      push(pdc, next[pdc]++, step);
      if (random.Chance(0.02)) buffer.refusals[pdc] = 1;
      if (random.Chance(0.1)) buffer.PushSquashed(Packet(pdc, next[pdc]));
      for (uint32_t i = random.Below(40); i > 0; --i) buffer.Cycle();
    }
    // All that is still missing, in order, until nothing is.
    for (uint16_t pdc = 0; pdc < pdcs; ++pdc) {
      buffer.RunUntilIdle();
      buffer.refusals[pdc] = 0;
      while (buffer.expected[pdc] != next[pdc]) {
        buffer.Push(sent.at({pdc, buffer.expected[pdc]}));
        buffer.RunUntilIdle();
        if (HasFatalFailure()) return;
      }
      uint32_t psn = first.at(pdc);
      for (const uint32_t accepted : buffer.Accepted(pdc)) {
        ASSERT_EQ(accepted, psn++);
      }
      ASSERT_EQ(psn, next[pdc]);
    }
  }
}

}  // namespace
}  // namespace heddle::test
