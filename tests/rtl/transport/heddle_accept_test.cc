// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/transport/accept_bench.h"

namespace heddle::test {
namespace {

using contract::CpType;
using contract::NackCode;
using contract::PdsType;
using contract::ReturnCode;
using contract::Statistic;
using contract::Status;

constexpr uint32_t kStart = 0x12345;
constexpr uint32_t kJob = 0x42;
constexpr uint8_t kSlot = 9;

class AcceptTest : public testing::Test {
 protected:
  AcceptTest() {
    bench_.config.slot = kSlot;
    bench_.config.pdc_seed = 5;
    bench_.SetConfig();
    Context context = {};
    context.pid = 3;
    context.ri = 5;
    context.job = kJob;
    bench_.contexts[2] = context;
  }

  // First and only packet of a message that opens the PDC.
  RxPacket Syn(uint32_t psn, uint32_t length) {
    RxPacket pkt = Packet(psn, length);
    pkt.syn = 1;
    pkt.psn_offset = static_cast<uint16_t>(psn - kStart);
    return pkt;
  }
  // First and only packet of a message on the PDC opened last.
  RxPacket Packet(uint32_t psn, uint32_t length) {
    RxPacket pkt = {};
    pkt.fa_lo = 0x0a000002;
    pkt.source_mac = 0x020000000002;
    pkt.source_port = 0xc123;
    pkt.dscp = 9;
    pkt.pds_type = static_cast<uint8_t>(PdsType::kRodReq);
    pkt.next_hdr = static_cast<uint8_t>(contract::NextHdr::kRequestStd);
    pkt.psn = psn;
    pkt.spdcid = 0x11;
    pkt.dpdcid = tpdcid_;
    pkt.opcode = 5;
    pkt.som = 1;
    pkt.eom = 1;
    pkt.message_id = 1;
    pkt.job_id = kJob;
    pkt.pid_on_fep = 3;
    pkt.resource_index = 5;
    pkt.initiator = 7;
    pkt.request_length = length;
    pkt.payload_bytes = static_cast<uint16_t>(length);
    return pkt;
  }
  // A later packet of a message of `length` bytes.
  RxPacket Next(uint32_t psn, uint32_t offset, uint16_t bytes, bool eom,
                uint32_t length) {
    RxPacket pkt = Packet(psn, length);
    pkt.som = 0;
    pkt.eom = eom;
    pkt.message_offset = offset;
    pkt.payload_bytes = bytes;
    return pkt;
  }
  RxPacket First(uint32_t psn, uint16_t bytes, uint32_t length) {
    RxPacket pkt = Packet(psn, length);
    pkt.eom = 0;
    pkt.payload_bytes = bytes;
    return pkt;
  }
  RxPacket Control(CpType type, uint32_t psn) {
    RxPacket pkt = Packet(psn, 0);
    pkt.pds_type = static_cast<uint8_t>(PdsType::kCp);
    pkt.next_hdr = static_cast<uint8_t>(type);
    return pkt;
  }
  // Opens the PDC with an 8-byte message; the next PSN is kStart + 1.
  void Open() {
    bench_.AddBuffer(2, 64, 0x1000, 100);
    tpdcid_ = bench_.Answer(Syn(kStart, 8)).spdcid;
    bench_.places.clear();
    bench_.credits_taken.clear();
  }
  int Count(Statistic statistic) {
    return bench_.stats[static_cast<size_t>(statistic)];
  }
  void ExpectNack(const Response& rsp, NackCode code, uint16_t spdcid,
                  uint32_t psn) {
    EXPECT_EQ(rsp.kind, ResponseKind::kNack);
    EXPECT_EQ(rsp.code, static_cast<uint8_t>(code));
    EXPECT_EQ(rsp.spdcid, spdcid);
    EXPECT_EQ(rsp.nack_psn, psn);
    EXPECT_EQ(rsp.dpdcid, 0x11);
  }
  void ExpectAck(const Response& rsp, uint32_t cack, int16_t offset,
                 ReturnCode code) {
    EXPECT_EQ(rsp.kind, ResponseKind::kAck);
    EXPECT_EQ(rsp.cack, cack);
    EXPECT_EQ(static_cast<int16_t>(rsp.ack_offset), offset);
    EXPECT_EQ(rsp.spdcid, tpdcid_);
    EXPECT_EQ(rsp.dpdcid, 0x11);
    EXPECT_EQ(rsp.return_code, static_cast<uint8_t>(code));
    EXPECT_EQ(rsp.response, code == ReturnCode::kNull ? 0 : 1);
  }

  AcceptBench bench_;
  uint16_t tpdcid_ = 0;
};

TEST_F(AcceptTest, SynOpensAPdcPlacesAndCompletesTheMessage) {
  bench_.AddBuffer(2, 64, 0x1000, 0x77);
  RxPacket pkt = Syn(kStart, 8);
  pkt.ce = 1;
  pkt.hd = 1;
  pkt.header_data = 0x1122334455667788;
  const Response rsp = bench_.Answer(pkt);
  tpdcid_ = rsp.spdcid;
  EXPECT_EQ(tpdcid_ >> 10, kSlot);
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

TEST_F(AcceptTest, WithoutCreditOrContextThePacketIsRefused) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 1);
  bench_.credit_ok = ~(1u << 5);
  ExpectNack(bench_.Answer(Packet(kStart + 1, 8)), NackCode::kNoResource,
             tpdcid_, kStart + 1);
  bench_.credit_ok = 1u << 5;
  RxPacket other = Packet(kStart + 1, 8);
  other.resource_index = 6;
  ExpectNack(bench_.Answer(other), NackCode::kNoResource, tpdcid_, kStart + 1);
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
  ExpectAck(rsp, kStart, 1, ReturnCode::kBadJobId);
  EXPECT_EQ(rsp.job_id, 9u);
  RxPacket opcode = Packet(kStart + 1, 8);
  opcode.opcode = 1;
  ExpectAck(bench_.Answer(opcode), kStart, 1, ReturnCode::kUnsupportedOp);
  RxPacket relative = Packet(kStart + 1, 8);
  relative.rel = 1;
  ExpectAck(bench_.Answer(relative), kStart, 1, ReturnCode::kBadPid);
  EXPECT_EQ(bench_.contexts[2].buffers.size(), 1u);
  for (const Place& record : bench_.places) EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(bench_.places.size(), 3u);
}

TEST_F(AcceptTest, ErrorOnAFirstPacketOpensNoPdc) {
  RxPacket job = Syn(kStart, 8);
  job.job_id = 9;
  ExpectAck(bench_.Answer(job), kStart - 1, 1, ReturnCode::kBadJobId);
  EXPECT_EQ(bench_.responses.back().spdcid, 0);
}

TEST_F(AcceptTest, UnknownPdcidsAreNackedWithoutPdc) {
  Open();
  RxPacket pkt = Packet(kStart + 1, 8);
  for (uint16_t flip : {uint16_t{1 << 9}, uint16_t{1 << 6}, uint16_t{1}}) {
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
    EXPECT_NE(opened.spdcid & 0x3f, own & 0x3f);
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

TEST_F(ForgetTest, PdcWithAnOpenMessageIsKept) {
  Open();
  bench_.AddBuffer(2, 8192, 0x1000, 1);
  bench_.Send(First(kStart + 1, 4096, 8192));
  bench_.RunUntilIdle();
  Pass(5 * kDeadTicks);
  const Response rsp = bench_.Answer([&] {
    RxPacket last = Next(kStart + 2, 4096, 4096, true, 8192);
    last.ar = 1;
    return last;
  }());
  ExpectAck(rsp, kStart + 2, 0, ReturnCode::kOk);
}

TEST_F(ForgetTest, AllPdcsOfInitiatorsThatWentAwayComeBack) {
  for (int generation = 0; generation < 3; ++generation) {
    for (uint16_t i = 0; i < 40; ++i) {
      bench_.AddBuffer(2, 64, 0x1000, i);
      RxPacket pkt = Syn(kStart, 8);
      pkt.spdcid = static_cast<uint16_t>(0x400 + 64 * generation + i);
      EXPECT_EQ(bench_.Answer(pkt).kind, ResponseKind::kAck)
          << generation << ' ' << i;
    }
    bench_.places.clear();
    Pass(4 * kDeadTicks);
  }
}

TEST_F(AcceptTest, SixtyFourPdcsFitAndAClosedOneMakesRoom) {
  std::vector<RxPacket> opened;
  std::vector<uint16_t> ids;
  int refused = 0;
  // Spread over sources, so that a set may overflow before the indices do.
  for (uint32_t i = 0; opened.size() < 64 && i < 200; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
    RxPacket pkt = Syn(kStart, 8);
    pkt.fa_lo = 0x0a000002 + i / 16;
    pkt.spdcid = static_cast<uint16_t>(0x40 + i % 16);
    const Response rsp = bench_.Answer(pkt);
    if (rsp.kind == ResponseKind::kNack) {
      EXPECT_EQ(rsp.code, static_cast<uint8_t>(NackCode::kNoPdcAvail));
      EXPECT_EQ(rsp.spdcid, 0);
      ++refused;
    } else {
      opened.push_back(pkt);
      ids.push_back(rsp.spdcid);
    }
  }
  ASSERT_EQ(opened.size(), 64u);
  EXPECT_LE(refused, 8);
  for (size_t i = 0; i < 64; ++i) {
    for (size_t j = i + 1; j < 64; ++j) EXPECT_NE(ids[i] % 64, ids[j] % 64);
  }
  RxPacket late = Syn(kStart, 8);
  late.fa_lo = 0x0b000000;
  EXPECT_EQ(bench_.Answer(late).code,
            static_cast<uint8_t>(NackCode::kNoPdcAvail));
  RxPacket close = opened[40];
  close.syn = 0;
  close.pds_type = static_cast<uint8_t>(PdsType::kCp);
  close.next_hdr = static_cast<uint8_t>(CpType::kCloseCommand);
  close.payload_bytes = 0;
  close.psn = kStart + 1;
  close.dpdcid = ids[40];
  EXPECT_EQ(bench_.Answer(close).kind, ResponseKind::kNone);
  // The place of the closed one, in its set too.
  bench_.AddBuffer(2, 64, 0x1000, 1);
  const Response rsp = bench_.Answer(opened[40]);
  EXPECT_EQ(rsp.kind, ResponseKind::kAck);
  EXPECT_EQ(rsp.spdcid % 64, ids[40] % 64);
  EXPECT_NE(rsp.spdcid, ids[40]);
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
  ack.dpdcid = kSlot << 10 | 5 << 6 | 33;
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

}  // namespace
}  // namespace heddle::test
