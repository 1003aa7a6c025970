// SPDX-License-Identifier: Apache-2.0
// The Toeplitz hash as heddle_toeplitz computes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::test {

// The lowest `bits` (at most 32) of the hash of `data`, whose bit i is bit i %
// 64 of word i / 64, as are those of `key`; beyond its end the key is 0.
inline uint32_t Toeplitz(std::span<const uint64_t> key,
                         std::span<const uint64_t> data, size_t bits) {
  const auto window = [&](size_t low) {
    const size_t word = low / 64;
    uint64_t value = key[word] >> low % 64;
    if (low % 64 != 0 && word + 1 < key.size()) {
      value |= key[word + 1] << (64 - low % 64);
    }
    return value;
  };
  uint64_t hash = 0;
  for (size_t i = 0; i < 64 * data.size(); ++i) {
    if ((data[i / 64] >> i % 64 & 1) != 0) {
      hash ^= window(i);
    }
  }
  return static_cast<uint32_t>(hash & ((uint64_t{1} << bits) - 1));
}

}  // namespace heddle::test
