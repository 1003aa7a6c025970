// SPDX-License-Identifier: Apache-2.0
// An engine with a host around it: memory, rings, doorbells.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "hw/soft/dma_memory.h"
#include "hw/soft/engine/engine.h"
#include "tests/soft/engine/fake_fabric.h"

namespace heddle::soft::engine {

// One endpoint: transmit context 0, receive context 0 serving RI 1, completion
// queues 0 (transmit) and 1 (receive), address vector with an entry for each
// node of the fabric, PIDonFEP kPid. All host memory is one arena, mapped
// except for its last page.
class EngineNode : private InterruptSink {
 public:
  static constexpr uint32_t kJob = 77;
  static constexpr uint16_t kPid = 5;
  static constexpr uint16_t kRing = 64;
  static constexpr uint32_t kMtu = 1024;
  static constexpr size_t kArena = size_t{8} << 20U;
  static constexpr size_t kPage = 4096;

  struct Options {
    uint8_t ordered = 0xff;
    uint8_t cq_log2 = 10;
    uint8_t rx_flags = 0;
    bool spill = false;
    uint8_t ring_log2 = 6;
    EngineLimits limits = {.tx_contexts = 2,
                           .rx_contexts = 2,
                           .cqs = 4,
                           .counters = 8,
                           .regions = 64,
                           .messages = 600,
                           .open_messages = 64};
  };

  EngineNode(TestFabric* fabric, const Options& options);
  explicit EngineNode(TestFabric* fabric) : EngineNode(fabric, Options{}) {}

  Engine& engine() { return engine_; }
  DmaMemory& dma() { return dma_; }
  // Of a node on a FakeFabric.
  FakeFabric::Carrier& carrier() {
    return static_cast<FakeFabric::Carrier&>(*carrier_);
  }

  // -- memory

  // Zeroed, aligned to 64.
  uint8_t* Allocate(size_t bytes);
  static uint64_t Iova(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
  }
  // An address that the device must not touch.
  uint64_t Arena() const { return Iova(arena_); }
  static constexpr size_t kArenaMapped = kArena - kPage;
  uint64_t Unmapped() const { return Iova(arena_) + kArena - kPage; }

  // -- tables

  template <typename T>
  bool Write(contract::Table table, uint32_t index, const T& cfg) {
    static_assert(sizeof(T) == Engine::kEntryBytes);
    return engine_.WriteTable(
        table, index,
        Engine::ConstEntry(reinterpret_cast<const uint8_t*>(&cfg),
                           sizeof(cfg)));
  }
  contract::TxCtxCfg tx;
  contract::RxCtxCfg rx;
  contract::AvEntry* av = nullptr;
  uint64_t* tx_head = nullptr;
  uint64_t* rx_head = nullptr;

  // Writes context 0 anew: positions start at 0.
  void Restart() {
    EXPECT_TRUE(Write(contract::Table::kTxCtx, 0, tx));
    tx_tail_ = told_ = 0;
    *tx_head = 0;
  }
  // A region with a provider key, in entry `index`.
  contract::RegionCfg Region(uint32_t index, uint8_t* memory, uint64_t bytes,
                             uint8_t flags);
  contract::CounterCell* Counter(uint32_t index);

  // -- transmit

  // A descriptor of the next slot.
  static contract::TxDesc Send(uint32_t peer, const void* data,
                               uint32_t length);
  contract::TxDesc Rma(contract::Opcode opcode, uint32_t peer, const void* data,
                       uint32_t length);
  // Writes it with what follows it in extension slots; returns its position.
  // `Ring` publishes.
  uint16_t Put(contract::TxDesc descriptor,
               std::span<const uint8_t> extension = {});
  void Ring();
  uint16_t Post(const contract::TxDesc& descriptor,
                std::span<const uint8_t> extension = {}) {
    const uint16_t position = Put(descriptor, extension);
    Ring();
    return position;
  }
  uint16_t tx_tail() const { return tx_tail_; }
  contract::TxDesc& Slot(uint16_t position) {
    return ring_[position % ring_slots_];
  }

  // -- receive

  uint16_t Receive(void* buffer, uint32_t length, uint64_t op_context = 0);
  contract::RxDesc& RxSlot(uint16_t position) {
    return rx_ring_[position % kRing];
  }
  void RingRx(uint16_t tail);
  void CancelReceive(uint16_t position);
  uint16_t rx_tail() const { return rx_tail_; }

  // -- completions

  // Next one of the queue; returned to the device if `consume`.
  std::optional<contract::Completion> Poll(uint32_t cq, bool consume = true);
  void Consume(uint32_t cq, uint32_t count, bool arm = false);
  // Slots of the transmit ring that the host knows to be released.
  uint16_t released() const {
    const auto cell = static_cast<uint16_t>(*tx_head);
    return static_cast<int16_t>(cell - told_) > 0 ? cell : told_;
  }
  uint32_t polled(uint32_t cq) const { return polled_[cq]; }
  std::vector<uint8_t> interrupts;

  void Doorbell(uint32_t page, uint32_t offset, uint64_t value) {
    engine_.Doorbell(page * contract::kDoorbellPageBytes + offset, value);
  }

 private:
  void Raise(uint8_t vector) override { interrupts.push_back(vector); }

  uint8_t* arena_ = nullptr;
  std::vector<uint8_t> storage_;
  size_t used_ = 0;
  DmaMemory dma_;
  Engine engine_;
  transport::MessageCarrier* carrier_;
  contract::TxDesc* ring_ = nullptr;
  contract::RxDesc* rx_ring_ = nullptr;
  uint16_t tx_tail_ = 0;
  uint16_t rx_tail_ = 0;
  std::array<contract::Completion*, 2> queues_ = {};
  std::array<uint32_t, 2> polled_ = {};
  uint8_t cq_log2_;
  uint16_t ring_slots_;
  uint16_t told_ = 0;  // By completions.
};

// Progress of engines and fabric until nothing changes.
void Settle(TestFabric& fabric, std::initializer_list<EngineNode*> nodes);

}  // namespace heddle::soft::engine
