// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/endpoint.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_ext_heddle.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstring>

#include "host/lib/boundary/guard.h"
#include "host/lib/boundary/status.h"
#include "host/lib/core/address.h"
#include "host/lib/core/auth_key.h"
#include "host/lib/core/limits.h"
#include "host/lib/core/log.h"
#include "host/lib/core/traffic_class.h"
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

// An endpoint has the device's address, which a wildcard of its family means.
bool MayBind(const core::SocketAddress& wanted,
             const core::SocketAddress& own) {
  return wanted.family() == own.family() &&
         (wanted.is_any() || wanted.WithPort(0) == own);
}

}  // namespace

Endpoint::Endpoint(Domain* domain, const fi_info& info, void* context)
    : TransferHandle(this, info.tx_attr->op_flags, info.rx_attr->op_flags),
      domain_(domain),
      sends_(Has(info.caps, FI_SEND)),
      receives_(Has(info.caps, FI_RECV)),
      name_senders_((info.caps & FI_SOURCE) != 0),
      refuse_strangers_((info.caps & FI_SOURCE_ERR) != 0),
      job_id_(domain->job_id()),
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
  domain_->Add(this);
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
  domain_->Remove(this);
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
  // Source: fi_getinfo(3), FI_SOURCE_ERR must be paired with FI_SOURCE.
  if ((info->caps & (FI_SOURCE | FI_SOURCE_ERR)) == FI_SOURCE_ERR) {
    return -FI_EINVAL;
  }
  // Scalable endpoints and shared contexts are not offered.
  if (info->ep_attr->tx_ctx_cnt > 1 || info->ep_attr->rx_ctx_cnt > 1) {
    return -FI_ENOSYS;
  }
  uint16_t port = 0;
  if (info->src_addr != nullptr) {
    const auto source =
        core::SocketAddress::Read(info->src_addr, info->src_addrlen);
    if (!source.has_value()) {
      return -FI_EINVAL;
    }
    if (!MayBind(*source, domain->address())) {
      return -FI_EADDRNOTAVAIL;
    }
    port = source->port();
  }
  struct Deleter {
    void operator()(Endpoint* doomed) const { delete doomed; }
  };
  std::unique_ptr<Endpoint, Deleter> made(new Endpoint(domain, *info, context));
  made->port_ = port;
  if (const int refused = made->ReadService(*info); refused != 0) {
    return refused;
  }
  *endpoint = made.release();
  return 0;
}

int Endpoint::ReadService(const fi_info& info) noexcept {
  const uint32_t version = domain_->api_version();
  // Fields that came after the application's version are not looked at.
  if (FI_VERSION_GE(version, FI_VERSION(1, 5)) &&
      info.ep_attr->auth_key_size != 0) {
    const auto key =
        core::JobIdOf(info.ep_attr->auth_key, info.ep_attr->auth_key_size);
    if (!key.has_value()) {
      return -FI_EINVAL;
    }
    job_id_ = *key;
  }
  uint32_t traffic_class = domain_->traffic_class();
  if (FI_VERSION_GE(version, FI_VERSION(1, 9)) &&
      info.tx_attr->tclass != FI_TC_UNSPEC) {
    traffic_class = info.tx_attr->tclass;
  }
  const auto dscp = core::DscpOf(traffic_class);
  dscp_ = dscp.value_or(0);
  return dscp.has_value() ? 0 : -FI_EINVAL;
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
  auto claimed = nic::Endpoint::Claim(domain_->nic(), port_, job_id_, &refusal);
  if (claimed.ok()) {
    backend_ = std::move(claimed.value());
    return 0;
  }
  const int result = boundary::ToReturnCode(claimed.error());
  const std::string address = domain_->address().WithPort(port_).Text();
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
                        .refuse_strangers = refuse_strangers_,
                        .tx_operations = tx_size_,
                        .rx_operations = rx_size_,
                        .copy_limit_bytes = static_cast<uint32_t>(
                            domain_->settings().bounce_limit),
                        .dscp = dscp_,
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
  UseQueues({.queue = backend_->tx(),
             .peers = &vector_->table(),
             .selective = tx_selective_},
            {.queue = backend_->rx(), .selective = rx_selective_});
  for (EndpointAlias* alias : aliases_) {
    alias->UseQueues(transmit(), receive());
  }
  message_ops_ = MakeMessageOps(domain_->locked(), sends_, receives_);
  enabled_ = true;
  core::Log(LogLevel::kDebug, LogSubsystem::kEpCtrl, "endpoint at port %u",
            backend_->port());
  return 0;
}

int Endpoint::SetName(const void* address, size_t length) {
  const auto wanted = core::SocketAddress::Read(address, length);
  if (!wanted.has_value()) {
    return -FI_EINVAL;
  }
  if (backend_ != nullptr) {
    return -FI_EOPBADSTATE;
  }
  if (!MayBind(*wanted, domain_->address())) {
    return -FI_EADDRNOTAVAIL;
  }
  const uint16_t before = port_;
  port_ = wanted->port();
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
  const core::SocketAddress name =
      domain_->address().WithPort(backend_->port());
  const size_t room = *length;
  *length = name.size();
  if (address != nullptr) {
    std::memcpy(address, name.data(), std::min(room, name.size()));
  }
  return room < name.size() ? -FI_ETOOSMALL : 0;
}

ssize_t Endpoint::Cancel(void* context) noexcept {
  if (!enabled_) {
    return -FI_EOPBADSTATE;
  }
  const auto wanted = reinterpret_cast<uint64_t>(context);
  return receives_ && receive().queue->Cancel<nic::Locked>(wanted) ? 0
                                                                   : -FI_ENOENT;
}

void Endpoint::Add(EndpointAlias* alias) {
  aliases_.push_back(alias);
  if (enabled_) {
    alias->UseQueues(transmit(), receive());
  }
}

void Endpoint::Remove(EndpointAlias* alias) noexcept {
  std::erase(aliases_, alias);
}

void Endpoint::ReportFailure() noexcept {
  fabric::EventQueue* events =
      event_queue_ != nullptr ? event_queue_ : domain_->event_queue();
  if (!enabled_ || events == nullptr) {
    return;
  }
  fi_eq_err_entry error = {};
  error.fid = &fid;
  error.context = fid.context;
  error.err = FI_EIO;
  error.prov_errno = FI_HEDDLE_DEVICE_FAULT;
  (void)events->WriteError(error);
}

int Endpoint::Close() noexcept {
  if (!aliases_.empty()) {
    return -FI_EBUSY;
  }
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
