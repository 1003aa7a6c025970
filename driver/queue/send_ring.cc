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

void SendRing::PublishOneByCall(uint16_t tail) noexcept {
  last_position_ = positions_.tail();
  positions_.Append(SlotDistance(last_position_, tail));
  PublishPushed();
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
