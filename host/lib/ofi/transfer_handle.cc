// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/transfer_handle.h"

#include "host/lib/core/limits.h"
#include "host/lib/ofi/data_path.h"
#include "host/lib/ofi/message_ops.h"
#include "host/lib/ofi/rma_ops.h"
#include "host/lib/ofi/tagged_ops.h"

namespace heddle::ofi {
namespace {

bool NamesOneDirection(uint64_t flags) noexcept {
  const uint64_t direction = flags & kDirections;
  return direction == FI_TRANSMIT || direction == FI_RECV;
}

}  // namespace

TransferHandle::TransferHandle(Endpoint* endpoint,
                               const OpFlags& flags) noexcept
    : fid_ep{}, endpoint_(endpoint), op_flags_(flags) {
  msg = &message_ops_;
  tagged = &tagged_ops_;
  rma = &rma_ops_;
  DisableCalls();
}

void TransferHandle::DisableCalls() noexcept {
  message_ops_ = kDisabledMessageOps;
  tagged_ops_ = kDisabledTaggedOps;
  rma_ops_ = kDisabledRmaOps;
}

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

void TransferHandle::UseQueues(const Queues& queues) noexcept {
  queues_ = queues;
  ApplyOpFlags();
}

void TransferHandle::ApplyOpFlags() noexcept {
  Transmit& transmit = queues_.transmit;
  Receive& receive = queues_.receive;
  transmit.flags =
      OperationFlags(op_flags_.tx & (FI_COMPLETION | FI_DELIVERY_COMPLETE),
                     transmit.selective) |
      transmit.fence;
  transmit.copy_now = (op_flags_.tx & FI_INJECT) != 0;
  receive.report = !receive.selective || (op_flags_.rx & FI_COMPLETION) != 0;
  if (queues_.path != nullptr) {
    queues_.traits.plain_transmit =
        transmit.context != nullptr && transmit.context->direct() &&
        transmit.flags == backend::kReportSuccess && !transmit.copy_now;
    queues_.traits.plain_receive = receive.report;
    message_ops_ = queues_.path->message_ops(queues_.traits);
    tagged_ops_ = queues_.path->tagged_ops(queues_.traits);
    rma_ops_ = queues_.path->rma_ops(queues_.traits);
  }
}

}  // namespace heddle::ofi
