// SPDX-License-Identifier: Apache-2.0
// Counters of completed and failed operations.
#pragma once

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::semantics {

// One counter: successes and errors, 64 bits each, modulo 2^64.
//
// Thread safety: one thread at a time.
class Counter {
 public:
  void Count(contract::Status status) noexcept {
    ++(status == contract::Status::kOk ? value_ : errors_);
  }
  void Add(uint64_t amount) noexcept { value_ += amount; }
  void AddErrors(uint64_t amount) noexcept { errors_ += amount; }
  void Set(uint64_t value) noexcept { value_ = value; }
  void SetErrors(uint64_t value) noexcept { errors_ = value; }

  uint64_t value() const noexcept { return value_; }
  uint64_t errors() const noexcept { return errors_; }

 private:
  uint64_t value_ = 0;
  uint64_t errors_ = 0;
};

// Kinds of an initiator's operations that a counter may be bound to.
enum class Counted : uint8_t {
  kSend,   // FI_SEND.
  kRead,   // FI_READ: reads and fetching atomics.
  kWrite,  // FI_WRITE: writes and other atomics.
  kNothing,
};

// What an operation counts as where it began (libfabric 175, 177, 178).
constexpr Counted CountedAtInitiator(contract::Opcode opcode) noexcept {
  switch (opcode) {
    case contract::Opcode::kSend:
    case contract::Opcode::kTaggedSend:
      return Counted::kSend;
    case contract::Opcode::kRead:
    case contract::Opcode::kFetchingAtomic:
      return Counted::kRead;
    case contract::Opcode::kWrite:
    case contract::Opcode::kAtomic:
      return Counted::kWrite;
    case contract::Opcode::kNop:
      break;
  }
  return Counted::kNothing;
}

}  // namespace heddle::semantics
