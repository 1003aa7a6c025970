// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/endpoint.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_ext_heddle.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstring>

#include "host/lib/base/guard.h"
#include "host/lib/base/log.h"
#include "host/lib/base/socket_address.h"
#include "host/lib/base/status.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/core/auth_key.h"
#include "host/lib/core/limits.h"
#include "host/lib/core/offered_caps.h"
#include "host/lib/core/tostr.h"
#include "host/lib/core/traffic_class.h"
#include "host/lib/ofi/data_path.h"
#include "host/lib/ofi/endpoint_ops.h"
#include "host/lib/ofi/inherited_ops.h"
#include "host/lib/ofi/memory_region.h"

namespace heddle::ofi {
namespace {

using base::LogLevel;
using base::LogSubsystem;

// Flags that fi_sendmsg and fi_writemsg take besides those of all endpoints.
constexpr uint64_t kMessageFlags = FI_REMOTE_CQ_DATA | FI_MORE;

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
bool MayBind(const base::SocketAddress& wanted, const Domain& domain) {
  return wanted.family() == domain.address().family() &&
         (wanted.is_any() || domain.own_addresses().OnWire(wanted).WithPort(
                                 0) == domain.address());
}

}  // namespace

Endpoint::Endpoint(Domain* domain, const fi_info& info, void* context)
    : TransferHandle(
          this, {.tx = info.tx_attr->op_flags,
                 .rx = info.rx_attr->op_flags,
                 .tx_offered = core::OfferedCaps(domain->device().profile().has)
                                   .tx_op_flags()}),
      domain_(domain),
      caps_(EndpointCaps::Of(info.caps)),
      name_senders_((info.caps & FI_SOURCE) != 0),
      refuse_strangers_((info.caps & FI_SOURCE_ERR) != 0),
      job_id_(domain->job_id()),
      msg_order_(info.tx_attr->msg_order),
      fence_(info.tx_attr->comp_order != FI_ORDER_NONE ? backend::kFence
                                                       : uint8_t{0}),
      tx_size_(QueueSize(info.tx_attr->size)),
      rx_size_(QueueSize(info.rx_attr->size)),
      total_buffered_recv_(info.rx_attr->total_buffered_recv) {
  TransferHandle::SetMinMultiRecv(core::kDefaultMinMultiRecv);
  fid = {.fclass = FI_CLASS_EP, .context = context, .ops = &endpoint_fid_ops};
  ops = &endpoint_ops;
  cm = &endpoint_cm_ops;
  atomic = &endpoint_atomic_ops;
  collective = &endpoint_collective_ops;
  domain_->Add(this);
}

Endpoint::~Endpoint() {
  // First of all: the device leaves buffers and queues alone.
  for (MemoryRegion* region : regions_) {
    region->LoseEndpoint();
  }
  backend_.reset();
  for (Counter* counter : counters_) {
    if (counter != nullptr) {
      counter->users().Remove();
    }
  }
  for (CompletionQueue* queue : {tx_cq_, rx_cq_}) {
    if (queue != nullptr) {
      queue->users().Remove();
    }
  }
  if (vector_ != nullptr) {
    vector_->users().Remove();
  }
  if (event_queue_ != nullptr) {
    event_queue_->RemoveUser(domain_->progressors());
  }
  domain_->Remove(this);
}

int Endpoint::Open(Domain* domain, const fi_info* info, fid_ep** endpoint,
                   void* context) {
  if (!IsOurs(info)) {
    return -FI_EINVAL;
  }
  const backend::DeviceCapabilities& has = domain->device().profile().has;
  if ((info->tx_attr->op_flags & ~core::OfferedCaps(has).tx_op_flags()) != 0 ||
      (info->rx_attr->op_flags & ~core::kRxOpFlags) != 0) {
    return -FI_EBADFLAGS;
  }
  // Source: fi_getinfo(3), FI_SOURCE_ERR must be paired with FI_SOURCE.
  if ((info->caps & (FI_SOURCE | FI_SOURCE_ERR)) == FI_SOURCE_ERR) {
    return -FI_EINVAL;
  }
  if (const uint64_t lacking = EndpointCaps::Of(info->caps).LackingOf(has);
      lacking != 0) {
    base::Log(
        base::LogLevel::kWarn, base::LogSubsystem::kEpCtrl,
        "endpoint: device %s does not have %s; call fi_getinfo for this device",
        domain->device().name().c_str(),
        core::FlagsText(lacking, FI_TYPE_CAPS).c_str());
    return -FI_EOPNOTSUPP;
  }
  // Scalable endpoints and shared contexts are not offered.
  if (info->ep_attr->tx_ctx_cnt > 1 || info->ep_attr->rx_ctx_cnt > 1) {
    return -FI_ENOSYS;
  }
  uint16_t port = 0;
  if (info->src_addr != nullptr) {
    const auto source =
        base::SocketAddress::Read(info->src_addr, info->src_addrlen);
    if (!source.has_value()) {
      return -FI_EINVAL;
    }
    if (!MayBind(*source, *domain)) {
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

int Endpoint::CheckBindings() const noexcept {
  if (enabled_) {
    return -FI_EOPBADSTATE;
  }
  if ((caps_.transmits() && tx_cq_ == nullptr) ||
      (caps_.receives_any() && rx_cq_ == nullptr) ||
      (caps_.is_target() && rx_cq_ == nullptr && tx_cq_ == nullptr)) {
    return -FI_ENOCQ;
  }
  return vector_ == nullptr ? -FI_ENOAV : 0;
}

int Endpoint::ClaimPort() {
  if (backend_ != nullptr) {
    return 0;
  }
  uint64_t owner_process = 0;
  auto claimed = domain_->device().ClaimEndpoint(
      {.port = port_, .job_id = job_id_, .relative = domain_->relative()},
      &owner_process);
  if (claimed.ok()) {
    backend_ = std::move(claimed.value());
    return 0;
  }
  const int result = base::ToReturnCode(claimed.error());
  const std::string address = domain_->address().WithPort(port_).Text();
  if (result == -FI_EADDRINUSE) {
    // A wire of sockets does not know the process: 0.
    const std::string owner = owner_process != 0
                                  ? "process " + std::to_string(owner_process)
                                  : "an unknown process";
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kEpCtrl,
              "%s is in use by %s; choose another port, or 0 for any",
              address.c_str(), owner.c_str());
  } else {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kEpCtrl,
              "endpoint at %s: %s", address.c_str(), std::strerror(-result));
  }
  return result;
}

// An endpoint that peers access but that receives no messages may have no queue
// for receives; then operations of peers are not reported.
backend::EndpointOptions Endpoint::BackendOptions() const noexcept {
  CompletionQueue* rx_cq = rx_cq_ != nullptr ? rx_cq_ : tx_cq_;
  const bool reached = caps_.receives_any() || caps_.is_target();
  const auto counter = [this](size_t kind) {
    return counters_[kind] == nullptr ? nullptr : &counters_[kind]->backend();
  };
  return {.tx_cq = caps_.transmits() ? &tx_cq_->backend() : nullptr,
          .rx_cq = reached ? &rx_cq->backend() : nullptr,
          .peers = &vector_->peers(),
          .name_senders = name_senders_,
          .refuse_strangers = refuse_strangers_,
          .tx_operations = tx_size_,
          .rx_operations = rx_size_,
          .contexts = ReceiveContexts(),
          .copy_limit_bytes =
              static_cast<uint32_t>(domain_->settings().bounce_limit),
          // A copied receive has its data only once its completion is read.
          .receives_in_buffer = (op_flags().tx & FI_DELIVERY_COMPLETE) != 0,
          .dscp = dscp_,
          .msg_order = msg_order_,
          .counters = {.send = counter(kSendCounter),
                       .receive = counter(kReceiveCounter),
                       .read = counter(kReadCounter),
                       .write = counter(kWriteCounter),
                       .remote_read = counter(kRemoteReadCounter),
                       .remote_write = counter(kRemoteWriteCounter)},
          .region_events = caps_.region_events && rx_cq_ != nullptr,
          .report_targets = rx_cq_ != nullptr,
          .owner_context = reinterpret_cast<uint64_t>(fid.context),
          .on_refused = [domain = domain_](Errno error, size_t bytes) {
            domain->LogRefusedMapping(error, bytes);
          }};
}

backend::ReceiveContexts Endpoint::ReceiveContexts() const noexcept {
  const core::Settings& settings = domain_->settings();
  return {.untagged = caps_.receives || caps_.is_target(),
          .matches = caps_.matches(),
          .tagged = caps_.tag_receives,
          .unexpected_bytes = core::UnexpectedBytes(settings.unexpected_bytes,
                                                    total_buffered_recv_),
          .unexpected_messages =
              static_cast<uint32_t>(settings.unexpected_messages),
          .copy_limit_bytes = static_cast<uint32_t>(settings.copy_limit)};
}

int Endpoint::Enable() {
  if (const int refused = CheckBindings(); refused != 0) {
    return refused;
  }
  const bool had_port = backend_ != nullptr;
  if (const int refused = ClaimPort(); refused != 0) {
    return refused;
  }
  auto enabled = backend_->Enable(BackendOptions());
  if (!enabled.ok()) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kEpCtrl,
              "endpoint at port %u: %s; the device has %zu transmit and %zu "
              "receive contexts",
              backend_->port(), domain_->Explain(enabled.error()).c_str(),
              domain_->device().profile().limits.tx_contexts,
              domain_->device().profile().limits.rx_contexts);
    if (!had_port) {
      backend_.reset();
    }
    return base::ToReturnCode(enabled.error());
  }
  UseQueues(
      {.transmit = {.context = backend_->transmit(),
                    .peers = &vector_->peers(),
                    .message_flags = kMessageFlags | op_flags().tx_offered |
                                     (caps_.fences ? FI_FENCE : 0),
                    .selective = tx_selective_,
                    .fence = fence_},
       .receive = {.context = backend_->receive(),
                   .tagged_context = backend_->tagged_receive(),
                   .selective = rx_selective_,
                   .directed = caps_.directed,
                   .multi_recv = caps_.multi_recv,
                   .min_multi_recv = receive().min_multi_recv},
       .path = &domain_->data_path(),
       .traits = {.locked = domain_->locked(), .caps = caps_}});
  for (EndpointAlias* alias : aliases_) {
    alias->UseQueues(queues());
  }
  enabled_ = true;
  base::Log(base::LogLevel::kDebug, base::LogSubsystem::kEpCtrl,
            "endpoint at port %u", backend_->port());
  return 0;
}

int Endpoint::SetName(const void* address, size_t length) {
  const auto wanted = base::SocketAddress::Read(address, length);
  if (!wanted.has_value()) {
    return -FI_EINVAL;
  }
  if (backend_ != nullptr) {
    return -FI_EOPBADSTATE;
  }
  if (!MayBind(*wanted, *domain_)) {
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
  const base::SocketAddress name =
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
  return caps_.receives_any() && backend_->Cancel(wanted) ? 0 : -FI_ENOENT;
}

int Endpoint::GetMinMultiRecv(void* value, size_t* length) const noexcept {
  if (!caps_.multi_recv) {
    return -FI_ENOPROTOOPT;
  }
  const size_t room = *length;
  const size_t bytes = receive().min_multi_recv;
  *length = sizeof(bytes);
  if (room < sizeof(bytes)) {
    return -FI_ETOOSMALL;
  }
  std::memcpy(value, &bytes, sizeof(bytes));
  return 0;
}

int Endpoint::SetMinMultiRecv(const void* value, size_t length) noexcept {
  if (!caps_.multi_recv) {
    return -FI_ENOPROTOOPT;
  }
  size_t bytes = 0;
  if (length != sizeof(bytes)) {
    return -FI_EINVAL;
  }
  std::memcpy(&bytes, value, sizeof(bytes));
  if (bytes > core::kMaxMessageBytes) {
    return -FI_EINVAL;
  }
  TransferHandle::SetMinMultiRecv(static_cast<uint32_t>(bytes));
  for (EndpointAlias* alias : aliases_) {
    alias->TransferHandle::SetMinMultiRecv(static_cast<uint32_t>(bytes));
  }
  return 0;
}

void Endpoint::Add(EndpointAlias* alias) {
  aliases_.push_back(alias);
  if (enabled_) {
    alias->UseQueues(queues());
  }
}

void Endpoint::Remove(EndpointAlias* alias) noexcept {
  std::erase(aliases_, alias);
}

int Endpoint::Add(MemoryRegion* region, uint32_t* number) {
  const std::lock_guard lock(mutex_);
  if (const int refused = ClaimPort(); refused != 0) {
    return refused;
  }
  regions_.push_back(region);
  *number = backend_->number();
  return 0;
}

void Endpoint::Remove(MemoryRegion* region) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(regions_, region);
}

void Endpoint::ReportFailure() noexcept {
  ofi::EventQueue* events =
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
  DisableCalls();
}

}  // namespace heddle::ofi
