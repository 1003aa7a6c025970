// SPDX-License-Identifier: Apache-2.0
// The ones' complement sum of IP and UDP (RFC 1071).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace heddle::sim::soft {

// `ChecksumPart` of whole blocks.
inline constexpr size_t kChecksumBlock = 64;
using ChecksumFunction = uint64_t (*)(const uint8_t* bytes, size_t count);

// By the CPU's vector instructions; null where none are used.
ChecksumFunction ChecksumOfCpu();

// By words, on any CPU.
inline uint64_t ChecksumOfWords(std::span<const uint8_t> bytes) {
  static_assert(std::endian::native == std::endian::little);
  constexpr size_t kHalf = sizeof(uint32_t);
  constexpr uint64_t kLow = 0xffffffff;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  std::array<uint64_t, 2> words{};
  // Chains apart, so that no add waits for another.
  std::array<uint64_t, 2> low{};
  std::array<uint64_t, 2> high{};
  for (; left >= sizeof(words); at += sizeof(words), left -= sizeof(words)) {
    std::memcpy(words.data(), at, sizeof(words));
    low[0] += words[0] & kLow;
    high[0] += words[0] >> 32;
    low[1] += words[1] & kLow;
    high[1] += words[1] >> 32;
  }
  uint64_t sum = low[0] + low[1] + high[0] + high[1];
  for (; left >= kHalf; at += kHalf, left -= kHalf) {
    uint32_t half = 0;
    std::memcpy(&half, at, kHalf);
    sum += half;
  }
  uint32_t rest = 0;
  std::memcpy(&rest, at, left);
  return sum + rest;
}

// By vectors where the CPU has them.
uint64_t ChecksumOfMany(std::span<const uint8_t> bytes);

// Sum of big-endian 16-bit words, not folded, in the host's byte order: parts
// add up if all but the last have an even length. For up to 2^31 bytes.
inline uint64_t ChecksumPart(std::span<const uint8_t> bytes) {
  constexpr size_t kMany = 256;
  return bytes.size() < kMany ? ChecksumOfWords(bytes) : ChecksumOfMany(bytes);
}

// The folded sum, as the 16-bit number that it is on the wire.
inline uint16_t ChecksumFold(uint64_t sum) {
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>((sum & 0xff) << 8 | sum >> 8);
}

// What a number of 16 bits adds to a `ChecksumPart`.
constexpr uint64_t ChecksumWord(uint16_t value) {
  return static_cast<uint64_t>(value & 0xff) << 8 | value >> 8;
}

}  // namespace heddle::sim::soft
