// SPDX-License-Identifier: Apache-2.0
// The two checks of a UET datagram, over pieces that are given in order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace heddle::tool {

using Bytes = std::span<const uint8_t>;

// RFC 1071. A piece of odd length may only be the last.
class InternetChecksum {
 public:
  void Add(Bytes bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      sum_ += i % 2 == 0 ? uint64_t{bytes[i]} << 8 : bytes[i];
    }
  }

  void AddWord(uint16_t value) { sum_ += value; }

  // 0 over data that includes its checksum, else the checksum of the data.
  uint16_t Value() const {
    uint64_t sum = sum_;
    while (sum > 0xffff) {
      sum = (sum & 0xffff) + (sum >> 16);
    }
    return static_cast<uint16_t>(~sum & 0xffff);
  }

 private:
  uint64_t sum_ = 0;
};

// CRC-32C: reflected, start value and final XOR all ones.
class Crc32c {
 public:
  void Add(Bytes bytes) {
    for (const uint8_t byte : bytes) {
      crc_ = crc_ >> 8 ^ kTable[(crc_ ^ byte) & 0xff];
    }
  }

  uint32_t Value() const { return ~crc_; }

 private:
  static constexpr std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) {
        value = (value & 1) != 0 ? value >> 1 ^ 0x82f63b78U : value >> 1;
      }
      table[i] = value;
    }
    return table;
  }();

  uint32_t crc_ = 0xffffffff;
};

}  // namespace heddle::tool
