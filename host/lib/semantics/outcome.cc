// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/outcome.h"

namespace heddle::semantics {

using contract::ReturnCode;
using contract::Status;

Status StatusOf(ReturnCode code) noexcept {
  switch (code) {
    case ReturnCode::kNull:
    case ReturnCode::kOk:
      return Status::kOk;
    case ReturnCode::kCancelled:
    case ReturnCode::kUndeliverable:
    case ReturnCode::kBadGeneration:
    case ReturnCode::kDisabled:
    case ReturnCode::kDisabledGen:
    case ReturnCode::kNoMatch:
    case ReturnCode::kUnsupportedOp:
    case ReturnCode::kUnsupportedSize:
    case ReturnCode::kAtInvalid:
    case ReturnCode::kAtPerm:
    case ReturnCode::kAtAtsError:
    case ReturnCode::kAtNoTrans:
    case ReturnCode::kAtOutOfRange:
    case ReturnCode::kHostPoisoned:
    case ReturnCode::kHostUnsuccessCmpl:
    case ReturnCode::kAmoUnsupportedOp:
    case ReturnCode::kAmoUnsupportedDt:
    case ReturnCode::kAmoUnsupportedSize:
    case ReturnCode::kAmoUnaligned:
    case ReturnCode::kAmoFpNan:
    case ReturnCode::kAmoFpUnderflow:
    case ReturnCode::kAmoFpOverflow:
    case ReturnCode::kAmoFpInexact:
    case ReturnCode::kPermViolation:
    case ReturnCode::kOpViolation:
    case ReturnCode::kBadIndex:
    case ReturnCode::kBadPid:
    case ReturnCode::kBadJobId:
    case ReturnCode::kBadMkey:
    case ReturnCode::kBadAddr:
    case ReturnCode::kUncor:
    case ReturnCode::kUncorTrnsnt:
    case ReturnCode::kTooLong:
    case ReturnCode::kInitiatorErr:
    case ReturnCode::kDropped:
      break;
  }
  return Status::kRemoteError;
}

ReturnCode ReturnCodeOf(Status status) noexcept {
  switch (status) {
    case Status::kOk:
    case Status::kTruncated:
      return ReturnCode::kOk;
    case Status::kCancelled:
    case Status::kFlushed:
      return ReturnCode::kCancelled;
    case Status::kInitiatorError:
      return ReturnCode::kInitiatorErr;
    case Status::kBadOpcode:
      return ReturnCode::kUnsupportedOp;
    case Status::kBadLength:
      return ReturnCode::kUnsupportedSize;
    case Status::kBadPeer:
    case Status::kBadPosition:
    case Status::kLocalAccess:
    case Status::kPeerUnreachable:
    case Status::kPeerRejected:
    case Status::kRemoteError:
    case Status::kDeviceFault:
    case Status::kNoMessage:
      break;
  }
  return ReturnCode::kUncor;
}

}  // namespace heddle::semantics
