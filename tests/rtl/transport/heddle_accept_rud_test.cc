// SPDX-License-Identifier: Apache-2.0
// Unordered PDCs: packets ahead of a gap.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/rtl/transport/accept_fixture.h"

namespace heddle::test {
namespace {

constexpr uint16_t kMtu = 1024;

class AcceptRudTest : public AcceptWriteTest {
 protected:
  // Pieces 1 and 2 of a message of the table that began with kStart + 2: its
  // credit returns, and nothing is placed.
  void ExpectTheRestIsDropped() {
    bench_.places.clear();
    for (uint32_t i = 1; i < 3; ++i) bench_.Send(Piece(kStart + 2, i, 3));
    bench_.RunUntilIdle();
    ASSERT_EQ(bench_.places.size(), 2u);
    EXPECT_EQ(bench_.places[0].ev.credit, 1);
    EXPECT_EQ(bench_.places[0].ev.write, 0);
    for (const rtl::Place& record : bench_.places) EXPECT_EQ(record.bytes, 0);
  }

  AcceptRudTest() { type_ = PdsType::kRudReq; }

  void ExpectSack(const rtl::Response& rsp, uint32_t cack, uint64_t bitmap) {
    EXPECT_EQ(rsp.kind, rtl::ResponseKind::kAck);
    EXPECT_EQ(rsp.cc, 1);
    EXPECT_EQ(rsp.cack, cack);
    EXPECT_EQ(rsp.sack_bitmap, bitmap);
  }
  // The packet is not accepted: the expected one is missing. It is reported at
  // once, since no other may arrive after the last one of a sender.
  void ExpectMissing(const rtl::RxPacket& packet, uint32_t expected) {
    ExpectNack(bench_.Answer(Asking(packet)), NackCode::kPktNotRcvd, tpdcid_,
               expected);
  }
  // Packet `index` of a message of `count` whole packets, its first at `psn`.
  rtl::RxPacket Piece(uint32_t psn, uint32_t index, uint32_t count) {
    const uint32_t length = count * kMtu;
    return index == 0 ? First(psn, kMtu, length)
                      : Next(psn + index, index * kMtu, kMtu,
                             index + 1 == count, length);
  }
  // A whole WRITE of 8 bytes.
  rtl::RxPacket Write(uint32_t psn) { return AsWrite(Packet(psn, 8)); }
  // The same, of another message than Piece().
  rtl::RxPacket Other(uint32_t psn) {
    rtl::RxPacket packet = Write(psn);
    packet.message_id = 9;
    return packet;
  }
  static rtl::RxPacket Asking(rtl::RxPacket packet) {
    packet.ar = 1;
    return packet;
  }
  size_t Completions() const {
    return static_cast<size_t>(std::ranges::count_if(
        bench_.places, [](const rtl::Place& p) { return p.complete != 0; }));
  }
};

TEST_F(AcceptRudTest, InOrderItIsAsRodButForTheKindOfAck) {
  bench_.AddBuffer(2, 4 * kMtu, 0x1000, 100);
  const rtl::Response rsp = bench_.Answer(Syn(kStart, 8));
  tpdcid_ = rsp.spdcid;
  ExpectAck(rsp, kStart, 0, ReturnCode::kOk);
  ExpectSack(rsp, kStart, 0);
  EXPECT_EQ(bench_.TakeRecord().complete, 1);
  bench_.AddBuffer(2, 4 * kMtu, 0x1000, 101);
  bench_.Quiet(Piece(kStart + 1, 0, 3));
  bench_.Quiet(Piece(kStart + 1, 1, 3));
  const rtl::Response last = bench_.Answer(Asking(Piece(kStart + 1, 2, 3)));
  ExpectAck(last, kStart + 3, 0, ReturnCode::kOk);
  ExpectSack(last, kStart + 3, 0);
  EXPECT_EQ(last.modified_length, 3u * kMtu);
  EXPECT_EQ(Completions(), 1u);
}

TEST_F(AcceptRudTest, APdcKeepsTheModeThatItWasOpenedWith) {
  Open();
  type_ = PdsType::kRodReq;
  ExpectNack(bench_.Answer(Packet(kStart + 1, 8)), NackCode::kPdcModeMismatch,
             0, kStart + 1);
  ExpectNack(bench_.Answer(Syn(kStart, 8)), NackCode::kPdcModeMismatch, 0,
             kStart);
  EXPECT_EQ(Count(Statistic::kDropPdsType), 2);
  type_ = PdsType::kRudReq;
  ExpectAck(bench_.Answer(Asking(Write(kStart + 1))), kStart + 1, 0,
            ReturnCode::kOk);
}

TEST_F(AcceptRudTest,
       WritesAheadArePlacedAtOnceAndAcknowledgedWhenTheGapCloses) {
  Open();
  ExpectSack(bench_.Answer(AsWrite(Piece(kStart + 2, 1, 3))), kStart, 1u << 2);
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.iova, 0x100040u + kMtu);
  EXPECT_EQ(record.bytes, kMtu);
  EXPECT_EQ(record.alone, 1);
  EXPECT_EQ(record.ev.owner, 0x21);
  const rtl::Response ahead = bench_.Answer(AsWrite(Piece(kStart + 2, 2, 3)));
  ExpectSack(ahead, kStart, 3u << 2);
  ExpectAck(ahead, kStart, 4, ReturnCode::kOk);  // All of this PSN.
  EXPECT_EQ(bench_.TakeRecord().bytes, kMtu);
  ExpectSack(bench_.Answer(Write(kStart + 1)), kStart + 1, 3u << 1);
  EXPECT_EQ(bench_.TakeRecord().bytes, 8);
  ExpectSack(bench_.Answer(Asking(AsWrite(Piece(kStart + 2, 0, 3)))),
             kStart + 4, 0);
  record = bench_.TakeRecord();
  EXPECT_EQ(record.iova, 0x100040u);
  EXPECT_EQ(record.complete, 0);
  EXPECT_EQ(Count(Statistic::kRxMessages), 3);
  EXPECT_EQ(Count(Statistic::kRxDuplicates), 0);
}

TEST_F(AcceptRudTest, AWriteThatCountsDoesSoOnceWhenAllOfItCame) {
  Open();
  bench_.region.counter = 9;
  ExpectSack(bench_.Answer(Write(kStart + 5)), kStart, 1u << 4);
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1) << "one packet is all of it";
  EXPECT_EQ(record.ev.count.region, 9);
  // One of several packets has to begin before the rest of it may overtake.
  ExpectMissing(AsWrite(Piece(kStart + 1, 2, 3)), kStart + 1);
  bench_.Answer(AsWrite(Piece(kStart + 1, 0, 3)));
  bench_.Answer(AsWrite(Piece(kStart + 1, 2, 3)));
  for (const rtl::Place& place : bench_.places) {
    EXPECT_EQ(place.ev.count.region, 0);
  }
  bench_.places.clear();
  bench_.Answer(AsWrite(Piece(kStart + 1, 1, 3)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 0);
  EXPECT_EQ(record.ev.count.region, 9);
}

TEST_F(AcceptRudTest, ASecondCopyIsAcknowledgedAgainAndNotPlaced) {
  Open();
  bench_.Answer(Write(kStart + 3));
  bench_.places.clear();
  ExpectSack(bench_.Answer(Write(kStart + 3)), kStart, 1u << 2);
  EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  bench_.Answer(Write(kStart + 1));
  bench_.places.clear();
  ExpectSack(bench_.Answer(Write(kStart + 1)), kStart + 1, 1u << 1);
  EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  EXPECT_EQ(Count(Statistic::kRxDuplicates), 2);
}

TEST_F(AcceptRudTest, TheWindowHoldsSixtyFourPsns) {
  Open();
  ExpectNack(bench_.Answer(Write(kStart + 65)), NackCode::kPsnOorWindow,
             tpdcid_, kStart + 65);
  ExpectSack(bench_.Answer(Write(kStart + 64)), kStart, uint64_t{1} << 63);
  for (uint32_t i = 63; i > 1; --i) bench_.Answer(Write(kStart + i));
  EXPECT_EQ(bench_.responses.back().sack_bitmap, ~uint64_t{1});
  ExpectSack(bench_.Answer(Write(kStart + 1)), kStart + 64, 0);
  ExpectSack(bench_.Answer(Asking(Write(kStart + 65))), kStart + 65, 0);
}

TEST_F(AcceptRudTest, PsnsWrapAround) {
  rtl::RxPacket first = AsWrite(Packet(0xfffffffe, 8));
  first.syn = 1;
  tpdcid_ = bench_.Answer(first).spdcid;
  ExpectSack(bench_.Answer(Write(1)), 0xfffffffe, 1u << 2);
  ExpectSack(bench_.Answer(Write(0)), 0xfffffffe, 3u << 1);
  ExpectSack(bench_.Answer(Write(0xffffffff)), 1, 0);
  ExpectSack(bench_.Answer(Write(0xffffffff)), 1, 0);
}

TEST_F(AcceptRudTest, APacketThatOvertakesTheFirstOpensThePdcAtItsStart) {
  rtl::RxPacket second = Syn(kStart + 1, 8);
  second = AsWrite(second);
  const rtl::Response rsp = bench_.Answer(second);
  tpdcid_ = rsp.spdcid;
  ExpectSack(rsp, kStart - 1, 1u << 1);
  ExpectSack(bench_.Answer(AsWrite(Syn(kStart, 8))), kStart + 1, 0);
  EXPECT_EQ(Count(Statistic::kRxPdcs), 1);
}

// Behind its first packet those of an open SEND may come in any order.
TEST_F(AcceptRudTest, AnOpenMessageTakesItsPacketsInAnyOrder) {
  Open();
  uint32_t psn = kStart + 1;
  std::array<uint32_t, 4> order = {1, 2, 3, 4};
  uint64_t id = 200;
  do {
    bench_.AddBuffer(2, 5 * kMtu, 0x20000, ++id);
    bench_.places.clear();
    bench_.Send(Piece(psn, 0, 5));
    for (const uint32_t index : order) {
      EXPECT_EQ(Completions(), 0u);
      bench_.Send(Asking(Piece(psn, index, 5)));
      bench_.RunUntilIdle();
    }
    ASSERT_EQ(bench_.places.size(), 5u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(bench_.places[i + 1].iova, 0x20000 + order[i] * kMtu);
      EXPECT_EQ(bench_.places[i + 1].bytes, kMtu);
    }
    const rtl::Place& last = bench_.places.back();
    EXPECT_EQ(last.complete, 1);
    EXPECT_EQ(last.ev.write, 1);
    EXPECT_EQ(last.ev.entry.op_context, id);
    EXPECT_EQ(last.ev.entry.length, 5u * kMtu);
    EXPECT_EQ(last.ev.entry.status, Status::kOk);
    psn += 5;
    ExpectSack(bench_.responses.back(), psn - 1, 0);
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(bench_.credits_taken.size(), 24u);
}

TEST_F(AcceptRudTest, BehindItsLastPacketAMessageHasNone) {
  Open();
  bench_.AddBuffer(2, 8 * kMtu, 0x1000, 101);
  bench_.Quiet(Piece(kStart + 1, 0, 3));
  ExpectSack(bench_.Answer(Piece(kStart + 1, 2, 3)), kStart + 1, 1u << 1);
  EXPECT_EQ(Completions(), 0u);
  // Neither a second end nor what is behind the end.
  ExpectMissing(Next(kStart + 4, kMtu, kMtu, false, 3 * kMtu), kStart + 2);
  bench_.Quiet(Next(kStart + 5, 2 * kMtu, kMtu, true, 3 * kMtu));
  ExpectSack(bench_.Answer(Piece(kStart + 1, 1, 3)), kStart + 3, 0);
  EXPECT_EQ(Completions(), 1u);
}

// Another message took one of its PSNs.
TEST_F(AcceptRudTest, AMessageThatIsShortOfBytesAtItsEndFails) {
  Open();
  bench_.AddBuffer(2, 8 * kMtu, 0x1000, 101);
  bench_.AddBuffer(2, 8, 0x9000, 102);
  bench_.Quiet(Piece(kStart + 1, 0, 4));
  rtl::RxPacket other = Packet(kStart + 3, 8);
  other.message_id = 2;
  bench_.Answer(other);
  bench_.places.clear();
  bench_.Answer(Piece(kStart + 1, 1, 4));
  bench_.Quiet(Piece(kStart + 1, 3, 4));
  ASSERT_EQ(Completions(), 1u);
  const contract::Completion& entry = bench_.places.back().ev.entry;
  EXPECT_EQ(entry.status, Status::kInitiatorError);
  EXPECT_EQ(entry.length, 3u * kMtu);
}

// As many bytes as the message has, but some of them twice, would leave a hole.
TEST_F(AcceptRudTest, APieceBelongsWhereItsPsnSays) {
  Open();
  uint32_t psn = kStart + 1;
  uint64_t id = 200;
  struct Case {
    uint32_t index;  // Of the packet, among four.
    uint32_t offset;
    uint16_t bytes;
  };
  for (const Case& c : {Case{1, 0, kMtu}, Case{1, 2 * kMtu, kMtu},
                        Case{1, kMtu, kMtu / 2}, Case{1, kMtu, 2 * kMtu},
                        Case{2, kMtu, kMtu}, Case{2, 2 * kMtu - 1, kMtu},
                        Case{3, 0, kMtu}, Case{3, 2 * kMtu, 2 * kMtu}}) {
    SCOPED_TRACE(id);
    bench_.AddBuffer(2, 4 * kMtu, 0x1000, ++id);
    bench_.Send(Piece(psn, 0, 4));
    // It waits for its turn, and ends its message.
    const rtl::RxPacket odd =
        Next(psn + c.index, c.offset, c.bytes, c.index == 3, 4 * kMtu);
    if (c.index != 1) ExpectMissing(odd, psn + 1);
    bench_.places.clear();
    for (uint32_t i = 1; i < 4; ++i) {
      bench_.Send(Clearing(Asking(i == c.index ? odd : Piece(psn, i, 4))));
    }
    rtl::RxPacket clear = Control(CpType::kClearCommand, 0);
    clear.pds_payload = psn + 3;
    bench_.Send(clear);
    bench_.Send(Control(CpType::kAckRequest, psn + 3));
    bench_.RunUntilIdle();
    ASSERT_EQ(Completions(), 1u);
    for (const rtl::Place& record : bench_.places) {
      if (record.complete == 0) continue;
      EXPECT_EQ(record.ev.entry.op_context, id);
      EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
    }
    psn += 4;
    ExpectSack(bench_.responses.back(), psn - 1, 0);
  }
  EXPECT_EQ(Count(Statistic::kDropSes), 8);
}

TEST_F(AcceptRudTest, PiecesAreAsLongAsTheFirst) {
  Open();
  bench_.AddBuffer(2, 9000, 0x1000, 101);
  bench_.AddBuffer(2, 9000, 0x8000, 102);
  // None that an MTU has.
  ExpectError(bench_.Answer(First(kStart + 1, 1000, 2000)), kStart + 1,
              ReturnCode::kOpViolation);
  EXPECT_EQ(Count(Statistic::kDropSes), 1);
  ExpectRest(
      bench_.Answer(Clearing(Asking(Next(kStart + 2, 1000, 1000, true, 2000)))),
      kStart + 2, ReturnCode::kOpViolation);
  bench_.places.clear();
  bench_.Send(First(kStart + 3, 2048, 5000));
  bench_.Send(Next(kStart + 5, 4096, 904, true, 5000));
  bench_.Send(Next(kStart + 4, 2048, 2048, false, 5000));
  bench_.RunUntilIdle();
  ASSERT_EQ(Completions(), 1u);
  EXPECT_EQ(bench_.places.back().ev.entry.status, Status::kOk);
  EXPECT_EQ(bench_.places.back().ev.entry.op_context, 101u);
}

TEST_F(AcceptRudTest, AWriteThatEndsHereStaysInItsPlace) {
  Open();
  const auto piece = [&](uint32_t index) {
    rtl::RxPacket pkt = AsWrite(Piece(kStart + 1, index, 3));
    pkt.hd = 1;
    return Asking(pkt);
  };
  bench_.Answer(piece(0));
  rtl::RxPacket elsewhere = piece(1);
  elsewhere.buffer_offset += kMtu;
  bench_.places.clear();
  bench_.Answer(elsewhere);
  bench_.Answer(piece(2));
  EXPECT_EQ(Count(Statistic::kDropSes), 1);
  for (const rtl::Place& record : bench_.places) {
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.ev.write, 0);
  }
}

TEST_F(AcceptRudTest, AMessageOfOnePacketCompletesAheadBesideTheOpenOne) {
  Open();
  bench_.AddBuffer(2, 8 * kMtu, 0x1000, 101);
  bench_.AddBuffer(2, 64, 0x9000, 102);
  bench_.Quiet(Piece(kStart + 1, 0, 3));
  bench_.places.clear();
  rtl::RxPacket other = Packet(kStart + 4, 8);
  other.message_id = 2;
  const rtl::Response rsp = bench_.Answer(other);
  ExpectSack(rsp, kStart + 1, 1u << 2);
  ExpectAck(rsp, kStart + 1, 3, ReturnCode::kOk);
  EXPECT_EQ(rsp.modified_length, 8u);
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.alone, 1);
  EXPECT_EQ(record.first, 0);
  EXPECT_EQ(record.iova, 0x9000u);
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.entry.op_context, 102u);
  bench_.Answer(Piece(kStart + 1, 2, 3));
  ExpectSack(bench_.Answer(Piece(kStart + 1, 1, 3)), kStart + 4, 0);
  EXPECT_EQ(bench_.places.back().ev.entry.op_context, 101u);
  EXPECT_EQ(bench_.places.back().iova, 0x1000u + kMtu);
  EXPECT_EQ(Completions(), 1u);
}

TEST_F(AcceptRudTest, WhatCannotBeTakenAheadIsMissedOncePerGap) {
  Open();
  bench_.AddBuffer(2, 64, 0x9000, 102);
  // The first packet, by which a message begins, is missing as well.
  ExpectMissing(Piece(kStart + 2, 2, 3), kStart + 1);
  bench_.Quiet(Piece(kStart + 2, 1, 3));
  rtl::RxPacket again = Piece(kStart + 2, 2, 3);
  again.retx = 1;
  ExpectMissing(again, kStart + 1);
  // Others are taken all the same.
  ExpectSack(bench_.Answer(Packet(kStart + 5, 8)), kStart, 1u << 4);
  // Now there is no buffer.
  bench_.Quiet(Packet(kStart + 6, 8));
  ExpectSack(bench_.Answer(Write(kStart + 1)), kStart + 1, 1u << 3);
  bench_.AddBuffer(2, 4 * kMtu, 0x10000, 103);
  ExpectSack(bench_.Answer(Piece(kStart + 2, 0, 3)), kStart + 2, 1u << 2);
  EXPECT_EQ(Count(Statistic::kRxOutOfOrder), 4);
}

// The sender finds one by what arrives after it.
TEST_F(AcceptRudTest, TheSecondPacketThatCannotBeTakenIsReported) {
  Open();
  bench_.AddBuffer(2, 64, 0x9000, 102);
  bench_.Quiet(Piece(kStart + 2, 1, 3));
  ExpectSack(bench_.Answer(Packet(kStart + 5, 8)), kStart, 1u << 4);
  ExpectNack(bench_.Answer(Piece(kStart + 2, 2, 3)), NackCode::kPktNotRcvd,
             tpdcid_, kStart + 1);
  bench_.Quiet(Piece(kStart + 2, 1, 3));
  // Each gap anew.
  ExpectSack(bench_.Answer(Other(kStart + 1)), kStart + 1, 1u << 3);
  bench_.Quiet(Piece(kStart + 2, 1, 3));
  ExpectNack(bench_.Answer(Piece(kStart + 2, 1, 3)), NackCode::kPktNotRcvd,
             tpdcid_, kStart + 2);
}

// Each of them has its own place, offset and completion.
TEST_F(AcceptRudTest, MessagesOpenAheadOfAGapAndCompleteInAnyOrder) {
  Open();
  const auto piece = [&](uint16_t id, uint32_t index) {
    rtl::RxPacket pkt = Piece(kStart + 2 + 3 * (id - 1), index, 3);
    pkt.message_id = id;
    pkt.header_data = id;
    pkt.hd = 1;
    return pkt;
  };
  for (uint32_t i = 0; i < 4; ++i) {
    bench_.AddBuffer(2, 3 * kMtu, 0x10000 * (i + 1), 100 + i);
  }
  for (const uint16_t id : std::array<uint16_t, 4>{2, 1, 3, 4})
    bench_.Answer(piece(id, 0));
  EXPECT_EQ(bench_.credits_taken.size(), 4u);
  bench_.places.clear();
  bench_.Answer(piece(3, 2));
  bench_.Answer(piece(1, 1));
  EXPECT_EQ(Completions(), 0u);
  bench_.places.clear();
  bench_.Answer(piece(3, 1));
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.iova, 0x30000u + kMtu);
  EXPECT_EQ(record.ev.entry.op_context, 102u);
  EXPECT_EQ(record.ev.entry.header_data, 3u);
  EXPECT_EQ(record.ev.entry.length, 3u * kMtu);
  EXPECT_EQ(record.ev.entry.status, Status::kOk);
  // The gap closes: up to the second packet of the first message.
  ExpectSack(bench_.Answer(Other(kStart + 1)), kStart + 3, 0b11110010);
  bench_.places.clear();
  bench_.Answer(Asking(piece(1, 2)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.iova, 0x20000u + 2 * kMtu);
  EXPECT_EQ(record.ev.entry.op_context, 101u);
  for (const uint32_t index : {2, 1}) bench_.Answer(piece(2, index));
  bench_.Answer(Asking(piece(4, 1)));
  ExpectSack(bench_.Answer(Asking(piece(4, 2))), kStart + 13, 0);
  EXPECT_EQ(Completions(), 2u);
  EXPECT_EQ(bench_.places.back().ev.entry.op_context, 103u);
  EXPECT_EQ(Count(Statistic::kRxOutOfOrder), 0);
}

// The missing packet needs a buffer and a credit as well, and nothing ends
// before it.
TEST_F(AcceptRudTest, AMessageAheadLeavesBuffersAndCreditsToTheMissingOne) {
  Open();
  bench_.spare_buffers = 3;
  for (uint32_t i = 0; i < 3; ++i) {
    bench_.AddBuffer(2, 2 * kMtu, 0x10000 * (i + 1), 100 + i);
  }
  const auto piece = [&](uint16_t id, uint32_t index) {
    rtl::RxPacket pkt = Piece(kStart + 2U * id, index, 2);
    pkt.message_id = id;
    return pkt;
  };
  bench_.Answer(piece(1, 0));
  EXPECT_EQ(bench_.credits_taken.size(), 1u);
  ExpectMissing(piece(2, 0), kStart + 1);
  bench_.spare_buffers = 2;
  bench_.credit_spare = ~(1u << bench_.contexts[2].buffers.front().cq);
  bench_.Quiet(piece(2, 0));
  EXPECT_EQ(bench_.credits_taken.size(), 1u);
  // The expected one takes the last.
  bench_.spare_buffers = 10;
  rtl::RxPacket missing = Packet(kStart + 1, 8);
  missing.message_id = 9;
  bench_.Answer(missing);
  EXPECT_EQ(bench_.credits_taken.size(), 2u);
}

// A place is another message's until that has ended.
TEST_F(AcceptRudTest, APdcHoldsItsShareOfTheTableAndNoMore) {
  Open();
  for (uint32_t i = 0; i < 12; ++i) {
    bench_.AddBuffer(2, 2 * kMtu, 0x10000 * (i + 1), 100 + i);
  }
  const auto piece = [&](uint16_t id, uint32_t index) {
    rtl::RxPacket pkt = Piece(kStart + 2 * id, index, 2);
    pkt.message_id = id;
    return pkt;
  };
  uint16_t id = 1;
  for (; id <= 4; ++id) bench_.Answer(piece(id, 0));
  ExpectMissing(piece(5, 0), kStart + 1);
  bench_.Quiet(piece(6, 0));
  EXPECT_EQ(bench_.credits_taken.size(), 4u);
  bench_.Answer(piece(2, 1));
  bench_.Answer(piece(6, 0));
  EXPECT_EQ(bench_.credits_taken.size(), 5u);
  // Another PDC has its own.
  rtl::RxPacket other = AsWrite(Syn(kStart, 8));
  other.spdcid = 0x77;
  const uint16_t theirs = bench_.Answer(other).spdcid;
  other = piece(1, 0);
  other.spdcid = 0x77;
  other.dpdcid = theirs;
  EXPECT_EQ(bench_.Answer(other).kind, rtl::ResponseKind::kAck);
  EXPECT_EQ(bench_.credits_taken.size(), 6u);
}

// The peer never transmits what is missing of them.
TEST_F(AcceptRudTest, MessagesOfTheTableEndBeforeThePdcIsClosed) {
  Open();
  bench_.AddBuffer(2, 3 * kMtu, 0x10000, 100);
  bench_.AddBuffer(2, 3 * kMtu, 0x20000, 101);
  bench_.Answer(Piece(kStart + 2, 0, 3));
  rtl::RxPacket second = Piece(kStart + 3, 0, 3);
  second.message_id = 3;
  bench_.Answer(second);
  bench_.Answer(Other(kStart + 1));
  bench_.places.clear();
  const rtl::RxPacket close = Control(CpType::kCloseCommand, kStart + 4);
  ExpectNack(bench_.Answer(close), NackCode::kNoResource, tpdcid_, kStart + 4);
  bench_.RunUntilIdle();
  ASSERT_EQ(Completions(), 2u);
  for (const rtl::Place& record : bench_.places) {
    EXPECT_EQ(record.ev.write, 1);
    EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
    EXPECT_EQ(record.ev.entry.length, kMtu);
  }
  EXPECT_EQ(bench_.Answer(close).kind, rtl::ResponseKind::kNone);
  // A PDC of the same index has none of them.
  rtl::RxPacket again = AsWrite(Syn(kStart + 100, 8));
  again.psn_offset = 0;
  EXPECT_EQ(bench_.Answer(again).cack, kStart + 100);
}

// A SYN that the network delayed is of a time before the table was in use.
TEST_F(AcceptRudTest, ALateSynOfAMessageOfTheTableIsDropped) {
  Open();
  bench_.AddBuffer(2, 3 * kMtu, 0x10000, 100);
  bench_.Answer(Piece(kStart + 2, 0, 3));
  bench_.Answer(Other(kStart + 1));
  rtl::RxPacket late = Piece(kStart + 2, 1, 3);
  late.syn = 1;
  late.psn_offset = 3;
  bench_.Quiet(late);
  EXPECT_EQ(Count(Statistic::kRxOutOfOrder), 1);
  EXPECT_EQ(Count(Statistic::kDropSes), 0);
  bench_.Answer(Asking(Piece(kStart + 2, 1, 3)));
  ExpectSack(bench_.Answer(Asking(Piece(kStart + 2, 2, 3))), kStart + 4, 0);
}

// Their error ends each of them alone.
TEST_F(AcceptRudTest, AMessageOfTheTableThatTheInitiatorFailsEndsInOrder) {
  Open();
  bench_.AddBuffer(2, 3 * kMtu, 0x10000, 100);
  bench_.Answer(Piece(kStart + 2, 0, 3));
  rtl::RxPacket failed = Next(kStart + 3, kMtu, 0, true, 3 * kMtu);
  failed.ie = 1;
  ExpectMissing(failed, kStart + 1);
  bench_.Answer(Other(kStart + 1));
  bench_.places.clear();
  ExpectSack(bench_.Answer(Asking(failed)), kStart + 3, 0);
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
  // The place is free.
  bench_.AddBuffer(2, 3 * kMtu, 0x20000, 101);
  bench_.Answer(Piece(kStart + 5, 0, 3));
  EXPECT_EQ(bench_.credits_taken.size(), 2u);
}

TEST_F(AcceptRudTest, AContextThatIsGoneEndsAMessageOfTheTable) {
  Open();
  bench_.AddBuffer(2, 8 * kMtu, 0x1000, 101);
  bench_.Answer(Piece(kStart + 2, 0, 3));
  bench_.contexts[2].gen = 2;
  bench_.Answer(Other(kStart + 1));
  ExpectTheRestIsDropped();
}

// Whatever has its number and generation later.
TEST_F(AcceptRudTest,
       AMessageOfTheTableIsMarkedBeforeTheDrainOfItsContextEnds) {
  Open();
  bench_.AddBuffer(2, 8 * kMtu, 0x1000, 101);
  bench_.Answer(Piece(kStart + 2, 0, 3));
  bench_.contexts[2].alive = false;
  bench_.Drain();
  bench_.RunUntilIdle(4000);
  bench_.contexts[2].alive = true;
  bench_.Answer(Other(kStart + 1));
  ExpectTheRestIsDropped();
}

TEST_F(AcceptRudTest, ErrorsAreJudgedInOrder) {
  Open();
  SetCode(ReturnCode::kBadMkey);
  ExpectMissing(Write(kStart + 3), kStart + 1);
  bench_.Quiet(Write(kStart + 2));
  ExpectError(bench_.Answer(Write(kStart + 1)), kStart + 1,
              ReturnCode::kBadMkey);
  SetCode(ReturnCode::kOk);
  // It holds the acknowledgement back; what came says so.
  const rtl::Response held = bench_.Answer(Write(kStart + 3));
  ExpectError(held, kStart + 1, ReturnCode::kBadMkey);
  ExpectSack(held, kStart, 5);
  SetCode(ReturnCode::kBadMkey);
  ExpectNack(bench_.Answer(Write(kStart + 2)), NackCode::kNoGtdDelAvail,
             tpdcid_, kStart + 2);
  rtl::RxPacket clearing = Write(kStart + 2);
  clearing.retx = 1;
  clearing.offset = static_cast<uint16_t>(-1);
  const rtl::Response second = bench_.Answer(clearing);
  ExpectError(second, kStart + 2, ReturnCode::kBadMkey);
  ExpectSack(second, kStart + 1, 3);
}

TEST_F(AcceptRudTest, TheRestOfARefusedWriteGetsTheSameAnswer) {
  Open();
  SetCode(ReturnCode::kBadMkey);
  ExpectError(bench_.Answer(AsWrite(Piece(kStart + 1, 0, 3))), kStart + 1,
              ReturnCode::kBadMkey);
  SetCode(ReturnCode::kOk);
  bench_.places.clear();
  rtl::RxPacket rest = Asking(AsWrite(Piece(kStart + 1, 1, 3)));
  rest.offset = static_cast<uint16_t>(-1);
  ExpectAck(bench_.Answer(rest), kStart + 2, 0, ReturnCode::kBadMkey);
  EXPECT_EQ(bench_.TakeRecord().bytes, 0);
  ExpectAck(bench_.Answer(Asking(AsWrite(Piece(kStart + 1, 2, 3)))), kStart + 3,
            0, ReturnCode::kBadMkey);
  bench_.places.clear();
  // The message id comes again with another message.
  ExpectAck(bench_.Answer(Asking(AsWrite(Piece(kStart + 4, 0, 2)))), kStart + 4,
            0, ReturnCode::kOk);
  ExpectAck(bench_.Answer(Asking(AsWrite(Piece(kStart + 4, 1, 2)))), kStart + 5,
            0, ReturnCode::kOk);
  for (const rtl::Place& record : bench_.places) EXPECT_EQ(record.bytes, kMtu);
}

TEST_F(AcceptRudTest, AWriteThatEndsHereIsOpenedInOrderAndFilledInAny) {
  Open();
  const auto piece = [&](uint32_t index) {
    rtl::RxPacket pkt = AsWrite(Piece(kStart + 1, index, 3));
    pkt.hd = 1;
    pkt.header_data = index == 0 ? 77 : 0;
    return pkt;
  };
  ExpectMissing(piece(1), kStart + 1);
  bench_.Quiet(piece(0));
  bench_.places.clear();
  ExpectSack(bench_.Answer(piece(2)), kStart + 1, 1u << 1);
  ExpectSack(bench_.Answer(piece(1)), kStart + 3, 0);
  ASSERT_EQ(bench_.places.size(), 2u);
  EXPECT_EQ(bench_.places[0].complete, 0);
  EXPECT_EQ(bench_.places[1].complete, 1);
  EXPECT_EQ(bench_.places[1].iova, 0x100040u + kMtu);
  EXPECT_EQ(bench_.places[1].ev.entry.header_data, 77u);
  EXPECT_EQ(bench_.places[1].ev.entry.length, 3u * kMtu);
}

TEST_F(AcceptRudTest, InitiatorErrorWaitsForItsTurnAndEndsTheMessage) {
  Open();
  bench_.AddBuffer(2, 8 * kMtu, 0x1000, 101);
  bench_.Quiet(Piece(kStart + 1, 0, 4));
  rtl::RxPacket failed = Next(kStart + 3, 2 * kMtu, 0, false, 4 * kMtu);
  failed.ie = 1;
  ExpectMissing(failed, kStart + 2);
  bench_.Answer(Piece(kStart + 1, 3, 4));
  bench_.places.clear();
  bench_.Answer(Piece(kStart + 1, 1, 4));
  EXPECT_EQ(Completions(), 0u);
  bench_.places.clear();
  ExpectSack(bench_.Answer(Asking(failed)), kStart + 4, 0);
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
  ExpectAck(bench_.Answer(Asking(Write(kStart + 5))), kStart + 5, 0,
            ReturnCode::kOk);
}

TEST_F(AcceptRudTest, DeliveryCompleteIsNotAcknowledgedBeforeItIsVisible) {
  Open();
  const auto pdc = static_cast<uint8_t>(tpdcid_);
  // Its end is reported: a message of this PDC.
  const auto piece = [&](uint32_t index) {
    rtl::RxPacket pkt = AsWrite(Piece(kStart + 1, index, 3));
    pkt.dc = 1;
    pkt.hd = 1;
    return Asking(pkt);
  };
  bench_.Answer(piece(0));
  const rtl::Response ahead = bench_.Answer(piece(2));
  ExpectSack(ahead, kStart + 1, 1u << 1);
  EXPECT_EQ(ahead.ack_offset, 0);  // Arrived, but not done.
  bench_.Answer(Write(kStart + 5));
  bench_.places.clear();
  bench_.Quiet(piece(1));
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.visible, 1);
  EXPECT_EQ(record.psn, kStart + 3);
  ExpectSack(bench_.Answer(piece(2)), kStart + 2, 5);
  EXPECT_EQ(bench_.responses.back().ack_offset, 0);
  const size_t before = bench_.responses.size();
  bench_.Show(pdc, kStart + 3);
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.responses.size(), before + 1);
  ExpectSack(bench_.responses.back(), kStart + 3, 1u << 1);
}

// An ACK that acknowledges several of them waits for the writes of all.
TEST_F(AcceptRudTest, DeliveryCompleteAheadIsHiddenWhenTheGapCloses) {
  Open();
  const auto pdc = static_cast<uint8_t>(tpdcid_);
  const auto whole = [&](uint32_t psn) {
    rtl::RxPacket pkt = Asking(Write(psn));
    pkt.dc = 1;
    return pkt;
  };
  for (const uint32_t psn : {kStart + 3, kStart + 2, kStart + 7}) {
    const rtl::Response ahead = bench_.Answer(whole(psn));
    EXPECT_EQ(ahead.cack, kStart);
    EXPECT_EQ(ahead.ack_offset, 0);  // Arrived, but not done.
    EXPECT_EQ(bench_.TakeRecord().visible, 0);
  }
  // A packet of another message closes the gap.
  bench_.Quiet(Asking(Write(kStart + 1)));
  rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.visible, 1);
  EXPECT_EQ(record.psn, kStart + 3);
  ExpectSack(bench_.Answer(Asking(Write(kStart + 5))), kStart, 0x57);
  bench_.places.clear();
  bench_.Show(pdc, kStart + 3);
  bench_.RunUntilIdle();
  ExpectSack(bench_.responses.back(), kStart + 3, 0b1010);
  // One of them is still ahead, so each packet may be the one before it.
  bench_.Quiet(Asking(Write(kStart + 4)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.visible, 1);
  EXPECT_EQ(record.psn, kStart + 5);
  bench_.Quiet(Asking(Write(kStart + 6)));
  record = bench_.TakeRecord();
  EXPECT_EQ(record.visible, 1);
  EXPECT_EQ(record.psn, kStart + 7);
  bench_.Show(pdc, kStart + 5);
  bench_.RunUntilIdle();
  ExpectSack(bench_.responses.back(), kStart + 5, 3);
  bench_.Show(pdc, kStart + 7);
  bench_.RunUntilIdle();
  ExpectSack(bench_.responses.back(), kStart + 7, 0);
  ExpectSack(bench_.Answer(Asking(Write(kStart + 8))), kStart + 8, 0);
}

TEST_F(AcceptRudTest, CloseIsTakenInOrderOnly) {
  Open();
  bench_.Answer(Write(kStart + 2));
  ExpectMissing(Control(CpType::kCloseCommand, kStart + 3), kStart + 1);
  ExpectSack(bench_.Answer(Write(kStart + 1)), kStart + 2, 0);
  const rtl::Response rsp =
      bench_.Answer(Control(CpType::kCloseCommand, kStart + 3));
  EXPECT_EQ(rsp.kind, rtl::ResponseKind::kNone);
  EXPECT_EQ(rsp.cc, 1);
  EXPECT_EQ(rsp.cack, kStart + 3);
}

TEST_F(AcceptRudTest, AckRequestsKnowWhatCameAhead) {
  Open();
  bench_.Answer(Write(kStart + 2));
  ExpectSack(bench_.Answer(Control(CpType::kAckRequest, kStart + 2)), kStart,
             1u << 1);
  ExpectNack(bench_.Answer(Control(CpType::kAckRequest, kStart + 1)),
             NackCode::kPktNotRcvd, tpdcid_, kStart + 1);
}

TEST_F(AcceptRudTest, WithoutABufferTheExpectedPacketIsRefused) {
  Open();
  ExpectNack(bench_.Answer(Packet(kStart + 1, 8)), NackCode::kNoPktBuffer,
             tpdcid_, kStart + 1);
  bench_.Quiet(Packet(kStart + 2, 8));
  bench_.AddBuffer(2, 64, 0x9000, 102);
  bench_.AddBuffer(2, 64, 0xa000, 103);
  ExpectSack(bench_.Answer(Packet(kStart + 2, 8)), kStart, 1u << 1);
  ExpectSack(bench_.Answer(Packet(kStart + 1, 8)), kStart + 2, 0);
}

TEST_F(AcceptRudTest, AContextThatIsGoneEndsTheMessageInOrder) {
  Open();
  bench_.AddBuffer(2, 8 * kMtu, 0x1000, 101);
  bench_.Quiet(Piece(kStart + 1, 0, 4));
  bench_.contexts[2].gen = 2;
  ExpectMissing(Piece(kStart + 1, 2, 4), kStart + 2);
  bench_.places.clear();
  for (uint32_t i = 1; i < 4; ++i) {
    bench_.Send(Piece(kStart + 1, i, 4));
  }
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.places.size(), 3u);
  EXPECT_EQ(bench_.places[0].ev.credit, 1);
  EXPECT_EQ(bench_.places[0].ev.write, 0);
  for (const rtl::Place& record : bench_.places) EXPECT_EQ(record.bytes, 0);
  ExpectAck(bench_.Answer(Asking(Write(kStart + 5))), kStart + 5, 0,
            ReturnCode::kOk);
}

TEST_F(AcceptRudTest, OnePacketIsTakenEveryTwoCycles) {
  Open();
  for (uint32_t i = 1; i <= 200; ++i) bench_.Send(Write(kStart + i));
  const uint64_t start = bench_.cycle;
  bench_.RunUntilIdle();
  EXPECT_LE(bench_.cycle - start, 2u * 200 + 10);
  EXPECT_EQ(bench_.places.size(), 200u);
}

}  // namespace
}  // namespace heddle::test
