// SPDX-License-Identifier: Apache-2.0
// What the engine needs of host memory; `DmaMemory` implements it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::soft::engine {

// Every access is checked against the mapped ranges, whole, before a byte
// moves: false and nothing touched when any byte is outside.
//
// Thread safety: the implementation's.
class DmaPort {
 public:
  [[nodiscard]] virtual bool Read(uint64_t iova, std::span<uint8_t> out) = 0;
  [[nodiscard]] virtual bool Write(uint64_t iova,
                                   std::span<const uint8_t> bytes) = 0;
  // One store with release order, 8-byte aligned: whoever sees it sees all
  // writes before.
  [[nodiscard]] virtual bool Store(uint64_t iova, uint64_t value) = 0;
  // A queue entry, 64-byte aligned: its last 8 bytes by one such store, last.
  [[nodiscard]] virtual bool Publish(uint64_t iova,
                                     std::span<const uint8_t, 64> entry) = 0;

 protected:
  ~DmaPort() = default;
};

}  // namespace heddle::soft::engine
