// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/content.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace heddle::differential {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

// SplitMix64's finaliser: every bit of the input moves every bit of the output.
uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// Of an operation; word `index` of its content follows.
uint64_t Base(uint64_t seed, uint32_t number) {
  return Mix(seed + 1) + (uint64_t{number} << 32U);
}

}  // namespace

std::vector<uint8_t> Content(uint64_t seed, uint32_t number, size_t bytes) {
  std::vector<uint8_t> content(bytes);
  CopyContent(seed, number, 0, content);
  return content;
}

void CopyContent(uint64_t seed, uint32_t number, size_t at,
                 std::span<uint8_t> bytes) {
  const uint64_t base = Base(seed, number);
  while (!bytes.empty()) {
    const uint64_t word = Mix(base + at / kWordBytes);
    if (at % kWordBytes == 0 && bytes.size() >= kWordBytes &&
        std::endian::native == std::endian::little) {
      std::memcpy(bytes.data(), &word, sizeof(word));
      at += kWordBytes;
      bytes = bytes.subspan(kWordBytes);
      continue;
    }
    const size_t skipped = at % kWordBytes;
    const size_t part = std::min(kWordBytes - skipped, bytes.size());
    for (size_t i = 0; i < part; ++i) {
      bytes[i] = static_cast<uint8_t>(word >> ((skipped + i) * 8));
    }
    at += part;
    bytes = bytes.subspan(part);
  }
}

bool IsUntouched(std::span<const uint8_t> bytes) {
  return bytes.empty() ||
         (bytes.front() == kUntouched &&
          std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

uint64_t ContentData(uint64_t seed, uint32_t number) {
  return Mix(Base(seed, number) + UINT32_MAX);
}

uint64_t Digest(std::span<const uint8_t> bytes) {
  uint64_t digest = bytes.size();
  const auto add = [&digest](uint64_t word) {
    digest = (digest ^ word) * 0x9fb21c651e98df25U;
    digest ^= digest >> 32U;
  };
  for (; bytes.size() >= kWordBytes; bytes = bytes.subspan(kWordBytes)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    add(word);
  }
  for (const uint8_t byte : bytes) {
    add(byte);
  }
  return digest;
}

}  // namespace heddle::differential
