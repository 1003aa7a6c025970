// SPDX-License-Identifier: Apache-2.0
// CRC-32C as UET uses it (docs/adr/0005-end-to-end-crc.md), at the speed of the
// CPU's own instructions where it has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::sim::soft {

// The reflected register behind `bytes`, without initial and final inversion:
// parts of a message may be fed one after another. Any thread.
uint32_t Crc32cState(uint32_t state, std::span<const uint8_t> bytes);

// The CRC of `bytes`. Any thread.
inline uint32_t Crc32c(std::span<const uint8_t> bytes) {
  return ~Crc32cState(~uint32_t{0}, bytes);
}

// One way of computing `Crc32cState`.
using Crc32cFunction = uint32_t (*)(uint32_t state, const uint8_t* bytes,
                                    size_t count);

// By table, on any CPU.
uint32_t Crc32cByTable(uint32_t state, const uint8_t* bytes, size_t count);

// By the CPU's instructions; null where it has none.
Crc32cFunction Crc32cOfCpu();

}  // namespace heddle::sim::soft
