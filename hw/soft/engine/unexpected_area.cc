// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/unexpected_area.h"

#include <algorithm>
#include <bit>

namespace heddle::soft::engine {

using semantics::kNone;

UnexpectedArea::UnexpectedArea(uint32_t bytes)
    : granule_(static_cast<uint32_t>(std::max<uint64_t>(
          kMinGranule,
          std::bit_ceil((uint64_t{bytes} + kMaxGranules - 1) / kMaxGranules)))),
      granules_(bytes / granule_) {
  const auto count = static_cast<uint32_t>(granules_.size());
  for (uint32_t at = 0; at != count;) {
    // As large as it may be where it begins.
    uint32_t order =
        at == 0 ? kOrders - 1 : static_cast<uint32_t>(std::countr_zero(at));
    while ((1U << order) > count - at) {
      --order;
    }
    Put(at, order);
    at += 1U << order;
  }
}

uint32_t UnexpectedArea::OrderOf(uint32_t bytes) const noexcept {
  return static_cast<uint32_t>(std::bit_width((bytes - 1) / granule_));
}

void UnexpectedArea::Put(uint32_t at, uint32_t order) noexcept {
  granules_[at].order = static_cast<uint8_t>(order);
  granules_[at].free = true;
  free_[order].PushBack(granules_, at);
}

UnexpectedArea::Block UnexpectedArea::Take(uint32_t bytes) noexcept {
  const uint32_t order = OrderOf(bytes);
  uint32_t larger = order;
  while (larger < kOrders && free_[larger].empty()) {
    ++larger;
  }
  if (larger >= kOrders) {
    return {};
  }
  const uint32_t at = free_[larger].PopFront(granules_);
  granules_[at].free = false;
  while (larger != order) {
    --larger;
    Put(at + (1U << larger), larger);
  }
  used_ += 1U << order;
  return {at * granule_, bytes};
}

void UnexpectedArea::Give(const Block& block) noexcept {
  if (block.bytes == 0) {
    return;
  }
  uint32_t at = block.offset / granule_;
  uint32_t order = OrderOf(block.bytes);
  used_ -= 1U << order;
  while (order + 1 < kOrders) {
    const uint32_t buddy = at ^ (1U << order);
    if (uint64_t{buddy} + (1U << order) > granules_.size() ||
        !granules_[buddy].free || granules_[buddy].order != order) {
      break;
    }
    free_[order].Remove(granules_, buddy);
    granules_[buddy].free = false;
    at = std::min(at, buddy);
    ++order;
  }
  Put(at, order);
}

}  // namespace heddle::soft::engine
