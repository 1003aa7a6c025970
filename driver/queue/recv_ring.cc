// SPDX-License-Identifier: Apache-2.0
#include "driver/queue/recv_ring.h"

#include <cerrno>

namespace heddle {

Result<RecvRing> RecvRing::Create(std::span<contract::RxDesc> slots,
                                  const uint64_t* head_cell, Doorbell tail,
                                  Doorbell operation) {
  const auto address = reinterpret_cast<uintptr_t>(slots.data());
  if (!IsRingSize(slots.size()) || address % DmaBuffer::kPageBytes != 0) {
    return Errno{EINVAL};
  }
  return RecvRing(slots, head_cell, tail, operation);
}

std::optional<uint16_t> RecvRing::Find(uint64_t op_context) const noexcept {
  for (uint16_t at = positions_.head(); at != positions_.published(); ++at) {
    if (op_context_at(at) == op_context) {
      return at;
    }
  }
  return std::nullopt;
}

void RecvRing::Cancel(uint16_t position) noexcept {
  const auto opcode = static_cast<uint64_t>(contract::DoorbellOp::kCancel);
  Ring(op_doorbell_,
       opcode << contract::kDoorbellOpOpcodeLsb |
           uint64_t{position} << contract::kDoorbellOpArgumentLsb);
}

}  // namespace heddle
