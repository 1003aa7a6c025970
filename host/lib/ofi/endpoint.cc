// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/endpoint.h"

#include <arpa/inet.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstring>

#include "host/lib/boundary/guard.h"
#include "host/lib/boundary/status.h"
#include "host/lib/core/address.h"
#include "host/lib/core/limits.h"
#include "host/lib/core/log.h"
#include "host/lib/fabric/unsupported.h"
#include "host/lib/ofi/endpoint_ops.h"
#include "host/lib/ofi/inherited_ops.h"
#include "host/lib/ofi/message_ops.h"

namespace heddle::ofi {
namespace {

using core::LogLevel;
using core::LogSubsystem;

constexpr uint64_t kDirections = FI_TRANSMIT | FI_RECV;

// Without a modifier a capability means both directions (fi_getinfo(3)).
bool Has(uint64_t caps, uint64_t direction) {
  return (caps & (FI_SEND | FI_RECV)) == 0 || (caps & direction) != 0;
}

size_t QueueSize(size_t asked) {
  return asked == 0 ? core::kDefaultQueueSize
                    : std::min(asked, core::kMaxQueueSize);
}

bool IsOurs(const fi_info* info) {
  return info != nullptr && info->ep_attr != nullptr &&
         info->tx_attr != nullptr && info->rx_attr != nullptr &&
         info->ep_attr->type == FI_EP_RDM;
}

}  // namespace

Endpoint::Endpoint(Domain* domain, const fi_info& info, void* context)
    : fid_ep{},
      domain_(domain),
      sends_(Has(info.caps, FI_SEND)),
      receives_(Has(info.caps, FI_RECV)),
      name_senders_((info.caps & FI_SOURCE) != 0),
      tx_op_flags_(info.tx_attr->op_flags),
      rx_op_flags_(info.rx_attr->op_flags),
      msg_order_(info.tx_attr->msg_order),
      tx_size_(QueueSize(info.tx_attr->size)),
      rx_size_(QueueSize(info.rx_attr->size)),
      message_ops_(disabled_message_ops) {
  fid = {.fclass = FI_CLASS_EP, .context = context, .ops = &endpoint_fid_ops};
  ops = &endpoint_ops;
  cm = &endpoint_cm_ops;
  msg = &message_ops_;
  rma = &endpoint_rma_ops;
  tagged = &endpoint_tagged_ops;
  atomic = &endpoint_atomic_ops;
  collective = &endpoint_collective_ops;
  domain_->users().Add();
}

Endpoint::~Endpoint() {
  // First of all: the device leaves buffers and queues alone.
  backend_.reset();
  for (CompletionQueue* queue : {tx_cq_, rx_cq_}) {
    if (queue != nullptr) {
      queue->users().Remove();
    }
  }
  if (vector_ != nullptr) {
    vector_->users().Remove();
  }
  if (event_queue_ != nullptr) {
    event_queue_->users().Remove();
  }
  domain_->users().Remove();
}

int Endpoint::Open(Domain* domain, const fi_info* info, fid_ep** endpoint,
                   void* context) {
  if (!IsOurs(info)) {
    return -FI_EINVAL;
  }
  if ((info->tx_attr->op_flags & ~core::kTxOpFlags) != 0 ||
      (info->rx_attr->op_flags & ~core::kRxOpFlags) != 0) {
    return -FI_EBADFLAGS;
  }
  // Scalable endpoints and shared contexts are not offered.
  if (info->ep_attr->tx_ctx_cnt > 1 || info->ep_attr->rx_ctx_cnt > 1) {
    return -FI_ENOSYS;
  }
  uint16_t port = 0;
  if (info->src_addr != nullptr) {
    const auto source = core::ParseAddress(info->src_addr, info->src_addrlen);
    if (!source.has_value()) {
      return -FI_EINVAL;
    }
    if (source->sin_addr.s_addr != INADDR_ANY &&
        source->sin_addr.s_addr != domain->address().s_addr) {
      return -FI_EADDRNOTAVAIL;
    }
    port = ntohs(source->sin_port);
  }
  auto* made = new Endpoint(domain, *info, context);
  made->port_ = port;
  *endpoint = made;
  return 0;
}

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
      return BindEventQueue(fabric::EventQueue::From(other), flags);
    case FI_CLASS_CNTR:
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
    transmit_.selective = selective;
    queue->users().Add();
  }
  if (receive) {
    rx_cq_ = queue;
    receive_.selective = selective;
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

int Endpoint::BindEventQueue(fabric::EventQueue* queue,
                             uint64_t flags) noexcept {
  if (flags != 0 || event_queue_ != nullptr) {
    return flags != 0 ? -FI_EBADFLAGS : -FI_EINVAL;
  }
  event_queue_ = queue;
  event_queue_->users().Add();
  return 0;
}

int Endpoint::CheckBindings() const noexcept {
  if (enabled_) {
    return -FI_EOPBADSTATE;
  }
  if ((sends_ && tx_cq_ == nullptr) || (receives_ && rx_cq_ == nullptr)) {
    return -FI_ENOCQ;
  }
  return vector_ == nullptr ? -FI_ENOAV : 0;
}

int Endpoint::ClaimPort() {
  if (backend_ != nullptr) {
    return 0;
  }
  contract::AdminAnswer refusal;
  auto claimed = nic::Endpoint::Claim(domain_->nic(), port_,
                                      domain_->settings().job_id, &refusal);
  if (claimed.ok()) {
    backend_ = std::move(claimed.value());
    return 0;
  }
  const int result = boundary::ToReturnCode(claimed.error());
  const std::string address =
      core::FormatAddress(core::MakeAddress(domain_->address(), port_));
  if (result == -FI_EADDRINUSE) {
    core::Log(LogLevel::kWarn, LogSubsystem::kEpCtrl,
              "%s is in use by process %u; choose another port, or 0 for any",
              address.c_str(), refusal.detail);
  } else {
    core::Log(LogLevel::kWarn, LogSubsystem::kEpCtrl, "endpoint at %s: %s",
              address.c_str(), std::strerror(-result));
  }
  return result;
}

int Endpoint::Enable() {
  if (const int refused = CheckBindings(); refused != 0) {
    return refused;
  }
  const bool had_port = backend_ != nullptr;
  if (const int refused = ClaimPort(); refused != 0) {
    return refused;
  }
  auto enabled =
      backend_->Enable({.tx_cq = sends_ ? &tx_cq_->backend() : nullptr,
                        .rx_cq = receives_ ? &rx_cq_->backend() : nullptr,
                        .peers = &vector_->table(),
                        .name_senders = name_senders_,
                        .tx_operations = tx_size_,
                        .rx_operations = rx_size_,
                        .copy_limit_bytes = static_cast<uint32_t>(
                            domain_->settings().bounce_limit),
                        .msg_order = msg_order_});
  if (!enabled.ok()) {
    core::Log(
        LogLevel::kWarn, LogSubsystem::kEpCtrl,
        "endpoint at port %u: %s; the device has %u transmit and %u "
        "receive contexts",
        backend_->port(), std::strerror(static_cast<int>(enabled.error())),
        domain_->nic().info().tx_contexts, domain_->nic().info().rx_contexts);
    if (!had_port) {
      backend_.reset();
    }
    return boundary::ToReturnCode(enabled.error());
  }
  transmit_.queue = backend_->tx();
  transmit_.peers = &vector_->table();
  receive_.queue = backend_->rx();
  ApplyOpFlags();
  message_ops_ = MakeMessageOps(domain_->locked(), sends_, receives_);
  enabled_ = true;
  core::Log(LogLevel::kDebug, LogSubsystem::kEpCtrl, "endpoint at port %u",
            backend_->port());
  return 0;
}

void Endpoint::ApplyOpFlags() noexcept {
  transmit_.report =
      !transmit_.selective || (tx_op_flags_ & FI_COMPLETION) != 0;
  transmit_.copy_now = (tx_op_flags_ & FI_INJECT) != 0;
  receive_.report = !receive_.selective || (rx_op_flags_ & FI_COMPLETION) != 0;
}

int Endpoint::SetName(const void* address, size_t length) {
  const auto wanted = core::ParseAddress(address, length);
  if (!wanted.has_value()) {
    return -FI_EINVAL;
  }
  if (backend_ != nullptr) {
    return -FI_EOPBADSTATE;
  }
  if (wanted->sin_addr.s_addr != INADDR_ANY &&
      wanted->sin_addr.s_addr != domain_->address().s_addr) {
    return -FI_EADDRNOTAVAIL;
  }
  const uint16_t before = port_;
  port_ = ntohs(wanted->sin_port);
  // Claimed now, so that fi_getname agrees and a conflict is seen here.
  const int result = ClaimPort();
  if (result != 0) {
    port_ = before;
  }
  return result;
}

int Endpoint::GetName(void* address, size_t* length) const noexcept {
  if (backend_ == nullptr) {
    return -FI_EOPBADSTATE;
  }
  const sockaddr_in name =
      core::MakeAddress(domain_->address(), backend_->port());
  const size_t room = *length;
  *length = sizeof(name);
  if (address != nullptr) {
    std::memcpy(address, &name, std::min(room, sizeof(name)));
  }
  return room < sizeof(name) ? -FI_ETOOSMALL : 0;
}

ssize_t Endpoint::Cancel(void* context) noexcept {
  if (!enabled_) {
    return -FI_EOPBADSTATE;
  }
  const auto wanted = reinterpret_cast<uint64_t>(context);
  return receives_ && receive_.queue->Cancel<nic::Locked>(wanted) ? 0
                                                                  : -FI_ENOENT;
}

int Endpoint::AccessOpFlags(uint64_t* flags, bool set) noexcept {
  const uint64_t direction = *flags & kDirections;
  if (direction == 0 || direction == kDirections) {
    return -FI_EINVAL;
  }
  const bool transmit = direction == FI_TRANSMIT;
  uint64_t& defaults = transmit ? tx_op_flags_ : rx_op_flags_;
  if (!set) {
    *flags = defaults;
    return 0;
  }
  const uint64_t wanted = *flags & ~kDirections;
  const uint64_t known = transmit ? core::kTxOpFlags : core::kRxOpFlags;
  if ((wanted & ~known) != 0) {
    return -FI_EBADFLAGS;
  }
  defaults = wanted;
  ApplyOpFlags();
  return 0;
}

int Endpoint::Control(int command, void* argument) {
  switch (command) {
    case FI_ENABLE:
      return Enable();
    case FI_GETOPSFLAG:
      return AccessOpFlags(static_cast<uint64_t*>(argument), /*set=*/false);
    case FI_SETOPSFLAG:
      return AccessOpFlags(static_cast<uint64_t*>(argument), /*set=*/true);
    default:
      return -FI_ENOSYS;
  }
}

int Endpoint::Close() noexcept {
  delete this;
  return 0;
}

void Endpoint::Disinherit() noexcept {
  fid.ops = &inherited_fid_ops;
  ops = &inherited_ep_ops;
  cm = &inherited_cm_ops;
  message_ops_ = disabled_message_ops;
}

}  // namespace heddle::ofi
