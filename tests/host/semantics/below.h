// SPDX-License-Identifier: Apache-2.0
// Random numbers of a given range.
#pragma once

#include <cstdint>
#include <random>

namespace heddle::semantics {

// 0 to bound - 1.
inline uint32_t Below(std::mt19937& random, uint32_t bound) {
  return static_cast<uint32_t>(random() % bound);
}

}  // namespace heddle::semantics
