// SPDX-License-Identifier: Apache-2.0
// Free-running slot counts of rings, doorbells and completions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// Slots from count `from` up to count `to`, across the 2^16 wrap.
constexpr uint16_t SlotDistance(uint16_t from, uint16_t to) noexcept {
  return static_cast<uint16_t>(to - from);
}

// True for a ring size that the contract allows.
constexpr bool IsRingSize(size_t slots) noexcept {
  return std::has_single_bit(slots) &&
         slots >= size_t{1} << contract::kRingLog2Min &&
         slots <= size_t{1} << contract::kRingLog2Max;
}

// Effect of a released head that the device reported.
enum class Release : uint8_t {
  kMoved,  // Slots were freed.
  kStale,  // Nothing new: a later head was seen before (the head cell and the
           // completions are read independently).
  kBogus,  // Outside everything published. State is unchanged; the caller
           // fails the context rather than reuse memory still in use.
};

// The three counts of a producer ring.
//
// Invariant: head <= published <= tail <= head + limit, modulo 2^16.
// Thread safety: none.
class RingPositions {
 public:
  explicit RingPositions(size_t capacity) noexcept
      : full_at_(static_cast<uint16_t>(capacity)),
        mask_(static_cast<uint32_t>(capacity - 1)),
        limit_(static_cast<uint16_t>(capacity)) {}

  uint16_t head() const noexcept { return head_; }
  uint16_t published() const noexcept { return published_; }
  uint16_t tail() const noexcept { return tail_; }
  uint32_t capacity() const noexcept { return mask_ + 1U; }
  uint32_t free_slots() const noexcept { return SlotDistance(tail_, full_at_); }
  bool full() const noexcept { return tail_ == full_at_; }
  uint32_t Slot(uint16_t position) const noexcept { return position & mask_; }

  void Append(uint32_t slots) noexcept {
    tail_ = static_cast<uint16_t>(tail_ + slots);
  }
  void MarkPublished() noexcept { published_ = tail_; }
  // Both of these, to a tail that is known already.
  void PublishTo(uint16_t tail) noexcept {
    tail_ = tail;
    published_ = tail;
  }

  // Accepts only a forward move within the published slots.
  Release ReleaseTo(uint16_t new_head) noexcept {
    if (new_head == head_) {
      return Release::kStale;
    }
    if (TryReleaseTo(new_head)) {
      return Release::kMoved;
    }
    return SlotDistance(new_head, head_) <= capacity() ? Release::kStale
                                                       : Release::kBogus;
  }

  // As `ReleaseTo` where the head moves or stays; false, without a change,
  // where it would move back or is wrong.
  [[nodiscard]] bool TryReleaseTo(uint16_t new_head) noexcept {
    if (SlotDistance(head_, new_head) > SlotDistance(head_, published_)) {
      return false;
    }
    head_ = new_head;
    full_at_ = static_cast<uint16_t>(new_head + limit_);
    return true;
  }

  // From now on at most `slots` are in use, 1 to `capacity`. Precondition: no
  // more are now.
  void SetLimit(uint32_t slots) noexcept {
    limit_ = static_cast<uint16_t>(slots);
    full_at_ = static_cast<uint16_t>(head_ + limit_);
  }

 private:
  uint16_t tail_ = 0;       // Next slot to fill.
  uint16_t full_at_;        // The tail when nothing is free: head + limit.
  uint32_t mask_;           // capacity - 1.
  uint16_t published_ = 0;  // Last tail rung.
  uint16_t head_ = 0;       // Oldest slot the device may still read.
  uint16_t limit_;          // Maximum of slots in use.
};

}  // namespace heddle
