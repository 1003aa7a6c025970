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
#include "hw/sim/clocked_model.h"
#include "tests/rtl/queue/bench.h"
#include "tests/rtl/queue/bits.h"
#include "tests/rtl/queue/dma_models.h"
#include "tests/rtl/queue/rng.h"

namespace heddle::test {
namespace {

using contract::AvEntry;
using contract::Opcode;
using contract::Status;

constexpr uint32_t kFetchedBits = kTxOpBits + 64 + 32;
constexpr uint32_t kResolvedBits = kTxOpBits + 1 + 128 + 12 + 12 + 8;

struct In {
  bool token = false;
  uint32_t ctx = 0;
  Opcode opcode = Opcode::kSend;
  Status status = Status::kOk;
  uint32_t peer = 0;
  uint64_t op_context = 0;
  uint32_t av_entries = 4096;
};

struct Out {
  bool token;
  uint32_t ctx;
  Status status;
  uint32_t peer;
  uint64_t op_context;
  bool ipv6;
  uint64_t fa_hi, fa_lo;
  uint32_t pid, ri, hop;
  uint64_t cycle;
};

class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed), reads(&*dut.operator->(), &memory) {
    for (int i = 0; i < 80; ++i) {
      Tick();  // Memories initialise.
    }
  }

  sim::ClockedModel<Vheddle_resolve> dut;
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
      BitWriter w(kFetchedBits);
      w.Put(AvBase(op.ctx), 64).Put(op.av_entries, 32);
      w.Put(op.token, 1).Put(op.ctx, 4).Put(0, kGenBits).Put(op.ctx + 1, 8);
      w.Put(0, 5 + kGenBits + 16 + 3 + 18)
          .Put(uint64_t(op.opcode), 8)
          .Put(0, 8);
      w.Put(uint64_t(op.status), 8).Put(op.peer, 32).Put(0, 16 + 32);
      w.Put(op.op_context, 64).Put(0, 64).Put(0, 64).Put(0, 64).Put(0, 64);
      w.Put(0, 64).Put(0, 64);
      w.Put(0, 24 + 12 + 12 + 1 + 6 + 1 + 321);
      w.To(&dut->op_i);
    }
    dut.Settle();
    reads.Sample(cycle);
    if (dut->op_valid_i && dut->op_ready_o) {
      in.pop_front();
    }
    if (dut->op_valid_o && dut->op_ready_i) {
      BitReader r(dut->op_o, kResolvedBits);
      Out o;
      o.token = r.Take(1);
      o.ctx = uint32_t(r.Take(4));
      r.Skip(kGenBits + 8 + 5 + kGenBits + 16 + 3 + 18 + 8 + 8);
      o.status = Status(r.Take(8));
      o.peer = uint32_t(r.Take(32));
      r.Skip(16 + 32);
      o.op_context = r.Take(64);
      r.Skip(64 * 4 + 128 + 24 + 12 + 12 + 1 + 6 + 1 + 321);
      o.ipv6 = r.Take(1);
      o.fa_hi = r.Take(64);
      o.fa_lo = r.Take(64);
      o.pid = uint32_t(r.Take(12));
      o.ri = uint32_t(r.Take(12));
      o.hop = uint32_t(r.Take(8));
      r.ExpectEnd();
      o.cycle = cycle;
      out.push_back(o);
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
  EXPECT_EQ(o.status, Status::kOk);
  EXPECT_EQ(o.ipv6, (e.flags & contract::kAvFlagIpv6) != 0);
  EXPECT_EQ(o.fa_hi, e.fa_hi);
  EXPECT_EQ(o.fa_lo, e.fa_lo);
  EXPECT_EQ(o.pid, e.pid_on_fep);
  EXPECT_EQ(o.ri, e.resource_index);
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
      op.op_context = ++sent;
      b.in.push_back(op);
    }
    if (b.rng() % 50 == 0) {
      b.Invalidate(b.rng() % 16);
    }
    b.Tick();
    for (; seen < b.out.size(); ++seen) {
      const Out& o = b.out[seen];
      ExpectEntry(o, Bench::Entry(o.ctx, o.peer, 0, GetParam()));
      uint64_t& previous = last[{o.ctx, o.peer}];
      ASSERT_LT(previous, o.op_context);
      previous = o.op_context;
    }
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  ASSERT_EQ(seen, kOps);
  b.Run(100);
  EXPECT_TRUE(b.dut->idle_o);
  for (const DmaRequest& r : b.reads.requests) {
    ASSERT_EQ(r.bytes, 32u);
    ASSERT_EQ(r.owner, (r.address - 0x1000000) / 0x100000 + 1);
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
    EXPECT_EQ(b.out[i].peer, 1u);
  }
  EXPECT_EQ(b.out[50].peer, 2u);
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
    EXPECT_EQ(o.status, Status::kBadPeer) << o.op_context;
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
    EXPECT_EQ(o.status, o.peer == 1 ? Status::kBadPeer : Status::kOk);
  }
}

TEST(ResolveTest, FailedOperationsNopsAndTokensPassWithoutALookup) {
  Bench b(1);
  b.in.push_back({.status = Status::kBadLength, .peer = 9, .op_context = 1});
  b.in.push_back({.opcode = Opcode::kNop, .peer = 9, .op_context = 2});
  b.in.push_back({.token = true, .ctx = 4});
  ASSERT_TRUE(b.WaitFor(3));
  EXPECT_EQ(b.out[0].status, Status::kBadLength);
  EXPECT_EQ(b.out[1].status, Status::kOk);
  EXPECT_TRUE(b.out[2].token);
  EXPECT_EQ(b.out[2].ctx, 4u);
  EXPECT_TRUE(b.reads.requests.empty());
}

TEST(ResolveTest, TokenWaitsForEverythingParked) {
  Bench b(1);
  b.reads.latency = 100;
  b.SetEntry(0, 1, Bench::Entry(0, 1));
  b.in.push_back({.peer = 1, .op_context = 1});
  b.in.push_back({.token = true});
  ASSERT_TRUE(b.WaitFor(2));
  EXPECT_FALSE(b.out[0].token);
  EXPECT_TRUE(b.out[1].token);
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
  EXPECT_EQ(b.out[5].op_context, 6u);
}

}  // namespace
}  // namespace heddle::test
