// SPDX-License-Identifier: Apache-2.0
// How an operation ended, and what the wire calls it.
#pragma once

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::semantics {

// What a completion says of an operation, but for its names.
struct Outcome {
  contract::Status status = contract::Status::kOk;
  uint16_t detail = 0;  // NACK or return code behind an error, below 256.
  uint32_t length = 0;  // Bytes placed (target) or sent (initiator).
  uint32_t message_length = 0;  // Bytes of the whole message.

  bool operator==(const Outcome&) const = default;
};

// Success in a SES response: OK, or nothing said (UET 4.10).
inline bool IsSuccess(contract::ReturnCode code) noexcept {
  return code == contract::ReturnCode::kOk ||
         code == contract::ReturnCode::kNull;
}

// Status at the initiator of an operation answered with this code, the code
// being its `detail`.
contract::Status StatusOf(contract::ReturnCode code) noexcept;

// Return code that tells the initiator of this end of its message. Truncation
// is no error of the sender's (libfabric 116).
contract::ReturnCode ReturnCodeOf(contract::Status status) noexcept;

}  // namespace heddle::semantics
