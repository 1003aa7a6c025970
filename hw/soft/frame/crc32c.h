// SPDX-License-Identifier: Apache-2.0
// CRC-32C as UET uses it (docs/adr/0017-end-to-end-crc.md), at the speed of the
// CPU's own instructions where it has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::soft::frame {

// The reflected register behind `bytes`, without initial and final inversion:
// parts of a message may be fed one after another. Any thread.
uint32_t Crc32cState(uint32_t state, std::span<const uint8_t> bytes);

// The CRC of `bytes`. Any thread.
inline uint32_t Crc32c(std::span<const uint8_t> bytes) {
  return ~Crc32cState(~uint32_t{0}, bytes);
}

// A CRC as four bytes of a frame, and back. Precondition: `order` is not kNone.
inline void StoreCrc(contract::CrcOrder order, uint32_t crc, uint8_t* bytes) {
  if (order == contract::CrcOrder::kMsbFirst) {
    crc = __builtin_bswap32(crc);
  }
  std::memcpy(bytes, &crc, sizeof(crc));
}
inline uint32_t LoadCrc(contract::CrcOrder order, const uint8_t* bytes) {
  uint32_t crc = 0;
  std::memcpy(&crc, bytes, sizeof(crc));
  return order == contract::CrcOrder::kMsbFirst ? __builtin_bswap32(crc) : crc;
}

// One way of computing `Crc32cState`.
using Crc32cFunction = uint32_t (*)(uint32_t state, const uint8_t* bytes,
                                    size_t count);

// By table, on any CPU.
uint32_t Crc32cByTable(uint32_t state, const uint8_t* bytes, size_t count);

// By the CPU's instructions; null where it has none.
Crc32cFunction Crc32cOfCpu();

}  // namespace heddle::soft::frame
