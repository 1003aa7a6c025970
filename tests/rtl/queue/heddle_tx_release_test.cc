// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "Vheddle_tx_release.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/bench.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

using contract::Completion;
using contract::Opcode;
using contract::Status;

constexpr uint32_t kContexts = rtl::kNumTx;

struct Message {
  uint32_t ctx = 0;
  uint32_t gen = 0;
  uint32_t position = 0;
  uint32_t slots = 1;
  bool grouped = false;
  uint32_t group = 0;
  uint32_t members = 0;
  Opcode opcode = Opcode::kSend;
  uint32_t flags = contract::kTxFlagCompletion;
  uint32_t length = 0;
  uint64_t op_context = 0;
};

struct Event : rtl::CqEvent {
  uint64_t cycle = 0;
};

class Bench {
 public:
  explicit Bench(uint32_t seed) : rng(seed) {
    dut->tx_seq_done_i = 0;
    for (uint32_t c = 0; c < kContexts; ++c) {
      SetContext(c, false, 0, 6);
    }
    Tick();
  }

  sim::model::ClockedModel<Vheddle_tx_release> dut;
  Rng rng;
  uint64_t cycle = 0;
  std::deque<std::pair<uint32_t, Message>> allocate;
  std::deque<rtl::TxDone> done;
  std::optional<rtl::TxGive> give;  // Slots to release before their end.
  std::optional<uint32_t> owe;      // Message of such, in the next cycle.
  struct Given {
    rtl::TxGive give;
    bool ok;
    bool front;    // No earlier operation had its slots.
    size_t event;  // Events before.
  };
  std::deque<Given> given;  // Tried.
  std::vector<Event> events;
  std::vector<uint32_t> freed;
  std::vector<std::pair<uint32_t, uint32_t>> groups;  // Ended: context, number.
  uint32_t stall_percent = 0;

  void SetContext(uint32_t ctx, bool alive, uint32_t gen, uint32_t log2) {
    alive_[ctx] = alive;
    gen_[ctx] = gen;
    log2_[ctx] = log2;
    uint32_t alive_bits = 0;
    for (uint32_t c = 0; c < kContexts; ++c) {
      alive_bits |= uint32_t{alive_[c]} << c;
      PutBits(dut->gen_i, c * rtl::kGenW, rtl::kGenW, gen_[c]);
      PutBits(dut->head_cell_i, c * 64, 64, Cell(c));
      PutBits(dut->ring_log2_i, c * 4, 4, log2_[c]);
      rtl::DriveElement(dut->counters_i, c,
                        rtl::TxCounters{.send = uint8_t(c + 1),
                                        .read = uint8_t(c + 21),
                                        .write = uint8_t(c + 41)});
    }
    dut->alive_i = uint16_t(alive_bits);
  }
  static uint64_t Cell(uint32_t ctx) { return 0x70000 + ctx * 8; }

  void Tick() {
    dut->ev_ready_i = rng() % 100 >= stall_percent;
    dut->wr_valid_i = !allocate.empty();
    if (!allocate.empty()) {
      const auto& [index, m] = allocate.front();
      dut->wr_msg_i = uint16_t(index);
      rtl::Drive(dut->wr_data_i,
                 rtl::MsgDone{.ctx = uint8_t(m.ctx),
                              .gen = m.gen,
                              .owner = uint8_t(m.ctx + 1),
                              .cq = uint8_t(m.ctx + 3),
                              .cq_gen = m.ctx & 7,
                              .position = uint16_t(m.position),
                              .slots = uint8_t(m.slots),
                              .group = {.valid = m.grouped,
                                        .number = uint8_t(m.group),
                                        .members = uint16_t(m.members)},
                              .opcode = m.opcode,
                              .flags = uint8_t(m.flags),
                              .peer = m.ctx + 9,
                              .length = m.length,
                              .op_context = m.op_context});
      allocate.pop_front();
    }
    dut->owe_i = owe.has_value();
    dut->owe_msg_i = uint16_t(owe.value_or(0));
    owe.reset();
    dut->give_valid_i = give.has_value() && !asked_;
    rtl::Drive(dut->give_i, give.value_or(rtl::TxGive{}));
    dut->done_valid_i = !done.empty();
    if (!done.empty()) {
      rtl::Drive(dut->done_i, done.front());
    }
    dut.Settle();
    if (dut->done_valid_i && dut->done_ready_o) {
      done.pop_front();
    }
    if (dut->give_done_o) {
      ASSERT_TRUE(asked_);
      const bool front =
          GetBits(dut->head_o, give->ctx * 16, 16) == give->position;
      given.push_back({*give, dut->give_ok_o != 0, front, emitted_});
      emitted_ += dut->give_ok_o != 0 && front ? 1 : 0;
      give.reset();
    }
    asked_ = give.has_value() &&
             (asked_ || (dut->give_valid_i && dut->give_ready_o));
    if (dut->free_o) {
      EXPECT_TRUE(dut->retire_o);
      freed.push_back(dut->free_msg_o);
      ++emitted_;
    }
    if (dut->group_o) {
      groups.emplace_back(dut->group_ctx_o, dut->group_number_o);
    }
    if (dut->ev_valid_o && dut->ev_ready_i) {
      const auto e = rtl::Sample<rtl::CqEvent>(dut->ev_o);
      EXPECT_EQ(e.count.region, 0u) << "no region";
      events.push_back({e, cycle});
    }
    dut.Tick();
    ++cycle;
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) {
      Tick();
    }
  }
  [[nodiscard]] bool WaitFor(size_t count, int limit = 20000) {
    for (int i = 0; i < limit && events.size() < count; ++i) {
      Tick();
    }
    return events.size() >= count;
  }

 private:
  std::array<bool, kContexts> alive_{};
  std::array<uint32_t, kContexts> gen_{};
  std::array<uint32_t, kContexts> log2_{};
  bool asked_ = false;  // `give` was taken.
  size_t emitted_ = 0;  // Events but tokens, perhaps not taken yet.
};

// What the module promises, one context.
struct ContextModel {
  uint32_t size = 0;
  uint32_t head = 0;
  uint32_t reported = 0;
  uint32_t tail = 0;
  std::map<uint32_t, uint32_t> ended;  // Position -> slots.
  std::deque<uint32_t> open;           // Message indices.

  void End(uint32_t position, uint32_t slots) {
    ended[position] = slots;
    for (auto it = ended.find(head); it != ended.end(); it = ended.find(head)) {
      head = uint16_t(head + it->second);
      ended.erase(it);
    }
  }
};

TEST(TxReleaseTest, CountedByClassWithACompletionOrWithout) {
  Bench b(7);
  b.SetContext(2, true, 1, 6);
  b.Tick();
  struct Case {
    Opcode opcode;
    uint32_t flags;
    Status status;
    uint32_t gen;
    uint32_t counted;
  };
  const uint32_t completion = contract::kTxFlagCompletion;
  const Case cases[] = {
      {Opcode::kSend, completion, Status::kOk, 1, 3},
      {Opcode::kSend, 0, Status::kOk, 1, 3},
      {Opcode::kWrite, 0, Status::kOk, 1, 43},
      {Opcode::kWrite, 0, Status::kFlushed, 1, 43},
      {Opcode::kRead, completion, Status::kRemoteError, 1, 23},
      {Opcode::kNop, 0, Status::kOk, 1, 0},
      {Opcode::kSend, completion, Status::kOk, 0, 0},  // Its context is gone.
  };
  uint32_t position = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(position);
    Message m;
    m.ctx = 2;
    m.gen = c.gen;
    m.position = position;
    m.opcode = c.opcode;
    m.flags = c.flags;
    b.allocate.push_back({position, m});
    b.Tick();
    b.done.push_back({.msg = uint16_t(position), .status = c.status});
    ASSERT_TRUE(b.WaitFor(position + 1));
    EXPECT_EQ(b.events.back().count.own, c.counted);
    EXPECT_EQ(b.events.back().entry.status, c.status);
    ++position;
  }
}

// Chains of descriptors that end in any order: one completion each, the last
// one's, with the first failure.
TEST(TxReleaseTest, GroupedLastSpeaksForAllUnderRandomCompletionOrder) {
  for (uint32_t seed = Seed(21), end = seed + 30; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(seed);
    b.stall_percent = seed % 50;
    struct Chain {
      std::vector<Message> messages;
      std::vector<bool> ended;  // Their event was seen.
      Status status = Status::kOk;
      uint32_t detail = 0;
      size_t failed = ~size_t{0};
    };
    std::vector<Chain> chains;
    std::map<uint64_t, std::pair<size_t, size_t>> by_context;
    std::array<ContextModel, 4> model;
    std::array<std::array<bool, 32>, 4> busy{};
    std::array<uint32_t, 4> number{};
    std::vector<uint32_t> free_list;
    std::map<uint32_t, uint64_t> table;  // Message -> op_context.
    for (uint32_t i = 0; i < 400; ++i) {
      free_list.push_back(i);
    }
    for (uint32_t c = 0; c < 4; ++c) {
      model[c].size = 64;
      b.SetContext(c, true, 1, 6);
    }
    b.Run(400);
    uint64_t serial = 0;
    size_t seen = 0, seen_groups = 0, made = 0, expected_groups = 0;
    constexpr size_t kChains = 200;
    for (int i = 0; i < 60000 && (made < kChains || !by_context.empty()); ++i) {
      const uint32_t c = b.rng() % 4;
      ContextModel& m = model[c];
      const uint32_t size = 1 + b.rng() % 5;
      if (made < kChains && free_list.size() >= size &&
          uint16_t(m.tail - m.head) + size <= m.size && !busy[c][number[c]] &&
          b.rng() % 4 == 0) {
        Chain chain;
        for (uint32_t k = 0; k < size; ++k) {
          Message msg;
          msg.ctx = c;
          msg.gen = 1;
          msg.position = m.tail;
          msg.opcode = Opcode::kWrite;
          msg.flags = b.rng() % 2 ? contract::kTxFlagCompletion : 0;
          if (k + 1 < size) msg.flags |= contract::kTxFlagMore;
          msg.grouped = size > 1;
          msg.group = number[c];
          msg.members = k;
          msg.length = b.rng();
          msg.op_context = ++serial;
          m.tail = uint16_t(m.tail + 1);
          by_context[serial] = {chains.size(), k};
          const uint32_t index = free_list.back();
          free_list.pop_back();
          m.open.push_back(index);
          table[index] = serial;
          b.allocate.emplace_back(index, msg);
          chain.messages.push_back(msg);
        }
        chain.ended.resize(size);
        if (size > 1) {
          busy[c][number[c]] = true;
          number[c] = (number[c] + 1) % 32;
          ++expected_groups;
        }
        chains.push_back(chain);
        ++made;
      }
      ContextModel& e = model[b.rng() % 4];
      if (!e.open.empty() && b.done.size() < 2 && b.allocate.empty()) {
        const size_t pick = b.rng() % e.open.size();
        rtl::TxDone d;
        d.msg = uint16_t(e.open[pick]);
        e.open.erase(e.open.begin() + int64_t(pick));
        const auto [chain, at] = by_context.at(table.at(d.msg));
        if (b.rng() % 6 == 0) {
          d.status = b.rng() % 2 ? Status::kPeerRejected : Status::kFlushed;
          d.detail = uint8_t(b.rng());  // As codes are.
          if (at < chains[chain].failed) {
            chains[chain].failed = at;
            chains[chain].status = d.status;
            chains[chain].detail = d.detail;
          }
        }
        b.done.push_back(d);
      }
      const size_t freed = b.freed.size();
      b.Tick();
      for (size_t f = freed; f < b.freed.size(); ++f) {
        free_list.insert(free_list.begin(), b.freed[f]);
      }
      for (; seen_groups < b.groups.size(); ++seen_groups) {
        const auto [ctx, group] = b.groups[seen_groups];
        ASSERT_TRUE(busy[ctx][group]);
        busy[ctx][group] = false;
      }
      for (; seen < b.events.size(); ++seen) {
        const Event& ev = b.events[seen];
        const auto found = by_context.find(ev.entry.op_context);
        ASSERT_NE(found, by_context.end()) << "a second event";
        const auto [number_of, at] = found->second;
        Chain& chain = chains[number_of];
        const Message& msg = chain.messages[at];
        model[msg.ctx].End(msg.position, msg.slots);
        ASSERT_EQ(ev.entry.queue_head, model[msg.ctx].head);
        ASSERT_TRUE(ev.credit);
        chain.ended[at] = true;
        by_context.erase(found);
        if (at + 1 < chain.messages.size()) {
          ASSERT_FALSE(ev.write);
          ASSERT_EQ(ev.count.own, 0u);
          continue;
        }
        for (const bool ended : chain.ended) {
          ASSERT_TRUE(ended);
        }
        ASSERT_EQ(ev.write, chain.status != Status::kOk ||
                                (msg.flags & contract::kTxFlagCompletion));
        ASSERT_EQ(ev.entry.status, chain.status);
        ASSERT_EQ(ev.entry.detail, chain.detail);
        ASSERT_EQ(ev.entry.context_high, 0);
        ASSERT_EQ(ev.count.own, msg.ctx + 41);
      }
    }
    ASSERT_EQ(made, kChains);
    ASSERT_TRUE(by_context.empty());
    ASSERT_EQ(b.groups.size(), expected_groups);
    b.Run(10);
    ASSERT_TRUE(b.dut->idle_o);
  }
}

TEST(TxReleaseTest, GroupedLastIsGivenBackWhenItsContextEnds) {
  Bench b(3);
  b.SetContext(5, true, 1, 4);
  b.SetContext(6, true, 1, 4);
  b.Run(300);
  const auto allocate = [&](uint32_t index, uint32_t ctx, uint32_t gen,
                            uint32_t position, bool more, uint32_t members) {
    Message m;
    m.ctx = ctx;
    m.gen = gen;
    m.position = position;
    m.grouped = true;
    m.group = 3;
    m.members = members;
    m.flags = more ? contract::kTxFlagMore : contract::kTxFlagCompletion;
    m.op_context = index;
    b.allocate.push_back({index, m});
    b.Tick();
  };
  for (uint32_t ctx : {5u, 6u}) {
    allocate(10 * ctx, ctx, 1, 0, true, 0);
    allocate(10 * ctx + 1, ctx, 1, 1, false, 1);
    b.done.push_back({.msg = uint16_t(10 * ctx + 1)});
  }
  b.Run(100);
  EXPECT_TRUE(b.events.empty()) << "both are held";
  b.SetContext(5, false, 2, 4);
  ASSERT_TRUE(b.WaitFor(1, 200));
  EXPECT_EQ(b.events[0].entry.op_context, 51u);
  EXPECT_TRUE(b.events[0].credit);
  EXPECT_FALSE(b.events[0].write);
  EXPECT_EQ(b.freed, std::vector<uint32_t>{51});
  // Its number serves the next life, whenever the rest of the old one ends.
  b.SetContext(5, true, 2, 4);
  b.Run(100);
  allocate(100, 5, 2, 0, true, 0);
  allocate(101, 5, 2, 1, false, 1);
  b.done.push_back({.msg = 101});
  b.done.push_back({.msg = 50});
  b.Run(100);
  ASSERT_EQ(b.events.size(), 2u);
  EXPECT_EQ(b.events[1].entry.op_context, 50u);
  b.done.push_back({.msg = 100});
  b.done.push_back({.msg = 60});
  ASSERT_TRUE(b.WaitFor(6, 300));
  EXPECT_EQ(b.events[4].entry.op_context, 101u);
  EXPECT_TRUE(b.events[4].write);
  EXPECT_EQ(b.events[5].entry.op_context, 61u);
  EXPECT_TRUE(b.events[5].write);
}

// It came from the spill area.
TEST(TxReleaseTest, AnOperationWithoutSlotsAlwaysEndsWithACompletion) {
  Bench b(Seed(12));
  b.SetContext(3, true, 3, 4);
  b.Run(100);
  Message msg;
  msg.ctx = msg.gen = 3;
  msg.slots = 0;
  msg.flags = 0;
  msg.position = 9;
  msg.opcode = Opcode::kSend;
  b.allocate.emplace_back(5, msg);
  b.Run(5);
  rtl::TxDone d;
  d.msg = 5;
  b.done.push_back(d);
  b.Run(20);
  ASSERT_EQ(b.events.size(), 1u);
  EXPECT_TRUE(b.events[0].write);
  EXPECT_EQ(b.events[0].entry.kind, contract::CompletionKind::kTxSilent);
  EXPECT_EQ(b.events[0].entry.position, 9u);
  EXPECT_EQ(b.events[0].entry.queue_head, 0u);
}

// Some messages are spilled meanwhile.
TEST(TxReleaseTest, OrderedReleaseAndCellRuleUnderRandomCompletionOrder) {
  Bench b(Seed(5));
  b.stall_percent = 30;
  std::array<ContextModel, kContexts> model;
  std::map<uint32_t, Message> table;
  std::vector<uint32_t> free_list;
  for (uint32_t i = 0; i < 1024; ++i) {
    free_list.push_back(i);
  }
  for (uint32_t c = 0; c < kContexts; ++c) {
    model[c].size = 8u << c % 5;
    b.SetContext(c, true, c, 3 + c % 5);
  }
  b.Run(2000);
  std::deque<std::pair<Message, rtl::TxDone>> pending;  // Given, no event yet.
  size_t seen = 0;
  size_t freed = 0;
  constexpr size_t kMessages = 20000;
  size_t made = 0;
  std::deque<rtl::TxGive> waiting;  // Operations without a message.
  Message asked;                    // The one of `b.give`.
  size_t marked = 0;                // Released before earlier ones.
  std::set<uint64_t> gone;          // Operations that ended.
  std::map<uint64_t, Message> operations;
  std::set<uint64_t> spilled;  // Operations whose slots were released early.
  std::set<uint64_t> owed;     // Those that end with a completion.
  size_t spilled_count = 0;
  for (int i = 0;
       i < 400000 && (seen < kMessages + spilled_count || !waiting.empty() ||
                      b.give || !b.given.empty());
       ++i) {
    const uint32_t c = b.rng() % kContexts;
    ContextModel& m = model[c];
    if (b.rng() % 16 == 0 && made < kMessages &&
        uint16_t(m.tail - m.head) < m.size) {
      rtl::TxGive give;
      give.waits = true;
      give.msg = uint16_t(b.rng() % 1024);
      give.ctx = uint8_t(c);
      give.gen = c;
      give.position = uint16_t(m.tail);
      give.slots = 1;
      waiting.push_back(give);
      m.tail = uint16_t(m.tail + 1);
    }
    if (made < kMessages && !free_list.empty() && b.rng() % 2) {
      Message msg;
      msg.ctx = c;
      msg.gen = c;
      msg.position = m.tail;
      msg.slots = 1 + (b.rng() % 4 == 0 ? b.rng() % 4 : 0);
      const uint32_t kind = b.rng() % 8;
      msg.opcode = kind == 0 ? Opcode::kNop : Opcode::kSend;
      msg.flags = kind < 5 ? 0 : contract::kTxFlagCompletion;
      msg.length = b.rng();
      msg.op_context = made + 1;
      if (uint16_t(m.tail - m.head) + msg.slots <= m.size) {
        const uint32_t index = free_list.back();
        free_list.pop_back();
        m.tail = uint16_t(m.tail + msg.slots);
        m.open.push_back(index);
        table[index] = msg;
        operations[msg.op_context] = msg;
        b.allocate.emplace_back(index, msg);
        ++made;
      }
    }
    ContextModel& e = model[b.rng() % kContexts];
    if (!e.open.empty() && b.done.size() < 2 && b.allocate.empty()) {
      // Mostly the oldest, sometimes any.
      const size_t pick = b.rng() % 3 ? 0 : b.rng() % e.open.size();
      rtl::TxDone d;
      d.msg = uint16_t(e.open[pick]);
      e.open.erase(e.open.begin() + int64_t(pick));
      if (b.rng() % 10 == 0) {
        d.status = Status::kPeerRejected;
        d.detail = uint8_t(b.rng());  // As codes are.
      }
      b.done.push_back(d);
      pending.emplace_back(table.at(d.msg), d);
    }
    // The oldest, often; one that has ended, or is not the oldest, at times.
    if (!b.give && b.given.empty() && b.allocate.empty() && b.rng() % 8 == 0) {
      const ContextModel& s = model[b.rng() % kContexts];
      if (!waiting.empty() && (made == kMessages || b.rng() % 2)) {
        b.give = waiting.front();
        waiting.pop_front();
      } else if (!s.open.empty() || !b.done.empty()) {
        const uint32_t index =
            s.open.empty() ? b.done.back().msg
                           : s.open[b.rng() % 2 ? b.rng() % s.open.size() : 0];
        const Message& msg = asked = table.at(index);
        rtl::TxGive give;
        give.msg = uint16_t(index);
        give.ctx = uint8_t(msg.ctx);
        give.gen = msg.gen;
        give.position = uint16_t(msg.position);
        give.slots = uint8_t(msg.slots);
        if (b.rng() % 16 == 0) {
          ++give.position;  // The entry was that of another message.
        } else if (b.rng() % 4 != 0) {
          b.owe = index;
          owed.insert(msg.op_context);
        }
        b.give = give;
      }
    }
    b.Tick();
    // The slots that were tried before event `seen`; those at the head have
    // one.
    const auto give = [&] {
      const Bench::Given given = b.given.front();
      b.given.pop_front();
      ContextModel& cm = model[given.give.ctx];
      bool ok = true;
      if (!given.give.waits) {
        ok = asked.position == given.give.position &&
             gone.count(asked.op_context) == 0 &&
             spilled.insert(asked.op_context).second;
      }
      ASSERT_EQ(given.ok, ok);
      ASSERT_EQ(given.ok && given.front, ok && given.give.position == cm.head);
      if (ok) cm.End(given.give.position, given.give.slots);
      marked += ok && !given.front ? 1 : 0;
    };
    const auto tried = [&](bool front) {
      return !b.given.empty() && b.given.front().event <= seen &&
             (b.given.front().ok && b.given.front().front) == front;
    };
    for (; seen < b.events.size(); ++seen) {
      const Event& ev = b.events[seen];
      while (tried(false)) give();
      ASSERT_EQ(tried(true), !ev.credit);
      if (!ev.credit) {
        ContextModel& cm = model[b.given.front().give.ctx];
        give();
        ASSERT_TRUE(ev.head);
        ASSERT_FALSE(ev.write);
        ASSERT_EQ(ev.entry.queue_head, cm.head);
        ASSERT_EQ(ev.count.own, 0u);
        cm.reported = cm.head;
        ++spilled_count;
        continue;
      }
      ASSERT_FALSE(pending.empty());
      const auto [msg, d] = pending.front();
      pending.pop_front();
      ContextModel& cm = model[msg.ctx];
      gone.insert(msg.op_context);
      if (spilled.count(msg.op_context) == 0) {
        cm.End(msg.position, msg.slots);
      }
      const bool ok = d.status == Status::kOk;
      const bool unasked = ok && !(msg.flags & contract::kTxFlagCompletion);
      const bool silent = (ok && msg.opcode == Opcode::kNop) ||
                          (unasked && owed.count(msg.op_context) == 0);
      ASSERT_TRUE(ev.credit);
      ASSERT_FALSE(ev.token);
      ASSERT_EQ(ev.write, !silent);
      ASSERT_EQ(ev.owner, msg.ctx + 1);
      ASSERT_EQ(ev.cq, msg.ctx + 3);
      ASSERT_EQ(ev.cq_gen, msg.ctx & 7);
      ASSERT_EQ(ev.entry.queue_head, cm.head);
      if (ev.write) {
        ASSERT_FALSE(ev.head);
        ASSERT_EQ(ev.entry.kind, unasked ? contract::CompletionKind::kTxSilent
                                         : contract::CompletionKind::kTx);
        ASSERT_EQ(ev.entry.status, d.status);
        ASSERT_EQ(ev.entry.detail, d.detail);
        ASSERT_EQ(ev.entry.context_high, 0);
        ASSERT_EQ(ev.entry.op_context, msg.op_context);
        ASSERT_EQ(ev.entry.length, ok ? msg.length : 0);
        ASSERT_EQ(ev.entry.message_length, msg.length);
        ASSERT_EQ(ev.entry.position, msg.position);
        ASSERT_EQ(ev.entry.peer, msg.ctx + 9);
        ASSERT_EQ(ev.entry.context, msg.ctx);
        ASSERT_EQ(ev.entry.opcode, msg.opcode);
      }
      if (ev.head) {
        ASSERT_EQ(ev.head_cell, Bench::Cell(msg.ctx));
      }
      if (ev.write || ev.head) {
        cm.reported = cm.head;
      } else {
        ASSERT_LT(uint16_t(cm.head - cm.reported), cm.size / 4);
      }
    }
    while (tried(false)) give();
    for (; freed < b.freed.size(); ++freed) {
      free_list.push_back(b.freed[freed]);
    }
  }
  ASSERT_EQ(seen, kMessages + spilled_count);
  EXPECT_GT(spilled_count, 500u);
  EXPECT_GT(marked, 500u);
  // With nothing in flight the host knows every head.
  for (const ContextModel& m : model) {
    EXPECT_EQ(m.head, m.tail);
    EXPECT_EQ(m.reported, m.head);
  }
  EXPECT_EQ(free_list.size(), 1024u);
  b.Run(5);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxReleaseTest, SustainsAMessageEveryTwoCycles) {
  Bench b(1);
  b.SetContext(0, true, 0, 12);
  b.Run(5000);
  for (uint32_t i = 0; i < 1000; ++i) {
    b.allocate.emplace_back(i, Message{.position = i});
  }
  b.Run(1000);
  for (uint32_t i = 0; i < 1000; ++i) {
    b.done.push_back({.msg = uint16_t(i)});
  }
  ASSERT_TRUE(b.WaitFor(1000));
  const double per_message =
      double(b.events[999].cycle - b.events[0].cycle) / 999;
  std::printf("%.2f cycles per message\n", per_message);
  EXPECT_LE(per_message, 2.05);
}

// Messages go to three PDCs in turn, whose ACKs end 16 each: those of one PDC
// wait for the slots of the others, and then all are released at once.
TEST(TxReleaseTest, TakesAMessageEveryTwoCyclesOutOfTheOrderOfSlots) {
  constexpr uint32_t kPdcs = 3;
  constexpr uint32_t kAcked = 16;
  constexpr uint32_t kMessages = kPdcs * kAcked * 20;
  Bench b(1);
  b.SetContext(0, true, 0, 12);
  b.Run(5000);
  for (uint32_t i = 0; i < kMessages; ++i) {
    b.allocate.emplace_back(i, Message{.position = i});
  }
  b.Run(1000);
  for (uint32_t i = 0; i < kMessages; ++i) {
    const uint32_t ack = i / kAcked;
    const uint32_t position =
        (ack / kPdcs * kAcked + i % kAcked) * kPdcs + ack % kPdcs;
    b.done.push_back({.msg = uint16_t(position)});
    b.Run(2);
    ASSERT_TRUE(b.done.empty()) << "message " << i << " stalls";
  }
  ASSERT_TRUE(b.WaitFor(kMessages));
}

TEST(TxReleaseTest, StaleMessageReturnsOnlyCreditAndEntry) {
  Bench b(1);
  b.SetContext(2, true, 4, 4);
  b.Run(100);
  b.allocate.emplace_back(7, Message{.ctx = 2, .gen = 4});
  b.allocate.emplace_back(8, Message{.ctx = 2, .gen = 4, .position = 1});
  b.Run(3);
  b.done.push_back({.msg = 8});
  ASSERT_TRUE(b.WaitFor(1));
  EXPECT_TRUE(b.events[0].write);
  EXPECT_EQ(b.events[0].entry.queue_head, 0);
  b.SetContext(2, true, 5, 4);
  b.Run(100);
  b.done.push_back({.msg = 7});
  ASSERT_TRUE(b.WaitFor(2));
  EXPECT_FALSE(b.events[1].write);
  EXPECT_FALSE(b.events[1].head);
  EXPECT_TRUE(b.events[1].credit);
  EXPECT_EQ(b.freed, (std::vector<uint32_t>{8, 7}));
  // The next life starts at 0 and knows nothing of slot 1.
  b.allocate.emplace_back(9, Message{.ctx = 2, .gen = 5});
  b.Run(2);
  b.done.push_back({.msg = 9});
  ASSERT_TRUE(b.WaitFor(3));
  EXPECT_EQ(b.events[2].entry.queue_head, 1);
}

TEST(TxReleaseTest, StaleSlotsAreGoneThoughAnotherRingIsCleanedFirst) {
  Bench b(1);
  b.SetContext(2, true, 4, 4);
  b.Run(100);
  b.allocate.emplace_back(8, Message{.ctx = 2, .gen = 4, .position = 4});
  b.Run(3);
  b.done.push_back({.msg = 8});
  ASSERT_TRUE(b.WaitFor(1));
  b.SetContext(0, true, 1, 12);
  b.SetContext(2, true, 5, 4);
  b.allocate.emplace_back(9, Message{.ctx = 2, .gen = 5, .slots = 4});
  b.Run(2);
  b.done.push_back({.msg = 9});
  ASSERT_TRUE(b.WaitFor(2));
  EXPECT_EQ(b.events[1].entry.queue_head, 4);
}

TEST(TxReleaseTest, MessageOfADisabledContextIsStale) {
  Bench b(1);
  b.SetContext(2, true, 4, 4);
  b.Run(100);
  b.allocate.emplace_back(7, Message{.ctx = 2, .gen = 4});
  b.Run(3);
  b.SetContext(2, false, 5, 4);
  b.done.push_back({.msg = 7});
  ASSERT_TRUE(b.WaitFor(1));
  EXPECT_FALSE(b.events[0].write);
  EXPECT_TRUE(b.events[0].credit);
}

TEST(TxReleaseTest, FlushedNopIsSilentAndFailedNopIsNot) {
  Bench b(1);
  b.SetContext(0, true, 0, 4);
  b.Run(100);
  b.allocate.emplace_back(1, Message{.opcode = Opcode::kNop, .flags = 0});
  b.allocate.emplace_back(
      2, Message{.position = 1, .opcode = Opcode::kNop, .flags = 0});
  b.Run(3);
  b.done.push_back({.msg = 1, .status = Status::kBadPosition});
  b.done.push_back({.msg = 2, .status = Status::kFlushed});
  ASSERT_TRUE(b.WaitFor(2));
  EXPECT_TRUE(b.events[0].write);
  EXPECT_FALSE(b.events[1].write);
  EXPECT_TRUE(b.events[1].head);
  EXPECT_EQ(b.events[1].entry.queue_head, 2);
}

TEST(TxReleaseTest, ATokenThatWaitsHoldsNoMessageUp) {
  Bench b(1);
  b.SetContext(0, true, 0, 4);
  b.Run(100);
  b.dut->tx_seq_issued_i = 2;
  b.allocate.emplace_back(5, Message{.op_context = 77});
  b.done.push_back({.token = true});
  b.Run(10);
  b.done.push_back({.msg = 5});
  ASSERT_TRUE(b.WaitFor(1));
  EXPECT_FALSE(b.events[0].token);
  EXPECT_EQ(b.events[0].entry.op_context, 77u);
  EXPECT_FALSE(b.dut->idle_o);
  b.dut->tx_seq_done_i = 2;
  ASSERT_TRUE(b.WaitFor(2));
  EXPECT_TRUE(b.events[1].token);
  b.Run(5);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxReleaseTest, TokenWaitsForTheSequenceIssuedWhenItArrived) {
  Bench b(1);
  b.SetContext(0, true, 0, 4);
  b.Run(100);
  b.dut->tx_seq_issued_i = 2;
  b.dut->tx_seq_done_i = 0xfffe;
  b.done.push_back({.token = true});
  b.Run(50);
  EXPECT_TRUE(b.events.empty());
  b.dut->tx_seq_issued_i = 10;
  b.dut->tx_seq_done_i = 1;
  b.Run(50);
  EXPECT_TRUE(b.events.empty());
  b.dut->tx_seq_done_i = 2;
  ASSERT_TRUE(b.WaitFor(1));
  EXPECT_TRUE(b.events[0].token);
  EXPECT_FALSE(b.events[0].credit);
  EXPECT_TRUE(b.freed.empty());
}

}  // namespace
}  // namespace heddle::test
