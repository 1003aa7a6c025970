// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
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
  std::optional<uint32_t> row;  // It is there in the NIC.
  uint16_t quiet = 0;           // Sequence when it was moved.
};

struct Context {
  bool alive = false;
  uint32_t gen = 0;
  uint32_t log2 = 5;
  uint64_t spill_base = 0;
  bool early = false;  // An area in the NIC may take its place.
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

enum class Area : uint8_t { kNone, kHost, kNic };

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

  void Start(uint32_t ctx, uint32_t log2, Area area = Area::kHost) {
    Context& c = contexts[ctx];
    const uint32_t gen = c.gen + 1;
    c = {};
    c.gen = gen;
    c.alive = true;
    c.log2 = log2;
    c.spill_base = area == Area::kHost ? Ring(ctx) + 0x80000 : 0;
    c.early = area == Area::kNic;
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

  void Tick(const std::function<void()>& sample = {}) {
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
    if (sample) sample();
    dut.Tick();
    ++cycle;
    dut->enq_i = dut->pop_i = dut->done_i = dut->free_i = 0;
    allocate_.reset();
    ended_.reset();
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) Tick();
  }
  // Area in the NIC of a context that has one.
  uint32_t AreaOf(uint32_t ctx) {
    return uint32_t(
        GetBits(dut->nic_area_o, ctx * rtl::kSpillAreaW, rtl::kSpillAreaW));
  }
  // Reads the payload of a message in the NIC as heddle_tx_gather does.
  void ExpectInNic(uint32_t index) {
    const Message m = table.at(index);
    ASSERT_TRUE(m.row);
    std::vector<uint8_t> read;
    rtl::Drive(dut->pay_i, rtl::SpillRead{.row = uint16_t(*m.row),
                                          .bytes = uint8_t(m.payload.size())});
    for (bool last = false; !last && read.size() < 1000;) {
      dut->pay_valid_i = 1;
      dut->pay_rsp_ready_i = rng() % 3 != 0;
      Tick([&] {
        if (!dut->pay_rsp_valid_o || !dut->pay_rsp_ready_i) return;
        const auto* beat =
            reinterpret_cast<const uint8_t*>(&dut->pay_rsp_data_o);
        read.insert(read.end(), beat, beat + sizeof dut->pay_rsp_data_o);
        last = dut->pay_rsp_last_o;
      });
    }
    dut->pay_valid_i = 0;
    Tick();
    EXPECT_EQ(read, m.payload) << "message " << index;
  }

 private:
  void Apply() {
    uint32_t alive = 0, early = 0;
    for (uint32_t i = 0; i < kContexts; ++i) {
      const Context& c = contexts[i];
      alive |= uint32_t{c.alive} << i;
      PutBits(dut->gen_i, i * rtl::kGenW, rtl::kGenW, c.gen);
      PutBits(dut->ring_log2_i, i * 4, 4, c.log2);
      PutBits(dut->owner_i, i * 8, 8, i + 1);
      PutBits(dut->spill_base_i, i * 64, 64, c.spill_base);
      early |= uint32_t{c.early} << i;
      PutBits(dut->tail_i, i * 16, 16, c.tail);
      PutBits(dut->head_i, i * 16, 16, c.head);
      PutBits(dut->told_i, i * 16, 16, c.head);
    }
    dut->alive_i = uint16_t(alive);
    dut->early_i = uint16_t(early);
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
    m.moved = slot;
    m.quiet = issued;
    ++copied;
    if (!c.alive || m.gen != c.gen) return;  // It ends in this cycle.
    for (uint32_t i = 0; i + 1 < m.slots; ++i) {
      ASSERT_FALSE(c.taken[slot + i]) << "overlap";
      c.taken[slot + i] = true;
    }
    if (c.early) {
      ASSERT_TRUE(dut->in_nic_o >> m.ctx & 1);
      m.row = AreaOf(m.ctx) << rtl::kSpillAreaLog2 | slot;
      return;
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
    if (!c.early) {
      EXPECT_EQ(
          memory.Get<contract::SpillMark>(c.spill_base + c.size() * kSlotBytes +
                                          m->position % c.size() * sizeof mark),
          mark);
    }
    EXPECT_TRUE(m->owed);
    m->given = true;
    // The host may use them for something else.
    const std::vector<uint8_t> other(m->payload.size(), 0x5a);
    if (!other.empty()) {
      memory.Write(Ring(m->ctx) + (m->position % c.size() + 1) * kSlotBytes,
                   other.data(), other.size());
    }
    c.Release(m->position, m->slots);
    ++spilled;
    return true;
  }

  std::optional<uint32_t> allocate_, ended_;
  std::optional<rtl::TxGive> answer_;
};

// Fills a context, a ring of 32 slots, with messages on PDC 7.
void Fill(Bench* b, uint32_t slots, uint32_t count, uint32_t ctx = 0) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t index = 32 * ctx + i;
    ASSERT_TRUE(b->Allocate(index, ctx, slots));
    b->Tick();
    b->Enqueue(index, 7);
    b->Tick();
  }
}

// Ends all messages of a context.
void EndAll(Bench* b, uint32_t ctx) {
  for (uint32_t i = 0; i < 32; ++i) {
    if (b->table.count(32 * ctx + i) == 0) continue;
    b->End(32 * ctx + i);
    b->Tick();
  }
}

// Payload of all messages of a context that was copied.
void ExpectAllInNic(Bench* b, uint32_t ctx) {
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t index = 32 * ctx + i;
    const auto it = b->table.find(index);
    if (it == b->table.end() || !it->second.given) continue;
    b->ExpectInNic(index);
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
  b.Start(0, 5, Area::kNone);
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
    for (uint32_t c = 0; c < 6; ++c) {
      b.Start(c, 3 + c, c == 5 ? Area::kNone : Area::kHost);
    }
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

// ---- areas in the NIC

constexpr uint32_t kAreas = 1U << rtl::kSpillAreaW;

TEST(TxSpillTest, AContextWithoutAnAreaTakesOneInTheNic) {
  Bench b(Seed(50));
  b.Start(0, 5, Area::kNic);
  b.Run(100);
  // A ring that is full and proceeds needs none.
  Fill(&b, 4, 8);
  b.Run(200);
  EXPECT_EQ(b.dut->in_nic_o, 0u);
  EXPECT_TRUE(b.dut->idle_o);
  b.stuck[7] = true;
  b.Run(400);
  EXPECT_EQ(b.dut->in_nic_o, 1u);
  EXPECT_GE(b.spilled, 4u);
  EXPECT_EQ(b.copied, b.spilled);
  EXPECT_TRUE(b.writes.writes.empty());  // Neither copies nor marks.
  ExpectAllInNic(&b, 0);
  EXPECT_TRUE(b.dut->idle_o);
  EndAll(&b, 0);
  b.Run(100);
  EXPECT_EQ(b.dut->in_nic_o, 1u);  // Until it ends.
}

TEST(TxSpillTest, ContextsBeyondTheAreasWaitUntilOneIsReturned) {
  Bench b(Seed(51));
  b.stuck[7] = true;
  for (uint32_t c = 0; c <= kAreas; ++c) {
    b.Start(c, 5, Area::kNic);
    b.Run(60);
    Fill(&b, 2, 14, c);
    b.Run(600);
  }
  const uint32_t all = (1U << kAreas) - 1;
  EXPECT_EQ(b.dut->in_nic_o, all);
  uint32_t areas = 0;
  for (uint32_t c = 0; c < kAreas; ++c) areas |= 1U << b.AreaOf(c);
  EXPECT_EQ(areas, all);
  EXPECT_EQ(b.contexts[kAreas].head, 0u);  // As without an area.
  EXPECT_TRUE(b.dut->idle_o);
  // The area of one that ends stays while packets that read it are built.
  b.issued = 5;
  b.Tick();
  const uint32_t area = b.AreaOf(1);
  b.contexts[1].alive = false;
  b.Run(200);
  EXPECT_EQ(b.dut->in_nic_o, all & ~2U);
  EXPECT_EQ(b.contexts[kAreas].head, 0u);
  b.done = 4;
  b.Run(200);
  EXPECT_EQ(b.contexts[kAreas].head, 0u);
  b.done = 5;
  b.Run(600);
  EXPECT_EQ(b.dut->in_nic_o, (all & ~2U) | 1U << kAreas);
  EXPECT_EQ(b.AreaOf(kAreas), area);
  EXPECT_GE(b.contexts[kAreas].head, 8u);
  // Neither that nor the end of its messages touches others.
  EndAll(&b, 1);
  b.Run(100);
  for (uint32_t c = 0; c <= kAreas; ++c) {
    if (c != 1) ExpectAllInNic(&b, c);
  }
  EXPECT_TRUE(b.dut->idle_o);
}

// Also one that starts anew, or ends while it is copied.
TEST(TxSpillTest, AreasOfContextsThatEndAreReturnedWheneverTheyEnd) {
  Bench b(Seed(52));
  b.reads.latency = 30;
  b.stuck[7] = true;
  for (uint32_t c = 1; c < kAreas; ++c) {
    b.Start(c, 5, Area::kNic);
    b.Run(60);
    Fill(&b, 4, 7, c);
    b.Run(400);
  }
  uint32_t had = 0;
  for (uint32_t round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    b.Start(0, 5, Area::kNic);  // Ends the one before.
    b.Run(60);
    EndAll(&b, 0);
    Fill(&b, 4, 7);
    b.Run(int(4 * round));
    had += b.dut->in_nic_o & 1;
  }
  EXPECT_GT(had, 40u);
  b.Run(600);
  EXPECT_EQ(b.dut->in_nic_o & 1, 1u);
  for (uint32_t c = 0; c < kAreas; ++c) ExpectAllInNic(&b, c);
  EXPECT_TRUE(b.dut->idle_o);
}

// Contexts start and end with their messages in the table, more than there are
// areas.
TEST(TxSpillTest, PayloadInTheNicIsWholeUnderRandomLives) {
  constexpr uint32_t kLives = kAreas + 2;
  size_t read = 0;
  for (uint32_t seed = Seed(60), end = seed + 6; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(seed);
    b.reads.stall_percent = 20;
    for (uint32_t c = 0; c < kLives; ++c) b.Start(c, 4 + c % 3, Area::kNic);
    b.Run(300);
    for (int i = 0; i < 20000; ++i) {
      const uint32_t c = b.rng() % kLives;
      const uint32_t index = 32 * c + b.rng() % 32;
      if (b.rng() % 400 == 0) b.stuck[b.rng() % 4].flip();
      if (b.rng() % 3000 == 0) {
        b.contexts[c].alive = false;
        b.Run(int(b.rng() % 3));
        b.Start(c, 4 + b.rng() % 3, Area::kNic);
        b.Run(300);
      } else if (b.table.count(index) == 0) {
        if (b.Allocate(index, c, 1 + b.rng() % 4)) {
          b.Tick();
          if (b.rng() % 8) b.Enqueue(index, b.rng() % 4);
        }
      } else if (b.rng() % 8 == 0) {
        const Message& m = b.table.at(index);
        if (m.row && m.gen == b.contexts[c].gen && b.contexts[c].alive) {
          b.ExpectInNic(index);
          ++read;
        }
        b.End(index);
      }
      if (b.rng() % 2) ++b.issued;
      if (b.done != b.issued) ++b.done;
      b.Tick();
      if (HasFatalFailure()) return;
    }
    EXPECT_TRUE(b.writes.writes.empty());
  }
  EXPECT_GT(read, 100u);
}

}  // namespace
}  // namespace heddle::test
