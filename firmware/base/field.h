// SPDX-License-Identifier: Apache-2.0
// Fields of registers and reinterpretation of contract structs.
#pragma once

#include <stdint.h>

namespace heddle::firmware {

constexpr uint32_t GetField(uint32_t value, uint32_t mask, uint32_t lsb) {
  return (value & mask) >> lsb;
}

// The same bytes as another contract struct of the same size.
template <typename To, typename From>
constexpr To Reinterpret(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace heddle::firmware
