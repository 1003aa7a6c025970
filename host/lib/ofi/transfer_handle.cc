// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/transfer_handle.h"

#include "host/lib/core/limits.h"

namespace heddle::ofi {
namespace {

constexpr uint64_t kDirections = FI_TRANSMIT | FI_RECV;

bool NamesOneDirection(uint64_t flags) noexcept {
  const uint64_t direction = flags & kDirections;
  return direction == FI_TRANSMIT || direction == FI_RECV;
}

}  // namespace

int TransferHandle::ReadOpFlags(uint64_t* flags) const noexcept {
  if (!NamesOneDirection(*flags)) {
    return -FI_EINVAL;
  }
  *flags = (*flags & FI_TRANSMIT) != 0 ? tx_op_flags_ : rx_op_flags_;
  return 0;
}

int TransferHandle::ReplaceOpFlags(uint64_t flags) noexcept {
  if (!NamesOneDirection(flags)) {
    return -FI_EINVAL;
  }
  const bool transmit = (flags & FI_TRANSMIT) != 0;
  const uint64_t wanted = flags & ~kDirections;
  const uint64_t known = transmit ? core::kTxOpFlags : core::kRxOpFlags;
  if ((wanted & ~known) != 0) {
    return -FI_EBADFLAGS;
  }
  (transmit ? tx_op_flags_ : rx_op_flags_) = wanted;
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
  transmit_.report =
      !transmit_.selective || (tx_op_flags_ & FI_COMPLETION) != 0;
  transmit_.copy_now = (tx_op_flags_ & FI_INJECT) != 0;
  receive_.report = !receive_.selective || (rx_op_flags_ & FI_COMPLETION) != 0;
}

}  // namespace heddle::ofi
