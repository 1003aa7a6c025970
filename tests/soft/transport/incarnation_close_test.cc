// SPDX-License-Identifier: Apache-2.0
// Closes in order, and what is left of a peer that is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tests/seed.h"
#include "tests/soft/transport/incarnation.h"

namespace heddle::soft::transport {
namespace {

TEST_P(IncarnationTest, RestartsAreCountedAndOrderlyClosesAreNot) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  contract::TransportCfg rules = world.rules;
  rules.close = 1;
  world[1].transport.Configure(world.port, rules);
  world.RunFor(10'000'000);
  ASSERT_EQ(world[0].transport.statistic(Statistic::kPdcCloses), 1u);
  world[0].client.Send(To(1, 2));
  ASSERT_TRUE(world.Run());
  EXPECT_EQ(world[0].transport.statistic(Statistic::kPdcRestarts), 0u);
  for (uint64_t restarts = 1; restarts <= 3; ++restarts) {
    world.Kill(1);
    world.Revive(1);
    for (uint64_t i = 0; i < 100; ++i) {
      world[0].client.Send(To(1, 100 * restarts + i, 3));
    }
    ASSERT_TRUE(world.Run());
    EXPECT_EQ(world[0].transport.statistic(Statistic::kPdcRestarts), restarts);
  }
  // The Close Command finds out: nothing was to be opened again.
  world.Kill(1);
  world.Revive(1);
  world[0].transport.Configure(world.port, rules);
  world.RunFor(10'000'000);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 0u);
  EXPECT_EQ(world[0].transport.statistic(Statistic::kPdcRestarts), 3u);
  EXPECT_EQ(world[1].transport.statistic(Statistic::kPdcRestarts), 0u);
}

TEST_P(IncarnationTest, CloseCommandToAPeerThatIsGoneCloses) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  world.Kill(1);
  world.Revive(1);
  world.rules.idle_ticks = 1;
  world.Configure();
  world[0].client.Send(To(1, 2));  // So that time begins to count.
  ASSERT_TRUE(world.RunUntil(
      [&] {
        return world[0].client.endings.size() == 2 &&
               world[0].transport.open_pdcs().initiator == 0;
      },
      world.port.dead_ticks * World::kTickNs / 2));
  world.rules.idle_ticks = 0;
  world.Configure();
  world[0].client.Send(To(1, 3));
  ASSERT_TRUE(world.Run());
  world.Kill(1);
  world.Revive(1);
  world.rules.close = 1;
  world.Configure();
  world.rules.close = 0;
  ASSERT_TRUE(world.Run(world.port.dead_ticks * World::kTickNs / 2));
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 0u);
  ExpectAllCompleted(&world[0], 3);
}

// Nothing is left at either side, whichever closes, though packets are lost.
TEST_P(IncarnationTest, OrderlyCloseEndsBothDirections) {
  sim::base::Random random(TestSeed());
  for (int run = 0; run < 10 && !HasFailure(); ++run) {
    World world(random.Next(), 3, Small(8));
    // A full store of answers is cleared one by one, each after time-outs where
    // packets are lost: no PDC is forgotten meanwhile.
    world.port.dead_ticks *= 20;
    world.Configure();
    Prepare(&world);
    uint64_t serial = 0;
    for (int i = 0; i < 100; ++i) {
      const size_t from = random.Below(3);
      world[from].client.Send(To((from + 1 + random.Below(2)) % 3, ++serial,
                                 1 + random.Below(3),
                                 static_cast<Kind>(random.Below(4))));
    }
    world.weather = {.loss = 0.1, .duplication = 0.1, .reordering = 0.1};
    // While there is traffic: it ends before the PDCs do.
    world.RunFor(random.Below(100'000));
    bool closed = false;
    for (int i = 0; i < 20'000 && !closed; ++i) {
      Close(&world, 0);
      world.RunFor(100'000);
      const auto open = world[0].transport.open_pdcs();
      closed = open.initiator == 0 && open.target == 0 &&
               world[0].client.done() && world[1].client.done() &&
               world[2].client.done();
    }
    EXPECT_TRUE(closed);
    size_t ended = 0;
    for (size_t i = 0; i < 3; ++i) {
      ended += world[i].client.endings.size();
      EXPECT_EQ(world[i].client.closed_in_error, 0u);
      for (const Ending& ending : world[i].client.endings) {
        EXPECT_TRUE(ending.completed) << ending.serial;
      }
    }
    EXPECT_EQ(ended, 100u);
  }
}

// A write of `close` acts on the PDCs of that moment, and once.
TEST_P(IncarnationTest, CloseActsOnce) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  world[1].client.Send(To(0, 2));
  ASSERT_TRUE(world.Run());
  uint32_t asked = 0;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto ack = PdsAck::Decode(bytes.data());
    const bool ask =
        ack.type != PdsType::kCp && ack.req == contract::AckReq::kClose;
    asked += ask ? 1 : 0;
    return !ask;  // Lost.
  };
  world[0].wire.shut = true;  // It goes when there is room.
  Close(&world, 0);
  EXPECT_LE(world[0].transport.deadline_ns(), world.now_ns());
  world.RunFor(100'000);
  EXPECT_EQ(asked, 0u);
  world[0].wire.shut = false;
  world.RunFor(10'000'000);
  EXPECT_EQ(asked, 1u);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 0u);
  EXPECT_EQ(world[0].transport.open_pdcs().target, 1u);
  world[0].wire.filter = nullptr;
  world[0].client.Send(To(1, 3));
  ASSERT_TRUE(world.Run());
  world.RunFor(10'000'000);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 1u) << "opened later";
  Close(&world, 0);
  world.RunFor(10'000'000);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 0u);
  EXPECT_EQ(world[0].transport.open_pdcs().target, 0u);
  EXPECT_EQ(world[1].transport.open_pdcs().initiator, 0u);
  ExpectAllCompleted(&world[0], 2);
}

}  // namespace
}  // namespace heddle::soft::transport
