// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "Vheddle_resolve.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/bench.h"
#include "tests/rtl/queue/dma_models.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

using contract::AvEntry;
using contract::Opcode;
using contract::Status;

constexpr uint32_t kSets = 512;   // Peers of one context that differ by
constexpr uint32_t kWays = 4;     // this share a set of so many.
constexpr uint32_t kParked = 64;  // Operations that may wait.

struct In {
  bool token = false;
  uint32_t ctx = 0;
  Opcode opcode = Opcode::kSend;
  Status status = Status::kOk;
  uint32_t peer = 0;
  uint64_t op_context = 0;
  uint32_t av_entries = 4096;
};

struct Out : rtl::TxResolved {
  uint64_t cycle = 0;
};

class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed), reads(&*dut.operator->(), &memory) {
    for (int i = 0; i < 520; ++i) {
      Tick();  // Memories initialise.
    }
  }

  sim::model::ClockedModel<Vheddle_resolve> dut;
  Rng rng;
  Memory memory;
  DmaReadModel<Vheddle_resolve> reads;
  uint64_t cycle = 0;
  std::deque<In> in;
  std::vector<Out> out;
  uint32_t stall_percent = 0;

  static uint64_t AvBase(uint32_t ctx) { return 0x1000000 + ctx * 0x100000; }
  void SetEntry(uint32_t ctx, uint32_t peer, AvEntry entry) {
    memory.Write(AvBase(ctx) + peer * 32, &entry, sizeof entry);
  }
  static AvEntry Entry(uint32_t ctx, uint32_t peer, uint32_t version = 0,
                       bool ipv6 = false) {
    AvEntry e;
    e.fa_lo = 0x0a000000u + ctx * 65536 + peer + version * 1000000000ull;
    e.fa_hi = peer;
    e.pid_on_fep = uint16_t(peer * 7 & 0xfff);
    e.resource_index = uint16_t(peer * 13 & 0xfff);
    e.next_hop = uint16_t(peer & 255);
    e.flags =
        uint8_t(contract::kAvFlagValid | (ipv6 ? contract::kAvFlagIpv6 : 0));
    return e;
  }

  void Tick(const std::function<void()>& sample = {}) {
    reads.Drive(cycle, &rng);
    dut->op_ready_i = rng() % 100 >= stall_percent;
    dut->op_valid_i = !in.empty();
    if (!in.empty()) {
      const In& op = in.front();
      rtl::Drive(dut->op_i,
                 rtl::TxFetched{.av_base = AvBase(op.ctx),
                                .av_entries = op.av_entries,
                                .op = {.token = op.token,
                                       .ctx = uint8_t(op.ctx),
                                       .owner = uint8_t(op.ctx + 1),
                                       .opcode = op.opcode,
                                       .status = op.status,
                                       .peer = op.peer,
                                       .op_context = op.op_context}});
    }
    dut.Settle();
    reads.Sample(cycle);
    if (dut->op_valid_i && dut->op_ready_o) {
      in.pop_front();
    }
    if (dut->op_valid_o && dut->op_ready_i) {
      out.push_back({rtl::Sample<rtl::TxResolved>(dut->op_o), cycle});
    }
    if (sample) {
      sample();
    }
    dut.Tick();
    dut->invalidate_i = 0;
    ++cycle;
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) {
      Tick();
    }
  }
  [[nodiscard]] bool WaitFor(size_t count, int limit = 20000) {
    for (int i = 0; i < limit && out.size() < count; ++i) {
      Tick();
    }
    return out.size() >= count;
  }
  void Invalidate(uint32_t ctx) {
    dut->invalidate_i = 1;
    dut->invalidate_ctx_i = uint8_t(ctx);
  }
};

void ExpectEntry(const Out& o, const AvEntry& e) {
  EXPECT_EQ(o.op.status, Status::kOk);
  EXPECT_EQ(o.ipv6, (e.flags & contract::kAvFlagIpv6) != 0);
  EXPECT_EQ(o.fa_hi, e.fa_hi);
  EXPECT_EQ(o.fa_lo, e.fa_lo);
  EXPECT_EQ(o.pid_on_fep, e.pid_on_fep);
  EXPECT_EQ(o.resource_index, e.resource_index);
  EXPECT_EQ(o.hop, e.next_hop);
}

class ResolveFamilyTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ipv, ResolveFamilyTest, testing::Bool(),
                         [](const auto& family) {
                           return family.param ? "6" : "4";
                         });

TEST_P(ResolveFamilyTest,
       OrderedPerPeerAndResolvedUnderRandomTrafficAndInvalidation) {
  Bench b(Seed(7));
  b.dut->ipv6_i = GetParam();
  b.stall_percent = 20;
  b.reads.stall_percent = 20;
  b.reads.latency = 40;
  for (uint32_t c = 0; c < 16; ++c) {
    for (uint32_t p = 0; p < 300; ++p) {
      b.SetEntry(c, p, Bench::Entry(c, p, 0, GetParam()));
    }
    for (uint32_t p = kSets; p < 8 * kSets; p += kSets) {
      b.SetEntry(c, p, Bench::Entry(c, p, 0, GetParam()));
    }
  }
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> last;
  constexpr uint64_t kOps = 20000;
  uint64_t sent = 0;
  size_t seen = 0;
  for (uint64_t i = 0; i < 40 * kOps && seen < kOps; ++i) {
    if (sent < kOps && b.in.size() < 3) {
      In op;
      op.ctx = b.rng() % 16;
      op.peer = b.rng() % 4 ? b.rng() % 4 : b.rng() % 300;
      if (b.rng() % 8 == 0) op.peer = b.rng() % 8 * kSets;
      op.op_context = ++sent;
      b.in.push_back(op);
    }
    if (b.rng() % 50 == 0) {
      b.Invalidate(b.rng() % 16);
    }
    b.Tick();
    for (; seen < b.out.size(); ++seen) {
      const Out& o = b.out[seen];
      ExpectEntry(o, Bench::Entry(o.op.ctx, o.op.peer, 0, GetParam()));
      uint64_t& previous = last[{o.op.ctx, o.op.peer}];
      ASSERT_LT(previous, o.op.op_context);
      previous = o.op.op_context;
    }
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  ASSERT_EQ(seen, kOps);
  b.Run(100);
  EXPECT_TRUE(b.dut->idle_o);
  for (const rtl::DmaReq& r : b.reads.requests) {
    ASSERT_EQ(r.bytes, 32u);
    ASSERT_EQ(r.owner, (r.addr - 0x1000000) / 0x100000 + 1);
  }
}

TEST(ResolveTest, ParksAMissWhileOtherPeersGoOn) {
  Bench b(1);
  b.reads.latency = 200;
  b.SetEntry(0, 1, Bench::Entry(0, 1));
  b.SetEntry(0, 2, Bench::Entry(0, 2));
  b.in.push_back({.peer = 1, .op_context = 1});
  ASSERT_TRUE(b.WaitFor(1));
  b.out.clear();
  b.in.push_back({.peer = 2, .op_context = 2});
  for (uint64_t i = 0; i < 50; ++i) {
    b.in.push_back({.peer = 1, .op_context = 3 + i});
  }
  ASSERT_TRUE(b.WaitFor(51));
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(b.out[i].op.peer, 1u);
  }
  EXPECT_EQ(b.out[50].op.peer, 2u);
  EXPECT_EQ(b.reads.requests.size(), 2u);
}

// A burst to a few new peers: each is read once and the rate recovers, though
// operations keep arriving behind the parked ones.
TEST(ResolveTest, ParkedPeersAreReadOnceAndTheRateRecovers) {
  Bench b(1);
  b.reads.latency = 150;
  for (uint32_t p = 0; p < 8; ++p) {
    b.SetEntry(3, p, Bench::Entry(3, p));
  }
  for (uint64_t i = 0; i < 2000; ++i) {
    b.in.push_back({.ctx = 3, .peer = uint32_t(i % 8), .op_context = i});
  }
  ASSERT_TRUE(b.WaitFor(2000));
  EXPECT_EQ(b.reads.requests.size(), 8u);
  const double per_op = double(b.out[1999].cycle - b.out[99].cycle) / 1900;
  std::printf("%.2f cycles per operation\n", per_op);
  EXPECT_LE(per_op, 2.05);
}

TEST(ResolveTest, TwoThousandPeersStayCached) {
  constexpr uint32_t kPeers = 2000;
  Bench b(1);
  for (uint32_t p = 0; p < kPeers; ++p) {
    b.SetEntry(3, p, Bench::Entry(3, p));
  }
  for (uint64_t i = 0; i < 3 * kPeers; ++i) {
    b.in.push_back({.ctx = 3, .peer = uint32_t(i % kPeers), .op_context = i});
  }
  ASSERT_TRUE(b.WaitFor(3 * kPeers));
  EXPECT_EQ(b.reads.requests.size(), kPeers);
  const uint64_t cycles = b.out.back().cycle - b.out[kPeers].cycle;
  std::printf("%.2f cycles per operation\n", double(cycles) / (2 * kPeers));
  EXPECT_LE(cycles, 2 * kPeers + 300);
}

TEST(ResolveTest, HitsPassAsManyMissesAsMayWait) {
  constexpr uint64_t kHits = 100;
  Bench b(1);
  for (uint32_t p = 0; p <= kParked; ++p) {
    b.SetEntry(0, p, Bench::Entry(0, p));
  }
  b.in.push_back({.peer = 0});
  ASSERT_TRUE(b.WaitFor(1));
  b.out.clear();
  b.reads.latency = 1000;
  for (uint32_t p = 1; p <= kParked; ++p) {
    b.in.push_back({.peer = p});
  }
  for (uint64_t i = 0; i < kHits; ++i) {
    b.in.push_back({.peer = 0, .op_context = i});
  }
  ASSERT_TRUE(b.WaitFor(kHits, 500));
  for (const Out& o : b.out) {
    EXPECT_EQ(o.op.peer, 0u);
  }
  ASSERT_TRUE(b.WaitFor(kHits + kParked));
}

TEST(ResolveTest, PeersBeyondTheLinesOfASetWaitForOne) {
  constexpr uint32_t kPeers = 2 * kWays;
  Bench b(1);
  b.reads.latency = 100;
  for (uint32_t i = 0; i < kPeers; ++i) {
    b.SetEntry(0, i * kSets, Bench::Entry(0, i * kSets));
    b.in.push_back({.peer = i * kSets});
  }
  ASSERT_TRUE(b.WaitFor(kPeers));
  for (const Out& o : b.out) {
    ExpectEntry(o, Bench::Entry(0, o.op.peer));
  }
  EXPECT_EQ(b.reads.requests.size(), kPeers);
  EXPECT_GE(b.out.back().cycle - b.out.front().cycle, 100u);
}

TEST(ResolveTest, CheckedEntriesThatNameNoPeerAnswerBadPeer) {
  Bench b(1);
  AvEntry invalid = Bench::Entry(0, 5);
  invalid.flags = 0;
  b.SetEntry(0, 5, invalid);
  AvEntry hop = Bench::Entry(0, 6);
  hop.next_hop = 256;
  b.SetEntry(0, 6, hop);
  b.SetEntry(0, 7, Bench::Entry(0, 7));
  b.reads.refuse_from = Bench::AvBase(0) + 7 * 32;
  b.reads.refuse_to = b.reads.refuse_from + 32;
  b.in.push_back({.peer = 100, .op_context = 1, .av_entries = 100});
  b.in.push_back({.peer = 5, .op_context = 2});
  b.in.push_back({.peer = 6, .op_context = 3});
  b.in.push_back({.peer = 7, .op_context = 4});
  b.in.push_back({.peer = 5, .op_context = 5});
  ASSERT_TRUE(b.WaitFor(5));
  for (const Out& o : b.out) {
    EXPECT_EQ(o.op.status, Status::kBadPeer) << o.op.op_context;
  }
  EXPECT_EQ(b.reads.requests.size(), 4u);
  // A later insertion needs no invalidation: refusals are not cached.
  b.SetEntry(0, 5, Bench::Entry(0, 5));
  b.in.push_back({.peer = 5, .op_context = 6});
  ASSERT_TRUE(b.WaitFor(6));
  ExpectEntry(b.out[5], Bench::Entry(0, 5));
}

TEST_P(ResolveFamilyTest, APeerOfTheOtherAddressFamilyIsABadPeer) {
  Bench b(1);
  b.dut->ipv6_i = GetParam();
  b.SetEntry(0, 1, Bench::Entry(0, 1, 0, !GetParam()));
  b.SetEntry(0, 2, Bench::Entry(0, 2, 0, GetParam()));
  b.in.push_back({.peer = 1, .op_context = 1});
  b.in.push_back({.peer = 2, .op_context = 2});
  b.in.push_back({.peer = 1, .op_context = 3});
  ASSERT_TRUE(b.WaitFor(3));
  for (const Out& o : b.out) {
    EXPECT_EQ(o.op.status, o.op.peer == 1 ? Status::kBadPeer : Status::kOk);
  }
}

TEST(ResolveTest, FailedOperationsNopsAndTokensPassWithoutALookup) {
  Bench b(1);
  b.in.push_back({.status = Status::kBadLength, .peer = 9, .op_context = 1});
  b.in.push_back({.opcode = Opcode::kNop, .peer = 9, .op_context = 2});
  b.in.push_back({.token = true, .ctx = 4});
  ASSERT_TRUE(b.WaitFor(3));
  EXPECT_EQ(b.out[0].op.status, Status::kBadLength);
  EXPECT_EQ(b.out[1].op.status, Status::kOk);
  EXPECT_TRUE(b.out[2].op.token);
  EXPECT_EQ(b.out[2].op.ctx, 4u);
  EXPECT_TRUE(b.reads.requests.empty());
}

TEST(ResolveTest, TokenWaitsForEverythingParked) {
  Bench b(1);
  b.reads.latency = 100;
  b.SetEntry(0, 1, Bench::Entry(0, 1));
  b.in.push_back({.peer = 1, .op_context = 1});
  b.in.push_back({.token = true});
  ASSERT_TRUE(b.WaitFor(2));
  EXPECT_FALSE(b.out[0].op.token);
  EXPECT_TRUE(b.out[1].op.token);
}

TEST(ResolveTest, TokenHoldsNoOtherContext) {
  Bench b(1);
  b.SetEntry(1, 1, Bench::Entry(1, 1));
  b.SetEntry(2, 1, Bench::Entry(2, 1));
  b.in.push_back({.ctx = 2, .peer = 1});
  ASSERT_TRUE(b.WaitFor(1));
  b.out.clear();
  b.reads.latency = 500;
  b.in.push_back({.ctx = 1, .peer = 1});
  b.in.push_back({.token = true, .ctx = 3});
  b.in.push_back({.ctx = 2, .peer = 1});
  ASSERT_TRUE(b.WaitFor(2, 50));
  b.in.push_back({.token = true, .ctx = 1});
  b.in.push_back({.ctx = 2, .peer = 1});
  ASSERT_TRUE(b.WaitFor(3, 50));
  ASSERT_TRUE(b.WaitFor(5));
  EXPECT_EQ(b.out[3].op.ctx, 1u);
  EXPECT_FALSE(b.out[3].op.token);
  EXPECT_EQ(b.out[4].op.ctx, 1u);
  EXPECT_TRUE(b.out[4].op.token);
}

TEST(ResolveTest, InvalidateForgetsLinesAndEntriesOnTheWayOfThatContextOnly) {
  Bench b(1);
  b.reads.latency = 60;
  b.SetEntry(1, 1, Bench::Entry(1, 1));
  b.SetEntry(2, 1, Bench::Entry(2, 1));
  b.in.push_back({.ctx = 1, .peer = 1, .op_context = 1});
  b.in.push_back({.ctx = 2, .peer = 1, .op_context = 2});
  ASSERT_TRUE(b.WaitFor(2));
  b.SetEntry(1, 1, Bench::Entry(1, 1, 1));
  b.Invalidate(1);
  b.in.push_back({.ctx = 2, .peer = 1, .op_context = 4});
  ASSERT_TRUE(b.WaitFor(3));
  EXPECT_EQ(b.reads.requests.size(), 2u);
  b.in.push_back({.ctx = 1, .peer = 1, .op_context = 3});
  ASSERT_TRUE(b.WaitFor(4));
  ExpectEntry(b.out[3], Bench::Entry(1, 1, 1));
  EXPECT_EQ(b.reads.requests.size(), 3u);

  // On the way: the parked operation may use it, later ones must not.
  b.Invalidate(1);
  b.in.push_back({.ctx = 1, .peer = 1, .op_context = 5});
  b.Run(20);
  EXPECT_EQ(b.reads.requests.size(), 4u);
  b.Invalidate(1);
  b.in.push_back({.ctx = 1, .peer = 1, .op_context = 6});
  ASSERT_TRUE(b.WaitFor(6));
  EXPECT_EQ(b.reads.requests.size(), 5u);
  EXPECT_EQ(b.out[5].op.op_context, 6u);
}

}  // namespace
}  // namespace heddle::test
