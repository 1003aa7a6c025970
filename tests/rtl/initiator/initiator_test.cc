// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <utility>

#include "gtest/gtest.h"
#include "rtl/records.h"
#include "tests/rtl/initiator/initiator_bench.h"
#include "tests/seed.h"

namespace heddle {
namespace {

using contract::NackCode;
using contract::ReturnCode;
using contract::Status;

void ExpectNothingBroken(const InitiatorBench& bench) {
  for (const std::string& error : bench.errors) {
    ADD_FAILURE() << error;
  }
}

void ExpectEachDoneOnce(const InitiatorBench& bench, Status status) {
  for (size_t i = 0; i < bench.messages.size(); ++i) {
    EXPECT_EQ(bench.messages[i].completions, 1) << "message " << i;
    EXPECT_EQ(bench.messages[i].status, status) << "message " << i;
  }
}

// Of both modes, ROD and RUD.
class InitiatorModeTest : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(, InitiatorModeTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& mode) {
                           return mode.param ? "Rud" : "Rod";
                         });

TEST_P(InitiatorModeTest,
       MessageOfEverySizeEndsAfterItsLastPacketIsAcknowledged) {
  InitiatorBench bench(1);
  bench.rud = GetParam();
  for (const uint32_t length : {0U, 1U, 1024U, 1025U, 5000U, 200000U}) {
    bench.Post(7, length);
  }
  ASSERT_TRUE(bench.Run(20000));
  ExpectEachDoneOnce(bench, Status::kOk);
  EXPECT_EQ(bench.retransmissions_seen, 0U);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, SmallMessagesToOnePeerPassAtLessThanThreeCyclesEach) {
  InitiatorBench bench(1);
  bench.ready = 1;
  for (int i = 0; i < 3000; ++i) {
    bench.Post(7, 8);
  }
  const uint64_t start = bench.cycle;
  ASSERT_TRUE(bench.Run(20000));
  EXPECT_LT(bench.cycle - start, 7500U);
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest, NothingLeavesWhileTheFrameBuilderHasEnough) {
  InitiatorBench bench(1);
  bench.rud = GetParam();
  bench.ready = 1;
  for (uint32_t peer = 1; peer <= 3; ++peer) {
    bench.Post(peer, 200000);
  }
  while (bench.packets_seen < 50) {
    bench.Cycle();
  }
  bench->pause_i = 1;
  for (int i = 0; i < 10; ++i) {
    bench.Cycle();
  }
  const uint64_t before = bench.packets_seen;
  EXPECT_LE(before, 54U) << "those that were chosen already";
  for (int i = 0; i < 100; ++i) {
    bench.Cycle();
  }
  EXPECT_EQ(bench.packets_seen, before);
  bench->pause_i = 0;
  ASSERT_TRUE(bench.Run(20000));
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

// UET 2.14. An unordered target keeps 64 packets, whatever it states.
TEST_P(InitiatorModeTest, WindowIsWhatTheTargetStates) {
  const std::map<uint8_t, uint32_t> windows = {
      {0, 128}, {1, 128}, {2, 256}, {3, 384}, {4, 512}, {8, 512}, {255, 512}};
  for (const auto& [range, window] : windows) {
    InitiatorBench bench(1);
    bench.rud = GetParam();
    bench.ready = 1;
    bench.tick_cycles = 1000;  // No time-out.
    bench.targets[7].mp_range = range;
    bench.Post(7, 8);
    ASSERT_TRUE(bench.Run(1000));
    bench.targets[7].silent = true;
    const uint64_t before = bench.packets_seen;
    for (uint32_t i = 0; i < 600; ++i) {
      bench.Post(7, 8);
    }
    for (int i = 0; i < 4000; ++i) {
      bench.Cycle();
    }
    // RUD: four PDCs of 64.
    EXPECT_EQ(bench.packets_seen - before, bench.rud ? 256U : window) << +range;
    EXPECT_EQ(bench.retransmissions_seen, 0U);
    bench.targets[7].silent = false;
    bench.tick_cycles = 16;
    ASSERT_TRUE(bench.Run(40000)) << +range;
    ExpectEachDoneOnce(bench, Status::kOk);
    ExpectNothingBroken(bench);
  }
}

TEST_P(InitiatorModeTest, NothingIsLostOrDoubledOnALossyNetwork) {
  const uint32_t seed = TestSeed();
  InitiatorBench bench(seed);
  bench.rud = GetParam();
  bench.network = {
      .loss = 0.02, .duplicate = 0.02, .reorder = 0.02, .delay_cycles = 30};
  for (uint8_t peer = 1; peer <= 9; ++peer) {
    bench.targets[peer].mp_range = peer % 5;
    bench.targets[peer].reorders = peer % 2 == 0;
  }
  std::mt19937 rng(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto below = [&rng](uint32_t limit) {
      return static_cast<uint32_t>(rng() % limit);
    };
    bench.Post(1 + below(9), below(8) == 0 ? below(30000) : below(64));
  }
  ASSERT_TRUE(bench.Run(4000000));
  ExpectEachDoneOnce(bench, Status::kOk);
  EXPECT_GT(bench.retransmissions_seen, 0U);
  ExpectNothingBroken(bench);
}

// A target that keeps what follows a gap (heddle_rx_reorder).
TEST(InitiatorTest, OrderedPacketThatIsMissingAloneIsRetransmittedAlone) {
  struct Case {
    std::set<uint64_t> lost;
    uint64_t retransmissions;
  };
  for (const Case& c : {Case{{20}, 1}, Case{{20, 22}, 2}, Case{{20, 45}, 2},
                        Case{{20, 25, 30, 35, 40}, 5}}) {
    InitiatorBench bench(1);
    bench.ready = 1;
    bench.network.delay_cycles = 100;
    bench.tick_cycles = 1000;  // No time-out.
    bench.targets[5].reorders = true;
    bench.targets[5].mp_range = 4;
    bench.lose = c.lost;
    for (int i = 0; i < 20; ++i) {
      bench.Post(5, 10 * 1024);
    }
    ASSERT_TRUE(bench.Run(20000)) << *c.lost.rbegin();
    ExpectEachDoneOnce(bench, Status::kOk);
    EXPECT_EQ(bench.retransmissions_seen, c.retransmissions)
        << *c.lost.rbegin();
    EXPECT_EQ(bench.timeouts_seen, 0U);
    ExpectNothingBroken(bench);
  }
}

// It goes back for two, and for one whose retransmission is lost as well.
TEST(InitiatorTest, OrderedPacketsThatAreMissingTogetherAreRetransmitted) {
  InitiatorBench bench(1);
  bench.ready = 1;
  bench.network.delay_cycles = 100;
  bench.targets[5].reorders = true;
  bench.targets[5].mp_range = 4;
  bench.lose = {20, 21};
  for (int i = 0; i < 20; ++i) {
    bench.Post(5, 10 * 1024);
  }
  ASSERT_TRUE(bench.Run(40000));
  ExpectEachDoneOnce(bench, Status::kOk);
  EXPECT_GE(bench.retransmissions_seen, 2U);
  EXPECT_EQ(bench.timeouts_seen, 0U);
  ExpectNothingBroken(bench);
}

// Over the ends of both signed halves; at each distance of the first packet.
TEST_P(InitiatorModeTest, WindowOfSequenceNumbersWraps) {
  for (const uint32_t end : {0U, 0x80000000U}) {
    for (uint32_t before = 1; before <= 130; before += 3) {
      InitiatorBench bench(before);
      bench.pdc_seed = (end - before) ^ 1;
      bench.rud = GetParam();
      bench.network = {
          .loss = 0.05, .duplicate = 0.05, .reorder = 0.1, .delay_cycles = 30};
      bench.targets[5].reorders = before % 2 == 0;
      for (int i = 0; i < 40; ++i) {
        bench.Post(5, i % 4 == 0 ? 6 * 1024 : 8, /*read=*/i % 5 == 0);
      }
      ASSERT_TRUE(bench.Run(200000)) << end << ' ' << before;
      ExpectEachDoneOnce(bench, Status::kOk);
      ExpectNothingBroken(bench);
      if (end == 0 && before < 80) {
        EXPECT_GE(bench.wraps_seen, 1U) << before;
      }
    }
  }
}

TEST_P(InitiatorModeTest, RefusedPeerIsRetriedAndDelaysNobodyElse) {
  InitiatorBench bench(2);
  bench.rud = GetParam();
  bench.targets[1].refuses = true;
  for (int i = 0; i < 100; ++i) {
    for (uint32_t peer = 1; peer <= 8; ++peer) {
      bench.Post(peer, 8);
    }
  }
  for (int i = 0; i < 6000; ++i) {
    bench.Cycle();
  }
  for (const PostedMessage& m : bench.messages) {
    EXPECT_EQ(m.completions, m.peer == 1 ? 0 : 1);
  }
  // While refused, the peer is asked one packet at a time, ever more rarely.
  const uint64_t before = bench.packets_to[1];
  for (int i = 0; i < 16 * 16 * 10; ++i) {
    bench.Cycle();
  }
  EXPECT_GE(bench.packets_to[1] - before, 8U);
  EXPECT_LE(bench.packets_to[1] - before, 14U);
  bench.targets[1].refuses = false;
  ASSERT_TRUE(bench.Run(100000));
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest, RefusalNeverCountsAsADeadPeer) {
  InitiatorBench bench(2);
  bench.rud = GetParam();
  bench.targets[1].refuses = true;
  bench.Post(1, 8);
  for (int i = 0; i < 16 * 3000; ++i) {  // Three times dead_ticks.
    bench.Cycle();
  }
  EXPECT_EQ(bench.messages[0].completions, 0);
  bench.targets[1].refuses = false;
  ASSERT_TRUE(bench.Run(100000));
  ExpectEachDoneOnce(bench, Status::kOk);
}

TEST_P(InitiatorModeTest, SilentPeerEndsInAnErrorAfterDeadTimeAndOthersGoOn) {
  InitiatorBench bench(4);
  bench.rud = GetParam();
  bench.targets[1].silent = true;
  for (int i = 0; i < 20; ++i) {
    bench.Post(1, 5000);
  }
  bench.Post(2, 100);
  const uint64_t start = bench.cycle;
  ASSERT_TRUE(bench.Run(16 * 2000));
  EXPECT_GT(bench.cycle - start, 16U * 1000);
  for (const PostedMessage& m : bench.messages) {
    EXPECT_EQ(m.completions, 1);
    EXPECT_EQ(m.status, m.peer == 1 ? Status::kPeerUnreachable : Status::kOk);
  }
  // The peer comes back: a new PDC reaches it.
  bench.targets[1].silent = false;
  bench.Post(1, 5000);
  ASSERT_TRUE(bench.Run(10000));
  EXPECT_EQ(bench.messages.back().status, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, IdleTimeIsNotSilence) {
  InitiatorBench bench(4);
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(10000));
  for (int i = 0; i < 16 * 1500; ++i) {  // Longer than dead_ticks.
    bench.Cycle();
  }
  bench.network.loss = 1;
  bench.Post(1, 8);
  for (int i = 0; i < 16 * 100; ++i) {
    bench.Cycle();
  }
  EXPECT_EQ(bench.messages.back().completions, 0) << "dead too early";
  bench.network.loss = 0;
  ASSERT_TRUE(bench.Run(16 * 1000));
  ExpectEachDoneOnce(bench, Status::kOk);
}

void Pass(InitiatorBench& bench, uint64_t ticks) {
  for (uint64_t i = 0; i < ticks * bench.tick_cycles; ++i) {
    bench.Cycle();
  }
}

TEST(InitiatorTest, EveryPeerFindsAPdcUntilAllAreTaken) {
  InitiatorBench bench(4);
  for (uint32_t peer = 1; peer <= 256; ++peer) {
    bench.Post(peer, 8);
  }
  ASSERT_TRUE(bench.Run(20000));
  EXPECT_EQ(bench.opened, 256U);
  EXPECT_EQ(bench.closes_seen, 0U) << "there was room for all";
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, IdlePdcsMakeRoomForOtherPeers) {
  InitiatorBench bench(4);
  for (uint32_t peer = 1; peer <= 300; ++peer) {
    bench.Post(peer, 8);
  }
  ASSERT_TRUE(bench.Run(40000));
  EXPECT_EQ(bench.opened, 300U);
  EXPECT_GE(bench.closes, 44U);
  EXPECT_LE(bench.closes, 44U + 16U) << "more closed than were needed";
  for (uint32_t peer = 1; peer <= 300; ++peer) {
    bench.Post(peer, 8);
  }
  ASSERT_TRUE(bench.Run(100000));
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, ThePdcsInUseStayWhenIdleOnesMakeRoom) {
  InitiatorBench bench(4);
  for (uint32_t peer = 1; peer <= 256; ++peer) {
    bench.Post(peer, 8);
  }
  ASSERT_TRUE(bench.Run(20000));
  // Peers 1 to 8 talk all the time; 20 others come one after another.
  for (uint32_t round = 0; round < 20; ++round) {
    for (uint32_t peer = 1; peer <= 8; ++peer) {
      bench.Post(peer, 8);
    }
    bench.Post(1000 + round, 8);
    ASSERT_TRUE(bench.Run(20000));
  }
  EXPECT_EQ(bench.opened, 256U + 20U) << "a busy peer lost its PDC";
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, PeerWithoutAPdcDelaysNobodyThatHasOne) {
  InitiatorBench bench(2);
  for (uint32_t peer = 1; peer <= 256; ++peer) {
    bench.targets[peer].silent = peer != 7;  // So that nothing is idle.
    bench.Post(peer, 8);
  }
  Pass(bench, 20);
  const size_t first = bench.messages.size();
  // Peer 7 always has something, so that its PDC cannot make room.
  for (int i = 0; i < 20; ++i) {
    bench.Post(7, 8);
  }
  for (int i = 0; i < 150; ++i) {
    bench.Post(7, 8);
    bench.Post(300, 8);
  }
  size_t passed = 0;  // Of peer 7, while peer 300 waited.
  while (bench.messages[first + 21].completions == 0) {
    ASSERT_LT(bench.cycle, 16U * 900) << "the silent ones are dead";
    bench.Cycle();
  }
  for (size_t i = first; i < bench.messages.size(); ++i) {
    passed += bench.messages[i].peer == 7 && bench.messages[i].completions;
  }
  EXPECT_GE(passed, 140U) << "held up by messages that wait for a PDC";
  for (uint32_t peer = 1; peer <= 256; ++peer) {
    bench.targets[peer].silent = false;
  }
  ASSERT_TRUE(bench.Run(200000));
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest,
       MessagesToMorePeersThanPdcsAreExactlyOnceOnALossyNetwork) {
  const uint32_t seed = TestSeed();
  InitiatorBench bench(seed);
  bench.rud = GetParam();
  bench.network = {
      .loss = 0.03, .duplicate = 0.03, .reorder = 0.03, .delay_cycles = 30};
  bench.safety_ticks = 50;
  std::mt19937 rng(seed);
  const auto below = [&rng](uint32_t limit) {
    return static_cast<uint32_t>(rng() % limit);
  };
  for (int i = 0; i < 4000; ++i) {
    bench.Post(1 + below(400), below(8) == 0 ? below(9000) : below(64));
  }
  ASSERT_TRUE(bench.Run(8000000));
  ExpectEachDoneOnce(bench, Status::kOk);
  EXPECT_GT(bench.closes, 100U);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, PdcidIsNotUsedAgainWithinTheSafetyTime) {
  InitiatorBench bench(4);
  bench.safety_ticks = 400;
  bench.idle_ticks = 2;
  // Each round opens and closes 256 PDCs; there are two PDCIDs for each.
  const uint64_t start = bench.cycle;
  for (uint32_t round = 0; round < 4; ++round) {
    for (uint32_t peer = 1; peer <= 256; ++peer) {
      bench.Post(1000 * round + peer, 8);
    }
    ASSERT_TRUE(bench.Run(200000)) << "round " << round;
    Pass(bench, 40);
  }
  EXPECT_GT(bench.cycle - start, 400U * bench.tick_cycles)
      << "the last rounds need PDCIDs of the first";
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest, IdlePdcIsClosedAfterIdleTicksAndNotBefore) {
  InitiatorBench bench(4);
  bench.rud = GetParam();
  bench.idle_ticks = 100;
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(10000));
  Pass(bench, 95);
  EXPECT_EQ(bench.closes, 0U);
  Pass(bench, 20);
  EXPECT_EQ(bench.closes, 1U);
  EXPECT_EQ(bench.known_pdcs(), 0U);
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(10000));
  EXPECT_EQ(bench.opened, 2U);
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, WithoutIdleTicksPdcsStay) {
  InitiatorBench bench(4);
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(10000));
  Pass(bench, 3000);
  EXPECT_EQ(bench.closes_seen, 0U);
}

TEST(InitiatorTest, CloseCommandIsSentUntilItIsAnswered) {
  InitiatorBench bench(4);
  bench.idle_ticks = 10;
  bench.targets[1].loses_closes = true;
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(10000));
  Pass(bench, 200);
  EXPECT_EQ(bench.closes, 0U);
  EXPECT_GE(bench.closes_seen, 3U);
  bench.targets[1].loses_closes = false;
  Pass(bench, 400);
  EXPECT_EQ(bench.closes, 1U);
  const uint64_t seen = bench.closes_seen;
  Pass(bench, 400);
  EXPECT_EQ(bench.closes_seen, seen);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, DeadPeersGiveTheirPdcsBackWhenOthersWait) {
  InitiatorBench bench(4);
  for (uint32_t peer = 1; peer <= 256; ++peer) {
    bench.Post(peer, 8);
  }
  ASSERT_TRUE(bench.Run(20000));
  for (uint32_t peer = 1; peer <= 256; ++peer) {
    bench.targets[peer].silent = true;
  }
  const uint64_t start = bench.cycle;
  bench.Post(1000, 8);
  ASSERT_TRUE(bench.Run(100000));
  EXPECT_LT(bench.cycle - start, 16U * 600) << "dead_ticks are 1000";
  EXPECT_EQ(bench.closes_seen, 5U);
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, TargetWithoutRoomForATombstoneIsAskedAgain) {
  InitiatorBench bench(4);
  bench.idle_ticks = 10;
  bench.targets[1].refuses_closes = true;
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(10000));
  Pass(bench, 1500);
  EXPECT_EQ(bench.closes, 0U);
  EXPECT_GT(bench.closes_seen, 20U);
  bench.targets[1].refuses_closes = false;
  Pass(bench, 50);
  EXPECT_EQ(bench.closes, 1U);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, CloseIsOverWhenTheTargetDoesNotKnowThePdcAnyMore) {
  InitiatorBench bench(4);
  bench.idle_ticks = 10;
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(10000));
  bench.ForgetPdcs();  // As if the answer to the first command was lost.
  Pass(bench, 100);
  EXPECT_EQ(bench.closes_seen, 1U);
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(10000));
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, TargetThatAsksGetsAnIdlePdcBackAndABusyOneWhenItIsIdle) {
  InitiatorBench bench(4);
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(10000));
  bench.AskToClose(1);
  Pass(bench, 20);
  EXPECT_EQ(bench.closes, 1U);
  bench.targets[1].refuses = true;
  bench.Post(1, 8);
  Pass(bench, 20);
  bench.AskToClose(1);
  Pass(bench, 20);
  EXPECT_EQ(bench.closes, 1U) << "closed with a message waiting";
  bench.targets[1].refuses = false;
  ASSERT_TRUE(bench.Run(20000));
  Pass(bench, 20);
  EXPECT_EQ(bench.closes, 2U);
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, MessagesPostedWhileAPdcRetiresAreNotLost) {
  // Posts one message ever closer to the moment at which the PDC is closed.
  for (uint32_t early = 0; early < 40; ++early) {
    InitiatorBench bench(4);
    bench.idle_ticks = 100;
    bench.Post(1, 8);
    ASSERT_TRUE(bench.Run(20000));
    for (uint64_t i = 0; i < 16 * 100 - 200 + early * 8; ++i) {
      bench.Cycle();
    }
    bench.Post(1, 8);
    ASSERT_TRUE(bench.Run(20000)) << "posted " << early;
    ExpectEachDoneOnce(bench, Status::kOk);
    ExpectNothingBroken(bench);
  }
}

TEST_P(InitiatorModeTest, MessagesNeverTransmittedMoveWhenThePdcEnds) {
  InitiatorBench bench(4);
  bench.rud = GetParam();
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(20000));
  bench.targets[1].refusal = NackCode::kUnexpEvent;
  for (int i = 0; i < 200; ++i) {
    bench.Post(1, 100 * 1024);  // Longer than the window.
  }
  ASSERT_TRUE(bench.Run(400000));
  EXPECT_EQ(bench.messages[1].status, Status::kPeerRejected);
  for (size_t i = 2; i < bench.messages.size(); ++i) {
    EXPECT_EQ(bench.messages[i].status, Status::kOk) << i;
    EXPECT_EQ(bench.messages[i].completions, 1) << i;
  }
  EXPECT_GE(bench.opened, 2U);
  EXPECT_LE(bench.opened, bench.rud ? 5U : 2U);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, SynOfAClosedPdcidMovesToAnother) {
  InitiatorBench bench(4);
  bench.targets[1].syn_answer = NackCode::kClosing;
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(20000));
  EXPECT_EQ(bench.opened, 2U);
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, NackOfAStrangeTargetPdcidChangesNothing) {
  InitiatorBench bench(4);
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(20000));
  bench.targets[1].strange_nack = NackCode::kUnexpEvent;
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(20000));
  ExpectEachDoneOnce(bench, Status::kOk);
  EXPECT_EQ(bench.opened, 1U);
}

// The PDC stays, and goes on.
TEST(InitiatorTest, RefusedControlPacketsEndNothing) {
  InitiatorBench bench(4);
  bench.targets[1].withholds_data = true;
  bench.Post(1, 3000, /*read=*/true);
  Pass(bench, 200);
  // Of an ACK Request of the newest one acknowledged; of a Clear Command.
  bench.RefuseControl(1, std::nullopt);
  bench.RefuseControl(1, 0);
  Pass(bench, 100);
  EXPECT_EQ(bench.messages[0].completions, 0);
  bench.Post(1, 8);
  Pass(bench, 200);
  EXPECT_EQ(bench.messages[1].completions, 1);
  EXPECT_EQ(bench.messages[1].status, Status::kOk);
  EXPECT_EQ(bench.messages[0].completions, 0);
  EXPECT_EQ(bench.opened, 1U);
}

TEST_P(InitiatorModeTest, CloseRequestClosesThePdcOnceItIsIdle) {
  InitiatorBench bench(4);
  bench.rud = GetParam();
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(20000));
  bench.Post(1, 100 * 1024);
  Pass(bench, 100);
  bench.Ask(1, contract::AckReq::kClose);
  ASSERT_TRUE(bench.Run(20000));
  ExpectEachDoneOnce(bench, Status::kOk);
  Pass(bench, 1000);
  EXPECT_EQ(bench.closes, 1U);
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(20000));
  EXPECT_EQ(bench.opened, 2U);
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest, ClearRequestIsAnsweredByAClearCommand) {
  InitiatorBench bench(4);
  bench.rud = GetParam();
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(20000));
  const uint64_t before = bench.clears_seen;
  bench.Ask(1, contract::AckReq::kClear);
  Pass(bench, 200);
  EXPECT_EQ(bench.clears_seen, before + 1);
  EXPECT_EQ(bench.opened, 1U);
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest, PdcThatTheTargetForgotIsOpenedAgain) {
  InitiatorBench bench(4);
  bench.rud = GetParam();
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(20000));
  bench.ForgetPdcs();
  for (int i = 0; i < 10; ++i) {
    bench.Post(1, 3000);
  }
  ASSERT_TRUE(bench.Run(20000));
  ExpectEachDoneOnce(bench, Status::kOk);
  EXPECT_EQ(bench.opened, 2U);
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest, PdcThatIsForgottenWithPacketsSentTwiceFails) {
  InitiatorBench bench(4);
  bench.rud = GetParam();
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(20000));
  // The target may have accepted the first transmission before it forgot.
  bench.targets[1].silent = true;
  bench.Post(1, 8);
  for (int i = 0; i < 16 * 50; ++i) {
    bench.Cycle();
  }
  bench.targets[1].silent = false;
  bench.ForgetPdcs();
  ASSERT_TRUE(bench.Run(16 * 300));
  EXPECT_EQ(bench.messages[1].status, Status::kPeerRejected);
  EXPECT_EQ(bench.messages[1].detail,
            static_cast<uint16_t>(NackCode::kClosing));
  EXPECT_EQ(bench.messages[1].completions, 1);
}

TEST_P(InitiatorModeTest, RefusedSynOpensAgainUnderAnotherPdcid) {
  InitiatorBench bench(5);
  bench.rud = GetParam();
  bench.targets[1].syn_answer = NackCode::kInvalidSyn;
  for (int i = 0; i < 10; ++i) {
    bench.Post(1, 3000);
  }
  ASSERT_TRUE(bench.Run(50000));
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, PdcThatEndsFatallyFailsItsMessagesWithTheCode) {
  InitiatorBench bench(6);
  bench.targets[1].syn_answer = NackCode::kPdcModeMismatch;
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(50000));
  ExpectEachDoneOnce(bench, Status::kPeerRejected);
  EXPECT_EQ(bench.messages[0].detail,
            static_cast<uint16_t>(NackCode::kPdcModeMismatch));
}

TEST_P(InitiatorModeTest, SemanticErrorEndsItsMessageAloneAndIsCleared) {
  InitiatorBench bench(6);
  bench.rud = GetParam();
  bench.Post(1, 8);
  bench.Post(1, 8);
  bench.messages.back().error = ReturnCode::kBadJobId;
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(50000));
  EXPECT_EQ(bench.messages[0].status, Status::kOk);
  EXPECT_EQ(bench.messages[1].status, Status::kRemoteError);
  EXPECT_EQ(bench.messages[1].detail,
            static_cast<uint16_t>(ReturnCode::kBadJobId));
  EXPECT_EQ(bench.messages[2].status, Status::kOk);
  EXPECT_EQ(bench.opened, 1u);
  // Nothing follows that could clear it.
  EXPECT_EQ(bench.clears_seen, 1u);
  EXPECT_EQ(bench.retransmissions_seen, 0u);
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest, RestOfARefusedMessageIsNotSent) {
  InitiatorBench bench(6);
  bench.rud = GetParam();
  bench.Post(1, 8);
  bench.Post(1, 1000 * 1024);
  bench.messages.back().error = ReturnCode::kBadMkey;
  bench.messages.back().error_at = 10;
  bench.Post(1, 3000);
  ASSERT_TRUE(bench.Run(100000));
  EXPECT_EQ(bench.messages[1].status, Status::kRemoteError);
  EXPECT_EQ(bench.messages[1].detail,
            static_cast<uint16_t>(ReturnCode::kBadMkey));
  EXPECT_EQ(bench.messages[2].status, Status::kOk);
  EXPECT_LT(bench.packets_seen, 200u);
  ExpectNothingBroken(bench);
}

// Of a refused READ one more packet leaves, whose answer says what is due. What
// is posted behind the READ waits for that, so nothing else asks for it.
TEST(InitiatorTest, LastPacketOfARefusedReadAsksForAnAnswer) {
  for (uint32_t delay = 1; delay < 60; ++delay) {
    SCOPED_TRACE(delay);
    InitiatorBench bench(delay);
    bench.network.delay_cycles = delay;
    bench.network.duplicate = 0.5;
    for (int i = 0; i < 4; ++i) {
      bench.Post(1, 40 * 1024, /*read=*/true);
      bench.messages.back().error = ReturnCode::kBadMkey;
    }
    ASSERT_TRUE(bench.Run(20000));
    EXPECT_EQ(bench.timeouts_seen, 0U);
    ExpectNothingBroken(bench);
  }
}

// Its target stores an answer for each packet. Each has to be cleared before
// the next is told, whatever else waits on the PDC.
TEST_P(InitiatorModeTest, EachPacketOfARefusedMessageMayBeRefusedByItself) {
  for (const uint32_t at : {0U, 1U, 20U, 39U}) {
    InitiatorBench bench(6);
    bench.rud = GetParam();
    bench.targets[1].refuses_each = true;
    bench.Post(1, 8);
    bench.Post(1, 40 * 1024, /*read=*/!bench.rud);
    bench.messages.back().error = ReturnCode::kBadMkey;
    bench.messages.back().error_at = at;
    bench.Post(1, 40 * 1024, /*read=*/!bench.rud);
    bench.messages.back().error = ReturnCode::kBadAddr;
    bench.Post(1, 100 * 1024, /*read=*/!bench.rud);
    bench.Post(1, 8);
    ASSERT_TRUE(bench.Run(100000)) << at;
    for (size_t i = 0; i < bench.messages.size(); ++i) {
      const PostedMessage& m = bench.messages[i];
      EXPECT_EQ(m.completions, 1) << at << ", message " << i;
      EXPECT_EQ(m.status, m.error ? Status::kRemoteError : Status::kOk)
          << at << ", message " << i;
      EXPECT_EQ(m.detail, m.error ? static_cast<uint16_t>(*m.error) : 0);
    }
    EXPECT_EQ(bench.timeouts_seen, 0U) << at;
    EXPECT_EQ(bench.opened, 1U);
    ExpectNothingBroken(bench);
  }
}

TEST_P(InitiatorModeTest, ErrorsAreDeliveredOnceBehindABadNetwork) {
  const uint32_t seed = TestSeed();
  InitiatorBench bench(seed);
  bench.rud = GetParam();
  bench.network = {
      .loss = 0.05, .duplicate = 0.05, .reorder = 0.1, .delay_cycles = 30};
  std::mt19937 rng(seed);
  for (uint32_t i = 0; i < 300; ++i) {
    bench.Post(1 + i % 3, static_cast<uint32_t>(rng() % 9000));
    PostedMessage& m = bench.messages.back();
    if (rng() % 3 == 0) {
      m.error = static_cast<ReturnCode>(23 + rng() % 7);
      m.error_at = static_cast<uint32_t>(rng() % m.packets);
    }
  }
  ASSERT_TRUE(bench.Run(4000000));
  for (const PostedMessage& m : bench.messages) {
    EXPECT_EQ(m.completions, 1);
    EXPECT_EQ(m.status, m.error ? Status::kRemoteError : Status::kOk);
    if (m.error) {
      EXPECT_EQ(m.detail, static_cast<uint16_t>(*m.error));
    }
  }
  EXPECT_GE(bench.opened, 3U);
  EXPECT_LE(bench.opened, bench.rud ? 12U : 3U);
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest, MessageWhosePayloadIsLostEndsEarlyAndOthersAreWhole) {
  const uint32_t seed = TestSeed();
  InitiatorBench bench(seed);
  bench.rud = GetParam();
  bench.network = {.loss = 0.01, .delay_cycles = 30};
  bench.withdraw = 0.01;
  for (uint32_t i = 0; i < 300; ++i) {
    bench.Post(1 + i % 3, 1 + i * 50);
  }
  ASSERT_TRUE(bench.Run(2000000));
  for (const PostedMessage& m : bench.messages) {
    EXPECT_EQ(m.completions, 1);
    EXPECT_EQ(m.status, m.failed ? Status::kLocalAccess : Status::kOk);
  }
  ExpectNothingBroken(bench);
}

TEST_P(InitiatorModeTest, MessageEndsOnlyAfterItsPayloadReadsReturned) {
  InitiatorBench bench(8);
  bench.rud = GetParam();
  bench.payload_delay_cycles = 400;  // Slower than the network's round trip.
  bench.network = {.loss = 0.05, .delay_cycles = 10};
  for (int i = 0; i < 500; ++i) {
    bench.Post(1, 8);
  }
  ASSERT_TRUE(bench.Run(2000000));
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, IdleSaysWhenTheNextTimerIsDue) {
  InitiatorBench bench(9);
  bench.targets[1].silent = true;
  bench.Post(1, 8);
  for (int i = 0; i < 200; ++i) {
    bench.Cycle();
  }
  ASSERT_TRUE(bench->idle_o);
  ASSERT_TRUE(bench->deadline_valid_o);
  EXPECT_LE(bench->deadline_o, 20U);
  EXPECT_GE(bench->deadline_o, 1U);
}

TEST(InitiatorTest, ReadEndsWhenItsDataCameAndDelaysNobody) {
  InitiatorBench bench(1);
  bench.data_delay_cycles = 3000;
  for (const uint32_t length : {0U, 1U, 1024U, 1025U, 5000U, 200000U}) {
    bench.Post(7, length, /*read=*/true);
    bench.Post(7, length);
  }
  ASSERT_TRUE(bench.Run(100000));
  ExpectEachDoneOnce(bench, Status::kOk);
  EXPECT_EQ(bench.retransmissions_seen, 0U);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, DueDataAreBoundedAndHeldAgainstNobodyElse) {
  InitiatorBench bench(1);
  bench.targets[1].withholds_data = true;
  bench.Post(1, 100000, /*read=*/true);
  bench.Post(2, 100000, /*read=*/true);
  for (int i = 0; i < 16 * 500; ++i) {
    bench.Cycle();
  }
  EXPECT_EQ(bench.packets_to[1], rtl::kReturnDue);
  EXPECT_EQ(bench.messages[0].completions, 0);
  EXPECT_EQ(bench.messages[1].completions, 1);
  EXPECT_EQ(bench.messages[1].status, Status::kOk);
  EXPECT_EQ(bench.most_due, rtl::kReturnDue);
  ExpectNothingBroken(bench);
}

// An ACK takes the place of data, so one is enough for two requests; but the
// last one before it waits has it, or the silence would be a loss.
TEST(InitiatorTest, AtTheLimitOfDataDueEveryOtherPacketRequestsAnAck) {
  InitiatorBench bench(1);
  bench.data_delay_cycles = 1000;
  bench.data_spacing_cycles = 60;
  bench.Post(1, 400000, /*read=*/true);
  ASSERT_TRUE(bench.Run(200000));
  ExpectEachDoneOnce(bench, Status::kOk);
  EXPECT_EQ(bench.most_due, rtl::kReturnDue);
  const uint64_t at_limit = bench.packets_to[1] - rtl::kReturnDue;
  ASSERT_GT(at_limit, 100U);
  EXPECT_GE(bench.acks_requested, at_limit / 2);
  // And each sixteenth.
  EXPECT_LE(bench.acks_requested, at_limit / 2 + bench.packets_to[1] / 16 + 2);
  EXPECT_EQ(bench.retransmissions_seen, 0U);
  ExpectNothingBroken(bench);
}

// One after another they share one, as those that need order always do.
TEST(InitiatorTest, ReadsThatNeedNoOrderTakeFourPdcsWhenEachIsFull) {
  for (const bool rud : {false, true}) {
    SCOPED_TRACE(rud);
    InitiatorBench bench(1);
    bench.rud = rud;
    for (int i = 0; i < 3; ++i) {
      bench.Post(1, 8, /*read=*/true);
      ASSERT_TRUE(bench.Run(2000));
    }
    EXPECT_EQ(bench->open_pdcs_o, 1);
    bench.targets[1].withholds_data = true;
    for (int burst = 0; burst < 10; ++burst) {
      for (int i = 0; i < 50; ++i) bench.Post(1, 8, /*read=*/true);
      for (int i = 0; i < 600; ++i) bench.Cycle();
    }
    const uint32_t pdcs = rud ? 4 : 1;
    EXPECT_EQ(bench->open_pdcs_o, pdcs);
    EXPECT_EQ(bench.packets_to[1], 3 + pdcs * rtl::kReturnDue);
    ExpectNothingBroken(bench);
  }
}

TEST(InitiatorTest, NoDataAreRequestedOverAWideGap) {
  InitiatorBench bench(1);
  bench.rud = true;
  const auto set_gaps = [&](uint32_t word) {
    for (size_t i = 0; i < rtl::kNumPdc / 32; ++i) bench->gaps_i[i] = word;
  };
  // Without data that are due there is nothing to wait for.
  set_gaps(~0U);
  bench.targets[1].withholds_data = true;
  bench.Post(1, 8, /*read=*/true);
  for (int i = 0; i < 500; ++i) bench.Cycle();
  EXPECT_EQ(bench.packets_to[1], 1U);
  bench.Post(1, 3000, /*read=*/true);
  for (int i = 0; i < 500; ++i) bench.Cycle();
  EXPECT_EQ(bench.packets_to[1], 1U);
  set_gaps(0);
  for (int i = 0; i < 500; ++i) bench.Cycle();
  EXPECT_EQ(bench.packets_to[1], 4U);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, DataThatNeverComeAreSilenceAndEndThePdc) {
  InitiatorBench bench(1);
  bench.targets[1].withholds_data = true;
  bench.idle_ticks = 10;  // It is not idle.
  bench.Post(1, 3000, /*read=*/true);
  bench.Post(1, 0, /*read=*/true);
  bench.Post(1, 8, /*read=*/true);
  const uint64_t start = bench.cycle;
  ASSERT_TRUE(bench.Run(16 * 3000));
  EXPECT_GT(bench.cycle - start, 16U * 1000);
  EXPECT_EQ(bench.messages[0].status, Status::kPeerUnreachable);
  EXPECT_EQ(bench.messages[1].status, Status::kOk);
  EXPECT_EQ(bench.messages[2].status, Status::kPeerUnreachable);
  bench.targets[1].withholds_data = false;
  bench.Post(1, 3000, /*read=*/true);
  ASSERT_TRUE(bench.Run(16 * 3000));
  EXPECT_EQ(bench.messages.back().status, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, ErrorInsteadOfDataIsTheReadsAlone) {
  InitiatorBench bench(1);
  bench.Post(7, 5000, /*read=*/true);
  bench.messages.back().data_error = ReturnCode::kBadMkey;
  bench.Post(7, 5000, /*read=*/true);
  ASSERT_TRUE(bench.Run(20000));
  EXPECT_EQ(bench.messages[0].status, Status::kRemoteError);
  EXPECT_EQ(bench.messages[0].detail,
            static_cast<uint16_t>(ReturnCode::kBadMkey));
  EXPECT_EQ(bench.messages[1].status, Status::kOk);
  ExpectNothingBroken(bench);
}

// Data of the packets before the refused one still come, and the entry is not
// used again before.
TEST(InitiatorTest, RefusedReadWaitsForWhatWasPromised) {
  InitiatorBench bench(1);
  bench.data_delay_cycles = 2000;
  for (const uint32_t at : {0U, 1U, 3U, 4U}) {
    bench.Post(7, 5000, /*read=*/true);
    bench.messages.back().error = ReturnCode::kBadMkey;
    bench.messages.back().error_at = at;
    bench.Post(7, 50000, /*read=*/true);
  }
  ASSERT_TRUE(bench.Run(200000));
  for (size_t i = 0; i < bench.messages.size(); ++i) {
    EXPECT_EQ(bench.messages[i].status,
              i % 2 == 0 ? Status::kRemoteError : Status::kOk);
  }
  ExpectNothingBroken(bench);
}

// Else what is due to another READ would be taken for what came, and that one
// would wait for ever.
TEST(InitiatorTest, RefusedReadThatIsAnsweredAllTheSameTakesNothingFromOthers) {
  // Taken before and after the refusal is known, and settled then.
  constexpr std::array<std::pair<uint32_t, uint32_t>, 4> kDelays = {
      {{1, 1}, {1, 60}, {1, 2000}, {60, 1}}};
  for (const auto& [coming, placing] : kDelays) {
    for (const uint32_t at : {0U, 1U, 6U, 7U}) {
      SCOPED_TRACE(testing::Message() << coming << ' ' << placing << ' ' << at);
      InitiatorBench bench(1);
      bench.idle_ticks = 200;
      bench.data_delay_cycles = coming;
      bench.place_cycles = placing;
      bench.targets[7].answers_refused = true;
      bench.Post(7, 8 * 1024, /*read=*/true);
      bench.messages.back().error = ReturnCode::kBadMkey;
      bench.messages.back().error_at = at;
      bench.Post(7, 4 * 1024, /*read=*/true);
      bench.messages.back().withheld = true;
      ASSERT_TRUE(bench.Run(16 * 3000));
      EXPECT_EQ(bench.messages[0].status, Status::kRemoteError);
      EXPECT_EQ(bench.messages[1].status, Status::kPeerUnreachable);
      ExpectNothingBroken(bench);
    }
  }
}

TEST(InitiatorTest, RandomReadsEndOnceWhereRefusedOnesAreAnswered) {
  const uint32_t seed = TestSeed();
  std::mt19937 rng(seed);
  const auto below = [&rng](uint32_t limit) {
    return static_cast<uint32_t>(rng() % limit);
  };
  InitiatorBench bench(seed);
  bench.idle_ticks = 300;
  bench.network = {.loss = 0.02, .delay_cycles = 30};
  for (uint32_t peer = 1; peer <= 3; ++peer) {
    bench.targets[peer].answers_refused = true;
    bench.targets[peer].refuses_each = peer == 2;
  }
  for (int i = 0; i < 600; ++i) {
    bench.Post(1 + below(3), below(3) == 0 ? below(60000) : below(64),
               below(4) != 0);
    PostedMessage& m = bench.messages.back();
    if (below(3) == 0) {
      m.error = ReturnCode::kBadAddr;
      m.error_at = below(m.packets);
    }
    if (i % 100 == 99) {
      bench.data_delay_cycles = below(2) == 0 ? 1 : 300;
      bench.place_cycles = below(2) == 0 ? 1 : 1500;
    }
  }
  ASSERT_TRUE(bench.Run(8000000)) << "seed " << seed;
  for (const PostedMessage& m : bench.messages) {
    EXPECT_EQ(m.completions, 1);
    EXPECT_EQ(m.status, m.error ? Status::kRemoteError : Status::kOk);
  }
  // Nothing stays due: all of them close.
  Pass(bench, 20000);
  EXPECT_EQ(bench->deadline_valid_o, 0) << "seed " << seed;
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, DataOfAnEarlierOpeningOfThePdcAreNotWhatIsDue) {
  InitiatorBench bench(1);
  bench.idle_ticks = 200;
  bench.targets[7].withholds_data = true;
  bench.Post(7, 2048, /*read=*/true);
  for (int i = 0; i < 500; ++i) bench.Cycle();
  for (int i = 0; i < 4; ++i) {
    bench.SettleStray(0);
    bench.Cycle();
  }
  ASSERT_TRUE(bench.Run(16 * 3000));
  EXPECT_EQ(bench.messages[0].status, Status::kPeerUnreachable);
  ExpectNothingBroken(bench);
}

// As when its context ends while it is asked for: nothing stays due, or the
// PDC would not become idle.
TEST(InitiatorTest, ReadThatIsGivenUpEndsAndLeavesNothingDue) {
  for (uint32_t at = 0; at < 9; ++at) {
    for (const uint32_t delay : {40U, 2000U}) {
      SCOPED_TRACE(testing::Message() << at << ' ' << delay);
      InitiatorBench bench(at + 1);
      bench.idle_ticks = 200;
      bench.data_delay_cycles = delay;
      if (at % 3 == 2) bench.network.loss = 0.05;
      bench.Post(7, 9 * 1024, /*read=*/true);
      bench.messages.back().withdrawn_at = at;
      bench.Post(7, 30 * 1024, /*read=*/true);
      bench.messages.back().withdrawn_at = at + 8;
      bench.Post(7, 5000, /*read=*/true);
      ASSERT_TRUE(bench.Run(100000));
      for (const PostedMessage& message : bench.messages) {
        EXPECT_EQ(message.completions, 1);
      }
      EXPECT_EQ(bench.messages.back().status, Status::kOk);
      for (int i = 0; i < 20000 && bench.closes == 0; ++i) {
        bench.Cycle();
      }
      EXPECT_EQ(bench.closes, 1U);
      ExpectNothingBroken(bench);
    }
  }
}

TEST(InitiatorTest, ReadsLostWithThePdcEndAndLaterOnesGoOn) {
  InitiatorBench bench(1);
  bench.targets[7].withholds_data = true;
  bench.Post(7, 3000, /*read=*/true);
  for (int i = 0; i < 1000; ++i) {
    bench.Cycle();
  }
  bench.ForgetPdcs();
  bench.targets[7].withholds_data = false;
  bench.Post(7, 8);
  bench.Post(7, 3000, /*read=*/true);
  ASSERT_TRUE(bench.Run(16 * 3000));
  EXPECT_EQ(bench.messages[0].status, Status::kPeerRejected);
  EXPECT_EQ(bench.messages[1].status, Status::kOk);
  EXPECT_EQ(bench.messages[2].status, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, RandomReadsAmongSendsEndOnceOnALossyNetwork) {
  const uint32_t seed = TestSeed();
  InitiatorBench bench(seed);
  bench.network = {
      .loss = 0.02, .duplicate = 0.02, .reorder = 0.02, .delay_cycles = 30};
  std::mt19937 rng(seed);
  const auto below = [&rng](uint32_t limit) {
    return static_cast<uint32_t>(rng() % limit);
  };
  bench.withdraw = 0.002;
  for (int i = 0; i < 2000; ++i) {
    bench.Post(1 + below(9), below(8) == 0 ? below(60000) : below(64),
               below(2) == 0);
    PostedMessage& m = bench.messages.back();
    if (below(8) == 0) {
      m.error = ReturnCode::kBadAddr;
      m.error_at = below(m.packets);
    } else if (m.read && below(8) == 0) {
      m.data_error = ReturnCode::kBadMkey;
    }
  }
  ASSERT_TRUE(bench.Run(8000000));
  for (const PostedMessage& m : bench.messages) {
    EXPECT_EQ(m.completions, 1);
    if (m.error) {
      EXPECT_NE(m.status, Status::kOk);
    } else if (!m.failed && !m.data_error) {
      EXPECT_EQ(m.status, Status::kOk);
    }
  }
  ExpectNothingBroken(bench);
}

// What its target has of it would be executed twice.
TEST_P(InitiatorModeTest, MessageKnownInPartIsNotSentAgainToTargetThatForgot) {
  for (uint32_t known = 4; known < 40; ++known) {
    SCOPED_TRACE(known);
    InitiatorBench bench(1);
    bench.rud = GetParam();
    bench.Post(7, 8);
    ASSERT_TRUE(bench.Run(2000));
    bench.Post(7, 50 * 1024);
    bench.Post(7, 8);
    while (bench.messages[1].delivered() < known) {
      bench.Cycle();
    }
    bench.targets[7].refusal = NackCode::kClosing;
    ASSERT_TRUE(bench.Run(100000));
    EXPECT_EQ(bench.messages[1].status, Status::kPeerRejected);
    for (const PostedMessage& message : bench.messages) {
      EXPECT_EQ(message.completions, 1);
    }
    ExpectNothingBroken(bench);
  }
}

// Whatever happens to the PDC of a READ, it ends once, and the PDC is as good
// as new: nothing stays due on it.
TEST(InitiatorTest,
     RandomReadsEndOnceWhenTargetsForgetRestartRefuseAndFallSilent) {
  const uint32_t seed = TestSeed();
  std::mt19937 rng(seed);
  const auto below = [&rng](uint32_t limit) {
    return static_cast<uint32_t>(rng() % limit);
  };
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE(round);
    InitiatorBench bench(static_cast<uint32_t>(rng()));
    bench.idle_ticks = 300;
    bench.loses_pdcs = true;
    bench.data_delay_cycles = below(2) == 0 ? 40 : 1500;
    bench.network = {.loss = 0.01 * below(3),
                     .reorder = 0.01 * below(3),
                     .delay_cycles = 30};
    constexpr uint32_t kPeers = 5;
    constexpr NackCode kCodes[] = {NackCode::kUnexpEvent, NackCode::kClosing,
                                   NackCode::kNoPdcAvail,
                                   NackCode::kPdcHdrMismatch};
    for (int event = 0; event < 60; ++event) {
      for (uint32_t i = below(20); i > 0; --i) {
        bench.Post(1 + below(kPeers),
                   below(4) == 0 ? below(60000) : below(3000), below(3) != 0);
        PostedMessage& m = bench.messages.back();
        if (below(6) == 0) {
          m.error = ReturnCode::kBadAddr;
          m.error_at = below(m.packets);
        } else if (m.read && below(6) == 0) {
          m.data_error = ReturnCode::kBadMkey;
        }
      }
      const uint32_t peer = 1 + below(kPeers);
      Target& target = bench.targets[peer];
      switch (below(9)) {
        case 0:
          bench.ForgetPdcs();
          break;
        case 1:
        case 2:
          target.refusal = kCodes[below(std::size(kCodes))];
          break;
        case 3:
          target.silent = !target.silent;
          break;
        case 4:
          target.withholds_data = !target.withholds_data;
          break;
        case 5:
          target.refuses = !target.refuses;
          break;
        case 6:
          target.refuses_each = !target.refuses_each;
          break;
        case 7:
          bench.Restart(peer);
          break;
        default:
          break;
      }
      for (uint32_t cycles = below(4000); cycles > 0; --cycles) {
        bench.Cycle();
      }
    }
    for (auto& [peer, target] : bench.targets) {
      target = {};
    }
    ASSERT_TRUE(bench.Run(4000000)) << "seed " << seed;
    for (uint32_t peer = 1; peer <= kPeers; ++peer) {
      bench.Post(peer, 60000, /*read=*/true);
      bench.Post(peer, 60000);
    }
    ASSERT_TRUE(bench.Run(4000000)) << "seed " << seed;
    for (size_t i = 0; i < bench.messages.size(); ++i) {
      EXPECT_EQ(bench.messages[i].completions, 1) << i << ", seed " << seed;
    }
    // All of them close.
    Pass(bench, 20000);
    EXPECT_EQ(bench->deadline_valid_o, 0) << "seed " << seed;
    ExpectNothingBroken(bench);
  }
}

}  // namespace
}  // namespace heddle
