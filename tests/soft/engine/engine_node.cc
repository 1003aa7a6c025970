// SPDX-License-Identifier: Apache-2.0
#include "tests/soft/engine/engine_node.h"

namespace heddle::soft::engine {

using contract::Table;

EngineNode::EngineNode(TestFabric* fabric, const Options& options)
    : storage_(kArena + kPage),
      engine_(options.limits, &dma_, this, 1),
      carrier_(fabric->Add(&engine_)),
      cq_log2_(options.cq_log2),
      ring_slots_(static_cast<uint16_t>(1U << options.ring_log2)) {
  arena_ = storage_.data() + (kPage - Iova(storage_.data()) % kPage) % kPage;
  EXPECT_TRUE(dma_.Map(Iova(arena_), kArena - kPage).ok());
  engine_.Connect(carrier_);
  EXPECT_TRUE(Write(Table::kPort, 0,
                    contract::PortCfg{.payload_mtu = kMtu, .enable = 1}));
  for (uint32_t i = 0; i < queues_.size(); ++i) {
    queues_[i] = reinterpret_cast<contract::Completion*>(
        Allocate(sizeof(contract::Completion) << options.cq_log2));
    EXPECT_TRUE(Write(Table::kCq, i,
                      contract::CqCfg{.base = Iova(queues_[i]),
                                      .log2 = options.cq_log2,
                                      .vector = static_cast<uint8_t>(10 + i),
                                      .enable = 1}));
  }
  ring_ = reinterpret_cast<contract::TxDesc*>(
      Allocate(ring_slots_ * sizeof(contract::TxDesc)));
  rx_ring_ = reinterpret_cast<contract::RxDesc*>(
      Allocate(kRing * sizeof(contract::RxDesc)));
  tx_head = reinterpret_cast<uint64_t*>(Allocate(8));
  rx_head = reinterpret_cast<uint64_t*>(Allocate(8));
  constexpr uint32_t kPeers = 16;
  av = reinterpret_cast<contract::AvEntry*>(
      Allocate((kPeers + 1) * sizeof(contract::AvEntry)));
  // The last one is outside the vector, good as it looks.
  for (uint32_t i = 0; i <= kPeers; ++i) {
    av[i].fa_lo = i;
    av[i].pid_on_fep = kPid;
    av[i].flags = contract::kAvFlagValid;
  }
  tx = {.ring_base = Iova(ring_),
        .head_cell = Iova(tx_head),
        .av_base = Iova(av),
        .av_entries = kPeers,
        .job_id = kJob,
        .source_pid = kPid,
        .ring_log2 = options.ring_log2,
        .enable = 1,
        .ordered = options.ordered,
        .spill_base =
            options.spill
                ? Iova(Allocate(ring_slots_ * (sizeof(contract::TxDesc) +
                                               sizeof(contract::SpillMark))))
                : 0};
  rx = {.ring_base = Iova(rx_ring_),
        .head_cell = Iova(rx_head),
        .job_id = kJob,
        .pid_on_fep = kPid,
        .resource_index = 1,
        .ring_log2 = 6,
        .cq = 1,
        .enable = 1,
        .flags = options.rx_flags};
  EXPECT_TRUE(Write(Table::kTxCtx, 0, tx));
  EXPECT_TRUE(Write(Table::kRxCtx, 0, rx));
}

uint8_t* EngineNode::Allocate(size_t bytes) {
  uint8_t* const at = arena_ + used_;
  used_ += (bytes + 63) / 64 * 64;
  EXPECT_LE(used_, kArena - kPage);
  return at;
}

contract::RegionCfg EngineNode::Region(uint32_t index, uint8_t* memory,
                                       uint64_t bytes, uint8_t flags) {
  contract::RegionCfg cfg = {
      .key = contract::kKeyProvider | uint64_t{0xabc} << 20U | index,
      .iova = Iova(memory),
      .length = bytes,
      .job_id = kJob,
      .flags = static_cast<uint8_t>(flags | contract::kRegionFlagProviderKey),
      .enable = 1};
  EXPECT_TRUE(Write(Table::kRegion, index, cfg));
  return cfg;
}

contract::CounterCell* EngineNode::Counter(uint32_t index) {
  auto* const cell = reinterpret_cast<contract::CounterCell*>(
      Allocate(sizeof(contract::CounterCell)));
  EXPECT_TRUE(Write(Table::kCounter, index,
                    contract::CounterCfg{.cell = Iova(cell), .enable = 1}));
  return cell;
}

contract::TxDesc EngineNode::Send(uint32_t peer, const void* data,
                                  uint32_t length) {
  return {.opcode = contract::Opcode::kSend,
          .flags = contract::kTxFlagCompletion,
          .peer = peer,
          .length = length,
          .segments = static_cast<uint8_t>(length != 0 ? 1 : 0),
          .local_iova = Iova(data),
          .local_length = length};
}

contract::TxDesc EngineNode::Rma(contract::Opcode opcode, uint32_t peer,
                                 const void* data, uint32_t length) {
  contract::TxDesc descriptor = Send(peer, data, length);
  descriptor.opcode = opcode;
  return descriptor;
}

uint16_t EngineNode::Put(contract::TxDesc descriptor,
                         std::span<const uint8_t> extension) {
  const auto slots = static_cast<uint16_t>(
      1 + (extension.size() + contract::kDescBytes - 1) / contract::kDescBytes);
  while (tx_tail_ % ring_slots_ + slots > ring_slots_) {
    Slot(tx_tail_) = {.position = tx_tail_};
    ++tx_tail_;
  }
  const uint16_t position = tx_tail_;
  descriptor.position = position;
  Slot(position) = descriptor;
  if (!extension.empty()) {
    std::memcpy(static_cast<void*>(&Slot(position) + 1), extension.data(),
                extension.size());
  }
  tx_tail_ = static_cast<uint16_t>(tx_tail_ + slots);
  return position;
}

void EngineNode::Ring() {
  Doorbell(contract::kTxPageFirst, contract::kDoorbellTailOffset, tx_tail_);
}

uint16_t EngineNode::Receive(void* buffer, uint32_t length,
                             uint64_t op_context) {
  const uint16_t position = rx_tail_;
  RxSlot(position) = {.position = position,
                      .length = length,
                      .op_context = op_context,
                      .local_iova = Iova(buffer)};
  RingRx(static_cast<uint16_t>(position + 1));
  return position;
}

void EngineNode::RingRx(uint16_t tail) {
  rx_tail_ = tail;
  Doorbell(contract::kRxPageFirst, contract::kDoorbellTailOffset, tail);
}

void EngineNode::CancelReceive(uint16_t position) {
  Doorbell(contract::kRxPageFirst, contract::kDoorbellOpOffset,
           static_cast<uint64_t>(contract::DoorbellOp::kCancel) |
               uint64_t{position} << contract::kDoorbellOpArgumentLsb);
}

std::optional<contract::Completion> EngineNode::Poll(uint32_t cq,
                                                     bool consume) {
  const uint32_t at = polled_[cq];
  const contract::Completion entry = queues_[cq][at & ((1U << cq_log2_) - 1)];
  if (entry.phase != ((at >> cq_log2_ & 1U) == 0 ? 1 : 0)) {
    return std::nullopt;
  }
  ++polled_[cq];
  if ((entry.kind == contract::CompletionKind::kTx ||
       entry.kind == contract::CompletionKind::kTxSilent) &&
      static_cast<int16_t>(entry.queue_head - told_) > 0) {
    told_ = entry.queue_head;
  }
  if (consume) {
    Consume(cq, polled_[cq]);
  }
  return entry;
}

void EngineNode::Consume(uint32_t cq, uint32_t count, bool arm) {
  Doorbell(contract::kCqPageFirst + cq, contract::kDoorbellCqConsumerOffset,
           count | (arm ? contract::kDoorbellCqConsumerArmMask : 0));
}

void Settle(TestFabric& fabric, std::initializer_list<EngineNode*> nodes) {
  for (int idle = 0; idle < 32;) {
    bool busy = false;
    for (EngineNode* node : nodes) {
      busy |= node->engine().Progress(16);
    }
    busy |= fabric.Step();
    idle = busy ? 0 : idle + 1;
  }
}

}  // namespace heddle::soft::engine
