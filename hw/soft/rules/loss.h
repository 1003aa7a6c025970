// SPDX-License-Identifier: Apache-2.0
// Which packets of a sender count as lost. As heddle_sack.
#pragma once

#include <bit>
#include <cstdint>

#include "hw/soft/rules/psn.h"

namespace heddle::soft::rules {

// The positions that `reorder` (at least 1) later ones of `arrived` have
// passed; bit i is the same PSN in both sets. The caller leaves out those that
// arrived.
constexpr uint64_t PassedBy(uint64_t arrived, uint32_t reorder) {
  auto count = static_cast<uint32_t>(std::popcount(arrived));
  if (count < reorder) {
    return 0;
  }
  for (; count > reorder; --count) {
    arrived &= arrived - 1;
  }
  // `arrived` holds the `reorder` highest now.
  return LowBits(static_cast<uint32_t>(std::countr_zero(arrived)));
}

// The `sent` PSNs from `una` on that an ACK_CC with that bitmap reports.
constexpr uint64_t ArrivedBy(uint64_t sack, uint32_t base, uint32_t una,
                             uint64_t sent) {
  return Rebased(sack, base, una) & sent;
}

}  // namespace heddle::soft::rules
