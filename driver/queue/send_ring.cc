// SPDX-License-Identifier: Apache-2.0
#include "driver/queue/send_ring.h"

#include <cerrno>

namespace heddle {

Result<SendRing> SendRing::Create(std::span<contract::TxDesc> slots,
                                  const uint64_t* head_cell, Doorbell tail,
                                  PushWindow push) {
  const auto address = reinterpret_cast<uintptr_t>(slots.data());
  if (!IsRingSize(slots.size()) || address % DmaBuffer::kPageBytes != 0) {
    return Errno{EINVAL};
  }
  return SendRing(slots, head_cell, tail, push);
}

void SendRing::PublishOneByCall() noexcept {
  last_position_ = positions_.tail();
  positions_.Append(1);
  PublishPushed();
}

}  // namespace heddle
