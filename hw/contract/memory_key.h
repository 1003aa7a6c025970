// SPDX-License-Identifier: Apache-2.0
// 64-bit memory keys: their kinds, and their places in a device's table.
// Freestanding: firmware, models and the host share it.
#pragma once

#include <stdint.h>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::contract {

constexpr bool IsProviderKey(uint64_t key) {
  return (key & kKeyProvider) != 0;
}
constexpr bool IsUserKey(uint64_t key) {
  return key >> kKeyUserBits == 0;
}

// Entry of the region table that a provider key names.
constexpr uint32_t RegionOfKey(uint64_t key) {
  return static_cast<uint32_t>(key & ((uint64_t{1} << kKeyIndexBits) - 1));
}

// Tables up to this size fold user keys by bytes, which yields 256 sets.
inline constexpr uint32_t kByteFoldedRegions = 256 * kRegionWays;

// First of the `kRegionWays` entries that a user key may be in, of a table of
// `regions` entries (a power of two, at least kRegionWays).
constexpr uint32_t RegionSetOfKey(uint64_t key, uint32_t regions) {
  const unsigned fold = regions > kByteFoldedRegions ? 16 : 8;
  uint32_t mixed = 0;
  for (unsigned shift = 0; shift < kKeyUserBits; shift += fold) {
    mixed ^= static_cast<uint32_t>(key >> shift & ((1U << fold) - 1));
  }
  return (mixed & (regions / kRegionWays - 1)) * kRegionWays;
}

// Provider keys: {generation, entry of the region table}, the generation
// hidden.
//
// Guarantees: keys of one entry differ for `kGenerations` generations, and a
// peer without the secret cannot predict the next from the preceding ones.
class KeyMaker {
 public:
  static constexpr uint32_t kGenerations = 1U << 28U;

  explicit constexpr KeyMaker(uint64_t secret) : secret_(secret) {}

  // `region` below 2^kKeyIndexBits, `generation` below kGenerations.
  constexpr uint64_t Make(uint32_t region, uint32_t generation) const {
    // A Feistel network is a permutation whatever its rounds compute:
    // generations of one entry never collide.
    uint32_t left = generation >> kHalfBits & kHalf;
    uint32_t right = generation & kHalf;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint32_t next =
          left ^ Mix(round, uint64_t{region} << kHalfBits | right);
      left = right;
      right = next;
    }
    return kKeyProvider | uint64_t{left << kHalfBits | right} << kKeyIndexBits |
           region;
  }

 private:
  static constexpr unsigned kHalfBits = 14;
  static constexpr uint32_t kHalf = (1U << kHalfBits) - 1;
  static constexpr uint64_t kRounds = 6;

  constexpr uint32_t Mix(uint64_t round, uint64_t value) const {
    uint64_t mixed = secret_ + round * 0x9e3779b97f4a7c15ULL + value;
    mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ mixed >> 27U) * 0x94d049bb133111ebULL;
    mixed ^= secret_;
    mixed = (mixed ^ mixed >> 31U) * 0xff51afd7ed558ccdULL;
    return static_cast<uint32_t>(mixed >> 40U) & kHalf;
  }

  uint64_t secret_;
};

}  // namespace heddle::contract
