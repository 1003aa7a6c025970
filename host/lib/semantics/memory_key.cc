// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/memory_key.h"

namespace heddle::semantics {

uint64_t KeyMaker::Make(uint32_t slot, uint32_t generation) const noexcept {
  // A Feistel network is a permutation whatever its rounds compute: generations
  // of one slot never meet.
  constexpr uint32_t kHalf = (1U << 14U) - 1;
  uint32_t left = generation >> 14U & kHalf;
  uint32_t right = generation & kHalf;
  for (uint64_t round = 0; round < 6; ++round) {
    uint64_t mixed = secret_ + round * 0x9e3779b97f4a7c15ULL +
                     (uint64_t{slot} << 14U | right);
    mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ mixed >> 27U) * 0x94d049bb133111ebULL;
    mixed ^= secret_;
    mixed = (mixed ^ mixed >> 31U) * 0xff51afd7ed558ccdULL;
    const uint32_t next = left ^ (static_cast<uint32_t>(mixed >> 40U) & kHalf);
    left = right;
    right = next;
  }
  return kKeyProvider | uint64_t{left << 14U | right} << kSlotBits | slot;
}

}  // namespace heddle::semantics
