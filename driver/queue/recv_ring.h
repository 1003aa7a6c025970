// SPDX-License-Identifier: Apache-2.0
// Producer side of a receive context's ring.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "driver/base/mmio.h"
#include "driver/dma/dma_buffer.h"
#include "driver/queue/ring_position.h"
#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// Posts receive buffers to one receive context.
//
// Cost: `TryPush` writes one slot; `Publish` is one barrier and one posted
// 8-byte write. No system call, lock, allocation or virtual call in any member
// but `Create`. `Find` reads all slots in use: for cancellation only.
//
// Thread safety: none; under its endpoint's lock.
// Ownership: borrows slots, head cell and doorbells, which outlive it. The
// ring starts with a context: destroy it with the context.
class RecvRing {
 public:
  // As `SendRing::Create`.
  static Result<RecvRing> Create(std::span<contract::RxDesc> slots,
                                 const uint64_t* head_cell, Doorbell tail,
                                 Doorbell operation);

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

  // Publishes all pushed slots to the device; does nothing without new ones.
  void Publish() noexcept {
    if (positions_.published() == positions_.tail()) {
      return;
    }
    positions_.MarkPublished();
    Ring(tail_doorbell_, TailCount(positions_.count()));
  }

  // Frees the slots before `queue_head` of a completion of this context.
  Release ReleaseTo(uint16_t queue_head) noexcept {
    return positions_.ReleaseTo(queue_head);
  }

  // As `RingPositions::TryReleaseTo`.
  [[nodiscard]] bool TryReleaseTo(uint16_t queue_head) noexcept {
    return positions_.TryReleaseTo(queue_head);
  }

  // As `ReleaseTo` with the value of the head cell. Precondition: there is one.
  Release ReleaseFromCell() noexcept {
    return positions_.ReleaseTo(static_cast<uint16_t>(LoadShared(head_cell_)));
  }

  // Position of the oldest published slot not yet released that carries
  // `op_context`. It may have completed already, unseen.
  std::optional<uint16_t> Find(uint64_t op_context) const noexcept;

  // Requests that the device withdraw the buffer at `position`. Exactly one
  // completion follows in either case: status `cancelled`, with op_context 0,
  // or that of the message that arrived first.
  void Cancel(uint16_t position) noexcept;

  // The descriptor pushed at `position`; for completions that do not repeat it.
  // Precondition: the slot has not been released, or not been reused since.
  uint64_t op_context_at(uint16_t position) const noexcept {
    return slots_[positions_.Slot(position)].op_context;
  }

  // All in slots.
  uint32_t capacity() const noexcept { return positions_.capacity(); }
  uint32_t free_slots() const noexcept { return positions_.free_slots(); }
  bool full() const noexcept { return positions_.full(); }
  // There is a free slot and nothing waits for its doorbell; never again after
  // `Close`.
  bool open() const noexcept { return positions_.open(); }
  void Close() noexcept { positions_.Close(true); }
  // The tail, of a ring that is open; more bits than a position has.
  uint32_t count() const noexcept { return positions_.count(); }
  uint16_t head() const noexcept { return positions_.head(); }
  uint16_t tail() const noexcept { return positions_.tail(); }

 private:
  RecvRing(std::span<contract::RxDesc> slots, const uint64_t* head_cell,
           Doorbell tail, Doorbell operation)
      : slots_(slots.data()),
        positions_(slots.size()),
        head_cell_(head_cell),
        tail_doorbell_(tail),
        op_doorbell_(operation) {}

  contract::RxDesc* slots_;
  RingPositions positions_;
  uint16_t last_position_ = 0;
  const uint64_t* head_cell_;
  Doorbell tail_doorbell_;
  // Above: every post. Below: cold.
  Doorbell op_doorbell_;
};

}  // namespace heddle
