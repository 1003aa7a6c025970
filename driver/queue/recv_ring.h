// SPDX-License-Identifier: Apache-2.0
// Producer side of a receive context's ring.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "driver/queue/receive_ring.h"

namespace heddle {

// Posts receive buffers to one receive context that does not match.
//
// Cost: `TryPush` writes one slot. `Find` reads all slots in use: for
// cancellation only.
class RecvRing : public ReceiveRing<contract::RxDesc> {
 public:
  // As `SendRing::Create`.
  static Result<RecvRing> Create(std::span<contract::RxDesc> slots,
                                 const uint64_t* head_cell, Doorbell tail,
                                 Doorbell operation) {
    return Bind<RecvRing>(slots, head_cell, tail, operation);
  }

  // Appends a buffer of `bytes` at `iova`, which the device may write until its
  // completion. 0 bytes take a message without payload. False, without a
  // change, when the ring is full.
  [[nodiscard]] bool TryPush(uint64_t op_context, Iova iova,
                             uint32_t bytes) noexcept {
    if (positions_.full()) {
      return false;
    }
    last_position_ = positions_.tail();
    slots_[positions_.Slot(last_position_)] = {.position = last_position_,
                                               .length = bytes,
                                               .op_context = op_context,
                                               .local_iova = ToInteger(iova)};
    positions_.Append(1);
    return true;
  }

  // As `TryPush`, then `Publish`. Precondition: `open`.
  [[gnu::always_inline]] void PushAndPublish(uint64_t op_context, Iova iova,
                                             uint32_t bytes) noexcept {
    const uint32_t position = positions_.count();
    slots_[positions_.Slot(position)] = {
        .position = static_cast<uint16_t>(position),
        .length = bytes,
        .op_context = op_context,
        .local_iova = ToInteger(iova)};
    positions_.AppendPublished(position, 1);
    Ring(tail_doorbell_, TailCount(position + 1));
  }

  // Position of the buffer pushed last.
  uint16_t last_position() const noexcept { return last_position_; }

  // Frees the slots before `queue_head` of a completion of this context.
  Release ReleaseTo(uint16_t queue_head) noexcept {
    return positions_.ReleaseTo(queue_head);
  }

  // As `RingPositions::TryReleaseTo`.
  [[nodiscard]] bool TryReleaseTo(uint16_t queue_head) noexcept {
    return positions_.TryReleaseTo(queue_head);
  }

  // Position of the oldest published slot not yet released that carries
  // `op_context`. It may have completed already, unseen.
  std::optional<uint16_t> Find(uint64_t op_context) const noexcept;

  // Requests that the device withdraw the buffer at `position`. Exactly one
  // completion follows in either case: status `cancelled`, with op_context 0,
  // or that of the message that arrived first.
  void Cancel(uint16_t position) noexcept { RingCancel(position); }

  // The descriptor pushed at `position`; for completions that do not repeat it.
  // Precondition: the slot has not been released, or not been reused since.
  uint64_t op_context_at(uint16_t position) const noexcept {
    return slots_[positions_.Slot(position)].op_context;
  }

 private:
  friend ReceiveRing;
  using ReceiveRing::ReceiveRing;

  uint16_t last_position_ = 0;
};

}  // namespace heddle
