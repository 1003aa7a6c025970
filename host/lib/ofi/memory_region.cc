// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/memory_region.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>

#include "host/lib/base/guard.h"
#include "host/lib/base/log.h"
#include "host/lib/base/status.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/core/auth_key.h"
#include "host/lib/core/limits.h"
#include "host/lib/ofi/counter.h"
#include "host/lib/ofi/endpoint.h"
#include "host/lib/ofi/inherited_ops.h"

namespace heddle::ofi {
namespace {

constexpr unsigned kKeyUserBits = 8 * core::kMrUserKeyBytes;
constexpr uint64_t kAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

int CloseRegion(struct fid* handle) noexcept {
  return MemoryRegion::From(handle)->Close();
}

int RegisterAttr(struct fid* handle, const fi_mr_attr* attr, uint64_t flags,
                 fid_mr** region) noexcept {
  return base::Guard([&] {
    return MemoryRegion::Register(Domain::From(handle), *attr, flags, region);
  });
}

// The two calls have the API's parameters.
// NOLINTBEGIN(readability-function-size)
int RegisterVector(struct fid* handle, const iovec* parts, size_t count,
                   uint64_t access, uint64_t offset, uint64_t requested_key,
                   uint64_t flags, fid_mr** region, void* context) noexcept {
  fi_mr_attr attr = {};
  attr.mr_iov = parts;
  attr.iov_count = count;
  attr.access = access;
  attr.offset = offset;
  attr.requested_key = requested_key;
  attr.context = context;
  return RegisterAttr(handle, &attr, flags, region);
}

int RegisterBuffer(struct fid* handle, const void* buffer, size_t bytes,
                   uint64_t access, uint64_t offset, uint64_t requested_key,
                   uint64_t flags, fid_mr** region, void* context) noexcept {
  const iovec part = {.iov_base = const_cast<void*>(buffer), .iov_len = bytes};
  return RegisterVector(handle, &part, 1, access, offset, requested_key, flags,
                        region, context);
}
// NOLINTEND(readability-function-size)

int BindRegion(struct fid* handle, struct fid* other, uint64_t flags) noexcept {
  return base::Guard(
      [&] { return MemoryRegion::From(handle)->Bind(other, flags); });
}

// fi_mr_enable.
int ControlRegion(struct fid* handle, int command,
                  void* /*argument*/) noexcept {
  return command == FI_ENABLE
             ? base::Guard([&] { return MemoryRegion::From(handle)->Enable(); })
             : -FI_ENOSYS;
}

fi_ops region_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseRegion,
    .bind = BindRegion,
    .control = ControlRegion,
    .ops_open = base::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

}  // namespace

fi_ops_mr domain_mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = RegisterBuffer,
    .regv = RegisterVector,
    .regattr = RegisterAttr,
};

int MemoryRegion::Register(Domain* domain, const fi_mr_attr& attr,
                           uint64_t flags, fid_mr** region) {
  if (attr.mr_iov == nullptr || attr.iov_count == 0 ||
      attr.iov_count > core::kMrIovLimit || (attr.access & ~kAccess) != 0) {
    return -FI_EINVAL;
  }
  struct Deleter {
    void operator()(MemoryRegion* doomed) const { delete doomed; }
  };
  std::unique_ptr<MemoryRegion, Deleter> made(new MemoryRegion(domain));
  int result = made->ReadService(attr, flags);
  if (result == 0) {
    result = made->Map(attr);
  }
  if (result == 0) {
    result = made->ChooseKey(attr.requested_key);
  }
  if (result == 0 && made->is_target() && !made->deferred_) {
    result = made->Grant();
  }
  if (result != 0) {
    return result;
  }
  made->fid = {
      .fclass = FI_CLASS_MR, .context = attr.context, .ops = &region_fid_ops};
  made->mem_desc = made->backend_.get();
  domain->users().Add();
  *region = made.release();
  return 0;
}

MemoryRegion::~MemoryRegion() {
  if (backend_ != nullptr && !backend_->Revoke()) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kMr,
              "region of key %#" PRIx64 ": device %s did not answer: %s", key,
              domain_->device().name().c_str(),
              domain_->device().failure().c_str());
  }
  if (own_key_) {
    domain_->ReturnKey(key);
  }
  if (endpoint_ != nullptr) {
    endpoint_->Remove(this);
  }
  if (counter_ != nullptr) {
    counter_->users().Remove();
  }
}

int MemoryRegion::ReadService(const fi_mr_attr& attr, uint64_t flags) noexcept {
  const backend::DeviceCapabilities& device = domain_->device().profile().has;
  // Source: fi_mr(3), FI_RMA_EVENT: the region may be bound to a counter.
  const uint64_t known = device.region_events ? FI_RMA_EVENT : 0;
  if ((flags & ~known) != 0) {
    return -FI_EBADFLAGS;
  }
  const uint32_t version = domain_->api_version();
  // Fields that came after the application's version are not looked at.
  if (FI_VERSION_GE(version, FI_VERSION(1, 5)) && attr.auth_key_size != 0) {
    const auto job = core::JobIdOf(attr.auth_key, attr.auth_key_size);
    if (!job.has_value()) {
      return -FI_EINVAL;
    }
    job_id_ = *job;
  }
  if (FI_VERSION_GE(version, FI_VERSION(1, 10)) &&
      attr.iface != FI_HMEM_SYSTEM) {
    return -FI_ENOSYS;
  }
  // A device without remote memory access has no regions.
  is_read_ = device.rma() && (attr.access & FI_REMOTE_READ) != 0;
  is_written_ = device.rma() && (attr.access & FI_REMOTE_WRITE) != 0;
  deferred_ = is_target() &&
              (domain_->region_mode().endpoint ||
               (domain_->region_mode().event && (flags & FI_RMA_EVENT) != 0));
  return 0;
}

int MemoryRegion::Map(const fi_mr_attr& attr) {
  std::array<iovec, core::kMrIovLimit> parts = {};
  std::copy_n(attr.mr_iov, attr.iov_count, parts.begin());
  size_t count = attr.iov_count;
  if (is_target()) {
    // Peers see one range of addresses.
    for (size_t i = 1; i < attr.iov_count; ++i) {
      const auto end =
          reinterpret_cast<uintptr_t>(parts[0].iov_base) + parts[0].iov_len;
      if (reinterpret_cast<uintptr_t>(parts[i].iov_base) != end) {
        base::Log(base::LogLevel::kWarn, base::LogSubsystem::kMr,
                  "region of %zu parts: memory that peers may access must be "
                  "contiguous; register each part by itself",
                  attr.iov_count);
        return -FI_EINVAL;
      }
      parts[0].iov_len += parts[i].iov_len;
    }
    count = 1;
  }
  size_t refused_bytes = 0;
  auto registered =
      domain_->device().Register({parts.data(), count}, &refused_bytes);
  if (!registered.ok()) {
    base::Log(
        base::LogLevel::kWarn, base::LogSubsystem::kMr, "region: %s",
        domain_->device().Explain(registered.error(), refused_bytes).c_str());
    return base::ToReturnCode(registered.error());
  }
  backend_ = std::move(registered.value());
  start_ = reinterpret_cast<uint64_t>(parts[0].iov_base);
  return 0;
}

int MemoryRegion::ChooseKey(uint64_t requested) {
  if (is_target() && domain_->region_mode().provider_key) {
    key = FI_KEY_NOTAVAIL;  // The device's, when it is enabled.
    return 0;
  }
  if (is_target() && requested >> kKeyUserBits != 0) {
    base::Log(
        base::LogLevel::kWarn, base::LogSubsystem::kMr,
        "key %#" PRIx64
        ": memory that peers may access has keys of at most %u bits "
        "(domain_attr->mr_key_size), or the device's own with FI_MR_PROV_KEY",
        requested, kKeyUserBits);
    return -FI_EINVAL;
  }
  const int result = domain_->TakeKey(requested, &key);
  own_key_ = result == 0;
  return result;
}

int MemoryRegion::Grant() {
  const RegionMode& mode = domain_->region_mode();
  backend::Region::Access access = {
      .read = is_read_,
      .write = is_written_,
      .address_base = mode.virtual_address ? start_ : 0,
      .key = mode.provider_key ? std::nullopt : std::optional(key),
      .job_id = job_id_.value_or(endpoint_ != nullptr ? endpoint_->job_id()
                                                      : domain_->job_id()),
      .endpoint = std::nullopt,
      .counter = counter_ == nullptr ? nullptr : &counter_->backend()};
  if (endpoint_ != nullptr) {
    access.endpoint = endpoint_number_;
  }
  const auto granted = backend_->Grant(access);
  if (granted.ok()) {
    key = granted.value();
    return 0;
  }
  if (static_cast<int>(granted.error()) != ENOSPC) {
    return base::ToReturnCode(granted.error());
  }
  base::Log(
      base::LogLevel::kWarn, base::LogSubsystem::kMr,
      "region: the device has %zu entries for memory that peers may access, "
      "and none is free%s; close regions, or register larger ones",
      domain_->device().profile().limits.regions,
      mode.provider_key
          ? ""
          : " where a key like this one may be (keys of the device's "
            "choice, FI_MR_PROV_KEY, may be anywhere)");
  return -FI_ENOMEM;
}

int MemoryRegion::Bind(struct fid* other, uint64_t flags) {
  if (deferred_ && backend_->granted()) {
    return -FI_EOPBADSTATE;
  }
  switch (other->fclass) {
    case FI_CLASS_EP:
      return BindEndpoint(&TransferHandle::From(other)->endpoint(), flags);
    case FI_CLASS_CNTR:
      return BindCounter(Counter::From(other), flags);
    default:
      return -FI_EINVAL;
  }
}

int MemoryRegion::BindEndpoint(Endpoint* endpoint, uint64_t flags) {
  if (flags != 0) {
    return -FI_EBADFLAGS;
  }
  if (endpoint->domain() != domain_) {
    return -FI_EDOMAIN;
  }
  // Without FI_MR_ENDPOINT a region serves all endpoints already.
  if (!domain_->region_mode().endpoint || endpoint_ != nullptr) {
    return -FI_EINVAL;
  }
  const int result = endpoint->Add(this, &endpoint_number_);
  endpoint_ = result == 0 ? endpoint : nullptr;
  return result;
}

int MemoryRegion::BindCounter(Counter* counter, uint64_t flags) {
  // Source: fi_mr(3), the one flag that there is.
  if (flags != FI_REMOTE_WRITE) {
    return -FI_EBADFLAGS;
  }
  if (counter->domain() != domain_) {
    return -FI_EDOMAIN;
  }
  if (counter_ != nullptr || !is_target() ||
      !domain_->device().profile().has.region_events) {
    return -FI_EINVAL;
  }
  counter_ = counter;
  counter->users().Add();
  if (!backend_->granted()) {
    return 0;
  }
  // Without FI_MR_RMA_EVENT the region is in use already; the device takes its
  // counter with the region only. A key that it chooses changes by this.
  (void)backend_->Revoke();
  return Grant();
}

int MemoryRegion::Enable() {
  if (!deferred_) {
    return 0;
  }
  if (backend_->granted() ||
      (domain_->region_mode().endpoint && endpoint_ == nullptr)) {
    return -FI_EOPBADSTATE;
  }
  return Grant();
}

void MemoryRegion::LoseEndpoint() noexcept {
  (void)backend_->Revoke();
  endpoint_ = nullptr;
}

int MemoryRegion::Close() noexcept {
  Domain* const domain = domain_;
  delete this;
  domain->users().Remove();
  return 0;
}

void MemoryRegion::Disinherit() noexcept {
  fid.ops = &inherited_fid_ops;
}

}  // namespace heddle::ofi
