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

RmaAnswer CheckRma(const RegionTable& table,
                   const RmaRequest& request) noexcept {
  const uint32_t region = table.Find(request.key);
  if (region == kNone) {
    return CheckRma(kNone, {}, request);
  }
  return CheckRma(region, table.spec(region), request);
}

RmaAnswer CheckRma(uint32_t region, const RegionSpec& spec,
                   const RmaRequest& request) noexcept {
  const uint8_t needed = AccessOf(request.opcode);
  if (needed == 0) {
    return {ReturnCode::kUnsupportedOp, kNone, 0};
  }
  if (region == kNone) {
    return {ReturnCode::kBadMkey, kNone, 0};
  }
  if (spec.job_id != request.job_id ||
      (spec.endpoint != RegionSpec::kAnyEndpoint &&
       spec.endpoint != request.endpoint)) {
    return {ReturnCode::kBadMkey, kNone, 0};
  }
  if (request.idempotent && !spec.idempotent_safe) {
    return {ReturnCode::kOpViolation, kNone, 0};
  }
  if ((spec.access & needed) != needed) {
    return {ReturnCode::kPermViolation, kNone, 0};
  }
  if (request.request_length > spec.length) {
    return {ReturnCode::kUnsupportedSize, kNone, 0};
  }
  // Wraps for an address below the region, and is then beyond its end: a
  // region ends below 2^64.
  const uint64_t offset =
      request.buffer_offset - (spec.virtual_address ? spec.base : 0);
  if (offset > spec.length || request.request_length > spec.length - offset ||
      uint64_t{request.message_offset} + request.length >
          request.request_length) {
    return {ReturnCode::kBadAddr, kNone, 0};
  }
  return {ReturnCode::kOk, region, spec.base + offset + request.message_offset};
}

}  // namespace heddle::semantics
