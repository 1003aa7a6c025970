// SPDX-License-Identifier: Apache-2.0
// Messages of every kind over networks of every kind: each once, ordered ones
// in order, guaranteed answers and return data whole, nothing left behind.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/rules/answer.h"
#include "tests/seed.h"
#include "tests/soft/transport/world.h"

namespace heddle::soft::transport {
namespace {

using contract::Statistic;

struct Case {
  const char* name;
  bool ordered;
  Weather weather;
  double refuse = 0;
  bool congestion = false;
  uint32_t first_psn = 0;
  double unheard = 0;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

// Sends `count` messages of mixed kinds from `from` to `to`.
void SendMixed(World* world, sim::base::Random* random, size_t from, size_t to,
               const Case& c) {
  static uint64_t serial = 0;
  for (int i = 0; i < 400; ++i) {
    TestMessage message;
    message.serial = ++serial;
    message.kind = static_cast<Kind>(random->Below(4));
    message.packets = message.kind == Kind::kRead ? 1 : 1 + random->Below(12);
    message.data_packets =
        message.kind == Kind::kRead ? 1 + random->Below(40) : 0;
    message.name = static_cast<uint16_t>(random->Below(3));
    message.ordered = c.ordered;
    message.peer = World::Address(to);
    (*world)[from].client.Send(message);
  }
}

class DeliveryTest : public testing::TestWithParam<Case> {
 protected:
  void Deliver(uint32_t seed);
};

void DeliveryTest::Deliver(uint32_t seed) {
  const Case& c = GetParam();
  sim::base::Random random(seed);
  TransportLimits limits;
  limits.pdcs = 16;
  limits.messages = 128;
  if (c.first_psn != 0) {
    limits.first_psn = c.first_psn;
  }
  World world(random.Next(), 2, limits);
  world.weather = c.weather;
  world.rules.congestion = c.congestion ? 1 : 0;
  world.rules.cwnd_bytes = c.congestion ? 100'000 : 0;
  world.rules.base_rtt_ns = 5000;
  world.Configure();
  for (size_t i = 0; i < 2; ++i) {
    world[i].client.refuse = c.refuse;
    world[i].client.unheard = c.unheard;
    SendMixed(&world, &random, i, 1 - i, c);
  }
  ASSERT_TRUE(world.Run()) << "at " << world.now_ns() << " ns";
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(world[i].client.endings.size(), 400u);
    for (const Ending& ending : world[i].client.endings) {
      EXPECT_TRUE(ending.completed)
          << ending.serial << " status " << static_cast<int>(ending.status)
          << " detail " << ending.detail;
    }
    EXPECT_EQ(world[i].client.taken.size(), 400u);
    EXPECT_EQ(world[i].client.returns_open, 0u);
    EXPECT_EQ(world[i].client.closed, 0u);
  }
  if (std::string(c.name).ends_with("Fine")) {
    EXPECT_EQ(world.Total(Statistic::kTimeouts), 0u);
  }
  std::printf(
      "%llu ns, %llu packets, %llu again, %llu ACKs, %llu time-outs\n",
      static_cast<unsigned long long>(world.now_ns()),
      static_cast<unsigned long long>(world.Total(Statistic::kTxRequests)),
      static_cast<unsigned long long>(
          world.Total(Statistic::kTxRetransmissions)),
      static_cast<unsigned long long>(world.Total(Statistic::kTxAcks)),
      static_cast<unsigned long long>(world.Total(Statistic::kTimeouts)));
}

TEST_P(DeliveryTest, EachMessageOnceAndWhole) {
  Deliver(TestSeed());
}

// Worlds in which a PDC once stopped for ever: a Clear Command was lost, or the
// ACK behind it, when the window was full of answered packets.
TEST_P(DeliveryTest, WorldsThatOnceStopped) {
  for (const uint32_t seed : {1075u, 1153u, 1264u, 7037u, 2450070894u}) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(Deliver(seed));
  }
}

// Messages that are posted one by one: requests of an open PDC that ask for an
// ACK, of the 32 behind its first.
class AckRequestTest : public testing::Test {
 protected:
  uint32_t CountAsking(double unheard, bool congestion);
};

uint32_t AckRequestTest::CountAsking(double unheard, bool congestion) {
  TransportLimits limits;
  limits.first_psn = 0x1000;
  World world(1, 2, limits);
  world.rules.congestion = congestion ? 1 : 0;
  world.rules.cwnd_bytes = 100'000;
  world.rules.base_rtt_ns = 5000;
  world.Configure();
  world[0].client.unheard = unheard;
  uint32_t asking = 0;
  world[0].wire.filter = [&asking](std::span<const uint8_t> bytes) {
    const auto header = contract::wire::PdsRequest::Decode(bytes.data());
    if (header.type == contract::PdsType::kRodReq) {
      asking += header.ar;
    }
    return true;
  };
  const auto send = [&world](uint64_t serial) {
    world[0].client.Send({.serial = serial, .peer = World::Address(1)});
    EXPECT_TRUE(world.RunUntil(
        [&] { return world[1].client.taken.contains(serial); }, 1'000'000));
  };
  send(1);
  EXPECT_TRUE(world.Run());
  EXPECT_EQ(asking, 1u) << "it opens the PDC";
  asking = 0;
  for (uint64_t serial = 2; serial <= 33; ++serial) {
    send(serial);
  }
  EXPECT_TRUE(world.Run()) << "the rest is acknowledged in time";
  EXPECT_EQ(world.Total(Statistic::kTimeouts), 0u);
  return asking;
}

TEST_F(AckRequestTest, WhatIsWaitedForIsAskedForAtOnce) {
  EXPECT_EQ(CountAsking(0, false), 32u);
}

TEST_F(AckRequestTest, WhatNobodyWaitsForIsAskedForEachSixteenth) {
  EXPECT_EQ(CountAsking(1, false), 2u);
}

TEST_F(AckRequestTest, CongestionControlIsContentWithDelayedAcks) {
  EXPECT_EQ(CountAsking(1, true), 2u);
  EXPECT_EQ(CountAsking(0, true), 32u);
}

// The sender subtracts it, so that a delayed ACK measures the network alone.
TEST(DelayedAckTest, ReportsItsDelay) {
  World world(1, 2);
  world.rules.congestion = 1;
  world.rules.cwnd_bytes = 100'000;
  world.rules.base_rtt_ns = 5000;
  world.Configure();
  world[0].client.unheard = 1;
  std::vector<uint16_t> times;
  world[1].wire.filter = [&times](std::span<const uint8_t> bytes) {
    using contract::wire::PdsAck;
    using contract::wire::PdsAckCc;
    if (PdsAck::Decode(bytes.data()).type == contract::PdsType::kAckCc) {
      times.push_back(
          PdsAckCc::Decode(bytes.data() + PdsAck::kBytes).service_time);
    }
    return true;
  };
  for (uint64_t serial = 1; serial <= 2; ++serial) {
    world[0].client.Send({.serial = serial, .peer = World::Address(1)});
    ASSERT_TRUE(world.Run());
  }
  const uint64_t delay = world.port.ack_delay_ticks * World::kTickNs;
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0], 1) << "that of the first is not delayed";
  EXPECT_EQ(times[1], rules::ServiceField(delay));
}

constexpr Weather kFine{};
constexpr Weather kLossy{.loss = 0.05};
constexpr Weather kShuffled{.reordering = 0.3};
constexpr Weather kDoubled{.duplication = 0.3};
constexpr Weather kJammed{.blocked = 0.3};
constexpr Weather kStorm{.loss = 0.05,
                         .duplication = 0.05,
                         .reordering = 0.1,
                         .blocked = 0.1,
                         .marking = 0.1};

INSTANTIATE_TEST_SUITE_P(
    Weathers, DeliveryTest,
    testing::Values(
        Case{"RodFine", true, kFine}, Case{"RodLossy", true, kLossy},
        Case{"RodShuffled", true, kShuffled},
        Case{"RodDoubled", true, kDoubled}, Case{"RodJammed", true, kJammed},
        Case{"RodRefused", true, kFine, 0.1},
        Case{"RodStorm", true, kStorm, 0.05},
        Case{"RodStormNscc", true, kStorm, 0.05, true},
        Case{"RodStormPsnWraps", true, kStorm, 0.05, false, 0xffffffd0},
        Case{"RodStormUnheard", true, kStorm, 0.05, false, 0, 0.5},
        Case{"RudStormUnheard", false, kStorm, 0.05, false, 0, 0.5},
        Case{"RudFine", false, kFine}, Case{"RudLossy", false, kLossy},
        Case{"RudShuffled", false, kShuffled},
        Case{"RudDoubled", false, kDoubled}, Case{"RudJammed", false, kJammed},
        Case{"RudRefused", false, kFine, 0.1},
        Case{"RudStorm", false, kStorm, 0.05},
        Case{"RudStormNscc", false, kStorm, 0.05, true},
        Case{"RudStormPsnWraps", false, kStorm, 0.05, false, 0xffffffd0}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace heddle::soft::transport
