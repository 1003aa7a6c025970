// SPDX-License-Identifier: Apache-2.0
// CRC-32C registers moved over zero bytes, for parts computed side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::soft::frame {

inline constexpr uint32_t kCrc32cPolynomial = 0x82f63b78;  // Reflected.

// The register behind one more byte, by definition.
constexpr uint32_t Crc32cByte(uint32_t state, uint8_t byte) {
  state ^= byte;
  for (int bit = 0; bit < 8; ++bit) {
    state = state >> 1 ^ ((state & 1) != 0 ? kCrc32cPolynomial : 0);
  }
  return state;
}

// Moves a register over a fixed number of zero bytes, which is linear: a table
// for each of its four bytes.
class Crc32cShift {
 public:
  explicit constexpr Crc32cShift(size_t zero_bytes) {
    Matrix power{};
    Matrix total{};
    for (uint32_t bit = 0; bit < kBits; ++bit) {
      power[bit] = Crc32cByte(uint32_t{1} << bit, 0);
      total[bit] = uint32_t{1} << bit;
    }
    // By squaring: a loop over the bytes is too long for a compiler.
    for (; zero_bytes != 0; zero_bytes >>= 1) {
      if ((zero_bytes & 1) != 0) {
        total = Times(power, total);
      }
      power = Times(power, power);
    }
    for (uint32_t byte = 0; byte < 4; ++byte) {
      for (uint32_t value = 0; value < kValues; ++value) {
        table_[byte][value] = Apply(total, value << 8 * byte);
      }
    }
  }

  constexpr uint32_t operator()(uint32_t state) const {
    return table_[0][state & 0xff] ^ table_[1][state >> 8 & 0xff] ^
           table_[2][state >> 16 & 0xff] ^ table_[3][state >> 24];
  }

 private:
  static constexpr uint32_t kBits = 32;
  static constexpr uint32_t kValues = 256;
  using Matrix = std::array<uint32_t, kBits>;  // Image of each bit.

  static constexpr uint32_t Apply(const Matrix& matrix, uint32_t state) {
    uint32_t result = 0;
    for (size_t bit = 0; state != 0; ++bit, state >>= 1) {
      result ^= (state & 1) != 0 ? matrix[bit] : 0;
    }
    return result;
  }
  // First `second`, then `first`.
  static constexpr Matrix Times(const Matrix& first, const Matrix& second) {
    Matrix product{};
    for (size_t bit = 0; bit < kBits; ++bit) {
      product[bit] = Apply(first, second[bit]);
    }
    return product;
  }

  std::array<std::array<uint32_t, kValues>, 4> table_{};
};

}  // namespace heddle::soft::frame
