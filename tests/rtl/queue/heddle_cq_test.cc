// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "Vheddle_cq.h"
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

using contract::Completion;
using contract::CqCfg;

constexpr uint32_t kQueues = rtl::kNumCq;

class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed), writes(&*dut.operator->(), &memory) {
    for (int i = 0; i < 40; ++i) {
      Tick();
    }
  }

  sim::model::ClockedModel<Vheddle_cq> dut;
  Rng rng;
  Memory memory;
  DmaWriteModel<Vheddle_cq> writes;
  uint64_t cycle = 0;
  std::array<std::deque<rtl::CqEvent>, 3> events;
  std::array<int, 3> take = {-1, -1, -1};  // Queue to take a credit of.
  std::array<CqCfg, kQueues> cfg;
  int drained_tx = 0, drained_rx = 0;
  std::vector<std::pair<uint32_t, uint32_t>> interrupts;  // Vector, owner.
  uint32_t msix_stall_percent = 0;
  uint32_t count_stall_percent = 0;
  std::vector<rtl::Count> counted;

  uint32_t Gen(uint32_t q) {
    return uint32_t(GetBits(dut->gen_o, q * rtl::kGenW, rtl::kGenW));
  }
  bool CreditOk(uint32_t q) { return dut->credit_ok_o >> q & 1; }

  void Tick(const std::function<void()>& sample = {}) {
    writes.Drive(cycle, &rng);
    dut->msix_ready_i = rng() % 100 >= msix_stall_percent;
    dut->count_ready_i = rng() % 100 >= count_stall_percent;
    dut->ev_valid_i = 0;
    for (size_t i = 0; i < 3; ++i) {
      rtl::CqEvent e;
      if (!events[i].empty()) {
        dut->ev_valid_i |= uint8_t(1 << i);
        e = events[i].front();
      }
      rtl::DriveElement(dut->ev_i, i, e);
    }
    dut->take_i = 0;
    uint32_t cqs = 0;
    for (int i = 0; i < 3; ++i) {
      if (take[size_t(i)] >= 0) {
        dut->take_i |= uint8_t(1 << i);
        cqs |= uint32_t(take[size_t(i)]) << 5 * i;
      }
    }
    dut->take_cq_i = uint16_t(cqs);
    dut.Settle();
    writes.Sample(cycle);
    for (size_t i = 0; i < 3; ++i) {
      if (dut->ev_valid_i >> i & dut->ev_ready_o >> i & 1) {
        events[i].pop_front();
      }
    }
    if (dut->count_valid_o && dut->count_ready_i) {
      counted.push_back(rtl::Sample<rtl::Count>(dut->count_o));
    }
    drained_tx += dut->drained_tx_o;
    drained_rx += dut->drained_rx_o;
    if (dut->msix_valid_o && dut->msix_ready_i) {
      interrupts.emplace_back(dut->msix_vector_o, dut->msix_owner_o);
    }
    if (sample) {
      sample();
    }
    dut.Tick();
    dut->db_valid_i = 0;
    take = {-1, -1, -1};
    ++cycle;
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) {
      Tick();
    }
  }
  [[nodiscard]] bool RunUntilIdle(int limit = 20000) {
    for (int i = 0; i < limit; ++i) {
      Tick();
      if (dut->idle_o) {
        return true;
      }
    }
    return false;
  }

  std::pair<bool, CqCfg> Table(contract::TableOp op, uint32_t index,
                               const CqCfg& entry = {}) {
    auto answer = RunTable(&*dut.operator->(), op, contract::Table::kCq, index,
                           entry, 2000, [this](auto sample) { Tick(sample); });
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(std::pair(true, CqCfg{}));
  }
  void Enable(uint32_t q, uint32_t log2) {
    CqCfg c;
    c.base = 0x10000000 + q * 0x1000000;
    c.log2 = uint8_t(log2);
    c.vector = uint8_t(31 - q);
    c.function = uint8_t(q + 1);
    c.enable = 1;
    cfg[q] = c;
    EXPECT_FALSE(Table(contract::TableOp::kWrite, q, c).first);
  }
  void Consume(uint32_t q, uint32_t count, bool arm = false) {
    dut->db_valid_i = 1;
    PutDoorbell(&dut->db_i, contract::kCqPageFirst + q,
                contract::kDoorbellCqConsumerOffset,
                count | (arm ? contract::kDoorbellCqConsumerArmMask : 0));
    Tick();
  }
  void Take(uint32_t q) {
    take[0] = int(q);
    Tick();
  }
  rtl::CqEvent Entry(uint32_t q, uint64_t op_context) {
    rtl::CqEvent e;
    e.write = e.credit = true;
    e.owner = uint8_t(q + 1);
    e.cq = uint8_t(q);
    e.cq_gen = Gen(q);
    e.entry.op_context = op_context;
    e.entry.queue_head = uint16_t(op_context + 3);
    e.entry.phase = 77;
    return e;
  }
};

TEST(CqTest, CountedInTheOrderOfEventsWithAnEntryOrWithout) {
  Bench b(9);
  b.count_stall_percent = 60;
  b.Enable(1, 6);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 24; ++i) {
    rtl::CqEvent e;
    if (i % 3 == 0) {
      b.Take(1);
      e = b.Entry(1, i);
    }
    e.entry.status =
        i % 5 == 0 ? contract::Status::kTruncated : contract::Status::kOk;
    e.count.own = uint8_t(i % 4 == 0 ? 0 : i + 1);
    e.count.region = uint8_t(i % 4 == 1 ? 0 : i + 2);
    expected += e.count.own != 0 || e.count.region != 0;
    b.events[0].push_back(e);
  }
  ASSERT_TRUE(b.RunUntilIdle());
  ASSERT_EQ(b.counted.size(), expected);
  for (uint32_t i = 0; i < 24; ++i) {  // Each of them counts.
    EXPECT_EQ(b.counted[i].failed, i % 5 == 0) << i;
    EXPECT_EQ(b.counted[i].own, i % 4 == 0 ? 0 : i + 1);
    EXPECT_EQ(b.counted[i].region, i % 4 == 1 ? 0 : i + 2);
  }
}

// Random takers, events and consumers against a model of each queue.
TEST(CqTest, OrderedEntriesPhasesAndCreditsUnderRandomTraffic) {
  Bench b(Seed(3));
  b.writes.stall_percent = 20;
  b.writes.latency = 60;
  struct Queue {
    uint32_t size, reserved = 0, consumed = 0, polled = 0;
    std::array<std::deque<uint64_t>, 3> expected;
  };
  std::array<Queue, kQueues> queue;
  for (uint32_t q = 0; q < 6; ++q) {
    b.Enable(q, 3 + q % 3);
    queue[q].size = 8u << q % 3;
    const std::vector<uint8_t> zero(queue[q].size * 64);
    b.memory.Write(b.cfg[q].base, zero.data(), zero.size());
  }
  std::array<std::deque<uint32_t>, 3> held;  // Credits taken, by taker.
  uint64_t serial = 0;
  uint64_t seen = 0;
  for (int i = 0; i < 100000; ++i) {
    for (size_t t = 0; t < 3; ++t) {
      const uint32_t q = b.rng() % 6;
      b.take[t] = -1;
      if (b.CreditOk(q) && b.rng() % 3 == 0) {
        b.take[t] = int(q);
        held[t].push_back(q);
        ++queue[q].reserved;
      }
      if (!held[t].empty() && b.rng() % 3 == 0) {
        const uint32_t of = held[t].front();
        held[t].pop_front();
        --queue[of].reserved;
        rtl::CqEvent e = b.Entry(of, (++serial << 2) | t);
        e.write = b.rng() % 4 != 0;
        if (b.rng() % 4 == 0) {
          e.head = true;
          e.head_cell = 0x100 + of * 8 + t * 512;
        }
        if (e.write) {
          queue[of].expected[t].push_back(e.entry.op_context);
        }
        b.events[t].push_back(e);
      }
    }
    if (b.rng() % 4 == 0) {  // A consumer polls.
      const uint32_t q = b.rng() % 6;
      Queue& s = queue[q];
      const auto e = b.memory.Get<Completion>(b.cfg[q].base +
                                              64 * (s.polled & (s.size - 1)));
      if (e.phase == (s.polled / s.size % 2 ? 0 : 1)) {
        ++s.polled;
        ++seen;
        const size_t t = e.op_context & 3;
        ASSERT_LT(t, 3u);
        ASSERT_FALSE(s.expected[t].empty());
        ASSERT_EQ(s.expected[t].front(), e.op_context);
        s.expected[t].pop_front();
      }
      if (b.rng() % 4 == 0) {
        s.consumed = s.polled;
        b.Consume(q, s.consumed);
        continue;
      }
    }
    b.Tick();
  }
  EXPECT_GT(seen, 5000u);
  // Everything consumed and returned: all credits are back.
  for (size_t t = 0; t < 3; ++t) {
    for (uint32_t q : held[t]) {
      rtl::CqEvent e = b.Entry(q, 0);
      e.write = false;
      b.events[t].push_back(e);
    }
  }
  ASSERT_TRUE(b.RunUntilIdle());
  for (uint32_t q = 0; q < 6; ++q) {
    Queue& s = queue[q];
    for (const auto& expected : s.expected) {
      s.polled += uint32_t(expected.size());
    }
    b.Consume(q, s.polled);
    ASSERT_TRUE(b.RunUntilIdle());
    uint32_t credits = 0;
    while (b.CreditOk(q)) {
      b.Take(q);
      ++credits;
    }
    EXPECT_EQ(credits, s.size - 3) << "queue " << q;
  }
}

TEST(CqTest, SustainsAnEntryEveryTwoCycles) {
  Bench b(1);
  b.writes.latency = 150;
  b.Enable(0, 12);
  for (uint64_t i = 0; i < 1000; ++i) {
    b.events[1].push_back(b.Entry(0, i));
    b.Take(0);
  }
  ASSERT_TRUE(b.RunUntilIdle());
  for (uint64_t i = 0; i < 1000; ++i) {
    b.Take(0);
  }
  b.writes.writes.clear();
  for (uint64_t i = 0; i < 1000; ++i) {
    b.events[1].push_back(b.Entry(0, i));
  }
  const uint64_t start = b.cycle;
  while (b.writes.writes.size() < 1000 && b.cycle < start + 20000) {
    b.Tick();
  }
  const double per_entry = double(b.cycle - start) / 1000;
  std::printf("%.2f cycles per entry\n", per_entry);
  EXPECT_LE(per_entry,
            std::max(2.05, 64.0 / double(sizeof b.dut->wr_data_o) + 0.1));
}

TEST(CqTest, HeadCellIsWrittenBehindTheEntry) {
  Bench b(1);
  b.Enable(2, 4);
  b.Take(2);
  rtl::CqEvent e = b.Entry(2, 9);
  e.head = true;
  e.head_cell = 0x888;
  b.events[1].push_back(e);
  ASSERT_TRUE(b.RunUntilIdle());
  ASSERT_EQ(b.writes.writes.size(), 2u);
  EXPECT_EQ(b.writes.writes[0].request.bytes, 64u);
  EXPECT_EQ(b.writes.writes[0].request.addr, b.cfg[2].base);
  EXPECT_EQ(b.writes.writes[0].request.owner, 3);
  EXPECT_EQ(b.writes.writes[1].request.bytes, 8u);
  EXPECT_EQ(b.memory.Get<uint64_t>(0x888), 12u);
}

TEST(CqTest, SpareWhileSixteenEntriesAreFree) {
  Bench b(1);
  b.Enable(2, 5);
  b.Enable(3, 3);
  b.Tick();
  EXPECT_EQ(b.dut->credit_spare_o >> 3 & 1, 0u);
  for (uint32_t free = 32; free > 12; --free) {
    ASSERT_TRUE(b.RunUntilIdle());
    EXPECT_EQ(b.dut->credit_spare_o >> 2 & 1, free >= 16) << free;
    b.Take(2);
  }
}

TEST(CqTest, StaleGenerationWritesNothingAndReturnsNothing) {
  Bench b(1);
  b.Enable(2, 3);
  b.Take(2);
  rtl::CqEvent e = b.Entry(2, 9);
  e.head = true;
  b.Enable(2, 3);
  b.events[0].push_back(e);
  e.write = false;
  b.events[1].push_back(e);
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_TRUE(b.writes.writes.empty());
  int credits = 0;
  while (b.CreditOk(2)) {
    b.Take(2);
    ++credits;
  }
  EXPECT_EQ(credits, 8 - 3);
}

// Takes, a doorbell and the answer of a write, each in every cycle around the
// write of the table entry.
TEST(CqTest, WhatTheOldGenerationHasOnItsWayLeavesTheNewOneAlone) {
  constexpr uint32_t kQueue = 2;
  for (uint32_t delay = 0; delay < 12; ++delay) {
    Bench b(1);
    b.writes.latency = delay;
    b.Enable(kQueue, 6);
    const uint32_t old = b.Gen(kQueue);
    for (uint64_t i = 0; i < 3; ++i) {
      b.Take(kQueue);
      b.events[0].push_back(b.Entry(kQueue, i));
    }
    for (int i = 0; i < 100 && b.writes.writes.size() < 2; ++i) {
      b.Tick();
    }
    ASSERT_EQ(b.writes.writes.size(), 2u);
    CqCfg next = b.cfg[kQueue];
    next.log2 = 3;
    uint32_t ticks = 0;
    const auto tick = [&](const std::function<void()>& sample) {
      for (int& take : b.take) {
        take = b.Gen(kQueue) == old && b.CreditOk(kQueue) ? int{kQueue} : -1;
      }
      if (ticks++ == delay) {
        b.dut->db_valid_i = 1;
        PutDoorbell(&b.dut->db_i, contract::kCqPageFirst + kQueue,
                    contract::kDoorbellCqConsumerOffset, 1);
      }
      b.Tick(sample);
    };
    for (int i = 0; i < 4; ++i) {
      tick({});
    }
    const auto answer =
        RunTable(&*b.dut.operator->(), contract::TableOp::kWrite,
                 contract::Table::kCq, kQueue, next, 2000, tick);
    ASSERT_TRUE(answer.has_value());
    ASSERT_NE(b.Gen(kQueue), old);
    ASSERT_TRUE(b.RunUntilIdle());
    uint32_t credits = 0;
    while (b.CreditOk(kQueue)) {
      b.Take(kQueue);
      ++credits;
    }
    EXPECT_EQ(credits, 8u - 3) << "after " << delay << " cycles";
    b.Consume(kQueue, 0, true);
    ASSERT_TRUE(b.RunUntilIdle());
    EXPECT_TRUE(b.interrupts.empty()) << "after " << delay << " cycles";
  }
}

TEST(CqTest, InventedConsumerCountReturnsNoCredits) {
  Bench b(1);
  b.Enable(2, 3);
  for (int i = 0; i < 5; ++i) {
    b.Take(2);
  }
  EXPECT_FALSE(b.CreditOk(2));
  b.Consume(2, 5);
  b.Run(3);
  EXPECT_FALSE(b.CreditOk(2));
  b.events[1].push_back(b.Entry(2, 1));
  ASSERT_TRUE(b.RunUntilIdle());
  b.Consume(2, 1);
  b.Run(3);
  EXPECT_TRUE(b.CreditOk(2));
}

TEST(CqTest, InterruptIsRaisedOnceAndOnlyAfterTheAnswerOfTheWrite) {
  Bench b(1);
  b.msix_stall_percent = 50;
  b.writes.latency = 100;
  b.Enable(4, 5);
  b.Enable(5, 5);
  b.Consume(4, 0, true);
  b.Run(50);
  EXPECT_TRUE(b.interrupts.empty());
  for (int i = 0; i < 4; ++i) {
    b.Take(4);
    b.events[0].push_back(b.Entry(4, 1));
    b.Take(5);
    b.events[0].push_back(b.Entry(5, 1));
  }
  for (int i = 0; i < 1000 && b.interrupts.empty(); ++i) {
    b.Tick();
  }
  ASSERT_EQ(b.interrupts.size(), 1u);
  EXPECT_GE(b.writes.answered, 1u);
  EXPECT_EQ(b.interrupts[0], std::pair(31u - 4u, 5u));
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.interrupts.size(), 1u);
  // Armed behind the entries: at once. At their count: with the next one.
  b.Consume(4, 2, true);
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.interrupts.size(), 2u);
  b.Consume(4, 4, true);
  b.Run(300);
  EXPECT_EQ(b.interrupts.size(), 2u);
  b.Take(4);
  b.events[2].push_back(b.Entry(4, 1));
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.interrupts.size(), 3u);
}

TEST(CqTest, InterruptOfTheOldGenerationIsNotRaised) {
  Bench b(1);
  b.msix_stall_percent = 100;
  const std::array<uint32_t, 3> queues = {4, 5, 6};
  for (uint32_t q : queues) {  // One waits for MSI-X, one follows it, one more.
    b.Enable(q, 4);
    b.Take(q);
    b.events[0].push_back(b.Entry(q, 1));
    b.Run(100);
    b.Consume(q, 0, true);
    b.Run(20);
  }
  b.Enable(5, 4);
  b.Enable(6, 4);
  b.msix_stall_percent = 0;
  ASSERT_TRUE(b.RunUntilIdle());
  ASSERT_EQ(b.interrupts.size(), 1u);
  EXPECT_EQ(b.interrupts[0], std::pair(31u - 4u, 5u));
}

TEST(CqTest, TokenIsAnsweredWhenTheWritesBeforeItAre) {
  Bench b(1);
  b.writes.latency = 100;
  b.Enable(1, 6);
  for (int i = 0; i < 10; ++i) {
    b.Take(1);
    b.events[0].push_back(b.Entry(1, uint64_t(i)));
  }
  rtl::CqEvent token;
  token.token = true;
  b.events[0].push_back(token);
  for (int i = 0; i < 3; ++i) {
    b.Take(1);
    b.events[0].push_back(b.Entry(1, uint64_t(i)));
  }
  while (b.drained_rx == 0 && b.cycle < 2000) {
    b.Tick();
  }
  EXPECT_EQ(b.drained_rx, 1);
  EXPECT_EQ(b.drained_tx, 0);
  EXPECT_GE(b.writes.answered, 10u);
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.writes.answered, 13u);
  b.events[1].push_back(token);
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.drained_tx, 1);
  EXPECT_EQ(b.drained_rx, 1);
}

TEST(CqTest, TokenDoesNotSwallowTheAnswerThatComesWithIt) {
  Bench b(1);
  b.Enable(1, 6);
  b.writes.hold_until = b.cycle + 200;
  rtl::CqEvent token;
  token.token = true;
  for (int i = 0; i < 6; ++i) {
    b.Take(1);
    b.events[1].push_back(b.Entry(1, uint64_t(i)));
    b.events[1].push_back(token);
  }
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.drained_tx, 6);
  EXPECT_EQ(b.writes.answered, 6u);
}

TEST(CqTest, DrainOfATableEntryWaitsForItsWrites) {
  Bench b(1);
  b.writes.latency = 200;
  b.Enable(1, 6);
  b.Take(1);
  b.events[0].push_back(b.Entry(1, 5));
  b.Run(5);
  EXPECT_EQ(b.writes.answered, 0u);
  EXPECT_FALSE(b.Table(contract::TableOp::kDrain, 1).first);
  EXPECT_EQ(b.writes.answered, 1u);
}

TEST(CqTest, TableReadsBackAndRefusesUnknownQueues) {
  Bench b(1);
  b.Enable(30, 6);
  const auto [error, entry] = b.Table(contract::TableOp::kRead, 30);
  EXPECT_FALSE(error);
  EXPECT_EQ(entry, b.cfg[30]);
  EXPECT_TRUE(b.Table(contract::TableOp::kWrite, kQueues, b.cfg[30]).first);
  CqCfg off = b.cfg[30];
  off.enable = 0;
  b.Table(contract::TableOp::kWrite, 30, off);
  EXPECT_FALSE(b.CreditOk(30));
}

}  // namespace
}  // namespace heddle::test
