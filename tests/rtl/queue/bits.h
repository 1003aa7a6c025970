// SPDX-License-Identifier: Apache-2.0
// Reads and writes ports that are packed structs.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/rtl/widths.h"

namespace heddle::test {

// Copy of a port of any width as little-endian 32-bit words.
template <typename Port>
std::vector<uint32_t> Words(const Port& port) {
  static_assert(std::is_trivially_copyable_v<Port>);
  std::vector<uint32_t> words((sizeof(Port) + 3) / 4);
  std::memcpy(words.data(), &port, sizeof(Port));
  return words;
}

// Takes the fields of a packed struct in the order of its declaration, that
// is from the most significant bit down.
class BitReader {
 public:
  template <typename Port>
  BitReader(const Port& port, uint32_t bits)
      : words_(Words(port)), position_(bits) {}

  uint64_t Take(uint32_t bits) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bits; ++i) {
      --position_;
      value = value << 1 | (words_[position_ / 32] >> position_ % 32 & 1);
    }
    return value;
  }
  void Skip(uint32_t bits) { position_ -= bits; }
  // All fields were taken: the layout in the test is the design's.
  void ExpectEnd() const { EXPECT_EQ(position_, 0u); }

 private:
  std::vector<uint32_t> words_;
  uint32_t position_;
};

// Gives the fields of a packed struct in the order of its declaration.
class BitWriter {
 public:
  explicit BitWriter(uint32_t bits)
      : words_((bits + 31) / 32), position_(bits) {}

  BitWriter& Put(uint64_t value, uint32_t bits) {
    for (uint32_t i = bits; i-- > 0;) {
      --position_;
      const uint32_t bit = i < 64 ? uint32_t(value >> i & 1) : 0;
      words_[position_ / 32] |= bit << position_ % 32;
    }
    return *this;
  }
  template <typename Port>
  void To(Port* port) const {
    ASSERT_EQ(position_, 0u);
    ASSERT_LE(words_.size() * 4, (sizeof(Port) + 3) / 4 * 4);
    std::memset(port, 0, sizeof(Port));
    std::memcpy(port, words_.data(), std::min(sizeof(Port), words_.size() * 4));
  }

 private:
  std::vector<uint32_t> words_;
  uint32_t position_;
};

// Bits `low` and up of a port.
template <typename Port>
uint64_t Field(const Port& port, uint32_t low, uint32_t bits) {
  BitReader reader(port, low + bits);
  return reader.Take(bits);
}

}  // namespace heddle::test
