// SPDX-License-Identifier: Apache-2.0
// Producer side of the ring of a receive context that matches.
#pragma once

#include <cstdint>
#include <span>

#include "driver/queue/receive_ring.h"

namespace heddle {

// Posts receives, peeks and claims. A slot is free once the device has taken
// its descriptor, which the head cell shows; completions release none.
//
// Cost: a push writes one slot.
class MatchRing : public ReceiveRing<contract::MatchDesc> {
 public:
  // As `SendRing::Create`.
  static Result<MatchRing> Create(std::span<contract::MatchDesc> slots,
                                  const uint64_t* head_cell, Doorbell tail,
                                  Doorbell operation) {
    return Bind<MatchRing>(slots, head_cell, tail, operation);
  }

  // Whether a slot is free, looking at the head cell where none is known to be.
  // The answer after a wrong head is false.
  [[nodiscard]] bool MakeRoom() noexcept {
    return !positions_.full() || ReleaseFromCell() == Release::kMoved;
  }

  // Appends a descriptor: `fill(contract::MatchDesc&)` sets all of it but its
  // `position`, in the slot. Precondition: not full.
  template <typename Fill>
  [[gnu::always_inline]] void Push(const Fill& fill) noexcept {
    Store(positions_.tail(), fill);
    positions_.Append(1);
  }

  // As `Push`, then `Publish`. Precondition: `open`.
  template <typename Fill>
  [[gnu::always_inline]] void PushAndPublish(const Fill& fill) noexcept {
    const uint32_t position = positions_.count();
    Store(position, fill);
    positions_.AppendPublished(position, 1);
    Ring(tail_doorbell_, TailCount(position + 1));
  }

  // Requests that the device withdraw the receive whose `op_context` has `name`
  // in its low 32 bits. Exactly one completion follows in either case.
  void Cancel(uint32_t name) noexcept { RingCancel(name); }

 private:
  friend ReceiveRing;
  using ReceiveRing::ReceiveRing;

  template <typename Fill>
  [[gnu::always_inline]] void Store(uint32_t position,
                                    const Fill& fill) noexcept {
    contract::MatchDesc& slot = slots_[positions_.Slot(position)];
    fill(slot);
    slot.position = static_cast<uint16_t>(position);
  }
};

}  // namespace heddle
