// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "Vheddle_tx_fetch.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/bench.h"
#include "tests/rtl/queue/dma_models.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

using contract::Opcode;
using contract::Status;
using contract::TxCtxCfg;
using contract::TxDesc;

constexpr uint32_t kContexts = rtl::kNumTx;

// Payload that left the push window under a number.
struct Payload {
  std::vector<uint8_t> data;
  bool complete = false;  // The last slot of it came.
  bool ok = false;
};

struct Op : rtl::TxOp {
  uint64_t av_base;
  uint32_t av_entries;
  uint64_t cycle;
};

// One host that posts descriptors, the read engine, and a message table that
// retires messages after a while.
class Bench {
 public:
  explicit Bench(uint32_t seed) : rng(seed), reads(&dut_get(), &memory) {
    dut->credit_ok_i = ~0u;
    dut->flows_ready_i = 1;
    for (int i = 0; i < 40; ++i) {
      Tick();  // Memories initialise.
    }
  }

  sim::model::ClockedModel<Vheddle_tx_fetch> dut;
  Rng rng;
  Memory memory;
  DmaReadModel<Vheddle_tx_fetch> reads;
  uint64_t cycle = 0;
  std::vector<Op> ops;
  std::deque<std::pair<uint64_t, Op>> in_flight;
  uint64_t retire_after = 50;
  bool retire = true;
  uint32_t stall_percent = 0;  // Of the operation output.
  std::array<uint32_t, 32> credits_taken{};
  std::array<TxCtxCfg, kContexts> cfg;
  std::array<uint32_t, kContexts> tail{};
  uint64_t pushed = 0;  // Statistic.
  std::map<uint64_t, Payload> payloads;
  uint64_t next_number = 1;

  Vheddle_tx_fetch& dut_get() { return *dut.operator->(); }

  void Tick(const std::function<void()>& sample = {}) {
    reads.Drive(cycle, &rng);
    dut->op_ready_i = rng() % 100 >= stall_percent;
    dut->put_tag_i = next_number;
    dut->retire_i = 0;
    if (retire && !in_flight.empty() && in_flight.front().first <= cycle) {
      dut->retire_i = 1;
      dut->retire_ctx_i = uint8_t(in_flight.front().second.ctx);
      dut->retire_gen_i = in_flight.front().second.gen;
      in_flight.pop_front();
    }
    dut.Settle();
    reads.Sample(cycle);
    if (dut->credit_take_o) {
      EXPECT_TRUE(dut->credit_ok_i >> dut->credit_cq_o & 1);
      ++credits_taken[dut->credit_cq_o];
    }
    if (dut->op_valid_o && dut->op_ready_i) {
      const auto fetched = rtl::Sample<rtl::TxFetched>(dut->op_o);
      const Op op = {fetched.op, fetched.av_base, fetched.av_entries, cycle};
      if (!op.token) {
        in_flight.emplace_back(cycle + retire_after, op);
      }
      ops.push_back(op);
    }
    pushed += dut->stat_o >> uint32_t(contract::Statistic::kTxPushed) & 1;
    TakePayload();
    if (sample) {
      sample();
    }
    dut.Tick();
    dut->db_valid_i = 0;
    ++cycle;
  }
  void TakePayload() {
    if (dut->put_valid_o) {
      Payload& payload = payloads.at(next_number - 1);
      EXPECT_FALSE(payload.complete);
      const size_t at = payload.data.size();
      payload.data.resize(at + 64);
      std::memcpy(&payload.data[at], &dut->put_o, 64);
      payload.complete = dut->put_last_o;
      payload.ok = payload.complete && dut->put_ok_o;
    }
    if (dut->put_begin_o) {
      EXPECT_FALSE(dut->put_valid_o);
      if (next_number > 1) {
        EXPECT_TRUE(payloads.at(next_number - 1).complete);
      }
      payloads[next_number++] = {};
    }
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) {
      Tick();
    }
  }
  // False when `count` operations did not leave in time.
  [[nodiscard]] bool WaitForOps(size_t count, int limit = 20000) {
    for (int i = 0; i < limit && ops.size() < count; ++i) {
      Tick();
    }
    return ops.size() >= count;
  }

  std::pair<bool, TxCtxCfg> Table(contract::TableOp op, uint32_t index,
                                  const TxCtxCfg& entry = {},
                                  uint32_t limit = 5000) {
    auto answer = RunTable(&dut_get(), op, contract::Table::kTxCtx, index,
                           entry, limit, [this](auto sample) { Tick(sample); });
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(std::pair(true, TxCtxCfg{}));
  }
  void Enable(uint32_t ctx, uint32_t log2 = 6, uint32_t cq = 0) {
    TxCtxCfg c;
    c.ring_base = 0x100000000 + ctx * (0x100000 + 64);
    c.head_cell = 0x500 + ctx * 8;
    c.av_base = 0x7000000 + ctx * 0x1000;
    c.av_entries = 100 + ctx;
    c.counter_send = 0xb;
    c.counter_read = 0xc;
    c.counter_write = 0xd;
    c.job_id = 0xabc000 + ctx;
    c.source_pid = uint16_t(0x100 + ctx);
    c.source_ri = uint16_t(0x200 + ctx);
    c.flags = ctx % 2 == 0 ? contract::kTxCtxFlagRelative : uint8_t{0};
    c.ring_log2 = uint8_t(log2);
    c.cq = uint8_t(cq);
    c.function = uint8_t(ctx + 1);
    c.enable = 1;
    c.traffic_class = uint8_t(ctx + 3);
    c.ordered = uint8_t(ctx % 4);  // None, sends, writes, both.
    cfg[ctx] = c;
    tail[ctx] = 0;
    EXPECT_FALSE(Table(contract::TableOp::kWrite, ctx, c).first);
  }
  void Disable(uint32_t ctx) {
    TxCtxCfg c = cfg[ctx];
    c.enable = 0;
    EXPECT_FALSE(Table(contract::TableOp::kWrite, ctx, c).first);
  }

  uint64_t SlotAddress(uint32_t ctx, uint32_t position) {
    return cfg[ctx].ring_base +
           64 * (position & ((1u << cfg[ctx].ring_log2) - 1));
  }
  void Post(uint32_t ctx, TxDesc desc) {
    desc.position = uint16_t(tail[ctx]);
    memory.Write(SlotAddress(ctx, tail[ctx]), &desc, sizeof desc);
    tail[ctx] += 1u + desc.ext_slots;
  }
  // A send; each third one a write, each second one delivery-complete.
  static TxDesc Send(uint32_t length, uint64_t op_context) {
    TxDesc d;
    d.opcode = op_context % 3 == 2 ? Opcode::kWrite : Opcode::kSend;
    d.flags = contract::kTxFlagCompletion;
    if (op_context % 2 != 0) d.flags |= contract::kTxFlagDeliveryComplete;
    d.peer = 5;
    d.length = length;
    d.rx_index = 2;
    d.segments = length != 0;
    d.op_context = op_context;
    d.header_data = ~op_context;
    d.match_bits = op_context * 3;
    d.remote_offset = op_context * 5;
    d.local_iova = 0x123456789a0 + op_context;
    d.local_length = length;
    return d;
  }
  // One word of a copy of the slot at `position`.
  struct Word {
    uint32_t position, index;
    uint64_t data;
  };
  static std::vector<Word> Copy(uint32_t position, const void* slot) {
    std::vector<Word> words(8);
    for (uint32_t i = 0; i < 8; ++i) {
      words[i] = {position, i, 0};
      std::memcpy(&words[i].data, static_cast<const char*>(slot) + 8 * i, 8);
    }
    return words;
  }
  // What the ring holds, not what it should hold.
  std::vector<Word> CopyOfSlot(uint32_t ctx, uint32_t position) {
    const auto slot =
        memory.Get<std::array<char, 64>>(SlotAddress(ctx, position));
    return Copy(position, slot.data());
  }
  void Push(uint32_t ctx, const std::vector<Word>& words) {
    // Words of a slot that follow each other come at once.
    std::array<uint64_t, 8> data{};
    uint32_t mask = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      const Word& word = words[i];
      data[word.index] = word.data;
      mask |= 1U << word.index;
      if (i + 1 < words.size() && words[i + 1].position == word.position &&
          (mask >> words[i + 1].index & 1) == 0 && rng() % 4 != 0) {
        continue;
      }
      dut->db_valid_i = 1;
      PutDoorbell(&dut->db_i, contract::kTxPageFirst + ctx,
                  contract::kPushWindowOffset +
                      word.position % contract::kPushWindowSlots * 64 +
                      word.index * 8,
                  0);
      rtl::Push push{.words = static_cast<uint8_t>(mask)};
      push.data = push.data.From(data);
      rtl::Drive(dut->push_i, push);
      Tick();
      mask = 0;
    }
  }
  void Ring(uint32_t ctx) { RingCount(ctx, tail[ctx]); }
  void RingCount(uint32_t ctx, uint32_t count) {
    dut->db_valid_i = 1;
    PutDoorbell(&dut->db_i, contract::kTxPageFirst + ctx,
                contract::kDoorbellTailOffset, uint16_t(count));
    Tick();
  }
};

// A posted operation, as it is to leave.
struct Expected {
  TxDesc desc;
  uint32_t position, slots;
  uint64_t address;
  std::array<uint64_t, 2> inline_data;
};

Expected Expect(Bench& b, uint32_t ctx, const TxDesc& desc) {
  Expected e{desc,
             b.tail[ctx],
             1u + desc.ext_slots,
             b.SlotAddress(ctx, b.tail[ctx]),
             {}};
  std::memcpy(e.inline_data.data(), &desc.local_iova, 16);
  return e;
}

void ExpectSame(const Op& op, const Expected& e, const TxCtxCfg& cfg) {
  ASSERT_EQ(op.status, Status::kOk);
  ASSERT_EQ(op.position, uint16_t(e.position));
  ASSERT_EQ(op.slots, e.slots);
  ASSERT_FALSE(op.group.valid);
  ASSERT_FALSE(op.segmented);
  ASSERT_EQ(op.opcode, e.desc.opcode);
  ASSERT_EQ(op.flags, e.desc.flags);
  ASSERT_EQ(op.peer, e.desc.peer);
  ASSERT_EQ(op.rx_index, e.desc.rx_index);
  ASSERT_EQ(op.length, e.desc.length);
  ASSERT_EQ(op.op_context, e.desc.op_context);
  ASSERT_EQ(op.header_data, e.desc.header_data);
  ASSERT_EQ(op.match_bits, e.desc.match_bits);
  ASSERT_EQ(op.remote_offset, e.desc.remote_offset);
  ASSERT_EQ(op.owner, cfg.function);
  ASSERT_EQ(op.cq, cfg.cq);
  ASSERT_EQ(op.av_base, cfg.av_base);
  ASSERT_EQ(op.av_entries, cfg.av_entries);
  ASSERT_EQ(op.job_id, cfg.job_id);
  ASSERT_EQ(op.source_pid, cfg.source_pid);
  ASSERT_EQ(op.source_ri, cfg.source_ri);
  ASSERT_EQ(op.rel, cfg.flags);
  ASSERT_EQ(op.dscp, cfg.traffic_class);
  const unsigned order =
      (op.opcode == Opcode::kSend ? contract::kOrderClassSend : 0) |
      (op.opcode == Opcode::kWrite ? contract::kOrderClassWrite : 0);
  ASSERT_EQ(op.rud, order != 0 && (cfg.ordered & order) == 0);
  if (e.desc.flags & contract::kTxFlagInline) {
    ASSERT_EQ(op.iova, e.address + contract::kInlineOffset);
    ASSERT_EQ(op.inline_data_lo, e.inline_data[0]);
    ASSERT_EQ(op.inline_data_hi, e.inline_data[1]);
  } else if (e.desc.flags & contract::kTxFlagInlineExt) {
    ASSERT_EQ(op.iova, e.address + 64);
    ASSERT_EQ(op.inline_data_hi, 0U);  // The number of what was pushed, or 0.
  } else {
    ASSERT_EQ(op.iova, e.desc.local_iova);
  }
}

TxDesc RandomDescriptor(Rng* random, uint64_t op_context) {
  Rng& rng = *random;
  TxDesc d = Bench::Send(rng() % 100000, op_context);
  d.peer = rng();
  switch (rng() % 4) {
    case 1:
      d = Bench::Send(0, op_context);
      d.flags |= contract::kTxFlagInline;
      d.length = rng() % 17;
      d.local_iova = uint64_t{rng()} << 32 | rng();
      d.local_length = rng();
      d.rsvd0 = rng();
      break;
    case 2:
      d = Bench::Send(0, op_context);
      d.flags |= contract::kTxFlagInlineExt;
      d.length = rng() % 193;
      d.ext_slots = uint8_t((d.length + 63) / 64);
      break;
    case 3:
      d = TxDesc{};
      break;
    default:
      break;
  }
  return d;
}

TEST(TxFetchTest, OrderedOperationsCarryTheirDescriptors) {
  Bench b(Seed(1));
  b.reads.latency = 30;
  b.reads.stall_percent = 20;
  b.stall_percent = 20;
  for (uint32_t c = 0; c < kContexts; ++c) {
    b.Enable(c, 3 + c % 4, c);
  }
  std::array<std::deque<Expected>, kContexts> expected;
  size_t posted = 0;
  size_t seen = 0;
  for (int round = 0; round < 60000 && seen < 4000; ++round) {
    const uint32_t c = b.rng() % kContexts;
    const uint32_t size = 1u << b.cfg[c].ring_log2;
    uint32_t used = 0;
    for (const Expected& e : expected[c]) {
      used += e.slots;
    }
    const TxDesc d = RandomDescriptor(&b.rng, posted);
    const uint32_t slots = 1u + d.ext_slots;
    if (posted < 4000 && used + slots <= size &&
        (b.tail[c] & (size - 1)) + slots <= size && b.rng() % 3 != 0) {
      const Expected e = Expect(b, c, d);
      b.Post(c, d);
      expected[c].push_back(e);
      ++posted;
      if (b.rng() % 2) {
        b.Ring(c);
      }
    } else {
      b.Ring(c);
    }
    for (; seen < b.ops.size(); ++seen) {
      const Op& op = b.ops[seen];
      ASSERT_FALSE(expected[op.ctx].empty());
      const Expected e = expected[op.ctx].front();
      expected[op.ctx].pop_front();
      ASSERT_NO_FATAL_FAILURE(ExpectSame(op, e, b.cfg[op.ctx]));
    }
  }
  ASSERT_EQ(seen, 4000u);
  for (const rtl::DmaReq& r : b.reads.requests) {
    ASSERT_LE(r.bytes, 512u);
    ASSERT_EQ(r.addr / 512, (r.addr + r.bytes - 1) / 512);
    const uint32_t c = uint32_t((r.addr - 0x100000000) / 0x100000);
    ASSERT_LE(r.addr + r.bytes,
              b.cfg[c].ring_base + (uint64_t{64} << b.cfg[c].ring_log2));
    ASSERT_EQ(r.owner, b.cfg[c].function);
  }
  uint32_t credits = 0;
  for (uint32_t taken : b.credits_taken) {
    credits += taken;
  }
  EXPECT_EQ(credits, 4000u);
  b.Run(200);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxFetchTest, SustainsAnOperationEveryTwoCyclesBehindReadsOf150Cycles) {
  Bench b(1);
  b.reads.latency = 150;
  b.Enable(0, 12);
  for (uint32_t i = 0; i < 2000; ++i) {
    b.Post(0, Bench::Send(8, i));
  }
  b.Ring(0);
  ASSERT_TRUE(b.WaitForOps(2000));
  const size_t words = sizeof b.dut->rd_rsp_data_i;
  const double per_op = double(b.ops[1999].cycle - b.ops[199].cycle) / 1800;
  std::printf("%.2f cycles per operation at %zu bits\n", per_op, words * 8);
  EXPECT_LE(per_op, std::max(2.1, 64.0 / double(words) + 0.1));
  EXPECT_GE(b.reads.most_outstanding, 8u);
}

// Each entry breaks one rule of the descriptor.
TEST(TxFetchTest, CheckedBadDescriptorEndsItsContextAndNoOther) {
  struct Case {
    const char* what;
    Status status;
    std::function<void(TxDesc*)> spoil;
  };
  const std::vector<Case> cases = {
      {"inline read", Status::kBadLength,
       [](TxDesc* d) {
         d->opcode = Opcode::kRead;
         d->flags |= contract::kTxFlagInline;
         d->segments = 0;
         d->length = 8;
       }},
      {"read with header data", Status::kBadLength,
       [](TxDesc* d) {
         d->opcode = Opcode::kRead;
         d->flags |= contract::kTxFlagHeaderData;
       }},
      {"tagged", Status::kBadOpcode,
       [](TxDesc* d) { d->opcode = Opcode::kTaggedSend; }},
      {"opcode 255", Status::kBadOpcode,
       [](TxDesc* d) { d->opcode = Opcode(255); }},
      {"unknown flag", Status::kBadLength, [](TxDesc* d) { d->flags |= 0x80; }},
      {"no segment", Status::kBadLength, [](TxDesc* d) { d->segments = 0; }},
      {"two segments", Status::kBadLength, [](TxDesc* d) { d->segments = 2; }},
      {"segment of nothing", Status::kBadLength,
       [](TxDesc* d) { d->length = d->local_length = 0; }},
      {"local length", Status::kBadLength,
       [](TxDesc* d) { ++d->local_length; }},
      {"extension without flag", Status::kBadLength,
       [](TxDesc* d) { d->ext_slots = 1; }},
      {"reserved", Status::kBadLength, [](TxDesc* d) { d->rsvd0 = 1; }},
      {"inline too long", Status::kBadLength,
       [](TxDesc* d) {
         d->flags |= contract::kTxFlagInline;
         d->segments = 0;
         d->length = 17;
       }},
      {"inline with segment", Status::kBadLength,
       [](TxDesc* d) {
         d->flags |= contract::kTxFlagInline;
         d->length = 8;
       }},
      {"extension too long", Status::kBadLength,
       [](TxDesc* d) {
         d->flags |= contract::kTxFlagInlineExt;
         d->segments = 0;
         d->length = 193;
         d->ext_slots = 4;
       }},
      {"too few extensions", Status::kBadLength,
       [](TxDesc* d) {
         d->flags |= contract::kTxFlagInlineExt;
         d->segments = 0;
         d->length = 65;
         d->ext_slots = 1;
       }},
      {"both inline flags", Status::kBadLength,
       [](TxDesc* d) {
         d->flags |= contract::kTxFlagInlineExt | contract::kTxFlagInline;
         d->segments = 0;
         d->length = 0;
       }},
      {"nop with payload", Status::kBadLength,
       [](TxDesc* d) { d->opcode = Opcode::kNop; }},
      {"position", Status::kBadPosition, [](TxDesc* d) { d->position += 64; }},
  };
  Bench b(1);
  b.Enable(1);
  for (const Case& test : cases) {
    SCOPED_TRACE(test.what);
    b.Enable(0);
    b.ops.clear();
    TxDesc d = Bench::Send(100, 7);
    b.Post(0, Bench::Send(100, 6));
    const uint32_t position = b.tail[0];
    b.Post(0, d);
    b.Post(0, Bench::Send(100, 8));
    b.Post(0, Bench::Send(100, 9));
    d.position = uint16_t(position);
    test.spoil(&d);
    b.memory.Write(b.SlotAddress(0, position), &d, sizeof d);
    b.Post(1, Bench::Send(1, 1));
    b.Ring(0);
    b.Ring(1);
    ASSERT_TRUE(b.WaitForOps(3));
    b.Run(300);
    std::vector<Op> mine;
    size_t others = 0;
    for (const Op& op : b.ops) {
      if (op.ctx == 0) {
        mine.push_back(op);
      } else {
        EXPECT_EQ(op.status, Status::kOk);
        ++others;
      }
    }
    EXPECT_EQ(others, 1u);
    ASSERT_GE(mine.size(), 3u);
    EXPECT_EQ(mine[0].status, Status::kOk);
    EXPECT_EQ(mine[1].status, test.status);
    EXPECT_EQ(mine[1].op_context,
              test.status == Status::kBadPosition ? 0u : 7u);
    uint32_t next = mine[1].position + mine[1].slots;
    for (size_t i = 2; i < mine.size(); ++i) {
      EXPECT_EQ(mine[i].status, Status::kFlushed);
      EXPECT_EQ(mine[i].position, next);
      next += mine[i].slots;
    }
    EXPECT_EQ(next, 4u);
  }
}

TEST(TxFetchTest, RefusedRingIsReportedOnceAndEverythingBehindFlushed) {
  Bench b(1);
  b.Enable(0);
  for (uint32_t i = 0; i < 24; ++i) {
    b.Post(0, Bench::Send(100, i));
  }
  b.reads.refuse_from = b.cfg[0].ring_base + 8 * 64;
  b.reads.refuse_to = b.reads.refuse_from + 512;
  b.Ring(0);
  ASSERT_TRUE(b.WaitForOps(24));
  for (uint32_t i = 0; i < 24; ++i) {
    EXPECT_EQ(b.ops[i].status, i < 8    ? Status::kOk
                               : i == 8 ? Status::kLocalAccess
                                        : Status::kFlushed);
    EXPECT_EQ(b.ops[i].position, i);
  }
}

TEST(TxFetchTest, DoorbellAheadOfTheRingEndsInAnErrorAndABoundedFetch) {
  Bench b(1);
  b.Enable(2, 4);
  b.Post(2, Bench::Send(1, 1));
  b.Ring(2);
  ASSERT_TRUE(b.WaitForOps(1));
  b.RingCount(2, 1 + 17);
  ASSERT_TRUE(b.WaitForOps(2));
  EXPECT_EQ(b.ops[1].status, Status::kBadPosition);
  b.Run(2000);
  EXPECT_LE(b.reads.requests.size(), 1u + 16u);
  for (size_t i = 2; i < b.ops.size(); ++i) {
    EXPECT_EQ(b.ops[i].status, Status::kFlushed);
  }
  EXPECT_LE(b.ops.size(), 17u);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxFetchTest, FairAmongContextsWithWork) {
  Bench b(1);
  constexpr uint32_t kBusy = 4;
  for (uint32_t c = 0; c < kBusy; ++c) {
    b.Enable(c, 9);
    for (uint32_t i = 0; i < 400; ++i) {
      b.Post(c, Bench::Send(8, i));
    }
    b.Ring(c);
  }
  const size_t before = b.ops.size();
  ASSERT_TRUE(b.WaitForOps(before + 400));
  std::array<int, kBusy> count{};
  for (size_t i = before; i < b.ops.size(); ++i) {
    ++count[b.ops[i].ctx];
  }
  for (uint32_t c = 0; c < kBusy; ++c) {
    EXPECT_NEAR(count[c], 100, 20) << "context " << c;
  }
}

TEST(TxFetchTest, MessageShareBoundsAContextAndGuaranteesTheOthers) {
  Bench b(1);
  b.retire = false;
  for (uint32_t c = 0; c < kContexts; ++c) {
    b.Enable(c, 10);
    for (uint32_t i = 0; i < 600; ++i) {
      b.Post(c, Bench::Send(8, i));
    }
  }
  b.Ring(0);
  b.Run(6000);
  EXPECT_EQ(b.ops.size(), contract::kMessageShare);
  EXPECT_TRUE(b.dut->idle_o);
  for (uint32_t c = 1; c < kContexts; ++c) {
    b.Ring(c);
  }
  b.Run(12000);
  EXPECT_EQ(b.ops.size(), 1024u);
  std::array<uint32_t, kContexts> count{};
  for (const Op& op : b.ops) {
    ++count[op.ctx];
  }
  for (uint32_t c = 1; c < kContexts; ++c) {
    EXPECT_GE(count[c], 32u) << "context " << c;
  }
  // What one context gives back, another may use.
  b.retire = true;
  ASSERT_TRUE(b.WaitForOps(16 * 600, 100000));
  b.Run(1000);
  EXPECT_EQ(b.ops.size(), 16u * 600u);
}

TEST(TxFetchTest, CreditMissingHoldsOnlyTheContextsOfThatQueue) {
  Bench b(1);
  b.Enable(0, 6, 7);
  b.Enable(1, 6, 9);
  b.dut->credit_ok_i = ~0u & ~(1u << 7);
  for (uint32_t i = 0; i < 10; ++i) {
    b.Post(0, Bench::Send(8, i));
    b.Post(1, Bench::Send(8, i));
  }
  b.Ring(0);
  b.Ring(1);
  b.Run(500);
  EXPECT_EQ(b.ops.size(), 10u);
  EXPECT_EQ(b.credits_taken[7], 0u);
  b.dut->credit_ok_i = ~0u;
  b.Run(500);
  EXPECT_EQ(b.ops.size(), 20u);
  EXPECT_EQ(b.credits_taken[7], 10u);
}

TEST(TxFetchTest, DisabledContextDropsWhatItFetchedAndRestartsAtZero) {
  Bench b(1);
  b.reads.latency = 200;
  b.Enable(4);
  const uint32_t gen =
      uint32_t(GetBits(b.dut->gen_o, 4 * rtl::kGenW, rtl::kGenW));
  for (uint32_t i = 0; i < 20; ++i) {
    b.Post(4, Bench::Send(8, i));
  }
  b.Ring(4);
  b.Run(20);
  b.Disable(4);
  EXPECT_EQ(b.dut->alive_o >> 4 & 1, 0);
  EXPECT_EQ(GetBits(b.dut->gen_o, 4 * rtl::kGenW, rtl::kGenW), gen + 1);
  b.Enable(4);
  b.Run(600);
  EXPECT_EQ(b.ops.size(), 0u);
  b.Post(4, Bench::Send(8, 77));
  b.Ring(4);
  ASSERT_TRUE(b.WaitForOps(1));
  EXPECT_EQ(b.ops[0].position, 0u);
  EXPECT_EQ(b.ops[0].op_context, 77u);
  EXPECT_EQ(b.ops[0].gen, gen + 1);
}

TEST(TxFetchTest, DrainTokenLeavesBehindTheReadsOfTheContext) {
  Bench b(1);
  b.reads.latency = 300;
  b.Enable(4);
  for (uint32_t i = 0; i < 20; ++i) {
    b.Post(4, Bench::Send(8, i));
  }
  b.Ring(4);
  b.Run(20);
  b.Disable(4);
  const uint64_t asked = b.cycle;
  bool drained = false;
  int wait = 0;
  auto answer =
      RunTable(&b.dut_get(), contract::TableOp::kDrain, contract::Table::kTxCtx,
               4, TxCtxCfg{}, 2000, [&](auto sample) {
                 b.dut->drained_i = 0;
                 if (!b.ops.empty()) {
                   EXPECT_TRUE(b.ops[0].token);
                   EXPECT_EQ(b.ops[0].ctx, 4u);
                   EXPECT_EQ(b.reads.outstanding(), 0u);
                   if (++wait == 50) {
                     drained = true;
                     b.dut->drained_i = 1;
                   }
                 }
                 b.Tick([&] {
                   sample();
                   if (rtl::Sample<rtl::TableRsp>(b.dut->tbl_rsp_o).done) {
                     EXPECT_TRUE(drained);
                   }
                 });
               });
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->first);
  EXPECT_EQ(b.ops.size(), 1u);
  EXPECT_GT(b.cycle, asked + 250);
}

TEST(TxFetchTest, DrainWaitsWhileSlotsOfTheContextAreCopied) {
  Bench b(1);
  b.Enable(4);
  b.Disable(4);
  b.dut->busy_i = 1u << 4 | 1u << 7;
  const uint64_t asked = b.cycle;
  auto answer = RunTable(
      &b.dut_get(), contract::TableOp::kDrain, contract::Table::kTxCtx, 4,
      TxCtxCfg{}, 2000, [&](auto sample) {
        EXPECT_TRUE(b.ops.empty() || b.cycle >= asked + 200);
        b.dut->drained_i = !b.ops.empty();
        b.dut->busy_i = b.cycle < asked + 200 ? 1u << 4 | 1u << 7 : 1u << 7;
        b.Tick(sample);
      });
  EXPECT_TRUE(answer.has_value());
  EXPECT_EQ(b.ops.size(), 1u);
}

TEST(TxFetchTest, DrainIsNotHeldUpByOtherContextsAtFullRateNorTheyByIt) {
  Bench b(1);
  for (uint32_t c = 0; c < 4; ++c) {
    b.Enable(c, 11);
    for (uint32_t i = 0; i < 2000; ++i) {
      b.Post(c, Bench::Send(8, i));
    }
    b.Ring(c);
  }
  ASSERT_TRUE(b.WaitForOps(100));
  const uint64_t start = b.cycle;
  uint64_t token = 0;
  int wait = 0;
  auto answer =
      RunTable(&b.dut_get(), contract::TableOp::kDrain, contract::Table::kTxCtx,
               9, TxCtxCfg{}, 8000, [&](auto sample) {
                 b.dut->drained_i = 0;
                 if (token == 0 && b.ops.back().token) {
                   token = b.cycle;
                 }
                 if (token != 0 && ++wait == 1000) {
                   b.dut->drained_i = 1;
                 }
                 b.Tick(sample);
               });
  ASSERT_TRUE(answer.has_value());
  EXPECT_LT(token, start + 5000);  // Behind the reads asked before.
  EXPECT_GT(b.ops.size(), 100u + 100u);
}

TEST(TxFetchTest, PayloadErrorOfThisGenerationFlushesTheContext) {
  Bench b(1);
  b.Enable(4);
  const uint32_t gen =
      uint32_t(GetBits(b.dut->gen_o, 4 * rtl::kGenW, rtl::kGenW));
  auto error = [&](uint32_t g) {
    b.dut->ctx_error_i = 1;
    b.dut->ctx_error_ctx_i = 4;
    b.dut->ctx_error_gen_i = g;
    b.Tick();
    b.dut->ctx_error_i = 0;
  };
  error(gen + 1);
  b.Post(4, Bench::Send(8, 1));
  b.Ring(4);
  ASSERT_TRUE(b.WaitForOps(1));
  EXPECT_EQ(b.ops[0].status, Status::kOk);
  error(gen);
  b.Post(4, Bench::Send(8, 2));
  b.Ring(4);
  ASSERT_TRUE(b.WaitForOps(2));
  EXPECT_EQ(b.ops[1].status, Status::kFlushed);
  EXPECT_EQ(b.ops[1].op_context, 2u);
}

TEST(TxFetchTest, ExtensionPublishedLateIsWaitedForWithoutKeepingTheNicAwake) {
  Bench b(1);
  b.Enable(0);
  TxDesc d = Bench::Send(0, 1);
  d.flags |= contract::kTxFlagInlineExt;
  d.length = 100;
  d.ext_slots = 2;
  b.Post(0, d);
  b.RingCount(0, 1);
  b.Run(100);
  EXPECT_EQ(b.ops.size(), 0u);
  EXPECT_TRUE(b.dut->idle_o);
  b.RingCount(0, 3);
  ASSERT_TRUE(b.WaitForOps(1));
  EXPECT_EQ(b.ops[0].slots, 3u);
  EXPECT_EQ(b.ops[0].status, Status::kOk);
}

TEST(TxFetchTest, PushedDescriptorLeavesSoonAndWithoutARead) {
  Bench b(Seed(2));
  b.Enable(3);
  for (uint32_t i = 0; i < 100; ++i) {
    TxDesc d = Bench::Send(8, i);
    if (i % 2 == 0) {
      d = Bench::Send(0, i);
      d.flags |= contract::kTxFlagInline;
      d.length = 8;
    }
    const Expected e = Expect(b, 3, d);
    b.Post(3, d);
    auto words = b.CopyOfSlot(3, e.position);
    for (size_t w = words.size(); w > 1; --w) {
      std::swap(words[w - 1], words[b.rng() % w]);
    }
    b.Push(3, words);
    const uint64_t doorbell = b.cycle;
    b.Ring(3);
    ASSERT_TRUE(b.WaitForOps(i + 1));
    EXPECT_LE(b.ops[i].cycle, doorbell + 5);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[i], e, b.cfg[3]));
    b.Run(5);
  }
  EXPECT_TRUE(b.reads.requests.empty());
  EXPECT_EQ(b.pushed, 100u);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxFetchTest, PushWithoutDoorbellDoesNothing) {
  Bench b(1);
  b.Enable(3);
  TxDesc d = Bench::Send(8, 1);
  b.Push(3, Bench::Copy(0, &d));
  b.Run(500);
  EXPECT_TRUE(b.ops.empty());
  EXPECT_TRUE(b.reads.requests.empty());
  EXPECT_TRUE(b.dut->idle_o);
}

// `spoil` writes to the window before the doorbell of position 0 of context 3,
// whose slot is that of SEND 7.
void ExpectRead(const std::function<void(Bench&)>& spoil) {
  Bench b(1);
  b.Enable(3);
  b.Enable(4);
  const TxDesc d = Bench::Send(8, 7);
  const Expected e = Expect(b, 3, d);
  b.Post(3, d);
  spoil(b);
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[0], e, b.cfg[3]));
  EXPECT_EQ(b.reads.requests.size(), 1u);
  EXPECT_EQ(b.pushed, 0u);
}

TEST(TxFetchTest, TornCopyIsNotUsed) {
  for (uint32_t missing = 0; missing < 8; ++missing) {
    ExpectRead([&](Bench& b) {
      auto words = b.CopyOfSlot(3, 0);
      words.erase(words.begin() + missing);
      b.Push(3, words);
    });
  }
}

TEST(TxFetchTest, CopyThatWasHalfOverwrittenIsNotUsed) {
  for (uint32_t word = 0; word < 8; ++word) {
    ExpectRead([&](Bench& b) {
      TxDesc other = Bench::Send(9, 8);
      b.Push(3, Bench::Copy(0, &other));
      b.Push(3, {b.CopyOfSlot(3, 0)[word]});
    });
  }
}

TEST(TxFetchTest, CopyOfAnotherPositionOrContextIsNotUsed) {
  ExpectRead([](Bench& b) {
    TxDesc d = Bench::Send(8, 7);
    d.position = 16;
    b.Push(3, Bench::Copy(16, &d));
  });
  ExpectRead([](Bench& b) { b.Push(4, b.CopyOfSlot(3, 0)); });
  ExpectRead([](Bench& b) {
    auto words = b.CopyOfSlot(3, 0);
    for (auto& word : words) {
      word.position = 1;
    }
    b.Push(3, words);
  });
}

TEST(TxFetchTest, CopyFromBeforeAnEarlierDoorbellIsNotUsed) {
  ExpectRead([](Bench& b) {
    TxDesc other = Bench::Send(9, 8);
    b.Push(3, Bench::Copy(0, &other));
    b.RingCount(3, 0);
  });
  // Words of two intervals do not make one copy.
  ExpectRead([](Bench& b) {
    const auto words = b.CopyOfSlot(3, 0);
    b.Push(3, {words.begin(), words.begin() + 4});
    b.RingCount(3, 0);
    b.Push(3, {words.begin() + 4, words.end()});
  });
}

TEST(TxFetchTest, CopyOfAnEarlierGenerationIsNotUsed) {
  // Complete, or half before and half after.
  for (uint32_t before : {8u, 4u}) {
    for (bool was_enabled : {true, false}) {
      ExpectRead([&](Bench& b) {
        if (!was_enabled) {
          b.Disable(3);
        }
        const auto words = b.CopyOfSlot(3, 0);
        b.Push(3, {words.begin(), words.begin() + before});
        b.Disable(3);
        b.Enable(3);
        b.tail[3] = 1;
        b.Push(3, {words.begin() + before, words.end()});
      });
    }
  }
}

TEST(TxFetchTest, CopyOverwrittenBehindItsDoorbellIsNotUsed) {
  for (uint32_t word = 0; word < 8; ++word) {
    Bench b(1);
    b.Enable(3);
    // A request that nobody takes holds up the choice of the next.
    b.Enable(4);
    b.reads.stall_percent = 100;
    for (uint32_t i = 0; i < 20; ++i) {
      b.Post(4, Bench::Send(8, i));
    }
    b.Ring(4);
    b.Run(20);
    const TxDesc d = Bench::Send(8, 7);
    const Expected e = Expect(b, 3, d);
    b.Post(3, d);
    b.Push(3, b.CopyOfSlot(3, 0));
    b.Ring(3);
    TxDesc other = Bench::Send(9, 8);
    b.Push(3, {Bench::Copy(0, &other)[word]});
    b.reads.stall_percent = 0;
    ASSERT_TRUE(b.WaitForOps(21));
    EXPECT_EQ(b.pushed, 0u);
    for (const Op& op : b.ops) {
      if (op.ctx == 3) {
        ASSERT_NO_FATAL_FAILURE(ExpectSame(op, e, b.cfg[3]));
      }
    }
  }
}

TEST(TxFetchTest, WordsOfSlotsAWindowApartMakeNoCopy) {
  Bench b(1);
  b.Enable(3);
  std::vector<Expected> expected;
  for (uint32_t i = 0; i < 20; ++i) {
    const TxDesc d = Bench::Send(8 + i, i);
    expected.push_back(Expect(b, 3, d));
    b.Post(3, d);
  }
  const auto first = b.CopyOfSlot(3, 0);
  const auto second = b.CopyOfSlot(3, 16);
  b.Push(3, {first.begin(), first.begin() + 4});
  b.Push(3, {second.begin() + 4, second.end()});
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(20));
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[i], expected[i], b.cfg[3]));
  }
}

TEST(TxFetchTest, CopyThatItsGenerationDidNotFetchIsNotUsedByTheNext) {
  Bench b(1);
  b.Enable(3);
  b.Enable(4);
  b.reads.stall_percent = 100;
  for (uint32_t i = 0; i < 20; ++i) {
    b.Post(4, Bench::Send(8, i));
  }
  b.Ring(4);
  b.Run(20);
  b.Post(3, Bench::Send(8, 7));
  b.Push(3, b.CopyOfSlot(3, 0));
  b.Ring(3);
  b.reads.stall_percent = 0;
  b.Disable(3);
  b.Enable(3);
  const TxDesc d = Bench::Send(9, 8);
  const Expected e = Expect(b, 3, d);
  b.Post(3, d);
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(21));
  EXPECT_EQ(b.pushed, 0u);
  for (const Op& op : b.ops) {
    if (op.ctx == 3) {
      ASSERT_NO_FATAL_FAILURE(ExpectSame(op, e, b.cfg[3]));
    }
  }
}

TEST(TxFetchTest, CopyIsForgottenBeforeItsPositionComesAgain) {
  Bench b(1);
  b.reads.latency = 100;
  b.Enable(3, 12);
  b.Post(3, Bench::Send(8, 1));
  b.Ring(3);
  b.Run(20);
  b.Post(3, Bench::Send(8, 2));  // Its copy is not used: a read is on its way.
  b.Push(3, b.CopyOfSlot(3, 1));
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(2));
  b.retire_after = 1;
  for (uint32_t i = 2; i <= 65536; ++i) {
    b.Post(3, Bench::Send(8, i + 1));
    if (i % 1024 == 0) {
      b.Ring(3);
      ASSERT_TRUE(b.WaitForOps(i + 1));
    }
  }
  const TxDesc d = Bench::Send(9, 99);
  const Expected e = Expect(b, 3, d);
  ASSERT_EQ(uint16_t(e.position), 1u);
  b.Post(3, d);
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(65538));
  ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops.back(), e, b.cfg[3]));
  EXPECT_EQ(b.pushed, 0u);
}

TEST(TxFetchTest, PushBehindDescriptorsThatAreBeingReadIsReadInItsTurn) {
  Bench b(1);
  b.reads.latency = 150;
  b.Enable(3);
  std::vector<Expected> expected;
  for (uint32_t i = 0; i < 20; ++i) {
    const TxDesc d = Bench::Send(8, i);
    expected.push_back(Expect(b, 3, d));
    b.Post(3, d);
    if (i > 2) {
      b.Push(3, b.CopyOfSlot(3, i));
    }
    if (i >= 2) {
      b.Ring(3);
    }
  }
  ASSERT_TRUE(b.WaitForOps(20));
  EXPECT_EQ(b.pushed, 0u);
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[i], expected[i], b.cfg[3]));
  }
}

TEST(TxFetchTest, PushIsNotHeldUpByReadsOfOtherContexts) {
  Bench b(1);
  b.reads.latency = 1000;
  b.Enable(3);
  b.Enable(4);
  b.Post(4, Bench::Send(8, 1));
  b.Ring(4);
  b.Run(10);
  b.Post(3, Bench::Send(8, 7));
  b.Push(3, b.CopyOfSlot(3, 0));
  const uint64_t doorbell = b.cycle;
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(1));
  EXPECT_EQ(b.ops[0].ctx, 3u);
  EXPECT_LE(b.ops[0].cycle, doorbell + 5);
}

TEST(TxFetchTest, ReadOfAnEarlierGenerationDoesNotReachAPushedDescriptor) {
  Bench b(1);
  b.reads.latency = 100;
  b.Enable(3);
  b.Post(3, Bench::Send(8, 1));
  b.Ring(3);
  b.Run(20);
  b.Disable(3);
  b.Enable(3);
  b.dut->credit_ok_i = 0;  // Holds the descriptor back until the read came.
  const TxDesc d = Bench::Send(8, 2);
  const Expected e = Expect(b, 3, d);
  b.Post(3, d);
  b.memory.Write(b.SlotAddress(3, 0), &b.cfg[3], 64);  // Of no operation.
  b.Push(3, Bench::Copy(0, &e.desc));
  b.Ring(3);
  b.Run(200);
  b.dut->credit_ok_i = ~0u;
  ASSERT_TRUE(b.WaitForOps(1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[0], e, b.cfg[3]));
  EXPECT_EQ(b.pushed, 1u);
}

TEST(TxFetchTest, PushedDescriptorStandsForItsExtension) {
  Bench b(1);
  b.Enable(3, 3);
  for (uint32_t i = 0; i < 50; ++i) {
    TxDesc d = Bench::Send(0, i);
    d.flags |= contract::kTxFlagInlineExt;
    d.ext_slots = uint8_t(i % 2 != 0 ? 1 : 3);
    if ((b.tail[3] & 7) + 1u + d.ext_slots > 8) {
      d.ext_slots = uint8_t(7 - (b.tail[3] & 7));
    }
    d.length = d.ext_slots * 64u;
    const Expected e = Expect(b, 3, d);
    b.Post(3, d);
    b.Push(3, b.CopyOfSlot(3, e.position));
    b.Ring(3);
    ASSERT_TRUE(b.WaitForOps(i + 1));
    ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[i], e, b.cfg[3]));
    b.Run(60);
  }
  EXPECT_TRUE(b.reads.requests.empty());
  EXPECT_EQ(b.pushed, 50u);
}

// A SEND with payload in extension slots of random bytes.
TxDesc PostPayload(Bench* b, uint32_t ctx, uint32_t bytes,
                   uint64_t op_context) {
  TxDesc d = Bench::Send(0, op_context);
  d.flags |= contract::kTxFlagInlineExt;
  d.length = bytes;
  d.ext_slots = uint8_t((bytes + 63) / 64);
  for (uint32_t i = 1; i <= d.ext_slots; ++i) {
    std::array<uint32_t, 16> slot;
    std::generate(slot.begin(), slot.end(), [&] { return b->rng(); });
    b->memory.Write(b->SlotAddress(ctx, b->tail[ctx] + i), slot.data(), 64);
  }
  b->Post(ctx, d);
  return d;
}

void Append(std::vector<Bench::Word>* to,
            const std::vector<Bench::Word>& from) {
  to->insert(to->end(), from.begin(), from.end());
}

std::vector<Bench::Word> CopyOfSlots(Bench* b, uint32_t ctx, uint32_t position,
                                     uint32_t slots) {
  std::vector<Bench::Word> words;
  for (uint32_t i = 0; i < slots; ++i) {
    Append(&words, b->CopyOfSlot(ctx, position + i));
  }
  return words;
}

void Shuffle(std::vector<Bench::Word>* words, Rng* rng) {
  for (size_t w = words->size(); w > 1; --w) {
    std::swap((*words)[w - 1], (*words)[(*rng)() % w]);
  }
}

// The window gave `op` the slots that the ring holds.
void ExpectPayload(Bench& b, const Op& op, const Expected& e) {
  ASSERT_NE(op.inline_data_lo, 0U);
  ASSERT_EQ(b.payloads.count(op.inline_data_lo), 1U);
  const Payload& payload = b.payloads[op.inline_data_lo];
  ASSERT_TRUE(payload.ok);
  std::vector<uint8_t> data(64 * e.desc.ext_slots);
  b.memory.Read(e.address + 64, data.data(), data.size());
  ASSERT_EQ(payload.data, data);
}

// In any order of words, wherever the window wraps.
TEST(TxFetchTest, PayloadThatWasPushedLeavesTheWindow) {
  Bench b(Seed(5));
  b.Enable(3);
  uint64_t op = 0;
  for (uint32_t bytes = 1; bytes <= 192; ++bytes) {
    const uint32_t slots = 1 + (bytes + 63) / 64;
    while ((b.tail[3] & 63) + slots > 64 || b.rng() % 2) {
      b.Post(3, Bench::Send(8, op));
      b.Ring(3);
      ASSERT_TRUE(b.WaitForOps(++op));
    }
    Expected e = Expect(b, 3, {});
    e.desc = PostPayload(&b, 3, bytes, op);
    e.slots = slots;
    auto words = CopyOfSlots(&b, 3, e.position, slots);
    Shuffle(&words, &b.rng);
    b.Push(3, words);
    const uint64_t doorbell = b.cycle;
    const size_t reads = b.reads.requests.size();
    b.Ring(3);
    ASSERT_TRUE(b.WaitForOps(++op));
    EXPECT_LE(b.ops.back().cycle, doorbell + 5);
    b.Run(5);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops.back(), e, b.cfg[3]));
    ASSERT_NO_FATAL_FAILURE(ExpectPayload(b, b.ops.back(), e));
    EXPECT_EQ(b.reads.requests.size(), reads);
  }
  EXPECT_EQ(b.pushed, 192U);
  EXPECT_EQ(b.payloads.size(), 192U);
  EXPECT_TRUE(b.dut->idle_o);
}

// `push` writes the copies of context 3, positions 14 to 17, of which the first
// is a descriptor with 192 bytes: its copy stands, its payload is read.
void ExpectPayloadRead(
    const std::function<void(Bench&, std::vector<Bench::Word>)>& push) {
  Bench b(1);
  b.Enable(3);
  b.Enable(4);
  for (uint32_t i = 0; i < 14; ++i) {
    b.Post(3, Bench::Send(8, i));
  }
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(14));
  Expected e = Expect(b, 3, {});
  e.desc = PostPayload(&b, 3, 192, 7);
  e.slots = 4;
  push(b, CopyOfSlots(&b, 3, 14, 4));
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(15));
  b.Run(20);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops.back(), e, b.cfg[3]));
  EXPECT_EQ(b.pushed, 1U);
  EXPECT_EQ(b.ops.back().inline_data_lo, 0U);
  EXPECT_TRUE(b.payloads.empty());
}

TEST(TxFetchTest, PayloadOfWhichAWordIsMissingIsRead) {
  for (uint32_t missing = 8; missing < 32; ++missing) {
    ExpectPayloadRead([&](Bench& b, auto words) {
      words.erase(words.begin() + missing);
      b.Push(3, words);
    });
  }
}

TEST(TxFetchTest, PayloadOfWhichASlotIsMissingIsRead) {
  for (uint32_t missing = 1; missing < 4; ++missing) {
    ExpectPayloadRead([&](Bench& b, auto words) {
      words.erase(words.begin() + 8 * missing, words.begin() + 8 * missing + 8);
      b.Push(3, words);
    });
  }
  ExpectPayloadRead([&](Bench& b, auto words) {
    words.resize(8);
    b.Push(3, words);
  });
}

TEST(TxFetchTest, PayloadOfWhichAWordCameTwiceIsRead) {
  for (uint32_t twice = 8; twice < 32; ++twice) {
    ExpectPayloadRead([&](Bench& b, auto words) {
      auto other = words[twice];
      ++other.data;
      words.insert(words.begin(), other);
      b.Push(3, words);
    });
  }
}

TEST(TxFetchTest, PayloadInOtherPlacesIsRead) {
  ExpectPayloadRead([&](Bench& b, auto words) {  // One slot on.
    for (size_t i = 8; i < words.size(); ++i) {
      ++words[i].position;
    }
    b.Push(3, words);
  });
  ExpectPayloadRead([&](Bench& b, auto words) {  // In another context.
    b.Push(3, {words.begin(), words.begin() + 24});
    b.Push(4, {words.begin() + 24, words.end()});
  });
}

TEST(TxFetchTest, PayloadFromBeforeAnEarlierDoorbellIsRead) {
  for (const uint32_t before : {1U, 8U, 16U, 24U}) {
    ExpectPayloadRead([&](Bench& b, auto words) {
      b.Push(3, {words.end() - before, words.end()});
      b.RingCount(3, 14);
      b.Push(3, {words.begin(), words.end() - before});
    });
  }
}

TEST(TxFetchTest, PayloadOverwrittenAfterItsDoorbellIsReadOrWhole) {
  uint32_t read = 0;
  uint32_t whole = 0;
  for (uint32_t word = 8; word < 32; ++word) {
    for (int gap = 0; gap < 10; ++gap) {
      Bench b(1);
      b.Enable(3);
      Expected e = Expect(b, 3, {});
      e.desc = PostPayload(&b, 3, 192, 7);
      e.slots = 4;
      const auto words = CopyOfSlots(&b, 3, 0, 4);
      b.Push(3, words);
      b.Ring(3);
      b.Run(gap);
      auto other = words[word];
      ++other.data;
      b.Push(3, {other});
      ASSERT_TRUE(b.WaitForOps(1));
      b.Run(20);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[0], e, b.cfg[3]));
      const uint64_t number = b.ops[0].inline_data_lo;
      if (number == 0 || !b.payloads[number].ok) {
        ++read;
      } else {
        ASSERT_NO_FATAL_FAILURE(ExpectPayload(b, b.ops[0], e));
        ++whole;
      }
    }
  }
  EXPECT_GT(read, 24U * 3);
  EXPECT_GT(whole, 24U * 3);
}

TEST(TxFetchTest, SlotsBeyondThePayloadThatWerePushedMeanNothing) {
  Bench b(1);
  b.Enable(3);
  Expected e = Expect(b, 3, {});
  e.desc = PostPayload(&b, 3, 64, 1);
  e.slots = 2;
  auto words = CopyOfSlots(&b, 3, 0, 4);
  b.Push(3, words);
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(1));
  b.Run(20);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[0], e, b.cfg[3]));
  ASSERT_NO_FATAL_FAILURE(ExpectPayload(b, b.ops[0], e));
  // The spare copies are not taken for the payload that comes there.
  Expected next = Expect(b, 3, {});
  next.desc = PostPayload(&b, 3, 64, 2);
  next.slots = 2;
  b.Push(3, b.CopyOfSlot(3, 2));
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(2));
  b.Run(20);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[1], next, b.cfg[3]));
  EXPECT_EQ(b.ops[1].inline_data_lo, 0U);
  EXPECT_EQ(b.pushed, 2U);
}

TEST(TxFetchTest, ContextsThatPushByTurnsHaveTheirOwnPayload) {
  Bench b(Seed(6));
  std::array<Expected, 8> expected;
  for (uint32_t c = 0; c < 8; ++c) {
    b.Enable(c);
  }
  for (uint32_t round = 0; round < 15; ++round) {
    std::vector<std::pair<uint32_t, Bench::Word>> words;
    for (uint32_t c = 0; c < 8; ++c) {
      expected[c] = Expect(b, c, {});
      expected[c].desc = PostPayload(&b, c, 65 + b.rng() % 128, c);
      expected[c].slots = 1U + expected[c].desc.ext_slots;
      for (const auto& word :
           CopyOfSlots(&b, c, expected[c].position, expected[c].slots)) {
        words.emplace_back(c, word);
      }
    }
    for (size_t w = words.size(); w > 1; --w) {
      std::swap(words[w - 1], words[b.rng() % w]);
    }
    for (const auto& [c, word] : words) {
      b.Push(c, {word});
    }
    b.ops.clear();
    for (uint32_t c = 0; c < 8; ++c) {
      b.Ring(c);
    }
    ASSERT_TRUE(b.WaitForOps(8));
    b.Run(60);
    for (const Op& op : b.ops) {
      ASSERT_NO_FATAL_FAILURE(ExpectSame(op, expected[op.ctx], b.cfg[op.ctx]));
      ASSERT_NO_FATAL_FAILURE(ExpectPayload(b, op, expected[op.ctx]));
    }
  }
  EXPECT_TRUE(b.reads.requests.empty());
  EXPECT_EQ(b.payloads.size(), 8U * 15);
}

// Only what was pushed has a number, whatever the descriptor holds.
TEST(TxFetchTest, NumberInADescriptorThatWasReadMeansNothing) {
  Bench b(1);
  b.Enable(3);
  for (const bool copied : {false, true}) {
    Expected e = Expect(b, 3, {});
    e.desc = PostPayload(&b, 3, 128, 1);
    e.slots = 3;
    auto slot = b.memory.Get<TxDesc>(e.address);
    slot.local_iova = 1;
    b.memory.Write(e.address, &slot, sizeof slot);
    if (copied) {
      b.Push(3, b.CopyOfSlot(3, e.position));
    }
    b.Ring(3);
    b.ops.clear();
    ASSERT_TRUE(b.WaitForOps(1));
    b.Run(60);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[0], e, b.cfg[3]));
    EXPECT_EQ(b.ops[0].inline_data_lo, 0U);
  }
  EXPECT_EQ(b.pushed, 1U);
}

// The context ends between the copy and its operation.
TEST(TxFetchTest, NumberEndsWithItsGeneration) {
  Bench b(1);
  b.Enable(3);
  PostPayload(&b, 3, 128, 1);
  b.Push(3, CopyOfSlots(&b, 3, 0, 3));
  b.dut->credit_ok_i = 0;
  b.Ring(3);
  b.Run(20);
  ASSERT_EQ(b.payloads.size(), 1U);
  b.Disable(3);
  b.Enable(3);
  b.dut->credit_ok_i = ~0u;
  Expected e = Expect(b, 3, {});
  e.desc = PostPayload(&b, 3, 128, 2);
  e.slots = 3;
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(1));
  ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[0], e, b.cfg[3]));
  EXPECT_EQ(b.ops[0].inline_data_lo, 0U);
}

TEST(TxFetchTest, PushedPayloadThatLooksLikeADescriptorStandsForNothing) {
  Bench b(1);
  b.Enable(3);
  TxDesc d = Bench::Send(0, 1);
  d.flags |= contract::kTxFlagInlineExt;
  d.length = 64;
  d.ext_slots = 1;
  b.Post(3, d);
  TxDesc payload = d;
  payload.position = 1;
  payload.ext_slots = 3;
  payload.length = 192;
  b.memory.Write(b.SlotAddress(3, 1), &payload, 64);
  b.Push(3, b.CopyOfSlot(3, 0));
  b.RingCount(3, 1);
  b.Run(100);
  std::vector<Expected> expected;
  for (uint32_t i = 0; i < 4; ++i) {
    const TxDesc next = Bench::Send(8, 10 + i);
    expected.push_back(Expect(b, 3, next));
    b.Post(3, next);
  }
  b.Push(3, b.CopyOfSlot(3, 1));
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(5));
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectSame(b.ops[1 + i], expected[i], b.cfg[3]));
  }
}

TEST(TxFetchTest, BadPushedDescriptorIsJudgedLikeAnyOther) {
  Bench b(1);
  b.Enable(3);
  TxDesc d = Bench::Send(8, 1);
  d.local_length = 9;
  b.Post(3, d);
  b.Push(3, b.CopyOfSlot(3, 0));
  b.Ring(3);
  b.Post(3, Bench::Send(8, 2));
  b.Push(3, b.CopyOfSlot(3, 1));
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(2));
  EXPECT_EQ(b.ops[0].status, Status::kBadLength);
  EXPECT_EQ(b.ops[1].status, Status::kFlushed);
  EXPECT_EQ(b.ops[1].op_context, 2u);
}

// A host that keeps its promise - a word it pushes for a slot is the slot's
// when the doorbell rings, or comes beside a second one - and breaks all else:
// words are missing, doubled, shuffled, of other positions and passes, early,
// late, or of a generation before. Words for a slot that will hold payload,
// which has no position, come beside a second one.
TEST(TxFetchTest, WhateverIsPushedOperationsAreThoseOfTheRing) {
  constexpr size_t kPosts = 30000;
  Bench b(TestSeed());
  using Word = Bench::Word;
  Rng& rng = b.rng;
  constexpr uint32_t kUsed = 6;  // Contexts.
  for (uint32_t c = 0; c < kUsed; ++c) {
    b.Enable(c, 3 + c % 4, c);
  }
  std::array<std::deque<Expected>, kContexts> expected;
  size_t posted = 0;
  size_t seen = 0;
  size_t pushes = 0;
  size_t slots_pushed = 0;                  // With payload.
  std::array<uint32_t, kContexts> noisy{};  // Slots of the window since its
                                            // last doorbell.
  std::map<uint64_t, std::vector<uint8_t>> numbered;  // Payload of the ring.
  // Words of a position that no doorbell soon covers, its own among them.
  const auto noise = [&](uint32_t c, uint32_t covered) {
    TxDesc d = Bench::Send(rng() % 1000, 0xbad);
    const uint32_t position =
        b.tail[c] + (rng() % 2 ? 64 + rng() % 64 : -(1 + covered + rng() % 64));
    d.position = uint16_t(position);
    auto words = Bench::Copy(position, &d);
    while (words.size() > 1 && rng() % 4 != 0) {
      words.erase(words.begin() + 1 + rng() % (words.size() - 1));
    }
    return words;
  };
  const auto append = [](std::vector<Word>* to, const std::vector<Word>& from) {
    to->insert(to->end(), from.begin(), from.end());
  };
  for (int round = 0; round < 400000 && seen < kPosts; ++round) {
    if (round % 64 == 0) {
      b.reads.latency = rng() % 3 == 0 ? 200 : 5;
      b.reads.stall_percent = rng() % 3 * 40;
      b.stall_percent = rng() % 3 * 30;
      b.retire_after = rng() % 100;
    }
    const uint32_t c = rng() % kUsed;
    const uint32_t size = 1u << b.cfg[c].ring_log2;
    if (expected[c].empty() && rng() % 32 == 0) {  // Another generation.
      TxDesc d = Bench::Send(1, 0xdead);
      d.position = uint16_t(rng() % 2 ? 0 : b.tail[c]);
      auto words = Bench::Copy(d.position, &d);
      words.resize(1 + rng() % 8);
      b.Push(c, words);
      b.Disable(c);
      if (rng() % 2) {
        b.Push(c, words);
      }
      b.Enable(c, b.cfg[c].ring_log2, c);
    }
    uint32_t used = 0;
    for (const Expected& e : expected[c]) {
      used += e.slots;
    }
    const uint32_t before = b.tail[c];
    std::vector<Word> words;
    uint32_t batch = rng() % 2 ? 1 : 1 + rng() % 20;
    const bool clean = rng() % 2;  // All of the copy, and nothing else.
    uint32_t holds_payload = 0;    // Slots of the window.
    for (; batch > 0 && posted < kPosts; --batch) {
      TxDesc d = RandomDescriptor(&rng, posted);
      const uint32_t slots = 1u + d.ext_slots;
      const uint32_t at = b.tail[c];
      if (used + slots > size || (at & (size - 1)) + slots > size) {
        continue;
      }
      used += slots;
      const Expected e = Expect(b, c, d);
      b.Post(c, d);
      for (uint32_t i = 1; i < slots; ++i) {  // Payload.
        TxDesc payload = RandomDescriptor(&rng, 0xfeed);
        payload.position = uint16_t(at + i);
        b.memory.Write(b.SlotAddress(c, at + i), &payload, 64);
      }
      expected[c].push_back(e);
      ++posted;
      const bool all = clean && rng() % 4 != 0;
      for (uint32_t i = 0; i < slots; ++i) {
        const uint32_t place = 1u << (at + i) % contract::kPushWindowSlots;
        auto copy = b.CopyOfSlot(c, at + i);
        if (i != 0) {
          holds_payload |= place;
          ++slots_pushed;
          if ((noisy[c] & place) != 0) {
            append(&words, copy);
            continue;
          }
        }
        if (i != 0 && !all && rng() % 2) {
          continue;
        }
        if (!clean && rng() % 8 == 0) {  // Of what the slot was to be at first.
          TxDesc other = RandomDescriptor(&rng, 0xbad);
          other.position = uint16_t(at + i);
          append(&words, Bench::Copy(at + i, &other));
          copy.resize(1 + rng() % 8);
        }
        if (!clean && copy.size() > 1 && rng() % 4 == 0) {  // Torn.
          copy.erase(copy.begin() + rng() % copy.size());
        }
        if (!clean && rng() % 4 == 0 && !copy.empty()) {  // Doubled.
          copy.push_back(copy[rng() % copy.size()]);
        }
        append(&words, copy);
        pushes += 1;
      }
    }
    if (!clean && rng() % 2) {
      const auto more = noise(c, b.tail[c] - before);
      append(&words, more);
      if (holds_payload >> more[0].position % contract::kPushWindowSlots & 1) {
        append(&words, more);
      }
    }
    for (size_t w = words.size(); w > 1; --w) {
      std::swap(words[w - 1], words[rng() % w]);
    }
    b.Push(c, words);
    if (rng() % 8 == 0) {
      b.Run(rng() % 8);
    }
    // In two steps, perhaps between a descriptor and its extension; but not
    // where the first one covers a slot whose place has words of the slot that
    // is a window further: payload does not show which of both it is.
    if (rng() % 4 == 0 && b.tail[c] != before &&
        uint16_t(b.tail[c] - before) <= contract::kPushWindowSlots) {
      b.RingCount(c, before + rng() % (b.tail[c] - before));
      b.Run(rng() % 2 * 20);
    }
    b.Ring(c);
    noisy[c] = 0;
    if (rng() % 4 == 0) {
      const auto more = noise(c, 0);
      b.Push(c, more);
      noisy[c] = 1u << more[0].position % contract::kPushWindowSlots;
    }
    if (rng() % 4 == 0) {
      b.Run(rng() % 64);
    }
    for (; seen < b.ops.size(); ++seen) {
      const Op& op = b.ops[seen];
      ASSERT_FALSE(expected[op.ctx].empty());
      const Expected e = expected[op.ctx].front();
      expected[op.ctx].pop_front();
      ASSERT_NO_FATAL_FAILURE(ExpectSame(op, e, b.cfg[op.ctx]))
          << "operation " << e.desc.op_context << " of context " << op.ctx;
      if ((op.flags & contract::kTxFlagInlineExt) != 0 &&
          op.inline_data_lo != 0) {
        auto& data = numbered[op.inline_data_lo];
        data.resize(64 * e.desc.ext_slots);
        b.memory.Read(e.address + 64, data.data(), data.size());
      }
    }
  }
  EXPECT_EQ(seen, kPosts);
  // The copies that deserve it are used.
  EXPECT_GT(b.pushed, kPosts / 20);
  EXPECT_LT(b.pushed, pushes);
  std::printf("%lu of %zu pushes used\n", b.pushed, pushes);
  b.Run(10);
  size_t payload_slots = 0;
  for (const auto& [number, data] : numbered) {
    const Payload& payload = b.payloads.at(number);
    ASSERT_TRUE(payload.complete);
    if (payload.ok) {
      ASSERT_EQ(payload.data, data);
      payload_slots += data.size() / 64;
    }
  }
  EXPECT_GT(payload_slots, slots_pushed / 200);
  std::printf("%zu of %zu slots of payload used\n", payload_slots,
              slots_pushed);
}

// A descriptor of several local segments, which are in its extension slot.
struct Segmented {
  TxDesc desc;
  std::array<contract::TxSegment, 4> segments{};
};

Segmented RandomSegments(Rng* rng, uint64_t op_context) {
  Segmented s;
  s.desc = Bench::Send(0, op_context);
  s.desc.segments = uint8_t(2 + (*rng)() % 3);
  s.desc.ext_slots = 1;
  s.desc.length = 1;
  for (size_t i = 0; i < s.desc.segments; ++i) {
    const uint32_t length = (*rng)() % 5 == 0 ? 0 : (*rng)() % 100000;
    s.segments[i] = {.iova = (*rng)(), .length = length};
    s.desc.length += length;
  }
  ++s.segments[0].length;
  return s;
}

void PostSegments(Bench* b, uint32_t ctx, const Segmented& s) {
  b->memory.Write(b->SlotAddress(ctx, b->tail[ctx] + 1), s.segments.data(),
                  sizeof s.segments);
  b->Post(ctx, s.desc);
}

TEST(TxFetchTest, SegmentsLeaveWithTheirDescriptorBetweenOthers) {
  for (uint32_t seed = Seed(41), end = seed + 30; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(seed);
    b.stall_percent = seed % 60;
    b.reads.stall_percent = seed % 30;
    b.Enable(1, 6);
    b.Enable(2, 6);
    std::array<std::deque<Segmented>, 3> expected;
    size_t seen = 0, made = 0;
    std::array<uint32_t, 3> used{};
    for (int i = 0; i < 60000 && seen < 400; ++i) {
      const uint32_t c = 1 + b.rng() % 2;
      if (made < 400 && used[c] <= 60 && (b.tail[c] & 63) != 63 &&
          b.rng() % 3 == 0) {
        Segmented s;
        if (b.rng() % 3 == 0) {
          s.desc = Bench::Send(b.rng() % 5000, made);
          b.Post(c, s.desc);
        } else {
          s = RandomSegments(&b.rng, made);
          PostSegments(&b, c, s);
        }
        used[c] += 1U + s.desc.ext_slots;
        expected[c].push_back(s);
        ++made;
        b.Ring(c);
      } else if (made < 400 && (b.tail[c] & 63) == 63 && used[c] < 60) {
        Segmented s;  // Nothing with an extension fits before the wrap.
        s.desc = Bench::Send(0, made);
        b.Post(c, s.desc);
        ++used[c];
        expected[c].push_back(s);
        ++made;
        b.Ring(c);
      }
      b.Tick();
      for (; seen < b.ops.size(); ++seen) {
        const Op& op = b.ops[seen];
        ASSERT_FALSE(expected[op.ctx].empty());
        const Segmented s = expected[op.ctx].front();
        expected[op.ctx].pop_front();
        used[op.ctx] -= 1U + s.desc.ext_slots;
        ASSERT_EQ(op.status, Status::kOk);
        ASSERT_EQ(op.op_context, s.desc.op_context);
        ASSERT_EQ(op.length, s.desc.length);
        ASSERT_EQ(op.slots, 1U + s.desc.ext_slots);
        ASSERT_EQ(op.segmented, s.desc.segments > 1);
        for (size_t k = 0; k < 4; ++k) {
          ASSERT_EQ(
              (k == 0 ? op.iova : op.more_iova[k - 1]),
              op.segmented || k != 0 ? s.segments[k].iova : s.desc.local_iova);
          ASSERT_EQ(op.lengths[k], s.segments[k].length);
        }
      }
    }
    EXPECT_EQ(seen, 400U);
  }
}

TEST(TxFetchTest, SegmentsThatContradictTheirDescriptorAreRefused) {
  const std::function<void(Segmented*)> spoils[] = {
      [](Segmented* s) { ++s->segments[0].length; },
      [](Segmented* s) { s->segments[1].rsvd0 = 1; },
      [](Segmented* s) {
        s->desc.segments = 2;
        s->segments[2] = s->segments[3] = {};
        s->segments[3].iova = 8;
        s->desc.length = s->segments[0].length + s->segments[1].length;
      },
      [](Segmented* s) { s->desc.segments = 5; },
      [](Segmented* s) {
        s->segments = {};
        s->desc.length = 0;
      },
      [](Segmented* s) { s->desc.rsvd0 = 1; },
      [](Segmented* s) { s->desc.flags |= contract::kTxFlagInline; },
  };
  for (const auto& spoil : spoils) {
    Bench b(5);
    b.Enable(1, 6);
    Segmented s = RandomSegments(&b.rng, 4);
    spoil(&s);
    PostSegments(&b, 1, s);
    b.Post(1, Bench::Send(8, 10));
    b.Ring(1);
    ASSERT_TRUE(b.WaitForOps(2));
    EXPECT_EQ(b.ops[0].status, Status::kBadLength);
    EXPECT_FALSE(b.ops[0].segmented);
    EXPECT_EQ(b.ops[1].status, Status::kFlushed);
    EXPECT_EQ(b.ops[1].op_context, 10U) << "the segments are no descriptor";
  }
}

TEST(TxFetchTest, GroupedDescriptorsGetANumberAndTheLastTheirCount) {
  Bench b(1);
  b.Enable(2, 8);
  const auto post = [&](bool more, Opcode opcode = Opcode::kSend) {
    TxDesc d = Bench::Send(8, 4);
    if (opcode == Opcode::kNop) {
      d = TxDesc{};
      d.opcode = opcode;
    }
    if (more) d.flags |= contract::kTxFlagMore;
    b.Post(2, d);
  };
  struct Case {
    bool more;
    Opcode opcode;
    bool grouped;
    uint32_t group, members;
  };
  const Case cases[] = {
      {false, Opcode::kSend, false, 0, 0}, {true, Opcode::kSend, true, 0, 0},
      {true, Opcode::kSend, true, 0, 1},   {false, Opcode::kNop, false, 0, 2},
      {false, Opcode::kSend, true, 0, 2},  {false, Opcode::kSend, false, 1, 0},
      {true, Opcode::kSend, true, 1, 0},   {false, Opcode::kSend, true, 1, 1},
      {true, Opcode::kNop, false, 2, 0},   {false, Opcode::kSend, false, 2, 0},
  };
  for (const Case& c : cases) {
    post(c.more, c.opcode);
  }
  b.Ring(2);
  ASSERT_TRUE(b.WaitForOps(std::size(cases)));
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(b.ops[i].status, Status::kOk);
    EXPECT_EQ(b.ops[i].group.valid, cases[i].grouped);
    if (cases[i].grouped) {
      EXPECT_EQ(b.ops[i].group.number, cases[i].group);
      EXPECT_EQ(b.ops[i].group.members, cases[i].members);
    }
  }
}

TEST(TxFetchTest, GroupedOperationsWaitForAFreeNumberAndForNobodyElse) {
  Bench b(1);
  b.Enable(2, 8);
  b.Enable(3, 8);
  for (int i = 0; i < 34; ++i) {
    TxDesc d = Bench::Send(8, 4);
    d.flags |= contract::kTxFlagMore;
    b.Post(2, d);
    b.Post(2, Bench::Send(8, 4));
  }
  b.Ring(2);
  ASSERT_TRUE(b.WaitForOps(64));
  b.Run(500);
  EXPECT_EQ(b.ops.size(), 64u);
  b.Post(3, Bench::Send(8, 4));
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(65));
  const auto end = [&](uint32_t number) {
    b.dut->group_i = 1;
    b.dut->group_ctx_i = 2;
    b.dut->group_number_i = uint8_t(number);
    b.Tick();
    b.dut->group_i = 0;
    // It is not idle before it has found the number.
    for (int i = 0; i < 200 && (i < 2 || b.dut->idle_o == 0); ++i) b.Tick();
  };
  end(7);
  ASSERT_EQ(b.ops.size(), 67u);
  EXPECT_EQ(b.ops[65].group.number, 7u);
  EXPECT_EQ(b.ops[66].group.number, 7u);
  end(0);
  ASSERT_EQ(b.ops.size(), 69u);
  EXPECT_EQ(b.ops[68].group.number, 0u);
}

TEST(TxFetchTest, FencedOperationWaitsForThoseBeforeItAndNotForOtherContexts) {
  Bench b(1);
  b.Enable(2);
  b.Enable(3);
  b.retire = false;
  b.Post(2, Bench::Send(8, 4));
  TxDesc fenced = Bench::Send(8, 10);
  fenced.flags |= contract::kTxFlagFence;
  b.Post(2, fenced);
  b.Post(2, Bench::Send(8, 16));
  b.Post(3, fenced);
  b.Ring(2);
  b.Ring(3);
  ASSERT_TRUE(b.WaitForOps(2));
  b.Run(300);
  ASSERT_EQ(b.ops.size(), 2u);
  EXPECT_TRUE(b.dut->idle_o) << "nothing to do until one retires";
  b.retire = true;
  ASSERT_TRUE(b.WaitForOps(4));
  EXPECT_EQ(b.ops[2].op_context, 10u);
  EXPECT_EQ(b.ops[3].op_context, 16u);
}

TEST(TxFetchTest, TableReadsBackAndRefusesUnknownContexts) {
  Bench b(1);
  b.Enable(6);
  const auto [error, entry] = b.Table(contract::TableOp::kRead, 6);
  EXPECT_FALSE(error);
  EXPECT_EQ(entry, b.cfg[6]);
  EXPECT_TRUE(b.Table(contract::TableOp::kRead, kContexts).first);
  EXPECT_EQ(GetBits(b.dut->head_cell_o, 6 * 64, 64), b.cfg[6].head_cell);
  EXPECT_EQ(GetBits(b.dut->ring_log2_o, 6 * 4, 4), b.cfg[6].ring_log2);
  EXPECT_EQ(GetBits(b.dut->counters_o, 6 * 24, 24), 0x0b0c0du);
}

TEST(TxFetchTest, AddressVectorIsForgottenOnDoorbellAndOnConfiguration) {
  Bench b(1);
  bool forgotten = false;
  b.dut->db_valid_i = 1;
  PutDoorbell(&b.dut->db_i, contract::kTxPageFirst + 9,
              contract::kDoorbellOpOffset,
              uint64_t(contract::DoorbellOp::kAvInvalidate));
  b.Tick([&] { forgotten = b.dut->av_invalidate_o && b.dut->av_ctx_o == 9; });
  EXPECT_TRUE(forgotten);
  b.dut->db_valid_i = 1;
  PutDoorbell(&b.dut->db_i, contract::kTxPageFirst + 9,
              contract::kDoorbellOpOffset, 0);
  b.Tick([&] { forgotten = b.dut->av_invalidate_o; });
  EXPECT_FALSE(forgotten);
}

}  // namespace
}  // namespace heddle::test
