// SPDX-License-Identifier: Apache-2.0
// CRC-32C bit by bit, as its definition reads; what the RTL is compared with.
#pragma once

#include <cstdint>
#include <span>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::test {

// The reflected register behind `bytes`, without the initial and final
// inversion.
inline uint32_t Crc32cState(uint32_t state, std::span<const uint8_t> bytes) {
  for (const uint8_t byte : bytes) {
    for (uint32_t bit = 0; bit < 8; ++bit) {
      const uint32_t out = (state ^ (uint32_t{byte} >> bit)) & 1;
      state = (state >> 1) ^ (out != 0 ? 0x82f63b78u : 0u);
    }
  }
  return state;
}

inline uint32_t Crc32c(std::span<const uint8_t> bytes) {
  return ~Crc32cState(0xffffffffu, bytes);
}

// Byte `i` on the wire of a CRC.
inline uint8_t CrcByte(contract::CrcOrder order, uint32_t crc, uint32_t i) {
  const bool msb_first = order == contract::CrcOrder::kMsbFirst;
  return static_cast<uint8_t>(crc >> 8 * (msb_first ? 3 - i : i));
}

}  // namespace heddle::test
