// SPDX-License-Identifier: Apache-2.0
// WRITE and READ.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/transport/accept_fixture.h"

namespace heddle::test {
namespace {

TEST_F(AcceptWriteTest, IsPlacedInTheRegionWithoutBufferCreditOrCompletion) {
  Open();
  bench_.credit_ok = 0;
  bench_.Quiet(AsWrite(First(kStart + 1, 4096, 9000)));
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.first, 1);
  EXPECT_EQ(record.bytes, 4096);
  EXPECT_EQ(record.iova, 0x100040u);
  EXPECT_EQ(record.ev.owner, 0x21);
  bench_.Quiet(AsWrite(Next(kStart + 2, 4096, 4096, false, 9000)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.iova, 0x101040u);
  EXPECT_EQ(record.bytes, 4096);
  rtl::RxPacket last = AsWrite(Next(kStart + 3, 8192, 808, true, 9000));
  last.ar = 1;
  const rtl::Response rsp = bench_.Answer(last);
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
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(record.ev.count.own, 0);
  EXPECT_EQ(record.ev.count.region, 0);
  bench_.Quiet(AsWrite(Next(kStart + 2, 4096, 4, true, 4100)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 0);
  EXPECT_EQ(record.ev.credit, 0);
  EXPECT_EQ(record.ev.count.own, 7);
  EXPECT_EQ(record.ev.count.region, 9);
  // One without data has a record for its count alone.
  bench_.Quiet(AsWrite(Packet(kStart + 3, 0)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.count.own, 7);
  // A refused one counts nothing.
  SetCode(ReturnCode::kBadAddr);
  bench_.Answer(AsWrite(Packet(kStart + 4, 8)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(record.ev.count.own, 0);
  EXPECT_EQ(record.ev.count.region, 0);
}

class AcceptReadTest : public AcceptWriteTest {
 protected:
  // A packet of a READ that asks for `bytes`.
  static rtl::RxPacket AsRead(rtl::RxPacket pkt, uint16_t bytes) {
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
  rtl::RxPacket last = AsRead(Next(kStart + 3, 8192, 808, true, 9000), 808);
  last.ar = 1;
  const rtl::Response rsp = bench_.Answer(last);
  ExpectAck(rsp, kStart + 3, 0, ReturnCode::kOk);
  EXPECT_EQ(rsp.modified_length, 9000u);
  ASSERT_EQ(bench_.jobs.size(), 3u);
  ASSERT_EQ(bench_.places.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    const rtl::ReturnJob& job = bench_.jobs[i];
    EXPECT_EQ(job.close, 0);
    EXPECT_EQ(job.tell, 0);
    EXPECT_EQ(job.open, i == 0);
    EXPECT_EQ(job.start_psn, kStart);
    EXPECT_EQ(job.route.spdcid, tpdcid_);
    EXPECT_EQ(job.route.fa_lo, last.source_fa_lo);
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
  const rtl::ReadReport wanted = {.ctx = 2,
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
  for (const rtl::Place& place : bench_.places) EXPECT_EQ(place.complete, 0);
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
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.count.own, 4);
  EXPECT_EQ(record.ev.count.region, 0);
  EXPECT_EQ(record.ev.entry.opcode, contract::Opcode::kRead);
  EXPECT_EQ(record.ev.entry.kind, contract::CompletionKind::kTarget);
}

TEST_F(AcceptReadTest, WithoutRoomToReportIsRefusedAndChangesNothing) {
  Open();
  bench_->report_room_i = 0;
  rtl::RxPacket pkt = AsRead(Packet(kStart + 1, 8), 8);
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
  rtl::RxPacket next = AsRead(Next(kStart + 2, 4096, 4096, false, 9000), 4096);
  ExpectError(bench_.Answer(next), kStart + 2, ReturnCode::kBadMkey);
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.write, 0);
  ASSERT_EQ(bench_.jobs.size(), 1u);
  EXPECT_EQ(bench_.jobs[0].tell, 0);
}

TEST_F(AcceptReadTest, WithoutRoomToReturnIsRefusedAndChangesNothing) {
  Open();
  bench_.SetRoom(false);
  rtl::RxPacket pkt = AsRead(Packet(kStart + 1, 8), 8);
  ExpectNack(bench_.Answer(pkt), NackCode::kNoResource, tpdcid_, kStart + 1);
  EXPECT_TRUE(bench_.jobs.empty());
  // What asks for nothing needs none.
  rtl::RxPacket empty = AsRead(Packet(kStart + 1, 0), 0);
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
  rtl::RxPacket next = AsRead(Next(kStart + 2, 4096, 4096, false, 9000), 4096);
  ExpectError(bench_.Answer(next), kStart + 2, ReturnCode::kBadMkey);
  SetCode(ReturnCode::kOk);
  rtl::RxPacket last = AsRead(Next(kStart + 3, 8192, 808, true, 9000), 808);
  last.ar = 1;
  bench_.Answer(last);
  EXPECT_EQ(bench_.jobs.size(), 1u);
  EXPECT_EQ(Count(Statistic::kRxRmaRefused), 1);
}

TEST_F(AcceptReadTest, PacketWithInitiatorErrorAsksForNothing) {
  Open();
  bench_.Quiet(AsRead(First(kStart + 1, 4096, 9000), 4096));
  rtl::RxPacket end = AsRead(Next(kStart + 2, 4096, 0, true, 9000), 4096);
  end.ie = 1;
  end.ar = 1;
  bench_.Answer(end);
  EXPECT_EQ(bench_.jobs.size(), 1u);
}

class AcceptRudReadTest : public AcceptReadTest {
 protected:
  AcceptRudReadTest() { type_ = PdsType::kRudReq; }
};

TEST_F(AcceptRudReadTest, PacketsAheadAreServedInTheOrderInWhichTheyCome) {
  Open();
  bench_.credit_ok = 0;
  const rtl::Response last =
      bench_.Answer(AsRead(Next(kStart + 4, 2048, 100, true, 2148), 100));
  EXPECT_EQ(last.cack, kStart);
  EXPECT_EQ(last.sack_bitmap, 1U << 3);
  bench_.Answer(AsRead(Next(kStart + 3, 1024, 1024, false, 2148), 1024));
  // Another READ, before the first of this one; the first, twice.
  rtl::RxPacket other = AsRead(Packet(kStart + 1, 8), 8);
  other.message_id = 2;
  bench_.Answer(other);
  const rtl::RxPacket first = AsRead(First(kStart + 2, 1024, 2148), 1024);
  EXPECT_EQ(bench_.Answer(first).cack, kStart + 4);
  bench_.Answer(first);
  ASSERT_EQ(bench_.jobs.size(), 4u);
  const std::array<uint32_t, 4> offsets = {2048, 1024, 0, 0};
  const std::array<uint16_t, 4> bytes = {100, 1024, 8, 1024};
  for (size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(bench_.jobs[i].open, i == 0);
    EXPECT_EQ(bench_.jobs[i].route.rud, 1);
    EXPECT_EQ(bench_.jobs[i].data.message_offset, offsets[i]);
    EXPECT_EQ(bench_.jobs[i].data.bytes, bytes[i]);
  }
}

TEST_F(AcceptRudReadTest, WhatIsReportedOrHasNoRoomWaitsForItsTurn) {
  Open();
  rtl::RxPacket ahead = AsRead(Next(kStart + 2, 1024, 100, true, 1124), 100);
  ahead.ar = 1;
  bench_.SetRoom(false);
  ExpectNack(bench_.Answer(ahead), NackCode::kPktNotRcvd, tpdcid_, kStart + 1);
  bench_.SetRoom(true);
  bench_.contexts[2].counters.remote_read = 7;
  bench_.Quiet(ahead);
  EXPECT_TRUE(bench_.jobs.empty());
  bench_.Quiet(AsRead(First(kStart + 1, 1024, 1124), 1024));
  bench_.Answer(ahead);
  ASSERT_EQ(bench_.jobs.size(), 2u);
  EXPECT_EQ(bench_.jobs[1].tell, 1);
}

TEST_F(AcceptReadTest, EndOfThePdcEndsItsReturnDirection) {
  Open();
  bench_.Quiet(AsRead(Packet(kStart + 1, 8), 8));
  rtl::RxPacket close = Packet(kStart + 2, 0);
  close.pds_type = PdsType::kCp;
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
  rtl::RxPacket data = {};
  data.pds_type = PdsType::kRodReq;
  data.next_hdr = static_cast<uint8_t>(contract::NextHdr::kResponseData);
  data.dpdcid = kSlot << 10 | 33;
  data.payload_bytes = 100;
  bench_.back.respond = 1;
  bench_.back.rsp.cack = 55;
  bench_.back.rsp.kind = rtl::ResponseKind::kNone;
  bench_.back.place = 1;
  bench_.back.stream = 100;
  bench_.back.bytes = 64;
  bench_.back.iova = 0x7000;
  bench_.back.owner = 9;
  bench_.back.spdcid = 0x2433;
  bench_.back.settle = 1;
  bench_.back.msg = 1000;
  bench_.back.fail = 1;
  bench_.back.code = 3;
  const rtl::Response rsp = bench_.Answer(data);
  EXPECT_EQ(rsp.cack, 55u);
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 100);
  EXPECT_EQ(record.bytes, 64);
  EXPECT_EQ(record.iova, 0x7000u);
  EXPECT_EQ(record.ev.owner, 9);
  EXPECT_EQ(record.spdcid, 0x2433);
  EXPECT_EQ(record.back, 1);
  EXPECT_EQ(record.settle, 1);
  EXPECT_EQ(record.msg, 1000);
  EXPECT_EQ(record.fail, 1);
  EXPECT_EQ(record.code, 3);
  EXPECT_EQ(bench_.back_takes, 1);
  // The data of a small READ come in its ACK, which goes to the PDC as well.
  bench_.back.respond = 0;
  data.pds_type = PdsType::kAck;
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
  for (const bool respond : {true, false}) {
    bench_.late = {.due = 1, .respond = respond, .answer = {.cack = 4711}};
    bench_.RunUntilIdle();
    EXPECT_EQ(bench_.responses.size(), before + 1) << "one, of the first";
  }
  EXPECT_EQ(bench_.responses.back().cack, 4711U);
  EXPECT_EQ(bench_.late_looks, 2);
  EXPECT_EQ(bench_.late_takes, 2);
  bench_.AddBuffer(2, 64, 0x1000, 100);
  rtl::RxPacket next = Packet(kStart + 2, 8);
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
    rtl::RxPacket pkt = AsWrite(Packet(++psn, 8));
    pkt.hd = hd;
    pkt.header_data = 0x1122334455667788;
    pkt.initiator = 0x3007;
    bench_.credit_ok = ~(1u << 5);
    ExpectNack(bench_.Answer(pkt), NackCode::kNoResource, tpdcid_, psn);
    bench_.places.clear();
    bench_.credit_ok = 1u << 5;
    bench_.Quiet(pkt);
    EXPECT_EQ(bench_.credits_taken, std::vector<uint8_t>{5});
    const rtl::Place record = bench_.TakeRecord();
    EXPECT_EQ(record.bytes, 8);
    EXPECT_EQ(record.complete, 1);
    rtl::CqEvent expected = {};
    expected.write = 1;
    expected.credit = 1;
    expected.owner = 0x21;
    expected.cq = 5;
    expected.cq_gen = 6;
    expected.entry.kind = contract::CompletionKind::kTarget;
    expected.entry.opcode = contract::Opcode::kWrite;
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
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 1);
}

TEST_F(AcceptWriteTest, AnswersOfTheRegionTableAreTheInitiators) {
  Open();
  uint32_t psn = kStart;
  for (ReturnCode code : {ReturnCode::kBadMkey, ReturnCode::kPermViolation,
                          ReturnCode::kBadAddr}) {
    SetCode(code);
    rtl::RxPacket pkt = AsWrite(Packet(++psn, 8));
    pkt.offset = static_cast<uint16_t>(-1);
    ExpectError(bench_.Answer(pkt), psn, code);
    EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  }
  // Another function's region, whatever it grants.
  bench_.region.owner = 0x22;
  SetCode(ReturnCode::kOk);
  rtl::RxPacket pkt = AsWrite(Packet(++psn, 8));
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
  rtl::RxPacket first = AsWrite(First(kStart + 1, 4096, 9000));
  first.hd = 1;
  bench_.Quiet(first);
  EXPECT_EQ(bench_.credits_taken.size(), 1u);
  EXPECT_EQ(bench_.TakeRecord().bytes, 4096);
  SetCode(ReturnCode::kBadMkey);
  ExpectError(bench_.Answer(AsWrite(Next(kStart + 2, 4096, 4096, false, 9000))),
              kStart + 2, ReturnCode::kBadMkey);
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.write, 0);
  // Open again: the message stays refused.
  SetCode(ReturnCode::kOk);
  rtl::RxPacket last = AsWrite(Next(kStart + 3, 8192, 808, true, 9000));
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
    rtl::RxPacket open = Syn(base, 8);
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
      rtl::RxPacket last = Next(base + 3, 8192, 808, true, 9000);
      last.ar = 1;
      return last;
    }()));
    bench_.places.clear();
  }
}

TEST_F(AcceptWriteTest, PacketsThatDoNotContinueTheWriteAreDropped) {
  Open();
  uint32_t psn = kStart;
  const auto key = [](rtl::RxPacket& p) { p.match_bits = 0xabce; };
  const auto send = [](rtl::RxPacket& p) { p.opcode = 5; };
  for (void (*spoil)(rtl::RxPacket&) : {+key, +send}) {
    bench_.Quiet(AsWrite(First(++psn, 4096, 9000)));
    bench_.places.clear();
    rtl::RxPacket pkt = AsWrite(Next(++psn, 4096, 4096, false, 9000));
    spoil(pkt);
    ExpectError(bench_.Answer(pkt), psn, ReturnCode::kOpViolation);
    EXPECT_EQ(bench_.TakeRecord().bytes, 0);
    rtl::RxPacket last = Clearing(AsWrite(Next(++psn, 8192, 808, true, 9000)));
    last.ar = 1;
    ExpectRest(bench_.Answer(last), psn, ReturnCode::kOpViolation);
    EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  }
}

TEST_F(AcceptWriteTest, InitiatorErrorPlacesNothingAndReturnsTheCredit) {
  Open();
  rtl::RxPacket first = AsWrite(First(kStart + 1, 4096, 9000));
  first.hd = 1;
  bench_.Quiet(first);
  bench_.places.clear();
  rtl::RxPacket failed = AsWrite(Next(kStart + 2, 4096, 0, true, 9000));
  failed.ie = 1;
  failed.ar = 1;
  SetCode(ReturnCode::kBadMkey);  // Does not matter any more.
  ExpectAck(bench_.Answer(failed), kStart + 2, 0, ReturnCode::kNull);
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 0);
  EXPECT_EQ(record.ev.credit, 1);
}

TEST_F(AcceptWriteTest, DeliveryCompleteIsAnsweredWhenItsDataIsVisible) {
  Open();
  const auto pdc = static_cast<uint8_t>(tpdcid_ & 0x3f);
  const auto complete = [&](uint32_t psn) {
    rtl::RxPacket pkt = AsWrite(Packet(psn, 8));
    pkt.dc = 1;
    pkt.ar = 1;
    return pkt;
  };
  bench_.Quiet(complete(kStart + 1));
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.visible, 1);
  EXPECT_EQ(record.psn, kStart + 1);
  // Others are accepted meanwhile, but not acknowledged cumulatively.
  rtl::RxPacket plain = AsWrite(Packet(kStart + 2, 8));
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
  rtl::RxPacket bad = AsWrite(Packet(kStart + 5, 8));
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
  rtl::RxPacket pkt = AsWrite(Packet(kStart + 1, 8));
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

}  // namespace
}  // namespace heddle::test
