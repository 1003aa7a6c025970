// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/rma_check.h"

namespace heddle::semantics {

using contract::ReturnCode;
using contract::SesOpcode;

uint8_t AccessOf(SesOpcode opcode) noexcept {
  switch (opcode) {
    case SesOpcode::kWrite:
    case SesOpcode::kAtomic:
      return kRemoteWrite;
    case SesOpcode::kRead:
      return kRemoteRead;
    case SesOpcode::kFetchingAtomic:
      return kRemoteRead | kRemoteWrite;
    default:
      return 0;
  }
}

RmaAnswer CheckRma(const RegionSpec* region,
                   const RmaRequest& request) noexcept {
  const uint8_t needed = AccessOf(request.opcode);
  if (needed == 0) {
    return {ReturnCode::kUnsupportedOp, 0};
  }
  if (region == nullptr || region->job_id != request.job_id ||
      (region->endpoint != RegionSpec::kAnyEndpoint &&
       region->endpoint != request.endpoint)) {
    return {ReturnCode::kBadMkey, 0};
  }
  if ((region->access & needed) != needed) {
    return {ReturnCode::kPermViolation, 0};
  }
  if (request.request_length > region->length) {
    return {ReturnCode::kUnsupportedSize, 0};
  }
  // Wraps for an address below the region, and is then beyond its end: a
  // region ends below 2^64.
  const uint64_t offset = request.buffer_offset - region->base;
  if (offset > region->length ||
      request.request_length > region->length - offset ||
      uint64_t{request.message_offset} + request.length >
          request.request_length) {
    return {ReturnCode::kBadAddr, 0};
  }
  return {ReturnCode::kOk, offset + request.message_offset};
}

}  // namespace heddle::semantics
