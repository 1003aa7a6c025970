// SPDX-License-Identifier: Apache-2.0
// Control packets of a peer, and its refusals of ours.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/transport/control_packets.h"
#include "tests/seed.h"
#include "tests/soft/transport/world.h"

namespace heddle::soft::transport {

using contract::wire::PdsAck;
using contract::wire::PdsCp;
using contract::wire::PdsNack;
using contract::wire::PdsNegotiation;
using contract::wire::PdsPrologue;
using contract::wire::PdsRequest;

namespace {

using contract::CpType;
using contract::NackCode;
using contract::PdsType;
using contract::Statistic;

// Node 0 has a PDC to node 1, by which one message went.
class ControlTest : public testing::TestWithParam<bool> {
 protected:
  ControlTest() {
    world_[1].wire.filter = [this](std::span<const uint8_t> bytes) {
      const auto ack = PdsAck::Decode(bytes.data());
      target_id_ = ack.spdcid;
      initiator_id_ = ack.dpdcid;
      psn_ = ack.cack_psn;
      return true;
    };
    Send(1, 1);
    EXPECT_TRUE(world_.Run());
    for (size_t i = 0; i < 2; ++i) {
      world_[i].wire.filter = [this, i](std::span<const uint8_t> bytes) {
        sent_[i].emplace_back(bytes.begin(), bytes.end());
        return true;
      };
    }
  }

  void Send(uint64_t serial, uint32_t packets, Kind kind = Kind::kPlain) {
    TestMessage message;
    message.serial = serial;
    message.ordered = GetParam();
    message.packets = packets;
    message.kind = kind;
    message.data_packets = kind == Kind::kRead ? 2 : 0;
    message.peer = World::Address(1);
    world_[0].client.Send(message);
  }
  // As if sent by `from`'s end of the PDC.
  void Control(size_t from, CpType type, uint32_t psn, size_t bytes,
               uint16_t opaque = 0, uint32_t payload = 0) {
    PdsCp cp;
    cp.type = PdsType::kCp;
    cp.cp_type = type;
    cp.psn = psn;
    cp.payload = payload;
    cp.probe_opaque = opaque;
    cp.spdcid = from == 0 ? initiator_id_ : target_id_;
    cp.dpdcid = from == 0 ? target_id_ : initiator_id_;
    std::vector<uint8_t> packet(bytes);
    cp.Encode(packet.data());
    world_.Inject(from, 1 - from, packet);
    world_.RunFor(20'000);
  }
  void Refuse(uint32_t psn, uint16_t spdcid) {
    PdsNack nack;
    nack.type = PdsType::kNack;
    nack.nack_code = NackCode::kUnexpEvent;
    nack.nack_psn = psn;
    nack.spdcid = spdcid;
    nack.dpdcid = initiator_id_;
    std::vector<uint8_t> packet(PdsNack::kBytes);
    nack.Encode(packet.data());
    world_.Inject(1, 0, packet);
  }
  uint64_t Count(size_t node, Statistic which) {
    return world_[node].transport.statistic(which);
  }
  void ExpectAllCompleted(size_t count) {
    ASSERT_TRUE(world_.Run());
    EXPECT_EQ(world_[0].client.endings.size(), count);
    for (const Ending& ending : world_[0].client.endings) {
      EXPECT_TRUE(ending.completed) << "detail " << ending.detail;
    }
  }
  static TransportLimits Limits() {
    TransportLimits limits;
    limits.pdcs = 4;
    limits.messages = 512;
    return limits;
  }

  World world_{TestSeed(), 2, Limits()};
  std::vector<std::vector<uint8_t>> sent_[2];
  uint16_t target_id_ = 0;
  uint16_t initiator_id_ = 0;
  uint32_t psn_ = 0;  // Newest one acknowledged.
};
INSTANTIATE_TEST_SUITE_P(Modes, ControlTest, testing::Bool(),
                         [](const auto& param) {
                           return param.param ? "Rod" : "Rud";
                         });

TEST_P(ControlTest, ProbeIsAnsweredWithItsOpaque) {
  for (const size_t from : {0, 1}) {
    Control(from, CpType::kProbe, 0xdead, PdsCp::kBytes, 0xbeef);
    ASSERT_EQ(sent_[1 - from].size(), 1u);
    const auto ack = PdsAck::Decode(sent_[1 - from][0].data());
    EXPECT_EQ(ack.type, PdsType::kAck);
    EXPECT_EQ(ack.p, 1);
    EXPECT_EQ(ack.probe_opaque, 0xbeef);
  }
  // And its answer changes nothing.
  EXPECT_EQ(world_.Total(Statistic::kDropPdsType), 2u);
}

TEST_P(ControlTest, NegotiationIsAnsweredWithNoFeature) {
  Control(0, CpType::kNegotiation, 0xdead, 20);
  ASSERT_EQ(sent_[1].size(), 1u);
  ASSERT_EQ(sent_[1][0].size(), 20u);
  const auto cp = PdsCp::Decode(sent_[1][0].data());
  EXPECT_EQ(cp.type, PdsType::kCp);
  EXPECT_EQ(cp.cp_type, CpType::kNegotiation);
  EXPECT_EQ(cp.isrod, GetParam() ? 1 : 0);
  EXPECT_EQ(cp.psn, 0xdeadu);
  EXPECT_EQ(cp.spdcid, target_id_);
  EXPECT_EQ(cp.dpdcid, initiator_id_);
  const auto features = PdsNegotiation::Decode(sent_[1][0].data() + 12);
  EXPECT_EQ(features.neg_type, 1);
  EXPECT_EQ(features.length, 2);
  EXPECT_EQ(features.features, 0u);
  // The answer is not answered; nor one that is too short.
  EXPECT_TRUE(sent_[0].empty());
  EXPECT_EQ(Count(0, Statistic::kDropPdcid), 1u);
  Control(0, CpType::kNegotiation, 0xdead, PdsCp::kBytes);
  EXPECT_EQ(sent_[1].size(), 1u);
  EXPECT_EQ(Count(1, Statistic::kDropTruncated), 1u);
}

TEST_P(ControlTest, OthersAreIgnoredAndCounted) {
  for (const CpType type : {CpType::kNoop, CpType::kCredit,
                            CpType::kCreditRequest, CpType{10}, CpType{15}}) {
    const uint64_t before = Count(1, Statistic::kDropPdsType);
    Control(0, type, psn_ + 1, PdsCp::kBytes);
    EXPECT_EQ(Count(1, Statistic::kDropPdsType), before + 1);
  }
  for (const CpType type : {CpType::kClearRequest, CpType::kCloseRequest}) {
    const uint64_t before = Count(1, Statistic::kDropPdsType);
    Control(0, type, psn_ + 1, PdsCp::kBytes);
    EXPECT_EQ(Count(1, Statistic::kDropPdsType), before + 1);
  }
  for (const CpType type : {CpType::kClearCommand, CpType::kCloseCommand}) {
    const uint64_t before = Count(0, Statistic::kDropPdcid);
    Control(1, type, psn_, PdsCp::kBytes);
    EXPECT_EQ(Count(0, Statistic::kDropPdcid), before + 1);
  }
  EXPECT_TRUE(sent_[0].empty() && sent_[1].empty());
}

TEST_P(ControlTest, UnknownPdcIsNackedUnlessNothingIsAnswered) {
  target_id_ ^= 1;
  uint64_t nacks = 0;
  for (const auto& [type, answered] :
       {std::pair{CpType::kProbe, true}, std::pair{CpType::kNegotiation, true},
        std::pair{CpType::kAckRequest, true},
        std::pair{CpType::kClearCommand, false},
        std::pair{CpType::kClearRequest, false},
        std::pair{CpType::kNoop, false}}) {
    Control(0, type, 7, BytesOf(type));
    nacks += answered ? 1 : 0;
    EXPECT_EQ(Count(1, Statistic::kTxNacks), nacks) << static_cast<int>(type);
  }
}

// Every ACK with the result is lost at first. An ACK Request does not mean that
// the initiator has it, whatever its payload is.
TEST_P(ControlTest, AckRequestClearsNoAnswer) {
  bool withheld = false;
  world_[1].wire.filter = [&](std::span<const uint8_t> /*bytes*/) {
    withheld = true;
    return false;
  };
  Send(2, 1, Kind::kResult);
  ASSERT_TRUE(world_.RunUntil([&] { return withheld; }, 1'000'000));
  const uint32_t psn = psn_ + 1;
  for (const uint32_t payload : {psn, psn + 7, 0U}) {
    Control(0, CpType::kAckRequest, psn, PdsCp::kBytes, 0, payload);
  }
  world_[1].wire.filter = nullptr;
  ExpectAllCompleted(2);
}

TEST_P(ControlTest, CloseRequestTakesAPsnAndClosesThePdc) {
  Control(1, CpType::kCloseRequest, psn_, PdsCp::kBytes);
  ExpectAllCompleted(1);
  ASSERT_FALSE(sent_[0].empty());
  const auto ack = PdsAck::Decode(sent_[0][0].data());
  EXPECT_EQ(ack.cack_psn, psn_);
  EXPECT_EQ(ack.next_hdr, contract::NextHdr::kNone);
  EXPECT_EQ(Count(0, Statistic::kPdcCloses), 1u);
}

// All is answered, and the answer to the ACK Request that follows is none.
TEST_P(ControlTest, RefusedAckRequestEndsNothing) {
  uint32_t asked = 0;
  bool withheld = false;
  world_[1].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto type = PdsPrologue::Decode(bytes.data()).type;
    const bool data = type == PdsType::kRodReq || type == PdsType::kRudReq;
    withheld = withheld || data;
    return asked >= 2 || !data;
  };
  world_[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto cp = PdsCp::Decode(bytes.data());
    if (cp.type != PdsType::kCp || cp.cp_type != CpType::kAckRequest) {
      return true;
    }
    ++asked;
    Refuse(cp.psn, 0);
    return false;
  };
  Send(2, 1, Kind::kRead);
  ExpectAllCompleted(2);
  EXPECT_TRUE(withheld);
  EXPECT_GE(asked, 2u);
  EXPECT_GE(Count(0, Statistic::kRxNacks), 2u);
}

TEST_P(ControlTest, RefusedClearCommandEndsNothingAndARefusedRequestDoes) {
  Refuse(0, 0);
  world_.RunFor(10'000);
  Send(2, 3);
  ExpectAllCompleted(2);
  bool refused = false;
  world_[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto request = PdsRequest::Decode(bytes.data());
    if (!refused) {
      Refuse(request.psn, 0);
    }
    refused = true;
    return false;
  };
  Send(3, 1);
  ASSERT_TRUE(world_.Run());
  EXPECT_FALSE(world_[0].client.endings.back().completed);
  EXPECT_EQ(world_[0].client.endings.back().detail,
            static_cast<uint16_t>(NackCode::kUnexpEvent));
}

// As the reference provider's: zeros for the state of congestion control, or
// no ACK_CC at all. What is in flight is known by the PSNs alone.
TEST_P(ControlTest, NsccGoesOnWithAnswersThatHaveNoState) {
  for (const bool plain : {false, true}) {
    world_.rules.congestion = 1;
    world_.rules.base_rtt_ns = 10'000;
    world_.rules.cwnd_bytes = 10 * 1132;
    world_.Configure();
    const uint64_t timeouts = world_.Total(Statistic::kTimeouts);
    world_[1].wire.filter = [&](std::span<const uint8_t> bytes) {
      std::vector<uint8_t> copy(bytes.begin(), bytes.end());
      auto ack = PdsAck::Decode(copy.data());
      if (ack.type != PdsType::kAckCc) {
        return true;
      }
      if (plain) {
        ack.type = PdsType::kAck;
        ack.Encode(copy.data());
        copy.erase(copy.begin() + 12, copy.begin() + 32);
      } else {
        std::fill_n(copy.begin() + 24, 8, uint8_t{0});
      }
      world_.Inject(1, 0, copy, 1000);
      return false;
    };
    Send(plain ? 3 : 2, 2000);
    ExpectAllCompleted(plain ? 3 : 2);
    EXPECT_EQ(world_.Total(Statistic::kTimeouts), timeouts);
  }
}

}  // namespace
}  // namespace heddle::soft::transport
