// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/initiator_message.h"

namespace heddle::semantics {

using contract::ReturnCode;
using contract::Status;

bool InitiatorMessage::Acknowledged(uint32_t packets) noexcept {
  if (packets > spec_.packets - acknowledged_) {
    return false;
  }
  acknowledged_ += packets;
  return true;
}

void InitiatorMessage::Answered(ReturnCode code) noexcept {
  answered_ = true;
  if (!IsSuccess(code)) {
    Fail(StatusOf(code), static_cast<uint16_t>(code));
  }
}

InitiatorMessage::Data InitiatorMessage::Returned(uint32_t offset,
                                                  uint32_t length) noexcept {
  const uint64_t end = uint64_t{offset} + length;
  if (!read() || end > spec_.length) {
    return Data::kMalformed;
  }
  if (status_ != Status::kOk) {
    return Data::kDiscard;
  }
  switch (returned_.Add(offset, end)) {
    case decltype(returned_)::Added::kNew:
      return Data::kPlace;
    case decltype(returned_)::Added::kDuplicate:
      return Data::kDiscard;
    case decltype(returned_)::Added::kOverlap:
      return Data::kMalformed;
    case decltype(returned_)::Added::kFull:
      break;
  }
  return Data::kFull;
}

void InitiatorMessage::Fail(Status status, uint16_t detail) noexcept {
  if (status_ == Status::kOk) {
    status_ = status;
    detail_ = detail;
  }
}

void InitiatorMessage::Restart() noexcept {
  returned_ = {};
  acknowledged_ = 0;
  answered_ = false;
}

void InitiatorMessage::Abandon(Status status, uint16_t detail) noexcept {
  if (!retired()) {
    Fail(status, detail);
    abandoned_ = true;
  }
}

bool InitiatorMessage::retired() const noexcept {
  if (abandoned_) {
    return true;
  }
  if (acknowledged_ != spec_.packets) {
    return false;
  }
  if (status_ != Status::kOk) {
    return true;
  }
  return answered_ && (!read() || returned_.Covers(spec_.length));
}

Outcome InitiatorMessage::outcome() const noexcept {
  const uint32_t moved =
      read() ? static_cast<uint32_t>(returned_.bytes()) : spec_.length;
  return {status_, detail_, status_ == Status::kOk ? moved : 0, spec_.length};
}

}  // namespace heddle::semantics
