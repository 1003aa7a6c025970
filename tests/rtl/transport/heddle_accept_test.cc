// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/transport/accept_fixture.h"

namespace heddle::test {
namespace {

TEST_F(AcceptTest, SynOpensAPdcPlacesAndCompletesTheMessage) {
  bench_.AddBuffer(2, 64, 0x1000, 0x77);
  RxPacket pkt = Syn(kStart, 8);
  pkt.ce = 1;
  pkt.hd = 1;
  pkt.header_data = 0x1122334455667788;
  const Response rsp = bench_.Answer(pkt);
  tpdcid_ = rsp.spdcid;
  EXPECT_EQ(tpdcid_ >> 10, kSlot);
  EXPECT_NE(tpdcid_ & kTargetRole, 0);
  EXPECT_NE((tpdcid_ >> 6) & 15, 0);
  ExpectAck(rsp, kStart, 0, ReturnCode::kOk);
  EXPECT_EQ(rsp.modified_length, 8u);
  EXPECT_EQ(rsp.message_id, 1);
  EXPECT_EQ(rsp.job_id, kJob);
  EXPECT_EQ(rsp.m, 1);
  EXPECT_EQ(rsp.fa_lo, 0x0a000002u);
  EXPECT_EQ(rsp.mac, 0x020000000002u);
  EXPECT_EQ(rsp.entropy, 0xc123);
  EXPECT_EQ(rsp.dscp, 9);

  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 8);
  EXPECT_EQ(record.bytes, 8);
  EXPECT_EQ(record.iova, 0x1000u);
  EXPECT_EQ(record.first, 1);
  EXPECT_EQ(record.complete, 1);
  CqEvent expected = {};
  expected.write = 1;
  expected.credit = 1;
  expected.owner = 0x21;
  expected.cq = 5;
  expected.cq_gen = 6;
  expected.entry.kind = 2;
  expected.entry.opcode = 5;
  expected.entry.context = 2;
  expected.entry.flags = 1;
  expected.entry.position = 0x77;
  expected.entry.queue_head = 1;
  expected.entry.peer = 7;
  expected.entry.source_fa_lo = 0x0a000002;
  expected.entry.header_data = 0x1122334455667788;
  expected.entry.message_length = 8;
  expected.entry.length = 8;
  expected.entry.op_context = 0x77;
  EXPECT_EQ(record.ev, expected);
  EXPECT_EQ(bench_.credits_taken, std::vector<uint8_t>{5});
  EXPECT_EQ(Count(Statistic::kRxRequests), 1);
  EXPECT_EQ(Count(Statistic::kRxMessages), 1);
}

TEST_F(AcceptTest, DuplicateIsAcknowledgedAgainAndItsPayloadDropped) {
  Open();
  for (uint32_t i = 1; i <= 3; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
    bench_.Send(Packet(kStart + i, 8));
  }
  bench_.RunUntilIdle();
  bench_.places.clear();
  RxPacket pkt = Packet(kStart + 1, 8);
  pkt.retx = 1;
  pkt.message_id = 44;
  const Response rsp = bench_.Answer(pkt);
  ExpectAck(rsp, kStart + 3, -2, ReturnCode::kNull);
  EXPECT_EQ(rsp.retx, 1);
  EXPECT_EQ(rsp.message_id, 44);
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 8);
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(Count(Statistic::kRxDuplicates), 1);
}

TEST_F(AcceptTest, OneNackPerGapAndOneMoreForEachRetransmission) {
  Open();
  for (int i = 0; i < 4; ++i) bench_.AddBuffer(2, 64, 0x1000, 1);
  ExpectNack(bench_.Answer(Packet(kStart + 3, 8)), NackCode::kRodOoo, tpdcid_,
             kStart + 3);
  bench_.Quiet(Packet(kStart + 4, 8));
  RxPacket again = Packet(kStart + 2, 8);
  again.retx = 1;
  ExpectNack(bench_.Answer(again), NackCode::kRodOoo, tpdcid_, kStart + 2);
  bench_.Quiet(Packet(kStart + 1, 8));  // Accepted; no ACK was asked for.
  ExpectNack(bench_.Answer(Packet(kStart + 3, 8)), NackCode::kRodOoo, tpdcid_,
             kStart + 3);
  EXPECT_EQ(Count(Statistic::kRxOutOfOrder), 4);
  EXPECT_EQ(Count(Statistic::kRxRequests), 2);
}

TEST_F(AcceptTest, PacketThatOvertakesTheFirstOpensThePdcAtItsStart) {
  for (int i = 0; i < 2; ++i) bench_.AddBuffer(2, 64, 0x1000, 1);
  const Response nack = bench_.Answer(Syn(kStart + 1, 8));
  tpdcid_ = nack.spdcid;
  EXPECT_NE(tpdcid_, 0);
  ExpectNack(nack, NackCode::kRodOoo, tpdcid_, kStart + 1);
  ExpectAck(bench_.Answer(Syn(kStart, 8)), kStart, 0, ReturnCode::kOk);
  ExpectAck(bench_.Answer(Syn(kStart + 1, 8)), kStart + 1, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, PsnBeyondTheWindowIsNackedAndOpensNothing) {
  const RxPacket far = Syn(kStart + 128, 8);
  ExpectNack(bench_.Answer(far), NackCode::kPsnOorWindow, 0, kStart + 128);
  Open();
  ExpectNack(bench_.Answer(Packet(kStart + 1 + 128, 8)),
             NackCode::kPsnOorWindow, tpdcid_, kStart + 129);
  ExpectNack(bench_.Answer(Packet(kStart + 0x8000, 8)), NackCode::kPsnOorWindow,
             tpdcid_, kStart + 0x8000);
  ExpectNack(bench_.Answer(Packet(kStart + 1 - 0x8001, 8)),
             NackCode::kPsnOorWindow, tpdcid_, kStart - 0x8000);
}

TEST_F(AcceptTest, PsnsWrapAround) {
  RxPacket pkt = Syn(kStart, 8);
  pkt.psn = 0xffffffff;
  pkt.psn_offset = 0;
  for (int i = 0; i < 2; ++i) bench_.AddBuffer(2, 64, 0x1000, 1);
  tpdcid_ = bench_.Answer(pkt).spdcid;
  pkt.psn = 0;
  pkt.psn_offset = 1;
  ExpectAck(bench_.Answer(pkt), 0, 0, ReturnCode::kOk);
  pkt.psn = 0xffffffff;
  pkt.psn_offset = 0;
  ExpectAck(bench_.Answer(pkt), 0, -1, ReturnCode::kNull);
}

TEST_F(AcceptTest, WithoutABufferThePacketIsRefusedAndItsFollowersAreQuiet) {
  const Response refused = bench_.Answer(Syn(kStart, 8));
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
  RxPacket good = Packet(kStart + 1, 8);
  good.ar = 1;
  ExpectAck(bench_.Answer(good), kStart + 1, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, WrongJobOpcodeAndAddressingAreAnsweredWithTheirError) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  RxPacket job = Packet(kStart + 1, 8);
  job.job_id = 9;
  const Response rsp = bench_.Answer(job);
  ExpectError(rsp, kStart + 1, ReturnCode::kBadJobId);
  EXPECT_EQ(rsp.job_id, 9u);
  // Each request clears what was answered before it.
  RxPacket opcode = Packet(kStart + 2, 8);
  opcode.opcode = 3;
  opcode.offset = static_cast<uint16_t>(-1);
  ExpectError(bench_.Answer(opcode), kStart + 2, ReturnCode::kUnsupportedOp);
  RxPacket relative = Packet(kStart + 3, 8);
  relative.rel = 1;
  relative.offset = static_cast<uint16_t>(-1);
  ExpectError(bench_.Answer(relative), kStart + 3, ReturnCode::kBadPid);
  EXPECT_EQ(bench_.contexts[2].buffers.size(), 1u);
  for (const Place& record : bench_.places) EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(bench_.places.size(), 3u);
  EXPECT_TRUE(bench_.credits_taken.empty());
}

TEST_F(AcceptTest, AnIndexThatNobodyServesIsAnError) {
  Open();
  RxPacket other = Packet(kStart + 1, 8);
  other.resource_index = 6;
  ExpectError(bench_.Answer(other), kStart + 1, ReturnCode::kBadIndex);
  EXPECT_TRUE(bench_.credits_taken.empty());
}

TEST_F(AcceptTest, ErrorOnAFirstPacketOpensThePdcThatKeepsItsAnswer) {
  RxPacket job = Syn(kStart, 8);
  job.job_id = 9;
  const Response rsp = bench_.Answer(job);
  EXPECT_NE(rsp.spdcid, 0);
  tpdcid_ = rsp.spdcid;
  ExpectError(rsp, kStart, ReturnCode::kBadJobId);
  ExpectError(bench_.Answer(job), kStart, ReturnCode::kBadJobId);
}

// UET 2.15: an error answer is delivered for certain.
TEST_F(AcceptTest, AnErrorIsRepeatedAndHoldsTheAcknowledgementUntilCleared) {
  Open();
  RxPacket bad = Packet(kStart + 1, 8);
  bad.job_id = 9;
  bad.message_id = 77;
  ExpectError(bench_.Answer(bad), kStart + 1, ReturnCode::kBadJobId);
  // What follows is received, but not acknowledged.
  for (uint32_t i = 2; i <= 3; ++i) bench_.AddBuffer(2, 64, 0x1000, i);
  bench_.Quiet(Packet(kStart + 2, 8));
  RxPacket asking = Packet(kStart + 3, 8);
  asking.ar = 1;
  for (const RxPacket& pkt : {asking, bad, Packet(kStart + 2, 8),
                              Control(CpType::kAckRequest, kStart + 1),
                              Control(CpType::kAckRequest, kStart + 3)}) {
    const Response rsp = bench_.Answer(pkt);
    ExpectError(rsp, kStart + 1, ReturnCode::kBadJobId);
    EXPECT_EQ(rsp.message_id, 77);
    EXPECT_EQ(rsp.job_id, 9u);
  }
  EXPECT_EQ(bench_.credits_taken.size(), 2u);
  // A second error has no place.
  RxPacket second = Packet(kStart + 4, 8);
  second.job_id = 9;
  ExpectNack(bench_.Answer(second), NackCode::kNoGtdDelAvail, tpdcid_,
             kStart + 4);
  // Too early a clear changes nothing.
  RxPacket clear = Control(CpType::kClearCommand, 0);
  clear.pds_payload = kStart;
  bench_.Quiet(clear);
  clear.pds_payload = kStart + 1;
  ExpectAck(bench_.Answer(clear), kStart + 3, 0, ReturnCode::kNull);
  bench_.Quiet(clear);
  ExpectError(bench_.Answer(second), kStart + 4, ReturnCode::kBadJobId);
  // Nothing follows: the initiator knows.
  clear.pds_payload = kStart + 4;
  bench_.Quiet(clear);
  bench_.AddBuffer(2, 64, 0x1000, 5);
  asking.psn = kStart + 5;
  ExpectAck(bench_.Answer(asking), kStart + 5, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, ARequestClearsAsWellAndIsAnswered) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  bench_.AddBuffer(2, 64, 0x1000, 2);
  RxPacket bad = Packet(kStart + 1, 8);
  bad.job_id = 9;
  ExpectError(bench_.Answer(bad), kStart + 1, ReturnCode::kBadJobId);
  RxPacket next = Packet(kStart + 2, 8);
  next.offset = static_cast<uint16_t>(-2);
  bench_.Quiet(next);
  next.psn = kStart + 3;
  ExpectAck(bench_.Answer(next), kStart + 3, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, TheRestOfARefusedMessageGetsTheSameAnswerAndIsDiscarded) {
  Open();
  RxPacket first = First(kStart + 1, 4096, 9000);
  first.job_id = 9;
  ExpectError(bench_.Answer(first), kStart + 1, ReturnCode::kBadJobId);
  RxPacket middle = Next(kStart + 2, 4096, 4096, false, 9000);
  middle.job_id = 9;
  middle.offset = static_cast<uint16_t>(-1);
  Response rsp = bench_.Answer(middle);
  ExpectAck(rsp, kStart + 2, 0, ReturnCode::kBadJobId);
  EXPECT_EQ(rsp.req, 0);
  RxPacket last = Next(kStart + 3, 8192, 808, true, 9000);
  last.job_id = 9;
  last.ar = 1;
  rsp = bench_.Answer(last);
  ExpectAck(rsp, kStart + 3, 0, ReturnCode::kBadJobId);
  EXPECT_EQ(rsp.req, 0);
  for (const Place& record : bench_.places) {
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.complete, 0);
  }
  bench_.AddBuffer(2, 64, 0x1000, 5);
  RxPacket next = Packet(kStart + 4, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 4, 0, ReturnCode::kOk);
}

TEST_F(AcceptWriteTest, IsPlacedInTheRegionWithoutBufferCreditOrCompletion) {
  Open();
  bench_.credit_ok = 0;
  bench_.Quiet(AsWrite(First(kStart + 1, 4096, 9000)));
  Place record = bench_.TakeRecord();
  EXPECT_EQ(record.first, 1);
  EXPECT_EQ(record.bytes, 4096);
  EXPECT_EQ(record.iova, 0x100040u);
  EXPECT_EQ(record.ev.owner, 0x21);
  bench_.Quiet(AsWrite(Next(kStart + 2, 4096, 4096, false, 9000)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.iova, 0x101040u);
  EXPECT_EQ(record.bytes, 4096);
  RxPacket last = AsWrite(Next(kStart + 3, 8192, 808, true, 9000));
  last.ar = 1;
  const Response rsp = bench_.Answer(last);
  ExpectAck(rsp, kStart + 3, 0, ReturnCode::kOk);
  EXPECT_EQ(rsp.modified_length, 9000u);
  record = bench_.TakeRecord();
  EXPECT_EQ(record.iova, 0x102040u);
  EXPECT_EQ(record.bytes, 808);
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(record.visible, 0);
  EXPECT_TRUE(bench_.credits_taken.empty());
  EXPECT_EQ(Count(Statistic::kRxRma), 3);
  EXPECT_EQ(Count(Statistic::kRxMessages), 2);
  EXPECT_EQ(Count(Statistic::kRxRmaRefused), 0);
}

TEST_F(AcceptWriteTest, CountsOnceWhenItsMessageIsComplete) {
  Open();
  bench_.contexts[2].counters = {.remote_write = 7};
  bench_.region.counter = 9;
  bench_.credit_ok = 0;
  bench_.Quiet(AsWrite(First(kStart + 1, 4096, 4100)));
  Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(record.ev.own, 0);
  EXPECT_EQ(record.ev.region, 0);
  bench_.Quiet(AsWrite(Next(kStart + 2, 4096, 4, true, 4100)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 0);
  EXPECT_EQ(record.ev.credit, 0);
  EXPECT_EQ(record.ev.own, 7);
  EXPECT_EQ(record.ev.region, 9);
  // One without data has a record for its count alone.
  bench_.Quiet(AsWrite(Packet(kStart + 3, 0)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.own, 7);
  // A refused one counts nothing.
  SetCode(ReturnCode::kBadAddr);
  bench_.Answer(AsWrite(Packet(kStart + 4, 8)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(record.ev.own, 0);
  EXPECT_EQ(record.ev.region, 0);
}

TEST_F(AcceptTest, ReceivesCountInTheirContext) {
  Open();
  bench_.contexts[2].counters = {.recv = 5, .remote_write = 7};
  bench_.AddBuffer(2, 64, 0x1000, 5);
  bench_.Quiet(Packet(kStart + 1, 8));
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.own, 5);
  EXPECT_EQ(record.ev.region, 0);
}

class AcceptReadTest : public AcceptWriteTest {
 protected:
  // A packet of a READ that asks for `bytes`.
  static RxPacket AsRead(RxPacket pkt, uint16_t bytes) {
    pkt = AsWrite(pkt);
    pkt.opcode = 2;
    pkt.payload_bytes = 0;
    pkt.read_bytes = bytes;
    return pkt;
  }
};

TEST_F(AcceptReadTest, EachPacketIsHandedOnBehindWhatCameBefore) {
  Open();
  bench_.credit_ok = 0;
  bench_.region.region = 700;
  bench_.Quiet(AsRead(First(kStart + 1, 4096, 9000), 4096));
  bench_.Quiet(AsRead(Next(kStart + 2, 4096, 4096, false, 9000), 4096));
  RxPacket last = AsRead(Next(kStart + 3, 8192, 808, true, 9000), 808);
  last.ar = 1;
  const Response rsp = bench_.Answer(last);
  ExpectAck(rsp, kStart + 3, 0, ReturnCode::kOk);
  EXPECT_EQ(rsp.modified_length, 9000u);
  ASSERT_EQ(bench_.jobs.size(), 3u);
  ASSERT_EQ(bench_.places.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    const ReturnJob& job = bench_.jobs[i];
    EXPECT_EQ(job.close, 0);
    EXPECT_EQ(job.tell, 0);
    EXPECT_EQ(job.open, i == 0);
    EXPECT_EQ(job.start_psn, kStart);
    EXPECT_EQ(job.route.spdcid, tpdcid_);
    EXPECT_EQ(job.route.fa_lo, last.fa_lo);
    EXPECT_EQ(job.route.dpdcid, last.spdcid);
    EXPECT_EQ(job.data.iova, 0x100040u + i * 4096);
    EXPECT_EQ(job.data.bytes, i == 2 ? 808 : 4096);
    EXPECT_EQ(job.data.owner, 0x21);
    EXPECT_EQ(job.data.region, 700);
    EXPECT_EQ(job.data.message_id, last.message_id);
    EXPECT_EQ(job.data.message_offset, i * 4096);
    EXPECT_EQ(job.data.message_bytes, 9000u);
    EXPECT_EQ(bench_.places[i].job, 1);
    EXPECT_EQ(bench_.places[i].bytes, 0);
    EXPECT_EQ(bench_.places[i].complete, 0);
  }
  EXPECT_EQ(Count(Statistic::kRxRma), 3);
  // A duplicate is acknowledged, and not read again.
  bench_.Answer(last);
  EXPECT_EQ(bench_.jobs.size(), 3u);
}

TEST_F(AcceptReadTest, AReportedReadIsToldOfWithItsLastPacket) {
  Open();
  bench_.contexts[2].event = true;
  bench_.contexts[2].counters.remote_read = 4;
  bench_.Quiet(AsRead(First(kStart + 1, 4096, 5000), 4096));
  EXPECT_EQ(bench_.credits_taken, std::vector<uint8_t>{5});
  bench_.Quiet(AsRead(Next(kStart + 2, 4096, 904, true, 5000), 904));
  EXPECT_EQ(bench_.credits_taken.size(), 1u);
  ASSERT_EQ(bench_.jobs.size(), 2u);
  EXPECT_EQ(bench_.jobs[0].tell, 0);
  EXPECT_EQ(bench_.jobs[1].tell, 1);
  const ReadReport wanted = {.ctx = 2,
                             .gen = 1,
                             .owner = 0x21,
                             .credit = 1,
                             .cq = 5,
                             .cq_gen = 6,
                             .queue_head = 1,
                             .initiator = 7,
                             .key = 0xabcd,
                             .bytes = 5000};
  EXPECT_EQ(bench_.jobs[1].report, wanted);
  for (const Place& place : bench_.places) EXPECT_EQ(place.complete, 0);
}

TEST_F(AcceptReadTest, ACounterAloneTakesNoCredit) {
  Open();
  bench_.contexts[2].counters.remote_read = 4;
  bench_.Quiet(AsRead(Packet(kStart + 1, 8), 8));
  EXPECT_TRUE(bench_.credits_taken.empty());
  ASSERT_EQ(bench_.jobs.size(), 1u);
  EXPECT_EQ(bench_.jobs[0].tell, 1);
  EXPECT_EQ(bench_.jobs[0].report.credit, 0);
}

// Nothing has to be acknowledged for it.
TEST_F(AcceptReadTest, AReadOfNothingIsReportedAtOnce) {
  Open();
  bench_.contexts[2].event = true;
  bench_.contexts[2].counters.remote_read = 4;
  bench_.contexts[2].counters.remote_write = 5;
  bench_.region.counter = 6;
  bench_.Quiet(AsRead(Packet(kStart + 1, 0), 0));
  EXPECT_TRUE(bench_.jobs.empty());
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.own, 4);
  EXPECT_EQ(record.ev.region, 0);
  EXPECT_EQ(record.ev.entry.opcode,
            static_cast<uint8_t>(contract::Opcode::kRead));
  EXPECT_EQ(record.ev.entry.kind,
            static_cast<uint8_t>(contract::CompletionKind::kTarget));
}

TEST_F(AcceptReadTest, WithoutRoomToReportIsRefusedAndChangesNothing) {
  Open();
  bench_->report_room_i = 0;
  RxPacket pkt = AsRead(Packet(kStart + 1, 8), 8);
  pkt.ar = 1;
  bench_.contexts[2].event = true;
  ExpectNack(bench_.Answer(pkt), NackCode::kNoResource, tpdcid_, kStart + 1);
  EXPECT_TRUE(bench_.jobs.empty());
  EXPECT_TRUE(bench_.credits_taken.empty());
  // One that nobody is told of needs none.
  bench_.contexts[2].event = false;
  ExpectAck(bench_.Answer(pkt), kStart + 1, 0, ReturnCode::kOk);
  ASSERT_EQ(bench_.jobs.size(), 1u);
  EXPECT_EQ(bench_.jobs[0].tell, 0);
}

TEST_F(AcceptReadTest, AReportedReadThatFailsGivesItsCreditBack) {
  Open();
  bench_.contexts[2].event = true;
  bench_.Quiet(AsRead(First(kStart + 1, 4096, 9000), 4096));
  bench_.places.clear();
  SetCode(ReturnCode::kBadMkey);
  RxPacket next = AsRead(Next(kStart + 2, 4096, 4096, false, 9000), 4096);
  ExpectError(bench_.Answer(next), kStart + 2, ReturnCode::kBadMkey);
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.write, 0);
  ASSERT_EQ(bench_.jobs.size(), 1u);
  EXPECT_EQ(bench_.jobs[0].tell, 0);
}

TEST_F(AcceptReadTest, WithoutRoomToReturnIsRefusedAndChangesNothing) {
  Open();
  bench_.SetRoom(false);
  RxPacket pkt = AsRead(Packet(kStart + 1, 8), 8);
  ExpectNack(bench_.Answer(pkt), NackCode::kNoResource, tpdcid_, kStart + 1);
  EXPECT_TRUE(bench_.jobs.empty());
  // What asks for nothing needs none.
  RxPacket empty = AsRead(Packet(kStart + 1, 0), 0);
  empty.ar = 1;
  ExpectAck(bench_.Answer(empty), kStart + 1, 0, ReturnCode::kOk);
  bench_.SetRoom(true);
  pkt.psn = kStart + 2;
  pkt.ar = 1;
  ExpectAck(bench_.Answer(pkt), kStart + 2, 0, ReturnCode::kOk);
  EXPECT_EQ(bench_.jobs.size(), 1u);
}

TEST_F(AcceptReadTest, RefusedReadReturnsNothingFromThereOn) {
  Open();
  bench_.Quiet(AsRead(First(kStart + 1, 4096, 9000), 4096));
  SetCode(ReturnCode::kBadMkey);
  RxPacket next = AsRead(Next(kStart + 2, 4096, 4096, false, 9000), 4096);
  ExpectError(bench_.Answer(next), kStart + 2, ReturnCode::kBadMkey);
  SetCode(ReturnCode::kOk);
  RxPacket last = AsRead(Next(kStart + 3, 8192, 808, true, 9000), 808);
  last.ar = 1;
  bench_.Answer(last);
  EXPECT_EQ(bench_.jobs.size(), 1u);
  EXPECT_EQ(Count(Statistic::kRxRmaRefused), 1);
}

TEST_F(AcceptReadTest, PacketWithInitiatorErrorAsksForNothing) {
  Open();
  bench_.Quiet(AsRead(First(kStart + 1, 4096, 9000), 4096));
  RxPacket end = AsRead(Next(kStart + 2, 4096, 0, true, 9000), 4096);
  end.ie = 1;
  end.ar = 1;
  bench_.Answer(end);
  EXPECT_EQ(bench_.jobs.size(), 1u);
}

TEST_F(AcceptReadTest, EndOfThePdcEndsItsReturnDirection) {
  Open();
  bench_.Quiet(AsRead(Packet(kStart + 1, 8), 8));
  RxPacket close = Packet(kStart + 2, 0);
  close.pds_type = static_cast<uint8_t>(PdsType::kCp);
  close.next_hdr = static_cast<uint8_t>(contract::CpType::kCloseCommand);
  close.ar = 1;
  bench_.Answer(close);
  ASSERT_EQ(bench_.jobs.size(), 2u);
  EXPECT_EQ(bench_.jobs[1].close, 1);
  EXPECT_EQ(bench_.jobs[1].lost, 0);
  EXPECT_EQ(bench_.jobs[1].pdc, bench_.jobs[0].pdc);
  EXPECT_EQ(bench_.places.back().job, 1);
}

// heddle_return_rx judges what comes for our own PDCs.
TEST_F(AcceptReadTest, ReturnDataTakeTheirVerdictInTurn) {
  RxPacket data = {};
  data.pds_type = static_cast<uint8_t>(PdsType::kRodReq);
  data.next_hdr = static_cast<uint8_t>(contract::NextHdr::kResponseData);
  data.dpdcid = kSlot << 10 | 33;
  data.payload_bytes = 100;
  bench_.back.respond = 1;
  bench_.back.rsp.cack = 55;
  bench_.back.rsp.kind = ResponseKind::kNone;
  bench_.back.place = 1;
  bench_.back.stream = 100;
  bench_.back.bytes = 64;
  bench_.back.iova = 0x7000;
  bench_.back.owner = 9;
  bench_.back.pdc = 33;
  bench_.back.settle = 1;
  bench_.back.msg = 1000;
  bench_.back.fail = 1;
  bench_.back.code = 3;
  const Response rsp = bench_.Answer(data);
  EXPECT_EQ(rsp.cack, 55u);
  Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 100);
  EXPECT_EQ(record.bytes, 64);
  EXPECT_EQ(record.iova, 0x7000u);
  EXPECT_EQ(record.ev.owner, 9);
  EXPECT_EQ(record.tpdc, 33);
  EXPECT_EQ(record.back, 1);
  EXPECT_EQ(record.settle, 1);
  EXPECT_EQ(record.msg, 1000);
  EXPECT_EQ(record.fail, 1);
  EXPECT_EQ(record.code, 3);
  EXPECT_EQ(bench_.back_takes, 1);
  // The data of a small READ come in its ACK, which goes to the PDC as well.
  bench_.back.respond = 0;
  data.pds_type = static_cast<uint8_t>(PdsType::kAck);
  data.return_code = static_cast<uint8_t>(ReturnCode::kOk);
  bench_.Quiet(data);
  EXPECT_EQ(bench_.TakeRecord().msg, 1000);
  EXPECT_EQ(bench_.back_takes, 2);
  ASSERT_EQ(bench_.acks.size(), 1u);
  EXPECT_EQ(bench_.acks[0].data, 1);
}

// Its ACKs that were put off leave between packets, and change no target PDC.
TEST_F(AcceptReadTest, AcksOfReturnDataThatWerePutOffLeaveFromHere) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 100);
  bench_.Quiet(Packet(kStart + 1, 8));
  const size_t before = bench_.responses.size();
  for (const uint8_t respond : {uint8_t{1}, uint8_t{0}}) {
    bench_.late = {.due = 1, .respond = respond, .answer = {.cack = 4711}};
    bench_.RunUntilIdle();
    EXPECT_EQ(bench_.responses.size(), before + 1) << "one, of the first";
  }
  EXPECT_EQ(bench_.responses.back().cack, 4711U);
  EXPECT_EQ(bench_.late_looks, 2);
  EXPECT_EQ(bench_.late_takes, 2);
  bench_.AddBuffer(2, 64, 0x1000, 100);
  RxPacket next = Packet(kStart + 2, 8);
  next.ar = 1;
  EXPECT_EQ(bench_.Answer(next).cack, kStart + 2);
}

TEST_F(AcceptWriteTest, HeaderDataOrAContextThatReportsMakesACompletion) {
  Open();
  uint32_t psn = kStart;
  for (int kind = 1; kind < 4; ++kind) {
    SCOPED_TRACE(kind);
    const bool hd = (kind & 1) != 0;
    bench_.contexts[2].event = (kind & 2) != 0;
    bench_.credits_taken.clear();
    RxPacket pkt = AsWrite(Packet(++psn, 8));
    pkt.hd = hd;
    pkt.header_data = 0x1122334455667788;
    pkt.initiator = 0x3007;
    bench_.credit_ok = ~(1u << 5);
    ExpectNack(bench_.Answer(pkt), NackCode::kNoResource, tpdcid_, psn);
    bench_.places.clear();
    bench_.credit_ok = 1u << 5;
    bench_.Quiet(pkt);
    EXPECT_EQ(bench_.credits_taken, std::vector<uint8_t>{5});
    const Place record = bench_.TakeRecord();
    EXPECT_EQ(record.bytes, 8);
    EXPECT_EQ(record.complete, 1);
    CqEvent expected = {};
    expected.write = 1;
    expected.credit = 1;
    expected.owner = 0x21;
    expected.cq = 5;
    expected.cq_gen = 6;
    expected.entry.kind =
        static_cast<uint8_t>(contract::CompletionKind::kTarget);
    expected.entry.opcode = 1;
    expected.entry.context = 2;
    expected.entry.flags =
        hd ? contract::kCompletionFlagHeaderData : uint8_t{0};
    expected.entry.queue_head = 1;  // One buffer was taken by Open().
    expected.entry.peer = 0x3007;
    expected.entry.source_fa_lo = 0x0a000002;
    expected.entry.match_bits = 0xabcd;
    expected.entry.header_data = hd ? 0x1122334455667788 : 0;
    expected.entry.message_length = 8;
    expected.entry.length = 8;
    EXPECT_EQ(record.ev, expected);
  }
  bench_.contexts[2].event = true;
  bench_.Quiet(AsWrite(Packet(++psn, 0)));
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 1);
}

TEST_F(AcceptWriteTest, AnswersOfTheRegionTableAreTheInitiators) {
  Open();
  uint32_t psn = kStart;
  for (ReturnCode code : {ReturnCode::kBadMkey, ReturnCode::kPermViolation,
                          ReturnCode::kBadAddr}) {
    SetCode(code);
    RxPacket pkt = AsWrite(Packet(++psn, 8));
    pkt.offset = static_cast<uint16_t>(-1);
    ExpectError(bench_.Answer(pkt), psn, code);
    EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  }
  // Another function's region, whatever it grants.
  bench_.region.owner = 0x22;
  SetCode(ReturnCode::kOk);
  RxPacket pkt = AsWrite(Packet(++psn, 8));
  pkt.offset = static_cast<uint16_t>(-1);
  ExpectError(bench_.Answer(pkt), psn, ReturnCode::kBadMkey);
  bench_.region.owner = 0x21;
  // No context serves the RI.
  pkt = AsWrite(Packet(++psn, 8));
  pkt.offset = static_cast<uint16_t>(-1);
  pkt.resource_index = 6;
  ExpectError(bench_.Answer(pkt), psn, ReturnCode::kBadIndex);
  EXPECT_EQ(Count(Statistic::kRxRmaRefused), 5);
}

TEST_F(AcceptWriteTest, ARegionClosedInsideAMessageEndsItWithoutCompletion) {
  Open();
  RxPacket first = AsWrite(First(kStart + 1, 4096, 9000));
  first.hd = 1;
  bench_.Quiet(first);
  EXPECT_EQ(bench_.credits_taken.size(), 1u);
  EXPECT_EQ(bench_.TakeRecord().bytes, 4096);
  SetCode(ReturnCode::kBadMkey);
  ExpectError(bench_.Answer(AsWrite(Next(kStart + 2, 4096, 4096, false, 9000))),
              kStart + 2, ReturnCode::kBadMkey);
  Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.write, 0);
  // Open again: the message stays refused.
  SetCode(ReturnCode::kOk);
  RxPacket last = AsWrite(Next(kStart + 3, 8192, 808, true, 9000));
  last.offset = static_cast<uint16_t>(-1);
  ExpectAck(bench_.Answer(last), kStart + 3, 0, ReturnCode::kBadMkey);
  record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 0);
}

TEST_F(AcceptWriteTest, AContextGoneInsideAMessageEndsItToo) {
  for (bool disabled : {true, false}) {
    bench_.contexts[2].alive = true;
    const uint32_t base = disabled ? kStart : kStart + 4;
    bench_.contexts[2].buffers.clear();
    bench_.AddBuffer(2, 64, 0x1000, 6);
    RxPacket open = Syn(base, 8);
    open.offset = static_cast<uint16_t>(-1);
    tpdcid_ = bench_.Answer(open).spdcid;
    bench_.Quiet(AsWrite(First(base + 1, 4096, 9000)));
    if (disabled) {
      bench_.contexts[2].alive = false;
    } else {
      bench_.contexts[2].gen = 2;
    }
    bench_.places.clear();
    ExpectError(bench_.Answer(AsWrite(Next(base + 2, 4096, 4096, false, 9000))),
                base + 2, ReturnCode::kBadIndex);
    EXPECT_EQ(bench_.TakeRecord().bytes, 0);
    bench_.Answer(AsWrite([&] {
      RxPacket last = Next(base + 3, 8192, 808, true, 9000);
      last.ar = 1;
      return last;
    }()));
    bench_.places.clear();
  }
}

TEST_F(AcceptWriteTest, PacketsThatDoNotContinueTheWriteAreDropped) {
  Open();
  uint32_t psn = kStart;
  const auto key = [](RxPacket& p) { p.match_bits = 0xabce; };
  const auto send = [](RxPacket& p) { p.opcode = 5; };
  for (void (*spoil)(RxPacket&) : {+key, +send}) {
    bench_.Quiet(AsWrite(First(++psn, 4096, 9000)));
    bench_.places.clear();
    RxPacket pkt = AsWrite(Next(++psn, 4096, 4096, false, 9000));
    spoil(pkt);
    ExpectAck(bench_.Answer(pkt), psn, 0, ReturnCode::kNull);
    EXPECT_EQ(bench_.TakeRecord().bytes, 0);
    RxPacket last = AsWrite(Next(++psn, 8192, 808, true, 9000));
    last.ar = 1;
    ExpectAck(bench_.Answer(last), psn, 0, ReturnCode::kNull);
    EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  }
}

TEST_F(AcceptWriteTest, InitiatorErrorPlacesNothingAndReturnsTheCredit) {
  Open();
  RxPacket first = AsWrite(First(kStart + 1, 4096, 9000));
  first.hd = 1;
  bench_.Quiet(first);
  bench_.places.clear();
  RxPacket failed = AsWrite(Next(kStart + 2, 4096, 0, true, 9000));
  failed.ie = 1;
  failed.ar = 1;
  SetCode(ReturnCode::kBadMkey);  // Does not matter any more.
  ExpectAck(bench_.Answer(failed), kStart + 2, 0, ReturnCode::kNull);
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 0);
  EXPECT_EQ(record.ev.credit, 1);
}

TEST_F(AcceptWriteTest, DeliveryCompleteIsAnsweredWhenItsDataIsVisible) {
  Open();
  const auto pdc = static_cast<uint8_t>(tpdcid_ & 0x3f);
  const auto complete = [&](uint32_t psn) {
    RxPacket pkt = AsWrite(Packet(psn, 8));
    pkt.dc = 1;
    pkt.ar = 1;
    return pkt;
  };
  bench_.Quiet(complete(kStart + 1));
  Place record = bench_.TakeRecord();
  EXPECT_EQ(record.visible, 1);
  EXPECT_EQ(record.psn, kStart + 1);
  // Others are accepted meanwhile, but not acknowledged cumulatively.
  RxPacket plain = AsWrite(Packet(kStart + 2, 8));
  plain.ar = 1;
  ExpectAck(bench_.Answer(plain), kStart, 2, ReturnCode::kOk);
  bench_.Quiet(complete(kStart + 3));
  // A duplicate of one that waits is not told that it arrived.
  ExpectAck(bench_.Answer(complete(kStart + 1)), kStart, 0, ReturnCode::kNull);
  size_t before = bench_.responses.size();
  bench_.Show(pdc, kStart + 1);
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.responses.size(), ++before);
  ExpectAck(bench_.responses.back(), kStart + 1, 0, ReturnCode::kNull);
  bench_.Show(pdc, kStart + 3);
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.responses.size(), ++before);
  ExpectAck(bench_.responses.back(), kStart + 3, 0, ReturnCode::kNull);
  // An error behind one that waits is told after it.
  bench_.Quiet(complete(kStart + 4));
  SetCode(ReturnCode::kBadMkey);
  RxPacket bad = AsWrite(Packet(kStart + 5, 8));
  bad.ar = 1;
  ExpectAck(bench_.Answer(bad), kStart + 3, 0, ReturnCode::kNull);
  before = bench_.responses.size();
  bench_.Show(pdc, kStart + 4);
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.responses.size(), ++before);
  ExpectError(bench_.responses.back(), kStart + 5, ReturnCode::kBadMkey);
}

TEST_F(AcceptWriteTest, ReportOfAnEarlierPdcOfTheIndexMeansNothing) {
  Open();
  const auto pdc = static_cast<uint8_t>(tpdcid_ & 0x3f);
  RxPacket pkt = AsWrite(Packet(kStart + 1, 8));
  pkt.dc = 1;
  bench_.Quiet(pkt);
  bench_.Show(pdc, kStart + 1000);
  bench_.RunUntilIdle();
  ExpectAck(bench_.responses.back(), kStart, 0, ReturnCode::kNull);
  bench_.Show(pdc, kStart + 1);
  bench_.RunUntilIdle();
  ExpectAck(bench_.responses.back(), kStart + 1, 0, ReturnCode::kNull);
}

TEST_F(AcceptWriteTest, OnePacketIsTakenEveryTwoCycles) {
  Open();
  for (uint32_t i = 1; i <= 200; ++i) {
    bench_.Send(AsWrite(Packet(kStart + i, 8)));
  }
  const uint64_t start = bench_.cycle;
  bench_.RunUntilIdle();
  EXPECT_LE(bench_.cycle - start, 2u * 200 + 10);
  EXPECT_EQ(bench_.places.size(), 200u);
}

TEST_F(AcceptTest, UnknownPdcidsAreNackedWithoutPdc) {
  Open();
  RxPacket pkt = Packet(kStart + 1, 8);
  for (uint16_t flip : {uint16_t{1 << 8}, uint16_t{1 << 7}, uint16_t{1}}) {
    pkt.dpdcid = static_cast<uint16_t>(tpdcid_ ^ flip);
    ExpectNack(bench_.Answer(pkt), NackCode::kInvDpdcid, 0, kStart + 1);
  }
  pkt.dpdcid = tpdcid_;
  pkt.fa_lo = 0x0a000003;
  ExpectNack(bench_.Answer(pkt), NackCode::kPdcHdrMismatch, 0, kStart + 1);
  pkt.fa_lo = 0x0a000002;
  pkt.spdcid = 0x12;
  const Response rsp = bench_.Answer(pkt);
  EXPECT_EQ(rsp.code, static_cast<uint8_t>(NackCode::kPdcHdrMismatch));
  EXPECT_EQ(rsp.dpdcid, 0x12);
  EXPECT_EQ(Count(Statistic::kDropPdcid), 5);
  for (const Place& record : bench_.places) EXPECT_EQ(record.bytes, 0);
}

// An answer could end the PDC of the function that the packet is for.
TEST_F(AcceptTest, PacketsForAnotherFunctionsSlotAreDroppedUnanswered) {
  Open();
  RxPacket ack = {};
  ack.pds_type = static_cast<uint8_t>(PdsType::kAck);
  RxPacket nack = {};
  nack.pds_type = static_cast<uint8_t>(PdsType::kNack);
  RxPacket packets[] = {Packet(kStart + 1, 8),
                        Control(CpType::kCloseCommand, kStart + 1),
                        Control(CpType::kAckRequest, kStart),
                        Control(CpType::kClearCommand, kStart + 1),
                        ack,
                        nack};
  int dropped = 0;
  int payloads = 0;
  for (uint16_t slot = 0; slot < 64; ++slot) {
    if (slot == kSlot) continue;
    for (RxPacket& pkt : packets) {
      pkt.dpdcid = static_cast<uint16_t>((tpdcid_ & 0x3ff) | slot << 10);
      bench_.Quiet(pkt);
      payloads += pkt.payload_bytes != 0;
      EXPECT_EQ(Count(Statistic::kDropPdcid), ++dropped);
    }
  }
  EXPECT_TRUE(bench_.acks.empty());
  // What they carried left the payload queue.
  EXPECT_EQ(bench_.places.size(), static_cast<size_t>(payloads));
  for (const Place& record : bench_.places) {
    EXPECT_EQ(record.stream, 8);
    EXPECT_EQ(record.bytes, 0);
  }
  // The PDC is as it was.
  bench_.AddBuffer(2, 64, 0x1000, 1);
  RxPacket next = Packet(kStart + 1, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 1, 0, ReturnCode::kOk);
}

// Each bit of {family, source address, spdcid} tells initiators apart; so do
// two bits that differ together, which the hash of the set does not see.
TEST_F(AcceptTest, APdcIsReachedByItsInitiatorOnly) {
  Open();
  const uint16_t own = tpdcid_;
  constexpr int kFamily = 128 + 16;
  for (int variant = 0; variant < 2 * kFamily + 1; ++variant) {
    const int bit = variant % (kFamily + 1);
    const bool hidden = variant > kFamily;
    SCOPED_TRACE(variant);
    const auto flip_address = [](RxPacket& pkt, int at) {
      (at < 64 ? pkt.fa_lo : pkt.fa_hi) ^= uint64_t{1} << at % 64;
    };
    const auto other = [&](RxPacket pkt) {
      if (bit == kFamily) {
        pkt.ipv6 = 1;
      } else if (bit < 128) {
        flip_address(pkt, bit);
        if (hidden) flip_address(pkt, (bit + 16) % 128);
      } else {
        const int at = bit - 128;
        pkt.spdcid = static_cast<uint16_t>(pkt.spdcid ^ 1 << at);
        const int twin = at < 15 ? (at + 5) % 15 : 0;
        if (hidden) pkt.spdcid = static_cast<uint16_t>(pkt.spdcid ^ 1 << twin);
      }
      return pkt;
    };
    // Names the PDC: refused, whatever it wants.
    tpdcid_ = own;
    for (const RxPacket& pkt :
         {Packet(kStart + 1, 8), Control(CpType::kAckRequest, kStart),
          Control(CpType::kCloseCommand, kStart + 1)}) {
      const Response rsp = bench_.Answer(other(pkt));
      EXPECT_EQ(rsp.kind, ResponseKind::kNack);
      EXPECT_EQ(rsp.code, static_cast<uint8_t>(NackCode::kPdcHdrMismatch));
      EXPECT_EQ(rsp.spdcid, 0);
    }
    // The same SYN opens another PDC, which is gone with its close.
    bench_.AddBuffer(2, 64, 0x1000, 1);
    const Response opened = bench_.Answer(other(Syn(kStart, 8)));
    EXPECT_EQ(opened.kind, ResponseKind::kAck);
    EXPECT_EQ(opened.return_code, static_cast<uint8_t>(ReturnCode::kOk));
    EXPECT_NE(opened.spdcid & 0xff, own & 0xff);
    tpdcid_ = opened.spdcid;
    EXPECT_EQ(
        bench_.Answer(other(Control(CpType::kCloseCommand, kStart + 1))).kind,
        ResponseKind::kNone);
  }
  tpdcid_ = own;
  bench_.AddBuffer(2, 64, 0x1000, 1);
  RxPacket next = Packet(kStart + 1, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 1, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, SynOfAKnownPdcWithAnotherStartIsInvalid) {
  Open();
  RxPacket pkt = Syn(kStart + 1, 8);
  pkt.psn_offset = 0;
  ExpectNack(bench_.Answer(pkt), NackCode::kInvalidSyn, 0, kStart + 1);
}

// Ages go by in periods of dead_ticks.
class ForgetTest : public AcceptTest {
 protected:
  static constexpr uint32_t kDeadTicks = 50;

  ForgetTest() {
    bench_.config.dead_ticks = kDeadTicks;
    bench_.SetConfig();
  }
  void Pass(uint32_t ticks) {
    for (uint32_t i = 0; i < ticks; ++i) {
      bench_->tick_i = 1;
      bench_.Cycle();
      bench_->tick_i = 0;
      for (int cycle = 0; cycle < 8; ++cycle) {
        bench_.Cycle();
      }
    }
  }
  Response Ask() {
    bench_.AddBuffer(2, 64, 0x1000, 1);
    RxPacket pkt = Packet(kStart + 1, 8);
    pkt.ar = 1;
    const Response rsp = bench_.Answer(pkt);
    bench_.places.clear();
    return rsp;
  }
};

TEST_F(ForgetTest, SilentPdcIsForgottenAfterTwiceDeadTimeAndNotBefore) {
  Open();
  Pass(2 * kDeadTicks - 1);
  ExpectAck(Ask(), kStart + 1, 0, ReturnCode::kOk);
  bench_.AddBuffer(2, 64, 0x1000, 2);
  Pass(3 * kDeadTicks + 2);
  ExpectNack(bench_.Answer(Packet(kStart + 2, 8)), NackCode::kInvDpdcid, 0,
             kStart + 2);
  // Its set is free too: the same initiator opens another one.
  RxPacket again = Syn(kStart, 8);
  bench_.AddBuffer(2, 64, 0x1000, 3);
  const Response opened = bench_.Answer(again);
  EXPECT_EQ(opened.kind, ResponseKind::kAck);
  EXPECT_NE(opened.spdcid, tpdcid_);
}

TEST_F(ForgetTest, DuplicatesKeepAPdcAlive) {
  Open();
  for (int i = 0; i < 8; ++i) {
    Pass(kDeadTicks);
    bench_.Answer(Packet(kStart, 8));
  }
  ExpectAck(Ask(), kStart + 1, 0, ReturnCode::kOk);
}

TEST_F(ForgetTest, StrangersDoNotKeepAPdcAlive) {
  Open();
  RxPacket stranger = Packet(kStart + 1, 8);
  stranger.fa_lo ^= 1;
  for (int i = 0; i < 8; ++i) {
    Pass(kDeadTicks / 2);
    bench_.Answer(stranger);
  }
  ExpectNack(bench_.Answer(Packet(kStart + 1, 8)), NackCode::kInvDpdcid, 0,
             kStart + 1);
}

// Whatever the packet before was.
TEST_F(ForgetTest, InitiatorThatDiesAfterItsContextCompletesNothing) {
  type_ = PdsType::kRudReq;
  Open();
  bench_.AddBuffer(2, 8192, 0x1000, 7);
  bench_.Send(First(kStart + 1, 4096, 8192));
  bench_.RunUntilIdle();
  bench_.contexts[2].gen = 2;
  Pass(kDeadTicks);
  bench_.AddBuffer(2, 64, 0x3000, 8);
  bench_.AddBuffer(2, 64, 0x4000, 9);
  RxPacket other = Syn(kStart + 4, 8);
  other.psn_offset = 0;
  other.fa_lo ^= 1;
  bench_.Answer(other);
  bench_.places.clear();
  Pass(2 * kDeadTicks + 2);
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.write, 0);
}

TEST_F(ForgetTest, InitiatorThatDiesInsideAMessageGivesItsBufferBack) {
  Open();
  bench_.AddBuffer(2, 8192, 0x1000, 7);
  bench_.Send(First(kStart + 1, 4096, 8192));
  bench_.RunUntilIdle();
  bench_.places.clear();
  Pass(2 * kDeadTicks - 2);
  EXPECT_TRUE(bench_.places.empty());
  Pass(kDeadTicks + 4);
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.stream, 0);
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.entry.op_context, 7u);
  EXPECT_EQ(record.ev.entry.length, 4096u);
  EXPECT_EQ(record.ev.entry.status,
            static_cast<uint8_t>(Status::kInitiatorError));
  // Its place is free; what comes late is for nobody.
  RxPacket late = Next(kStart + 2, 4096, 4096, true, 8192);
  ExpectNack(bench_.Answer(late), NackCode::kInvDpdcid, 0, kStart + 2);
  bench_.places.clear();
  bench_.AddBuffer(2, 64, 0x1000, 3);
  EXPECT_EQ(bench_.Answer(Syn(kStart, 8)).kind, ResponseKind::kAck);
}

TEST_F(ForgetTest,
       InitiatorThatDiesInsideAMessageOfAGoneContextReturnsTheCredit) {
  Open();
  bench_.AddBuffer(2, 8192, 0x1000, 7);
  bench_.Send(First(kStart + 1, 4096, 8192));
  bench_.RunUntilIdle();
  bench_.places.clear();
  bench_.contexts[2].alive = false;
  Pass(3 * kDeadTicks + 2);
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 0);
  EXPECT_EQ(record.ev.credit, 1);
}

TEST_F(ForgetTest, PacketsOfAMessageKeepItsPdc) {
  Open();
  bench_.AddBuffer(2, 65536, 0x1000, 1);
  RxPacket first = First(kStart + 1, 4096, 32768);
  bench_.Send(first);
  bench_.RunUntilIdle();
  for (uint32_t i = 1; i < 8; ++i) {
    Pass(2 * kDeadTicks - 2);
    RxPacket next = Next(kStart + 1 + i, 4096 * i, 4096, i == 7, 32768);
    next.ar = 1;
    const Response rsp = bench_.Answer(next);
    EXPECT_EQ(rsp.kind, ResponseKind::kAck) << i;
  }
}

TEST_F(ForgetTest, AllPdcsOfInitiatorsThatWentAwayComeBack) {
  for (int generation = 0; generation < 3; ++generation) {
    for (uint16_t i = 0; i < 160; ++i) {
      bench_.AddBuffer(2, 64, 0x1000, i);
      RxPacket pkt = Syn(kStart, 8);
      pkt.spdcid = static_cast<uint16_t>(0x400 + 256 * generation + i);
      EXPECT_EQ(bench_.Answer(pkt).kind, ResponseKind::kAck)
          << generation << ' ' << i;
    }
    bench_.places.clear();
    Pass(4 * kDeadTicks);
  }
}

// The table full of PDCs.
class FullTest : public AcceptTest {
 protected:
  static constexpr size_t kPdcs = 256;

  RxPacket SynOf(uint32_t source, uint16_t spdcid) {
    RxPacket pkt = Syn(kStart, 8);
    pkt.fa_lo = 0x0a000002 + source;
    pkt.spdcid = spdcid;
    return pkt;
  }
  // Fails unless every one of them finds room.
  void Fill(uint32_t sources) {
    for (uint32_t i = 0; i < kPdcs; ++i) {
      bench_.AddBuffer(2, 64, 0x1000, i);
      const RxPacket pkt =
          SynOf(i % sources, static_cast<uint16_t>(0x40 + i / sources));
      const Response rsp = bench_.Answer(pkt);
      ASSERT_EQ(rsp.kind, ResponseKind::kAck) << i << " of " << sources;
      opened_.push_back(pkt);
      ids_.push_back(rsp.spdcid);
    }
    bench_.places.clear();
  }
  Response Close(size_t i) {
    RxPacket close = opened_[i];
    close.syn = 0;
    close.pds_type = static_cast<uint8_t>(PdsType::kCp);
    close.next_hdr = static_cast<uint8_t>(CpType::kCloseCommand);
    close.payload_bytes = 0;
    close.psn = kStart + 1;
    close.dpdcid = ids_[i];
    return bench_.Answer(close);
  }

  std::vector<RxPacket> opened_;
  std::vector<uint16_t> ids_;
};

TEST_F(FullTest, AllPdcsFindRoomWhateverTheirAddresses) {
  for (const uint32_t sources : {1u, 16u, 256u, 3u}) {
    opened_.clear();
    ids_.clear();
    Fill(sources);
    for (size_t i = 0; i < kPdcs; ++i) {
      for (size_t j = i + 1; j < kPdcs; ++j) {
        ASSERT_NE(ids_[i] % 256, ids_[j] % 256);
      }
    }
    for (size_t i = 0; i < kPdcs; ++i) {
      EXPECT_EQ(Close(i).kind, ResponseKind::kNone);
    }
  }
  EXPECT_EQ(Count(Statistic::kRxPdcs), 4 * 256);
  EXPECT_EQ(Count(Statistic::kRxRefused), 0);
}

TEST_F(FullTest, OneMoreIsRefusedUntilAnotherIsClosed) {
  Fill(16);
  bench_.AddBuffer(2, 64, 0x1000, 1);
  const RxPacket late = SynOf(1000, 7);
  const size_t before = bench_.responses.size();
  bench_.Send(late);
  bench_.RunUntilIdle();
  ASSERT_GT(bench_.responses.size(), before);
  const Response refused = bench_.responses[before];
  EXPECT_EQ(refused.code, static_cast<uint8_t>(NackCode::kNoPdcAvail));
  EXPECT_EQ(refused.spdcid, 0);
  EXPECT_EQ(Close(40).kind, ResponseKind::kNone);
  const Response rsp = bench_.Answer(late);
  EXPECT_EQ(rsp.kind, ResponseKind::kAck);
  EXPECT_EQ(rsp.spdcid % 256, ids_[40] % 256);
  EXPECT_NE(rsp.spdcid, ids_[40]);
}

TEST_F(FullTest, EachRefusedSynAsksTheLeastUsedPdcToClose) {
  Fill(16);
  std::vector<int> asked(256);
  const auto refuse = [&] {
    const size_t before = bench_.responses.size();
    bench_.Send(SynOf(1000, 7));
    bench_.RunUntilIdle();
    ASSERT_EQ(bench_.responses.size(), before + 2);
    const Response& ask = bench_.responses.back();
    EXPECT_EQ(ask.kind, ResponseKind::kAck);
    EXPECT_EQ(ask.req, 2);
    EXPECT_EQ(ask.cack, kStart);
    const auto at = std::find(ids_.begin(), ids_.end(), ask.spdcid);
    ASSERT_NE(at, ids_.end());
    const auto i = static_cast<size_t>(at - ids_.begin());
    EXPECT_EQ(ask.dpdcid, opened_[i].spdcid);
    EXPECT_EQ(ask.fa_lo, opened_[i].fa_lo);
    ++asked[i];
  };
  refuse();  // Nobody was idle for a round: a new one begins.
  // Those that are used now are not asked in it.
  for (size_t i = 0; i < 100; ++i) bench_.Answer(opened_[i]);
  const std::vector<int> first = asked;
  for (int i = 0; i < 150; ++i) refuse();
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(asked[i], first[i]) << i;
  for (size_t i = 100; i < 256; ++i) EXPECT_LE(asked[i], 1) << i;
}

// Tombstones of closed PDCs.
class TombstoneTest : public AcceptTest {
 protected:
  static constexpr uint32_t kSafetyTicks = 20;

  TombstoneTest() {
    bench_.transport.safety_ticks = kSafetyTicks;
    bench_.SetConfig();
  }
  void Pass(uint32_t ticks) {
    for (uint32_t i = 0; i < ticks; ++i) {
      bench_->tick_i = 1;
      bench_.Cycle();
      bench_->tick_i = 0;
      bench_.Cycle();
    }
  }
};

TEST_F(TombstoneTest, LateSynOfAClosedPdcIsNotExecutedAgain) {
  Open();
  RxPacket late = Syn(kStart, 8);
  late.retx = 1;
  EXPECT_EQ(bench_.Answer(Control(CpType::kCloseCommand, kStart + 1)).kind,
            ResponseKind::kNone);
  bench_.AddBuffer(2, 64, 0x1000, 1);
  for (uint32_t i = 0; i < kSafetyTicks; ++i) {
    ExpectNack(bench_.Answer(late), NackCode::kClosing, 0, kStart);
    Pass(1);
  }
  EXPECT_EQ(Count(Statistic::kRxClosing), static_cast<int>(kSafetyTicks));
  EXPECT_EQ(Count(Statistic::kRxRequests), 1);
  EXPECT_EQ(bench_.contexts[2].buffers.size(), 1u);
  // The wire has nothing as old as this any more.
  EXPECT_EQ(bench_.Answer(late).kind, ResponseKind::kAck);
}

TEST_F(TombstoneTest, OtherPdcsOfTheSameInitiatorAreServed) {
  Open();
  bench_.Answer(Control(CpType::kCloseCommand, kStart + 1));
  bench_.AddBuffer(2, 64, 0x1000, 1);
  RxPacket restarted = Syn(kStart + 1, 8);
  restarted.psn_offset = 0;
  EXPECT_EQ(bench_.Answer(restarted).kind, ResponseKind::kAck);
  bench_.AddBuffer(2, 64, 0x1000, 1);
  RxPacket other = Syn(kStart, 8);
  other.spdcid = 0x12;
  EXPECT_EQ(bench_.Answer(other).kind, ResponseKind::kAck);
  bench_.AddBuffer(2, 64, 0x1000, 1);
  other = Syn(kStart, 8);
  other.fa_lo ^= 1;
  EXPECT_EQ(bench_.Answer(other).kind, ResponseKind::kAck);
}

TEST_F(TombstoneTest, PdcIsClosedOnlyWhenItsTombstoneHasAPlace) {
  bench_.transport.safety_ticks = 100000;
  bench_.SetConfig();
  uint32_t closed = 0;
  uint32_t put_off = 0;
  RxPacket close;
  for (uint32_t i = 0; i < 1300 && put_off < 4; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
    RxPacket pkt = Syn(kStart, 8);
    pkt.spdcid = static_cast<uint16_t>(0x100 + i);
    tpdcid_ = bench_.Answer(pkt).spdcid;
    close = Control(CpType::kCloseCommand, kStart + 1);
    close.spdcid = pkt.spdcid;
    const Response rsp = bench_.Answer(close);
    if (rsp.kind == ResponseKind::kNone) {
      ++closed;
    } else {
      EXPECT_EQ(rsp.code, static_cast<uint8_t>(NackCode::kNoResource));
      EXPECT_EQ(rsp.spdcid, tpdcid_);
      ++put_off;
    }
  }
  EXPECT_EQ(put_off, 4u) << "more tombstones than there are places";
  EXPECT_GE(closed, 512u) << "of 1024 places";
  // The command that comes again after safety_ticks is executed.
  bench_.transport.safety_ticks = 1;
  bench_.SetConfig();
  Pass(2);
  EXPECT_EQ(bench_.Answer(close).kind, ResponseKind::kNone);
}

TEST_F(AcceptTest, MessageThatItsSenderGaveUpWaitsForNothing) {
  Open();
  // No buffer: the rest of the message is discarded too.
  RxPacket first = First(kStart + 1, 0, 9000);
  first.ie = 1;
  first.ar = 1;
  ExpectAck(bench_.Answer(first), kStart + 1, 0, ReturnCode::kNull);
  bench_.Quiet(Next(kStart + 2, 4096, 4096, false, 9000));
  RxPacket last = Next(kStart + 3, 8192, 808, true, 9000);
  last.ar = 1;
  ExpectAck(bench_.Answer(last), kStart + 3, 0, ReturnCode::kNull);
  // No credit, no context; in one packet.
  bench_.AddBuffer(2, 64, 0x1000, 1);
  RxPacket only = Packet(kStart + 4, 8);
  only.ie = 1;
  only.ar = 1;
  only.payload_bytes = 0;
  bench_.credit_ok = 0;
  ExpectAck(bench_.Answer(only), kStart + 4, 0, ReturnCode::kNull);
  bench_.credit_ok = 0xffffffff;
  only.psn = kStart + 5;
  only.resource_index = 77;
  ExpectAck(bench_.Answer(only), kStart + 5, 0, ReturnCode::kNull);
  for (const Place& record : bench_.places) {
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.complete, 0);
  }
  EXPECT_TRUE(bench_.credits_taken.empty());
  // The next message is as any other.
  RxPacket next = Packet(kStart + 6, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 6, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, MessageOfManyPacketsIsPlacedPieceByPiece) {
  Open();
  bench_.AddBuffer(2, 10000, 0x100000, 7);
  bench_.Quiet(First(kStart + 1, 4096, 9000));
  Place record = bench_.TakeRecord();
  EXPECT_EQ(record.first, 1);
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(record.iova, 0x100000u);
  bench_.Quiet(Next(kStart + 2, 4096, 4096, false, 9000));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.first, 0);
  EXPECT_EQ(record.iova, 0x101000u);
  EXPECT_EQ(record.bytes, 4096);
  RxPacket last = Next(kStart + 3, 8192, 808, true, 9000);
  last.ar = 1;
  const Response rsp = bench_.Answer(last);
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
  RxPacket last = Next(kStart + 3, 8192, 4096, true, 12288);
  last.ar = 1;
  const Response rsp = bench_.Answer(last);
  ExpectAck(rsp, kStart + 3, 0, ReturnCode::kOk);
  EXPECT_EQ(rsp.modified_length, 5000u);
  ASSERT_EQ(bench_.places.size(), 3u);
  EXPECT_EQ(bench_.places[1].bytes, 904);
  EXPECT_EQ(bench_.places[1].stream, 4096);
  EXPECT_EQ(bench_.places[2].bytes, 0);
  const Completion& entry = bench_.places[2].ev.entry;
  EXPECT_EQ(entry.status, static_cast<uint8_t>(Status::kTruncated));
  EXPECT_EQ(entry.length, 5000u);
  EXPECT_EQ(entry.message_length, 12288u);
}

TEST_F(AcceptTest, EmptyMessageCompletesWithoutPlacement) {
  Open();
  bench_.AddBuffer(2, 0, 0x100000, 7);
  bench_.Quiet(Packet(kStart + 1, 0));
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 0);
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.entry.status, 0);
}

TEST_F(AcceptTest, EverySixteenthPacketIsAcknowledgedUnasked) {
  Open();
  for (uint32_t i = 1; i <= 48; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
    bench_.Send(Packet(kStart + i, 8));
  }
  const size_t before = bench_.responses.size();
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.responses.size(), before + 3);
  EXPECT_EQ(bench_.responses[before].cack, kStart + 16);
  EXPECT_EQ(bench_.responses[before + 2].cack, kStart + 48);
}

class AckDelayTest : public AcceptTest {
 protected:
  static constexpr uint32_t kDelayTicks = 8;

  AckDelayTest() {
    bench_.config.ack_delay_ticks = kDelayTicks;
    bench_.config.dead_ticks = 1000;
    bench_.SetConfig();
    Open();
    for (uint32_t i = 0; i < 200; ++i) bench_.AddBuffer(2, 64, 0x1000, i);
  }
  // A tick, and time enough to act on it.
  void Tick() {
    bench_->tick_i = 1;
    bench_.Cycle();
    bench_->tick_i = 0;
    for (int i = 0; i < 20; ++i) bench_.Cycle();
  }
  // Ticks until an ACK leaves; at most `limit`.
  int TicksToAck(int limit) {
    const size_t before = bench_.responses.size();
    for (int ticks = 1; ticks <= limit; ++ticks) {
      Tick();
      if (bench_.responses.size() > before) return ticks;
    }
    return limit + 1;
  }
};

TEST_F(AckDelayTest, AnswersWhatNobodyAskedAboutWithinTheDelay) {
  for (uint32_t i = 1; i <= 3; ++i) bench_.Quiet(Packet(kStart + i, 8));
  EXPECT_EQ(bench_->pending_o, 1);
  const int ticks = TicksToAck(kDelayTicks);
  EXPECT_GE(ticks, static_cast<int>(kDelayTicks / 2));
  ASSERT_LE(ticks, static_cast<int>(kDelayTicks));
  const Response& ack = bench_.responses.back();
  ExpectAck(ack, kStart + 3, 0, ReturnCode::kNull);
  EXPECT_EQ(ack.spdcid, tpdcid_);
  EXPECT_EQ(ack.dpdcid, 0x11);
  EXPECT_EQ(ack.fa_lo, 0x0a000002u);
  EXPECT_EQ(ack.mac, 0x020000000002u);
  EXPECT_EQ(ack.entropy, 0xc123);
  EXPECT_EQ(ack.dscp, 9);
  // Once, and the count to sixteen starts again.
  EXPECT_EQ(bench_->pending_o, 0);
  EXPECT_GT(TicksToAck(3 * kDelayTicks), static_cast<int>(3 * kDelayTicks));
  for (uint32_t i = 4; i < 4 + 15; ++i) bench_.Quiet(Packet(kStart + i, 8));
  EXPECT_EQ(bench_.Answer(Packet(kStart + 19, 8)).cack, kStart + 19);
}

TEST_F(AckDelayTest, AnAckThatWasAskedForPaysTheDebt) {
  bench_.Quiet(Packet(kStart + 1, 8));
  Tick();
  RxPacket asking = Packet(kStart + 2, 8);
  asking.ar = 1;
  bench_.Answer(asking);
  EXPECT_EQ(bench_->pending_o, 0);
  EXPECT_GT(TicksToAck(3 * kDelayTicks), static_cast<int>(3 * kDelayTicks));
}

TEST_F(AckDelayTest, WithoutADelayNothingIsSentUnasked) {
  bench_.config.ack_delay_ticks = 0;
  bench_.SetConfig();
  bench_.Quiet(Packet(kStart + 1, 8));
  EXPECT_EQ(bench_->pending_o, 0);
  EXPECT_GT(TicksToAck(3 * kDelayTicks), static_cast<int>(3 * kDelayTicks));
}

TEST_F(AckDelayTest, ADelayOfOneTickEndsAtTheNext) {
  bench_.config.ack_delay_ticks = 1;
  bench_.SetConfig();
  bench_.Quiet(Packet(kStart + 1, 8));
  EXPECT_EQ(TicksToAck(2), 1);
}

TEST_F(AckDelayTest, BusyPeersDoNotPutItOff) {
  bench_.Quiet(Packet(kStart + 1, 8));
  const uint16_t quiet_tpdcid = tpdcid_;
  // Another initiator keeps the unit busy for as long as it takes.
  constexpr uint32_t kPackets = 150;
  for (uint32_t i = 0; i < kPackets; ++i) {
    RxPacket packet = Syn(kStart + i, 8);
    packet.spdcid = 0x12;
    packet.psn_offset = static_cast<uint16_t>(i);
    bench_.Send(packet);
  }
  for (uint32_t ticks = 0; ticks < kDelayTicks; ++ticks) {
    bench_->tick_i = 1;
    bench_.Cycle();
    bench_->tick_i = 0;
    for (int i = 0; i < 12; ++i) bench_.Cycle();
  }
  EXPECT_GT(bench_.waiting(), 0u) << "the other initiator must still be busy";
  int late = 0;
  for (const Response& rsp : bench_.responses) {
    late += rsp.spdcid == quiet_tpdcid && rsp.cack == kStart + 1;
  }
  EXPECT_EQ(late, 1);
  bench_.RunUntilIdle();
}

TEST_F(AcceptTest, OnePacketIsTakenEveryTwoCycles) {
  Open();
  for (uint32_t i = 1; i <= 200; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
    bench_.Send(Packet(kStart + i, 8));
  }
  const uint64_t start = bench_.cycle;
  bench_.RunUntilIdle();
  EXPECT_LE(bench_.cycle - start, 2u * 200 + 10);
  EXPECT_EQ(bench_.places.size(), 200u);
}

TEST_F(AcceptTest, SomWhileAMessageIsOpenEndsItWithInitiatorError) {
  Open();
  bench_.AddBuffer(2, 10000, 0x100000, 7);
  bench_.AddBuffer(2, 10000, 0x200000, 8);
  bench_.Quiet(First(kStart + 1, 4096, 9000));
  bench_.places.clear();
  RxPacket other = Packet(kStart + 2, 8);
  other.message_id = 2;
  ExpectAck(bench_.Answer(other), kStart + 2, 0, ReturnCode::kNull);
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.entry.op_context, 7u);
  EXPECT_EQ(record.ev.entry.length, 4096u);
  EXPECT_EQ(record.ev.entry.status,
            static_cast<uint8_t>(Status::kInitiatorError));
  EXPECT_EQ(record.ev.entry.detail,
            static_cast<uint8_t>(ReturnCode::kInitiatorErr));
  EXPECT_EQ(Count(Statistic::kDropSes), 1);
  // The next message is none of that.
  RxPacket next = Packet(kStart + 3, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 3, 0, ReturnCode::kOk);
  EXPECT_EQ(bench_.TakeRecord().ev.entry.op_context, 8u);
}

TEST_F(AcceptTest, MiddleOfNoMessageIsAcknowledgedAndDropped) {
  Open();
  ExpectAck(bench_.Answer(Next(kStart + 1, 4096, 100, false, 9000)), kStart + 1,
            0, ReturnCode::kNull);
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(Count(Statistic::kDropSes), 1);
}

TEST_F(AcceptTest, PacketThatDoesNotContinueItsMessageEndsIt) {
  struct Case {
    const char* name;
    void (*spoil)(RxPacket&);
  };
  const Case cases[] = {
      {"id", [](RxPacket& p) { p.message_id = 2; }},
      {"job", [](RxPacket& p) { p.job_id = kJob + 1; }},
      {"offset", [](RxPacket& p) { p.message_offset = 4095; }},
      {"length", [](RxPacket& p) { p.request_length = 9001; }},
      {"opcode", [](RxPacket& p) { p.opcode = 9; }},
      {"early end", [](RxPacket& p) { p.eom = 1; }},
      {"too much", [](RxPacket& p) { p.payload_bytes = 4905; }},
  };
  Open();
  uint32_t psn = kStart + 1;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    bench_.AddBuffer(2, 10000, 0x100000, 7);
    bench_.Quiet(First(psn++, 4096, 9000));
    bench_.places.clear();
    RxPacket pkt = Next(psn++, 4096, 4096, false, 9000);
    c.spoil(pkt);
    ExpectAck(bench_.Answer(pkt), psn - 1, 0, ReturnCode::kNull);
    const Place record = bench_.TakeRecord();
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.complete, 1);
    EXPECT_EQ(record.ev.entry.status,
              static_cast<uint8_t>(Status::kInitiatorError));
    // The rest of it disappears.
    RxPacket rest = Next(psn++, 8192, 808, true, 9000);
    rest.ar = 1;
    ExpectAck(bench_.Answer(rest), psn - 1, 0, ReturnCode::kNull);
    const Place dropped = bench_.TakeRecord();
    EXPECT_EQ(dropped.bytes, 0);
    EXPECT_EQ(dropped.complete, 0);
    // Messages behind it are received.
    bench_.AddBuffer(2, 64, 0x1000, 9);
    RxPacket next = Packet(psn++, 8);
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
  RxPacket failed = Next(kStart + 2, 4096, 0, true, 9000);
  failed.ie = 1;
  failed.ar = 1;
  ExpectAck(bench_.Answer(failed), kStart + 2, 0, ReturnCode::kNull);
  Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.entry.status,
            static_cast<uint8_t>(Status::kInitiatorError));
  EXPECT_EQ(record.ev.entry.length, 4096u);

  // From its first packet on: takes a buffer, since the sender sent a message.
  bench_.AddBuffer(2, 10000, 0x200000, 8);
  RxPacket first = First(kStart + 3, 0, 9000);
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
  EXPECT_EQ(record.ev.entry.status,
            static_cast<uint8_t>(Status::kInitiatorError));
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
    const Place record = bench_.TakeRecord();
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.stream, 4096);
    EXPECT_EQ(record.complete, 1);
    EXPECT_EQ(record.ev.write, 0);
    EXPECT_EQ(record.ev.credit, 1);
    EXPECT_EQ(record.ev.cq, 5);
    RxPacket last = Next(base + 3, 8192, 808, true, 9000);
    last.ar = 1;
    ExpectAck(bench_.Answer(last), base + 3, 0, ReturnCode::kNull);
    EXPECT_EQ(bench_.TakeRecord().complete, 0);
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
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.ev.write, 0);
  EXPECT_EQ(record.ev.credit, 1);
  bench_.Quiet(Next(kStart + 3, 8192, 808, true, 9000));
  EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  // The next message is the new context's.
  RxPacket next = Packet(kStart + 4, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 4, 0, ReturnCode::kOk);
  EXPECT_EQ(bench_.TakeRecord().iova, 0x5000u);
}

TEST_F(AcceptTest, CloseFreesThePdcAndItsDuplicateIsUnknown) {
  Open();
  const RxPacket close = Control(CpType::kCloseCommand, kStart + 1);
  const Response rsp = bench_.Answer(close);
  EXPECT_EQ(rsp.kind, ResponseKind::kNone);
  EXPECT_EQ(rsp.cack, kStart + 1);
  EXPECT_EQ(rsp.ack_offset, 0);
  EXPECT_EQ(rsp.spdcid, tpdcid_);
  ExpectNack(bench_.Answer(close), NackCode::kInvDpdcid, 0, kStart + 1);
  // The same SYN opens it anew under another id.
  bench_.AddBuffer(2, 64, 0x1000, 1);
  const Response again = bench_.Answer(Syn(kStart, 8));
  EXPECT_EQ(again.kind, ResponseKind::kAck);
  EXPECT_NE(again.spdcid, tpdcid_);
}

TEST_F(AcceptTest, CloseInsideAMessageEndsIt) {
  Open();
  bench_.AddBuffer(2, 10000, 0x100000, 7);
  bench_.Quiet(First(kStart + 1, 4096, 9000));
  bench_.places.clear();
  bench_.Answer(Control(CpType::kCloseCommand, kStart + 2));
  const Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.entry.op_context, 7u);
  EXPECT_EQ(record.ev.entry.status,
            static_cast<uint8_t>(Status::kInitiatorError));
}

TEST_F(AcceptTest, CloseOutOfOrderIsNacked) {
  Open();
  ExpectNack(bench_.Answer(Control(CpType::kCloseCommand, kStart + 2)),
             NackCode::kRodOoo, tpdcid_, kStart + 2);
  EXPECT_EQ(bench_.Answer(Control(CpType::kCloseCommand, kStart + 1)).kind,
            ResponseKind::kNone);
}

TEST_F(AcceptTest, AckRequestIsAnsweredFromTheState) {
  Open();
  RxPacket query = Control(CpType::kAckRequest, kStart);
  query.pds_payload = 77;
  const Response rsp = bench_.Answer(query);
  ExpectAck(rsp, kStart, 0, ReturnCode::kNull);
  EXPECT_EQ(rsp.message_id, 77);
  ExpectNack(bench_.Answer(Control(CpType::kAckRequest, kStart + 1)),
             NackCode::kPktNotRcvd, tpdcid_, kStart + 1);
  query.dpdcid = static_cast<uint16_t>(tpdcid_ ^ 1);
  ExpectNack(bench_.Answer(query), NackCode::kInvDpdcid, 0, kStart);
}

TEST_F(AcceptTest, OtherControlPacketsAreDroppedAndCounted) {
  Open();
  bench_.Quiet(Control(CpType::kClearCommand, 0));
  EXPECT_EQ(Count(Statistic::kDropPdsType), 0);
  for (CpType type : {CpType::kNoop, CpType::kProbe, CpType::kCloseRequest,
                      CpType::kCredit}) {
    bench_.Quiet(Control(type, kStart + 1));
  }
  EXPECT_EQ(Count(Statistic::kDropPdsType), 4);
  RxPacket rud = Packet(kStart + 1, 8);
  rud.pds_type = static_cast<uint8_t>(PdsType::kRudReq);
  ExpectNack(bench_.Answer(rud), NackCode::kPdcModeMismatch, 0, kStart + 1);
  EXPECT_EQ(bench_.TakeRecord().bytes, 0);
}

TEST_F(AcceptTest, AcksAndNacksOfOurSlotGoToThePdcs) {
  RxPacket ack = {};
  ack.pds_type = static_cast<uint8_t>(PdsType::kAck);
  ack.next_hdr = static_cast<uint8_t>(contract::NextHdr::kResponse);
  ack.fa_lo = 0x0a000002;
  ack.psn = 1000;
  ack.offset = static_cast<uint16_t>(-3);
  ack.spdcid = 0x22;
  ack.dpdcid = kSlot << 10 | 1 << 8 | 33;
  ack.req = 1;
  ack.return_code = 27;
  bench_.Quiet(ack);
  ASSERT_EQ(bench_.acks.size(), 1u);
  EXPECT_EQ(bench_.acks[0].nack, 0);
  EXPECT_EQ(bench_.acks[0].pdc, 33);
  EXPECT_EQ(bench_.acks[0].dpdcid, ack.dpdcid);
  EXPECT_EQ(bench_.acks[0].spdcid, 0x22);
  EXPECT_EQ(bench_.acks[0].fa_lo, 0x0a000002u);
  EXPECT_EQ(bench_.acks[0].cack, 1000u);
  EXPECT_EQ(bench_.acks[0].psn, 997u);
  EXPECT_EQ(bench_.acks[0].req, 1);
  EXPECT_EQ(bench_.acks[0].return_code, 27);
  RxPacket nack = {};
  nack.pds_type = static_cast<uint8_t>(PdsType::kNack);
  nack.psn = 1234;
  nack.nack_code = 7;
  nack.dpdcid = ack.dpdcid;
  bench_.Quiet(nack);
  ASSERT_EQ(bench_.acks.size(), 2u);
  EXPECT_EQ(bench_.acks[1].nack, 1);
  EXPECT_EQ(bench_.acks[1].psn, 1234u);
  EXPECT_EQ(bench_.acks[1].code, 7);
  ack.dpdcid = (kSlot + 1) << 10 | 33;
  bench_.Quiet(ack);
  EXPECT_EQ(bench_.acks.size(), 2u);
  EXPECT_EQ(Count(Statistic::kDropPdcid), 1);
  ack.dpdcid = kSlot << 10 | kTargetRole | 33;
  bench_.Quiet(ack);  // Of the return direction.
  ASSERT_EQ(bench_.acks.size(), 3u);
  EXPECT_EQ(bench_.acks[2].dpdcid, ack.dpdcid);
  EXPECT_EQ(Count(Statistic::kDropPdcid), 1);
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
  for (const Place& record : bench_.places) tokens += record.token;
  EXPECT_EQ(tokens, 1);
}

// Nobody takes them yet; their payload must not stay in the queue.
TEST_F(AcceptTest, ReturnDataAreDroppedWithTheirPayload) {
  Open();
  for (const auto next_hdr :
       {contract::NextHdr::kResponseData, contract::NextHdr::kResponse}) {
    RxPacket pkt = Packet(kStart + 1, 8);
    pkt.next_hdr = static_cast<uint8_t>(next_hdr);
    bench_.Quiet(pkt);
    const Place record = bench_.TakeRecord();
    EXPECT_EQ(record.stream, 8);
    EXPECT_EQ(record.bytes, 0);
  }
  EXPECT_EQ(Count(Statistic::kDropPdsType), 2);
}

}  // namespace
}  // namespace heddle::test
