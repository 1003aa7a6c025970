// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <random>

#include "gtest/gtest.h"
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

TEST(InitiatorTest, MessageOfEverySizeEndsAfterItsLastPacketIsAcknowledged) {
  InitiatorBench bench(1);
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

TEST(InitiatorTest, NothingIsLostOrDoubledOnALossyNetwork) {
  const uint32_t seed = TestSeed();
  InitiatorBench bench(seed);
  bench.network = {
      .loss = 0.02, .duplicate = 0.02, .reorder = 0.02, .delay_cycles = 30};
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

TEST(InitiatorTest, WindowOfSequenceNumbersWraps) {
  // Start_PSNs are spread over all 32 bits; many PDCs and long messages cross
  // the ends of the signed halves sooner or later. One peer, long traffic:
  InitiatorBench bench(3);
  for (int i = 0; i < 40; ++i) {
    bench.Post(5, 1024 * 1024);
  }
  ASSERT_TRUE(bench.Run(400000));
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, RefusedPeerIsRetriedAndDelaysNobodyElse) {
  InitiatorBench bench(2);
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

TEST(InitiatorTest, RefusalNeverCountsAsADeadPeer) {
  InitiatorBench bench(2);
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

TEST(InitiatorTest, SilentPeerEndsInAnErrorAfterDeadTimeAndOthersGoOn) {
  InitiatorBench bench(4);
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

TEST(InitiatorTest, IdlePdcsAreClosedSoThatOtherPeersFindOne) {
  InitiatorBench bench(4);
  for (uint32_t peer = 1; peer <= 64; ++peer) {
    bench.Post(peer, 8);
  }
  ASSERT_TRUE(bench.Run(20000));
  EXPECT_EQ(bench.opened, 64U);
  bench.Post(65, 8);
  EXPECT_FALSE(bench.Run(5000)) << "more PDCs than there are";
  ASSERT_TRUE(bench.Run(16 * 1100)) << "idle PDCs end after dead_ticks";
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(16 * 1100));
  ExpectEachDoneOnce(bench, Status::kOk);
  ExpectNothingBroken(bench);
}

TEST(InitiatorTest, MessagesPostedWhileAPdcRetiresAreNotLost) {
  // Posts one message ever closer to the moment at which the PDC is closed.
  for (uint32_t early = 0; early < 40; ++early) {
    InitiatorBench bench(4);
    bench.Post(1, 8);
    ASSERT_TRUE(bench.Run(20000));
    for (uint64_t i = 0; i < 16 * 1000 - 100 + early * 8; ++i) {
      bench.Cycle();
    }
    bench.Post(1, 8);
    ASSERT_TRUE(bench.Run(20000)) << "posted " << early;
    ExpectEachDoneOnce(bench, Status::kOk);
    ExpectNothingBroken(bench);
  }
}

TEST(InitiatorTest, PdcThatTheTargetForgotIsOpenedAgain) {
  InitiatorBench bench(4);
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

TEST(InitiatorTest, PdcThatIsForgottenWithPacketsSentTwiceFails) {
  InitiatorBench bench(4);
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
            static_cast<uint16_t>(NackCode::kInvDpdcid));
  EXPECT_EQ(bench.messages[1].completions, 1);
}

TEST(InitiatorTest, RefusedSynOpensAgainUnderAnotherPdcid) {
  InitiatorBench bench(5);
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

TEST(InitiatorTest, SemanticErrorOfTheTargetEndsTheMessagesWithItsReturnCode) {
  InitiatorBench bench(6);
  bench.targets[1].error = ReturnCode::kBadJobId;
  bench.Post(1, 8);
  bench.Post(1, 8);
  ASSERT_TRUE(bench.Run(50000));
  ExpectEachDoneOnce(bench, Status::kRemoteError);
  EXPECT_EQ(bench.messages[0].detail,
            static_cast<uint16_t>(ReturnCode::kBadJobId));
}

TEST(InitiatorTest, MessageWhosePayloadIsLostEndsEarlyAndOthersAreWhole) {
  const uint32_t seed = TestSeed();
  InitiatorBench bench(seed);
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

TEST(InitiatorTest, MessageEndsOnlyAfterItsPayloadReadsReturned) {
  InitiatorBench bench(8);
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

}  // namespace
}  // namespace heddle
