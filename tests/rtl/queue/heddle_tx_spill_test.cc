// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "Vheddle_tx_spill.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/dma_models.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

constexpr uint32_t kContexts = rtl::kNumTx;
constexpr uint32_t kMessages = rtl::kNumMsg;
constexpr uint32_t kPdcs = rtl::kNumPdc;
constexpr uint32_t kSlotBytes = contract::kDescBytes;

struct Message {
  uint32_t ctx = 0;
  uint32_t gen = 0;
  uint32_t position = 0;
  uint32_t slots = 1;  // More than one: payload is in the others.
  std::vector<uint8_t> payload;

  bool queued = false;
  bool owed = false;   // It ends with a completion.
  bool given = false;  // Its slots were released.
  std::optional<uint32_t> moved;
  uint16_t quiet = 0;  // Sequence when it was moved.
};

struct Context {
  bool alive = false;
  uint32_t gen = 0;
  uint32_t log2 = 5;
  uint64_t spill_base = 0;
  uint32_t tail = 0;
  uint32_t head = 0;
  std::map<uint32_t, uint32_t> ended;  // Position -> slots.
  std::vector<bool> taken;             // Slots of the spill area.

  uint32_t size() const { return 1U << log2; }
  void Release(uint32_t position, uint32_t slots) {
    ended[position] = slots;
    for (auto it = ended.find(head); it != ended.end(); it = ended.find(head)) {
      head = uint16_t(head + it->second);
      ended.erase(it);
    }
  }
};

// The unit with host memory and what heddle_tx_release does.
class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed),
        reads(dut.operator->(), &memory),
        writes(dut.operator->(), &memory) {
    Apply();
    do {
      Tick();
    } while (dut->idle_o == 0);
  }

  sim::model::ClockedModel<Vheddle_tx_spill> dut;
  Rng rng;
  Memory memory;
  DmaReadModel<Vheddle_tx_spill> reads;
  DmaWriteModel<Vheddle_tx_spill> writes;
  uint64_t cycle = 0;
  std::array<Context, kContexts> contexts;
  std::map<uint32_t, Message> table;
  std::bitset<kPdcs> stuck;
  uint16_t issued = 0, done = 0;
  size_t spilled = 0, copied = 0;
  size_t together = 0;  // Most writes without an answer.
  bool answers = true;  // Requests to release are taken.

  static uint64_t Ring(uint32_t ctx) { return 0x1000000 + ctx * 0x100000; }

  void Start(uint32_t ctx, uint32_t log2, bool area = true) {
    Context& c = contexts[ctx];
    const uint32_t gen = c.gen + 1;
    c = {};
    c.gen = gen;
    c.alive = true;
    c.log2 = log2;
    c.spill_base = area ? Ring(ctx) + 0x80000 : 0;
    c.taken.resize(c.size());
  }
  // Of a new message, its payload written to the ring. False: no room.
  bool Allocate(uint32_t index, uint32_t ctx, uint32_t slots) {
    Context& c = contexts[ctx];
    const uint32_t slot = c.tail % c.size();
    if (slot + slots > c.size() ||
        uint16_t(c.tail - c.head) + slots > c.size()) {
      return false;
    }
    Message m;
    m.ctx = ctx;
    m.gen = c.gen;
    m.position = c.tail;
    m.slots = slots;
    m.payload.resize((slots - 1) * kSlotBytes);
    for (uint8_t& byte : m.payload) byte = uint8_t(rng());
    if (slots > 1) {
      memory.Write(Ring(ctx) + (slot + 1) * kSlotBytes, m.payload.data(),
                   m.payload.size());
    }
    c.tail = uint16_t(c.tail + slots);
    allocate_ = index;
    table[index] = m;
    return true;
  }
  void Enqueue(uint32_t index, uint32_t pdc) {
    dut->enq_i = 1;
    dut->enq_msg_i = uint16_t(index);
    dut->enq_pdc_i = uint8_t(pdc);
    table.at(index).queued = true;
  }
  // Leaves its queue and the table in this cycle.
  void End(uint32_t index) {
    const Message m = table.at(index);
    dut->pop_i = dut->done_i = dut->free_i = 1;
    dut->pop_msg_i = dut->done_msg_i = dut->free_msg_i = uint16_t(index);
    Context& c = contexts[m.ctx];
    if (m.gen == c.gen) {
      if (!m.given) c.Release(m.position, m.slots);
      // In this cycle it still counts as moved.
      for (uint32_t i = 0; m.moved && i + 1 < m.slots; ++i) {
        c.taken[*m.moved + i] = false;
      }
    }
    table.erase(index);
    ended_ = index;
  }

  void Tick() {
    Apply();
    reads.Drive(cycle, &rng);
    writes.Drive(cycle, &rng);
    dut->seq_issued_i = issued;
    dut->seq_done_i = done;
    dut->give_ready_i = answers && rng() % 2 == 0;
    dut->give_done_i = answer_.has_value() && rng() % 3 == 0;
    dut->give_ok_i = 0;
    if (dut->give_done_i) {
      dut->give_ok_i = Release(*answer_);
      answer_.reset();
    }
    dut.Settle();
    if (dut->move_o) Moved();
    if (dut->owe_o) {
      EXPECT_TRUE(table.count(dut->owe_msg_o));
      EXPECT_NE(ended_, std::optional<uint32_t>(dut->owe_msg_o));
      table[dut->owe_msg_o].owed = true;
    }
    if (dut->give_valid_o && dut->give_ready_i) {
      answer_ = rtl::Sample<rtl::TxGive>(dut->give_o);
      Asked(*answer_);
    }
    together = std::max(together, writes.writes.size() - writes.answered);
    reads.Sample(cycle);
    writes.Sample(cycle);
    dut.Tick();
    ++cycle;
    dut->enq_i = dut->pop_i = dut->done_i = dut->free_i = 0;
    allocate_.reset();
    ended_.reset();
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) Tick();
  }

 private:
  void Apply() {
    uint32_t alive = 0;
    for (uint32_t i = 0; i < kContexts; ++i) {
      const Context& c = contexts[i];
      alive |= uint32_t{c.alive} << i;
      PutBits(dut->gen_i, i * rtl::kGenW, rtl::kGenW, c.gen);
      PutBits(dut->ring_log2_i, i * 4, 4, c.log2);
      PutBits(dut->owner_i, i * 8, 8, i + 1);
      PutBits(dut->spill_base_i, i * 64, 64, c.spill_base);
      PutBits(dut->tail_i, i * 16, 16, c.tail);
      PutBits(dut->head_i, i * 16, 16, c.head);
      PutBits(dut->told_i, i * 16, 16, c.head);
    }
    dut->alive_i = uint16_t(alive);
    for (uint32_t i = 0; i < kPdcs; ++i) {
      PutBits(dut->stuck_i, i, 1, stuck[i]);
    }
    dut->msg_valid_i = allocate_.has_value();
    if (allocate_) {
      const Message& m = table.at(*allocate_);
      const auto flags = uint8_t(m.slots > 1 ? contract::kTxFlagInlineExt : 0);
      const uint32_t slot = m.position % contexts[m.ctx].size();
      dut->msg_index_i = uint16_t(*allocate_);
      rtl::Drive(dut->msg_packet_i,
                 rtl::MsgPacket{.ctx = uint8_t(m.ctx),
                                .gen = m.gen,
                                .owner = uint8_t(m.ctx + 1),
                                .flags = flags,
                                .iova = Ring(m.ctx) + (slot + 1) * kSlotBytes});
      rtl::Drive(dut->msg_done_i, rtl::MsgDone{.ctx = uint8_t(m.ctx),
                                               .gen = m.gen,
                                               .owner = uint8_t(m.ctx + 1),
                                               .position = uint16_t(m.position),
                                               .slots = uint8_t(m.slots),
                                               .flags = flags});
    }
  }
  void Moved() {
    const uint32_t index = dut->move_msg_o;
    ASSERT_NE(ended_, std::optional(index));
    ASSERT_TRUE(table.count(index));
    Message& m = table.at(index);
    Context& c = contexts[m.ctx];
    const uint32_t slot = dut->move_slot_o;
    ASSERT_GT(m.slots, 1u);
    ASSERT_FALSE(m.moved.has_value());
    ASSERT_LE(slot + m.slots - 1, c.size());
    for (uint32_t i = 0; i + 1 < m.slots; ++i) {
      ASSERT_FALSE(c.taken[slot + i]) << "overlap";
      c.taken[slot + i] = true;
    }
    std::vector<uint8_t> there(m.payload.size());
    memory.Read(c.spill_base + slot * kSlotBytes, there.data(), there.size());
    EXPECT_EQ(there, m.payload);
    const auto copy = std::find_if(
        writes.writes.rbegin(), writes.writes.rend(), [&](const auto& write) {
          return write.request.addr == c.spill_base + slot * kSlotBytes;
        });
    ASSERT_TRUE(copy != writes.writes.rend());
    EXPECT_EQ(copy->request.owner, m.ctx + 1);
    m.moved = slot;
    m.quiet = issued;
    ++copied;
  }
  // Its message, unless another has its entry.
  Message* MessageOf(const rtl::TxGive& give) {
    const auto it = table.find(give.msg);
    if (it == table.end()) return nullptr;
    Message& m = it->second;
    return m.ctx == give.ctx && m.gen == give.gen && m.position == give.position
               ? &m
               : nullptr;
  }
  void Asked(const rtl::TxGive& give) {
    ASSERT_FALSE(give.waits);
    const Message* m = MessageOf(give);
    if (m == nullptr) return;  // It ended.
    ASSERT_FALSE(m->given);
    ASSERT_EQ(m->moved.has_value(), m->slots > 1);
    ASSERT_EQ(m->slots, give.slots);
    if (m->moved) {
      EXPECT_GE(int16_t(done - m->quiet), 0);
    }
  }
  // Before slots are given up, the host finds the mark of the first.
  bool Release(const rtl::TxGive& give) {
    Message* m = MessageOf(give);
    if (m == nullptr) return false;
    Context& c = contexts[m->ctx];
    if (!c.alive || m->gen != c.gen || m->given) return false;
    const contract::SpillMark mark = {uint16_t(m->position), 1, 0};
    EXPECT_EQ(
        memory.Get<contract::SpillMark>(c.spill_base + c.size() * kSlotBytes +
                                        m->position % c.size() * sizeof mark),
        mark);
    EXPECT_TRUE(m->owed);
    m->given = true;
    c.Release(m->position, m->slots);
    ++spilled;
    return true;
  }

  std::optional<uint32_t> allocate_, ended_;
  std::optional<rtl::TxGive> answer_;
};

// Fills context 0, a ring of 32 slots, with messages on PDC 7.
void Fill(Bench* b, uint32_t slots, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_TRUE(b->Allocate(i, 0, slots));
    b->Tick();
    b->Enqueue(i, 7);
    b->Tick();
  }
}

TEST(TxSpillTest, HalfOfACrowdedRingOfAStuckPeerIsSpilled) {
  Bench b(Seed(1));
  b.Start(0, 5);
  b.Run(100);
  b.stuck[7] = true;
  Fill(&b, 1, 23);
  b.Run(100);
  EXPECT_EQ(b.spilled, 0u);
  EXPECT_TRUE(b.dut->idle_o);
  ASSERT_TRUE(b.Allocate(23, 0, 1));
  b.Run(400);
  // And those that were in flight when enough had left.
  EXPECT_GE(b.spilled, 8u);
  EXPECT_LE(b.spilled, 16u);
  EXPECT_EQ(b.contexts[0].head, b.spilled);
  EXPECT_EQ(b.copied, 0u);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxSpillTest, MarksOfManyAreOnTheirWayAtATime) {
  Bench b(Seed(7));
  b.writes.latency = 200;
  b.Start(0, 7);
  b.Run(200);
  b.stuck[7] = true;
  Fill(&b, 1, 96);
  b.Run(1000);
  EXPECT_GE(b.spilled, 32u);
  EXPECT_LE(b.spilled, 64u);
  EXPECT_GE(b.together, 16u);
  EXPECT_TRUE(b.dut->idle_o);
}

// Messages between stuck ones keep their slots.
TEST(TxSpillTest, LaterStuckMessagesAreSpilledBeforeEarlierOnesEnd) {
  Bench b(Seed(8));
  b.Start(0, 5);
  b.Run(100);
  b.stuck[7] = true;
  for (uint32_t i = 0; i < 26; ++i) {
    ASSERT_TRUE(b.Allocate(i, 0, 1));
    b.Tick();
    b.Enqueue(i, i % 4 == 0 ? 7 : 3);
    b.Tick();
  }
  b.Run(400);
  EXPECT_GE(b.spilled, 4u);  // 0, 4, 8, 12 and perhaps 16.
  EXPECT_EQ(b.contexts[0].head, 1u);
  for (uint32_t i = 0; i < 16; ++i) {
    if (i % 4 == 0) continue;
    b.End(i);
    b.Tick();
  }
  b.Run(400);
  EXPECT_GE(b.contexts[0].head, 16u);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxSpillTest, OldestThatIsNotStuckStays) {
  Bench b(Seed(2));
  b.Start(0, 5);
  b.Run(100);
  Fill(&b, 1, 30);
  b.Run(100);
  EXPECT_EQ(b.spilled, 0u);
  EXPECT_TRUE(b.dut->idle_o);
  b.stuck[7] = true;
  b.Run(400);
  EXPECT_GE(b.spilled, 14u);
  EXPECT_EQ(b.contexts[0].head, b.spilled);
}

TEST(TxSpillTest, WithoutAnAreaNothingIsSpilled) {
  Bench b(Seed(3));
  b.Start(0, 5, /*area=*/false);
  b.Run(100);
  b.stuck[7] = true;
  Fill(&b, 1, 32);
  b.Run(200);
  EXPECT_EQ(b.spilled, 0u);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxSpillTest, CopiedPayloadWaitsForReadsOfItsOldPlace) {
  Bench b(Seed(4));
  b.Start(0, 5);
  b.Run(100);
  b.issued = 9;
  b.stuck[7] = true;
  Fill(&b, 4, 6);
  b.Run(300);
  EXPECT_EQ(b.copied, 4u);
  EXPECT_EQ(b.spilled, 0u);
  EXPECT_EQ(b.dut->busy_o, 1u);
  b.done = 9;
  b.Run(100);
  EXPECT_GE(b.spilled, 4u);
}

TEST(TxSpillTest, RefusedAreaKeepsThePayloadInTheRing) {
  for (const bool read : {true, false}) {
    Bench b(Seed(5));
    (read ? b.reads.refuse_from : b.writes.refuse_from) = 0;
    b.Start(0, 5);
    b.Run(100);
    b.stuck[7] = true;
    Fill(&b, 4, 7);
    b.Run(500);
    EXPECT_EQ(b.spilled, 0u);
    EXPECT_EQ(b.copied, 0u);
    EXPECT_LE(b.reads.requests.size(), 4u);
    EXPECT_TRUE(b.dut->idle_o);
    // The next context in its place may spill.
    b.reads.refuse_from = b.writes.refuse_from = ~uint64_t{0};
    for (uint32_t i = 0; i < 7; ++i) {
      b.End(i);
      b.Tick();
    }
    b.contexts[0].alive = false;
    b.Run(5);
    b.Start(0, 5);
    b.Run(100);
    Fill(&b, 4, 7);
    b.Run(500);
    EXPECT_GE(b.spilled, 4u);
  }
}

// A message that ends while its payload is copied leaves no room taken.
TEST(TxSpillTest, CopiedForNothingGivesItsRoomBack) {
  Bench b(Seed(6));
  b.Start(0, 3);
  b.Run(100);
  b.stuck[7] = true;
  b.reads.latency = 60;
  for (uint32_t round = 0; round < 20; ++round) {
    Fill(&b, 4, 2);
    b.Run(20);
    b.End(0);
    b.Tick();
    b.Run(5);
    b.End(1);
    b.Run(200);
  }
  EXPECT_EQ(b.reads.requests.size(), 20u);
  EXPECT_EQ(b.copied, 0u);
  Fill(&b, 4, 2);
  b.Run(200);
  EXPECT_EQ(b.copied, 1u);
}

TEST(TxSpillTest, CopiedPayloadNeverOverlapsUnderRandomLives) {
  for (uint32_t seed = Seed(20), end = seed + 10; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(seed);
    b.reads.stall_percent = b.writes.stall_percent = 20;
    for (uint32_t c = 0; c < 6; ++c) b.Start(c, 3 + c, c != 5);
    b.Run(1000);
    std::vector<uint32_t> free_list;
    for (uint32_t i = 0; i < 300; ++i) free_list.push_back(i);
    std::deque<uint32_t> to_queue;
    std::vector<uint32_t> open;
    for (int i = 0; i < 30000; ++i) {
      if (b.rng() % 3 == 0 && !free_list.empty()) {
        const uint32_t index = free_list.back();
        if (b.Allocate(index, b.rng() % 6, b.rng() % 2 ? 1 : 2 + b.rng() % 3)) {
          free_list.pop_back();
          open.push_back(index);
          to_queue.push_back(index);
        }
      } else if (!to_queue.empty() && b.rng() % 2) {
        if (b.table.count(to_queue.front()) && b.rng() % 16) {
          b.Enqueue(to_queue.front(), b.rng() % 4);
        }
        to_queue.pop_front();
      }
      if (b.rng() % 200 == 0) b.stuck[b.rng() % 4].flip();
      if (b.rng() % 2) ++b.issued;
      if (b.done != b.issued) ++b.done;
      if (!open.empty() && b.rng() % (b.rng() % 8 ? 40 : 4) == 0) {
        const size_t pick = b.rng() % open.size();
        const uint32_t index = open[pick];
        if (to_queue.empty()) {
          open.erase(open.begin() + int64_t(pick));
          b.End(index);
          free_list.insert(free_list.begin(), index);
        }
      }
      b.Tick();
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(b.copied, 30u);
    EXPECT_GT(b.spilled, b.copied);
  }
}

}  // namespace
}  // namespace heddle::test
