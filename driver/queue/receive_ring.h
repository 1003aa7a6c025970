// SPDX-License-Identifier: Apache-2.0
// Common part of the rings of receive contexts.
#pragma once

#include <cerrno>
#include <cstdint>
#include <span>

#include "driver/base/mmio.h"
#include "driver/dma/dma_buffer.h"
#include "driver/queue/ring_position.h"
#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// Descriptors from the host to one receive context.
//
// Cost: `Publish` is one barrier and one posted 8-byte write. No system call,
// lock, allocation or virtual call in any member but `Bind`.
//
// Thread safety: none; under its endpoint's lock.
// Ownership: borrows slots, head cell and doorbells, which outlive it. The
// ring starts with a context: destroy it with the context.
template <typename Descriptor>
class ReceiveRing {
 public:
  // Publishes all pushed slots to the device; does nothing without new ones.
  void Publish() noexcept {
    if (positions_.published() == positions_.tail()) {
      return;
    }
    positions_.MarkPublished();
    Ring(tail_doorbell_, TailCount(positions_.count()));
  }

  // Frees the slots before the value of the head cell. Precondition: there is
  // one.
  Release ReleaseFromCell() noexcept {
    return positions_.ReleaseTo(static_cast<uint16_t>(LoadShared(head_cell_)));
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

 protected:
  ReceiveRing(std::span<Descriptor> slots, const uint64_t* head_cell,
              Doorbell tail, Doorbell operation)
      : slots_(slots.data()),
        positions_(slots.size()),
        head_cell_(head_cell),
        tail_doorbell_(tail),
        op_doorbell_(operation) {}

  // `Create` of a `RingType`. Errors: EINVAL unless the size is one the
  // contract allows and the slots are aligned to 4 KiB.
  template <typename RingType>
  static Result<RingType> Bind(std::span<Descriptor> slots,
                               const uint64_t* head_cell, Doorbell tail,
                               Doorbell operation) {
    const auto address = reinterpret_cast<uintptr_t>(slots.data());
    if (!IsRingSize(slots.size()) || address % DmaBuffer::kPageBytes != 0) {
      return Errno{EINVAL};
    }
    return RingType(slots, head_cell, tail, operation);
  }

  // Requests that the device withdraw what `argument` names.
  void RingCancel(uint32_t argument) noexcept {
    const auto opcode = static_cast<uint64_t>(contract::DoorbellOp::kCancel);
    Ring(op_doorbell_,
         opcode << contract::kDoorbellOpOpcodeLsb |
             uint64_t{argument} << contract::kDoorbellOpArgumentLsb);
  }

  // NOLINTBEGIN(*-non-private-member-variables-in-classes): of the hot path.
  Descriptor* slots_;
  RingPositions positions_;
  const uint64_t* head_cell_;
  Doorbell tail_doorbell_;
  // Above: every post. Below: cold.
  Doorbell op_doorbell_;
  // NOLINTEND(*-non-private-member-variables-in-classes)
};

}  // namespace heddle
