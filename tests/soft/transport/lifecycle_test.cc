// SPDX-License-Identifier: Apache-2.0
// How PDCs end, make room and open again.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/rules/psn.h"
#include "tests/seed.h"
#include "tests/soft/transport/world.h"

namespace heddle::soft::transport {

using contract::wire::PdsAck;
using contract::wire::PdsNack;
using contract::wire::PdsRequest;

namespace {

using contract::NackCode;
using contract::PdsType;
using contract::Statistic;
using contract::Status;

TestMessage To(size_t node, uint64_t serial, bool ordered = true) {
  TestMessage message;
  message.serial = serial;
  message.ordered = ordered;
  message.peer = World::Address(node);
  return message;
}

bool IsSyn(std::span<const uint8_t> bytes) {
  const auto header = PdsRequest::Decode(bytes.data());
  return (header.type == PdsType::kRodReq || header.type == PdsType::kRudReq) &&
         header.syn != 0;
}

bool IsCloseCommand(std::span<const uint8_t> bytes) {
  const auto header = contract::wire::PdsCp::Decode(bytes.data());
  return header.type == PdsType::kCp &&
         header.cp_type == contract::CpType::kCloseCommand;
}

std::vector<uint8_t> Copy(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

TransportLimits Small(uint32_t pdcs) {
  TransportLimits limits;
  limits.pdcs = pdcs;
  limits.messages = 256;
  return limits;
}

void ExpectAllCompleted(const World& world, Node* node, size_t count) {
  EXPECT_EQ(node->client.endings.size(), count) << "at " << world.now_ns();
  for (const Ending& ending : node->client.endings) {
    EXPECT_TRUE(ending.completed)
        << ending.serial << " status " << static_cast<int>(ending.status)
        << " detail " << ending.detail;
  }
}

class LifecycleTest : public testing::TestWithParam<bool> {
 protected:
  bool ordered() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Modes, LifecycleTest, testing::Bool(),
                         [](const auto& param) {
                           return param.param ? "Rod" : "Rud";
                         });

TEST_P(LifecycleTest, SilenceForDeadTimeEndsWithPeerUnreachable) {
  World world(TestSeed(), 2, Small(4));
  world[1].dead = true;
  world[0].client.repost = false;
  for (uint64_t i = 1; i <= 100; ++i) {
    world[0].client.Send(To(1, i, ordered()));
  }
  const uint64_t begun = world.now_ns();
  const uint64_t dead_ns = world.port.dead_ticks * World::kTickNs;
  ASSERT_TRUE(world.Run(10 * dead_ns));
  EXPECT_GE(world.now_ns() - begun, dead_ns);
  EXPECT_LT(world.now_ns() - begun, dead_ns + dead_ns / 4);
  ASSERT_EQ(world[0].client.endings.size(), 100u);
  for (const Ending& ending : world[0].client.endings) {
    EXPECT_FALSE(ending.completed);
    EXPECT_EQ(ending.status, Status::kPeerUnreachable);
    // A window of them left; the others may go elsewhere.
    EXPECT_EQ(ending.transmitted, ending.serial <= rules::kWindow);
  }
  EXPECT_EQ(world.Total(Statistic::kDeadPeers), 1u);
}

// What they held up at the client waits for no later event.
TEST_P(LifecycleTest, ClientHasATurnWhenMessagesWereGivenUp) {
  World world(TestSeed(), 2, Small(4));
  world[1].dead = true;
  Node& node = world[0];
  node.client.repost = false;
  node.client.Send(To(1, 1, ordered()));
  const uint64_t dead_ns = world.port.dead_ticks * World::kTickNs;
  ASSERT_TRUE(world.RunUntil([&] { return !node.client.endings.empty(); },
                             10 * dead_ns));
  EXPECT_LE(node.transport.deadline_ns(), world.now_ns() + 1);
}

TEST_P(LifecycleTest, ReadEndsWhenItsTargetDiesBeforeTheData) {
  World world(TestSeed(), 2, Small(4));
  TestMessage read = To(1, 1, ordered());
  read.kind = Kind::kRead;
  read.data_packets = 3;
  world[0].client.Send(read);
  // Acknowledged, but no data comes.
  world[1].wire.filter = [](std::span<const uint8_t> bytes) {
    const auto type = contract::wire::PdsPrologue::Decode(bytes.data()).type;
    return type != PdsType::kRodReq && type != PdsType::kRudReq;
  };
  ASSERT_TRUE(world.RunUntil(
      [&] { return world.Total(Statistic::kRxAcks) > 0; }, 1'000'000));
  world[1].dead = true;
  ASSERT_TRUE(world.Run());
  ASSERT_EQ(world[0].client.endings.size(), 1u);
  EXPECT_EQ(world[0].client.endings[0].status, Status::kPeerUnreachable);
  EXPECT_TRUE(world[0].client.endings[0].transmitted);
}

TEST_P(LifecycleTest, PeerThatIsBehindIsNotDead) {
  World world(TestSeed(), 2, Small(4));
  world[1].dead = true;  // Stopped: takes nothing.
  world[0].wire.receiver = world[0].wire.behind = 7;
  world[0].client.Send(To(1, 1, ordered()));
  world.RunFor(5 * world.port.dead_ticks * World::kTickNs);
  EXPECT_TRUE(world[0].client.endings.empty());
  world[1].dead = false;
  world[0].wire.behind = UINT64_MAX;
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 1);
}

TEST_P(LifecycleTest, AnswerThatArrivesMeanwhileIsReadBeforeATimeout) {
  World world(TestSeed(), 2, Small(4));
  world[1].dead = true;  // The first SYN is lost.
  world[0].wire.receiver = world[0].wire.answers = 7;
  world[0].client.Send(To(1, 1, ordered()));
  world.RunFor(world.port.dead_ticks * World::kTickNs / 2);
  EXPECT_TRUE(world[0].wire.news);
  EXPECT_EQ(world.Total(Statistic::kTimeouts), 0u);
  EXPECT_EQ(world.Total(Statistic::kTxRetransmissions), 0u);
  world[1].dead = world[0].wire.news = false;
  world[0].wire.answers = UINT64_MAX;
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 1);
}

TEST_P(LifecycleTest, PeerIsDeadWhoeverElseIsBehind) {
  for (const uint32_t receiver : {7, 0}) {  // A port that nobody has, too.
    World world(TestSeed(), 2, Small(4));
    world[1].dead = true;
    world[0].wire.receiver = receiver;
    world[0].wire.behind = 8;
    world[0].client.Send(To(1, 1, ordered()));
    ASSERT_TRUE(world.Run(2 * world.port.dead_ticks * World::kTickNs));
    ASSERT_EQ(world[0].client.endings.size(), 1u);
    EXPECT_EQ(world[0].client.endings[0].status, Status::kPeerUnreachable);
  }
}

TEST_P(LifecycleTest, BlockedWireIsNotADeadPeer) {
  World world(TestSeed(), 2, Small(4));
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(world.Run());
  world[0].wire.shut = true;
  world[0].client.Send(To(1, 2, ordered()));
  world.RunFor(3 * world.port.dead_ticks * World::kTickNs);
  EXPECT_EQ(world[0].client.endings.size(), 1u);
  world[0].wire.shut = false;
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 2);
}

TEST_P(LifecycleTest, MorePeersThanPdcsTakeTurns) {
  sim::base::Random random(TestSeed());
  constexpr size_t kPeers = 12;
  World world(random.Next(), kPeers + 1, Small(4));
  uint64_t serial = 0;
  for (int round = 0; round < 5; ++round) {
    for (size_t peer = 1; peer <= kPeers; ++peer) {
      world[0].client.Send(To(peer, ++serial, ordered()));
    }
  }
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 5 * kPeers);
  EXPECT_GE(world[0].transport.statistic(Statistic::kPdcEvictions), kPeers - 4);
  EXPECT_GE(world[0].transport.statistic(Statistic::kPdcCloses), kPeers - 4);
  EXPECT_EQ(world.Total(Statistic::kTimeouts), 0u);
}

TEST_P(LifecycleTest, TargetAsksIdleInitiatorsToClose) {
  constexpr size_t kPeers = 12;
  World world(TestSeed(), kPeers + 1, Small(4));
  uint64_t serial = 0;
  for (size_t peer = 1; peer <= kPeers; ++peer) {
    world[peer].client.Send(To(0, ++serial, ordered()));
  }
  ASSERT_TRUE(world.Run());
  for (size_t peer = 1; peer <= kPeers; ++peer) {
    ExpectAllCompleted(world, &world[peer], 1);
  }
  EXPECT_GE(world[0].client.closed, kPeers - 4);
  EXPECT_EQ(world[0].client.closed_in_error, 0u);
  EXPECT_GT(world[0].transport.statistic(Statistic::kRxRefused), 0u);
}

TEST_P(LifecycleTest, StormOfPeersLosesNothing) {
  sim::base::Random random(TestSeed());
  constexpr size_t kNodes = 9;
  World world(random.Next(), kNodes, Small(4));
  world.weather = {
      .loss = 0.03, .duplication = 0.03, .reordering = 0.1, .blocked = 0.05};
  uint64_t serial = 0;
  for (int i = 0; i < 400; ++i) {
    const size_t from = random.Below(kNodes);
    const size_t to = (from + 1 + random.Below(kNodes - 1)) % kNodes;
    TestMessage message = To(to, ++serial, ordered());
    message.kind = static_cast<Kind>(random.Below(4));
    message.packets = message.kind == Kind::kRead ? 1 : 1 + random.Below(4);
    message.data_packets = message.kind == Kind::kRead ? 5 : 0;
    world[from].client.Send(message);
  }
  ASSERT_TRUE(world.Run());
  size_t ended = 0;
  for (size_t i = 0; i < kNodes; ++i) {
    ended += world[i].client.endings.size();
    for (const Ending& ending : world[i].client.endings) {
      EXPECT_TRUE(ending.completed)
          << ending.serial << " detail " << ending.detail;
    }
  }
  EXPECT_EQ(ended, 400u);
}

TEST_P(LifecycleTest, IdlePdcClosesAndOpensAgain) {
  World world(TestSeed(), 2, Small(4));
  world.rules.idle_ticks = 2000;
  world.Configure();
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(world.Run());
  EXPECT_EQ(world[1].client.closed, 0u);
  world.RunFor(2 * 2000 * World::kTickNs);
  EXPECT_EQ(world[1].client.closed, 1u);
  EXPECT_EQ(world[1].client.closed_in_error, 0u);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kPdcCloses), 1u);
  world[0].client.Send(To(1, 2, ordered()));
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 2);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kTxPdcs), 2u);
}

TEST_P(LifecycleTest, LostCloseAcknowledgementClosesAllTheSame) {
  World world(TestSeed(), 2, Small(4));
  world.rules.idle_ticks = 2000;
  world.Configure();
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(world.Run());
  bool seen = false;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    seen = seen || IsCloseCommand(bytes);
    return true;
  };
  int lost = 0;
  world[1].wire.filter = [&](std::span<const uint8_t>) {
    return !seen || lost++ != 0;
  };
  ASSERT_TRUE(world.RunUntil([&] { return seen; }, 10'000'000));
  ASSERT_TRUE(world.RunUntil([&] { return world[0].transport.idle(); },
                             10'000'000'000));
  EXPECT_GT(lost, 1);
  world[0].client.Send(To(1, 2, ordered()));
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 2);
}

TEST_P(LifecycleTest, LateSynOfAClosedPdcIsAnsweredClosing) {
  World world(TestSeed(), 2, Small(4));
  world.rules.idle_ticks = 100;
  world.Configure();
  std::vector<uint8_t> syn;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    if (IsSyn(bytes)) {
      syn = Copy(bytes);
    }
    return true;
  };
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(
      world.RunUntil([&] { return world[1].client.closed == 1; }, 10'000'000));
  NackCode answer = {};
  world[1].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto nack = PdsNack::Decode(bytes.data());
    answer = nack.type == PdsType::kNack ? nack.nack_code : NackCode{};
    return true;
  };
  world.Inject(0, 1, syn);
  world.RunFor(100'000);
  EXPECT_EQ(answer, NackCode::kClosing);
  // The client would have failed at the second copy.
  EXPECT_EQ(world[1].transport.statistic(Statistic::kRxClosing), 1u);
  EXPECT_EQ(world[1].transport.statistic(Statistic::kRxPdcs), 1u);
}

TEST_P(LifecycleTest, PdcidRestsForTheSafetyTime) {
  sim::base::Random random(TestSeed());
  constexpr size_t kPeers = 9;
  World world(random.Next(), kPeers + 1, Small(8));
  world.rules.safety_ticks = 20'000;
  world.Configure();
  const uint64_t safety_ns = world.rules.safety_ticks * World::kTickNs;
  std::map<uint16_t, std::pair<uint32_t, uint64_t>> used;  // Start, last seen.
  uint64_t opened = 0;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto header = PdsRequest::Decode(bytes.data());
    if (IsSyn(bytes)) {
      const uint32_t start = header.psn - header.psn_offset;
      const auto found = used.find(header.spdcid);
      if (found == used.end() || found->second.first != start) {
        ++opened;
        if (found != used.end()) {
          EXPECT_GE(world.now_ns() - found->second.second, safety_ns);
          EXPECT_GE(start - found->second.first, 1u << 16);
        }
      }
      used[header.spdcid] = {start, world.now_ns()};
    }
    return true;
  };
  uint64_t serial = 0;
  for (int i = 0; i < 2500; ++i) {  // Each PDCID several times.
    world[0].client.Send(
        To(1 + static_cast<size_t>(i) % kPeers, ++serial, ordered()));
  }
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 2500);
  EXPECT_GT(opened, 2 * used.size());
  EXPECT_EQ(used.count(0), 0u);
}

// It answers CLOSING, but what it refused so went once only.
TEST_P(LifecycleTest, TargetThatForgotAnIdlePdcIsOpenedAgain) {
  World world(TestSeed(), 2, Small(4));
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(world.Run());
  world.RunFor(4 * world.port.dead_ticks * World::kTickNs);
  ASSERT_EQ(world[1].client.closed_in_error, 1u);
  for (uint64_t i = 2; i <= 20; ++i) {
    TestMessage message = To(1, i, ordered());
    message.packets = 3;
    world[0].client.Send(message);
  }
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 20);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kTxPdcs), 2u);
}

// The target has a PDC of a former process with that PDCID.
TEST_P(LifecycleTest, InvalidSynTakesAnotherPdcid) {
  World world(TestSeed(), 2, Small(8));
  std::vector<uint16_t> spdcids;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto header = PdsRequest::Decode(bytes.data());
    if (!IsSyn(bytes)) {
      return true;
    }
    spdcids.push_back(header.spdcid);
    if (spdcids.size() > 1) {
      return true;
    }
    PdsNack nack;
    nack.type = PdsType::kNack;
    nack.nack_code = NackCode::kInvalidSyn;
    nack.nack_psn = header.psn;
    nack.dpdcid = header.spdcid;
    std::vector<uint8_t> packet(PdsNack::kBytes);
    nack.Encode(packet.data());
    world.Inject(1, 0, packet, 1000);
    return false;
  };
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 1);
  ASSERT_EQ(spdcids.size(), 2u);
  EXPECT_NE(spdcids[0], spdcids[1]);
}

// Of the process that had address and PDCID before.
TEST_P(LifecycleTest, LateAnswersToAnotherDoNotOpenAPdc) {
  constexpr uint16_t kOther = 777;
  for (const bool data : {false, true}) {
    SCOPED_TRACE(data);
    World world(TestSeed(), 2, Small(8));
    uint32_t syns = 0;
    uint32_t unknown = 0;
    world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
      const auto nack = PdsNack::Decode(bytes.data());
      unknown += nack.type == PdsType::kNack &&
                         nack.nack_code == NackCode::kInvDpdcid &&
                         nack.dpdcid == kOther
                     ? 1
                     : 0;
      if (!IsSyn(bytes) || ++syns != 1) {
        return true;
      }
      const auto syn = PdsRequest::Decode(bytes.data());
      std::vector<uint8_t> packet(PdsAck::kBytes);
      if (data) {
        PdsRequest late;
        late.type = syn.type;
        late.next_hdr = contract::NextHdr::kResponseData;
        late.retx = 1;
        late.psn = syn.psn + 20'000;
        late.spdcid = kOther;
        late.dpdcid = syn.spdcid;
        packet.resize(PdsRequest::kBytes +
                      contract::wire::SesResponseData::kBytes);
        late.Encode(packet.data());
      } else {
        PdsAck late;
        late.type = PdsType::kAck;
        late.cack_psn = syn.psn - 20'000;
        late.spdcid = kOther;
        late.dpdcid = syn.spdcid;
        late.Encode(packet.data());
      }
      world.Inject(1, 0, packet);
      return true;
    };
    world[0].client.Send(To(1, 1, ordered()));
    ASSERT_TRUE(world.Run());
    ExpectAllCompleted(world, &world[0], 1);
    EXPECT_EQ(unknown, data ? 1u : 0u);
  }
}

// More of them than a target considers at a time are the ones unused for
// longest.
TEST_P(LifecycleTest, PdcsThatMessagesOnHoldKeepAreNotInTheWay) {
  TransportLimits limits;
  limits.pdcs = 12;
  limits.messages = 64;
  World world(TestSeed(), 3, limits);
  const auto send = [&](size_t node, uint64_t serial, Kind kind) {
    TestMessage message;
    message.serial = serial;
    message.kind = kind;
    message.name = static_cast<uint16_t>(serial);
    message.ordered = GetParam();
    message.peer = World::Address(0);
    world[node].client.Send(message);
    world.RunFor(100'000);
  };
  for (uint64_t serial = 1; serial <= 10; ++serial) {
    send(1, serial, Kind::kHeld);
  }
  for (uint64_t serial = 11; serial <= 13; ++serial) {
    send(2, serial, Kind::kPlain);
  }
  ASSERT_TRUE(world.RunUntil(
      [&] { return world[2].client.endings.size() == 3; }, 100'000'000));
  EXPECT_TRUE(world[1].client.endings.empty());
  EXPECT_EQ(world[0].transport.open_pdcs().target, 12);
  for (uint64_t serial = 1; serial <= 10; ++serial) {
    world[1].client.Finish(serial);
  }
  EXPECT_TRUE(world.Run());
}

TEST_P(LifecycleTest, AFirstRequestComesAgainUntilItsTargetListens) {
  World world(TestSeed(), 2, Small(8));
  world[1].client.listens = false;
  for (uint64_t i = 1; i <= 20; ++i) {
    world[0].client.Send(To(1, i, ordered()));
  }
  world.RunFor(50 * world.port.rto_ticks * World::kTickNs);
  EXPECT_EQ(world[1].wire.sent, 0u);
  EXPECT_EQ(world[1].transport.open_pdcs().target, 0u);
  EXPECT_GT(world[1].transport.statistic(Statistic::kRxRefused), 0u);
  EXPECT_EQ(world[1].transport.statistic(Statistic::kRxPdcs), 0u);
  EXPECT_TRUE(world[0].client.endings.empty());
  world[1].client.listens = true;
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 20);
  for (uint64_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(world[1].client.taken[i].count, 1u) << i;
  }
}

TEST_P(LifecycleTest, ATargetThatNeverListensIsUnreachable) {
  World world(TestSeed(), 2, Small(8));
  world[1].client.listens = false;
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(world.Run(2 * world.port.dead_ticks * World::kTickNs));
  ASSERT_EQ(world[0].client.endings.size(), 1u);
  EXPECT_EQ(world[0].client.endings[0].status, Status::kPeerUnreachable);
  EXPECT_GE(world.now_ns(), world.port.dead_ticks * World::kTickNs);
}

// After a reset by the host, which PDCs outlive.
TEST_P(LifecycleTest, RequestsOfAnOpenPdcComeAgainUntilItsTargetListens) {
  World world(TestSeed(), 2, Small(8));
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(world.Run());
  world[1].client.listens = false;
  for (uint64_t i = 2; i <= 20; ++i) {
    world[0].client.Send(To(1, i, ordered()));
  }
  world.RunFor(50 * world.port.rto_ticks * World::kTickNs);
  EXPECT_EQ(world[1].client.taken.size(), 1u);
  EXPECT_EQ(world[0].client.endings.size(), 1u);
  world[1].client.listens = true;
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 20);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kTxPdcs), 1u);
}

// What it asks of others is its business before.
TEST_P(LifecycleTest, AnInitiatorNeedNotListen) {
  World world(TestSeed(), 2, Small(8));
  world[0].client.listens = false;
  for (uint64_t i = 1; i <= 20; ++i) {
    TestMessage message = To(1, i, ordered());
    message.kind = i % 2 == 0 ? Kind::kRead : Kind::kPlain;
    message.data_packets = i % 2 == 0 ? 5 : 0;
    world[0].client.Send(message);
  }
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(world, &world[0], 20);
}

TEST_P(LifecycleTest, SynOfAnotherStartPsnIsInvalid) {
  World world(TestSeed(), 2, Small(8));
  std::vector<uint8_t> syn;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    syn = syn.empty() ? Copy(bytes) : syn;
    return true;
  };
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(world.Run());
  auto header = PdsRequest::Decode(syn.data());
  header.psn += 1000;
  header.Encode(syn.data());
  NackCode answer = {};
  world[1].wire.filter = [&](std::span<const uint8_t> bytes) {
    answer = PdsNack::Decode(bytes.data()).nack_code;
    return false;
  };
  world.Inject(0, 1, syn);
  world.RunFor(10'000);
  EXPECT_EQ(answer, NackCode::kInvalidSyn);
}

TEST_P(LifecycleTest, TargetForgetsAnInitiatorThatWasKilled) {
  World world(TestSeed(), 2, Small(4));
  world[0].client.Send(To(1, 1, ordered()));
  ASSERT_TRUE(world.Run());
  world[0].dead = true;
  world.RunFor(3 * world.port.dead_ticks * World::kTickNs);
  EXPECT_EQ(world[1].client.closed_in_error, 1u);
}

// With `guaranteed` stored answers and a window of return records.
TEST(TransportMemoryTest, APdcTakesNoMoreThanTheReadmeSays) {
  std::printf("%zu bytes\n", Transport::bytes_per_pdc());
  EXPECT_LE(Transport::bytes_per_pdc(), 4832U);
}

TEST_P(LifecycleTest, ResetEndsSilently) {
  World world(TestSeed(), 2, Small(4));
  world[1].dead = true;
  world[0].client.Send(To(1, 1, ordered()));
  world.RunFor(10'000);
  EXPECT_FALSE(world[0].transport.idle());
  world[0].transport.Reset();
  EXPECT_TRUE(world[0].transport.idle());
  const uint64_t sent = world[0].wire.sent;
  world.RunFor(1'000'000'000);
  EXPECT_EQ(world[0].wire.sent, sent);
  EXPECT_TRUE(world[0].client.endings.empty());
}

}  // namespace
}  // namespace heddle::soft::transport
