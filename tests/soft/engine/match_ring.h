// SPDX-License-Identifier: Apache-2.0
// A receive context that matches, of a node's engine.
#pragma once

#include <cstdint>

#include "tests/soft/engine/engine_node.h"

namespace heddle::soft::engine {

// Takes the place of receive context `context` of the node; completions come in
// the node's queue 1.
class MatchRing {
 public:
  static constexpr uint16_t kSlots = 64;

  struct Options {
    uint32_t context = 0;
    bool tagged = true;
    uint32_t area_bytes = 256 * 1024;
    uint32_t unexpected = 64;
    uint32_t receives = 64;
    uint32_t copy_limit = 16384;
  };

  MatchRing(EngineNode* node, const Options& options)
      : node_(*node), context_(options.context) {
    ring_ = reinterpret_cast<contract::MatchDesc*>(
        node->Allocate(kSlots * sizeof(contract::MatchDesc)));
    head = reinterpret_cast<uint64_t*>(node->Allocate(8));
    area = node->Allocate(options.area_bytes);
    cfg = node->rx;
    cfg.ring_base = EngineNode::Iova(ring_);
    cfg.head_cell = EngineNode::Iova(head);
    cfg.flags =
        static_cast<uint8_t>(cfg.flags | contract::kRxCtxFlagMatch |
                             (options.tagged ? contract::kRxCtxFlagTagged : 0));
    cfg.unexpected_base = EngineNode::Iova(area);
    cfg.unexpected_bytes = options.area_bytes;
    cfg.unexpected_messages = options.unexpected;
    cfg.copy_limit = options.copy_limit;
    cfg.receives = options.receives;
    Write();
  }

  // Begins a life of the context.
  void Write() {
    tail_ = 0;
    *head = 0;
    EXPECT_TRUE(node_.Write(contract::Table::kRxCtx, context_, cfg));
  }
  void Disable() {
    contract::RxCtxCfg off = cfg;
    off.enable = 0;
    EXPECT_TRUE(node_.Write(contract::Table::kRxCtx, context_, off));
  }

  static contract::MatchDesc Receive(void* buffer, uint32_t length,
                                     uint64_t tag, uint64_t ignore = 0) {
    return {.opcode = contract::MatchOp::kReceive,
            .flags = contract::kMatchFlagAnySource,
            .length = length,
            .local_iova = EngineNode::Iova(buffer),
            .match_bits = tag,
            .ignore_bits = ignore};
  }
  static contract::MatchDesc Op(contract::MatchOp opcode, uint64_t tag,
                                uint64_t ignore = 0) {
    contract::MatchDesc descriptor = Receive(nullptr, 0, tag, ignore);
    descriptor.opcode = opcode;
    descriptor.local_iova = 0;
    return descriptor;
  }

  // Writes the descriptor to the next slot; `Ring` publishes.
  void Put(contract::MatchDesc descriptor) {
    descriptor.position = tail_;
    ring_[tail_ % kSlots] = descriptor;
    ++tail_;
  }
  void Ring() {
    node_.Doorbell(contract::kRxPageFirst + context_,
                   contract::kDoorbellTailOffset, tail_);
  }
  void Post(contract::MatchDesc descriptor, uint64_t op_context) {
    descriptor.op_context = op_context;
    Put(descriptor);
    Ring();
  }
  void Cancel(uint32_t handle) {
    node_.Doorbell(contract::kRxPageFirst + context_,
                   contract::kDoorbellOpOffset,
                   static_cast<uint64_t>(contract::DoorbellOp::kCancel) |
                       uint64_t{handle} << contract::kDoorbellOpArgumentLsb);
  }
  contract::MatchDesc& Slot(uint16_t position) {
    return ring_[position % kSlots];
  }
  uint16_t tail() const { return tail_; }
  // Descriptors that the device has not taken.
  uint16_t waiting() const { return static_cast<uint16_t>(tail_ - *head); }

  contract::RxCtxCfg cfg;
  uint64_t* head = nullptr;
  uint8_t* area = nullptr;

 private:
  EngineNode& node_;
  uint32_t context_;
  contract::MatchDesc* ring_ = nullptr;
  uint16_t tail_ = 0;
};

// A send of the node's with a tag.
inline contract::TxDesc TaggedSend(uint32_t peer, const void* data,
                                   uint32_t length, uint64_t tag) {
  contract::TxDesc descriptor = EngineNode::Send(peer, data, length);
  descriptor.opcode = contract::Opcode::kTaggedSend;
  descriptor.match_bits = tag;
  return descriptor;
}

// Where in its buffer a message of a receive with `multi_recv` is.
inline uint32_t OffsetOf(const contract::Completion& entry) {
  return uint32_t{entry.position} << 16U | entry.queue_head;
}

}  // namespace heddle::soft::engine
