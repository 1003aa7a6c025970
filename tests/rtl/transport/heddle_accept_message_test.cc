// SPDX-License-Identifier: Apache-2.0
// Messages over one packet and more.
#include <gtest/gtest.h>

#include "tests/rtl/transport/accept_fixture.h"

namespace heddle::test {
namespace {

TEST_F(AcceptTest, WithoutABufferThePacketIsRefusedAndItsFollowersAreQuiet) {
  const rtl::Response refused = bench_.Answer(Syn(kStart, 8));
  tpdcid_ = refused.spdcid;
  EXPECT_NE(tpdcid_, 0);
  ExpectNack(refused, NackCode::kNoPktBuffer, tpdcid_, kStart);
  EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  bench_.Quiet(Syn(kStart + 1, 8));
  ExpectNack(bench_.Answer(Syn(kStart, 8)), NackCode::kNoPktBuffer, tpdcid_,
             kStart);
  bench_.places.clear();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  ExpectAck(bench_.Answer(Syn(kStart, 8)), kStart, 0, ReturnCode::kOk);
  EXPECT_EQ(bench_.TakeRecord().bytes, 8);
  EXPECT_EQ(Count(Statistic::kRxRefused), 2);
}

TEST_F(AcceptTest, WithoutCreditThePacketIsRefused) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  bench_.credit_ok = ~(1u << 5);
  ExpectNack(bench_.Answer(Packet(kStart + 1, 8)), NackCode::kNoResource,
             tpdcid_, kStart + 1);
  bench_.credit_ok = 1u << 5;
  EXPECT_TRUE(bench_.credits_taken.empty());
  rtl::RxPacket good = Packet(kStart + 1, 8);
  good.ar = 1;
  ExpectAck(bench_.Answer(good), kStart + 1, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, TheRestOfARefusedMessageGetsTheSameAnswerAndIsDiscarded) {
  Open();
  rtl::RxPacket first = First(kStart + 1, 4096, 9000);
  first.job_id = 9;
  ExpectError(bench_.Answer(first), kStart + 1, ReturnCode::kBadJobId);
  rtl::RxPacket middle = Next(kStart + 2, 4096, 4096, false, 9000);
  middle.job_id = 9;
  middle.offset = static_cast<uint16_t>(-1);
  rtl::Response rsp = bench_.Answer(middle);
  ExpectAck(rsp, kStart + 2, 0, ReturnCode::kBadJobId);
  EXPECT_EQ(rsp.req, contract::AckReq::kNone);
  rtl::RxPacket last = Next(kStart + 3, 8192, 808, true, 9000);
  last.job_id = 9;
  last.ar = 1;
  rsp = bench_.Answer(last);
  ExpectAck(rsp, kStart + 3, 0, ReturnCode::kBadJobId);
  EXPECT_EQ(rsp.req, contract::AckReq::kNone);
  for (const rtl::Place& record : bench_.places) {
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.complete, 0);
  }
  bench_.AddBuffer(2, 64, 0x1000, 5);
  rtl::RxPacket next = Packet(kStart + 4, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 4, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, ReceivesCountInTheirContext) {
  Open();
  bench_.contexts[2].counters = {.recv = 5, .remote_write = 7};
  bench_.AddBuffer(2, 64, 0x1000, 5);
  bench_.Quiet(Packet(kStart + 1, 8));
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.count.own, 5);
  EXPECT_EQ(record.ev.count.region, 0);
}

TEST_F(AcceptTest, MessageThatItsSenderGaveUpWaitsForNothing) {
  Open();
  // No buffer: the rest of the message is discarded too.
  rtl::RxPacket first = First(kStart + 1, 0, 9000);
  first.ie = 1;
  first.ar = 1;
  ExpectAck(bench_.Answer(first), kStart + 1, 0, ReturnCode::kNull);
  bench_.Quiet(Next(kStart + 2, 4096, 4096, false, 9000));
  rtl::RxPacket last = Next(kStart + 3, 8192, 808, true, 9000);
  last.ar = 1;
  ExpectAck(bench_.Answer(last), kStart + 3, 0, ReturnCode::kNull);
  // No credit, no context; in one packet.
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket only = Packet(kStart + 4, 8);
  only.ie = 1;
  only.ar = 1;
  only.payload_bytes = 0;
  bench_.credit_ok = 0;
  ExpectAck(bench_.Answer(only), kStart + 4, 0, ReturnCode::kNull);
  bench_.credit_ok = 0xffffffff;
  only.psn = kStart + 5;
  only.resource_index = 77;
  ExpectAck(bench_.Answer(only), kStart + 5, 0, ReturnCode::kNull);
  for (const rtl::Place& record : bench_.places) {
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.complete, 0);
  }
  EXPECT_TRUE(bench_.credits_taken.empty());
  // The next message is as any other.
  rtl::RxPacket next = Packet(kStart + 6, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 6, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, MessageOfManyPacketsIsPlacedPieceByPiece) {
  Open();
  bench_.AddBuffer(2, 10000, 0x100000, 7);
  bench_.Quiet(First(kStart + 1, 4096, 9000));
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.first, 1);
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(record.iova, 0x100000u);
  bench_.Quiet(Next(kStart + 2, 4096, 4096, false, 9000));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.first, 0);
  EXPECT_EQ(record.iova, 0x101000u);
  EXPECT_EQ(record.bytes, 4096);
  rtl::RxPacket last = Next(kStart + 3, 8192, 808, true, 9000);
  last.ar = 1;
  const rtl::Response rsp = bench_.Answer(last);
  ExpectAck(rsp, kStart + 3, 0, ReturnCode::kOk);
  EXPECT_EQ(rsp.modified_length, 9000u);
  record = bench_.TakeRecord();
  EXPECT_EQ(record.iova, 0x102000u);
  EXPECT_EQ(record.bytes, 808);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.entry.length, 9000u);
  EXPECT_EQ(record.ev.entry.op_context, 7u);
  EXPECT_EQ(record.ev.entry.queue_head, 2);
}

TEST_F(AcceptTest, BytesBeyondTheBufferAreDiscardedAndReported) {
  Open();
  bench_.AddBuffer(2, 5000, 0x100000, 7);
  bench_.Send(First(kStart + 1, 4096, 12288));
  bench_.Send(Next(kStart + 2, 4096, 4096, false, 12288));
  rtl::RxPacket last = Next(kStart + 3, 8192, 4096, true, 12288);
  last.ar = 1;
  const rtl::Response rsp = bench_.Answer(last);
  EXPECT_EQ(rsp.cack, kStart + 3);
  EXPECT_EQ(rsp.response, 1);  // No plain success.
  EXPECT_EQ(rsp.return_code, static_cast<uint8_t>(ReturnCode::kOk));
  EXPECT_EQ(rsp.modified_length, 5000u);
  ASSERT_EQ(bench_.places.size(), 3u);
  EXPECT_EQ(bench_.places[1].bytes, 904);
  EXPECT_EQ(bench_.places[1].stream, 4096);
  EXPECT_EQ(bench_.places[2].bytes, 0);
  const contract::Completion& entry = bench_.places[2].ev.entry;
  EXPECT_EQ(entry.status, Status::kTruncated);
  EXPECT_EQ(entry.length, 5000u);
  EXPECT_EQ(entry.message_length, 12288u);
}

TEST_F(AcceptTest, EmptyMessageCompletesWithoutPlacement) {
  Open();
  bench_.AddBuffer(2, 0, 0x100000, 7);
  bench_.Quiet(Packet(kStart + 1, 0));
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 0);
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.entry.status, Status::kOk);
}

TEST_F(AcceptTest, AnotherVersionIsUncorrectableAndEndsItsMessage) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket pkt = Packet(kStart + 1, 8);
  pkt.ses_ver = 1;
  ExpectError(bench_.Answer(pkt), kStart + 1, ReturnCode::kUncor);
  rtl::RxPacket no_op = Clearing(Packet(kStart + 2, 0));
  no_op.opcode = static_cast<uint8_t>(SesOpcode::kNoOp);
  no_op.ses_ver = 2;
  ExpectError(bench_.Answer(no_op), kStart + 2, ReturnCode::kUncor);
  EXPECT_EQ(Count(Statistic::kDropSes), 2);
  EXPECT_TRUE(bench_.credits_taken.empty());
  bench_.Answer(Clearing(First(kStart + 3, 8, 16)));
  EXPECT_EQ(bench_.credits_taken.size(), 1u);
  rtl::RxPacket rest = Clearing(Next(kStart + 4, 8, 8, true, 16));
  rest.ses_ver = 1;
  ExpectError(bench_.Answer(rest), kStart + 4, ReturnCode::kUncor);
  ASSERT_FALSE(bench_.places.empty());
  EXPECT_EQ(bench_.places.back().ev.entry.status, Status::kInitiatorError);
}

TEST_F(AcceptTest, SomWhileAMessageIsOpenEndsItWithInitiatorError) {
  Open();
  bench_.AddBuffer(2, 10000, 0x100000, 7);
  bench_.AddBuffer(2, 10000, 0x200000, 8);
  bench_.Quiet(First(kStart + 1, 4096, 9000));
  bench_.places.clear();
  rtl::RxPacket other = Packet(kStart + 2, 8);
  other.message_id = 2;
  ExpectError(bench_.Answer(other), kStart + 2, ReturnCode::kOpViolation);
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.entry.op_context, 7u);
  EXPECT_EQ(record.ev.entry.length, 4096u);
  EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
  EXPECT_EQ(record.ev.entry.detail,
            static_cast<uint8_t>(ReturnCode::kInitiatorErr));
  EXPECT_EQ(Count(Statistic::kDropSes), 1);
  // The next message is none of that.
  rtl::RxPacket next = Clearing(Packet(kStart + 3, 8));
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 3, 0, ReturnCode::kOk);
  EXPECT_EQ(bench_.TakeRecord().ev.entry.op_context, 8u);
}

TEST_F(AcceptTest, MiddleOfNoMessageIsAViolation) {
  Open();
  ExpectError(bench_.Answer(Next(kStart + 1, 4096, 100, false, 9000)),
              kStart + 1, ReturnCode::kOpViolation);
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(Count(Statistic::kDropSes), 1);
}

TEST_F(AcceptTest, PacketThatDoesNotContinueItsMessageEndsIt) {
  struct Case {
    const char* name;
    void (*spoil)(rtl::RxPacket&);
  };
  const Case cases[] = {
      {"id", [](rtl::RxPacket& p) { p.message_id = 2; }},
      {"job", [](rtl::RxPacket& p) { p.job_id = kJob + 1; }},
      {"offset", [](rtl::RxPacket& p) { p.message_offset = 4095; }},
      {"length", [](rtl::RxPacket& p) { p.request_length = 9001; }},
      {"opcode", [](rtl::RxPacket& p) { p.opcode = 9; }},
      {"early end", [](rtl::RxPacket& p) { p.eom = 1; }},
      {"too much", [](rtl::RxPacket& p) { p.payload_bytes = 4905; }},
      {"its own", [](rtl::RxPacket& p) { p.contradicts = 1; }},
  };
  Open();
  uint32_t psn = kStart + 1;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    bench_.AddBuffer(2, 10000, 0x100000, 7);
    bench_.Quiet(First(psn++, 4096, 9000));
    bench_.places.clear();
    rtl::RxPacket pkt = Next(psn++, 4096, 4096, false, 9000);
    c.spoil(pkt);
    ExpectError(bench_.Answer(pkt), psn - 1, ReturnCode::kOpViolation);
    const rtl::Place record = bench_.TakeRecord();
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.complete, 1);
    EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
    // The rest of it shares its answer.
    rtl::RxPacket rest = Clearing(Next(psn++, 8192, 808, true, 9000));
    rest.ar = 1;
    if (pkt.eom != 0) {  // To which nothing belongs any more.
      ExpectError(bench_.Answer(rest), psn - 1, ReturnCode::kOpViolation);
    } else {
      ExpectRest(bench_.Answer(rest), psn - 1, ReturnCode::kOpViolation);
    }
    const rtl::Place dropped = bench_.TakeRecord();
    EXPECT_EQ(dropped.bytes, 0);
    EXPECT_EQ(dropped.complete, 0);
    // Messages behind it are received.
    bench_.AddBuffer(2, 64, 0x1000, 9);
    rtl::RxPacket next = Clearing(Packet(psn++, 8));
    next.ar = 1;
    ExpectAck(bench_.Answer(next), psn - 1, 0, ReturnCode::kOk);
    bench_.places.clear();
  }
}

TEST_F(AcceptTest, InitiatorErrorEndsTheMessageWithoutFurtherPlacement) {
  Open();
  bench_.AddBuffer(2, 10000, 0x100000, 7);
  bench_.Quiet(First(kStart + 1, 4096, 9000));
  bench_.places.clear();
  rtl::RxPacket failed = Next(kStart + 2, 4096, 0, true, 9000);
  failed.ie = 1;
  failed.ar = 1;
  ExpectAck(bench_.Answer(failed), kStart + 2, 0, ReturnCode::kNull);
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
  EXPECT_EQ(record.ev.entry.length, 4096u);

  // From its first packet on: takes a buffer, since the sender sent a message.
  bench_.AddBuffer(2, 10000, 0x200000, 8);
  rtl::RxPacket first = First(kStart + 3, 0, 9000);
  first.ie = 1;
  bench_.Quiet(first);
  EXPECT_TRUE(bench_.places.empty());
  bench_.Quiet(Next(kStart + 4, 4096, 4096, false, 9000));
  EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  bench_.Quiet(Next(kStart + 5, 8192, 808, true, 9000));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.entry.op_context, 8u);
  EXPECT_EQ(record.ev.entry.length, 0u);
  EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
}

TEST_F(AcceptTest, DisabledContextGivesBackItsCreditAndCompletesNothing) {
  for (bool disabled : {true, false}) {
    SCOPED_TRACE(disabled);
    bench_.contexts[2].alive = true;
    const uint32_t base = disabled ? kStart : kStart + 4;
    bench_.contexts[2].buffers.clear();
    bench_.AddBuffer(2, 64, 0x1000, 6);
    bench_.AddBuffer(2, 10000, 0x100000, 7);
    tpdcid_ = bench_.Answer(Syn(base, 8)).spdcid;
    bench_.Quiet(First(base + 1, 4096, 9000));
    bench_.places.clear();
    if (disabled) {
      bench_.contexts[2].alive = false;
    } else {
      bench_.contexts[2].gen = 2;
    }
    bench_.Quiet(Next(base + 2, 4096, 4096, false, 9000));
    const rtl::Place record = bench_.TakeRecord();
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.stream, 4096);
    EXPECT_EQ(record.complete, 1);
    EXPECT_EQ(record.ev.write, 0);
    EXPECT_EQ(record.ev.credit, 1);
    EXPECT_EQ(record.ev.cq, 5);
    rtl::RxPacket last = Next(base + 3, 8192, 808, true, 9000);
    last.ar = 1;
    ExpectAck(bench_.Answer(last), base + 3, 0, ReturnCode::kNull);
    EXPECT_EQ(bench_.TakeRecord().complete, 0);
  }
}

TEST_F(AcceptTest, DeliveryIsAnErrorOnceTheContextIsGone) {
  for (bool drained : {true, false}) {
    SCOPED_TRACE(drained);
    bench_.contexts[2].alive = true;
    const uint32_t base = drained ? kStart : kStart + 4;
    bench_.contexts[2].buffers.clear();
    bench_.AddBuffer(2, 64, 0x1000, 6);
    bench_.AddBuffer(2, 10000, 0x100000, 7);
    rtl::RxPacket open = Syn(base, 8);
    open.offset = static_cast<uint16_t>(-1);
    tpdcid_ = bench_.Answer(open).spdcid;
    const auto delivered = [](rtl::RxPacket pkt) {
      pkt.dc = 1;
      return pkt;
    };
    bench_.Quiet(delivered(First(base + 1, 4096, 9000)));
    bench_.places.clear();
    if (drained) {
      bench_.contexts[2].alive = false;
      bench_.Drain();
      bench_.RunUntilIdle();
      bench_.places.clear();
    } else {
      bench_.contexts[2].gen++;
    }
    const rtl::RxPacket second =
        delivered(Next(base + 2, 4096, 4096, false, 9000));
    ExpectError(bench_.Answer(second), base + 2, ReturnCode::kBadIndex);
    const rtl::Place record = bench_.TakeRecord();
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.stream, 4096);
    EXPECT_EQ(record.ev.write, 0);
    EXPECT_EQ(record.ev.credit, 1);
    // It is told again until its sender has heard it.
    ExpectError(bench_.Answer(second), base + 2, ReturnCode::kBadIndex);
    bench_.places.clear();
    rtl::RxPacket last = delivered(Next(base + 3, 8192, 808, true, 9000));
    last.offset = static_cast<uint16_t>(-1);
    last.ar = 1;
    ExpectAck(bench_.Answer(last), base + 3, 0, ReturnCode::kBadIndex);
    const rtl::Place rest = bench_.TakeRecord();
    EXPECT_EQ(rest.bytes, 0);
    EXPECT_EQ(rest.complete, 0);
    EXPECT_EQ(rest.visible, 0);
    bench_.places.clear();
  }
}

// As if so many contexts had been used that the same generation came again.
TEST_F(AcceptTest, AMessageOfADrainedContextTakesNothingOfItsGenerationsNext) {
  bench_.AddBuffer(2, 64, 0x1000, 6);
  bench_.AddBuffer(2, 10000, 0x100000, 7);
  tpdcid_ = bench_.Answer(Syn(kStart, 8)).spdcid;
  bench_.Quiet(First(kStart + 1, 4096, 9000));
  bench_.contexts[2].alive = false;
  bench_.Drain();
  bench_.RunUntilIdle();
  bench_.places.clear();
  bench_.contexts[2].alive = true;
  bench_.AddBuffer(2, 64, 0x5000, 8);
  bench_.Quiet(Next(kStart + 2, 4096, 4096, false, 9000));
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.ev.write, 0);
  EXPECT_EQ(record.ev.credit, 1);
  bench_.Quiet(Next(kStart + 3, 8192, 808, true, 9000));
  EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  // The next message is the new context's.
  rtl::RxPacket next = Packet(kStart + 4, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 4, 0, ReturnCode::kOk);
  EXPECT_EQ(bench_.TakeRecord().iova, 0x5000u);
}

// It waits for no pause between packets.
TEST_F(AcceptTest, ADrainEndsWhilePacketsComeAtFullRate) {
  constexpr uint32_t kPackets = 2000;
  for (uint32_t i = 0; i <= kPackets; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
  }
  tpdcid_ = bench_.Answer(Syn(kStart, 8)).spdcid;
  for (uint32_t i = 1; i <= kPackets; ++i) {
    rtl::RxPacket packet = Packet(kStart + i, 8);
    packet.ar = 1;  // A deferred ACK would be a pause.
    bench_.Send(packet);
  }
  for (int i = 0; i < 100; ++i) bench_.Cycle();
  bench_.Drain();
  for (int i = 0; i < 2000 && bench_.draining(); ++i) bench_.Cycle();
  EXPECT_FALSE(bench_.draining());
  EXPECT_GT(bench_.waiting(), kPackets / 4);
  bench_.RunUntilIdle(2 * kPackets + 1000);
  EXPECT_EQ(bench_.places.size(), 1 + kPackets + 1);  // And the token.
}

TEST_F(AcceptTest, CloseInsideAMessageEndsIt) {
  Open();
  bench_.AddBuffer(2, 10000, 0x100000, 7);
  bench_.Quiet(First(kStart + 1, 4096, 9000));
  bench_.places.clear();
  bench_.Answer(Control(CpType::kCloseCommand, kStart + 2));
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.entry.op_context, 7u);
  EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
}

TEST_F(AcceptTest, DrainTokenFollowsThePacketsBeforeIt) {
  Open();
  for (uint32_t i = 1; i <= 3; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
    bench_.Send(Packet(kStart + i, 8));
  }
  for (int i = 0; i < 6; ++i) bench_.Cycle();
  bench_.Drain();
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.places.size(), 4u);
  int tokens = 0;
  for (const rtl::Place& record : bench_.places) tokens += record.token;
  EXPECT_EQ(tokens, 1);
}

TEST_F(AcceptTest, PacketsGoOnWhileMessagesOfAContextThatEndedAreLookedFor) {
  constexpr uint32_t kPackets = 40;
  Open();
  for (uint32_t i = 1; i <= kPackets; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
    bench_.Send(Packet(kStart + i, 8));
  }
  bench_.Drain();
  for (uint32_t i = 0; i < 3 * kPackets; ++i) bench_.Cycle();
  EXPECT_EQ(bench_.waiting(), 0u);
  EXPECT_EQ(bench_.places.size(), kPackets);
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.places.size(), kPackets + 1);
  EXPECT_EQ(bench_.places.back().token, 1);
}

}  // namespace
}  // namespace heddle::test
