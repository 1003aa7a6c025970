// SPDX-License-Identifier: Apache-2.0
// Return data of RUD PDCs: what the initiator has is not sent again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/rtl/transport/return_tx_fixture.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

using contract::NackCode;

class ReturnTxRudTest : public ReturnTxTest {
 protected:
  ReturnTxRudTest() { SetReorder(3); }
  void SetReorder(uint8_t reorder) {
    bench_.transport.reorder = reorder;
    bench_.SetConfig();
  }
  void AskRud(uint32_t pdc) {
    Ask(pdc);
    bench_.jobs.back().route.rud = 1;
  }
  // Acknowledges the first `next`, and of those behind it `came`.
  static rtl::AckEvent Sack(uint32_t pdc, uint32_t next,
                            const std::set<uint32_t>& came) {
    rtl::AckEvent ack = Ack(pdc, kReturnStart + next - 1);
    ack.sack = 1;
    ack.sack_base = kReturnStart + next;
    for (const uint32_t number : came) {
      if (number >= next) ack.sack_bitmap |= uint64_t{1} << (number - next);
    }
    return ack;
  }
};

TEST_F(ReturnTxRudTest, OnlyWhatIsMissingIsSentAgainAndOnce) {
  for (int i = 0; i < 10; ++i) AskRud(5);
  bench_.Run(60);
  EXPECT_EQ(Sent(), (Psns{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  bench_.acks.push_back(Sack(5, 2, {3, 4}));
  bench_.Run(40);
  EXPECT_EQ(Sent(), (Psns{})) << "they may only be late";
  bench_.acks.push_back(Sack(5, 2, {3, 4, 6}));
  bench_.Run(40);
  EXPECT_EQ(Sent(), (Psns{2}));
  bench_.acks.push_back(Sack(5, 2, {3, 4, 6, 7, 8, 9}));
  bench_.Run(40);
  EXPECT_EQ(Sent(), (Psns{5}));
  bench_.acks.push_back(Sack(5, 10, {}));
  AskRud(5);
  bench_.Run(40);
  EXPECT_EQ(Sent(), (Psns{10}));
}

TEST_F(ReturnTxRudTest, TrimmedPacketIsRetransmittedAloneEachTime) {
  for (int i = 0; i < 6; ++i) AskRud(5);
  bench_.Run(40);
  Sent();
  for (const NackCode code : {NackCode::kTrimmed, NackCode::kTrimmedLasthop}) {
    bench_.acks.push_back(Nack(5, kReturnStart + 2, code));
    bench_.Run(40);
    EXPECT_EQ(Sent(), (Psns{2}));
  }
  bench_.acks.push_back(Sack(5, 0, {2}));
  bench_.acks.push_back(Nack(5, kReturnStart + 2, NackCode::kTrimmed));
  bench_.Run(40);
  EXPECT_EQ(Sent(), (Psns{})) << "the initiator has it";
}

// The initiator keeps nothing after the gap. A second NACK may be about a
// transmission before the pass, which does not begin again.
TEST_F(ReturnTxRudTest, PacketNotReceivedGoesBackOncePerPass) {
  for (int i = 0; i < 6; ++i) AskRud(5);
  bench_.Run(40);
  Sent();
  bench_.acks.push_back(Sack(5, 2, {4}));
  const rtl::AckEvent nack = Nack(5, kReturnStart + 2, NackCode::kPktNotRcvd);
  bench_.acks.push_back(nack);
  for (int i = 0; i < 40 && bench_.sent.empty(); ++i) bench_.Cycle();
  bench_.acks.push_back(nack);
  bench_.Run(60);
  EXPECT_EQ(Sent(), (Psns{2, 3, 5})) << "of what did not arrive";
}

TEST_F(ReturnTxRudTest, TimeOutSendsWhatDidNotArrive) {
  for (int i = 0; i < 5; ++i) AskRud(5);
  bench_.Run(40);
  Sent();
  bench_.acks.push_back(Sack(5, 0, {1, 3}));
  bench_.ticking = true;
  bench_.Run(600);
  EXPECT_EQ(Sent(), (Psns{0})) << "one at a time";
  bench_.ticking = false;
  bench_.acks.push_back(Sack(5, 2, {3}));
  bench_.Run(40);
  EXPECT_EQ(Sent(), (Psns{2, 4}));
}

TEST_F(ReturnTxRudTest, WindowCountsWhatNeitherArrivedNorIsLost) {
  bench_.config.payload_mtu = 4096;
  bench_.transport.cwnd_bytes = 4 * (4096 + 108);
  bench_.SetConfig();
  for (int i = 0; i < 12; ++i) AskRud(5);
  bench_.Run(100);
  EXPECT_EQ(Sent(), (Psns{0, 1, 2, 3}));
  bench_.acks.push_back(Sack(5, 0, {2, 3}));
  bench_.Run(100);
  EXPECT_EQ(Sent(), (Psns{4, 5}));
  bench_.acks.push_back(Sack(5, 0, {2, 3, 4}));
  bench_.Run(100);
  EXPECT_EQ(Sent(), (Psns{0, 1, 6})) << "lost ones are in flight no more";
}

// Initiators that take what comes in any order, behind a network that loses,
// doubles and reorders; they refuse at times.
TEST_F(ReturnTxRudTest, RandomNetworkDeliversEverythingWithFewRepeats) {
  const uint32_t seed = TestSeed();
  std::mt19937 random(seed);
  const auto chance = [&](uint32_t of) { return random() % of == 0; };
  constexpr uint32_t kEach = 300;
  const std::vector<uint32_t> pdcs = {0, 1, 17, 40, rtl::kNumPdc - 1};
  std::map<uint32_t, uint32_t> next;
  std::map<uint32_t, std::set<uint32_t>> came;
  bench_.config.rto_ticks = 1000;
  bench_.config.rto_max_ticks = 2000;
  bench_.config.dead_ticks = 1000000;
  if (random() % 2 == 0) {
    bench_.config.payload_mtu = 4096;
    bench_.transport.congestion = 1;
    bench_.transport.base_rtt_ns = 2000;
    bench_.transport.cwnd_bytes =
        static_cast<uint32_t>(1 + random() % 40) * (4096 + 108);
  }
  bench_.SetConfig();
  bench_.ticking = true;
  const auto done = [&] {
    return std::all_of(pdcs.begin(), pdcs.end(),
                       [&](uint32_t pdc) { return next[pdc] == kEach; });
  };
  std::vector<rtl::ReturnPacket> wire;
  std::vector<rtl::AckEvent> back;
  for (int cycle = 0; cycle < 900000 && !done(); ++cycle) {
    const uint32_t pdc = pdcs[random() % pdcs.size()];
    if (asked_[pdc] < kEach && bench_.jobs.empty() && bench_.HasRoom(pdc)) {
      AskRud(pdc);
    }
    bench_.stalled = chance(3);
    bench_.Cycle();
    for (const rtl::ReturnPacket& packet : bench_.sent) {
      if (chance(20)) continue;
      wire.push_back(packet);
      if (chance(20)) wire.push_back(packet);
    }
    bench_.sent.clear();
    if (!wire.empty() && chance(2)) {
      const size_t at = chance(8) ? random() % wire.size() : 0;
      const rtl::ReturnPacket packet = wire[at];
      wire.erase(wire.begin() + static_cast<ptrdiff_t>(at));
      const uint32_t number = packet.psn - kReturnStart;
      uint32_t& first = next[packet.pdc];
      std::set<uint32_t>& ahead = came[packet.pdc];
      const bool fresh = number >= first && !ahead.contains(number);
      if (fresh && chance(50)) {
        back.push_back(Nack(packet.pdc, packet.psn, NackCode::kNoResource));
      } else {
        if (fresh) {
          ASSERT_EQ(packet.data, DataOf(packet.pdc, number)) << "seed " << seed;
          ahead.insert(number);
          while (ahead.erase(first) != 0) ++first;
        }
        if (packet.ar != 0 || packet.retx != 0 || !ahead.empty()) {
          rtl::AckEvent ack = Sack(packet.pdc, first, ahead);
          ack.psn = packet.psn;
          ack.retx = packet.retx;
          ack.m = chance(10) ? 1 : 0;
          back.push_back(ack);
        }
      }
    }
    if (!back.empty() && bench_.acks.size() < 4 && chance(2)) {
      const size_t at = chance(8) ? random() % back.size() : 0;
      if (!chance(20)) bench_.acks.push_back(back[at]);
      back.erase(back.begin() + static_cast<ptrdiff_t>(at));
    }
  }
  EXPECT_TRUE(done()) << "seed " << seed;
}

}  // namespace
}  // namespace heddle::test
