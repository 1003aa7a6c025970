// SPDX-License-Identifier: Apache-2.0
// Operations for stuck peers hold up nobody else, and none is lost.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/queue/tx_waits_bench.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

TxDesc Send(uint32_t peer, uint64_t op_context) {
  TxDesc d;
  d.opcode = Opcode::kSend;
  d.flags = contract::kTxFlagCompletion;
  d.peer = peer;
  d.op_context = op_context;
  d.length = d.local_length = 1000;
  d.segments = 1;
  d.local_iova = 0x123456789a0 + op_context;
  return d;
}

// Of one to four slots, payload or segments behind it.
void PostRandom(Bench* b, uint32_t ctx, uint32_t peer, uint64_t op_context) {
  TxDesc d = Send(peer, op_context);
  std::vector<uint8_t> extension;
  switch (b->rng() % 6) {
    case 0:
      d.flags |= contract::kTxFlagInline;
      d.length = b->rng() % 17;
      d.segments = 0;
      break;
    case 1:
    case 2:
      d.flags |= contract::kTxFlagInlineExt;
      d.length = b->rng() % 193;
      d.segments = 0;
      d.local_length = 0;
      d.local_iova = 0;
      d.ext_slots = uint8_t((d.length + 63) / 64);
      extension.resize(d.length);
      for (uint8_t& byte : extension) byte = uint8_t(b->rng());
      break;
    case 3: {
      std::array<contract::TxSegment, 4> segments = {};
      d.segments = uint8_t(2 + b->rng() % 3);
      d.length = 0;
      for (uint32_t i = 0; i < d.segments; ++i) {
        segments[i].iova = op_context * 16 + i;
        segments[i].length = 1 + b->rng() % 100;
        d.length += segments[i].length;
      }
      d.ext_slots = 1;
      extension.resize(sizeof segments);
      std::memcpy(extension.data(), &segments, sizeof segments);
      break;
    }
    default:
      break;
  }
  if (b->rng() % 5 == 0) d.flags |= contract::kTxFlagMore;
  if (b->rng() % 500 == 0) d.flags |= contract::kTxFlagFence;
  if (b->rng() % 20 == 0) {
    d = TxDesc{};
    extension.clear();
  }
  b->Post(ctx, d, extension);
}

TEST(TxWaitsTest, AStuckPeerHoldsAnEighthAndNobodyUp) {
  Bench b(Seed(1));
  b.Enable(0, 7);
  b.stuck[Bench::Pdc(0, 1)] = true;
  uint64_t n = 0;
  // Its PDC is known to be stuck before there are many.
  for (int i = 0; i < 120; ++i) {
    ASSERT_TRUE(b.Post(0, Send(1, n++)));
    b.Run(100);
  }
  EXPECT_EQ(b.contexts[0].count[1], kPeerShare);
  EXPECT_EQ(b.contexts[0].waiting(), 120 - kPeerShare);
  EXPECT_TRUE(b.dut->idle_o);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(b.Post(0, Send(2, n++)));
    b.Run(50);
  }
  b.Run(2000);
  EXPECT_EQ(b.left, 300 + kPeerShare);
  EXPECT_EQ(b.contexts[0].count[2], 0U);
  b.stuck.reset();
  b.Run(30000);
  EXPECT_TRUE(b.Empty());
  EXPECT_EQ(b.left, 420U);
  EXPECT_EQ(b.kept, b.again);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxWaitsTest, AnOperationOfSeveralDescriptorsThatIsStuckHoldsNobodyUp) {
  Bench b(Seed(11));
  b.Enable(0, 7);
  b.stuck[Bench::Pdc(0, 1)] = true;
  const auto post = [&](uint32_t peer, uint64_t n) {
    TxDesc first = Send(peer, n);
    first.flags |= contract::kTxFlagMore;
    ASSERT_TRUE(b.Post(0, first));
    b.Tick();
    ASSERT_TRUE(b.Post(0, Send(peer, n + 1)));
    b.Run(200);
  };
  post(1, 0);
  for (uint64_t i = 1; i <= 100; ++i) post(2, 2 * i);
  b.Run(2000);
  EXPECT_EQ(b.left, 202U);
  EXPECT_EQ(b.contexts[0].count[2], 0U);
  EXPECT_TRUE(b.dut->idle_o);
  b.stuck.reset();
  b.Run(2000);
  EXPECT_TRUE(b.Empty());
}

// Nobody knows yet that the peer is stuck.
TEST(TxWaitsTest, ABurstToOnePeerLeavesHalfOfTheShare) {
  Bench b(Seed(2));
  b.Enable(0, 11);
  b.end_one_in = 1U << 30;
  for (uint64_t i = 0; i < 600; ++i) {
    ASSERT_TRUE(b.Post(0, Send(1, i)));
    b.Tick();
  }
  b.Run(5000);
  EXPECT_EQ(b.contexts[0].count[1], (contract::kMessageShare + 1) / 2);
  EXPECT_EQ(b.kept, 0U);
  EXPECT_TRUE(b.dut->idle_o);
  b.stuck[Bench::Pdc(0, 1)] = true;
  b.end_one_in = 20;
  b.Run(40000);
  EXPECT_EQ(b.kept, 600U - (contract::kMessageShare + 1) / 2);
  ASSERT_TRUE(b.Post(0, Send(2, 600)));
  b.Run(2000);
  EXPECT_EQ(b.left, (contract::kMessageShare + 1) / 2 + 1U);
  b.stuck.reset();
  b.Run(60000);
  EXPECT_EQ(b.left, 601U);
  EXPECT_TRUE(b.Empty());
}

TEST(TxWaitsTest, PeersWithoutAPdcAreStuck) {
  Bench b(Seed(3));
  b.Enable(0, 8);
  b.parks = true;
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(b.Post(0, Send(1, i)));
    b.Tick();
  }
  b.Run(10000);
  EXPECT_EQ(b.left, kPeerShare);
  EXPECT_EQ(b.kept, 100 - kPeerShare);
  b.parks = false;
  b.Run(20000);
  EXPECT_TRUE(b.Empty());
}

TEST(TxWaitsTest, WithoutAnAreaOperationsWaitInTheRing) {
  Bench b(Seed(4));
  b.Enable(0, 8, Area::kNone);
  b.stuck[Bench::Pdc(0, 1)] = true;
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(b.Post(0, Send(1, i)));
    b.Run(10);
  }
  b.Run(1000);
  EXPECT_EQ(b.left, 200U);
  EXPECT_EQ(b.kept, 0U);
}

// Fills the table up to the limit of peer 1, and posts `more` behind.
void FillAndPost(Bench* b, uint32_t more) {
  b->stuck[Bench::Pdc(0, 1)] = true;
  for (uint64_t i = 0; i < kPeerShare + more; ++i) {
    ASSERT_TRUE(b->Post(0, Send(1, i)));
    b->Run(100);
  }
}
// One at a time would take a host read each.
TEST(TxWaitsTest, ManyComeBackInTheTimeOfAFewHostReads) {
  constexpr uint32_t kWaiting = 160;
  constexpr uint32_t kLatency = 400;
  Bench b(Seed(14));
  b.spill_reads.latency = kLatency;
  b.Enable(0, 8);
  FillAndPost(&b, kWaiting);
  ASSERT_EQ(b.kept, kWaiting);
  b.stuck.reset();
  b.end_one_in = 1;
  b.Run(2 * kWaiting * kLatency / 10);
  EXPECT_EQ(b.left, kPeerShare + kWaiting);
  EXPECT_TRUE(b.Empty());
}

// The same in a ring of 128 slots, until what waits has lost its slots.
void FillAndCrowd(Bench* b, uint32_t more) {
  FillAndPost(b, more);
  for (uint32_t i = kPeerShare + more; b->given < more && i < 2000; ++i) {
    ASSERT_TRUE(b->Post(0, Send(2, i)));
    b->Run(100);
  }
  b->Run(2000);
  ASSERT_EQ(b->kept, more);
  ASSERT_EQ(b->given, more);
}

TEST(TxWaitsTest, ARefusedAreaLeavesTheRingAsItIs) {
  for (const bool read : {true, false}) {
    Bench b(Seed(5));
    // Only the ring slot of the first that waits.
    if (read) {
      b.spill_reads.refuse_from = Bench::Ring(0) + kPeerShare * kSlotBytes;
      b.spill_reads.refuse_to = b.spill_reads.refuse_from + kSlotBytes;
    } else {
      b.writes.refuse_from = 0;
    }
    b.Enable(0, 7);
    FillAndPost(&b, 20);
    for (uint32_t i = 0; i < 128 - kPeerShare - 20; ++i) {
      ASSERT_TRUE(b.Post(0, Send(2, i)));
      b.Run(100);
    }
    b.Run(3000);
    EXPECT_EQ(b.kept, 20U);
    EXPECT_LE(b.given, read ? 64U : 0U);
    EXPECT_LE(b.contexts[0].head, kPeerShare);
    EXPECT_TRUE(b.dut->idle_o);
    b.spill_reads.refuse_from = b.spill_reads.refuse_to;
    b.stuck.reset();
    b.Run(20000);
    EXPECT_TRUE(b.Empty());
    EXPECT_EQ(b.left, 128U);
    EXPECT_TRUE(b.dut->idle_o);
  }
}

TEST(TxWaitsTest, MoreThanSixteenAreSpilledAtATimeAndOthersGoOn) {
  Bench b(Seed(13));
  b.spill_reads.latency = b.writes.latency = 200;
  b.Enable(0, 8);
  b.stuck[Bench::Pdc(0, 1)] = true;
  uint64_t n = 0;
  for (; n < kPeerShare; ++n) {
    ASSERT_TRUE(b.Post(0, Send(1, n)));
    b.Run(100);
  }
  // A ring's worth several times over, every tenth to the stuck peer.
  const uint64_t start = b.cycle;
  uint32_t posted = 0;
  for (int i = 0; i < 100000 && posted < 1500; ++i) {
    if (b.Post(0, Send(posted % 10 == 0 ? 1 : 2, n))) {
      ++posted;
      ++n;
    }
    b.Run(4);
  }
  EXPECT_EQ(posted, 1500U);
  EXPECT_GE(b.together, 16U);
  EXPECT_GT(b.given, 100U);
  // Each on its own would take 400 cycles and more.
  EXPECT_LT(b.cycle - start, 150U * 400U / 2);
  b.stuck.reset();
  for (int i = 0; i < 100000 && !b.Empty(); ++i) b.Tick();
  EXPECT_TRUE(b.Empty());
  EXPECT_EQ(b.kept, b.again);
}

// Without an area of its own the context takes one in the NIC.
TEST(TxWaitsTest, AnAreaInTheNicTakesTheRoleOfOneInHostMemory) {
  Bench b(Seed(15));
  b.Enable(0, 7, Area::kNic);
  FillAndCrowd(&b, 60);
  EXPECT_TRUE(b.writes.writes.empty());
  EXPECT_EQ(b.dut->in_nic_o, 1U);
  EXPECT_TRUE(b.dut->idle_o);
  b.stuck.reset();
  b.Run(30000);
  EXPECT_TRUE(b.Empty());
  EXPECT_EQ(b.kept, b.again);
  EXPECT_TRUE(b.dut->idle_o);
  // It keeps it until it ends.
  EXPECT_EQ(b.dut->in_nic_o, 1U);
  b.Disable(0);
  b.RunToIdle();
  EXPECT_EQ(b.dut->in_nic_o, 0U);
}

// A ring of twice the slots of an area in the NIC.
TEST(TxWaitsTest, WhatFindsNoRoomInTheNicKeepsItsSlots) {
  constexpr uint32_t kArea = 1U << rtl::kSpillAreaLog2;
  Bench b(Seed(16));
  b.Enable(0, rtl::kSpillAreaLog2 + 1, Area::kNic);
  b.stuck[Bench::Pdc(0, 1)] = true;
  uint32_t posted = 0;
  for (int i = 0; i < 200000 && posted < kPeerShare + 3 * kArea; ++i) {
    if (b.Post(0, Send(1, posted))) ++posted;
    b.Run(posted < kPeerShare + 4 ? 100 : 5);
  }
  b.Run(5000);
  EXPECT_EQ(posted, kPeerShare + 3 * kArea);
  EXPECT_EQ(b.given, kArea);
  EXPECT_EQ(b.left, kPeerShare);
  EXPECT_TRUE(b.dut->idle_o);
  b.stuck.reset();
  b.end_one_in = 2;
  for (int i = 0; i < 300000 && !b.Empty(); ++i) b.Tick();
  EXPECT_TRUE(b.Empty());
  EXPECT_EQ(b.left, posted);
  EXPECT_EQ(b.kept, b.again);
  b.Run(1000);
  EXPECT_TRUE(b.dut->idle_o);
}

// What came back is checked as if it had been read first.
TEST(TxWaitsTest, WhatIsSpoiledWhileItWaitsEndsInAnError) {
  struct Case {
    std::function<void(Bench*, uint64_t)> spoil;
    Status status;
  };
  const Case cases[] = {
      {[](Bench* b, uint64_t at) {
         b->spill_reads.refuse_from = at;
         b->spill_reads.refuse_to = at + 1;
       },
       Status::kLocalAccess},
      {[](Bench* b, uint64_t at) {
         TxDesc d = b->memory.Get<TxDesc>(at);
         ++d.position;
         b->memory.Write(at, &d, sizeof d);
       },
       Status::kBadPosition},
      {[](Bench* b, uint64_t at) {
         TxDesc d = b->memory.Get<TxDesc>(at);
         d.opcode = Opcode(200);
         b->memory.Write(at, &d, sizeof d);
       },
       Status::kBadOpcode},
      {[](Bench* b, uint64_t at) {
         TxDesc d = b->memory.Get<TxDesc>(at);
         d.flags |= contract::kTxFlagInlineExt;
         d.segments = 0;
         d.length = d.local_length = 100;
         d.ext_slots = 2;
         b->memory.Write(at, &d, sizeof d);
       },
       Status::kBadLength},
  };
  for (const bool in_area : {false, true}) {
    for (const Case& one : cases) {
      Bench b(Seed(6));
      b.Enable(0, 7);
      uint64_t at = b.Address(0, kPeerShare + 1);
      if (in_area) {
        FillAndCrowd(&b, 3);
        for (const auto& write : b.writes.writes) {
          if (write.data.size() != kSlotBytes) continue;
          TxDesc d;
          std::memcpy(&d, write.data.data(), sizeof d);
          if (d.position == kPeerShare + 1) at = write.request.addr;
        }
        ASSERT_GE(at, b.contexts[0].cfg.spill_base);
      } else {
        FillAndPost(&b, 3);
        b.Run(1000);
        ASSERT_EQ(b.kept, 3U);
      }
      const size_t others = b.left - kPeerShare;
      one.spoil(&b, at);
      b.stuck.reset();
      b.Run(5000);
      ASSERT_EQ(b.failed.size(), 1U);
      EXPECT_EQ(b.failed[0].status, one.status);
      EXPECT_EQ(b.failed[0].position, kPeerShare + 1);
      EXPECT_EQ(b.left, others + kPeerShare + 2);
      // The context is in error now, and all room is free again.
      ASSERT_TRUE(b.Post(0, Send(2, 100)));
      b.Run(1000);
      ASSERT_EQ(b.failed.size(), 2U);
      EXPECT_EQ(b.failed[1].status, Status::kFlushed);
      EXPECT_TRUE(b.dut->idle_o);
    }
  }
}

TEST(TxWaitsTest, AContextWithoutCreditIsWokenWhenItHasSomeAndHoldsUpNoOther) {
  Bench b(Seed(7));
  b.Enable(0, 7);
  FillAndPost(&b, 3);
  b.Run(1000);
  ASSERT_EQ(b.kept, 3U);
  b.dut->credit_ok_i = 0;
  b.stuck.reset();
  b.Run(10000);
  EXPECT_EQ(b.again, 0U);
  EXPECT_TRUE(b.dut->idle_o);
  b.dut->credit_ok_i = ~0U;
  b.RunToIdle();
  EXPECT_EQ(b.again, 3U);
  b.Run(1000);
  EXPECT_TRUE(b.Empty());
}

TEST(TxWaitsTest, APeerThatIsFoundStuckIsLookedAtAtOnce) {
  Bench b(Seed(12));
  b.Enable(0, 9);
  b.end_one_in = 1U << 30;
  for (uint64_t i = 0; i < 500; ++i) {
    ASSERT_TRUE(b.Post(0, Send(1, i)));
    b.Run(20);
  }
  b.RunToIdle();
  ASSERT_EQ(b.kept, 0U);
  ASSERT_LT(b.left, 500U);
  b.stuck.set();
  b.RunToIdle();
  EXPECT_EQ(b.left + b.kept, 500U);
  EXPECT_GE(b.contexts[0].head, 500 - 512 * 3 / 4);
}

// Its peer answers again while its slots are being released.
TEST(TxWaitsTest, WhatIsMarkedLeavesWithoutItsSlots) {
  for (uint32_t delay = 0; delay < 120; delay += 40) {
    SCOPED_TRACE(delay);
    Bench b(Seed(8));
    b.Enable(0, 7);
    b.spill_reads.latency = b.writes.latency = 50;
    const uint32_t posted = kPeerShare + 98;
    b.stuck[Bench::Pdc(0, 1)] = true;
    uint32_t n = 0;
    for (int i = 0; i < 100000 && b.Mark(0, kPeerShare).given == 0; ++i) {
      if (n < posted && b.cycle % 100 == 0 && b.Post(0, Send(1, n))) ++n;
      b.Tick();
    }
    ASSERT_NE(b.Mark(0, kPeerShare).given, 0U);
    b.stuck.reset();
    b.end_one_in = 1 + delay % 3;
    b.Run(int(delay));
    b.dut->credit_ok_i = 0;
    b.Run(1000);
    b.dut->credit_ok_i = ~0U;
    b.Run(20000);
    EXPECT_GT(b.given, 0U);
    EXPECT_TRUE(b.Empty());
    EXPECT_EQ(b.contexts[0].head, n);
    EXPECT_TRUE(b.dut->idle_o);
  }
}

Area SomeArea(Bench* b) {
  return b->rng() % 2 ? Area::kHost : Area::kNic;
}

TEST(TxWaitsTest, OrderedBoundedAndWholeUnderRandomTraffic) {
  size_t kept = 0, given = 0, in_nic = 0;
  for (uint32_t seed = Seed(20), end = seed + 8; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(seed);
    b.end_one_in = 4;
    b.reads.stall_percent = b.writes.stall_percent = b.rng() % 30;
    b.spill_reads.stall_percent = b.rng() % 30;
    b.spill_reads.latency = b.writes.latency = 5 + b.rng() % 60;
    for (uint32_t c = 0; c < 5; ++c) {
      b.Enable(c, 5 + c, c == 4 ? Area::kNone : SomeArea(&b),
               uint8_t(b.rng() % 4));
    }
    uint64_t n = 0;
    for (int i = 0; i < 40000; ++i) {
      if (b.rng() % 3 == 0) {
        PostRandom(&b, b.rng() % 5, b.rng() % 3 ? b.rng() % 2 : b.rng() % 8,
                   n++);
      }
      if (b.rng() % 1000 == 0)
        b.stuck[Bench::Pdc(b.rng() % 5, b.rng() % 2)].flip();
      if (b.rng() % 500 == 0) b.dut->credit_ok_i = b.rng() % 4 ? ~0U : 0;
      if (b.rng() % 4000 == 0) b.parks = !b.parks;
      b.Tick();
      if (::testing::Test::HasFatalFailure()) return;
    }
    kept += b.kept;
    given += b.given;
    in_nic += b.nic_payloads;
    b.stuck.reset();
    b.parks = false;
    b.dut->credit_ok_i = ~0U;
    for (int i = 0; i < 100000 && !b.Empty(); ++i) {
      b.Tick();
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(b.Empty());
    b.Run(1000);
    EXPECT_EQ(b.kept, b.again);
    EXPECT_TRUE(b.dut->idle_o);
  }
  EXPECT_GT(kept, 200U);
  EXPECT_GT(given, 25U);
  EXPECT_GT(in_nic, 5U);
}

TEST(TxWaitsTest, ContextsThatEndForgetWhatWaited) {
  size_t kept = 0, given = 0, in_nic = 0;
  for (uint32_t seed = Seed(40), end = seed + 8; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(seed);
    b.spill_reads.latency = b.writes.latency = 5 + b.rng() % 100;
    for (uint32_t c = 0; c < 3; ++c) b.Enable(c, 6, SomeArea(&b));
    uint64_t n = 0;
    for (int round = 0; round < 12; ++round) {
      for (int i = 0; i < 4000; ++i) {
        if (b.rng() % 4 == 0) PostRandom(&b, b.rng() % 3, b.rng() % 2, n++);
        if (b.rng() % 1000 == 0)
          b.stuck[Bench::Pdc(b.rng() % 3, b.rng() % 2)].flip();
        b.Tick();
        if (::testing::Test::HasFatalFailure()) return;
      }
      const uint32_t ctx = b.rng() % 3;
      b.Disable(ctx);
      b.Run(int(b.rng() % 300));
      b.Enable(ctx, 5 + b.rng() % 3, SomeArea(&b));
      if (::testing::Test::HasFatalFailure()) return;
    }
    kept += b.kept;
    given += b.given;
    in_nic += b.nic_payloads;
    b.stuck.reset();
    for (int i = 0; i < 100000 && !b.Empty(); ++i) {
      b.Tick();
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(b.Empty());
    b.Run(1000);
    EXPECT_TRUE(b.dut->idle_o);
  }
  EXPECT_GT(kept, 200U);
  EXPECT_GT(given, 25U);
  EXPECT_GT(in_nic, 5U);
}

}  // namespace
}  // namespace heddle::test
