// SPDX-License-Identifier: Apache-2.0
#include "host/lib/base/status.h"

#include <rdma/fi_errno.h>

namespace heddle::base {

int ToFiErrno(contract::Status status) noexcept {
  switch (status) {
    case contract::Status::kOk:
      return FI_SUCCESS;
    case contract::Status::kTruncated:
      return FI_ETRUNC;
    case contract::Status::kCancelled:
    case contract::Status::kFlushed:
      return FI_ECANCELED;
    case contract::Status::kBadOpcode:
      return FI_EOPNOTSUPP;
    case contract::Status::kBadLength:
      return FI_EINVAL;
    case contract::Status::kBadPeer:
      return FI_EADDRNOTAVAIL;
    case contract::Status::kLocalAccess:
      return FI_EFAULT;
    case contract::Status::kPeerUnreachable:
      return FI_EHOSTUNREACH;
    case contract::Status::kPeerRejected:
      return FI_ECONNRESET;
    case contract::Status::kRemoteError:
    case contract::Status::kInitiatorError:
      return FI_EREMOTEIO;
    case contract::Status::kBadPosition:
    case contract::Status::kDeviceFault:
      return FI_EIO;
  }
  return FI_EOTHER;
}

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
  }
  return FI_HEDDLE_UNKNOWN;
}

int ToFiErrno(contract::Status status, uint16_t detail) noexcept {
  switch (ToProvErrno(status, detail)) {
    case FI_HEDDLE_BAD_KEY:
      return FI_EKEYREJECTED;
    case FI_HEDDLE_NO_RIGHT:
    case FI_HEDDLE_OUT_OF_RANGE:
      return FI_EACCES;
    default:
      return ToFiErrno(status);
  }
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
    default:
      return FI_HEDDLE_REMOTE_ERROR;
  }
}

const char* ProvErrnoText(int prov_errno) noexcept {
  switch (static_cast<fi_heddle_errno>(prov_errno)) {
    case FI_HEDDLE_OK:
      return "done";
    case FI_HEDDLE_TRUNCATED:
      return "the message is longer than the receive buffer";
    case FI_HEDDLE_CANCELLED:
      return "the receive was cancelled before a message arrived";
    case FI_HEDDLE_FLUSHED:
      return "not executed: its queue is in the error state";
    case FI_HEDDLE_BAD_OPCODE:
      return "the device does not know the operation";
    case FI_HEDDLE_BAD_LENGTH:
      return "the lengths or flags of the operation contradict each other";
    case FI_HEDDLE_BAD_PEER:
      return "the peer is not in the address vector";
    case FI_HEDDLE_BAD_POSITION:
      return "the queue and its doorbell disagree";
    case FI_HEDDLE_LOCAL_ACCESS:
      return "the device could not reach the local buffer";
    case FI_HEDDLE_PEER_UNREACHABLE:
      return "nothing arrived from the peer for FI_HEDDLE_DEAD_NS";
    case FI_HEDDLE_PEER_REJECTED:
      return "the peer ended the connection";
    case FI_HEDDLE_REMOTE_ERROR:
      return "the peer refused the operation";
    case FI_HEDDLE_INITIATOR_ERROR:
      return "the sender could not read its buffer; the message is incomplete";
    case FI_HEDDLE_DEVICE_FAULT:
      return "the device failed or was reset";
    case FI_HEDDLE_BAD_KEY:
      return "the peer has no region of this key for this endpoint and job";
    case FI_HEDDLE_NO_RIGHT:
      return "the peer's region does not allow the operation";
    case FI_HEDDLE_OUT_OF_RANGE:
      return "the operation reaches beyond the peer's region";
    case FI_HEDDLE_UNKNOWN:
      break;
  }
  return "a status of the device that this library does not know";
}

int ToReturnCode(contract::AdminStatus status) noexcept {
  switch (status) {
    case contract::AdminStatus::kOk:
      return FI_SUCCESS;
    case contract::AdminStatus::kUnsupported:
      return -FI_EOPNOTSUPP;
    case contract::AdminStatus::kInvalid:
      return -FI_EINVAL;
    case contract::AdminStatus::kNoResource:
      return -FI_ENOSPC;
    case contract::AdminStatus::kInUse:
      return -FI_EADDRINUSE;
    case contract::AdminStatus::kNotFound:
      return -FI_ENOENT;
    case contract::AdminStatus::kDmaError:
      return -FI_EFAULT;
    case contract::AdminStatus::kKeyInUse:
      return -FI_ENOKEY;
  }
  return -FI_EOTHER;
}

int ToReturnCode(Errno error) noexcept {
  // Source: fi_errno.h, values below 256 are the system's.
  const int number = static_cast<int>(error);
  return number > 0 && number < FI_ERRNO_OFFSET ? -number : -FI_EOTHER;
}

}  // namespace heddle::base
