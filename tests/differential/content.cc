// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/content.h"

#include <algorithm>
#include <array>
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

bool IsContent(uint64_t seed, uint32_t number, size_t at,
               std::span<const uint8_t> bytes) {
  std::array<uint8_t, 256> content = {};
  while (!bytes.empty()) {
    const size_t part = std::min(content.size(), bytes.size());
    CopyContent(seed, number, at, std::span(content).first(part));
    if (std::memcmp(content.data(), bytes.data(), part) != 0) {
      return false;
    }
    at += part;
    bytes = bytes.subspan(part);
  }
  return true;
}

bool IsUntouched(std::span<const uint8_t> bytes) {
  return bytes.empty() ||
         (bytes.front() == kUntouched &&
          std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

uint64_t ContentData(uint64_t seed, uint32_t number) {
  return Mix(Base(seed, number) + UINT32_MAX);
}

// Lanes, because a step has to wait for the one before it.
uint64_t Digest(std::span<const uint8_t> bytes) {
  std::array<uint64_t, 4> lanes = {bytes.size(), 1, 2, 3};
  const auto add = [](uint64_t* lane, uint64_t word) {
    *lane = (*lane ^ word) * 0x9fb21c651e98df25U;
    *lane ^= *lane >> 32U;
  };
  constexpr size_t kStep = sizeof(lanes);
  for (; bytes.size() >= kStep; bytes = bytes.subspan(kStep)) {
    std::array<uint64_t, lanes.size()> words = {};
    std::memcpy(words.data(), bytes.data(), kStep);
    for (size_t i = 0; i < lanes.size(); ++i) {
      add(&lanes[i], words[i]);
    }
  }
  uint64_t digest = lanes[0];
  for (size_t i = 1; i < lanes.size(); ++i) {
    add(&digest, lanes[i]);
  }
  for (const uint8_t byte : bytes) {
    add(&digest, byte);
  }
  return digest;
}

}  // namespace heddle::differential
