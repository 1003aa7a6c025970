// SPDX-License-Identifier: Apache-2.0
// PDCIDs of incarnations: blocks, and which are not used again.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tests/seed.h"
#include "tests/soft/transport/incarnation.h"

namespace heddle::soft::transport {
namespace {

// It executed the message, and ended before anybody heard of that. Each SYN
// goes to one function: an ACK of the first must not open a PDC at the second.
TEST_P(IncarnationTest, SynsToAnotherFunctionHaveAnotherPdcid) {
  World world(TestSeed(), 2, Small(4));
  Prepare(&world);
  std::vector<uint16_t> spdcids;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    if (IsSyn(bytes)) {
      spdcids.push_back(PdsRequest::Decode(bytes.data()).spdcid);
    }
    return true;
  };
  world[1].wire.filter = [](std::span<const uint8_t>) { return false; };
  world[0].client.Send(To(1, 1, 3));
  world.RunFor(world.port.rto_ticks * World::kTickNs / 2);
  EXPECT_EQ(Executions(&world, 1), (Counts{3}));
  world.Kill(1);
  world.Revive(1);
  ASSERT_TRUE(world.Run());
  ExpectAllCompleted(&world[0], 1);
  EXPECT_EQ(Executions(&world, 1), (Counts{3, 3}));
  if (routed()) {
    EXPECT_NE(spdcids.front(), spdcids.back());
  }
}

// What a target answers for PDCIDs that are none.
TEST_P(IncarnationTest, TargetTellsWhatItHadFromWhatItNeverHad) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  std::vector<uint8_t> request;
  world[0].wire.filter = [&](std::span<const uint8_t> bytes) {
    if (IsRequest(bytes) && !IsSyn(bytes)) {
      request = Copy(bytes);
    }
    return true;
  };
  world[0].client.Send(To(1, 2));
  ASSERT_TRUE(world.Run());
  // Its initiator is silent for good.
  world[0].dead = true;
  world.RunFor(3 * world.port.dead_ticks * World::kTickNs);
  ASSERT_EQ(world[1].client.closed_in_error, 1u);
  ASSERT_EQ(world[1].transport.open_pdcs().target, 0u);
  std::vector<NackCode> answers;
  const auto header = PdsRequest::Decode(request.data());
  std::vector<uint8_t> control(PdsCp::kBytes);
  PdsCp cp;
  cp.type = PdsType::kCp;
  cp.psn = header.psn;
  cp.spdcid = header.spdcid;
  cp.dpdcid = header.dpdcid;
  const auto offer = [&] {
    world.Inject(0, 1, request);
    for (const contract::CpType type :
         {contract::CpType::kAckRequest, contract::CpType::kCloseCommand,
          contract::CpType::kClearCommand}) {
      cp.cp_type = type;
      cp.Encode(control.data());
      world.Inject(0, 1, control);
    }
    world.RunFor(10'000);
    return std::exchange(answers, {});
  };
  RecordNacks(&world[1], &answers);
  EXPECT_EQ(offer(), std::vector<NackCode>(3, NackCode::kClosing));
  world.Reset(1);
  EXPECT_EQ(offer(), std::vector<NackCode>(3, NackCode::kInvDpdcid));
  world.Kill(1);
  world.Revive(1);
  RecordNacks(&world[1], &answers);
  EXPECT_EQ(offer(), std::vector<NackCode>(3, NackCode::kInvDpdcid));
}

// An initiator's PDC with that PDCID is no reason to be silent.
TEST_P(IncarnationTest, PdcidThatIsAnInitiatorsNowIsUnknownToOthers) {
  World world(TestSeed(), 2, Small(4));
  Prepare(&world);
  uint16_t spdcid = 0;
  world[1].wire.filter = [&](std::span<const uint8_t> bytes) {
    if (IsRequest(bytes)) {
      spdcid = PdsRequest::Decode(bytes.data()).spdcid;
    }
    return true;
  };
  world[1].client.Send(To(0, 1));
  ASSERT_TRUE(world.Run());
  std::vector<NackCode> answers;
  RecordNacks(&world[1], &answers);
  std::vector<uint8_t> packet(PdsCp::kBytes);
  PdsCp cp;
  cp.type = PdsType::kCp;
  cp.cp_type = contract::CpType::kAckRequest;
  cp.spdcid = 0x7777;
  cp.dpdcid = spdcid;
  cp.Encode(packet.data());
  world.Inject(0, 1, packet);
  packet.resize(100);
  for (const auto next :
       {contract::NextHdr::kRequestStd, contract::NextHdr::kResponseData}) {
    PdsRequest request;
    request.type = PdsType::kRodReq;
    request.next_hdr = next;
    request.spdcid = 0x7777;
    request.dpdcid = spdcid;
    request.Encode(packet.data());
    world.Inject(0, 1, packet);
  }
  world.RunFor(10'000);
  EXPECT_EQ(answers, std::vector<NackCode>(3, NackCode::kInvDpdcid));
}

TEST_P(IncarnationTest, TwoThousandPdcs) {
  constexpr uint16_t kPdcs = 2000;
  TransportLimits limits;
  World world(TestSeed(), 2, limits);
  Prepare(&world);
  for (uint64_t round = 0; round < 2; ++round) {
    for (uint16_t i = 0; i < kPdcs; ++i) {
      TestMessage message = To(1, round * kPdcs + i + 1);
      message.name = i;
      world[0].client.Send(message);
    }
    ASSERT_TRUE(world.Run());
    ExpectAllCompleted(&world[0], (round + 1) * kPdcs);
    EXPECT_EQ(world[0].transport.open_pdcs().initiator, kPdcs);
    EXPECT_EQ(world[1].transport.open_pdcs().target, kPdcs);
  }
  EXPECT_EQ(world.Total(Statistic::kTxPdcs), kPdcs);
  EXPECT_EQ(world[0].wire.blocks.size(), 63u);  // One of 31, 62 of 32.
  Close(&world, 1);
  world.RunFor(20'000'000);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 0u);
  EXPECT_EQ(world[1].transport.open_pdcs().target, 0u);
  // All rested, and only a spare one is kept.
  EXPECT_EQ(world[0].wire.blocks.size(), 1u);
  EXPECT_EQ(world[1].wire.blocks.size(), 1u);
}

// Other functions of the address have the rest.
TEST_P(IncarnationTest, BlocksThatAreShortAreSharedInTime) {
  constexpr size_t kPeers = 60;
  for (const size_t scarce : {size_t{0}, size_t{1}}) {
    World world(TestSeed(), kPeers + 1, Small(100));
    Prepare(&world);
    world.FreeBlocks(0).resize(scarce);  // One of 31.
    for (uint64_t i = 0; i < 3 * kPeers; ++i) {
      const size_t peer = 1 + i % kPeers;
      world[0].client.Send(To(peer, 2 * i + 1));
      world[peer].client.Send(To(0, 2 * i + 2));
    }
    if (scarce == 0) {
      world.RunFor(10'000'000);
      EXPECT_TRUE(world[0].client.endings.empty());
      EXPECT_LE(world[0].transport.deadline_ns(),
                world.now_ns() + world.port.rto_ticks * World::kTickNs);
      world.FreeBlocks(0).push_back(64);  // Another function left.
    }
    ASSERT_TRUE(world.Run());
    ExpectAllCompleted(&world[0], 3 * kPeers);
    EXPECT_EQ(world[0].wire.blocks.size(), 1u);
    EXPECT_TRUE(world.FreeBlocks(0).empty());
  }
}

// Another function that had it would say INV_DPDCID for what this one may have
// executed.
TEST_P(IncarnationTest, BlockOfATargetPdcThatEndedInErrorIsKept) {
  World world(TestSeed(), 3, Small(100));
  Prepare(&world);
  const auto fill = [&](uint64_t first) {
    for (uint16_t i = 0; i < 40; ++i) {
      TestMessage message = To(1, first + i);
      message.name = i;
      world[0].client.Send(message);
    }
    ASSERT_TRUE(world.Run());
  };
  const auto empty = [&] {
    Close(&world, 1);
    world.RunFor(10'000'000);
    EXPECT_EQ(world[1].transport.open_pdcs().target, 0u);
  };
  fill(1);
  EXPECT_EQ(world[1].wire.blocks.size(), 2u);
  empty();
  EXPECT_EQ(world[1].wire.blocks.size(), 1u);
  fill(100);
  world.Kill(0);
  world.RunFor(3 * world.port.dead_ticks * World::kTickNs);
  EXPECT_EQ(world[1].transport.open_pdcs().target, 0u);
  EXPECT_EQ(world[1].wire.blocks.size(), 2u);
  world.Reset(1);
  EXPECT_EQ(world[1].wire.blocks.size(), 0u);
}

// So that what is late for one of the former incarnation finds none.
TEST_P(IncarnationTest, ResetTakesOtherPdcids) {
  World world(TestSeed(), 2, Small(4));
  Begin(&world);
  const std::set<uint16_t> before = world[0].wire.blocks;
  world.Reset(0);
  EXPECT_EQ(world[0].transport.open_pdcs().initiator, 0u);
  world[0].client.Send(To(1, 2));
  ASSERT_TRUE(world.Run());
  for (const uint16_t first : world[0].wire.blocks) {
    EXPECT_EQ(before.count(first), 0u);
  }
  ExpectAllCompleted(&world[0], 2);
}

}  // namespace
}  // namespace heddle::soft::transport
