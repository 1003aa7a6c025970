// SPDX-License-Identifier: Apache-2.0
// Requests that the network trimmed: what is answered, and sent again.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/seed.h"
#include "tests/soft/transport/world.h"

namespace heddle::soft::transport {
namespace {

using contract::NackCode;
using contract::PdsType;
using contract::Statistic;
using contract::wire::PdsAck;
using contract::wire::PdsNack;
using contract::wire::PdsPrologue;
using contract::wire::PdsRequest;
using wire::Trim;

TestMessage Message(uint64_t serial, bool ordered, uint32_t packets = 1) {
  TestMessage message;
  message.serial = serial;
  message.ordered = ordered;
  message.packets = packets;
  message.peer = World::Address(1);
  return message;
}

bool IsRequest(std::span<const uint8_t> bytes) {
  const auto type = PdsPrologue::Decode(bytes.data()).type;
  return type == PdsType::kRodReq || type == PdsType::kRudReq;
}

// Node 0 has a PDC to node 1; what node 1 answers from then on is kept.
class TrimTest : public testing::TestWithParam<bool> {
 protected:
  TrimTest() {
    TransportLimits limits;
    limits.pdcs = 4;
    limits.messages = 512;
    world_ = std::make_unique<World>(TestSeed(), 2, limits);
    world()[0].wire.filter = [this](std::span<const uint8_t> bytes) {
      if (IsRequest(bytes)) {
        last_ = PdsRequest::Decode(bytes.data());
      }
      return true;
    };
    for (const uint64_t serial : {1, 2}) {
      world()[0].client.Send(Message(serial, ordered()));
      EXPECT_TRUE(world_->Run());
    }
    world()[1].wire.filter = [this](std::span<const uint8_t> bytes) {
      answers_.emplace_back(bytes.begin(), bytes.end());
      return true;
    };
    next_ = last_.psn + 1;
  }

  World& world() { return *world_; }
  bool ordered() const { return GetParam(); }
  uint64_t Count(Statistic which) { return world_->Total(which); }

  // What node 1 answers to a trimmed packet of the PDC.
  std::optional<std::vector<uint8_t>> Answer(PdsRequest header,
                                             Trim trim = Trim::kPath) {
    answers_.clear();
    std::vector<uint8_t> bytes(16, 0xee);
    header.Encode(bytes.data());
    world_->Inject(0, 1, bytes, 0, trim);
    world_->RunFor(20'000);
    EXPECT_LE(answers_.size(), 1u);
    return answers_.empty() ? std::nullopt : std::optional(answers_.front());
  }
  PdsRequest At(uint32_t psn) const {
    PdsRequest header = last_;
    header.psn = psn;
    return header;
  }
  void ExpectNack(const std::optional<std::vector<uint8_t>>& answer,
                  NackCode code, uint32_t psn) {
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(PdsPrologue::Decode(answer->data()).type, PdsType::kNack);
    const auto nack = PdsNack::Decode(answer->data());
    EXPECT_EQ(nack.nack_code, code);
    EXPECT_EQ(nack.nack_psn, psn);
    EXPECT_EQ(nack.spdcid, last_.dpdcid);
    EXPECT_EQ(nack.dpdcid, last_.spdcid);
    EXPECT_EQ(nack.payload, 0u);
  }

  std::unique_ptr<World> world_;
  std::vector<std::vector<uint8_t>> answers_;
  PdsRequest last_;    // That node 0 sent.
  uint32_t next_ = 0;  // PSN that node 1 expects.
  bool again_ = false;
};

INSTANTIATE_TEST_SUITE_P(Mode, TrimTest, testing::Bool(), [](const auto& rod) {
  return rod.param ? "Rod" : "Rud";
});

TEST_P(TrimTest, MissingPacketIsNackedEachTime) {
  ExpectNack(Answer(At(next_)), NackCode::kTrimmed, next_);
  ExpectNack(Answer(At(next_), Trim::kLasthop), NackCode::kTrimmedLasthop,
             next_);
  const auto ahead = Answer(At(next_ + 2));
  if (ordered()) {
    EXPECT_FALSE(ahead.has_value()) << "the gap is known";
  } else {
    ExpectNack(ahead, NackCode::kTrimmed, next_ + 2);
  }
  EXPECT_EQ(Count(Statistic::kRxTrimmed), 3u);
  EXPECT_EQ(Count(Statistic::kDropTrimmed), 0u);
}

TEST_P(TrimTest, TrimmedPacketBehindALossShowsTheGap) {
  ExpectNack(Answer(At(next_ + 2)), NackCode::kTrimmed, next_ + 2);
}

TEST_P(TrimTest, DuplicateIsAcknowledgedAgain) {
  const auto answer = Answer(At(next_ - 1));
  ASSERT_TRUE(answer.has_value());
  const auto ack = PdsAck::Decode(answer->data());
  EXPECT_EQ(ack.type, ordered() ? PdsType::kAck : PdsType::kAckCc);
  EXPECT_EQ(ack.cack_psn, next_ - 1);
  EXPECT_EQ(Count(Statistic::kRxDuplicates), 1u);
  EXPECT_EQ(Count(Statistic::kRxTrimmed), 0u);
}

TEST_P(TrimTest, WhatNoKnownPdcMissesIsDiscardedAndCounted) {
  uint64_t count = 0;
  const auto discarded = [&](PdsRequest header) {
    EXPECT_FALSE(Answer(header).has_value());
    EXPECT_EQ(Count(Statistic::kDropTrimmed), ++count);
  };
  discarded(At(next_ + 600));
  discarded(At(next_ - 0x9000));
  PdsRequest header = At(next_);
  header.dpdcid ^= 1;
  discarded(header);
  header = At(next_);
  header.spdcid ^= 1;
  discarded(header);
  header = At(next_);
  header.type = ordered() ? PdsType::kRudReq : PdsType::kRodReq;
  discarded(header);
  header = At(next_);
  header.syn = 1;
  header.spdcid ^= 1;  // A PDC that it would open.
  discarded(header);
  for (const PdsType type : {PdsType::kUudReq, PdsType::kCp, PdsType::kNack,
                             PdsType::kAck, PdsType::kAckCc}) {
    header = At(next_);
    header.type = type;
    discarded(header);
  }
  world()[0].client.Send(Message(3, ordered()));
  EXPECT_TRUE(world_->Run());
  EXPECT_EQ(world()[0].client.endings.size(), 3u);
}

// A trimmed retransmission overtakes the one that closes the gap, and nothing
// follows it.
TEST_P(TrimTest, TrimmedTailOfAPassIsNackedWhenItIsExpected) {
  const auto trim = [this](PdsRequest header) {
    std::vector<uint8_t> bytes(16, 0xee);
    header.Encode(bytes.data());
    world_->Inject(0, 1, bytes, 0, Trim::kLasthop);
  };
  world()[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    const PdsRequest header = PdsRequest::Decode(bytes.data());
    if (!IsRequest(bytes) || (header.retx != 0 && header.psn == next_ + 1)) {
      return true;
    }
    if (header.psn == next_) {
      PdsRequest cut = header;
      cut.psn += header.retx != 0 ? 2 : 0;
      trim(cut);
      return header.retx != 0;
    }
    // The retransmission that was trimmed, but not the next one.
    return header.retx == 0 || std::exchange(again_, true);
  };
  world()[0].client.Send(Message(3, ordered(), 3));
  EXPECT_TRUE(world_->Run());
  EXPECT_EQ(world()[0].client.endings.size(), 3u);
  EXPECT_EQ(Count(Statistic::kTimeouts), 0u);
}

// No packet is lost for good, and on RUD none waits for its timer: each is
// NACKed, and sent again alone. On ROD the trimmed retransmission of a packet
// that was accepted meanwhile may hide one behind it.
TEST_P(TrimTest, ANetworkThatTrimsLosesNothingAndRudNeedsNoTimer) {
  world()[1].wire.filter = nullptr;
  // Longer than any packet is trimmed in a row.
  world().port.rto_ticks = world().port.rto_max_ticks = 100'000;
  world().Configure();
  world().weather.trimming = 0.3;
  for (uint64_t i = 3; i < 200; ++i) {
    world()[0].client.Send(Message(i, ordered(), 5));
  }
  const uint64_t before = Count(Statistic::kTxRequests);
  ASSERT_TRUE(world_->Run());
  EXPECT_EQ(world()[0].client.endings.size(), 199u);
  const uint64_t sent = Count(Statistic::kTxRequests) - before;
  EXPECT_GT(Count(Statistic::kRxTrimmed), sent / 5);
  if (ordered()) {
    EXPECT_LE(Count(Statistic::kTimeouts), 10u);
  } else {
    EXPECT_EQ(Count(Statistic::kTimeouts), 0u);
    EXPECT_EQ(Count(Statistic::kTxRetransmissions),
              Count(Statistic::kRxTrimmed));
  }
}

}  // namespace
}  // namespace heddle::soft::transport
