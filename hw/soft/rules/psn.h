// SPDX-License-Identifier: Apache-2.0
// Arithmetic of packet sequence numbers and of sets of up to 64 of them.
#pragma once

#include <bit>
#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::soft::rules {

// PSNs that one direction of a PDC has in flight at most; a set of them is a
// word, bit i for the PSN i above its base.
inline constexpr uint32_t kWindow = contract::kPdcWindow;
static_assert(kWindow == 64);
// A peer's MP_Range (UET 2.14) has no say: it allows 128 PSNs or more.
// PSNs that an ordered receiver NACKs with the one expected.
inline constexpr uint32_t kRodWindow =
    contract::kOrderedRange * contract::kRangeUnit;

inline constexpr uint64_t kNever = UINT64_MAX;

// True if `a` comes before `b`, modulo 2^32 (UET 0.1).
constexpr bool Before(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a - b) < 0;
}

// The `count` lowest bits; all for 64 and more.
constexpr uint64_t LowBits(uint32_t count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

constexpr uint64_t Bit(uint32_t index) {
  return uint64_t{1} << index;
}

// The set after its base moved up by `count`.
constexpr uint64_t MovedUp(uint64_t set, uint32_t count) {
  return count >= 64 ? 0 : set >> count;
}

// `set` with base `from`, as a set with base `to`; what leaves the word is
// lost.
constexpr uint64_t Rebased(uint64_t set, uint32_t from, uint32_t to) {
  const uint32_t up = to - from;
  if (up < 64) {
    return set >> up;
  }
  const uint32_t down = from - to;
  return down < 64 ? set << down : 0;
}

}  // namespace heddle::soft::rules
