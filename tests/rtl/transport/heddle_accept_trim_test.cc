// SPDX-License-Identifier: Apache-2.0
// Requests that the network trimmed: what the target answers.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/rtl/transport/accept_fixture.h"

namespace heddle::test {
namespace {

class AcceptTrimTest : public AcceptTest {
 protected:
  // Nothing behind the PDS header is known of it.
  static rtl::RxPacket Cut(const rtl::RxPacket& whole,
                           rtl::Trim trim = rtl::Trim::kPath) {
    rtl::RxPacket pkt = {};
    pkt.source_fa_lo = whole.source_fa_lo;
    pkt.source_fa_hi = whole.source_fa_hi;
    pkt.ipv6 = whole.ipv6;
    pkt.source_mac = whole.source_mac;
    pkt.source_port = 0xc777;
    pkt.dscp = 3;  // That of trimmed packets.
    pkt.pds_type = whole.pds_type;
    pkt.next_hdr = whole.next_hdr;
    pkt.syn = whole.syn;
    pkt.retx = whole.retx;
    pkt.offset = 0xffff;
    pkt.psn = whole.psn;
    pkt.psn_offset = whole.psn_offset;
    pkt.spdcid = whole.spdcid;
    pkt.dpdcid = whole.syn ? uint16_t{0} : whole.dpdcid;
    pkt.trim = trim;
    return pkt;
  }
  rtl::RxPacket Trimmed(uint32_t psn) { return Cut(Packet(psn, 8)); }
  void ExpectTrimmed(const rtl::Response& rsp, NackCode code, uint32_t psn) {
    ExpectNack(rsp, code, tpdcid_, psn);
    EXPECT_EQ(rsp.cack, 0u);
    EXPECT_EQ(rsp.entropy, 0xc777);
    EXPECT_EQ(rsp.dscp, 9) << "that of the PDC";
  }
  void ExpectDiscarded(const rtl::RxPacket& packet, int count) {
    bench_.Quiet(packet);
    EXPECT_EQ(Count(Statistic::kDropTrimmed), count);
  }
};

class AcceptTrimModeTest : public AcceptTrimTest,
                           public testing::WithParamInterface<PdsType> {};
INSTANTIATE_TEST_SUITE_P(Mode, AcceptTrimModeTest,
                         testing::Values(PdsType::kRodReq, PdsType::kRudReq));

TEST_P(AcceptTrimModeTest, MissingPacketIsNackedByItsPsnEntropyAndMark) {
  type_ = GetParam();
  Open();
  rtl::RxPacket pkt = Trimmed(kStart + 1);
  pkt.next_hdr = 2;  // Whatever SES header it had.
  rtl::Response nack = bench_.Answer(pkt);
  ExpectTrimmed(nack, NackCode::kTrimmed, kStart + 1);
  EXPECT_EQ(nack.m, 0);
  EXPECT_EQ(nack.retx, 0);
  pkt = Cut(Packet(kStart + 1, 8), rtl::Trim::kLasthop);
  pkt.ce = pkt.retx = 1;
  nack = bench_.Answer(pkt);
  ExpectTrimmed(nack, NackCode::kTrimmedLasthop, kStart + 1);
  EXPECT_EQ(nack.m, 1);
  EXPECT_EQ(nack.retx, 1);
  // Its SYN is as good.
  ExpectTrimmed(bench_.Answer(Cut(Syn(kStart + 1, 8))), NackCode::kTrimmed,
                kStart + 1);
  EXPECT_TRUE(bench_.places.empty());
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket whole = Packet(kStart + 1, 8);
  whole.ar = 1;
  ExpectAck(bench_.Answer(whole), kStart + 1, 0, ReturnCode::kOk);
  EXPECT_EQ(Count(Statistic::kRxTrimmed), 3);
  EXPECT_EQ(Count(Statistic::kDropTrimmed), 0);
}

TEST_F(AcceptTrimTest, OnRodOneNackNamesAGapButTheMissingPacketEachTime) {
  Open();
  ExpectTrimmed(bench_.Answer(Trimmed(kStart + 1)), NackCode::kTrimmed,
                kStart + 1);
  bench_.Quiet(Packet(kStart + 2, 8));
  bench_.Quiet(Trimmed(kStart + 3));
  ExpectTrimmed(bench_.Answer(Trimmed(kStart + 1)), NackCode::kTrimmed,
                kStart + 1);
  EXPECT_EQ(Count(Statistic::kRxTrimmed), 3);
  EXPECT_EQ(Count(Statistic::kRxOutOfOrder), 1);
  // What was lost without a trace, a trimmed packet behind it shows, too.
  bench_.AddBuffer(2, 64, 0x1000, 1);
  bench_.Quiet(Packet(kStart + 1, 8));
  ExpectTrimmed(bench_.Answer(Trimmed(kStart + 3)), NackCode::kTrimmed,
                kStart + 3);
  bench_.Quiet(Packet(kStart + 4, 8));
}

// A retransmission that overtakes those before it, when no packet follows it.
TEST_F(AcceptTrimTest, TrimmedTailOfAPassIsNackedWhenItIsExpected) {
  Open();
  ExpectTrimmed(bench_.Answer(Trimmed(kStart + 1)), NackCode::kTrimmed,
                kStart + 1);
  bench_.Quiet(Packet(kStart + 2, 8));
  bench_.Quiet(Packet(kStart + 3, 8));
  rtl::RxPacket again = Packet(kStart + 3, 8);
  again.retx = 1;
  bench_.Quiet(Cut(again, rtl::Trim::kLasthop));
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket first = Packet(kStart + 1, 8);
  first.retx = 1;
  ExpectAck(bench_.Answer(first), kStart + 1, 0, ReturnCode::kOk);
  rtl::RxPacket second = Packet(kStart + 2, 8);
  second.retx = 1;
  bench_.AddBuffer(2, 64, 0x1000, 2);
  const rtl::Response nack = bench_.Answer(second);
  ExpectNack(nack, NackCode::kTrimmedLasthop, tpdcid_, kStart + 3);
  EXPECT_EQ(nack.retx, 1);
  bench_.Quiet(Packet(kStart + 4, 8));
  bench_.AddBuffer(2, 64, 0x1000, 3);
  ExpectAck(bench_.Answer(again), kStart + 3, 0, ReturnCode::kOk);
}

TEST_F(AcceptTrimTest, OnRudEachMissingPacketIsNackedByItself) {
  type_ = PdsType::kRudReq;
  Open();
  for (const uint32_t psn : {3u, 5u, 3u, 1u}) {
    ExpectTrimmed(bench_.Answer(Trimmed(kStart + psn)), NackCode::kTrimmed,
                  kStart + psn);
  }
  EXPECT_EQ(Count(Statistic::kRxTrimmed), 4);
}

TEST_F(AcceptTrimTest, DuplicateIsAcknowledgedAndClearsNothing) {
  Open();
  bench_.region.code = ReturnCode::kBadMkey;
  rtl::RxPacket write = Packet(kStart + 1, 8);
  write.opcode = 1;
  ExpectError(bench_.Answer(write), kStart + 1, ReturnCode::kBadMkey);
  const rtl::Response again = bench_.Answer(Trimmed(kStart + 1));
  ExpectError(again, kStart + 1, ReturnCode::kBadMkey);
  EXPECT_EQ(again.dscp, 9);
  EXPECT_EQ(Count(Statistic::kRxDuplicates), 1);
  EXPECT_EQ(Count(Statistic::kRxTrimmed), 0);
  EXPECT_EQ(Count(Statistic::kDropTrimmed), 0);
}

TEST_F(AcceptTrimTest, WhatNoKnownPdcMissesIsDiscardedAndCounted) {
  int count = 0;
  ExpectDiscarded(Cut(Syn(kStart, 8)), ++count);
  Open();
  ExpectDiscarded(Trimmed(kStart + 1 + 512), ++count);
  ExpectDiscarded(Trimmed(kStart - 0x8000), ++count);
  rtl::RxPacket pkt = Trimmed(kStart + 1);
  pkt.dpdcid ^= 1;  // Another PDC, which nobody opened.
  ExpectDiscarded(pkt, ++count);
  pkt = Trimmed(kStart + 1);
  pkt.dpdcid ^= 0x8000;  // Another function's.
  ExpectDiscarded(pkt, ++count);
  pkt = Trimmed(kStart + 1);
  pkt.spdcid ^= 1;
  ExpectDiscarded(pkt, ++count);
  pkt = Trimmed(kStart + 1);
  pkt.source_fa_lo ^= 1;
  ExpectDiscarded(pkt, ++count);
  pkt = Trimmed(kStart + 1);
  pkt.pds_type = PdsType::kRudReq;
  ExpectDiscarded(pkt, ++count);
  pkt = Cut(Syn(kStart + 1, 8));
  ++pkt.psn_offset;  // Another Start_PSN.
  ExpectDiscarded(pkt, ++count);
  bench_->listens_i = 0;
  ExpectDiscarded(Trimmed(kStart + 1), ++count);
  EXPECT_EQ(Count(Statistic::kRxTrimmed), 0);
}

TEST_F(AcceptTrimTest, RequestToAnInitiatorIsHeddleReturnRxs) {
  rtl::RxPacket pkt = Trimmed(kStart);
  pkt.dpdcid = static_cast<uint16_t>(kSlot << 10 | 5);
  pkt.next_hdr = static_cast<uint8_t>(contract::NextHdr::kRequestStd);
  bench_.Quiet(pkt);
  EXPECT_EQ(bench_.back_takes, 1);
}

}  // namespace
}  // namespace heddle::test
