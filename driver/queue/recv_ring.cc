// SPDX-License-Identifier: Apache-2.0
#include "driver/queue/recv_ring.h"

namespace heddle {

std::optional<uint16_t> RecvRing::Find(uint64_t op_context) const noexcept {
  for (uint16_t at = positions_.head(); at != positions_.published(); ++at) {
    if (op_context_at(at) == op_context) {
      return at;
    }
  }
  return std::nullopt;
}

}  // namespace heddle
