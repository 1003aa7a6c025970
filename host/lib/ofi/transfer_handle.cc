// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/transfer_handle.h"

#include "host/lib/core/limits.h"
#include "host/lib/ofi/transfer_call.h"

namespace heddle::ofi {
namespace {

bool NamesOneDirection(uint64_t flags) noexcept {
  const uint64_t direction = flags & kDirections;
  return direction == FI_TRANSMIT || direction == FI_RECV;
}

}  // namespace

int TransferHandle::ReadOpFlags(uint64_t* flags) const noexcept {
  if (!NamesOneDirection(*flags)) {
    return -FI_EINVAL;
  }
  *flags = (*flags & FI_TRANSMIT) != 0 ? op_flags_.tx : op_flags_.rx;
  return 0;
}

int TransferHandle::ReplaceOpFlags(uint64_t flags) noexcept {
  if (!NamesOneDirection(flags)) {
    return -FI_EINVAL;
  }
  const bool transmit = (flags & FI_TRANSMIT) != 0;
  const uint64_t wanted = flags & ~kDirections;
  const uint64_t known = transmit ? op_flags_.tx_offered : core::kRxOpFlags;
  if ((wanted & ~known) != 0) {
    return -FI_EBADFLAGS;
  }
  (transmit ? op_flags_.tx : op_flags_.rx) = wanted;
  ApplyOpFlags();
  return 0;
}

void TransferHandle::UseQueues(const Transmit& transmit,
                               const Receive& receive) noexcept {
  transmit_ = transmit;
  receive_ = receive;
  ApplyOpFlags();
}

void TransferHandle::ApplyOpFlags() noexcept {
  transmit_.flags =
      OperationFlags(op_flags_.tx & (FI_COMPLETION | FI_DELIVERY_COMPLETE),
                     transmit_.selective);
  transmit_.copy_now = (op_flags_.tx & FI_INJECT) != 0;
  transmit_.most_in_place = transmit_.copy_now ? 0 : backend::kMaxMessageBytes;
  receive_.report = !receive_.selective || (op_flags_.rx & FI_COMPLETION) != 0;
}

}  // namespace heddle::ofi
