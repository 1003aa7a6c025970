// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/domain.h"

#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "host/lib/base/guard.h"
#include "host/lib/base/log.h"
#include "host/lib/base/refuse.h"
#include "host/lib/base/status.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/core/address.h"
#include "host/lib/core/auth_key.h"
#include "host/lib/core/traffic_class.h"
#include "host/lib/nic/functions.h"
#include "host/lib/ofi/address_vector.h"
#include "host/lib/ofi/completion_queue.h"
#include "host/lib/ofi/counter.h"
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

// Device kind of a domain name: "rtl0" is the first "rtl".
std::string DeviceKind(const char* name) {
  std::string_view kind(name);
  while (!kind.empty() && kind.back() >= '0' && kind.back() <= '9') {
    kind.remove_suffix(1);
  }
  return std::string(kind);
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
    event_queue_->users().Remove();
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
  const bool function = nic::FunctionName(info->domain_attr->name).has_value();
  std::unique_ptr<Domain, Deleter> opened(
      new Domain(fabric, *info, function, context));
  int result = opened->ReadService(*info->domain_attr);
  if (result == 0) {
    result = opened->OpenDevice(*info);
  }
  if (result == 0) {
    opened->departure_.emplace(
        *opened->nic_, std::chrono::nanoseconds(opened->settings_.rto_ns));
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
  const char* name = info.domain_attr->name;
  const auto source =
      core::SocketAddress::Read(info.src_addr, info.src_addrlen);
  const auto function = nic::FunctionName(name);
  int result = function.has_value() ? OpenFunction(*function) : 0;
  if (result == 0) {
    result = ChooseAddress(source);
  }
  if (result == 0 && !function.has_value()) {
    result = OpenSimulated(name);
  }
  if (result != 0) {
    return result;
  }
  if (relative() && !nic_->info().Has(contract::kCapabilityRelative)) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kDomain,
              "domain %s: the device has no relative addressing; unset "
              "FI_HEDDLE_ADDRESSING here and at all peers",
              name);
    return -FI_EOPNOTSUPP;
  }
  base::Log(base::LogLevel::kInfo, base::LogSubsystem::kDomain,
            "domain %s: address %s, wire '%s', %u transmit and %u receive "
            "contexts, %u completion queues",
            name, address_.IpText().c_str(), settings_.wire.c_str(),
            nic_->info().counts.tx_contexts, nic_->info().counts.rx_contexts,
            nic_->info().counts.completion_queues);
  return 0;
}

// That of the function, else the source that was asked for, else the host's.
int Domain::ChooseAddress(const std::optional<core::SocketAddress>& source) {
  std::optional<core::SocketAddress> own;
  if (nic_ != nullptr) {
    const auto ip = nic_->QueryIp();
    if (!ip.ok()) {
      return base::ToReturnCode(ip.error());
    }
    own = core::SocketAddress::FromText(ip.value());
  }
  if (source.has_value() && !source->is_any()) {
    const core::SocketAddress named =
        own_addresses_.OnWire(*source).WithPort(0);
    if (own.has_value() && named != *own) {
      base::Log(base::LogLevel::kWarn, base::LogSubsystem::kDomain,
                "source address %s is not that of the function, %s",
                source->IpText().c_str(), own->IpText().c_str());
      return -FI_EADDRNOTAVAIL;
    }
    own = named;
  } else if (!own.has_value()) {
    own = own_addresses_.Own(source.has_value() ? int{source->family()}
                                                : AF_UNSPEC);
  }
  if (!own.has_value()) {
    return -FI_EADDRNOTAVAIL;
  }
  address_ = *own;
  return 0;
}

int Domain::OpenSimulated(const char* name) {
  std::string message;
  return Take(nic::Nic::Open(DeviceKind(name),
                             {.path = settings_.sim_path,
                              .settings = core::SimulatorOptionsOf(
                                  settings_, address_.IpText())},
                             message),
              name, message, base::LogLevel::kWarn);
}

int Domain::OpenFunction(const std::string& name) {
  std::string message;
  auto opened = nic::Nic::OpenFunction(name, settings_.vf_token, message);
  // The application goes on to the next of those that it was offered.
  const bool others = !opened.ok() && opened.error() == Errno{EBUSY} &&
                      settings_.device.function.empty() &&
                      nic::HasAnotherFunction(name);
  const int result =
      Take(std::move(opened), name.c_str(), message,
           others ? base::LogLevel::kInfo : base::LogLevel::kWarn);
  if (result != 0) {
    return result;
  }
  if (const std::string idle = core::SetForSimulatorsOnly(settings_);
      !idle.empty()) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kDomain,
              "domain %s: ignored: %s (simulated devices only)", name.c_str(),
              idle.c_str());
  }
  const core::Settings defaults;
  if (settings_.rto_ns == defaults.rto_ns &&
      settings_.dead_ns == defaults.dead_ns) {
    return 0;
  }
  const auto set =
      nic_->admin().SetTiming(std::chrono::nanoseconds(settings_.rto_ns),
                              std::chrono::nanoseconds(settings_.dead_ns));
  if (!set.ok()) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kDomain,
              "domain %s: FI_HEDDLE_RTO_NS or FI_HEDDLE_DEAD_NS: %s",
              name.c_str(),
              static_cast<int>(set.error()) == EINVAL
                  ? "longer than the function can measure"
                  : Explain(set.error()).c_str());
    return base::ToReturnCode(set.error());
  }
  return 0;
}

int Domain::Take(Result<std::unique_ptr<nic::Nic>> opened, const char* name,
                 const std::string& message, base::LogLevel level) {
  if (!opened.ok()) {
    base::Log(level, base::LogSubsystem::kDomain, "domain %s: %s", name,
              message.c_str());
    return base::ToReturnCode(opened.error());
  }
  nic_ = std::move(opened.value());
  return 0;
}

std::string Domain::Explain(Errno error) const {
  return error == Errno{ENOMEM} ? nic_->device().Explain(error, 0)
                                : std::strerror(static_cast<int>(error));
}

void Domain::LogRefusedMapping(Errno error, size_t bytes) noexcept {
  if (refusal_logged_.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  try {
    const Device& device = nic_->device();
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kMr,
              "domain %s: an operation was refused, later ones are without a "
              "word: %s",
              device.name().c_str(), device.Explain(error, bytes).c_str());
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

void Domain::ReportFailure() noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_reported_) {
    return;
  }
  failure_reported_ = true;
  base::Log(base::LogLevel::kWarn, base::LogSubsystem::kDomain,
            "device %s failed: %s; what is outstanding completes in error; "
            "open a new domain",
            nic_->device().name().c_str(), nic_->device().failure().c_str());
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
  event_queue_ = ofi::EventQueue::From(other);
  event_queue_->users().Add();
  return 0;
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
