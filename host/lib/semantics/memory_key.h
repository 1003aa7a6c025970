// SPDX-License-Identifier: Apache-2.0
// 64-bit memory keys (UET 5.2).
#pragma once

#include <cstdint>

namespace heddle::semantics {

inline constexpr uint64_t kKeyIdempotentSafe = uint64_t{1} << 63U;
inline constexpr uint64_t kKeyProvider = uint64_t{1} << 48U;
inline constexpr unsigned kKeyUserBits = 48;  // The rest of a user key is 0.

// Provider keys: {generation, slot of the region}, the generation hidden.
//
// Guarantees: keys of one slot differ for 2^28 generations, and who does not
// know the secret cannot tell the next from those before.
class KeyMaker {
 public:
  static constexpr unsigned kSlotBits = 20;
  static constexpr uint32_t kGenerations = 1U << 28U;

  explicit KeyMaker(uint64_t secret) : secret_(secret) {}

  // `slot` below 2^kSlotBits, `generation` below kGenerations.
  uint64_t Make(uint32_t slot, uint32_t generation) const noexcept;
  static uint32_t Slot(uint64_t key) noexcept {
    return static_cast<uint32_t>(key & ((uint64_t{1} << kSlotBits) - 1));
  }

 private:
  uint64_t secret_;
};

}  // namespace heddle::semantics
