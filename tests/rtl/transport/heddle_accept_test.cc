// SPDX-License-Identifier: Apache-2.0
// PDCs at the target: opening, PSNs, answers, ends.
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/transport/accept_fixture.h"

namespace heddle::test {
namespace {

TEST_F(AcceptTest, SynOpensAPdcPlacesAndCompletesTheMessage) {
  bench_.AddBuffer(2, 64, 0x1000, 0x77);
  rtl::RxPacket pkt = Syn(kStart, 8);
  pkt.ce = 1;
  pkt.hd = 1;
  pkt.header_data = 0x1122334455667788;
  const rtl::Response rsp = bench_.Answer(pkt);
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

  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 8);
  EXPECT_EQ(record.bytes, 8);
  EXPECT_EQ(record.iova, 0x1000u);
  EXPECT_EQ(record.first, 1);
  EXPECT_EQ(record.complete, 1);
  rtl::CqEvent expected = {};
  expected.write = 1;
  expected.credit = 1;
  expected.owner = 0x21;
  expected.cq = 5;
  expected.cq_gen = 6;
  expected.entry.kind = contract::CompletionKind::kRx;
  expected.entry.opcode = contract::Opcode::kSend;
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

TEST_F(AcceptTest, SquashedPacketHasNoEffect) {
  for (const PdsType type : {PdsType::kRodReq, PdsType::kRudReq}) {
    SCOPED_TRACE(static_cast<int>(type));
    type_ = type;
    tpdcid_ = 0;
    const auto stats = bench_.stats;
    bench_.AddBuffer(2, 64, 0x1000, 1);
    bench_.SendSquashed(Syn(kStart, 8));
    bench_.RunUntilIdle();
    EXPECT_EQ(bench_->open_o, 0) << "no PDC opens";
    EXPECT_EQ(bench_.stats, stats);
    EXPECT_TRUE(bench_.responses.empty());

    rtl::RxPacket syn = Syn(kStart, 8);
    tpdcid_ = bench_.Answer(syn).spdcid;
    bench_.TakeRecord();
    bench_.AddBuffer(2, 64, 0x1000, 2);
    rtl::RxPacket closes = Control(CpType::kCloseCommand, kStart + 1);
    // Right after a packet that changes more than what is forwarded, too.
    for (const bool follows : {false, true}) {
      const size_t responses = bench_.responses.size();
      const size_t credits = bench_.credits_taken.size();
      if (follows) bench_.Send(syn);
      for (const rtl::RxPacket& packet :
           {Packet(kStart + 1, 8), Packet(kStart + 5, 8),
            First(kStart + 1, 1024, 2048), syn, closes}) {
        bench_.SendSquashed(packet);
      }
      bench_.RunUntilIdle();
      EXPECT_EQ(bench_.responses.size(), responses + follows);
      EXPECT_EQ(bench_.credits_taken.size(), credits);
      EXPECT_EQ(bench_->open_o, 1);
    }
    bench_.places.clear();
    // The PSN that was squashed is still expected.
    bench_.Send(Packet(kStart + 1, 8));
    bench_.RunUntilIdle();
    EXPECT_EQ(bench_.TakeRecord().complete, 1);
    bench_.Answer(Control(CpType::kCloseCommand, kStart + 2));
    EXPECT_EQ(bench_->open_o, 0);
    bench_.responses.clear();
  }
}

// A packet that may wait for the one before it does not if it is void.
TEST_F(AcceptTest, SquashedPacketThatWaitsIsGone) {
  Open();
  bench_.AddBuffer(2, 4096, 0x1000, 1);
  bench_.Send(First(kStart + 1, 1024, 3072));
  bench_.SendSquashed(Next(kStart + 2, 1024, 1024, false, 3072));
  bench_.Send(Next(kStart + 2, 1024, 1024, false, 3072));
  bench_.SendSquashed(Next(kStart + 3, 2048, 1024, true, 3072));
  bench_.Send(Next(kStart + 3, 2048, 1024, true, 3072));
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.places.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench_.places[i].bytes, 1024);
    EXPECT_EQ(bench_.places[i].complete, i == 2);
  }
  EXPECT_EQ(Count(Statistic::kRxDuplicates), 0);
  EXPECT_EQ(Count(Statistic::kRxOutOfOrder), 0);
}

TEST_F(AcceptTest, DuplicateIsAcknowledgedAgainAndItsPayloadDropped) {
  Open();
  for (uint32_t i = 1; i <= 3; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
    bench_.Send(Packet(kStart + i, 8));
  }
  bench_.RunUntilIdle();
  bench_.places.clear();
  rtl::RxPacket pkt = Packet(kStart + 1, 8);
  pkt.retx = 1;
  pkt.message_id = 44;
  const rtl::Response rsp = bench_.Answer(pkt);
  ExpectAck(rsp, kStart + 3, -2, ReturnCode::kNull);
  EXPECT_EQ(rsp.retx, 1);
  EXPECT_EQ(rsp.message_id, 44);
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.stream, 8);
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(Count(Statistic::kRxDuplicates), 1);
}

TEST_F(AcceptTest, OneNackPerGapNamesThePsnExpected) {
  Open();
  for (int i = 0; i < 4; ++i) bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::Response nack = bench_.Answer(Packet(kStart + 3, 8));
  ExpectNack(nack, NackCode::kRodOoo, tpdcid_, kStart + 3);
  EXPECT_EQ(nack.cack, kStart + 1);
  bench_.Quiet(Packet(kStart + 4, 8));
  rtl::RxPacket again = Packet(kStart + 3, 8);
  again.retx = 1;
  bench_.Quiet(again);
  bench_.Quiet(Packet(kStart + 1, 8));  // Accepted; no ACK was asked for.
  nack = bench_.Answer(Packet(kStart + 3, 8));
  ExpectNack(nack, NackCode::kRodOoo, tpdcid_, kStart + 3);
  EXPECT_EQ(nack.cack, kStart + 2);
  EXPECT_EQ(Count(Statistic::kRxOutOfOrder), 4);
  EXPECT_EQ(Count(Statistic::kRxRequests), 2);
}

// A sender that goes back to kStart + 1 and loses that again.
TEST_F(AcceptTest, LostRetransmissionIsReportedAgainOncePerPass) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  bench_.Answer(Packet(kStart + 2, 8));
  for (uint32_t i = 3; i < 20; ++i) bench_.Quiet(Packet(kStart + i, 8));
  const auto again = [&](uint32_t i) {
    rtl::RxPacket pkt = Packet(kStart + i, 8);
    pkt.retx = 1;
    return pkt;
  };
  for (int pass = 0; pass < 3; ++pass) {
    bench_.Quiet(again(2));
    const rtl::Response nack = bench_.Answer(again(3));
    ExpectNack(nack, NackCode::kRodOoo, tpdcid_, kStart + 3);
    EXPECT_EQ(nack.cack, kStart + 1);
    EXPECT_EQ(nack.retx, 1);
    for (uint32_t i = 4; i < 20; ++i) bench_.Quiet(again(i));
    for (uint32_t i = 20; i < 23; ++i) bench_.Quiet(Packet(kStart + i, 8));
  }
  ExpectAck(bench_.Answer(again(1)), kStart + 1, 0, ReturnCode::kOk);
  ExpectNack(bench_.Answer(again(3)), NackCode::kRodOoo, tpdcid_, kStart + 3);
}

// The reference provider sends again what `nack_psn` names, five times at most.
TEST_F(AcceptTest, PeerThatSendsOnePacketAgainIsNotNackedMore) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket again = Packet(kStart + 2, 8);
  bench_.Answer(again);
  for (uint32_t i = 3; i < 20; ++i) bench_.Quiet(Packet(kStart + i, 8));
  again.retx = 1;
  for (int i = 0; i < 5; ++i) bench_.Quiet(again);
  bench_.Quiet(Packet(kStart + 20, 8));
  bench_.Quiet(again);
}

TEST_F(AcceptTest, PacketThatOvertakesTheFirstOpensThePdcAtItsStart) {
  for (int i = 0; i < 2; ++i) bench_.AddBuffer(2, 64, 0x1000, 1);
  const rtl::Response nack = bench_.Answer(Syn(kStart + 1, 8));
  tpdcid_ = nack.spdcid;
  EXPECT_NE(tpdcid_, 0);
  ExpectNack(nack, NackCode::kRodOoo, tpdcid_, kStart + 1);
  ExpectAck(bench_.Answer(Syn(kStart, 8)), kStart, 0, ReturnCode::kOk);
  ExpectAck(bench_.Answer(Syn(kStart + 1, 8)), kStart + 1, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, PsnBeyondTheWindowIsNackedAndOpensNothing) {
  const rtl::RxPacket far = Syn(kStart + 512, 8);
  ExpectNack(bench_.Answer(far), NackCode::kPsnOorWindow, 0, kStart + 512);
  Open();
  ExpectNack(bench_.Answer(Packet(kStart + 1 + 512, 8)),
             NackCode::kPsnOorWindow, tpdcid_, kStart + 513);
  ExpectNack(bench_.Answer(Packet(kStart + 0x8000, 8)), NackCode::kPsnOorWindow,
             tpdcid_, kStart + 0x8000);
  ExpectNack(bench_.Answer(Packet(kStart + 1 - 0x8001, 8)),
             NackCode::kPsnOorWindow, tpdcid_, kStart - 0x8000);
}

TEST_F(AcceptTest, PsnsWrapAround) {
  rtl::RxPacket pkt = Syn(kStart, 8);
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

TEST_F(AcceptTest, WrongJobOpcodeAndAddressingAreAnsweredWithTheirError) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket job = Packet(kStart + 1, 8);
  job.job_id = 9;
  const rtl::Response rsp = bench_.Answer(job);
  ExpectError(rsp, kStart + 1, ReturnCode::kBadJobId);
  EXPECT_EQ(rsp.job_id, 9u);
  // Each request clears what was answered before it.
  rtl::RxPacket opcode = Packet(kStart + 2, 8);
  opcode.opcode = 3;
  opcode.offset = static_cast<uint16_t>(-1);
  ExpectError(bench_.Answer(opcode), kStart + 2, ReturnCode::kUnsupportedOp);
  bench_.miss = ReturnCode::kBadJobId;
  rtl::RxPacket relative = Packet(kStart + 3, 8);
  relative.rel = 1;
  relative.offset = static_cast<uint16_t>(-1);
  ExpectError(bench_.Answer(relative), kStart + 3, ReturnCode::kBadJobId);
  EXPECT_EQ(bench_.contexts[2].buffers.size(), 1u);
  for (const rtl::Place& record : bench_.places) EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(bench_.places.size(), 3u);
  EXPECT_TRUE(bench_.credits_taken.empty());
}

TEST_F(AcceptTest, ARelativeRequestIsForTheContextOfItsJobAlone) {
  Open();
  Context relative = bench_.contexts[2];
  relative.relative = true;
  bench_.contexts[3] = relative;
  relative.job = 9;
  bench_.contexts[4] = relative;
  for (uint8_t context = 2; context < 5; ++context) {
    bench_.AddBuffer(context, 64, 0x1000 * context, context);
  }
  uint32_t psn = kStart;
  for (const auto& [rel, job, context] :
       {std::tuple{1, 9U, 4}, {1, kJob, 3}, {0, kJob, 2}}) {
    rtl::RxPacket pkt = Packet(++psn, 8);
    pkt.ar = 1;
    pkt.rel = static_cast<uint8_t>(rel);
    pkt.job_id = job;
    ExpectAck(bench_.Answer(pkt), psn, 0, ReturnCode::kOk);
    EXPECT_EQ(bench_.TakeRecord().iova, uint64_t{0x1000} * context);
    EXPECT_TRUE(bench_.contexts[context].buffers.empty());
  }
}

TEST_F(AcceptTest, ANameWithoutAContextIsAnsweredAsTheLookupSays) {
  Open();
  uint32_t psn = kStart;
  for (const uint8_t rel : {uint8_t{0}, uint8_t{1}}) {
    for (const SesOpcode opcode :
         {SesOpcode::kSend, SesOpcode::kWrite, SesOpcode::kRead}) {
      for (const ReturnCode code : {ReturnCode::kBadJobId, ReturnCode::kBadPid,
                                    ReturnCode::kBadIndex}) {
        bench_.miss = code;
        rtl::RxPacket pkt = Packet(++psn, 8);
        pkt.opcode = static_cast<uint8_t>(opcode);
        pkt.rel = rel;
        pkt.resource_index = 6;
        pkt.other_gen = 1;  // Of nothing, so it says nothing.
        pkt.offset = static_cast<uint16_t>(-1);
        if (opcode == SesOpcode::kRead) {
          pkt.payload_bytes = 0;
          pkt.read_bytes = 8;
        }
        ExpectError(bench_.Answer(pkt), psn, code);
      }
    }
  }
  EXPECT_TRUE(bench_.credits_taken.empty());
}

TEST_F(AcceptTest, AnIndexThatNobodyServesIsAnError) {
  Open();
  rtl::RxPacket other = Packet(kStart + 1, 8);
  other.resource_index = 6;
  ExpectError(bench_.Answer(other), kStart + 1, ReturnCode::kBadIndex);
  EXPECT_TRUE(bench_.credits_taken.empty());
}

TEST_F(AcceptTest, AFirstPacketComesAgainUntilTheFunctionListens) {
  bench_->listens_i = 0;
  bench_.contexts[2].alive = false;
  for (const SesOpcode opcode :
       {SesOpcode::kSend, SesOpcode::kWrite, SesOpcode::kRead}) {
    for (const PdsType type : {PdsType::kRodReq, PdsType::kRudReq}) {
      type_ = type;
      rtl::RxPacket pkt = Syn(kStart, 8);
      pkt.opcode = static_cast<uint8_t>(opcode);
      bench_.Quiet(pkt);
      const rtl::Place record = bench_.TakeRecord();  // Its payload goes.
      EXPECT_EQ(record.stream, 8);
      EXPECT_EQ(record.bytes, 0);
      EXPECT_EQ(record.complete, 0);
    }
  }
  EXPECT_EQ(bench_->open_o, 0);
  EXPECT_EQ(Count(Statistic::kRxRefused), 6);
  EXPECT_EQ(Count(Statistic::kRxRequests), 0);
  // Of a PDC at the target before.
  tpdcid_ = kSlot << 10 | kTargetRole;
  ExpectNack(bench_.Answer(Packet(kStart, 8)), NackCode::kInvDpdcid, 0, kStart);
  bench_.places.clear();

  bench_->listens_i = 1;
  bench_.contexts[2].alive = true;
  bench_.AddBuffer(2, 64, 0x1000, 1);
  type_ = PdsType::kRodReq;
  const rtl::Response rsp = bench_.Answer(Syn(kStart, 8));
  tpdcid_ = rsp.spdcid;
  ExpectAck(rsp, kStart, 0, ReturnCode::kOk);
}

// After a reset, which PDCs outlive.
TEST_F(AcceptTest, RequestsOfAnOpenPdcComeAgainUntilTheFunctionListens) {
  Open();
  bench_->listens_i = 0;
  bench_.contexts[2].alive = false;
  bench_.Quiet(Packet(kStart + 1, 8));
  bench_.Quiet(Packet(kStart, 8));
  ExpectAck(bench_.Answer(Control(CpType::kAckRequest, kStart)), kStart, 0,
            ReturnCode::kNull);
  rtl::RxPacket stranger = Packet(kStart + 1, 8);
  stranger.source_fa_lo ^= 1;
  ExpectNack(bench_.Answer(stranger), NackCode::kPdcHdrMismatch, 0, kStart + 1);
  EXPECT_EQ(Count(Statistic::kRxRefused), 2);

  bench_->listens_i = 1;
  bench_.contexts[2].alive = true;
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket again = Packet(kStart + 1, 8);
  again.retx = 1;
  ExpectAck(bench_.Answer(again), kStart + 1, 0, ReturnCode::kOk);
}

// A packet that found no context while the function did not listen.
TEST_F(AcceptTest, ListeningBeginsWithPacketsLookedUpAfterwards) {
  bench_->listens_i = 0;
  bench_.contexts[2].alive = false;
  bench_.Send(Syn(kStart, 8));
  while (bench_.waiting() != 0) bench_.Cycle();
  bench_.Cycle();  // It has been looked up.
  bench_->listens_i = 1;
  bench_.contexts[2].alive = true;
  bench_.RunUntilIdle();
  EXPECT_TRUE(bench_.responses.empty());
  EXPECT_EQ(bench_->open_o, 0);
}

TEST_F(AcceptTest, ErrorOnAFirstPacketOpensThePdcThatKeepsItsAnswer) {
  rtl::RxPacket job = Syn(kStart, 8);
  job.job_id = 9;
  const rtl::Response rsp = bench_.Answer(job);
  EXPECT_NE(rsp.spdcid, 0);
  tpdcid_ = rsp.spdcid;
  ExpectError(rsp, kStart, ReturnCode::kBadJobId);
  ExpectError(bench_.Answer(job), kStart, ReturnCode::kBadJobId);
}

// UET 2.15: an error answer is delivered for certain.
TEST_F(AcceptTest, AnErrorIsRepeatedAndHoldsTheAcknowledgementUntilCleared) {
  Open();
  rtl::RxPacket bad = Packet(kStart + 1, 8);
  bad.job_id = 9;
  bad.message_id = 77;
  ExpectError(bench_.Answer(bad), kStart + 1, ReturnCode::kBadJobId);
  // What follows is received, but not acknowledged.
  for (uint32_t i = 2; i <= 3; ++i) bench_.AddBuffer(2, 64, 0x1000, i);
  bench_.Quiet(Packet(kStart + 2, 8));
  rtl::RxPacket asking = Packet(kStart + 3, 8);
  asking.ar = 1;
  for (const rtl::RxPacket& pkt : {asking, bad, Packet(kStart + 2, 8),
                                   Control(CpType::kAckRequest, kStart + 1),
                                   Control(CpType::kAckRequest, kStart + 3)}) {
    const rtl::Response rsp = bench_.Answer(pkt);
    ExpectError(rsp, kStart + 1, ReturnCode::kBadJobId);
    EXPECT_EQ(rsp.message_id, 77);
    EXPECT_EQ(rsp.job_id, 9u);
  }
  EXPECT_EQ(bench_.credits_taken.size(), 2u);
  // A second error has no place.
  rtl::RxPacket second = Packet(kStart + 4, 8);
  second.job_id = 9;
  ExpectNack(bench_.Answer(second), NackCode::kNoGtdDelAvail, tpdcid_,
             kStart + 4);
  // Too early a clear changes nothing.
  rtl::RxPacket clear = Control(CpType::kClearCommand, 0);
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
  rtl::RxPacket bad = Packet(kStart + 1, 8);
  bad.job_id = 9;
  ExpectError(bench_.Answer(bad), kStart + 1, ReturnCode::kBadJobId);
  rtl::RxPacket next = Packet(kStart + 2, 8);
  next.offset = static_cast<uint16_t>(-2);
  bench_.Quiet(next);
  next.psn = kStart + 3;
  ExpectAck(bench_.Answer(next), kStart + 3, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, UnknownPdcidsAreNackedWithoutPdc) {
  Open();
  rtl::RxPacket pkt = Packet(kStart + 1, 8);
  for (uint16_t flip : {uint16_t{1 << 8}, uint16_t{1 << 7}, uint16_t{1}}) {
    pkt.dpdcid = static_cast<uint16_t>(tpdcid_ ^ flip);
    ExpectNack(bench_.Answer(pkt), NackCode::kInvDpdcid, 0, kStart + 1);
  }
  rtl::RxPacket clear = Control(CpType::kClearCommand, 0);  // Has no PSN.
  clear.dpdcid = pkt.dpdcid;
  bench_.Quiet(clear);
  pkt.dpdcid = tpdcid_;
  pkt.source_fa_lo = 0x0a000003;
  ExpectNack(bench_.Answer(pkt), NackCode::kPdcHdrMismatch, 0, kStart + 1);
  pkt.source_fa_lo = 0x0a000002;
  pkt.spdcid = 0x12;
  const rtl::Response rsp = bench_.Answer(pkt);
  EXPECT_EQ(rsp.code, static_cast<uint8_t>(NackCode::kPdcHdrMismatch));
  EXPECT_EQ(rsp.dpdcid, 0x12);
  EXPECT_EQ(Count(Statistic::kDropPdcid), 6);
  for (const rtl::Place& record : bench_.places) EXPECT_EQ(record.bytes, 0);
}

// An answer could end the PDC of the function that the packet is for.
TEST_F(AcceptTest, PacketsForAnotherFunctionsSlotAreDroppedUnanswered) {
  Open();
  rtl::RxPacket ack = {};
  ack.pds_type = PdsType::kAck;
  rtl::RxPacket nack = {};
  nack.pds_type = PdsType::kNack;
  rtl::RxPacket packets[] = {Packet(kStart + 1, 8),
                             Control(CpType::kCloseCommand, kStart + 1),
                             Control(CpType::kAckRequest, kStart),
                             Control(CpType::kClearCommand, kStart + 1),
                             ack,
                             nack};
  int dropped = 0;
  int payloads = 0;
  for (uint16_t slot = 0; slot < 64; ++slot) {
    if (slot == kSlot) continue;
    for (rtl::RxPacket& pkt : packets) {
      pkt.dpdcid = static_cast<uint16_t>((tpdcid_ & 0x3ff) | slot << 10);
      bench_.Quiet(pkt);
      payloads += pkt.payload_bytes != 0;
      EXPECT_EQ(Count(Statistic::kDropPdcid), ++dropped);
    }
  }
  EXPECT_TRUE(bench_.acks.empty());
  // What they carried left the payload queue.
  EXPECT_EQ(bench_.places.size(), static_cast<size_t>(payloads));
  for (const rtl::Place& record : bench_.places) {
    EXPECT_EQ(record.stream, 8);
    EXPECT_EQ(record.bytes, 0);
  }
  // The PDC is as it was.
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket next = Packet(kStart + 1, 8);
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
    const auto flip_address = [](rtl::RxPacket& pkt, int at) {
      (at < 64 ? pkt.source_fa_lo : pkt.source_fa_hi) ^= uint64_t{1} << at % 64;
    };
    const auto other = [&](rtl::RxPacket pkt) {
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
    for (const rtl::RxPacket& pkt :
         {Packet(kStart + 1, 8), Control(CpType::kAckRequest, kStart),
          Control(CpType::kCloseCommand, kStart + 1)}) {
      const rtl::Response rsp = bench_.Answer(other(pkt));
      EXPECT_EQ(rsp.kind, rtl::ResponseKind::kNack);
      EXPECT_EQ(rsp.code, static_cast<uint8_t>(NackCode::kPdcHdrMismatch));
      EXPECT_EQ(rsp.spdcid, 0);
    }
    // The same SYN opens another PDC, which is gone with its close.
    bench_.AddBuffer(2, 64, 0x1000, 1);
    const rtl::Response opened = bench_.Answer(other(Syn(kStart, 8)));
    EXPECT_EQ(opened.kind, rtl::ResponseKind::kAck);
    EXPECT_EQ(opened.return_code, static_cast<uint8_t>(ReturnCode::kOk));
    EXPECT_NE(opened.spdcid & 0xff, own & 0xff);
    tpdcid_ = opened.spdcid;
    EXPECT_EQ(
        bench_.Answer(other(Control(CpType::kCloseCommand, kStart + 1))).kind,
        rtl::ResponseKind::kNone);
  }
  tpdcid_ = own;
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket next = Packet(kStart + 1, 8);
  next.ar = 1;
  ExpectAck(bench_.Answer(next), kStart + 1, 0, ReturnCode::kOk);
}

TEST_F(AcceptTest, SynOfAKnownPdcWithAnotherStartIsInvalid) {
  Open();
  rtl::RxPacket pkt = Syn(kStart + 1, 8);
  pkt.psn_offset = 0;
  ExpectNack(bench_.Answer(pkt), NackCode::kInvalidSyn, 0, kStart + 1);
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

TEST_F(AcceptTest, OneThatIsNotAcceptedIsTakenEveryTwoCycles) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  constexpr uint32_t kEarly = 50;
  for (uint32_t i = 0; i < kEarly; ++i) {
    bench_.Send(Packet(kStart + 2 + i, 8));
  }
  bench_.Send(Packet(kStart + 1, 8));
  for (uint32_t i = 0; i < kEarly; ++i) {
    bench_.Send(Packet(kStart + 1, 8));
  }
  // There is no buffer for the next: it is refused, and again.
  for (uint32_t i = 0; i < kEarly; ++i) {
    bench_.Send(Packet(kStart + 2, 8));
  }
  const size_t before = bench_.responses.size();
  const uint64_t start = bench_.cycle;
  bench_.RunUntilIdle();
  EXPECT_LE(bench_.cycle - start, 2u * (3 * kEarly + 1) + 10);
  EXPECT_EQ(Count(Statistic::kRxOutOfOrder), kEarly);
  EXPECT_EQ(Count(Statistic::kRxRequests), 2) << "with the one that opened it";
  EXPECT_EQ(Count(Statistic::kRxDuplicates), kEarly);
  EXPECT_EQ(Count(Statistic::kRxRefused), kEarly);
  ASSERT_EQ(bench_.responses.size(), before + 1 + 2 * kEarly);
  ExpectNack(bench_.responses[before], NackCode::kRodOoo, tpdcid_, kStart + 2);
  ExpectNack(bench_.responses.back(), NackCode::kNoPktBuffer, tpdcid_,
             kStart + 2);
}

TEST_F(AcceptTest, CloseFreesThePdcAndItsDuplicateIsUnknown) {
  Open();
  const rtl::RxPacket close = Control(CpType::kCloseCommand, kStart + 1);
  const rtl::Response rsp = bench_.Answer(close);
  EXPECT_EQ(rsp.kind, rtl::ResponseKind::kNone);
  EXPECT_EQ(rsp.cack, kStart + 1);
  EXPECT_EQ(rsp.ack_offset, 0);
  EXPECT_EQ(rsp.spdcid, tpdcid_);
  ExpectNack(bench_.Answer(close), NackCode::kClosing, 0, kStart + 1);
  // The same SYN opens it anew under another id.
  bench_.AddBuffer(2, 64, 0x1000, 1);
  const rtl::Response again = bench_.Answer(Syn(kStart, 8));
  EXPECT_EQ(again.kind, rtl::ResponseKind::kAck);
  EXPECT_NE(again.spdcid, tpdcid_);
}

TEST_F(AcceptTest, CloseOutOfOrderIsNacked) {
  Open();
  ExpectNack(bench_.Answer(Control(CpType::kCloseCommand, kStart + 2)),
             NackCode::kRodOoo, tpdcid_, kStart + 2);
  EXPECT_EQ(bench_.Answer(Control(CpType::kCloseCommand, kStart + 1)).kind,
            rtl::ResponseKind::kNone);
}

TEST_F(AcceptTest, AckRequestIsAnsweredFromTheState) {
  Open();
  rtl::RxPacket query = Control(CpType::kAckRequest, kStart);
  query.pds_payload = 77;
  const rtl::Response rsp = bench_.Answer(query);
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
  for (CpType type :
       {CpType::kNoop, CpType::kClearRequest, CpType::kCloseRequest,
        CpType::kCredit, CpType::kCreditRequest, CpType{10}, CpType{15}}) {
    bench_.Quiet(Control(type, kStart + 1));
  }
  rtl::RxPacket opening = Control(CpType::kNegotiation, kStart + 1);
  opening.syn = 1;
  opening.spdcid = 0x12;
  bench_.Quiet(opening);
  EXPECT_EQ(Count(Statistic::kDropPdsType), 8);
  rtl::RxPacket rud = Packet(kStart + 1, 8);
  rud.pds_type = PdsType::kRudReq;
  ExpectNack(bench_.Answer(rud), NackCode::kPdcModeMismatch, 0, kStart + 1);
  EXPECT_EQ(bench_.TakeRecord().bytes, 0);
}

TEST_F(AcceptTest, ProbeIsAnsweredWithItsOpaque) {
  for (const PdsType mode : {PdsType::kRodReq, PdsType::kRudReq}) {
    type_ = mode;
    Open();
    rtl::RxPacket probe = Control(CpType::kProbe, 0xdead);
    probe.offset = 0xbeef;
    const rtl::Response rsp = bench_.Answer(probe);
    EXPECT_EQ(rsp.kind, rtl::ResponseKind::kNone);
    EXPECT_EQ(rsp.probe, 1);
    EXPECT_EQ(rsp.ack_offset, 0xbeef);
    EXPECT_EQ(rsp.cack, kStart);
    EXPECT_EQ(rsp.cc, 0);
    EXPECT_EQ(rsp.spdcid, tpdcid_);
    EXPECT_EQ(rsp.dpdcid, probe.spdcid);
    rtl::RxPacket close = Control(CpType::kCloseCommand, kStart + 1);
    EXPECT_EQ(bench_.Answer(close).probe, 0);
    ExpectNack(bench_.Answer(probe), NackCode::kClosing, 0, 0xdead);
  }
}

TEST_F(AcceptTest, NegotiationIsAnsweredWithNoFeature) {
  for (const PdsType mode : {PdsType::kRodReq, PdsType::kRudReq}) {
    type_ = mode;
    Open();
    rtl::RxPacket asked = Control(CpType::kNegotiation, 0xdead);
    asked.pds_payload = 0x01020000;
    const rtl::Response rsp = bench_.Answer(asked);
    EXPECT_EQ(rsp.kind, rtl::ResponseKind::kOffer);
    EXPECT_EQ(rsp.nack_psn, 0xdeadu);
    EXPECT_EQ(rsp.rod, mode == PdsType::kRodReq);
    EXPECT_EQ(rsp.spdcid, tpdcid_);
    EXPECT_EQ(rsp.dpdcid, asked.spdcid);
    asked.dpdcid = static_cast<uint16_t>(tpdcid_ ^ 0x40);
    ExpectNack(bench_.Answer(asked), NackCode::kInvDpdcid, 0, 0xdead);
    bench_.Answer(Control(CpType::kCloseCommand, kStart + 1));
  }
}

// By a target, for a PDC of ours.
TEST_F(AcceptTest, ClearAndCloseRequestsGoToOurPdcs) {
  const auto request = [this](CpType type) {
    rtl::RxPacket pkt = Control(type, 1000);
    pkt.spdcid = 0x22;
    pkt.dpdcid = kSlot << 10 | 33;
    return pkt;
  };
  bench_.Quiet(request(CpType::kClearRequest));
  EXPECT_EQ(bench_.back_takes, 0);
  bench_.back.respond = 1;
  bench_.back.rsp.kind = rtl::ResponseKind::kNone;
  EXPECT_EQ(bench_.Answer(request(CpType::kCloseRequest)).kind,
            rtl::ResponseKind::kNone);
  EXPECT_EQ(bench_.back_takes, 1) << "it has a PSN";
  ASSERT_EQ(bench_.acks.size(), 2u);
  for (const rtl::AckEvent& ack : bench_.acks) {
    EXPECT_EQ(ack.nack, 1);
    EXPECT_EQ(ack.ask, 1);
    EXPECT_EQ(ack.pdc, 33);
    EXPECT_EQ(ack.spdcid, 0x22);
  }
  EXPECT_EQ(bench_.acks[0].req, 1);
  EXPECT_EQ(bench_.acks[1].req, 2);
  // An ACK Request or a Probe about return data is judged there alone.
  bench_.Answer(request(CpType::kAckRequest));
  bench_.Answer(request(CpType::kProbe));
  EXPECT_EQ(bench_.back_takes, 3);
  EXPECT_EQ(bench_.acks.size(), 2u);
  rtl::RxPacket other = request(CpType::kCloseRequest);
  other.dpdcid = (kSlot + 1) << 10 | 33;
  bench_.Send(other);
  bench_.RunUntilIdle();
  EXPECT_EQ(bench_.acks.size(), 2u);
  EXPECT_EQ(Count(Statistic::kDropPdcid), 1);
}

TEST_F(AcceptTest, AcksAndNacksOfOurSlotGoToThePdcs) {
  rtl::RxPacket ack = {};
  ack.pds_type = PdsType::kAck;
  ack.next_hdr = static_cast<uint8_t>(contract::NextHdr::kResponse);
  ack.source_fa_lo = 0x0a000002;
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
  rtl::RxPacket nack = {};
  nack.pds_type = PdsType::kNack;
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

// UET 2.7: an ACK_CC has a bitmap and the state of NSCC beside the fields of an
// ACK.
TEST_F(AcceptTest, AckCcGoesToThePdcWithItsBitmapAndCongestionState) {
  constexpr uint64_t kBitmap = 0x8000'0000'0000'0005;
  rtl::RxPacket ack = {};
  ack.pds_type = PdsType::kAckCc;
  ack.next_hdr = static_cast<uint8_t>(contract::NextHdr::kResponse);
  ack.psn = 2;
  ack.dpdcid = kSlot << 10 | 33;
  ack.nack_code = 4;  // The field of an ACK_CC's mp_range.
  ack.sack_offset = static_cast<uint16_t>(-8);
  ack.match_bits = kBitmap;
  ack.header_data = 0x1234'00ab'cdef'0000;
  bench_.Quiet(ack);
  ASSERT_EQ(bench_.acks.size(), 1U);
  const rtl::AckEvent& taken = bench_.acks[0];
  EXPECT_EQ(taken.nack, 0);
  EXPECT_EQ(taken.cack, 2U);
  EXPECT_EQ(taken.sack, 1);
  EXPECT_EQ(taken.range, 4);
  EXPECT_EQ(taken.sack_base, 0xffff'fffaU);
  EXPECT_EQ(taken.sack_bitmap, kBitmap);
  EXPECT_EQ(taken.service_time, 0x1234);
  EXPECT_EQ(taken.rcvd_bytes, 0xabcdefU);
  ack.pds_type = PdsType::kAck;  // Other headers' fields mean nothing there.
  bench_.Quiet(ack);
  ASSERT_EQ(bench_.acks.size(), 2U);
  EXPECT_EQ(bench_.acks[1].sack, 0);
  EXPECT_EQ(bench_.acks[1].sack_bitmap, 0U);
}

// Nobody takes them yet; their payload must not stay in the queue.
TEST_F(AcceptTest, ReturnDataAreDroppedWithTheirPayload) {
  Open();
  for (const auto next_hdr :
       {contract::NextHdr::kResponseData, contract::NextHdr::kResponse}) {
    rtl::RxPacket pkt = Packet(kStart + 1, 8);
    pkt.next_hdr = static_cast<uint8_t>(next_hdr);
    bench_.Quiet(pkt);
    const rtl::Place record = bench_.TakeRecord();
    EXPECT_EQ(record.stream, 8);
    EXPECT_EQ(record.bytes, 0);
  }
  EXPECT_EQ(Count(Statistic::kDropPdsType), 2);
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
  const rtl::Response& ack = bench_.responses.back();
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
  rtl::RxPacket asking = Packet(kStart + 2, 8);
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
  constexpr uint32_t kPackets = 300;
  for (uint32_t i = 0; i < kPackets; ++i) {
    rtl::RxPacket packet = Syn(kStart + i, 8);
    packet.spdcid = 0x12;
    packet.psn_offset = static_cast<uint16_t>(i);
    bench_.Send(packet);
  }
  for (uint32_t ticks = 0; ticks < kDelayTicks; ++ticks) {
    bench_->tick_i = 1;
    bench_.Cycle();
    bench_->tick_i = 0;
    for (int i = 0; i < 24; ++i) bench_.Cycle();
  }
  EXPECT_GT(bench_.waiting(), 0u) << "the other initiator must still be busy";
  int late = 0;
  for (const rtl::Response& rsp : bench_.responses) {
    late += rsp.spdcid == quiet_tpdcid && rsp.cack == kStart + 1;
  }
  EXPECT_EQ(late, 1);
  bench_.RunUntilIdle();
}

}  // namespace
}  // namespace heddle::test
