// SPDX-License-Identifier: Apache-2.0
// fi_ep_bind: what an endpoint may be bound to, and once.
#include <algorithm>

#include "host/lib/ofi/endpoint.h"

namespace heddle::ofi {

int Endpoint::Bind(struct fid* other, uint64_t flags) noexcept {
  if (enabled_) {
    return -FI_EOPBADSTATE;
  }
  switch (other->fclass) {
    case FI_CLASS_CQ:
      return BindCompletionQueue(CompletionQueue::From(other), flags);
    case FI_CLASS_AV:
      return BindAddressVector(AddressVector::From(other), flags);
    case FI_CLASS_EQ:
      return BindEventQueue(ofi::EventQueue::From(other), flags);
    case FI_CLASS_CNTR:
      return BindCounter(Counter::From(other), flags);
    case FI_CLASS_STX_CTX:
    case FI_CLASS_SRX_CTX:
      return -FI_ENOSYS;
    default:
      return -FI_EINVAL;
  }
}

int Endpoint::BindCompletionQueue(CompletionQueue* queue,
                                  uint64_t flags) noexcept {
  if ((flags & ~(kDirections | FI_SELECTIVE_COMPLETION)) != 0 ||
      (flags & kDirections) == 0) {
    return -FI_EBADFLAGS;
  }
  if (queue->domain() != domain_) {
    return -FI_EDOMAIN;
  }
  const bool transmit = (flags & FI_TRANSMIT) != 0;
  const bool receive = (flags & FI_RECV) != 0;
  if ((transmit && tx_cq_ != nullptr) || (receive && rx_cq_ != nullptr)) {
    return -FI_EINVAL;
  }
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if (transmit) {
    tx_cq_ = queue;
    tx_selective_ = selective;
    queue->users().Add();
  }
  if (receive) {
    rx_cq_ = queue;
    rx_selective_ = selective;
    queue->users().Add();
  }
  return 0;
}

int Endpoint::BindAddressVector(AddressVector* vector,
                                uint64_t flags) noexcept {
  if (flags != 0 || vector_ != nullptr) {
    return flags != 0 ? -FI_EBADFLAGS : -FI_EINVAL;
  }
  if (vector->domain() != domain_) {
    return -FI_EDOMAIN;
  }
  vector_ = vector;
  vector_->users().Add();
  return 0;
}

int Endpoint::BindEventQueue(ofi::EventQueue* queue, uint64_t flags) noexcept {
  if (flags != 0 || event_queue_ != nullptr) {
    return flags != 0 ? -FI_EBADFLAGS : -FI_EINVAL;
  }
  const int result = queue->AddUser(domain_->progressors());
  event_queue_ = result == 0 ? queue : nullptr;
  return result;
}

int Endpoint::BindCounter(Counter* counter, uint64_t flags) noexcept {
  constexpr uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
  const uint64_t kinds = FI_SEND | FI_RECV | FI_READ | FI_WRITE | kRemote;
  if (flags == 0 || (flags & ~kinds) != 0) {
    return -FI_EBADFLAGS;
  }
  if (counter->domain() != domain_) {
    return -FI_EDOMAIN;
  }
  // Source: fi_endpoint(3), operations of peers count with FI_RMA_EVENT only.
  if ((flags & kRemote) != 0 && !caps_.region_events) {
    return -FI_EINVAL;
  }
  for (size_t i = 0; i < kCounterKinds; ++i) {
    if ((flags & kCounterFlags[i]) != 0 && counters_[i] != nullptr) {
      return -FI_EINVAL;
    }
  }
  for (size_t i = 0; i < kCounterKinds; ++i) {
    if ((flags & kCounterFlags[i]) != 0) {
      counters_[i] = counter;
      counter->users().Add();
    }
  }
  return 0;
}

}  // namespace heddle::ofi
