// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/status.h"

namespace heddle::nic {

fi_heddle_errno ToProvErrno(contract::Status status) noexcept {
  switch (status) {
    case contract::Status::kOk:
      return FI_HEDDLE_OK;
    case contract::Status::kTruncated:
      return FI_HEDDLE_TRUNCATED;
    case contract::Status::kCancelled:
      return FI_HEDDLE_CANCELLED;
    case contract::Status::kFlushed:
      return FI_HEDDLE_FLUSHED;
    case contract::Status::kBadOpcode:
      return FI_HEDDLE_BAD_OPCODE;
    case contract::Status::kBadLength:
      return FI_HEDDLE_BAD_LENGTH;
    case contract::Status::kBadPeer:
      return FI_HEDDLE_BAD_PEER;
    case contract::Status::kBadPosition:
      return FI_HEDDLE_BAD_POSITION;
    case contract::Status::kLocalAccess:
      return FI_HEDDLE_LOCAL_ACCESS;
    case contract::Status::kPeerUnreachable:
      return FI_HEDDLE_PEER_UNREACHABLE;
    case contract::Status::kPeerRejected:
      return FI_HEDDLE_PEER_REJECTED;
    case contract::Status::kRemoteError:
      return FI_HEDDLE_REMOTE_ERROR;
    case contract::Status::kInitiatorError:
      return FI_HEDDLE_INITIATOR_ERROR;
    case contract::Status::kDeviceFault:
      return FI_HEDDLE_DEVICE_FAULT;
    case contract::Status::kNoMessage:
      return FI_HEDDLE_NO_MESSAGE;
  }
  return FI_HEDDLE_UNKNOWN;
}

fi_heddle_errno ToProvErrno(contract::Status status, uint16_t detail) noexcept {
  if (status != contract::Status::kRemoteError) {
    return ToProvErrno(status);
  }
  switch (static_cast<contract::ReturnCode>(detail)) {
    case contract::ReturnCode::kBadMkey:
      return FI_HEDDLE_BAD_KEY;
    case contract::ReturnCode::kPermViolation:
    case contract::ReturnCode::kOpViolation:
      return FI_HEDDLE_NO_RIGHT;
    case contract::ReturnCode::kUnsupportedSize:
    case contract::ReturnCode::kBadAddr:
      return FI_HEDDLE_OUT_OF_RANGE;
    case contract::ReturnCode::kUnsupportedOp:
      return FI_HEDDLE_PEER_UNSUPPORTED;
    default:
      return FI_HEDDLE_REMOTE_ERROR;
  }
}

}  // namespace heddle::nic
