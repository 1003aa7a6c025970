// SPDX-License-Identifier: Apache-2.0
// What is sent again, and when; what is acknowledged, and how often.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/rules/backoff.h"
#include "hw/soft/rules/psn.h"
#include "hw/soft/transport/send_window.h"
#include "tests/seed.h"
#include "tests/soft/transport/world.h"

namespace heddle::soft::transport {

using contract::wire::PdsAck;
using contract::wire::PdsNack;
using contract::wire::PdsPrologue;
using contract::wire::PdsRequest;
using contract::wire::SesStd;

namespace {

using contract::NackCode;
using contract::PdsType;
using contract::Statistic;
using contract::Status;

bool IsRequest(std::span<const uint8_t> bytes) {
  const auto type = PdsPrologue::Decode(bytes.data()).type;
  return type == PdsType::kRodReq || type == PdsType::kRudReq;
}

TestMessage Message(uint64_t serial, bool ordered, uint32_t packets = 1) {
  TestMessage message;
  message.serial = serial;
  message.ordered = ordered;
  message.packets = packets;
  message.peer = World::Address(1);
  return message;
}

// A world whose first PDC is open.
std::unique_ptr<World> Opened(bool ordered, TransportLimits limits = {}) {
  limits.pdcs = 4;
  limits.messages = 512;
  auto world = std::make_unique<World>(TestSeed(), 2, limits);
  (*world)[0].client.Send(Message(1, ordered));
  EXPECT_TRUE(world->Run());
  return world;
}

// Loses the `nth` request that node 0 sends from now on.
void LoseRequest(World* world, int nth) {
  (*world)[0].wire.filter =
      [nth, count = 0](std::span<const uint8_t> bytes) mutable {
        return !IsRequest(bytes) || ++count != nth;
      };
}

TEST(RecoveryTest, UnorderedResendsTheLostPacketOnly) {
  auto world = Opened(false);
  LoseRequest(world.get(), 10);
  (*world)[0].client.Send(Message(2, false, 60));
  ASSERT_TRUE(world->Run());
  EXPECT_EQ(world->Total(Statistic::kTxRetransmissions), 1u);
  EXPECT_EQ(world->Total(Statistic::kTxSelective), 1u);
  EXPECT_EQ(world->Total(Statistic::kTimeouts), 0u);
  EXPECT_EQ(world->Total(Statistic::kTxNacks), 0u);
}

TEST(RecoveryTest, OrderedGoesBackWithoutWaitingForTheTimer) {
  auto world = Opened(true);
  LoseRequest(world.get(), 10);
  (*world)[0].client.Send(Message(2, true, 60));
  ASSERT_TRUE(world->Run());
  EXPECT_GE(world->Total(Statistic::kTxRetransmissions), 1u);
  EXPECT_LE(world->Total(Statistic::kTxRetransmissions), 2 * 64u);
  EXPECT_EQ(world->Total(Statistic::kTimeouts), 0u);
  EXPECT_EQ(world->Total(Statistic::kTxNacks), 1u);  // One per gap.
}

// The retransmissions of the lost packet are lost as well.
TEST(RecoveryTest, LostRetransmissionIsReportedAgainOncePerPass) {
  constexpr int kPasses = 3;
  auto world = Opened(true);
  uint32_t lost = 0;
  int losses = 0;
  (*world)[0].wire.filter = [&, count =
                                    0](std::span<const uint8_t> bytes) mutable {
    if (!IsRequest(bytes)) {
      return true;
    }
    const uint32_t psn = PdsRequest::Decode(bytes.data()).psn;
    if (++count == 10) {
      lost = psn;
    }
    const bool loses = count >= 10 && psn == lost && losses <= kPasses;
    losses += loses ? 1 : 0;
    return !loses;
  };
  (*world)[0].client.Send(Message(2, true, 60));
  ASSERT_TRUE(world->Run());
  EXPECT_EQ(losses, 1 + kPasses);
  EXPECT_EQ(world->Total(Statistic::kTimeouts), 0u);
  EXPECT_EQ(world->Total(Statistic::kTxNacks), 1u + kPasses);
}

// The reference provider sends again what the NACK names, five times at most.
TEST(RecoveryTest, PeerThatSendsOnePacketAgainIsNotNackedMore) {
  auto world = Opened(true);
  std::vector<std::vector<uint8_t>> sent;
  (*world)[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    if (IsRequest(bytes)) {
      sent.emplace_back(bytes.begin(), bytes.end());
    }
    return !IsRequest(bytes);
  };
  (*world)[0].client.Send(Message(2, true, 20));
  ASSERT_TRUE(
      world->RunUntil([&] { return sent.size() >= 20; }, 1'000'000'000));
  (*world)[0].dead = true;
  for (size_t i = 1; i < 20; ++i) {  // All but the first, of which one more.
    world->Inject(0, 1, sent[i], i);
  }
  world->RunFor(10'000);
  EXPECT_EQ(world->Total(Statistic::kTxNacks), 1u);
  PdsRequest header = PdsRequest::Decode(sent[1].data());
  header.retx = 1;
  header.Encode(sent[1].data());
  for (int i = 0; i < 5; ++i) {
    world->Inject(0, 1, sent[1]);
    world->RunFor(10'000);
  }
  EXPECT_EQ(world->Total(Statistic::kTxNacks), 1u);
}

// Its window may be larger: what it sends next reports that it has the answers
// that hold CACK back.
TEST(RecoveryTest, PacketBeyondAStoredAnswerThatItClearsIsTaken) {
  for (const bool ordered : {true, false}) {
    auto world = Opened(ordered);
    std::vector<std::vector<uint8_t>> sent;
    (*world)[0].wire.filter = [&](std::span<const uint8_t> bytes) {
      if (IsRequest(bytes)) {
        sent.emplace_back(bytes.begin(), bytes.end());
      }
      return false;
    };
    for (uint64_t serial = 2; serial < 2 + rules::kWindow; ++serial) {
      TestMessage message = Message(serial, ordered);
      message.kind = serial == 2 ? Kind::kResult : Kind::kPlain;
      (*world)[0].client.Send(message);
    }
    ASSERT_TRUE(world->RunUntil([&] { return sent.size() == rules::kWindow; },
                                1'000'000));
    (*world)[0].wire.filter = [](std::span<const uint8_t> /*bytes*/) {
      return false;
    };
    const auto inject = [&](std::vector<uint8_t>* packet, uint32_t psn,
                            uint32_t clear_psn) {
      PdsRequest header = PdsRequest::Decode(packet->data());
      header.psn = psn;
      header.clear_psn_offset = static_cast<int16_t>(clear_psn - psn);
      header.Encode(packet->data());
      world->Inject(0, 1, *packet);
      world->RunFor(10'000);
    };
    const uint32_t first = PdsRequest::Decode(sent[0].data()).psn;
    for (uint32_t i = 0; i < rules::kWindow; ++i) {
      inject(&sent[i], first + i, first - 1);
    }
    const Transport& target = (*world)[1].transport;
    const uint64_t before = target.statistic(Statistic::kRxRequests);
    const uint32_t beyond = first + rules::kWindow;
    uint8_t* ses = sent.back().data() + PdsRequest::kBytes;
    SesStd next = SesStd::Decode(ses);
    ++next.message_id;
    ++next.buffer_offset;  // Its serial.
    next.Encode(ses);
    inject(&sent.back(), beyond, first - 1);
    EXPECT_EQ(target.statistic(Statistic::kRxRequests), before);
    inject(&sent.back(), beyond, beyond - 1);
    EXPECT_EQ(target.statistic(Statistic::kRxRequests), before + 1);
  }
}

TEST(RecoveryTest, ReorderedPacketsAreNotLost) {
  auto world = Opened(false);
  world->rules.reorder = 30;
  world->Configure();
  world->weather = {.reordering = 0.2, .jitter_ns = 500};
  (*world)[0].client.Send(Message(2, false, 500));
  ASSERT_TRUE(world->Run());
  EXPECT_EQ(world->Total(Statistic::kTxRetransmissions), 0u);
  EXPECT_GT((*world)[1].client.out_of_order, 0u);
}

TEST(RecoveryTest, UnorderedMessagesCompleteOutOfOrder) {
  auto world = Opened(false);
  LoseRequest(world.get(), 1);
  (*world)[0].client.Send(Message(2, false));
  (*world)[0].client.Send(Message(3, false));
  ASSERT_TRUE(world->Run());
  ASSERT_EQ((*world)[0].client.endings.size(), 3u);
  EXPECT_EQ((*world)[0].client.endings[1].serial, 3u);
  EXPECT_EQ((*world)[0].client.endings[2].serial, 2u);
}

TEST(RecoveryTest, AcknowledgementsAreCoalesced) {
  for (const bool ordered : {true, false}) {
    auto world = Opened(ordered);
    const uint64_t before = world->Total(Statistic::kTxAcks);
    (*world)[0].client.Send(Message(2, ordered, 1600));
    ASSERT_TRUE(world->Run());
    const uint64_t acks = world->Total(Statistic::kTxAcks) - before;
    EXPECT_GE(acks, 100u);
    EXPECT_LE(acks, 140u);  // Every 16 packets, and where the window closed.
  }
}

// The requests of node 0's messages, each as it would have been sent alone.
std::vector<std::vector<uint8_t>> Requests(
    World* world, const std::vector<TestMessage>& messages) {
  std::vector<std::vector<uint8_t>> requests;
  Node& source = (*world)[0];
  source.wire.filter = [&](std::span<const uint8_t> bytes) {
    requests.emplace_back(bytes.begin(), bytes.end());
    return false;
  };
  for (const TestMessage& message : messages) {
    source.client.Send(message);
    source.client.Pump();
    // Nothing follows: each asks for its ACK.
    source.transport.Progress(world->now_ns(), 16);
  }
  source.wire.filter = nullptr;
  return requests;
}

void Receive(World* world, std::span<const uint8_t> bytes) {
  wire::Datagram datagram;
  datagram.source = World::Address(0);
  datagram.bytes = bytes;
  (*world)[1].transport.Receive(datagram, world->now_ns());
}

TEST(RecoveryTest, PacketsThatArriveTogetherShareAnAck) {
  auto world = Opened(true);
  Node& source = (*world)[0];
  Node& target = (*world)[1];
  const auto requests = Requests(
      world.get(), {Message(2, true), Message(3, true), Message(4, true)});
  ASSERT_EQ(requests.size(), 3u);
  const uint64_t before = target.wire.sent;
  for (const auto& bytes : requests) {
    Receive(world.get(), bytes);
  }
  EXPECT_EQ(target.wire.sent, before);
  target.transport.Progress(world->now_ns(), 16);
  EXPECT_EQ(target.wire.sent, before + 1);
  ASSERT_TRUE(world->Run());
  EXPECT_EQ(source.client.endings.size(), 4u);
  EXPECT_EQ(world->Total(Statistic::kTxRetransmissions), 0u);
}

// Whatever is answered while a NACK waits for room in the wire.
TEST(RecoveryTest, WaitingNackOutlivesAnAnswer) {
  for (const bool full : {false, true}) {
    auto world = Opened(true);
    Node& target = (*world)[1];
    const auto requests = Requests(
        world.get(), {Message(2, true), Message(3, true), Message(4, true)});
    ASSERT_EQ(requests.size(), 3u);
    Receive(world.get(), requests[0]);
    target.transport.Progress(world->now_ns(), 16);
    const uint64_t acks = world->Total(Statistic::kTxAcks);
    target.wire.shut = true;
    Receive(world.get(), requests[2]);  // The one before it is missing.
    target.wire.shut = full;
    Receive(world.get(), requests[0]);  // Again.
    target.wire.shut = false;
    for (int i = 0; i < 3; ++i) {
      target.transport.Progress(world->now_ns(), 16);
    }
    EXPECT_EQ(world->Total(Statistic::kTxNacks), 1u) << full;
    EXPECT_EQ(world->Total(Statistic::kTxAcks), acks + 1) << full;
    ASSERT_TRUE(world->Run());
    EXPECT_EQ(world->Total(Statistic::kTimeouts), 0u) << full;
  }
}

// CACK, which a stored answer holds back, does not speak of what came later.
TEST(RecoveryTest, WaitingAckOfAPacketBehindAStoredAnswerNamesIt) {
  auto world = Opened(true);
  Node& source = (*world)[0];
  Node& target = (*world)[1];
  TestMessage error = Message(2, true);
  error.kind = Kind::kError;
  const auto requests =
      Requests(world.get(), {error, Message(3, true), Message(4, true)});
  ASSERT_EQ(requests.size(), 3u);
  source.wire.filter = [](std::span<const uint8_t> bytes) {
    return PdsPrologue::Decode(bytes.data()).type != PdsType::kCp;
  };
  Receive(world.get(), requests[0]);
  target.wire.shut = true;
  Receive(world.get(), requests[1]);
  Receive(world.get(), requests[2]);
  target.wire.shut = false;
  EXPECT_TRUE(world->RunUntil([&] { return source.client.endings.size() == 4; },
                              world->port.rto_ticks * World::kTickNs / 2));
}

TEST(RecoveryTest, DelayedAckComesByItself) {
  TransportLimits limits;
  limits.first_psn = 1;  // Each 16th asks for its ACK.
  auto world = Opened(true, limits);
  // A later message keeps the first from asking for its ACK, but never leaves.
  std::vector<uint64_t> acks;
  (*world)[1].wire.filter = [&](std::span<const uint8_t>) {
    acks.push_back(world->now_ns());
    return true;
  };
  int requests = 0;
  uint64_t sent = 0;
  (*world)[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    sent = requests == 0 ? world->now_ns() : sent;
    return !IsRequest(bytes) || ++requests < 2;
  };
  (*world)[0].client.Send(Message(2, true));
  (*world)[0].client.Send(Message(3, true));
  world->RunFor(50'000);
  ASSERT_EQ(acks.size(), 1u);
  const uint64_t delay = world->port.ack_delay_ticks * World::kTickNs;
  EXPECT_GE(acks[0] - sent, delay);
  EXPECT_LT(acks[0] - sent, delay + 10'000);
  EXPECT_EQ((*world)[0].client.endings.size(), 2u);
}

TEST(RecoveryTest, TimeOutsDoubleUpToTheirMaximum) {
  auto world = Opened(true);
  std::vector<uint64_t> sent;
  (*world)[0].wire.filter = [&](std::span<const uint8_t>) {
    sent.push_back(world->now_ns());
    return false;
  };
  (*world)[0].client.Send(Message(2, true));
  (*world)[0].client.repost = false;
  ASSERT_TRUE(world->Run());
  const uint64_t rto = world->port.rto_ticks * World::kTickNs;
  const uint64_t most = world->port.rto_max_ticks * World::kTickNs;
  ASSERT_GT(sent.size(), 10u);
  uint64_t expected = rto;
  for (size_t i = 1; i < sent.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(sent[i] - sent[i - 1]),
                static_cast<double>(expected), 200.0)
        << i;
    expected = std::min(2 * expected, most);
  }
}

// The peer refuses the sixth copy after five were lost, and the seventh is lost
// as well: with an RTO of the sixth time-out, two losses would take as long as
// all before.
TEST(RecoveryTest, NackMakesTheNextTimeOutTheFirst) {
  for (const NackCode code :
       {NackCode::kNoResource, NackCode::kRcvrInferLoss, NackCode::kTrimmed}) {
    for (const bool ordered : {true, false}) {
      auto world = Opened(ordered);
      ClientModel& target = (*world)[1].client;
      target.refuse = 1;
      target.refuse_code = code;
      std::vector<uint64_t> sent;
      (*world)[0].wire.filter = [&](std::span<const uint8_t> bytes) {
        if (!IsRequest(bytes)) {
          return true;
        }
        sent.push_back(world->now_ns());
        target.refuse = sent.size() <= 6 ? 1 : 0;
        return sent.size() == 6 || sent.size() >= 8;
      };
      (*world)[0].client.Send(Message(2, ordered));
      ASSERT_TRUE(world->Run());
      EXPECT_EQ((*world)[0].client.endings.size(), 2u);
      const uint64_t rto = world->port.rto_ticks * World::kTickNs;
      ASSERT_EQ(sent.size(), 8u);
      EXPECT_GT(sent[5] - sent[4], 4 * rto);
      EXPECT_LE(sent[7] - sent[6], rto + 200) << static_cast<int>(code);
    }
  }
}

TEST(BackoffTest, DoublesUpToItsLimitWithoutOverflow) {
  rules::Backoff backoff;
  EXPECT_EQ(backoff.Time(3, 20), 3u);
  for (const uint64_t expected : {6u, 12u, 20u, 20u}) {
    backoff.NoteInVain();
    EXPECT_EQ(backoff.Time(3, 20), expected);
  }
  EXPECT_EQ(backoff.Time(1, 17), 16u);
  for (int i = 0; i < 100; ++i) {
    backoff.NoteInVain();
  }
  EXPECT_EQ(backoff.Time(UINT32_MAX, UINT64_MAX), uint64_t{UINT32_MAX} << 31U);
  EXPECT_EQ(backoff.Time(5, 3), 3u);
  EXPECT_FALSE(backoff.at_first());
  backoff.Reset();
  EXPECT_TRUE(backoff.at_first());
  EXPECT_EQ(backoff.Time(3, 20), 3u);
}

TEST(RecoveryTest, RefusalIsRetriedWithoutLimitAndWithBackOff) {
  for (const bool ordered : {true, false}) {
    auto world = Opened(ordered);
    std::vector<uint64_t> sent;
    (*world)[0].wire.filter = [&](std::span<const uint8_t>) {
      sent.push_back(world->now_ns());
      return true;
    };
    (*world)[1].client.refuse = 1;
    (*world)[0].client.Send(Message(2, ordered));
    world->RunFor(3 * world->port.dead_ticks * World::kTickNs);
    EXPECT_EQ((*world)[0].client.endings.size(), 1u);
    const uint64_t most = world->port.backoff_max_ticks * World::kTickNs;
    ASSERT_GT(sent.size(), 20u);
    EXPECT_LT(sent[1] - sent[0], sent[4] - sent[3]);
    const uint64_t last = sent.back() - sent[sent.size() - 2];
    EXPECT_GE(last, most);
    EXPECT_LT(last, most + 20'000);
    (*world)[1].client.refuse = 0;
    ASSERT_TRUE(world->Run());
    EXPECT_EQ((*world)[0].client.endings.size(), 2u);
    EXPECT_EQ(world->Total(Statistic::kTimeouts), 0u);
  }
}

TEST(RecoveryTest, EachResourceCodeIsRetried) {
  for (const NackCode code :
       {NackCode::kNoPdcAvail, NackCode::kNoCccAvail, NackCode::kNoBitmap,
        NackCode::kNoPktBuffer, NackCode::kNoGtdDelAvail,
        NackCode::kNoSesMsgAvail, NackCode::kNoResource,
        NackCode::kPsnOorWindow, NackCode::kRcvdSesProcg, NackCode::kTrimmed,
        NackCode::kTrimmedLasthop, NackCode::kTrimmedAck,
        NackCode::kRcvrInferLoss, NackCode::kAckWithData}) {
    for (const bool ordered : {true, false}) {
      auto world = Opened(ordered);
      (*world)[1].client.refuse = 0.3;
      (*world)[1].client.refuse_code = code;
      for (uint64_t i = 2; i < 50; ++i) {
        (*world)[0].client.Send(Message(i, ordered, 3));
      }
      ASSERT_TRUE(world->Run()) << static_cast<int>(code);
      EXPECT_EQ((*world)[0].client.endings.size(), 49u);
      for (const Ending& ending : (*world)[0].client.endings) {
        EXPECT_TRUE(ending.completed) << static_cast<int>(code);
      }
    }
  }
}

TEST(RecoveryTest, EachFatalCodeEndsWithPeerRejected) {
  for (const NackCode code :
       {NackCode::kPdcHdrMismatch, NackCode::kClosing, NackCode::kClosingInErr,
        NackCode::kGtdDelRespUnavail, NackCode::kPdcModeMismatch,
        NackCode::kNewStartPsn, NackCode::kUnexpEvent}) {
    auto world = Opened(true);
    (*world)[0].client.repost = false;
    (*world)[1].client.refuse = 1;
    (*world)[1].client.refuse_code = code;
    for (uint64_t i = 2; i < 102; ++i) {
      (*world)[0].client.Send(Message(i, true));
    }
    ASSERT_TRUE(world->Run()) << static_cast<int>(code);
    ASSERT_EQ((*world)[0].client.endings.size(), 101u);
    for (size_t i = 1; i < 101; ++i) {
      const Ending& ending = (*world)[0].client.endings[i];
      EXPECT_FALSE(ending.completed);
      EXPECT_EQ(ending.status, Status::kPeerRejected);
      EXPECT_EQ(ending.detail, static_cast<uint16_t>(code));
      EXPECT_EQ(ending.serial, i + 1) << "in order";
    }
    EXPECT_FALSE((*world)[0].client.endings.back().transmitted);
  }
}

TEST(RecoveryTest, AbandonedButUnsentMessagesGoToAnotherPdc) {
  auto world = Opened(true);
  bool once = true;
  (*world)[1].wire.filter = [&](std::span<const uint8_t> bytes) {
    if (once && PdsPrologue::Decode(bytes.data()).type == PdsType::kAck) {
      // The first ACK becomes a fatal NACK.
      once = false;
      const auto ack = PdsAck::Decode(bytes.data());
      PdsNack nack;
      nack.type = PdsType::kNack;
      nack.nack_code = NackCode::kUnexpEvent;
      nack.nack_psn = ack.cack_psn;
      nack.dpdcid = ack.dpdcid;
      std::vector<uint8_t> out(PdsNack::kBytes);
      nack.Encode(out.data());
      world->Inject(1, 0, out, 1);
      return false;
    }
    return true;
  };
  for (uint64_t i = 2; i < 202; ++i) {
    (*world)[0].client.Send(Message(i, true));
  }
  ASSERT_TRUE(world->Run());
  size_t failed = 0;
  for (const Ending& ending : (*world)[0].client.endings) {
    failed += ending.completed ? 0 : 1;
    EXPECT_TRUE(ending.transmitted);
  }
  EXPECT_EQ((*world)[0].client.endings.size(), 201u);
  EXPECT_GT(failed, 0u);
  EXPECT_LE(failed, rules::kWindow);
}

// As one that answered something else and takes it for this.
TEST(RecoveryTest, ReadWhoseLivePeerSendsNoDataEnds) {
  for (const bool ordered : {true, false}) {
    auto world = Opened(ordered);
    uint32_t kept = 0;
    (*world)[1].wire.filter = [&](std::span<const uint8_t> bytes) {
      const auto request = contract::wire::PdsRequest::Decode(bytes.data());
      const bool data = (request.type == PdsType::kRodReq ||
                         request.type == PdsType::kRudReq) &&
                        request.next_hdr == contract::NextHdr::kResponseData;
      kept += data ? 1 : 0;
      return !data;
    };
    TestMessage message = Message(2, ordered);
    message.kind = Kind::kRead;
    message.data_packets = 2;
    (*world)[0].client.Send(message);
    ASSERT_TRUE(world->Run());
    ASSERT_EQ((*world)[0].client.endings.size(), 2u);
    EXPECT_FALSE((*world)[0].client.endings.back().completed);
    EXPECT_GT(kept, 0u);
  }
}

// Which of its data still comes is not known. Nothing is asked for, and the
// PDC closes, which ends the message.
TEST(RecoveryTest, ReadThatItsTargetRefusedIsNotWaitedFor) {
  for (const bool ordered : {true, false}) {
    auto world = Opened(ordered);
    Node& node = (*world)[0];
    uint32_t asked = 0;
    node.wire.filter = [&](std::span<const uint8_t> bytes) {
      const auto cp = contract::wire::PdsCp::Decode(bytes.data());
      asked +=
          cp.type == PdsType::kCp && cp.cp_type == contract::CpType::kAckRequest
              ? 1
              : 0;
      return true;
    };
    TestMessage message = Message(2, ordered);
    message.kind = Kind::kRead;
    message.data_packets = message.refused = 2;
    const uint64_t closes = node.transport.statistic(Statistic::kPdcCloses);
    const uint64_t acks = node.transport.statistic(Statistic::kRxAcks);
    node.client.Send(message);
    ASSERT_TRUE(world->RunUntil(
        [&] { return node.transport.statistic(Statistic::kRxAcks) > acks; },
        1'000'000));
    node.transport.Fail(0);  // The only one.
    ASSERT_TRUE(world->RunUntil([&] { return node.client.endings.size() == 2; },
                                world->port.dead_ticks * World::kTickNs / 4));
    EXPECT_FALSE(node.client.endings.back().completed);
    EXPECT_EQ(node.client.endings.back().status, Status::kRemoteError);
    EXPECT_EQ(node.transport.statistic(Statistic::kPdcCloses), closes + 1);
    EXPECT_EQ(asked, 0u);
    ASSERT_TRUE(world->Run());
  }
}

// One ACK ends the request packets of both.
TEST(RecoveryTest, ReadBehindARefusedOneGetsItsData) {
  for (const bool ordered : {true, false}) {
    auto world = Opened(ordered);
    Node& source = (*world)[0];
    Node& target = (*world)[1];
    source.client.fails_refused = true;
    constexpr uint32_t kPackets = 4;
    constexpr int kLost = 8;  // Data that come behind the ACK.
    int lost = 0;
    target.wire.filter = [&](std::span<const uint8_t> bytes) {
      uint32_t taken = 0;
      for (uint64_t serial : {2, 3}) {
        taken += target.client.taken[serial].count;
      }
      const PdsType type = PdsPrologue::Decode(bytes.data()).type;
      const bool ack = type == PdsType::kAck || type == PdsType::kAckCc;
      return ack ? taken == kPackets : !IsRequest(bytes) || ++lost > kLost;
    };
    size_t ended_before_close = SIZE_MAX;
    source.wire.filter = [&](std::span<const uint8_t> bytes) {
      const auto cp = contract::wire::PdsCp::Decode(bytes.data());
      if (cp.type == PdsType::kCp &&
          cp.cp_type == contract::CpType::kCloseCommand) {
        ended_before_close =
            std::min(ended_before_close, source.client.endings.size());
      }
      return true;
    };
    for (const uint32_t refused : {2, 0}) {
      TestMessage message = Message(refused != 0 ? 2 : 3, ordered);
      message.kind = Kind::kRead;
      message.packets = message.data_packets = 2;
      message.refused = refused;
      source.client.Send(message);
    }
    ASSERT_TRUE(world->Run());
    ASSERT_EQ(source.client.endings.size(), 3u);
    EXPECT_EQ(ended_before_close, 2u);  // The refused one ends with the PDC.
    for (const Ending& ending : source.client.endings) {
      EXPECT_EQ(ending.completed, ending.serial != 2) << ending.serial;
    }
  }
}

TEST(RecoveryTest, LostClearCommandIsAskedForAgain) {
  for (const bool ordered : {true, false}) {
    auto world = Opened(ordered);
    int lost = 0;
    (*world)[0].wire.filter = [&](std::span<const uint8_t> bytes) {
      const auto cp = contract::wire::PdsCp::Decode(bytes.data());
      return cp.type != PdsType::kCp ||
             cp.cp_type != contract::CpType::kClearCommand || ++lost > 3;
    };
    for (uint64_t i = 2; i < 40; ++i) {
      TestMessage message = Message(i, ordered);
      message.kind = Kind::kError;
      (*world)[0].client.Send(message);
    }
    ASSERT_TRUE(world->Run());
    EXPECT_EQ((*world)[0].client.endings.size(), 39u);
    EXPECT_GT(lost, 0);
  }
}

// Of a source that takes held answers only in order, no timer has to run.
TEST(RecoveryTest, NextHeldAnswerIsToldWhenOneIsCleared) {
  for (const bool ordered : {true, false}) {
    auto world = Opened(ordered);
    int ahead = 0;
    (*world)[1].wire.filter = [&](std::span<const uint8_t> bytes) {
      const auto ack = PdsAck::Decode(bytes.data());
      const bool lost =
          ack.req == contract::AckReq::kClear && ack.ack_psn_offset > 1;
      ahead += lost ? 1 : 0;
      return !lost;
    };
    for (uint64_t i = 2; i < 12; ++i) {
      TestMessage message = Message(i, ordered);
      message.kind = Kind::kError;
      (*world)[0].client.Send(message);
    }
    ASSERT_TRUE(world->Run());
    EXPECT_EQ((*world)[0].client.endings.size(), 11u);
    EXPECT_GT(ahead, 0);
    EXPECT_EQ(world->Total(Statistic::kTimeouts), 0u);
  }
}

TEST(RecoveryTest, MarksCloseTheWindowUnderNscc) {
  auto run = [](double marking) {
    TransportLimits limits;
    limits.pdcs = 4;
    World world(5, 2, limits);
    world.rules.congestion = 1;
    world.rules.cwnd_bytes = 60'000;
    world.rules.base_rtt_ns = 4000;
    world.weather.marking = marking;
    world.weather.reordering = marking;  // Delay along with the marks.
    world.Configure();
    world[0].client.payload_bytes = 1024;
    world[0].client.Send(Message(1, false, 3000));
    EXPECT_TRUE(world.Run());
    return world.now_ns();
  };
  EXPECT_GT(run(0.5), 3 * run(0) / 2);
}

// A target that takes back what it said: the flight must not become less than
// nothing, which would be a full window for good.
TEST(SendWindowTest, PacketThatDidNotArriveAfterAllLeavesTheFlightOnce) {
  SendWindow window;
  window.Open(0);
  window.PushSent(1, 100, 0);
  window.PushSent(2, 100, 0);
  EXPECT_EQ(window.MarkArrived(rules::Bit(0)), 100u);
  window.MarkNotArrived(0);
  EXPECT_EQ(window.lost(), rules::Bit(0));
  EXPECT_EQ(window.MarkLost(window.sent()), 100u);
  EXPECT_EQ(window.flight_bytes(), 0u);
  window.NoteResent(0, 0);
  EXPECT_EQ(window.flight_bytes(), 100u);
}

TEST(RecoveryTest, ReturnDataOfAnInitiatorThatLeftTheWireIsGivenUp) {
  for (const bool ordered : {true, false}) {
    World world(TestSeed());
    Node& target = world[1];
    target.wire.receiver = 7;
    TestMessage read = Message(1, ordered);
    read.kind = Kind::kRead;
    read.data_packets = 5;
    world[0].client.Send(read);
    ASSERT_TRUE(world.RunUntil([&] { return target.client.returns_open != 0; },
                               1'000'000));
    world[0].dead = true;
    // Silent, but still there.
    world.RunFor(5 * world.port.rto_ticks * World::kTickNs);
    EXPECT_EQ(target.client.returns_open, 5u);
    target.wire.left = 7;
    world.RunFor(2 * world.port.rto_max_ticks * World::kTickNs);
    EXPECT_EQ(target.client.returns_open, 0u);
    EXPECT_EQ(target.client.closed_in_error, 1u);
    EXPECT_TRUE(target.transport.idle());
  }
}

}  // namespace
}  // namespace heddle::soft::transport
