// SPDX-License-Identifier: Apache-2.0
// Numbers that a contract struct holds as a low and a high byte.
// Freestanding: firmware, models and the host share it.
#pragma once

#include <stdint.h>

namespace heddle::contract {

constexpr uint16_t JoinBytes(uint8_t low, uint8_t high) {
  return static_cast<uint16_t>(low | high << 8U);
}
constexpr uint8_t LowByte(uint32_t number) {
  return static_cast<uint8_t>(number);
}
constexpr uint8_t HighByte(uint32_t number) {
  return static_cast<uint8_t>(number >> 8U);
}

}  // namespace heddle::contract
