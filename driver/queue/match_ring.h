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

  // Appends `descriptor`, whose `position` is the ring's. Precondition: not
  // full.
  void Push(const contract::MatchDesc& descriptor) noexcept {
    Store(positions_.tail(), descriptor);
    positions_.Append(1);
  }

  // As `Push`, then `Publish`. Precondition: `open`.
  [[gnu::always_inline]] void PushAndPublish(
      const contract::MatchDesc& descriptor) noexcept {
    const uint32_t position = positions_.count();
    Store(position, descriptor);
    positions_.AppendPublished(position, 1);
    Ring(tail_doorbell_, TailCount(position + 1));
  }

  // Requests that the device withdraw the receive whose `op_context` has `name`
  // in its low 32 bits. Exactly one completion follows in either case.
  void Cancel(uint32_t name) noexcept { RingCancel(name); }

 private:
  friend ReceiveRing;
  using ReceiveRing::ReceiveRing;

  [[gnu::always_inline]] void Store(
      uint32_t position, const contract::MatchDesc& descriptor) noexcept {
    contract::MatchDesc& slot = slots_[positions_.Slot(position)];
    slot = descriptor;
    slot.position = static_cast<uint16_t>(position);
  }
};

}  // namespace heddle
