// SPDX-License-Identifier: Apache-2.0
#include "driver/queue/send_ring.h"

#include <cerrno>

namespace heddle {

Result<SendRing> SendRing::Create(std::span<contract::TxDesc> slots,
                                  const uint64_t* head_cell, Doorbell tail,
                                  const PushTarget& push) {
  const auto address = reinterpret_cast<uintptr_t>(slots.data());
  if (!IsRingSize(slots.size()) || address % DmaBuffer::kPageBytes != 0) {
    return Errno{EINVAL};
  }
  return SendRing(slots, head_cell, tail, push);
}

void SendRing::PublishByCall(uint32_t slots) noexcept {
  last_position_ = positions_.tail();
  positions_.Append(slots);
  Publish();
}

void SendRing::Publish() noexcept {
  if (positions_.published() == positions_.tail()) {
    return;
  }
  if (push_.open() && IsAlone()) {
    CopyLast();
  }
  positions_.MarkPublished();
  Ring(tail_doorbell_, TailCount(positions_.count()));
}

void SendRing::CopyLast() const noexcept {
  const contract::TxDesc* const slot = &slots_[positions_.Slot(last_position_)];
  // The slot after a descriptor of several segments is fetched: the device
  // looks there for no payload.
  const bool holds_payload = (slot->flags & contract::kTxFlagInlineExt) != 0;
  push_.Copy(last_position_,
             {slot, push_.SlotsTaken(holds_payload ? slot->ext_slots : 0)});
}

}  // namespace heddle
