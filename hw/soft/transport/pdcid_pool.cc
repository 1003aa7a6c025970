// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/pdcid_pool.h"

#include <optional>

namespace heddle::soft::transport {

PdcidPool::PdcidPool(wire::DatagramWire* wire, uint64_t seed)
    : wire_(wire), seed_(seed), places_(kBlocks, kNoBlock) {}

void PdcidPool::Append(List* list, uint16_t id) {
  At(id).previous = list->last;
  At(id).next = 0;
  (list->last == 0 ? list->first : At(list->last).next) = id;
  list->last = id;
}

void PdcidPool::Remove(List* list, uint16_t id) {
  const Id& at = At(id);
  (at.previous == 0 ? list->first : At(at.previous).next) = at.next;
  (at.next == 0 ? list->last : At(at.next).previous) = at.previous;
}

bool PdcidPool::TakeBlock() {
  const std::optional<uint16_t> first = wire_->TakePdcids();
  if (!first.has_value()) {
    return false;
  }
  places_[*first / kBlock] = static_cast<uint16_t>(blocks_.size());
  blocks_.emplace_back().first = *first;
  for (uint64_t i = 0; i < kBlock; ++i) {
    const auto id = static_cast<uint16_t>(*first + (seed_ + i) % kBlock);
    if (id != 0) {
      Append(&free_, id);
    }
  }
  ++free_blocks_;
  return true;
}

uint16_t PdcidPool::Take(uint16_t pdc, bool target, uint64_t now_ns) {
  Tidy(now_ns);
  if (free_.first == 0 && !TakeBlock()) {
    return 0;
  }
  const uint16_t id = free_.first;
  Remove(&free_, id);
  Block& block = BlockOf(id);
  free_blocks_ -= block.busy++ == 0 ? 1 : 0;
  block.was_target |= uint32_t{target} << (id % kBlock);
  At(id).owner = pdc;
  return id;
}

void PdcidPool::Release(uint16_t id) {
  Append(&free_, id);
  free_blocks_ += --BlockOf(id).busy == 0 ? 1 : 0;
}

void PdcidPool::Return(uint16_t id, uint64_t until_ns, bool keep) {
  At(id).owner = kNoPdc;
  BlockOf(id).kept |= keep;
  if (until_ns == 0) {
    Release(id);
    ReturnBlocks();
    return;
  }
  At(id).until = until_ns;
  Append(&resting_, id);
}

void PdcidPool::Tidy(uint64_t now_ns) {
  bool released = false;
  while (next_free_ns() <= now_ns) {
    const uint16_t id = resting_.first;
    Remove(&resting_, id);
    Release(id);
    released = true;
  }
  if (released) {
    ReturnBlocks();
  }
}

void PdcidPool::ReturnBlocks() {
  for (size_t i = blocks_.size(); free_blocks_ > 1 && i-- > 0;) {
    Block& block = blocks_[i];
    if (block.busy != 0 || block.kept) {
      continue;
    }
    const uint16_t first = block.first;
    for (uint32_t at = 0; at < kBlock; ++at) {
      if (const auto id = static_cast<uint16_t>(first + at); id != 0) {
        Remove(&free_, id);
      }
    }
    places_[first / kBlock] = kNoBlock;
    if (i + 1 != blocks_.size()) {
      places_[blocks_.back().first / kBlock] = static_cast<uint16_t>(i);
      block = blocks_.back();
    }
    blocks_.pop_back();
    --free_blocks_;
    wire_->ReturnPdcids(first);
  }
}

void PdcidPool::Clear() {
  for (const Block& block : blocks_) {
    places_[block.first / kBlock] = kNoBlock;
    wire_->ReturnPdcids(block.first);
  }
  blocks_.clear();
  free_blocks_ = 0;
  free_ = resting_ = {};
}

}  // namespace heddle::soft::transport
