// SPDX-License-Identifier: Apache-2.0
// Return data: numbered, sent, sent again, swept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/transport/return_tx_fixture.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

using contract::NackCode;

TEST_F(ReturnTxTest, DataAreNumberedFromTheStartAndSentInOrder) {
  for (int i = 0; i < 3; ++i) Ask(5);
  bench_.Run(20);
  ASSERT_EQ(bench_.sent.size(), 3U);
  for (uint32_t i = 0; i < 3; ++i) {
    const rtl::ReturnPacket& packet = bench_.sent[i];
    EXPECT_EQ(packet.pdc, 5);
    EXPECT_EQ(packet.psn, kReturnStart + i);
    EXPECT_EQ(packet.data, DataOf(5, i));
    EXPECT_EQ(packet.route, RouteOf(5));
    EXPECT_EQ(packet.retx, 0);
    EXPECT_EQ(packet.dead, 0);
    EXPECT_EQ(packet.clear_psn, kReturnStart - 1);
  }
  EXPECT_EQ(bench_.sent[2].ar, 1) << "nothing follows";
}

// Requests of one READ come every two cycles.
TEST_F(ReturnTxTest, DataLeaveBetweenTheRequestsOfTheirPdc) {
  constexpr uint32_t kJobs = 24;
  for (uint32_t i = 0; i < kJobs; ++i) {
    Ask(5);
    bench_.Run(2);
  }
  EXPECT_GE(bench_.sent.size(), kJobs / 3);
  bench_.Run(200);
  ASSERT_EQ(bench_.sent.size(), kJobs);
  for (uint32_t i = 0; i < kJobs; ++i) {
    EXPECT_EQ(bench_.sent[i].psn, kReturnStart + i);
    EXPECT_EQ(bench_.sent[i].data, DataOf(5, i));
  }
}

TEST_F(ReturnTxTest, NothingLeavesWhileTheFrameBuilderHasEnough) {
  bench_.paused = true;
  for (int i = 0; i < 3; ++i) Ask(5);
  bench_.Run(20);
  EXPECT_EQ(bench_.sent.size(), 0U);
  bench_.paused = false;
  bench_.Run(20);
  EXPECT_EQ(Sent(), (Psns{0, 1, 2}));
}

TEST_F(ReturnTxTest, AckReleasesAndClearsWhatItCovers) {
  for (int i = 0; i < 3; ++i) Ask(5);
  bench_.Run(20);
  bench_.acks.push_back(Ack(5, kReturnStart + 2));
  bench_.Run(10);
  bench_.sent.clear();
  Ask(5);
  bench_.Run(20);
  ASSERT_EQ(bench_.sent.size(), 1U);
  EXPECT_EQ(bench_.sent[0].psn, kReturnStart + 3);
  EXPECT_EQ(bench_.sent[0].clear_psn, kReturnStart + 2);
}

TEST_F(ReturnTxTest, RoomEndsBeforeTheRecordsDoAndComesBack) {
  uint32_t asked = 0;
  while (bench_.HasRoom(1) && asked < 100) {
    Ask(1);
    ++asked;
    bench_.Run(6);
  }
  EXPECT_LT(asked, rtl::kReturnWindow);
  EXPECT_GE(asked, 24U) << "an initiator of ours has so many due";
  EXPECT_TRUE(bench_.HasRoom(2));
  bench_.acks.push_back(Ack(1, kReturnStart + asked - 1));
  bench_.Run(10);
  EXPECT_TRUE(bench_.HasRoom(1));
}

TEST_F(ReturnTxTest, GapIsSentAgainOnce) {
  for (int i = 0; i < 6; ++i) Ask(5);
  bench_.Run(30);
  EXPECT_EQ(Sent(), (Psns{0, 1, 2, 3, 4, 5}));
  bench_.acks.push_back(Ack(5, kReturnStart + 1));
  bench_.acks.push_back(Nack(5, kReturnStart + 3, NackCode::kRodOoo));
  bench_.Run(30);
  for (const rtl::ReturnPacket& packet : bench_.sent) EXPECT_EQ(packet.retx, 1);
  EXPECT_EQ(Sent(), (Psns{2, 3, 4, 5}));
}

// The initiator has what follows (PKT_NOT_RCVD); after ROD_OOO it may not.
TEST_F(ReturnTxTest, PacketThatIsMissingAloneIsRetransmittedAlone) {
  for (int i = 0; i < 9; ++i) Ask(5);
  bench_.Run(40);
  Sent();
  bench_.acks.push_back(Nack(5, kReturnStart + 3, NackCode::kPktNotRcvd));
  bench_.acks.push_back(Nack(5, kReturnStart + 6, NackCode::kPktNotRcvd));
  bench_.Run(40);
  EXPECT_EQ(Sent(), (Psns{3, 6}));
  bench_.acks.push_back(Ack(5, kReturnStart + 4));
  bench_.acks.push_back(Nack(5, kReturnStart + 7, NackCode::kPktNotRcvd));
  bench_.Run(40);
  EXPECT_EQ(Sent(), (Psns{7}));
  Ask(5);
  bench_.Run(20);
  EXPECT_EQ(Sent(), (Psns{9}));
  bench_.acks.push_back(Nack(5, kReturnStart + 7, NackCode::kRodOoo));
  bench_.Run(40);
  EXPECT_EQ(Sent(), (Psns{5, 6, 7, 8, 9}));
}

// UET 3.4. Each NACK is about one transmission, so a second one goes back too.
TEST_F(ReturnTxTest, TrimmedPacketGoesBackAtOnceEachTime) {
  for (int i = 0; i < 6; ++i) Ask(5);
  bench_.Run(30);
  Sent();
  bench_.acks.push_back(Ack(5, kReturnStart + 1));
  for (const NackCode code : {NackCode::kTrimmed, NackCode::kTrimmedLasthop}) {
    bench_.acks.push_back(Nack(5, kReturnStart + 2, code));
    bench_.Run(30);
    EXPECT_EQ(Sent(), (Psns{2, 3, 4, 5}));
  }
  // The initiator has it: the NACK is old.
  bench_.acks.push_back(Ack(5, kReturnStart + 5));
  bench_.acks.push_back(Nack(5, kReturnStart + 2, NackCode::kTrimmed));
  bench_.Run(30);
  EXPECT_EQ(Sent(), (Psns{}));
}

TEST_F(ReturnTxTest, SilenceSendsOneAgainAndAgainUntilTheInitiatorIsDead) {
  for (int i = 0; i < 4; ++i) Ask(5);
  bench_.Run(30);
  Sent();
  bench_.ticking = true;
  bench_.Run(600);
  EXPECT_EQ(Sent(), (Psns{0})) << "one packet at a time after a time-out";
  bench_.Run(900);
  EXPECT_EQ(Sent(), (Psns{0})) << "the time-out doubles";
  bench_.Run(25000);
  bench_.sent.clear();
  bench_.Run(5000);
  EXPECT_TRUE(bench_.sent.empty()) << "sent to a dead initiator";
  EXPECT_TRUE(bench_.HasRoom(5));
  bench_.Run(300);
  EXPECT_TRUE(bench_.idle());
}

TEST_F(ReturnTxTest, LateAckSkipsWhatItCovers) {
  for (int i = 0; i < 4; ++i) Ask(5);
  bench_.Run(30);
  Sent();
  bench_.ticking = true;
  bench_.Run(600);
  EXPECT_EQ(Sent(), (Psns{0}));
  bench_.ticking = false;
  bench_.acks.push_back(Ack(5, kReturnStart + 2));
  bench_.Run(30);
  EXPECT_EQ(Sent(), (Psns{3}));
}

TEST_F(ReturnTxTest, RefusalWaitsAndThenGoesOneByOne) {
  for (int i = 0; i < 4; ++i) Ask(5);
  bench_.Run(30);
  Sent();
  bench_.acks.push_back(Nack(5, kReturnStart + 1, NackCode::kNoResource));
  bench_.Run(20);
  EXPECT_TRUE(bench_.sent.empty()) << "sent during the back-off";
  bench_.ticking = true;
  bench_.Run(300);
  EXPECT_EQ(Sent(), (Psns{0}));
  bench_.acks.push_back(Ack(5, kReturnStart));
  bench_.Run(20);
  EXPECT_EQ(Sent(), (Psns{1, 2, 3}));
}

TEST_F(ReturnTxTest, StrangersAndOldNewsChangeNothing) {
  for (int i = 0; i < 4; ++i) Ask(5);
  bench_.Run(30);
  Sent();
  rtl::AckEvent other = Ack(5, kReturnStart + 3);
  other.fa_lo ^= 1;
  bench_.acks.push_back(other);
  other = Ack(5, kReturnStart + 3);
  other.spdcid ^= 1;
  bench_.acks.push_back(other);
  other = Ack(5, kReturnStart + 3);
  other.dpdcid ^= 1 << 9;
  bench_.acks.push_back(other);
  bench_.acks.push_back(Ack(5, kReturnStart + 4));  // Never sent.
  bench_.acks.push_back(Ack(5, kReturnStart - 2));
  bench_.acks.push_back(Ack(6, kReturnStart + 3));  // Not open.
  bench_.acks.push_back(Nack(5, kReturnStart + 4, NackCode::kRodOoo));
  bench_.acks.push_back(Nack(5, kReturnStart - 1, NackCode::kPdcHdrMismatch));
  bench_.Run(30);
  EXPECT_TRUE(bench_.sent.empty());
  bench_.ticking = true;
  bench_.Run(600);
  EXPECT_EQ(Sent(), (Psns{0})) << "something was released or forgotten";
}

TEST_F(ReturnTxTest, FatalNackAndCloseForgetThePdc) {
  for (const bool close : {false, true}) {
    const uint32_t pdc = close ? 7 : 8;
    for (int i = 0; i < 4; ++i) Ask(pdc);
    bench_.Run(30);
    Sent();
    if (close) {
      bench_.jobs.push_back({.close = 1, .pdc = static_cast<uint8_t>(pdc)});
    } else {
      bench_.acks.push_back(Nack(pdc, kReturnStart, NackCode::kInvDpdcid));
    }
    bench_.ticking = true;
    bench_.Run(1500);
    EXPECT_TRUE(bench_.sent.empty());
    EXPECT_TRUE(bench_.HasRoom(pdc));
    // The index serves another PDC, with its own numbers.
    asked_[pdc] = 0;
    bench_.ticking = false;
    Ask(pdc);
    bench_.Run(20);
    EXPECT_EQ(Sent(), (Psns{0}));
    bench_.acks.push_back(Ack(pdc, kReturnStart));
    bench_.Run(10);
  }
}

TEST_F(ReturnTxTest, BusyPdcDelaysNoOther) {
  for (int i = 0; i < 4; ++i) Ask(5);
  bench_.Run(30);
  Sent();
  bench_.acks.push_back(Nack(5, kReturnStart, NackCode::kNoResource));
  Ask(6);
  bench_.Run(20);
  ASSERT_EQ(bench_.sent.size(), 1U);
  EXPECT_EQ(bench_.sent[0].pdc, 6);
}

TEST_F(ReturnTxTest, SweptRecordsAreNeverReadAgain) {
  for (int i = 0; i < 10; ++i) {
    Ask(5);
    Ask(60);
  }
  bench_.Run(80);
  ASSERT_EQ(bench_.sent.size(), 20U);
  bench_.Sweep(3);
  bench_.sent.clear();
  bench_.acks.push_back(Nack(5, kReturnStart, NackCode::kRodOoo));
  bench_.acks.push_back(Nack(60, kReturnStart, NackCode::kRodOoo));
  bench_.Run(80);
  ASSERT_EQ(bench_.sent.size(), 20U);
  for (const rtl::ReturnPacket& packet : bench_.sent) {
    EXPECT_EQ(packet.dead, packet.data.region == 3 ? 1 : 0);
  }
  // New data of a region that took its place are not touched by it.
  asked_[5] = 13;
  Ask(5);
  bench_.sent.clear();
  bench_.Run(20);
  ASSERT_EQ(bench_.sent.size(), 1U);
  EXPECT_EQ(bench_.sent[0].data.region, 3);
  EXPECT_EQ(bench_.sent[0].dead, 0);
}

TEST_F(ReturnTxTest, AReadThatIsReportedWaitsForItsLastDataOnly) {
  Ask(5);
  Ask(5);
  const rtl::ReadReport report = {
      .ctx = 3, .credit = 1, .initiator = 9, .bytes = 7};
  bench_.jobs.back().tell = 1;
  bench_.jobs.back().report = report;
  Ask(5);
  bench_.Run(30);
  const rtl::ReadWait wanted = {.pdc = 5,
                                .psn = kReturnStart + 1,
                                .fa_lo = RouteOf(5).fa_lo,
                                .read = report};
  ASSERT_EQ(bench_.waits.size(), 1U);
  EXPECT_EQ(bench_.waits[0], wanted);
  EXPECT_TRUE(bench_.overs.empty());
  // A duplicate and a stranger's say nothing.
  bench_.acks.push_back(Ack(5, kReturnStart + 1));
  bench_.acks.push_back(Ack(5, kReturnStart + 1));
  bench_.acks.push_back(Ack(6, kReturnStart + 1));
  bench_.Run(10);
  ASSERT_EQ(bench_.overs.size(), 1U);
  EXPECT_EQ(bench_.overs[0].pdc, 5);
  EXPECT_EQ(bench_.overs[0].psn, kReturnStart + 2);
  EXPECT_EQ(bench_.overs[0].gone, 0);
}

TEST_F(ReturnTxTest, EndOfThePdcEndsWhatWaitsForAReport) {
  for (const int how : {0, 1, 2}) {
    const uint32_t pdc = 10 + static_cast<uint32_t>(how);
    bench_.overs.clear();
    Ask(pdc);
    bench_.Run(20);
    if (how == 0) {
      bench_.jobs.push_back({.close = 1, .pdc = static_cast<uint8_t>(pdc)});
    } else if (how == 1) {
      bench_.jobs.push_back(
          {.close = 1, .lost = 1, .pdc = static_cast<uint8_t>(pdc)});
    } else {
      bench_.acks.push_back(Nack(pdc, kReturnStart, NackCode::kInvDpdcid));
    }
    bench_.Run(20);
    ASSERT_EQ(bench_.overs.size(), 1U);
    EXPECT_EQ(bench_.overs[0].pdc, pdc);
    EXPECT_EQ(bench_.overs[0].gone, 1);
    EXPECT_EQ(bench_.overs[0].lost, how == 0 ? 0 : 1);
  }
  // What is still asked for is lost as it comes.
  Ask(12);
  bench_.jobs.back().tell = 1;
  bench_.Run(20);
  ASSERT_EQ(bench_.waits.size(), 1U);
  EXPECT_EQ(bench_.waits[0].lost, 1);
}

TEST_F(ReturnTxTest, IdleAndDeadlineFollowTheTimers) {
  bench_.Run(2 * static_cast<int>(rtl::kNumPdc) + 8);
  EXPECT_TRUE(bench_.idle());
  EXPECT_EQ(bench_.deadline(), 0U);
  Ask(5);
  bench_.Run(3 * static_cast<int>(rtl::kNumPdc));
  EXPECT_TRUE(bench_.idle()) << "waits for an answer only";
  EXPECT_EQ(bench_.deadline(), bench_.config.rto_ticks);
  bench_.acks.push_back(Ack(5, kReturnStart));
  bench_.Run(3 * static_cast<int>(rtl::kNumPdc));
  EXPECT_TRUE(bench_.idle());
  EXPECT_EQ(bench_.deadline(), 0U);
}

// Initiators that accept in order, behind a network that loses, doubles and
// reorders; refuse at times; and tell nobody of what they got.
TEST_F(ReturnTxTest, RandomNetworkDeliversEverythingOnceInOrder) {
  const uint32_t seed = TestSeed();
  std::mt19937 random(seed);
  const auto chance = [&](uint32_t of) { return random() % of == 0; };
  constexpr uint32_t kEach = 150;
  const std::vector<uint32_t> pdcs = {0, 1, 17, 40, rtl::kNumPdc - 1};
  std::map<uint32_t, uint32_t> expected;
  std::map<uint32_t, bool> gap;
  std::vector<rtl::AckEvent> back;  // On their way to the target.
  bench_.config.rto_ticks = 300;
  bench_.config.rto_max_ticks = 600;
  bench_.config.dead_ticks = 1000000;
  bench_.SetConfig();
  bench_.ticking = true;
  const auto done = [&] {
    return std::all_of(pdcs.begin(), pdcs.end(),
                       [&](uint32_t pdc) { return expected[pdc] == kEach; });
  };
  std::vector<rtl::ReturnPacket> wire;
  for (int cycle = 0; cycle < 600000 && !done(); ++cycle) {
    const uint32_t pdc = pdcs[random() % pdcs.size()];
    if (asked_[pdc] < kEach && bench_.jobs.empty() && bench_.HasRoom(pdc)) {
      Ask(pdc);
    }
    bench_.stalled = chance(3);
    bench_.Cycle();
    for (const rtl::ReturnPacket& packet : bench_.sent) {
      if (chance(10)) continue;
      wire.push_back(packet);
      if (chance(10)) wire.push_back(packet);
    }
    bench_.sent.clear();
    if (!wire.empty() && chance(2)) {
      const size_t at = chance(8) ? random() % wire.size() : 0;
      const rtl::ReturnPacket packet = wire[at];
      wire.erase(wire.begin() + static_cast<ptrdiff_t>(at));
      uint32_t& next = expected[packet.pdc];
      const uint32_t number = packet.psn - kReturnStart;
      if (number == next && chance(20)) {
        back.push_back(Nack(packet.pdc, packet.psn, NackCode::kNoResource));
        gap[packet.pdc] = true;
      } else if (number == next) {
        ASSERT_EQ(packet.data, DataOf(packet.pdc, number)) << "seed " << seed;
        ++next;
        gap[packet.pdc] = false;
        if (packet.ar != 0 || packet.retx != 0) {
          back.push_back(Ack(packet.pdc, packet.psn));
        }
      } else if (static_cast<int32_t>(number - next) < 0) {
        back.push_back(Ack(packet.pdc, kReturnStart + next - 1));
      } else if (!gap[packet.pdc] || packet.retx != 0) {
        back.push_back(Nack(packet.pdc, packet.psn, NackCode::kRodOoo));
        gap[packet.pdc] = true;
      }
    }
    if (!back.empty() && bench_.acks.size() < 4 && chance(2)) {
      const size_t at = chance(8) ? random() % back.size() : 0;
      if (!chance(10)) bench_.acks.push_back(back[at]);
      back.erase(back.begin() + static_cast<ptrdiff_t>(at));
    }
  }
  EXPECT_TRUE(done()) << "seed " << seed;
}

}  // namespace
}  // namespace heddle::test
