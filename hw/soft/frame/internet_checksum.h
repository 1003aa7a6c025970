// SPDX-License-Identifier: Apache-2.0
// The ones' complement sum of IP and UDP (RFC 1071).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace heddle::soft::frame {

// Sum of big-endian 16-bit words, not folded, in the host's byte order: parts
// add up if all but the last have an even length. For up to 2^31 bytes.
inline uint64_t ChecksumPart(std::span<const uint8_t> bytes) {
  static_assert(std::endian::native == std::endian::little);
  constexpr size_t kWord = sizeof(uint64_t);
  constexpr uint64_t kLow = 0xffffffff;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  uint64_t sum = 0;
  // A carry out of the top is worth one at the bottom.
  for (; left >= kWord; at += kWord, left -= kWord) {
    uint64_t word = 0;
    std::memcpy(&word, at, kWord);
    sum += word;
    sum += sum < word ? 1 : 0;
  }
  uint64_t rest = 0;
  std::memcpy(&rest, at, left);
  return (sum >> 32) + (sum & kLow) + (rest >> 32) + (rest & kLow);
}

// The folded sum, as the 16-bit number that it is on the wire.
inline uint16_t ChecksumFold(uint64_t sum) {
  constexpr uint64_t kLow = 0xffffffff;
  constexpr uint64_t kWord = 0xffff;
  sum = (sum & kLow) + (sum >> 32);
  sum = (sum & kLow) + (sum >> 32);
  sum = (sum & kWord) + (sum >> 16);
  sum = (sum & kWord) + (sum >> 16);
  return static_cast<uint16_t>((sum & 0xff) << 8 | sum >> 8);
}

// What a number of 16 bits adds to a `ChecksumPart`.
constexpr uint64_t ChecksumWord(uint16_t value) {
  return static_cast<uint64_t>(value & 0xff) << 8 | value >> 8;
}

}  // namespace heddle::soft::frame
