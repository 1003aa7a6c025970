// SPDX-License-Identifier: Apache-2.0
// Free-running slot counts of rings, doorbells and completions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// Slots from count `from` up to count `to`, across the 2^16 wrap.
constexpr uint16_t SlotDistance(uint16_t from, uint16_t to) noexcept {
  return static_cast<uint16_t>(to - from);
}

// The value of a tail doorbell.
constexpr uint64_t TailCount(uint32_t tail) noexcept {
  return uint64_t{static_cast<uint16_t>(tail)}
         << contract::kDoorbellTailCountLsb;
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
// Invariant: head <= published <= tail <= head + limit, modulo 2^16. An `open`
// ring has a free slot and nothing that waits for its doorbell: one compare.
// Thread safety: none.
class RingPositions {
 public:
  explicit RingPositions(size_t capacity) noexcept
      : open_to_(static_cast<uint32_t>(capacity)),
        mask_(static_cast<uint32_t>(capacity - 1)),
        limit_(static_cast<uint32_t>(capacity)) {}

  uint16_t head() const noexcept {
    return static_cast<uint16_t>(published_ - in_use_);
  }
  uint16_t published() const noexcept {
    return static_cast<uint16_t>(published_);
  }
  uint16_t tail() const noexcept {
    return static_cast<uint16_t>(published_ + pending_);
  }
  uint32_t capacity() const noexcept { return mask_ + 1U; }
  uint32_t free_slots() const noexcept { return limit_ - in_use_ - pending_; }
  bool full() const noexcept { return free_slots() == 0; }
  uint32_t Slot(uint32_t position) const noexcept { return position & mask_; }

  // More than `besides` slots are free; never while `Close` holds.
  bool open(uint32_t besides = 0) const noexcept {
    return in_use_ + besides < open_to_;
  }
  void Close(bool closed) noexcept {
    closed_ = closed;
    SetOpen();
  }

  void Append(uint32_t slots) noexcept {
    pending_ += slots;
    SetOpen();
  }
  void MarkPublished() noexcept {
    AppendPublished(count(), std::exchange(pending_, 0));
    SetOpen();
  }
  // Both of these, from `count()`. Precondition: `open(slots - 1)`.
  void AppendPublished(uint32_t count, uint32_t slots) noexcept {
    published_ = count + slots;
    in_use_ += slots;
  }
  // `published` with more bits, for those who then need it in a register only.
  uint32_t count() const noexcept { return published_; }

  // Accepts only a forward move within the published slots.
  Release ReleaseTo(uint16_t new_head) noexcept {
    if (new_head == head()) {
      return Release::kStale;
    }
    if (TryReleaseTo(new_head)) {
      return Release::kMoved;
    }
    return SlotDistance(new_head, head()) <= capacity() ? Release::kStale
                                                        : Release::kBogus;
  }

  // As `ReleaseTo` where the head moves or stays; false, without a change,
  // where it would move back or is wrong.
  [[nodiscard]] bool TryReleaseTo(uint16_t new_head) noexcept {
    const uint32_t left = SlotDistance(new_head, published());
    if (left > in_use_) {
      return false;
    }
    in_use_ = left;
    return true;
  }

  // From now on at most `slots` are in use, 1 to `capacity`. Precondition: no
  // more are now.
  void SetLimit(uint32_t slots) noexcept {
    limit_ = slots;
    SetOpen();
  }

 private:
  void SetOpen() noexcept { open_to_ = pending_ == 0 && !closed_ ? limit_ : 0; }

  uint32_t published_ = 0;  // Last tail rung: the next slot, when open.
  uint32_t in_use_ = 0;     // From the head, the oldest slot that the device
                            // may still read, to there.
  uint32_t open_to_;        // The limit of these; 0 when not open.
  uint32_t mask_;           // capacity - 1.
  // Above: every post. Below: others.
  uint32_t pending_ = 0;  // Filled, not published.
  uint32_t limit_;        // Most slots in use.
  bool closed_ = false;
};

}  // namespace heddle
