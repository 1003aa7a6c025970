// SPDX-License-Identifier: Apache-2.0
// Validation of an admin command's fields.
#pragma once

#include <stdint.h>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// Collects requirements and keeps the first that failed, so that the answer
// names the field. Requirements are stated in the order of the struct.
class FieldCheck {
 public:
  void Require(bool holds, uint32_t byte_offset) {
    Require(holds, byte_offset, contract::AdminStatus::kInvalid);
  }
  void Require(bool holds, uint32_t byte_offset,
               contract::AdminStatus otherwise) {
    if (ok() && !holds) {
      status_ = otherwise;
      byte_offset_ = byte_offset;
    }
  }
  // Reserved space is zero, so that a later minor version can use it.
  template <uint32_t kCount>
  void RequireZero(const uint64_t (&words)[kCount], uint32_t byte_offset) {
    for (uint32_t i = 0; i < kCount; ++i) {
      Require(words[i] == 0, byte_offset + 8 * i);
    }
  }

  bool ok() const { return status_ == contract::AdminStatus::kOk; }
  contract::AdminStatus status() const { return status_; }
  uint32_t byte_offset() const { return byte_offset_; }

 private:
  contract::AdminStatus status_ = contract::AdminStatus::kOk;
  uint32_t byte_offset_ = 0;
};

// True when `address` is a multiple of `alignment_bytes` (a power of two) and
// the `bytes` from there do not wrap.
constexpr bool IsHostRange(uint64_t address, uint64_t bytes,
                           uint64_t alignment_bytes) {
  return (address & (alignment_bytes - 1)) == 0 &&
         (bytes == 0 || address + (bytes - 1) >= address);
}

}  // namespace heddle::firmware
