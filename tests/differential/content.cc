// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/content.h"

namespace heddle::differential {
namespace {

// SplitMix64's finaliser: every bit of the input moves every bit of the output.
uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

uint64_t Word(uint64_t seed, uint32_t number, uint64_t index) {
  return Mix(Mix(seed + 1) + (uint64_t{number} << 32U) + index);
}

}  // namespace

uint8_t ContentByte(uint64_t seed, uint32_t number, size_t at) {
  return static_cast<uint8_t>(Word(seed, number, at / 8) >> (at % 8 * 8));
}

std::vector<uint8_t> Content(uint64_t seed, uint32_t number, size_t bytes) {
  std::vector<uint8_t> content(bytes);
  uint64_t word = 0;
  for (size_t at = 0; at < bytes; ++at) {
    word = at % 8 == 0 ? Word(seed, number, at / 8) : word;
    content[at] = static_cast<uint8_t>(word >> (at % 8 * 8));
  }
  return content;
}

uint64_t ContentData(uint64_t seed, uint32_t number) {
  return Word(seed, number, UINT32_MAX);
}

uint64_t Digest(std::span<const uint8_t> bytes) {
  uint64_t digest = 0xcbf29ce484222325U;  // FNV-1a, 64 bits.
  for (const uint8_t byte : bytes) {
    digest = (digest ^ byte) * 0x100000001b3U;
  }
  return digest;
}

}  // namespace heddle::differential
