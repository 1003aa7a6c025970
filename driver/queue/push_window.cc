// SPDX-License-Identifier: Apache-2.0
#include "driver/queue/push_window.h"

#include <array>
#include <bit>
#include <cstddef>

#include "driver/base/mmio.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace heddle {
namespace {

constexpr uint32_t kSlotWords = contract::kDescBytes / sizeof(uint64_t);
using SlotWords = std::array<uint64_t, kSlotWords>;

#if defined(__x86_64__)
bool QueryDirectStore() noexcept {
  constexpr uint32_t kLeaf = 7;
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  return __get_cpuid_count(kLeaf, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (ecx & bit_MOVDIR64B) != 0;
}

void StoreDirect(volatile uint64_t* to, const SlotWords& words) {
  // movdir64b (%rdx), %rax, for assemblers that do not know it.
  asm volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x02"
               :
               : "a"(to), "d"(words.data())
               : "memory");
}
#else
bool QueryDirectStore() noexcept {
  return false;
}
void StoreDirect(volatile uint64_t*, const SlotWords&) {}
#endif

}  // namespace

bool PushPort::CpuHasDirectStore() noexcept {
  return QueryDirectStore();
}

PushPort::PushPort(const PushTarget& target) noexcept
    : window_(target.window), extensions_(target.extensions) {
  if (window_.copy != nullptr) {
    way_ = Way::kModel;
  } else if (window_.address != nullptr && CpuHasDirectStore()) {
    way_ = Way::kDirect;
  } else if (window_.address != nullptr && window_.gathers) {
    way_ = Way::kGathered;
  }
}

void PushPort::Copy(uint16_t position,
                    std::span<const contract::TxDesc> slots) const noexcept {
  for (const contract::TxDesc& slot : slots) {
    CopySlot(position++, slot);
  }
  if (way_ != Way::kModel) {
    PushBarrier();
  }
}

void PushPort::CopySlot(uint16_t position,
                        const contract::TxDesc& slot) const noexcept {
  const uint32_t index = position % contract::kPushWindowSlots;
  if (way_ == Way::kModel) {
    window_.copy(window_.cookie,
                 window_.bar2_offset + index * contract::kDescBytes, &slot);
    return;
  }
  const auto words = std::bit_cast<SlotWords>(slot);
  volatile uint64_t* const to = window_.address + size_t{index} * kSlotWords;
  if (way_ == Way::kDirect) {
    StoreDirect(to, words);
  } else {
    for (uint32_t i = 0; i < kSlotWords; ++i) {
      to[i] = words[i];
    }
  }
}

}  // namespace heddle
