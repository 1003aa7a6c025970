// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "Vheddle_rx_queue.h"
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
using contract::ReturnCode;
using contract::RxCtxCfg;
using contract::RxDesc;
using contract::Status;

constexpr uint32_t kContexts = rtl::kNumRx;

class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed), reads(&*dut.operator->(), &memory) {
    dut->credit_ok_i = ~0u;
    for (int i = 0; i < 40; ++i) {
      Tick();
    }
  }

  sim::model::ClockedModel<Vheddle_rx_queue> dut;
  Rng rng;
  Memory memory;
  DmaReadModel<Vheddle_rx_queue> reads;
  uint64_t cycle = 0;
  std::vector<rtl::CqEvent> events;
  uint32_t stall_percent = 0;  // Of events.
  uint32_t credits_taken = 0;
  std::array<RxCtxCfg, kContexts> cfg;
  std::array<uint32_t, kContexts> tail{};

  void Tick(const std::function<void()>& sample = {}) {
    reads.Drive(cycle, &rng);
    dut->ev_ready_i = rng() % 100 >= stall_percent;
    dut.Settle();
    reads.Sample(cycle);
    credits_taken += dut->credit_take_o;
    if (dut->ev_valid_o && dut->ev_ready_i) {
      const auto e = rtl::Sample<rtl::CqEvent>(dut->ev_o);
      EXPECT_EQ(e.count, rtl::Count{}) << "counts nothing";
      events.push_back(e);
    }
    if (sample) {
      sample();
    }
    dut.Tick();
    dut->db_valid_i = 0;
    dut->pop_i = 0;
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

  // Looks at the head of a context for up to `limit` cycles; pops it if asked.
  std::optional<rtl::RxBuffer> Look(uint32_t ctx, bool pop, int limit = 1) {
    dut->head_ctx_i = uint8_t(ctx);
    Tick();
    for (int i = 0; i < limit; ++i) {
      dut.Settle();
      if (dut->head_valid_o) {
        const auto b = rtl::Sample<rtl::RxBuffer>(dut->head_o);
        EXPECT_EQ(b.ctx, ctx);
        EXPECT_EQ(dut->head_released_o, uint16_t(b.position + 1));
        dut->pop_i = pop;
        Tick();
        return b;
      }
      Tick();
    }
    return std::nullopt;
  }

  std::pair<bool, RxCtxCfg> Table(contract::TableOp op, uint32_t index,
                                  const RxCtxCfg& entry = {}) {
    auto answer =
        RunTable(&*dut.operator->(), op, contract::Table::kRxCtx, index, entry,
                 5000, [this](auto sample) { Tick(sample); });
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(std::pair(true, RxCtxCfg{}));
  }
  void Enable(uint32_t ctx, uint32_t log2 = 6, uint32_t cq = 0) {
    RxCtxCfg c;
    c.ring_base = 0x100000000 + ctx * (0x100000 + 32);
    c.head_cell = 0x500 + ctx * 8;
    c.job_id = 0xabc000 + ctx;
    c.counter_recv = uint8_t(ctx + 1);
    c.counter_remote_read = 0xc;
    c.counter_remote_write = 0xd;
    c.pid_on_fep = uint16_t(0x100 + ctx / 2);
    c.resource_index = uint16_t(0x200 + ctx);
    c.ring_log2 = uint8_t(log2);
    c.cq = uint8_t(cq);
    c.flags = ctx % 2 ? contract::kRxCtxFlagRegionEvent : uint8_t{0};
    c.function = uint8_t(ctx + 1);
    c.enable = 1;
    cfg[ctx] = c;
    tail[ctx] = 0;
    EXPECT_FALSE(Table(contract::TableOp::kWrite, ctx, c).first);
  }
  void Disable(uint32_t ctx) {
    RxCtxCfg c = cfg[ctx];
    c.enable = 0;
    EXPECT_FALSE(Table(contract::TableOp::kWrite, ctx, c).first);
  }
  uint64_t SlotAddress(uint32_t ctx, uint32_t position) {
    return cfg[ctx].ring_base +
           32 * (position & ((1u << cfg[ctx].ring_log2) - 1));
  }
  static RxDesc Recv(uint64_t op_context) {
    RxDesc d;
    d.length = uint32_t(op_context * 3);
    d.op_context = op_context;
    d.local_iova = op_context << 20;
    return d;
  }
  uint32_t Post(uint32_t ctx, RxDesc desc) {
    const uint32_t position = tail[ctx]++;
    desc.position = uint16_t(desc.position + position);
    memory.Write(SlotAddress(ctx, position), &desc, sizeof desc);
    return uint16_t(position);
  }
  void Doorbell(uint32_t ctx, uint32_t offset, uint64_t data) {
    dut->db_valid_i = 1;
    PutDoorbell(&dut->db_i, contract::kRxPageFirst + ctx, offset, data);
    Tick();
  }
  void Ring(uint32_t ctx) {
    Doorbell(ctx, contract::kDoorbellTailOffset, uint16_t(tail[ctx]));
  }
  void Cancel(uint32_t ctx, uint32_t position) {
    Doorbell(ctx, contract::kDoorbellOpOffset,
             uint64_t(contract::DoorbellOp::kCancel) |
                 uint64_t{position} << contract::kDoorbellOpArgumentLsb);
  }
};

TEST(RxQueueTest, SpareWhileFourBuffersArePrefetched) {
  Bench b(1);
  b.Enable(2);
  for (uint32_t i = 0; i < 6; ++i) b.Post(2, Bench::Recv(i + 1));
  b.Ring(2);
  ASSERT_TRUE(b.RunUntilIdle());
  for (uint32_t left = 6; left > 0; --left) {
    b.dut->head_ctx_i = 2;
    b.Tick();
    b.dut.Settle();
    EXPECT_EQ(b.dut->head_spare_o, left >= 4) << left;
    ASSERT_TRUE(b.Look(2, true).has_value());
  }
  b.dut.Settle();
  EXPECT_FALSE(b.dut->head_spare_o);
}

// Random posting, popping, cancelling and bad descriptors on several contexts.
// Each position ends exactly once: popped, cancelled or reported; in order as
// far as it was popped.
TEST(RxQueueTest, OrderedEveryBufferEndsOnceUnderRandomTraffic) {
  Bench b(Seed(11));
  b.stall_percent = 30;
  b.reads.stall_percent = 20;
  b.reads.latency = 40;
  struct Slot {
    uint64_t op_context;
    Status bad = Status::kOk;
    bool cancel_sent = false;
    bool ended = false;
  };
  struct Model {
    uint32_t size;
    uint32_t head = 0;    // What the host knows to be released.
    uint32_t popped = 0;  // Next position a pop may return.
    std::map<uint32_t, Slot> slots;
  };
  std::array<Model, kContexts> model;
  constexpr uint32_t kBusy = 5;
  for (uint32_t c = 0; c < kBusy; ++c) {
    b.Enable(c, 3 + c, c);
    model[c].size = 8u << c;
  }
  uint64_t serial = 0;
  size_t seen = 0;
  uint32_t popped = 0, cancelled = 0, bad = 0;
  for (int i = 0; i < 60000; ++i) {
    const uint32_t c = b.rng() % kBusy;
    Model& m = model[c];
    if (b.rng() % 2000 == 0) {
      b.dut->credit_ok_i = b.rng();
    } else if (b.rng() % 300 == 0) {
      b.dut->credit_ok_i = ~0u;
    }
    switch (b.rng() % 4) {
      case 0:
        for (uint32_t n = b.rng() % 6; n-- > 0;) {
          if (b.tail[c] - m.head < m.size) {
            RxDesc d = Bench::Recv(++serial);
            Slot slot{serial};
            if (b.rng() % 20 == 0) {
              slot.bad = Status::kBadLength;
              d.flags = uint16_t(1 << b.rng() % 16);
            } else if (b.rng() % 20 == 0) {
              slot.bad = Status::kBadPosition;
              slot.op_context = 0;
              d.position = uint16_t(1 + b.rng() % 65535);
            }
            m.slots[b.tail[c]] = slot;
            b.Post(c, d);
          }
        }
        b.Ring(c);
        break;
      case 1: {
        const uint32_t position = m.head + b.rng() % (m.size + 2);
        if (b.rng() % 3 == 0) {
          if (m.slots.contains(position)) {
            m.slots[position].cancel_sent = true;
          }
          b.Cancel(c, uint16_t(position));
        }
        break;
      }
      default: {
        const auto buffer = b.Look(c, true);
        if (buffer.has_value()) {
          const uint32_t position =
              m.popped + uint16_t(buffer->position - m.popped);
          ASSERT_TRUE(m.slots.contains(position));
          Slot& slot = m.slots[position];
          ASSERT_FALSE(slot.ended);
          ASSERT_EQ(slot.bad, Status::kOk);
          ASSERT_EQ(buffer->op_context, slot.op_context);
          ASSERT_EQ(buffer->length, uint32_t(slot.op_context * 3));
          ASSERT_EQ(buffer->iova, slot.op_context << 20);
          ASSERT_EQ(buffer->owner, c + 1);
          ASSERT_EQ(buffer->cq, c);
          slot.ended = true;
          m.popped = position + 1;
          m.head = position + 1;
          ++popped;
        }
      }
    }
    for (; seen < b.events.size(); ++seen) {
      const rtl::CqEvent& e = b.events[seen];
      ASSERT_LT(e.entry.context, kBusy);
      Model& em = model[e.entry.context];
      ASSERT_EQ(e.owner, e.entry.context + 1u);
      ASSERT_EQ(e.write, e.credit);
      ASSERT_TRUE(e.write || e.head);
      if (e.head) {
        ASSERT_EQ(e.head_cell, 0x500u + e.entry.context * 8u);
        const int16_t ahead = int16_t(e.entry.queue_head - em.head);
        if (ahead > 0) {
          em.head += uint32_t(ahead);
        }
      }
      if (e.write) {
        // Of the positions with these 16 bits the youngest published one.
        const uint32_t t = b.tail[e.entry.context] - 1;
        const uint32_t position = t - uint16_t(t - e.entry.position);
        ASSERT_TRUE(em.slots.contains(position));
        Slot& slot = em.slots[position];
        ASSERT_FALSE(slot.ended);
        slot.ended = true;
        if (e.entry.status == Status::kCancelled) {
          ASSERT_TRUE(slot.cancel_sent);
          ASSERT_EQ(e.entry.op_context, 0u);
          ++cancelled;
        } else {
          ASSERT_EQ(e.entry.status, slot.bad);
          ASSERT_EQ(e.entry.op_context, slot.op_context);
          ASSERT_TRUE(e.head);
          ++bad;
        }
      }
    }
  }
  b.dut->credit_ok_i = ~0u;
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_GT(popped, 1000u);
  EXPECT_GT(cancelled, 200u);
  EXPECT_GT(bad, 200u);
  uint32_t reported = 0;
  for (const rtl::CqEvent& e : b.events) {
    reported += e.write;
  }
  EXPECT_EQ(b.credits_taken, reported);
  for (const rtl::DmaReq& r : b.reads.requests) {
    ASSERT_LE(r.bytes, 512u);
    ASSERT_EQ(r.addr / 512, (r.addr + r.bytes - 1) / 512);
    const uint32_t c = uint32_t((r.addr - 0x100000000) / 0x100000);
    ASSERT_LE(r.addr + r.bytes,
              b.cfg[c].ring_base + (uint64_t{32} << b.cfg[c].ring_log2));
    ASSERT_EQ(r.owner, c + 1);
  }
  // Whatever is left is handed out in order, and nothing else.
  for (uint32_t c = 0; c < kBusy; ++c) {
    Model& m = model[c];
    while (const auto buffer = b.Look(c, true, 300)) {
      const uint32_t position =
          m.popped + uint16_t(buffer->position - m.popped);
      ASSERT_TRUE(m.slots.contains(position));
      ASSERT_FALSE(m.slots[position].ended);
      m.slots[position].ended = true;
      m.popped = position + 1;
    }
  }
  ASSERT_TRUE(b.RunUntilIdle());
  for (; seen < b.events.size(); ++seen) {
    const rtl::CqEvent& e = b.events[seen];
    Model& em = model[e.entry.context];
    const uint32_t t = b.tail[e.entry.context] - 1;
    if (e.write) {
      em.slots[t - uint16_t(t - e.entry.position)].ended = true;
    }
  }
  for (uint32_t c = 0; c < kBusy; ++c) {
    for (const auto& [position, slot] : model[c].slots) {
      EXPECT_TRUE(slot.ended) << "context " << c << " position " << position;
    }
  }
}

TEST(RxQueueTest, HeadIsThereTwoCyclesAfterAPopAtFullRate) {
  Bench b(1);
  b.reads.latency = 150;
  b.Enable(0, 11);
  b.Run(2100);
  for (uint64_t i = 0; i < 2000; ++i) {
    b.Post(0, Bench::Recv(i + 1));
  }
  b.Ring(0);
  b.Run(400);
  const uint64_t start = b.cycle;
  uint64_t popped = 0;
  b.dut->head_ctx_i = 0;
  b.Tick();
  // Pops whenever a head is offered, as the accept stage may.
  while (popped < 2000 && b.cycle < start + 20000) {
    b.dut.Settle();
    if (b.dut->head_valid_o) {
      EXPECT_EQ(rtl::Sample<rtl::RxBuffer>(b.dut->head_o).op_context, ++popped);
      b.dut->pop_i = 1;
    }
    b.Tick();
  }
  const double per_buffer = double(b.cycle - start) / 2000;
  std::printf("%.2f cycles per buffer\n", per_buffer);
  EXPECT_LE(per_buffer,
            std::max(2.1, 32.0 / double(sizeof b.dut->rd_rsp_data_i) + 0.3));
}

TEST(RxQueueTest, LookupAnswersPidAndRiOfEnabledContextsInTheSameCycle) {
  Bench b(1);
  for (uint32_t c = 0; c < kContexts; ++c) {
    b.Enable(c, 3);
  }
  b.Disable(5);
  for (uint32_t c = 0; c < kContexts; ++c) {
    b.dut->look_pid_i = b.cfg[c].pid_on_fep;
    b.dut->look_ri_i = b.cfg[c].resource_index;
    b.dut.Settle();
    EXPECT_EQ(b.dut->look_hit_o, c != 5);
    if (c != 5) {
      EXPECT_EQ(b.dut->look_ctx_o, c);
      EXPECT_EQ(b.dut->look_job_o, b.cfg[c].job_id);
      EXPECT_EQ(b.dut->look_event_o, b.cfg[c].flags);
      EXPECT_EQ(GetBits(b.dut->counters_o, c * 24, 24), (c + 1) << 16 | 0xc0d);
    }
    b.dut->look_pid_i = uint16_t(b.cfg[c].pid_on_fep + 8);
    b.dut.Settle();
    EXPECT_FALSE(b.dut->look_hit_o);
  }
}

TEST(RxQueueTest, LookupTellsSpacesApartAndWhichPartOfANameIsUnknown) {
  struct Entry {
    uint32_t job;
    uint16_t pid, ri;
    bool relative;
  };
  // The same place in the address' space and in those of two jobs; the rest
  // has a part that is known elsewhere only.
  const std::array<Entry, 6> entries = {{{7, 0x101, 1, false},
                                         {7, 0x101, 1, true},
                                         {8, 0x101, 1, true},
                                         {8, 0x102, 2, true},
                                         {9, 0x103, 3, false},
                                         {10, 0x104, 4, true}}};
  Bench b(1);
  for (uint32_t c = 0; c < entries.size(); ++c) {
    b.Enable(c, 3);
    b.cfg[c].job_id = entries[c].job;
    b.cfg[c].pid_on_fep = entries[c].pid;
    b.cfg[c].resource_index = entries[c].ri;
    b.cfg[c].flags =
        entries[c].relative ? contract::kRxCtxFlagRelative : uint8_t{0};
    EXPECT_FALSE(b.Table(contract::TableOp::kWrite, c, b.cfg[c]).first);
  }
  b.Disable(5);
  uint32_t hits = 0;
  for (const bool relative : {false, true}) {
    for (uint32_t job = 7; job <= 11; ++job) {
      for (uint16_t pid = 0x101; pid <= 0x105; ++pid) {
        for (uint16_t ri = 1; ri <= 5; ++ri) {
          bool space = !relative;
          bool place = false;
          std::optional<uint32_t> context;
          for (uint32_t c = 0; c < 5; ++c) {
            const Entry& e = entries[c];
            if (e.relative != relative || (relative && e.job != job)) continue;
            space = true;
            if (e.pid != pid) continue;
            place = true;
            if (e.ri == ri) context = c;
          }
          b.dut->look_rel_i = relative;
          b.dut->look_job_i = job;
          b.dut->look_pid_i = pid;
          b.dut->look_ri_i = ri;
          b.dut.Settle();
          SCOPED_TRACE(testing::Message()
                       << relative << ' ' << job << ' ' << pid << ' ' << ri);
          EXPECT_EQ(b.dut->look_hit_o, context.has_value());
          EXPECT_EQ(static_cast<ReturnCode>(b.dut->look_miss_o),
                    !space   ? ReturnCode::kBadJobId
                    : !place ? ReturnCode::kBadPid
                             : ReturnCode::kBadIndex);
          if (context) {
            ++hits;
            EXPECT_EQ(b.dut->look_ctx_o, *context);
          }
        }
      }
    }
  }
  EXPECT_EQ(hits, 2 * 5 + 3) << "without rel the JobID names nothing";
}

TEST(RxQueueTest, ListensFromTheFirstEnabledContextUntilTheHostsReset) {
  Bench b(1);
  b.Run(10);
  EXPECT_FALSE(b.dut->listens_o);
  b.Disable(3);
  EXPECT_FALSE(b.dut->listens_o);
  b.Enable(3);
  EXPECT_TRUE(b.dut->listens_o);
  b.Disable(3);
  EXPECT_TRUE(b.dut->listens_o);
  b.dut->reset_i = 1;
  b.Tick();
  EXPECT_FALSE(b.dut->listens_o);
  b.Enable(3);  // Begun before the reset.
  EXPECT_FALSE(b.dut->listens_o);
  b.Disable(3);
  b.dut->reset_i = 0;
  b.Run(10);
  EXPECT_FALSE(b.dut->listens_o);
  b.Enable(4);
  EXPECT_TRUE(b.dut->listens_o);
}

TEST(RxQueueTest, CheckedRefusedReadReportsItsSlotsReleasedOneByOne) {
  Bench b(1);
  b.Enable(0);
  for (uint32_t i = 0; i < 48; ++i) {
    b.Post(0, Bench::Recv(i + 1));
  }
  b.reads.refuse_from = b.cfg[0].ring_base + 16 * 32;
  b.reads.refuse_to = b.reads.refuse_from + 512;
  b.Ring(0);
  for (uint32_t i = 0; i < 16; ++i) {
    ASSERT_EQ(b.Look(0, true, 500)->position, i);
  }
  ASSERT_TRUE(b.RunUntilIdle());
  ASSERT_EQ(b.events.size(), 16u);
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(b.events[i].entry.status, Status::kLocalAccess);
    EXPECT_EQ(b.events[i].entry.position, 16 + i);
    EXPECT_EQ(b.events[i].entry.queue_head, 17 + i);
    EXPECT_EQ(b.events[i].entry.op_context, 0u);
    EXPECT_TRUE(b.events[i].head);
  }
  ASSERT_EQ(b.Look(0, true, 500)->position, 32u);
}

TEST(RxQueueTest, CancelWithdrawsAtOnceAndSkipsWhenTheHeadComes) {
  Bench b(1);
  b.Enable(2);
  for (uint32_t i = 0; i < 4; ++i) {
    b.Post(2, Bench::Recv(i + 1));
  }
  b.Ring(2);
  ASSERT_EQ(b.Look(2, false, 500)->position, 0u);
  b.Cancel(2, 1);
  b.Cancel(2, 1);
  b.Cancel(2, 4);       // Not published.
  b.Cancel(2, 0xffff);  // Long gone.
  ASSERT_TRUE(b.RunUntilIdle());
  ASSERT_EQ(b.events.size(), 1u);
  EXPECT_EQ(b.events[0].entry.status, Status::kCancelled);
  EXPECT_EQ(b.events[0].entry.position, 1);
  EXPECT_EQ(b.events[0].entry.queue_head, 0);
  EXPECT_EQ(b.events[0].entry.kind, contract::CompletionKind::kRx);
  EXPECT_FALSE(b.events[0].head);
  ASSERT_EQ(b.Look(2, true, 5)->position, 0u);
  ASSERT_TRUE(b.RunUntilIdle());
  ASSERT_EQ(b.events.size(), 2u);
  EXPECT_FALSE(b.events[1].write);
  EXPECT_TRUE(b.events[1].head);
  EXPECT_EQ(b.events[1].entry.queue_head, 2);
  // A head that is offered goes away.
  ASSERT_EQ(b.Look(2, false, 5)->position, 2u);
  b.Cancel(2, 2);
  ASSERT_TRUE(b.RunUntilIdle());
  ASSERT_EQ(b.Look(2, true, 5)->position, 3u);
  EXPECT_FALSE(b.Look(2, true, 50).has_value());
}

TEST(RxQueueTest, CancelWithoutCreditIsOwedAndHoldsUpNobody) {
  Bench b(1);
  b.Enable(2, 6, 4);
  b.Enable(3, 6, 5);
  for (uint32_t i = 0; i < 40; ++i) {
    b.Post(2, Bench::Recv(i + 1));
    b.Post(3, Bench::Recv(i + 1));
  }
  b.Ring(2);
  b.Ring(3);
  ASSERT_TRUE(b.RunUntilIdle());
  b.dut->credit_ok_i = ~(1u << 4);
  for (uint32_t i = 0; i < 40; ++i) {
    b.dut.Settle();
    ASSERT_TRUE(b.dut->db_ready_o);
    b.Cancel(2, i);
    b.Run(4);
  }
  b.Cancel(3, 7);
  ASSERT_TRUE(b.RunUntilIdle());
  ASSERT_EQ(b.events.size(), 1u);
  EXPECT_EQ(b.events[0].entry.context, 3);
  EXPECT_FALSE(b.Look(2, true, 50).has_value());
  b.dut->credit_ok_i = ~0u;
  ASSERT_TRUE(b.RunUntilIdle());
  std::array<int, 40> times{};
  uint32_t head = 0;
  for (size_t i = 1; i < b.events.size(); ++i) {
    const rtl::CqEvent& e = b.events[i];
    EXPECT_EQ(e.entry.context, 2);
    if (e.write) {
      EXPECT_EQ(e.entry.status, Status::kCancelled);
      ++times[e.entry.position];
    }
    if (e.head) {
      head = e.entry.queue_head;
    }
  }
  for (int n : times) {
    EXPECT_EQ(n, 1);
  }
  EXPECT_EQ(head, 40u);
}

TEST(RxQueueTest, DisabledContextDropsItsBuffersAndRestartsAtZero) {
  Bench b(1);
  b.Enable(4, 4);
  const uint32_t gen =
      uint32_t(GetBits(b.dut->gen_o, 4 * rtl::kGenW, rtl::kGenW));
  for (uint32_t i = 0; i < 8; ++i) {
    b.Post(4, Bench::Recv(i + 1));
  }
  b.Ring(4);
  b.Cancel(4, 1);
  b.Run(300);
  b.Disable(4);
  EXPECT_FALSE(b.dut->alive_o >> 4 & 1);
  EXPECT_EQ(GetBits(b.dut->gen_o, 4 * rtl::kGenW, rtl::kGenW), gen + 1);
  EXPECT_FALSE(b.Look(4, true, 50).has_value());
  b.Enable(4, 4);
  b.Run(100);
  EXPECT_FALSE(b.Look(4, true, 50).has_value());
  b.Post(4, Bench::Recv(77));
  b.Post(4, Bench::Recv(78));
  b.Ring(4);
  EXPECT_EQ(b.Look(4, true, 500)->op_context, 77u);
  EXPECT_EQ(b.Look(4, true, 500)->op_context, 78u);
}

TEST(RxQueueTest,
     DisabledContextsCancelsAreGoneThoughAnotherRingIsCleanedFirst) {
  Bench b(1);
  b.Enable(4, 4);
  for (uint32_t i = 0; i < 2; ++i) {
    b.Post(4, Bench::Recv(i + 1));
  }
  b.Ring(4);
  b.Cancel(4, 1);
  ASSERT_TRUE(b.RunUntilIdle());
  b.Disable(4);
  b.Enable(0, 12);
  b.Enable(4, 4);
  for (uint32_t i = 0; i < 2; ++i) {
    b.Post(4, Bench::Recv(i + 10));
  }
  b.Ring(4);
  EXPECT_EQ(b.Look(4, true, 6000)->op_context, 10u);
  EXPECT_EQ(b.Look(4, true, 6000)->op_context, 11u);
}

TEST(RxQueueTest, CheckedBufferBehindAHeadThatGoesWhileItIsLookedAt) {
  for (int delay = 0; delay < 6; ++delay) {
    Bench b(1);
    b.Enable(0, 4);
    RxDesc bad = Bench::Recv(2);
    bad.flags = 1;
    b.Post(0, Bench::Recv(1));
    b.Post(0, bad);
    b.dut->head_ctx_i = 0;
    b.Ring(0);
    bool popped = false;
    for (int i = 0; i < 500 && !popped; ++i) {
      b.dut.Settle();
      if (b.dut->head_valid_o) {
        for (int d = 0; d < delay; ++d) {
          b.Tick();
        }
        b.dut->pop_i = 1;
        popped = true;
      }
      b.Tick();
    }
    ASSERT_TRUE(popped);
    ASSERT_TRUE(b.RunUntilIdle());
    ASSERT_EQ(b.events.size(), 1u) << "pop " << delay << " cycles late";
    EXPECT_EQ(b.events[0].entry.status, Status::kBadLength);
    EXPECT_EQ(b.events[0].entry.op_context, 2u);
  }
}

TEST(RxQueueTest, DrainSendsItsTokenBehindTheReadsOfTheContext) {
  Bench b(1);
  b.reads.latency = 300;
  b.Enable(4, 4);
  b.Run(40);
  for (uint32_t i = 0; i < 8; ++i) {
    b.Post(4, Bench::Recv(i + 1));
  }
  b.Ring(4);
  b.Run(20);
  EXPECT_GT(b.reads.outstanding(), 0u);
  b.Disable(4);
  int wait = 0;
  bool drained = false;
  bool token = false;
  auto answer =
      RunTable(&*b.dut.operator->(), contract::TableOp::kDrain,
               contract::Table::kRxCtx, 4, RxCtxCfg{}, 2000, [&](auto sample) {
                 b.dut->drained_i = 0;
                 b.dut->drain_ready_i = wait > 20;
                 if (token && ++wait == 100) {
                   b.dut->drained_i = 1;
                   drained = true;
                 }
                 b.Tick([&] {
                   sample();
                   if (b.dut->drain_valid_o) {
                     EXPECT_EQ(b.reads.outstanding(), 0u);
                     token = true;
                   }
                   if (rtl::Sample<rtl::TableRsp>(b.dut->tbl_rsp_o).done) {
                     EXPECT_TRUE(drained);
                   }
                 });
               });
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(token);
}

TEST(RxQueueTest, DoorbellAheadOfTheRingFetchesABoundedNumberOfSlots) {
  Bench b(1);
  b.Enable(2, 3);
  b.Post(2, Bench::Recv(1));
  b.tail[2] = 1000;
  b.Ring(2);
  EXPECT_EQ(b.Look(2, true, 300)->op_context, 1u);
  ASSERT_TRUE(b.RunUntilIdle());
  for (const rtl::CqEvent& e : b.events) {
    EXPECT_EQ(e.entry.status, Status::kBadPosition);
  }
  EXPECT_LE(b.events.size(), 7u);
}

TEST(RxQueueTest, TableReadsBackAndRefusesUnknownContexts) {
  Bench b(1);
  b.Enable(6);
  const auto [error, entry] = b.Table(contract::TableOp::kRead, 6);
  EXPECT_FALSE(error);
  EXPECT_EQ(entry, b.cfg[6]);
  EXPECT_TRUE(b.Table(contract::TableOp::kRead, kContexts).first);
}

}  // namespace
}  // namespace heddle::test
