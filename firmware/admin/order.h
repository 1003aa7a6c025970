// SPDX-License-Identifier: Apache-2.0
// Message ordering, as libfabric states it.
#pragma once

#include <stdint.h>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// Classes of operations that one of the `msg_order` bits orders, among
// themselves or against another class: they have to share a ROD PDC.
//
// The bits are part of libfabric's ABI (fi_endpoint(3)): low ones say
// {read, write, send} after {read, write, send} and count atomics as reads and
// writes; those from 32 on tell RMA from atomics.
constexpr uint8_t OrderedClasses(uint64_t msg_order) {
  constexpr uint64_t kReadAfterRead = 1U << 0U;
  constexpr uint64_t kReadAfterWrite = 1U << 1U;
  constexpr uint64_t kReadAfterSend = 1U << 2U;
  constexpr uint64_t kWriteAfterRead = 1U << 3U;
  constexpr uint64_t kWriteAfterWrite = 1U << 4U;
  constexpr uint64_t kWriteAfterSend = 1U << 5U;
  constexpr uint64_t kSendAfterRead = 1U << 6U;
  constexpr uint64_t kSendAfterWrite = 1U << 7U;
  constexpr uint64_t kSendAfterSend = 1U << 8U;
  // Each RAR, RAW, WAR, WAW from the lowest bit on.
  constexpr unsigned kRmaShift = 32;
  constexpr unsigned kAtomicShift = 36;
  constexpr uint64_t kAfterRead = 1U << 0U | 1U << 2U;   // RAR, WAR.
  constexpr uint64_t kReadAfter = 1U << 0U | 1U << 1U;   // RAR, RAW.
  constexpr uint64_t kAfterWrite = 1U << 1U | 1U << 3U;  // RAW, WAW.
  constexpr uint64_t kWriteAfter = 1U << 2U | 1U << 3U;  // WAR, WAW.
  constexpr uint64_t kReads = kAfterRead | kReadAfter;
  constexpr uint64_t kWrites = kAfterWrite | kWriteAfter;

  constexpr uint64_t kOfSends = kReadAfterSend | kWriteAfterSend |
                                kSendAfterRead | kSendAfterWrite |
                                kSendAfterSend;
  constexpr uint64_t kOfReads = kReadAfterRead | kReadAfterWrite |
                                kReadAfterSend | kWriteAfterRead |
                                kSendAfterRead;
  constexpr uint64_t kOfWrites = kReadAfterWrite | kWriteAfterRead |
                                 kWriteAfterWrite | kWriteAfterSend |
                                 kSendAfterWrite;
  constexpr uint64_t kOfAtomics =
      kOfReads | kOfWrites | (kReads | kWrites) << kAtomicShift;

  unsigned classes = 0;
  if ((msg_order & kOfSends) != 0) {
    classes |= contract::kOrderClassSend;
  }
  if ((msg_order & (kOfReads | kReads << kRmaShift)) != 0) {
    classes |= contract::kOrderClassRead;
  }
  if ((msg_order & (kOfWrites | kWrites << kRmaShift)) != 0) {
    classes |= contract::kOrderClassWrite;
  }
  if ((msg_order & kOfAtomics) != 0) {
    classes |= contract::kOrderClassAtomic;
  }
  return static_cast<uint8_t>(classes);
}

}  // namespace heddle::firmware
