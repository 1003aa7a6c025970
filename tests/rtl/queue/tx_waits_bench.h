// SPDX-License-Identifier: Apache-2.0
// heddle_tx_fetch, heddle_tx_flows and heddle_tx_spill with a model of the
// message table: operations for stuck peers are counted, moved to the spill
// area, and come back in order.
#pragma once

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

#include "Vtx_waits_probe.h"
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

using contract::Opcode;
using contract::Status;
using contract::TxCtxCfg;
using contract::TxDesc;

inline constexpr uint32_t kContexts = rtl::kNumTx;
inline constexpr uint32_t kMessages = rtl::kNumMsg;
inline constexpr uint32_t kPdcs = rtl::kNumPdc;
inline constexpr uint32_t kSlotBytes = contract::kDescBytes;
inline constexpr uint32_t kPeerShare = rtl::kPeerShare;

// The spill unit's read client, under the names that DmaReadModel knows.
struct SpillReads {
  explicit SpillReads(Vtx_waits_probe* m)
      : rd_valid_o(m->spill_rd_valid_o),
        rd_ready_i(m->spill_rd_ready_i),
        rd_req_o(m->spill_rd_req_o),
        rd_rsp_valid_i(m->spill_rd_rsp_valid_i),
        rd_rsp_ready_o(m->spill_rd_rsp_ready_o),
        rd_rsp_data_i(m->spill_rd_rsp_data_i),
        rd_rsp_last_i(m->spill_rd_rsp_last_i),
        rd_rsp_error_i(m->spill_rd_rsp_error_i) {}
  decltype(Vtx_waits_probe::spill_rd_valid_o) rd_valid_o;
  decltype(Vtx_waits_probe::spill_rd_ready_i) rd_ready_i;
  decltype(Vtx_waits_probe::spill_rd_req_o) rd_req_o;
  decltype(Vtx_waits_probe::spill_rd_rsp_valid_i) rd_rsp_valid_i;
  decltype(Vtx_waits_probe::spill_rd_rsp_ready_o) rd_rsp_ready_o;
  decltype(Vtx_waits_probe::spill_rd_rsp_data_i) rd_rsp_data_i;
  decltype(Vtx_waits_probe::spill_rd_rsp_last_i) rd_rsp_last_i;
  decltype(Vtx_waits_probe::spill_rd_rsp_error_i) rd_rsp_error_i;
};

// A posted descriptor, until it left as an operation.
struct Posted {
  TxDesc desc;
  std::vector<uint8_t> extension;
  uint32_t position = 0;
  uint32_t slots = 1;
  bool holds = true;  // Its slots did not leave alone.
  bool grouped = false;
  uint32_t operation = 0, members = 0;
};

struct Message {
  uint32_t ctx = 0, gen = 0, position = 0;
  uint32_t slots = 0;  // That it holds.
  std::optional<uint32_t> peer;
  bool grouped = false;
  uint32_t group = 0;
  std::vector<uint8_t> payload;
  uint64_t iova = 0;
  std::optional<uint32_t> row;  // In the NIC, instead.
  bool checked = false;         // It was compared.
  bool queued = false;
  bool owed = false;  // It ends with a completion.
};

// Descriptors of one operation, by its number in the device.
struct Group {
  uint32_t operation = 0;
  uint32_t left = 0, ended = 0, total = 0;  // 0: the last has not left.
};

struct Context {
  TxCtxCfg cfg;
  uint32_t gen = 0;
  uint32_t tail = 0, head = 0;
  std::map<uint32_t, uint32_t> ended;
  std::deque<Posted> posted;                     // In ring order.
  std::map<uint32_t, std::deque<Posted>> moved;  // By peer.
  std::map<uint32_t, uint32_t>
      late;  // Slots at a position whose operation left.
  std::map<uint32_t, uint32_t> count;    // In the table, by peer.
  std::map<uint32_t, Group> groups;      // By number.
  std::map<uint32_t, uint32_t> numbers;  // Of operations.
  uint32_t operation = 0, members = 0;
  bool chain = false;

  uint32_t size() const { return 1U << cfg.ring_log2; }
  size_t waiting() const {
    size_t sum = 0;
    for (const auto& [peer, list] : moved) sum += list.size();
    return sum;
  }
};

// Where slots that are released early go.
enum class Area : uint8_t { kNone, kHost, kNic };

class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed),
        spill_ports(dut.operator->()),
        reads(dut.operator->(), &memory),
        spill_reads(&spill_ports, &memory),
        writes(dut.operator->(), &memory) {
    dut->credit_ok_i = ~0U;
    for (uint32_t i = 0; i < kMessages; ++i) free_list.push_back(i);
    while (dut->idle_o == 0) Tick();
  }

  sim::model::ClockedModel<Vtx_waits_probe> dut;
  Rng rng;
  Memory memory;
  SpillReads spill_ports;
  DmaReadModel<Vtx_waits_probe> reads;
  DmaReadModel<SpillReads> spill_reads;
  DmaWriteModel<Vtx_waits_probe> writes;
  uint64_t cycle = 0;
  std::array<Context, kContexts> contexts;
  std::map<uint32_t, Message> table;
  std::deque<uint32_t> free_list, to_queue;
  std::bitset<kPdcs> stuck;
  uint32_t end_one_in = 20;  // A message of a PDC that is not stuck ends.
  bool parks = false;        // Messages get no PDC.
  size_t kept = 0, again = 0, left = 0;
  size_t given = 0;     // Operations that lost their slots while they waited.
  size_t together = 0;  // Most marks and copies at the same time.
  size_t nic_payloads = 0;  // Read from areas in the NIC.
  uint32_t tokens = 0;
  std::vector<rtl::TxOp> failed;

  static uint32_t Pdc(uint32_t ctx, uint32_t peer) { return ctx * 16 + peer; }
  static uint64_t Ring(uint32_t ctx) { return 0x1000000 + ctx * 0x100000; }
  uint64_t Address(uint32_t ctx, uint32_t position) {
    return Ring(ctx) + position % contexts[ctx].size() * kSlotBytes;
  }

  TxCtxCfg Table(contract::TableOp op, uint32_t ctx, const TxCtxCfg& cfg = {}) {
    auto answer = RunTable(dut.operator->(), op, contract::Table::kTxCtx, ctx,
                           cfg, 20000, [this](auto sample) {
                             dut->drained_i = tokens != 0;
                             tokens = 0;
                             Tick(sample);
                             dut->drained_i = 0;
                           });
    EXPECT_TRUE(answer && !answer->first);
    return answer ? answer->second : TxCtxCfg{};
  }
  void Enable(uint32_t ctx, uint32_t log2, Area area = Area::kHost,
              uint8_t ordered = 3) {
    Context& c = contexts[ctx];
    const uint32_t gen = c.gen;
    c = {};
    c.gen = gen;
    c.cfg.ring_base = Ring(ctx);
    c.cfg.spill_base = area == Area::kHost ? Ring(ctx) + 0x80000 : 0;
    c.cfg.flags = area == Area::kNic ? contract::kTxCtxFlagEarlyRelease : 0;
    c.cfg.ring_log2 = uint8_t(log2);
    c.cfg.function = uint8_t(ctx + 1);
    c.cfg.ordered = ordered;
    c.cfg.enable = 1;
    const std::vector<uint8_t> none(c.size() * sizeof(contract::SpillMark));
    memory.Write(Ring(ctx) + 0x80000 + c.size() * kSlotBytes, none.data(),
                 none.size());
    Table(contract::TableOp::kWrite, ctx, c.cfg);
  }
  // Disables the context and drains it; what waited is forgotten.
  void Disable(uint32_t ctx) {
    Context& c = contexts[ctx];
    TxCtxCfg cfg = c.cfg;
    cfg.enable = 0;
    Table(contract::TableOp::kWrite, ctx, cfg);
    ++c.gen;
    Table(contract::TableOp::kDrain, ctx);
    EXPECT_FALSE(Touching(ctx));
  }
  // Reads or writes of the spill area and copies of the ring are under way.
  bool Touching(uint32_t ctx) {
    return spill_reads.outstanding() != 0 &&
           spill_reads.requests.back().owner == ctx + 1;
  }

  bool Post(uint32_t ctx, TxDesc desc, std::vector<uint8_t> extension = {}) {
    Context& c = contexts[ctx];
    const uint32_t slots = 1U + desc.ext_slots;
    const uint32_t slot = c.tail % c.size();
    if (uint16_t(c.tail - c.head) + slots > c.size()) return false;
    if (slot + slots > c.size()) {
      desc = TxDesc{};
      extension.clear();
    }
    desc.position = uint16_t(c.tail);
    Posted p;
    p.desc = desc;
    p.position = desc.position;
    p.slots = 1U + desc.ext_slots;
    extension.resize(desc.ext_slots * kSlotBytes);
    p.extension = extension;
    Join(&c, &p);
    memory.Write(Address(ctx, c.tail), &desc, sizeof desc);
    if (!extension.empty()) {
      memory.Write(Address(ctx, c.tail) + kSlotBytes, extension.data(),
                   extension.size());
    }
    c.posted.push_back(p);
    c.tail = uint16_t(c.tail + p.slots);
    dut->db_valid_i = 1;
    PutDoorbell(&dut->db_i, contract::kTxPageFirst + ctx,
                contract::kDoorbellTailOffset, c.tail);
    return true;
  }

  void Tick(const std::function<void()>& sample = {}) {
    Apply();
    dut.Settle();
    reads.Sample(cycle);
    spill_reads.Sample(cycle);
    writes.Sample(cycle);
    SampleNic();
    if (dut->move_o) Moved();
    if (dut->owe_o) {
      const auto owed = table.find(dut->owe_msg_o);
      EXPECT_TRUE(owed != table.end());
      if (owed != table.end()) owed->second.owed = true;
    }
    if (dut->give_valid_o && dut->give_ready_i) {
      answer_ = rtl::Sample<rtl::TxGive>(dut->give_o);
    }
    together = std::max(together, writes.writes.size() - writes.answered);
    if (dut->kept_o) Kept();
    again += dut->again_o;
    if (dut->op_valid_o && dut->op_ready_i)
      Leave(rtl::Sample<rtl::TxOp>(dut->op_o));
    if (sample) sample();
    dut.Tick();
    ++cycle;
    dut->db_valid_i = 0;
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles && !::testing::Test::HasFatalFailure(); ++i) {
      Tick();
    }
  }
  // As a simulation does, whose clock stands still while all is idle.
  void RunToIdle() {
    bool idle = false;
    for (int i = 0; i < 100000 && !idle; ++i) {
      Tick([&] { idle = dut->idle_o != 0; });
    }
    EXPECT_TRUE(idle);
  }
  bool Empty() const {
    return table.empty() &&
           std::all_of(contexts.begin(), contexts.end(), [](const Context& c) {
             return c.posted.empty() && c.waiting() == 0 && c.late.empty();
           });
  }

  contract::SpillMark Mark(uint32_t ctx, uint32_t position) {
    const Context& c = contexts[ctx];
    return memory.Get<contract::SpillMark>(
        c.cfg.spill_base + c.size() * kSlotBytes +
        position % c.size() * sizeof(contract::SpillMark));
  }

 private:
  static void Join(Context* c, Posted* p) {
    const bool more = (p->desc.flags & contract::kTxFlagMore) != 0;
    if (p->desc.opcode == Opcode::kNop || (!more && !c->chain)) return;
    p->grouped = true;
    p->operation = c->operation;
    p->members = c->members;
    c->chain = more;
    ++c->members;
    if (!more) {
      ++c->operation;
      c->members = 0;
    }
  }
  void Apply() {
    reads.Drive(cycle, &rng);
    spill_reads.Drive(cycle, &rng);
    writes.Drive(cycle, &rng);
    DriveNic();
    const bool unpark = !to_queue.empty() && !parks;
    dut->op_ready_i = !unpark && rng() % 2;
    dut->msg_index_i = uint16_t(free_list.front());
    dut->give_ready_i = rng() % 2;
    dut->give_done_i = answer_ && rng() % 3 == 0;
    dut->give_ok_i = 0;
    if (dut->give_done_i) {
      dut->give_ok_i = GiveUp(*answer_);
      answer_.reset();
    }
    for (uint32_t i = 0; i < kContexts; ++i) {
      PutBits(dut->head_i, i * 16, 16, contexts[i].head);
    }
    for (uint32_t i = 0; i < kPdcs; ++i) {
      PutBits(dut->stuck_i, i, 1, stuck[i]);
    }
    dut->enq_i = 0;
    if (unpark) {
      Enqueue(to_queue.front());
      to_queue.pop_front();
    }
    End();
  }
  void Enqueue(uint32_t index) {
    Message& m = table.at(index);
    dut->enq_i = 1;
    dut->enq_msg_i = uint16_t(index);
    dut->enq_pdc_i = uint8_t(Pdc(m.ctx, *m.peer));
    m.queued = true;
  }
  bool MayEnd(uint32_t index, const Message& m, bool quick) {
    if (reading_ == index) return false;
    if (!m.peer) return true;
    if (m.row && !m.payload.empty() && !m.checked &&
        m.gen == contexts[m.ctx].gen) {
      return false;
    }
    return quick && m.queued && !stuck[Pdc(m.ctx, *m.peer)] &&
           !(dut->enq_i != 0 && dut->enq_msg_i == index);
  }
  // One message ends, perhaps.
  void End() {
    dut->pop_i = dut->free_i = dut->group_i = 0;
    if (table.empty()) return;
    const bool quick = rng() % end_one_in == 0;
    auto it = table.lower_bound(rng() % kMessages);
    size_t tried = 0;
    for (; tried < table.size(); ++tried) {
      if (it == table.end()) it = table.begin();
      if (MayEnd(it->first, it->second, quick)) break;
      ++it;
    }
    if (tried == table.size()) return;
    const Message& m = it->second;
    dut->pop_i = dut->free_i = 1;
    dut->free_msg_i = uint16_t(it->first);
    dut->free_ctx_i = uint8_t(m.ctx);
    std::vector<uint8_t> there(m.payload.size());
    if (!m.row) memory.Read(m.iova, there.data(), there.size());
    Context& c = contexts[m.ctx];
    if (m.gen == c.gen) {
      if (!m.row) {
        EXPECT_EQ(there, m.payload) << "of position " << m.position;
      }
      if (m.peer && m.slots != 0 && !m.owed) ExpectNoMark(m.ctx, m.position);
      if (m.slots != 0) Release(m.ctx, m.position, m.slots);
      if (m.peer) --c.count[*m.peer];
      if (m.grouped && ++c.groups[m.group].ended == c.groups[m.group].total) {
        c.groups.erase(m.group);
        dut->group_i = 1;
        dut->group_ctx_i = uint8_t(m.ctx);
        dut->group_number_i = uint8_t(m.group);
      }
    }
    free_list.push_back(it->first);
    table.erase(it);
  }
  // The host writes something else there at once.
  void Release(uint32_t ctx, uint32_t position, uint32_t slots) {
    Context& c = contexts[ctx];
    c.ended[position] = slots;
    for (auto it = c.ended.find(c.head); it != c.ended.end();
         it = c.ended.find(c.head)) {
      const std::vector<uint8_t> other(it->second * kSlotBytes, 0x5a);
      memory.Write(Address(ctx, c.head), other.data(), other.size());
      c.head = uint16_t(c.head + it->second);
      c.ended.erase(it);
    }
  }
  // Before a slot is given up, the host finds its mark.
  void ExpectMark(uint32_t ctx, uint32_t position) {
    if (contexts[ctx].cfg.spill_base == 0) return;
    EXPECT_EQ(Mark(ctx, position),
              (contract::SpillMark{uint16_t(position), 1, 0}));
  }
  // The host waits for a completion of what is marked.
  void ExpectNoMark(uint32_t ctx, uint32_t position) {
    if (contexts[ctx].cfg.spill_base == 0) return;
    EXPECT_NE(Mark(ctx, position),
              (contract::SpillMark{uint16_t(position), 1, 0}));
  }
  // As heddle_tx_release: slots leave in ring order, in whatever order they
  // come.
  bool GiveUp(const rtl::TxGive& give) {
    Context& c = contexts[give.ctx];
    if (give.gen != c.gen || c.cfg.enable == 0) return false;
    if (give.waits) return ReleaseWaiting(give, &c);
    const auto it = table.find(give.msg);
    if (it == table.end()) return false;
    Message& m = it->second;
    if (m.gen != c.gen || m.ctx != give.ctx || m.slots == 0 ||
        m.position != give.position) {
      return false;
    }
    EXPECT_EQ(m.slots, give.slots);
    EXPECT_TRUE(m.owed);
    ExpectMark(m.ctx, m.position);
    Release(m.ctx, m.position, m.slots);
    m.slots = 0;
    return true;
  }
  bool ReleaseWaiting(const rtl::TxGive& give, Context* c) {
    ExpectMark(give.ctx, give.position);
    ++given;
    if (const auto late = c->late.find(give.position); late != c->late.end()) {
      EXPECT_EQ(give.slots, late->second);
      c->late.erase(late);
      Release(give.ctx, give.position, give.slots);
      return true;
    }
    for (auto& [peer, list] : c->moved) {
      for (Posted& p : list) {
        if (p.position != give.position || !p.holds) continue;
        p.holds = false;
        EXPECT_EQ(give.slots, p.slots);
        ExpectCopy(give.ctx, p);
        Release(give.ctx, give.position, give.slots);
        return true;
      }
    }
    ADD_FAILURE() << "position " << give.position;
    return false;
  }
  // Somewhere in the area are the descriptor and its extension slots.
  void ExpectCopy(uint32_t ctx, const Posted& p) {
    const Context& c = contexts[ctx];
    // The ring is overwritten: the descriptor is compared when it comes back.
    if (c.cfg.spill_base == 0) return;
    for (uint32_t slot = 0; slot + p.slots <= c.size(); ++slot) {
      const uint64_t at = c.cfg.spill_base + slot * kSlotBytes;
      std::vector<uint8_t> extension(p.extension.size());
      memory.Read(at + kSlotBytes, extension.data(), extension.size());
      const TxDesc there = memory.Get<TxDesc>(at);
      if (std::memcmp(&there, &p.desc, sizeof there) == 0 &&
          extension == p.extension) {
        return;
      }
    }
    ADD_FAILURE() << "no copy of position " << p.position;
  }
  void Moved() {
    const auto it = table.find(dut->move_msg_o);
    ASSERT_TRUE(it != table.end());
    Message& m = it->second;
    ASSERT_FALSE(m.row);
    m.iova = contexts[m.ctx].cfg.spill_base + dut->move_slot_o * kSlotBytes;
    if (contexts[m.ctx].cfg.spill_base == 0) m.row = RowOf(m.ctx, m.iova);
  }

  // Row of a slot of the context's area in the NIC.
  uint32_t RowOf(uint32_t ctx, uint64_t iova) {
    EXPECT_NE(dut->in_nic_o >> ctx & 1, 0U);
    const auto area = uint32_t(
        GetBits(dut->nic_area_o, ctx * rtl::kSpillAreaW, rtl::kSpillAreaW));
    EXPECT_LT(iova, kSlotBytes << rtl::kSpillAreaLog2);
    return area << rtl::kSpillAreaLog2 | uint32_t(iova / kSlotBytes);
  }
  // Payload of one message after the other is read there.
  void DriveNic() {
    if (!reading_) {
      for (auto& [index, m] : table) {
        if (m.row && !m.payload.empty() && !m.checked &&
            m.gen == contexts[m.ctx].gen) {
          reading_ = index;
          read_.clear();
          break;
        }
      }
    }
    dut->pay_valid_i = reading_.has_value();
    dut->pay_rsp_ready_i = rng() % 4 != 0;
    if (reading_) {
      const Message& m = table.at(*reading_);
      rtl::Drive(dut->pay_i,
                 rtl::SpillRead{.row = uint16_t(*m.row),
                                .bytes = uint8_t(m.payload.size())});
    }
  }
  void SampleNic() {
    if (!dut->pay_rsp_valid_o || !dut->pay_rsp_ready_i) return;
    ASSERT_TRUE(reading_);
    const auto* beat = reinterpret_cast<const uint8_t*>(&dut->pay_rsp_data_o);
    read_.insert(read_.end(), beat, beat + sizeof dut->pay_rsp_data_o);
    if (!dut->pay_rsp_last_o) return;
    Message& m = table.at(*reading_);
    reading_.reset();
    ASSERT_GE(read_.size(), m.payload.size());
    ASSERT_LT(read_.size() - m.payload.size(), sizeof dut->pay_rsp_data_o);
    read_.resize(m.payload.size());
    if (m.gen == contexts[m.ctx].gen) {
      EXPECT_EQ(read_, m.payload) << "of position " << m.position;
    }
    m.checked = true;
    ++nic_payloads;
  }

  void Kept() {
    Context& c = contexts[dut->kept_ctx_o];
    const auto it = std::find_if(
        c.posted.begin(), c.posted.end(),
        [&](const Posted& p) { return p.position == dut->kept_position_o; });
    ASSERT_TRUE(it != c.posted.end());
    c.moved[it->desc.peer].push_back(*it);
    c.posted.erase(it);
    ++kept;
  }
  void Leave(const rtl::TxOp& op) {
    if (op.token) {
      ++tokens;
      return;
    }
    Context& c = contexts[op.ctx];
    Message m;
    m.ctx = op.ctx;
    m.gen = op.gen;
    m.position = op.position;
    m.slots = op.slots;
    if (op.gen == c.gen && c.cfg.enable != 0) {
      Check(op, &c, &m);
    }
    const uint32_t index = free_list.front();
    free_list.pop_front();
    ASSERT_FALSE(free_list.empty());
    table[index] = m;
    if (!m.peer) return;
    if (parks || !to_queue.empty()) {
      to_queue.push_back(index);
    } else {
      Enqueue(index);
      dut.Settle();
    }
  }
  void Check(const rtl::TxOp& op, Context* context, Message* m) {
    Context& c = *context;
    Posted p;
    const bool ring =
        !c.posted.empty() && c.posted.front().position == op.position;
    if (ring) {
      p = c.posted.front();
      c.posted.pop_front();
    } else {  // From its list.
      const auto first =
          std::find_if(c.moved.begin(), c.moved.end(), [&](const auto& entry) {
            return !entry.second.empty() &&
                   entry.second.front().position == op.position;
          });
      ASSERT_TRUE(first != c.moved.end()) << "position " << op.position;
      p = first->second.front();
      first->second.pop_front();
    }
    ASSERT_EQ(op.position, p.position);
    if (!ring && p.holds && op.slots == 0) {
      // It was to leave them; now they leave behind it.
      ExpectMark(op.ctx, op.position);
      ExpectCopy(op.ctx, p);
      c.late[op.position] = p.slots;
      p.holds = false;
    }
    ASSERT_EQ(op.slots, p.holds ? p.slots : 0U);
    if (op.status != Status::kOk) {
      failed.push_back(op);
      return;
    }
    if (op.opcode == Opcode::kNop) {
      ASSERT_FALSE(op.group.valid);
      ASSERT_EQ(p.desc.opcode, Opcode::kNop);
      return;
    }
    if (ring) {
      // One behind it may have moved since it left the unit.
      const auto& list = c.moved[op.peer];
      ASSERT_TRUE(list.empty() ||
                  int16_t(op.position - list.front().position) < 0)
          << "overtakes";
    } else {
      ASSERT_LT(c.count[op.peer], kPeerShare);
    }
    if ((p.desc.flags & contract::kTxFlagFence) != 0) {
      ASSERT_EQ(c.waiting(), 0U);
      for (const auto& [index, other] : table) {
        ASSERT_FALSE(other.ctx == op.ctx && other.gen == op.gen);
      }
    }
    Same(op, p);
    ++left;
    ++c.count[op.peer];
    m->peer = op.peer;
    m->iova = op.iova;
    m->grouped = p.grouped;
    m->group = op.group.number;
    if (p.grouped) {
      Group& group = c.groups[op.group.number];
      if (group.left++ == 0) group.operation = p.operation;
      ASSERT_EQ(group.operation, p.operation);
      ASSERT_EQ(
          c.numbers.try_emplace(p.operation, op.group.number).first->second,
          op.group.number);
      if ((p.desc.flags & contract::kTxFlagMore) == 0) {
        group.total = p.members + 1;
      }
    }
    if ((p.desc.flags & contract::kTxFlagInlineExt) != 0) {
      m->payload.assign(p.extension.begin(),
                        p.extension.begin() + p.desc.length);
      if (op.slots == 0 && c.cfg.spill_base == 0 && p.desc.length != 0) {
        m->row = RowOf(op.ctx, op.iova);
      }
    }
  }
  static void Same(const rtl::TxOp& op, const Posted& p) {
    ASSERT_EQ(op.opcode, p.desc.opcode);
    ASSERT_EQ(op.op_context, p.desc.op_context);
    ASSERT_EQ(op.peer, p.desc.peer);
    ASSERT_EQ(op.length, p.desc.length);
    ASSERT_EQ(op.group.valid, p.grouped);
    if (p.grouped && (p.desc.flags & contract::kTxFlagMore) == 0) {
      ASSERT_EQ(op.group.members, p.members);
    }
    ASSERT_EQ(op.segmented, p.desc.segments > 1);
    if (op.segmented) {
      std::array<contract::TxSegment, 4> segments;
      std::memcpy(&segments, p.extension.data(), sizeof segments);
      for (size_t i = 0; i < 4; ++i) {
        ASSERT_EQ(op.lengths[i], segments[i].length);
      }
      ASSERT_EQ(op.iova, segments[0].iova);
    } else if ((p.desc.flags & contract::kTxFlagInlineExt) == 0 &&
               (p.desc.flags & contract::kTxFlagInline) == 0) {
      ASSERT_EQ(op.iova, p.desc.local_iova);
    }
  }

  std::optional<rtl::TxGive> answer_;
  std::optional<uint32_t> reading_;  // Message.
  std::vector<uint8_t> read_;
};

}  // namespace heddle::test
