// SPDX-License-Identifier: Apache-2.0
// Peers that end and come back: which incarnation executes what.
#include "tests/soft/transport/incarnation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tests/seed.h"

namespace heddle::soft::transport {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Wires, IncarnationTest,
    testing::Values(std::pair(true, true), std::pair(true, false),
                    std::pair(false, true), std::pair(false, false)),
    [](const auto& wires) {
      return std::string(wires.param.first ? "Rod" : "Rud") +
             (wires.param.second ? "ByFunction" : "ByAddress");
    });

INSTANTIATE_TEST_SUITE_P(Wires, FunctionTest,
                         testing::Values(std::pair(true, true),
                                         std::pair(false, true)),
                         [](const auto& wires) {
                           return wires.param.first ? "Rod" : "Rud";
                         });

// It is asked for its predecessor's PDC, and for a new one.
TEST_P(IncarnationTest, MessagesWaitUntilTheSuccessorListens) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  world.Kill(1);
  for (uint64_t i = 2; i <= 20; ++i) {
    world[0].client.Send(To(1, i, 3));
  }
  world.Revive(1);
  world[1].client.listens = false;
  world.RunFor(100 * world.port.rto_ticks * World::kTickNs);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kTxPdcs), 2u);
  EXPECT_TRUE(world[1].client.taken.empty());
  EXPECT_EQ(world[0].client.endings.size(), 1u);
  world[1].client.listens = true;
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(&world[0], 20);
}

TEST_P(IncarnationTest, MessagesGoToTheSuccessor) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  world.Kill(1);
  for (uint64_t i = 2; i <= 200; ++i) {
    world[0].client.Send(To(1, i, 3));
  }
  // Sent many times.
  world.RunFor(20 * world.port.rto_ticks * World::kTickNs);
  world.Revive(1);
  ASSERT_TRUE(world.Run(world.port.dead_ticks * World::kTickNs));
  ExpectAllCompleted(&world[0], 200);
  EXPECT_EQ(Executions(&world, 1), (Counts{1, 0}));
  for (uint64_t i = 2; i <= 200; ++i) {
    EXPECT_EQ(Executions(&world, i), (Counts{0, 3})) << i;
  }
  EXPECT_EQ(world[0].transport.statistic(Statistic::kTxPdcs), 2u);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 1u);
}

// One NACK for each packet of the window, and late ones.
TEST_P(IncarnationTest, RefusalsOfAFormerPdcidDoNotTouchThePresentOne) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  uint16_t former = 0;
  uint16_t former_peer = 0;
  uint32_t psn = 0;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    if (IsRequest(bytes) && !IsSyn(bytes)) {
      const auto header = PdsRequest::Decode(bytes.data());
      former = former == 0 ? header.spdcid : former;
      former_peer = former_peer == 0 ? header.dpdcid : former_peer;
      psn = psn == 0 ? header.psn : psn;
    }
    return true;
  };
  world.Kill(1);
  world.Revive(1);
  for (uint64_t i = 2; i <= 65; ++i) {
    world[0].client.Send(To(1, i));
  }
  ASSERT_TRUE(world.RunUntil(
      [&] { return world[0].transport.statistic(Statistic::kTxPdcs) == 2; },
      1'000'000));
  for (uint32_t i = 0; i < 64; ++i) {
    world.Inject(1, 0, InvalidDpdcid(former, psn + i), 100 * i);
    PdsAck ack;
    ack.type = PdsType::kAck;
    ack.cack_psn = psn + i;
    ack.spdcid = former_peer;
    ack.dpdcid = former;
    std::vector<uint8_t> packet(PdsAck::kBytes);
    ack.Encode(packet.data());
    world.Inject(1, 0, packet, 100 * i);
  }
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(&world[0], 65);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kTxPdcs), 2u);
  for (uint64_t i = 2; i <= 65; ++i) {
    EXPECT_EQ(Executions(&world, i), (Counts{0, 1})) << i;
  }
}

// Nothing else is sent that would find out.
TEST_P(IncarnationTest, MessagesOnHoldGoToTheSuccessorInOrder) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  world[0].client.Send(To(1, 2, 3, Kind::kHeld));
  world[0].client.Send(To(1, 3));
  world[0].client.Send(To(1, 4, 70, Kind::kHeld));
  world[0].client.Send(To(1, 5));
  // Its index is that of a message that ended.
  world.RunFor(10 * world.longest_ns());
  world[0].client.Send(To(1, 6, 2, Kind::kHeld));
  world.RunFor(10 * world.longest_ns());
  EXPECT_EQ(world[0].client.endings.size(), 3u);
  world.Kill(1);
  world.Revive(1);
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(&world[0], 6);
  EXPECT_EQ(world[0].client.restarts, 3u);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kPdcRestarts), 1u);
  EXPECT_EQ(Executions(&world, 2), (Counts{3, 3}));
  EXPECT_EQ(Executions(&world, 3), (Counts{1, 0}));
  EXPECT_EQ(Executions(&world, 4), (Counts{70, 70}));
  EXPECT_EQ(Executions(&world, 6), (Counts{2, 2}));
}

TEST_P(IncarnationTest, AMessageOnHoldEndsWithItsPeer) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  world[0].client.Send(To(1, 2, 1, Kind::kHeld));
  world.RunFor(10 * world.longest_ns());
  world.Kill(1);
  ASSERT_TRUE(world.Run(2 * world.port.dead_ticks * World::kTickNs));
  ASSERT_EQ(world[0].client.endings.size(), 2u);
  EXPECT_EQ(world[0].client.endings.back().serial, 2u);
  EXPECT_EQ(world[0].client.endings.back().status, Status::kPeerUnreachable);
}

TEST_P(IncarnationTest, AHoldOutlastsAllTimes) {
  World world(TestSeed(), 2, Small(4));
  world.rules.idle_ticks = 2000;
  world.Configure();
  Prepare(&world);
  world[0].client.Send(To(1, 1, 2, Kind::kHeld));
  world[0].client.Send(To(1, 2, 2, Kind::kHeld));
  world.RunFor(5 * world.port.dead_ticks * World::kTickNs);
  EXPECT_TRUE(world[0].client.endings.empty());
  world[0].client.Resume(1, 3);
  world[0].client.Finish(2);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 1u);
  ASSERT_TRUE(world.Run());
  EXPECT_EQ(Executions(&world, 3), Counts{2});
  EXPECT_EQ(world[0].client.endings.size(), 2u);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kTxPdcs), 1u);
  EXPECT_TRUE(world.RunUntil(
      [&] { return world[0].transport.open_pdcs().initiator == 0; },
      20'000'000));
}

TEST_P(IncarnationTest, PartlyAcknowledgedSendGoesAgainWhole) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  ASSERT_NO_FATAL_FAILURE(RestartAmidMessage(&world, Kind::kPlain));
  ExpectAllCompleted(&world[0], 3);
  EXPECT_EQ(Executions(&world, 2), (Counts{20, 40}));
  EXPECT_EQ(Executions(&world, 3), (Counts{0, 1}));
}

// Its region died with the one that acknowledged the first packets.
TEST_P(IncarnationTest, PartlyAcknowledgedRmaEndsWithBadMkey) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  ASSERT_NO_FATAL_FAILURE(RestartAmidMessage(&world, Kind::kRead));
  ASSERT_EQ(world[0].client.endings.size(), 3u);
  EXPECT_EQ(world[0].client.endings[1].serial, 2u);
  EXPECT_EQ(world[0].client.endings[1].status, Status::kRemoteError);
  EXPECT_EQ(world[0].client.endings[1].detail, kBadMkey);
  EXPECT_TRUE(world[0].client.endings[2].completed);
  EXPECT_EQ(Executions(&world, 2), (Counts{20, 0}));
}

TEST_P(IncarnationTest, UntouchedRmaGoesToTheSuccessor) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  world.Kill(1);
  world[0].client.Send(To(1, 2, 3, Kind::kRead));
  world[0].client.Send(To(1, 3, 3, Kind::kResult));
  world.RunFor(10 * world.port.rto_ticks * World::kTickNs);
  world.Revive(1);
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(&world[0], 3);
}

// Nothing is out: only an ACK Request finds out.
TEST_P(IncarnationTest, ReadThatWaitsForDataEndsWithBadMkey) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  world[1].wire.filter = [](std::span<const uint8_t> bytes) {
    return !IsRequest(bytes);
  };
  world[0].client.Send(To(1, 2, 1, Kind::kRead));
  world.RunFor(world.port.rto_ticks * World::kTickNs);
  EXPECT_EQ(world[1].client.returns_open, 5u);
  world.Kill(1);
  world.Revive(1);
  ASSERT_TRUE(world.Run(3 * world.port.rto_max_ticks * World::kTickNs));
  ASSERT_EQ(world[0].client.endings.size(), 2u);
  EXPECT_EQ(world[0].client.endings[1].status, Status::kRemoteError);
  EXPECT_EQ(world[0].client.endings[1].detail, kBadMkey);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kPdcRestarts), 1u);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 0u);
  world[0].client.Send(To(1, 3));
  ASSERT_TRUE(world.Run());
  EXPECT_TRUE(world[0].client.endings.back().completed);
}

// Answers came out of order: those messages are complete, and are not executed
// by the successor.
TEST_P(IncarnationTest, CompleteMessagesDoNotGoAgain) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  int requests = 0;
  uint32_t lost = 0;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto header = PdsRequest::Decode(bytes.data());
    if (IsRequest(bytes) && ++requests == 3) {
      lost = header.psn;
    }
    return requests < 3 || header.psn != lost;  // However often.
  };
  for (uint64_t i = 2; i <= 20; ++i) {
    world[0].client.Send(To(1, i));
  }
  world.RunFor(world.longest_ns());
  const size_t before = world[0].client.endings.size();
  EXPECT_EQ(before, ordered() ? 3u : 19u);
  world[0].wire.filter = nullptr;
  world.Kill(1);
  world.Revive(1);
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(&world[0], 20);
  EXPECT_EQ(world[1].client.taken.size(), 20 - before);
}

// Of a copy of what had been acknowledged.
TEST_P(IncarnationTest, RefusalOfWhatWasAcknowledgedEndsTheIdlePdc) {
  World world(TestSeed(), 2, Small(4));
  PdsRequest header;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    if (IsRequest(bytes)) {
      header = PdsRequest::Decode(bytes.data());
    }
    return true;
  };
  Begin(&world);
  world.Inject(1, 0, InvalidDpdcid(header.spdcid, header.psn));
  world.RunFor(10'000);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 0u);
  EXPECT_TRUE(world[0].transport.idle());
  world[0].client.Send(To(1, 2));
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(&world[0], 2);
  EXPECT_EQ(Executions(&world, 1), (Counts{1}));
}

TEST_P(FunctionTest, PeerThatDoesNotComeBackIsUnreachable) {
  World world(TestSeed(), 2, Small(4));
  world.shared = true;
  Begin(&world);
  world.Kill(1);
  world[0].client.repost = false;
  for (uint64_t i = 2; i <= 100; ++i) {
    world[0].client.Send(To(1, i));
  }
  const uint64_t begun = world.now_ns();
  const uint64_t rto_ns = world.port.rto_ticks * World::kTickNs;
  ASSERT_TRUE(world.Run());
  EXPECT_GE(world.now_ns() - begun, 64 * rto_ns);
  EXPECT_LE(world.now_ns() - begun, 66 * rto_ns);
  ASSERT_EQ(world[0].client.endings.size(), 100u);
  for (size_t i = 1; i < 100; ++i) {
    EXPECT_EQ(world[0].client.endings[i].status, Status::kPeerUnreachable);
  }
  EXPECT_EQ(world.Total(Statistic::kDeadPeers), 1u);
}

// Its owner may be about to start.
TEST_P(IncarnationTest, PeerThatWasNeverKnownHasDeadTime) {
  World world(TestSeed(), 2, Small(4));
  Prepare(&world);
  world.Kill(1);
  world[0].client.Send(To(1, 1));
  world.RunFor(world.port.dead_ticks * World::kTickNs * 9 / 10);
  EXPECT_TRUE(world[0].client.endings.empty());
  world.Revive(1);
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(&world[0], 1);
}

// An established PDC waits as for a silent peer while no function answers for
// it.
TEST_P(IncarnationTest, PeerThatLeftForGoodHasDeadTime) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  world.Kill(1);
  world[0].client.repost = false;
  world[0].client.Send(To(1, 2));
  const uint64_t begun = world.now_ns();
  const uint64_t dead_ns = world.port.dead_ticks * World::kTickNs;
  ASSERT_TRUE(world.Run());
  EXPECT_GE(world.now_ns() - begun, dead_ns);
  EXPECT_LT(world.now_ns() - begun, dead_ns + dead_ns / 4);
  EXPECT_EQ(world[0].client.endings.back().status, Status::kPeerUnreachable);
}

// Else what the second one executed before would go there again.
TEST_P(FunctionTest, LateAckOfTheFirstReceiverOpensNothing) {
  World world(TestSeed(), 2, Small(4));
  Prepare(&world);
  std::vector<std::vector<uint8_t>> acks;
  world[1].wire.filter = [&](std::span<const uint8_t> bytes) {
    acks.push_back(Copy(bytes));
    return false;
  };
  world[0].client.Send(To(1, 1));
  world.RunFor(10'000);
  ASSERT_FALSE(acks.empty());
  world.Kill(1);
  world.Revive(1);
  world[0].client.Send(To(1, 2));
  ASSERT_TRUE(world.RunUntil(
      [&] { return world[0].transport.statistic(Statistic::kTxPdcs) == 2; },
      10'000));
  for (const auto& ack : acks) {
    world.Inject(1, 0, ack);
  }
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(&world[0], 2);
  EXPECT_EQ(Executions(&world, 1), (Counts{1, 1}));
  EXPECT_EQ(Executions(&world, 2), (Counts{0, 1}));
}

// With SYNs of the former incarnation on their way.
TEST_P(IncarnationTest, ResetUnderTrafficExecutesOncePerIncarnation) {
  sim::base::Random random(TestSeed());
  for (int run = 0; run < 40 && !HasFailure(); ++run) {
    World world(random.Next(), 2, Small(4));
    Prepare(&world);
    world.weather = {.loss = 0.02, .duplication = 0.02, .reordering = 0.1};
    for (uint64_t i = 1; i <= 200; ++i) {
      world[0].client.Send(To(1, i, 1 + random.Below(5)));
    }
    ASSERT_TRUE(world.RunUntil(
        [&] { return world.Total(Statistic::kRxAcks) != 0; }, 1'000'000'000));
    world.RunFor(random.Below(40'000));
    world.Reset(1);
    ASSERT_TRUE(world.Run());
    ExpectAllCompleted(&world[0], 200);
    for (uint64_t i = 1; i <= 200; ++i) {
      const Counts counts = Executions(&world, i);
      const auto& record = world[1].client.taken;
      const auto found = record.find(i);
      EXPECT_TRUE(found == record.end() ||
                  found->second.count == found->second.packets.size())
          << i << ": " << counts[0] << ", " << counts[1];
    }
  }
}

TEST_P(IncarnationTest, KillsResetsAndClosesAtRandom) {
  sim::base::Random random(TestSeed());
  for (int run = 0; run < 30 && !HasFailure(); ++run) {
    SCOPED_TRACE(run);
    constexpr size_t kNodes = 3;
    World world(random.Next(), kNodes, Small(8));
    Prepare(&world);
    world.rules.safety_ticks = 1000;
    world.weather = {
        .loss = 0.02, .duplication = 0.02, .reordering = 0.1, .blocked = 0.02};
    world.Configure();
    std::vector<TestMessage> sent;
    size_t dead = kNodes;
    for (int round = 0; round < 12; ++round) {
      for (int i = 0; i < 60; ++i) {
        const size_t from = random.Below(kNodes);
        if (from == dead) {
          continue;
        }
        const size_t to = (from + 1 + random.Below(kNodes - 1)) % kNodes;
        const auto kind = static_cast<Kind>(random.Below(4));
        TestMessage message =
            To(to, sent.size() + 1, 1 + random.Below(6), kind);
        message.name = static_cast<uint16_t>(from * 10 + random.Below(2));
        sent.push_back(message);
        world[from].client.Send(message);
      }
      world.RunFor(random.Below(300'000));
      if (dead != kNodes) {
        world.Revive(dead);
        dead = kNodes;
      }
      const size_t victim = random.Below(kNodes);
      switch (random.Below(4)) {
        case 0:
          world.Kill(victim);
          if (routed() && random.Chance(0.5)) {
            world.Revive(victim);
          } else {
            dead = victim;
            world.RunFor(2 * world.longest_ns());
          }
          break;
        case 1:
          // What waited in its backlog goes all the same.
          world.Reset(victim);
          break;
        case 2:
          Close(&world, victim);
          break;
        default:
          break;
      }
    }
    if (dead != kNodes) {
      world.Revive(dead);
    }
    ASSERT_TRUE(world.Run());
    for (size_t at = 0; at < kNodes; ++at) {
      std::set<uint64_t> ended;
      for (const Ending& ending : world[at].client.endings) {
        EXPECT_TRUE(ended.insert(ending.serial).second) << "ended twice";
        const TestMessage& message = sent[ending.serial - 1];
        if (!ending.completed) {
          EXPECT_EQ(ending.status, Status::kRemoteError) << ending.serial;
          EXPECT_EQ(ending.detail, kBadMkey) << ending.serial;
          EXPECT_NE(message.kind, Kind::kPlain) << ending.serial;
          continue;
        }
        const Counts counts = Executions(
            &world, ending.serial, static_cast<size_t>(message.peer.lo & 0xff));
        EXPECT_NE(std::count(counts.begin(), counts.end(), message.packets), 0)
            << ending.serial << " completed";
      }
    }
  }
}

// Those match no PDC, while others' initiators live and have to be asked.
TEST_P(FunctionTest, TargetForgetsFunctionsThatLeftFirst) {
  World world(TestSeed(), 4, Small(4));
  Prepare(&world);
  // The first is used least.
  for (uint16_t i = 0; i < 4; ++i) {
    TestMessage message = To(0, i + 1u);
    message.name = i;
    world[i < 2 ? 1 : 2].client.Send(message);
    ASSERT_TRUE(world.Run());
  }
  world.Kill(2);
  world[3].client.Send(To(0, 10));
  ASSERT_TRUE(world.Run());
  EXPECT_EQ(world[0].transport.statistic(Statistic::kRxRefused), 0u);
  EXPECT_EQ(world[0].client.closed, 2u);
  EXPECT_EQ(world[0].client.closed_in_error, 2u);
  EXPECT_EQ(world[0].transport.open_pdcs().target, 3u);
  ExpectAllCompleted(&world[3], 1);
}

}  // namespace
}  // namespace heddle::soft::transport
