// SPDX-License-Identifier: Apache-2.0
// PDCs that are forgotten, closed for others, remembered.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/rtl/transport/accept_fixture.h"

namespace heddle::test {
namespace {

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
  // Ticks until a silent initiator is looked for, 0 while nothing waits for it.
  uint32_t Deadline() {
    bench_.RunUntilIdle();
    return bench_->deadline_valid_o != 0 ? bench_->deadline_o : 0;
  }
  rtl::Response Ask() {
    bench_.AddBuffer(2, 64, 0x1000, 1);
    rtl::RxPacket pkt = Packet(kStart + 1, 8);
    pkt.ar = 1;
    const rtl::Response rsp = bench_.Answer(pkt);
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
  // It may have been executed before.
  ExpectNack(bench_.Answer(Packet(kStart + 2, 8)), NackCode::kClosing, 0,
             kStart + 2);
  // Its set is free too: the same initiator opens another one.
  rtl::RxPacket again = Syn(kStart, 8);
  bench_.AddBuffer(2, 64, 0x1000, 3);
  const rtl::Response opened = bench_.Answer(again);
  EXPECT_EQ(opened.kind, rtl::ResponseKind::kAck);
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
  rtl::RxPacket stranger = Packet(kStart + 1, 8);
  stranger.source_fa_lo ^= 1;
  for (int i = 0; i < 8; ++i) {
    Pass(kDeadTicks / 2);
    bench_.Answer(stranger);
  }
  ExpectNack(bench_.Answer(Packet(kStart + 1, 8)), NackCode::kClosing, 0,
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
  rtl::RxPacket other = Syn(kStart + 4, 8);
  other.psn_offset = 0;
  other.source_fa_lo ^= 1;
  bench_.Answer(other);
  bench_.places.clear();
  Pass(2 * kDeadTicks + 2);
  const rtl::Place record = bench_.TakeRecord();
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
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.stream, 0);
  EXPECT_EQ(record.bytes, 0);
  EXPECT_EQ(record.ev.write, 1);
  EXPECT_EQ(record.ev.credit, 1);
  EXPECT_EQ(record.ev.entry.op_context, 7u);
  EXPECT_EQ(record.ev.entry.length, 4096u);
  EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
  // Its place is free; what comes late is for nobody.
  rtl::RxPacket late = Next(kStart + 2, 4096, 4096, true, 8192);
  ExpectNack(bench_.Answer(late), NackCode::kClosing, 0, kStart + 2);
  bench_.places.clear();
  bench_.AddBuffer(2, 64, 0x1000, 3);
  EXPECT_EQ(bench_.Answer(Syn(kStart, 8)).kind, rtl::ResponseKind::kAck);
}

TEST_F(ForgetTest, OnlyAnOpenMessageHasADeadline) {
  Open();
  EXPECT_EQ(Deadline(), 0u);
  bench_.AddBuffer(2, 8192, 0x1000, 7);
  bench_.Send(First(kStart + 1, 4096, 8192));
  const uint32_t whole = Deadline();
  EXPECT_GE(whole, 1u);
  EXPECT_LE(whole, kDeadTicks);
  Pass(whole - 1);
  EXPECT_EQ(Deadline(), 1u);
  Pass(1);
  EXPECT_EQ(Deadline(), kDeadTicks) << "the next period";
  bench_.Send(Next(kStart + 2, 4096, 4096, true, 8192));
  EXPECT_EQ(Deadline(), 0u);
  bench_.AddBuffer(2, 8192, 0x1000, 8);
  bench_.Send(First(kStart + 3, 4096, 8192));
  EXPECT_NE(Deadline(), 0u);
  Pass(3 * kDeadTicks + 2);
  EXPECT_EQ(Deadline(), 0u) << "its initiator was silent";
}

TEST_F(ForgetTest, OpenMessagesOfTheTableHaveADeadline) {
  type_ = PdsType::kRudReq;
  Open();
  for (uint16_t id = 1; id <= 2; ++id) {
    bench_.AddBuffer(2, 8192, 0x1000 * id, id);
    rtl::RxPacket first = First(kStart + 2U * id, 4096, 8192);
    first.message_id = id;
    bench_.Answer(first);
    EXPECT_NE(Deadline(), 0u);
  }
  for (uint16_t id = 1; id <= 2; ++id) {
    EXPECT_NE(Deadline(), 0u);
    rtl::RxPacket last = Next(kStart + 2U * id + 1, 4096, 4096, true, 8192);
    last.message_id = id;
    bench_.Answer(last);
  }
  EXPECT_EQ(Deadline(), 0u);
}

TEST_F(ForgetTest, InitiatorThatDiesReturnsTheBuffersOfTheTable) {
  type_ = PdsType::kRudReq;
  Open();
  for (uint16_t id = 1; id <= 4; ++id) {
    bench_.AddBuffer(2, 8192, 0x1000 * id, 10U + id);
    rtl::RxPacket first = First(kStart + 2U * id, 4096, 8192);
    first.message_id = id;
    bench_.Answer(first);
  }
  bench_.places.clear();
  Pass(3 * kDeadTicks + 2);
  bench_.RunUntilIdle();
  ASSERT_EQ(bench_.places.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const rtl::Place& record = bench_.places[i];
    EXPECT_EQ(record.complete, 1);
    EXPECT_EQ(record.bytes, 0);
    EXPECT_EQ(record.ev.write, 1);
    EXPECT_EQ(record.ev.credit, 1);
    EXPECT_EQ(record.ev.entry.length, 4096u);
    EXPECT_EQ(record.ev.entry.status, Status::kInitiatorError);
  }
  EXPECT_EQ(bench_.places[0].ev.entry.op_context, 14u);  // Place 0 of four.
  ExpectNack(bench_.Answer(Packet(kStart + 1, 8)), NackCode::kClosing, 0,
             kStart + 1);
  // A PDC of the same index has none of them.
  bench_.AddBuffer(2, 64, 0x9000, 3);
  const rtl::Response opened = bench_.Answer(Syn(kStart, 8));
  EXPECT_EQ(opened.kind, rtl::ResponseKind::kAck);
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
  const rtl::Place record = bench_.TakeRecord();
  EXPECT_EQ(record.complete, 1);
  EXPECT_EQ(record.ev.write, 0);
  EXPECT_EQ(record.ev.credit, 1);
}

TEST_F(ForgetTest, PacketsOfAMessageKeepItsPdc) {
  Open();
  bench_.AddBuffer(2, 65536, 0x1000, 1);
  rtl::RxPacket first = First(kStart + 1, 4096, 32768);
  bench_.Send(first);
  bench_.RunUntilIdle();
  for (uint32_t i = 1; i < 8; ++i) {
    Pass(2 * kDeadTicks - 2);
    rtl::RxPacket next = Next(kStart + 1 + i, 4096 * i, 4096, i == 7, 32768);
    next.ar = 1;
    const rtl::Response rsp = bench_.Answer(next);
    EXPECT_EQ(rsp.kind, rtl::ResponseKind::kAck) << i;
  }
}

TEST_F(ForgetTest, AllPdcsOfInitiatorsThatWentAwayComeBack) {
  for (int generation = 0; generation < 3; ++generation) {
    for (uint16_t i = 0; i < 160; ++i) {
      bench_.AddBuffer(2, 64, 0x1000, i);
      rtl::RxPacket pkt = Syn(kStart, 8);
      pkt.spdcid = static_cast<uint16_t>(0x400 + 256 * generation + i);
      EXPECT_EQ(bench_.Answer(pkt).kind, rtl::ResponseKind::kAck)
          << generation << ' ' << i;
    }
    bench_.places.clear();
    Pass(4 * kDeadTicks);
  }
}

// The table full of PDCs.
class FullTest : public AcceptTest {
 protected:
  rtl::RxPacket SynOf(uint32_t source, uint16_t spdcid) {
    rtl::RxPacket pkt = Syn(kStart, 8);
    pkt.source_fa_lo = 0x0a000002 + source;
    pkt.spdcid = spdcid;
    return pkt;
  }
  // Fails unless every one of them finds room.
  void Fill(uint32_t sources) {
    for (uint32_t i = 0; i < rtl::kNumPdc; ++i) {
      bench_.AddBuffer(2, 64, 0x1000, i);
      const rtl::RxPacket pkt =
          SynOf(i % sources, static_cast<uint16_t>(0x40 + i / sources));
      const rtl::Response rsp = bench_.Answer(pkt);
      ASSERT_EQ(rsp.kind, rtl::ResponseKind::kAck) << i << " of " << sources;
      opened_.push_back(pkt);
      ids_.push_back(rsp.spdcid);
    }
    bench_.places.clear();
  }
  rtl::Response Close(size_t i) {
    rtl::RxPacket close = opened_[i];
    close.syn = 0;
    close.pds_type = PdsType::kCp;
    close.next_hdr = static_cast<uint8_t>(CpType::kCloseCommand);
    close.payload_bytes = 0;
    close.psn = kStart + 1;
    close.dpdcid = ids_[i];
    return bench_.Answer(close);
  }

  std::vector<rtl::RxPacket> opened_;
  std::vector<uint16_t> ids_;
};

TEST_F(FullTest, AllPdcsFindRoomWhateverTheirAddresses) {
  for (const uint32_t sources : {1u, 16u, 256u, 3u}) {
    opened_.clear();
    ids_.clear();
    Fill(sources);
    for (size_t i = 0; i < rtl::kNumPdc; ++i) {
      for (size_t j = i + 1; j < rtl::kNumPdc; ++j) {
        ASSERT_NE(ids_[i] % 256, ids_[j] % 256);
      }
    }
    for (size_t i = 0; i < rtl::kNumPdc; ++i) {
      EXPECT_EQ(Close(i).kind, rtl::ResponseKind::kNone);
    }
  }
  EXPECT_EQ(Count(Statistic::kRxPdcs), 4 * 256);
  EXPECT_EQ(Count(Statistic::kRxRefused), 0);
}

TEST_F(FullTest, OneMoreIsRefusedUntilAnotherIsClosed) {
  Fill(16);
  bench_.AddBuffer(2, 64, 0x1000, 1);
  const rtl::RxPacket late = SynOf(1000, 7);
  const size_t before = bench_.responses.size();
  bench_.Send(late);
  bench_.RunUntilIdle();
  ASSERT_GT(bench_.responses.size(), before);
  const rtl::Response refused = bench_.responses[before];
  EXPECT_EQ(refused.code, static_cast<uint8_t>(NackCode::kNoPdcAvail));
  EXPECT_EQ(refused.spdcid, 0);
  EXPECT_EQ(Close(40).kind, rtl::ResponseKind::kNone);
  const rtl::Response rsp = bench_.Answer(late);
  EXPECT_EQ(rsp.kind, rtl::ResponseKind::kAck);
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
    const rtl::Response& ask = bench_.responses.back();
    EXPECT_EQ(ask.kind, rtl::ResponseKind::kAck);
    EXPECT_EQ(ask.req, contract::AckReq::kClose);
    EXPECT_EQ(ask.cack, kStart);
    const auto at = std::find(ids_.begin(), ids_.end(), ask.spdcid);
    ASSERT_NE(at, ids_.end());
    const auto i = static_cast<size_t>(at - ids_.begin());
    EXPECT_EQ(ask.dpdcid, opened_[i].spdcid);
    EXPECT_EQ(ask.fa_lo, opened_[i].source_fa_lo);
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

// Each PDCID by itself, whatever has the same index now: also those of PDCs
// that were used before, and of none of the others.
TEST_F(FullTest, PdcidThatWasUsedIsClosingAndAnotherUnknown) {
  rtl::RxPacket pkt = Packet(kStart + 1, 8);
  pkt.spdcid = 0xffff;
  std::vector<bool> used(1024);
  const auto expect_all = [&] {
    for (uint16_t id = kTargetRole; id < 1024; ++id) {
      pkt.dpdcid = static_cast<uint16_t>(kSlot << 10 | id);
      if (std::find(ids_.begin(), ids_.end(), pkt.dpdcid) != ids_.end()) {
        continue;
      }
      const rtl::Response rsp = bench_.Answer(pkt);
      ASSERT_EQ(rsp.code, static_cast<uint8_t>(used[id] ? NackCode::kClosing
                                                        : NackCode::kInvDpdcid))
          << id;
      ASSERT_EQ(rsp.spdcid, 0) << id;
    }
  };
  for (int round = 0; round < 3; ++round) {
    expect_all();
    Fill(16);
    expect_all();
    for (size_t i = 0; i < rtl::kNumPdc; ++i) {
      Close(i);
      used[ids_[i] % 1024] = true;
    }
    opened_.clear();
    ids_.clear();
    expect_all();
  }
  EXPECT_EQ(std::count(used.begin(), used.end(), true), 512);
  EXPECT_GT(Count(Statistic::kRxClosing), 0);
  EXPECT_GT(Count(Statistic::kDropPdcid), 0);
}

TEST_F(FullTest, OrderAsksTheInitiatorOfEachPdcOnce) {
  Fill(16);
  EXPECT_EQ(bench_->open_o, 256);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(Close(i).kind, rtl::ResponseKind::kNone);
  }
  EXPECT_EQ(bench_->open_o, 216);
  // One is in the midst of a message, one has an error to tell, which goes
  // first.
  bench_.AddBuffer(2, 8192, 0x1000, 1);
  rtl::RxPacket first = First(kStart + 1, 4096, 8192);
  rtl::RxPacket error = Packet(kStart + 1, 8);
  error.job_id = kJob + 1;
  for (auto& [pkt, i] : {std::pair(&first, 50), {&error, 60}}) {
    pkt->source_fa_lo = opened_[i].source_fa_lo;
    pkt->spdcid = opened_[i].spdcid;
    pkt->dpdcid = ids_[i];
    bench_.Send(*pkt);
    bench_.RunUntilIdle();
  }
  for (int order = 0; order < 2; ++order) {
    bench_.responses.clear();
    bench_->close_i = 1;
    bench_.Cycle();
    bench_->close_i = 0;
    bench_.RunUntilIdle();
    std::vector<int> asked(rtl::kNumPdc);
    for (const rtl::Response& rsp : bench_.responses) {
      EXPECT_EQ(rsp.kind, rtl::ResponseKind::kAck);
      const auto at = std::find(ids_.begin(), ids_.end(), rsp.spdcid);
      ASSERT_NE(at, ids_.end());
      const auto i = static_cast<size_t>(at - ids_.begin());
      ++asked[i];
      EXPECT_EQ(rsp.req,
                i == 60 ? contract::AckReq::kClear : contract::AckReq::kClose)
          << i;
      EXPECT_EQ(rsp.dpdcid, opened_[i].spdcid);
      EXPECT_EQ(rsp.cack, i == 50 ? kStart + 1 : kStart) << i;
    }
    for (size_t i = 0; i < rtl::kNumPdc; ++i) {
      EXPECT_EQ(asked[i], i < 40 ? 0 : 1) << i;
    }
  }
  EXPECT_EQ(bench_->open_o, 216);
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
  rtl::RxPacket late = Syn(kStart, 8);
  late.retx = 1;
  EXPECT_EQ(bench_.Answer(Control(CpType::kCloseCommand, kStart + 1)).kind,
            rtl::ResponseKind::kNone);
  bench_.AddBuffer(2, 64, 0x1000, 1);
  for (uint32_t i = 0; i < kSafetyTicks; ++i) {
    ExpectNack(bench_.Answer(late), NackCode::kClosing, 0, kStart);
    Pass(1);
  }
  EXPECT_EQ(Count(Statistic::kRxClosing), static_cast<int>(kSafetyTicks));
  EXPECT_EQ(Count(Statistic::kRxRequests), 1);
  EXPECT_EQ(bench_.contexts[2].buffers.size(), 1u);
  // The wire has nothing as old as this any more.
  EXPECT_EQ(bench_.Answer(late).kind, rtl::ResponseKind::kAck);
}

TEST_F(TombstoneTest, OtherPdcsOfTheSameInitiatorAreServed) {
  Open();
  bench_.Answer(Control(CpType::kCloseCommand, kStart + 1));
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket restarted = Syn(kStart + 1, 8);
  restarted.psn_offset = 0;
  EXPECT_EQ(bench_.Answer(restarted).kind, rtl::ResponseKind::kAck);
  bench_.AddBuffer(2, 64, 0x1000, 1);
  rtl::RxPacket other = Syn(kStart, 8);
  other.spdcid = 0x12;
  EXPECT_EQ(bench_.Answer(other).kind, rtl::ResponseKind::kAck);
  bench_.AddBuffer(2, 64, 0x1000, 1);
  other = Syn(kStart, 8);
  other.source_fa_lo ^= 1;
  EXPECT_EQ(bench_.Answer(other).kind, rtl::ResponseKind::kAck);
}

TEST_F(TombstoneTest, PdcIsClosedOnlyWhenItsTombstoneHasAPlace) {
  bench_.transport.safety_ticks = 100000;
  bench_.SetConfig();
  uint32_t closed = 0;
  uint32_t put_off = 0;
  rtl::RxPacket close;
  for (uint32_t i = 0; i < 1300 && put_off < 4; ++i) {
    bench_.AddBuffer(2, 64, 0x1000, i);
    rtl::RxPacket pkt = Syn(kStart, 8);
    pkt.spdcid = static_cast<uint16_t>(0x100 + i);
    tpdcid_ = bench_.Answer(pkt).spdcid;
    close = Control(CpType::kCloseCommand, kStart + 1);
    close.spdcid = pkt.spdcid;
    const rtl::Response rsp = bench_.Answer(close);
    if (rsp.kind == rtl::ResponseKind::kNone) {
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
  EXPECT_EQ(bench_.Answer(close).kind, rtl::ResponseKind::kNone);
}

}  // namespace
}  // namespace heddle::test
