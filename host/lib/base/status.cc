// SPDX-License-Identifier: Apache-2.0
#include "host/lib/base/status.h"

#include <rdma/fi_errno.h>

namespace heddle::base {

int ToFiErrno(fi_heddle_errno error) noexcept {
  switch (error) {
    case FI_HEDDLE_OK:
      return FI_SUCCESS;
    case FI_HEDDLE_TRUNCATED:
      return FI_ETRUNC;
    case FI_HEDDLE_CANCELLED:
    case FI_HEDDLE_FLUSHED:
      return FI_ECANCELED;
    case FI_HEDDLE_BAD_OPCODE:
    case FI_HEDDLE_PEER_UNSUPPORTED:
      return FI_EOPNOTSUPP;
    case FI_HEDDLE_BAD_LENGTH:
      return FI_EINVAL;
    case FI_HEDDLE_BAD_PEER:
      return FI_EADDRNOTAVAIL;
    case FI_HEDDLE_LOCAL_ACCESS:
      return FI_EFAULT;
    case FI_HEDDLE_PEER_UNREACHABLE:
      return FI_EHOSTUNREACH;
    case FI_HEDDLE_PEER_REJECTED:
      return FI_ECONNRESET;
    case FI_HEDDLE_REMOTE_ERROR:
    case FI_HEDDLE_INITIATOR_ERROR:
      return FI_EREMOTEIO;
    case FI_HEDDLE_BAD_POSITION:
    case FI_HEDDLE_DEVICE_FAULT:
      return FI_EIO;
    case FI_HEDDLE_BAD_KEY:
      return FI_EKEYREJECTED;
    case FI_HEDDLE_NO_RIGHT:
    case FI_HEDDLE_OUT_OF_RANGE:
      return FI_EACCES;
    case FI_HEDDLE_NO_MESSAGE:
      return FI_ENOMSG;
    case FI_HEDDLE_UNKNOWN:
      break;
  }
  return FI_EOTHER;
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
      return "the device does not support the operation";
    case FI_HEDDLE_BAD_LENGTH:
      return "the lengths or flags of the operation contradict each other";
    case FI_HEDDLE_BAD_PEER:
      return "the peer is not in the address vector";
    case FI_HEDDLE_BAD_POSITION:
      return "the queue and its doorbell disagree";
    case FI_HEDDLE_LOCAL_ACCESS:
      return "the device could not access the local buffer";
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
    case FI_HEDDLE_NO_MESSAGE:
      return "no message that has arrived matches, or none is claimed";
    case FI_HEDDLE_PEER_UNSUPPORTED:
      return "the peer's device does not support the operation, such as tagged "
             "messages";
    case FI_HEDDLE_UNKNOWN:
      break;
  }
  return "unknown status of the device";
}

int ToReturnCode(Errno error) noexcept {
  // Source: fi_errno.h, values below 256 are the system's.
  const int number = static_cast<int>(error);
  return number > 0 && number < FI_ERRNO_OFFSET ? -number : -FI_EOTHER;
}

}  // namespace heddle::base
