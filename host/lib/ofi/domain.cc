// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/domain.h"

#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "host/lib/base/guard.h"
#include "host/lib/base/log.h"
#include "host/lib/base/refuse.h"
#include "host/lib/base/socket_address.h"
#include "host/lib/base/status.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/core/auth_key.h"
#include "host/lib/core/open_device.h"
#include "host/lib/core/traffic_class.h"
#include "host/lib/ofi/address_vector.h"
#include "host/lib/ofi/completion_queue.h"
#include "host/lib/ofi/counter.h"
#include "host/lib/ofi/data_path.h"
#include "host/lib/ofi/domain_open.h"
#include "host/lib/ofi/endpoint.h"
#include "host/lib/ofi/inherited_ops.h"
#include "host/lib/ofi/memory_region.h"
#include "host/lib/ofi/statistics.h"

namespace heddle::ofi {
namespace {

using base::LogLevel;
using base::LogSubsystem;

int CloseDomain(struct fid* handle) noexcept {
  return Domain::From(handle)->Close();
}

int BindDomain(struct fid* handle, struct fid* other, uint64_t flags) noexcept {
  return Domain::From(handle)->Bind(other, flags);
}

int OpenAddressVector(fid_domain* handle, fi_av_attr* attr, fid_av** vector,
                      void* context) noexcept {
  return base::Guard([&] {
    return AddressVector::Open(Domain::From(handle), attr, vector, context);
  });
}

int OpenCompletionQueue(fid_domain* handle, fi_cq_attr* attr, fid_cq** queue,
                        void* context) noexcept {
  return base::Guard([&] {
    return CompletionQueue::Open(Domain::From(handle), attr, queue, context);
  });
}

int OpenCounter(fid_domain* handle, fi_cntr_attr* attr, fid_cntr** counter,
                void* context) noexcept {
  return base::Guard([&] {
    return Counter::Open(Domain::From(handle), attr, counter, context);
  });
}

int OpenEndpoint(fid_domain* handle, fi_info* info, fid_ep** endpoint,
                 void* context) noexcept {
  return base::Guard([&] {
    return Endpoint::Open(Domain::From(handle), info, endpoint, context);
  });
}

// Flags of fi_endpoint2 are for peer providers, of which there are none.
int OpenEndpoint2(fid_domain* handle, fi_info* info, fid_ep** endpoint,
                  uint64_t flags, void* context) noexcept {
  return flags == 0 ? OpenEndpoint(handle, info, endpoint, context)
                    : -FI_EINVAL;
}

fi_ops domain_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseDomain,
    .bind = BindDomain,
    .control = base::RefuseControl,
    .ops_open = OpenDomainOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = OpenAddressVector,
    .cq_open = OpenCompletionQueue,
    .endpoint = OpenEndpoint,
    .scalable_ep = base::kNotImplemented,
    .cntr_open = OpenCounter,
    .poll_open = base::kNotImplemented,
    .stx_ctx = base::kNotImplemented,
    .srx_ctx = base::kNotImplemented,
    .query_atomic = base::kNotImplemented,
    .query_collective = base::kNotImplemented,
    .endpoint2 = OpenEndpoint2,
};

bool NeedsLocks(fi_threading threading) {
  return threading != FI_THREAD_COMPLETION && threading != FI_THREAD_DOMAIN;
}

}  // namespace

Domain::Domain(ofi::Fabric* fabric, const fi_info& info, bool function,
               void* context)
    : fid_domain{},
      fabric_(fabric),
      settings_(core::GetSettings()),
      own_addresses_(function ? core::WireReach::kNetwork
                              : core::SimulatedReach(settings_),
                     settings_.ip, core::ReadInterfaces()),
      api_version_(info.fabric_attr != nullptr
                       ? info.fabric_attr->api_version
                       : FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)),
      av_type_(info.domain_attr->av_type),
      locked_(NeedsLocks(info.domain_attr->threading)),
      region_mode_(RegionMode::Of(info.domain_attr->mr_mode)),
      job_id_(settings_.job_id) {
  fid = {.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &domain_fid_ops};
  ops = &domain_ops;
  mr = &domain_mr_ops;
  fabric_->users().Add();
}

Domain::~Domain() {
  if (event_queue_ != nullptr) {
    event_queue_->RemoveUser(progressors_);
  }
  for (std::unique_ptr<ServiceEndpoint>& service : services_) {
    users_.Add(ServiceEndpoint::kUsers);
    service.reset();
  }
  fabric_->users().Remove();
}

int Domain::Open(ofi::Fabric* fabric, const fi_info* info, fid_domain** domain,
                 void* context) {
  if (info == nullptr || info->domain_attr == nullptr ||
      info->domain_attr->name == nullptr) {
    return -FI_EINVAL;
  }
  struct Deleter {
    void operator()(Domain* doomed) const { delete doomed; }
  };
  const bool function = core::IsFunctionName(info->domain_attr->name);
  std::unique_ptr<Domain, Deleter> opened(
      new Domain(fabric, *info, function, context));
  int result = opened->ReadService(*info->domain_attr);
  if (result == 0) {
    result = opened->OpenDevice(*info);
  }
  if (result == 0) {
    opened->known_.emplace(opened.get(), fabric, info->domain_attr->name,
                           opened->address_);
    *domain = opened.release();
  }
  return result;
}

int Domain::ReadService(const fi_domain_attr& attr) noexcept {
  // Fields that came after the application's version are not looked at.
  if (FI_VERSION_GE(api_version_, FI_VERSION(1, 5)) &&
      attr.auth_key_size != 0) {
    const auto key = core::JobIdOf(attr.auth_key, attr.auth_key_size);
    if (!key.has_value()) {
      return -FI_EINVAL;
    }
    job_id_ = *key;
  }
  if (FI_VERSION_GE(api_version_, FI_VERSION(1, 9)) &&
      attr.tclass != FI_TC_UNSPEC) {
    traffic_class_ = attr.tclass;
  }
  return core::DscpOf(traffic_class_).has_value() ? 0 : -FI_EINVAL;
}

int Domain::OpenDevice(const fi_info& info) {
  core::OpenedDevice opened;
  const int result = core::OpenDevice(
      info.domain_attr->name,
      base::SocketAddress::Read(info.src_addr, info.src_addrlen), settings_,
      own_addresses_, &opened);
  if (result != 0) {
    return result;
  }
  device_ = std::move(opened.device);
  device_->WatchFailure(
      [](void* cookie) {
        auto* domain = static_cast<Domain*>(cookie);
        domain->failed_.store(true, std::memory_order_release);
        domain->AlertQueues();
      },
      this);
  address_ = opened.address;
  if (backend::Progressor* progressor = device_->progressor()) {
    progressors_.Add(progressor);
  }
  data_path_ = FindDataPath(device_->backend());
  if (data_path_ == nullptr) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kDomain,
              "domain %s: no data path of backend %s was added",
              info.domain_attr->name, device_->backend().name);
    return -FI_ENOSYS;
  }
  return 0;
}

std::string Domain::Explain(Errno error) const {
  return error == Errno{ENOMEM} ? device_->Explain(error, 0)
                                : std::strerror(static_cast<int>(error));
}

void Domain::LogRefusedMapping(Errno error, size_t bytes) noexcept {
  if (refusal_logged_.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  try {
    base::Log(
        base::LogLevel::kWarn, base::LogSubsystem::kMr,
        "domain %s: an operation was refused (later ones are not logged): %s",
        device_->name().c_str(), device_->Explain(error, bytes).c_str());
  } catch (const std::bad_alloc&) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kMr,
              "an operation was refused: mapping its memory for the device: %s",
              std::strerror(static_cast<int>(error)));
  }
}

int Domain::TakeKey(uint64_t requested, uint64_t* key) {
  const std::lock_guard lock(mutex_);
  *key = requested;
  do {
    if (region_mode_.provider_key &&
        getrandom(key, sizeof(*key), 0) != ssize_t{sizeof(*key)}) {
      return -FI_ENOKEY;
    }
    if (keys_.insert(*key).second) {
      return 0;
    }
  } while (region_mode_.provider_key);
  return -FI_ENOKEY;
}

void Domain::ReturnKey(uint64_t key) noexcept {
  const std::lock_guard lock(mutex_);
  keys_.erase(key);
}

void Domain::Add(Endpoint* endpoint) {
  const std::lock_guard lock(mutex_);
  endpoints_.push_back(endpoint);
  users_.Add();
}

void Domain::Remove(Endpoint* endpoint) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(endpoints_, endpoint);
  users_.Remove();
}

void Domain::Add(CompletionQueue* queue) {
  const std::lock_guard lock(queues_mutex_);
  queues_.push_back(queue);
  if (progressors_.needed() || failed()) {
    queue->backend().Alert();
  }
}

void Domain::Remove(CompletionQueue* queue) noexcept {
  const std::lock_guard lock(queues_mutex_);
  std::erase(queues_, queue);
}

void Domain::AlertQueues() noexcept {
  const std::lock_guard lock(queues_mutex_);
  for (CompletionQueue* queue : queues_) {
    queue->backend().Alert();
  }
}

void Domain::ReportFailure() noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_reported_) {
    return;
  }
  failure_reported_ = true;
  base::Log(base::LogLevel::kWarn, base::LogSubsystem::kDomain,
            "device %s failed: %s; outstanding operations complete in error; "
            "open a new domain",
            device_->name().c_str(), device_->failure().c_str());
  for (Endpoint* endpoint : endpoints_) {
    endpoint->ReportFailure();
  }
}

int Domain::Bind(struct fid* other, uint64_t flags) noexcept {
  if (other->fclass != FI_CLASS_EQ || event_queue_ != nullptr) {
    return -FI_EINVAL;
  }
  // Regions are registered synchronously only.
  if (flags != 0) {
    return (flags & ~FI_REG_MR) == 0 ? -FI_ENOSYS : -FI_EBADFLAGS;
  }
  ofi::EventQueue* queue = ofi::EventQueue::From(other);
  const int result = queue->AddUser(progressors_);
  event_queue_ = result == 0 ? queue : nullptr;
  return result;
}

int Domain::OpenService(const ServiceEndpoint::Options& options,
                        ServiceEndpoint::Handler* handler,
                        ServiceEndpoint** service) {
  std::unique_ptr<ServiceEndpoint> opened;
  const int result = ServiceEndpoint::Open(this, options, handler, &opened);
  if (result != 0) {
    return result;
  }
  const std::lock_guard lock(mutex_);
  *service = services_.emplace_back(std::move(opened)).get();
  progressors_.Add((*service)->progressor());
  AlertQueues();
  users_.Remove(ServiceEndpoint::kUsers);  // It keeps no domain open.
  return 0;
}

void Domain::Hide(Endpoint* endpoint) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(endpoints_, endpoint);
}

int Domain::Close() noexcept {
  if (users_.in_use()) {
    return -FI_EBUSY;
  }
  delete this;
  return 0;
}

int OpenDomain(fid_fabric* fabric, fi_info* info, uint64_t flags,
               fid_domain** domain, void* context) noexcept {
  // Source: fi_domain(3), FI_PEER imports a domain of another provider.
  if (flags != 0) {
    return -FI_EINVAL;
  }
  return base::Guard([&] {
    return Domain::Open(ofi::Fabric::From(fabric), info, domain, context);
  });
}

void Domain::Disinherit() noexcept {
  fid.ops = &inherited_fid_ops;
  ops = &inherited_domain_ops;
  mr = &inherited_mr_ops;
}

}  // namespace heddle::ofi
