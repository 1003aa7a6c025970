// SPDX-License-Identifier: Apache-2.0
// Access to the pins of a Verilated model by bit and by byte, whatever type
// Verilator chose for a port of that width.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace heddle::test {

// Bytes of a port; byte 0 holds bits 7:0.
template <typename Port>
uint8_t* PinBytes(Port& port) {
  return reinterpret_cast<uint8_t*>(&port);
}

template <typename Port>
const uint8_t* PinBytes(const Port& port) {
  return reinterpret_cast<const uint8_t*>(&port);
}

// `width` bits, at most 64, of a port from bit `low` on.
template <typename Port>
uint64_t GetBits(const Port& port, size_t low, size_t width) {
  const uint8_t* bytes = PinBytes(port);
  uint64_t value = 0;
  for (size_t i = 0; i < width;) {
    const size_t bit = (low + i) % 8;
    const size_t count = std::min(width - i, 8 - bit);
    const unsigned mask = (1u << count) - 1;
    value |= uint64_t{bytes[(low + i) / 8] >> bit & mask} << i;
    i += count;
  }
  return value;
}

template <typename Port>
void PutBits(Port& port, size_t low, size_t width, uint64_t value) {
  uint8_t* bytes = PinBytes(port);
  for (size_t i = 0; i < width;) {
    const size_t bit = (low + i) % 8;
    const size_t count = std::min(width - i, 8 - bit);
    const unsigned mask = ((1u << count) - 1) << bit;
    uint8_t& byte = bytes[(low + i) / 8];
    byte = static_cast<uint8_t>((byte & ~mask) | (value >> i << bit & mask));
    i += count;
  }
}

}  // namespace heddle::test
