// SPDX-License-Identifier: Apache-2.0
// Assignment of the doorbell pages of BAR2 to objects.
// Freestanding: firmware, models and the host share it.
#pragma once

#include <stdint.h>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::contract {

inline constexpr uint32_t kBankPages = kBankBytes / kDoorbellPageBytes;

// Page of object `number` of the kind whose pages begin at `first` in each bank
// (`k*PageFirst`).
constexpr uint32_t DoorbellPageOf(uint32_t first, uint32_t number) {
  return number / kBankObjects * kBankPages + first + number % kBankObjects;
}

// The opposite: a page's place in its bank, and number of the object of the
// kind that begins at `first` there.
constexpr uint32_t PageInBank(uint32_t page) {
  return page % kBankPages;
}
constexpr uint32_t ObjectOfPage(uint32_t page, uint32_t first) {
  return page / kBankPages * kBankObjects + (PageInBank(page) - first);
}

// Whether a write to BAR2 arms the interrupt of a completion queue: its owner
// is about to sleep instead of polling.
constexpr bool ArmsInterrupt(uint32_t bar2_offset, uint64_t value) {
  const uint32_t page = PageInBank(bar2_offset / kDoorbellPageBytes);
  return page >= kCqPageFirst && page < kCounterPageFirst &&
         (value & kDoorbellCqConsumerArmMask) != 0;
}

// Bytes of BAR2 of a device with at most so many objects of a kind.
constexpr uint64_t DoorbellBytes(uint32_t most_objects) {
  const uint32_t banks = (most_objects + kBankObjects - 1) / kBankObjects;
  return uint64_t{banks > 1 ? banks : 1} * kBankBytes;
}

}  // namespace heddle::contract
