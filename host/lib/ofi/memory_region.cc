// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/memory_region.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>

#include "host/lib/base/guard.h"
#include "host/lib/base/log.h"
#include "host/lib/base/status.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/core/auth_key.h"
#include "host/lib/core/offered_caps.h"
#include "host/lib/ofi/counter.h"
#include "host/lib/ofi/endpoint.h"
#include "host/lib/ofi/inherited_ops.h"
#include "hw/contract/split_number.h"

namespace heddle::ofi {
namespace {

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
    result = made->MapParts(attr);
  }
  if (result == 0) {
    result = made->ChooseKey(attr.requested_key);
  }
  if (result == 0 && made->rights_ != 0 && !made->deferred_) {
    result = made->Grant();
  }
  if (result != 0) {
    return result;
  }
  made->fid = {
      .fclass = FI_CLASS_MR, .context = attr.context, .ops = &region_fid_ops};
  made->mem_desc = made.get();
  domain->users().Add();
  *region = made.release();
  return 0;
}

MemoryRegion::~MemoryRegion() {
  if (!access_.End()) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kMr,
              "region of key %#" PRIx64 ": %s", key,
              domain_->nic().admin().failure().c_str());
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
  const DeviceInfo& device = domain_->nic().info();
  // Source: fi_mr(3), FI_RMA_EVENT: the region may be bound to a counter.
  const uint64_t known =
      device.Has(contract::kCapabilityRegionEvent) ? FI_RMA_EVENT : 0;
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
    has_job_ = true;
    job_id_ = *job;
  }
  if (FI_VERSION_GE(version, FI_VERSION(1, 10)) &&
      attr.iface != FI_HMEM_SYSTEM) {
    return -FI_ENOSYS;
  }
  // A device without remote memory access knows no regions.
  if (core::OfferedCaps(device.capability).rma()) {
    rights_ |= (attr.access & FI_REMOTE_READ) != 0
                   ? contract::kRegionFlagRemoteRead
                   : 0;
    rights_ |= (attr.access & FI_REMOTE_WRITE) != 0
                   ? contract::kRegionFlagRemoteWrite
                   : 0;
  }
  deferred_ = rights_ != 0 &&
              (domain_->region_mode().endpoint ||
               (domain_->region_mode().event && (flags & FI_RMA_EVENT) != 0));
  return 0;
}

int MemoryRegion::MapParts(const fi_mr_attr& attr) {
  std::array<iovec, core::kMrIovLimit> parts = {};
  std::copy_n(attr.mr_iov, attr.iov_count, parts.begin());
  part_count_ = attr.iov_count;
  if (rights_ != 0) {
    // Peers see one range of addresses.
    for (size_t i = 1; i < attr.iov_count; ++i) {
      const auto end =
          reinterpret_cast<uintptr_t>(parts[0].iov_base) + parts[0].iov_len;
      if (reinterpret_cast<uintptr_t>(parts[i].iov_base) != end) {
        base::Log(base::LogLevel::kWarn, base::LogSubsystem::kMr,
                  "region of %zu parts: memory that peers may reach has to be "
                  "contiguous; register each part by itself",
                  attr.iov_count);
        return -FI_EINVAL;
      }
      parts[0].iov_len += parts[i].iov_len;
    }
    part_count_ = 1;
  }
  for (size_t i = 0; i < part_count_; ++i) {
    auto part = nic::Region::Create(domain_->nic().device(), parts[i].iov_base,
                                    parts[i].iov_len);
    if (!part.ok()) {
      base::Log(base::LogLevel::kWarn, base::LogSubsystem::kMr, "region: %s",
                domain_->nic()
                    .device()
                    .Explain(part.error(), parts[i].iov_len)
                    .c_str());
      return base::ToReturnCode(part.error());
    }
    parts_[i] = std::move(part.value());
  }
  start_ = reinterpret_cast<uint64_t>(parts[0].iov_base);
  bytes_ = parts[0].iov_len;
  return 0;
}

int MemoryRegion::ChooseKey(uint64_t requested) {
  if (rights_ != 0 && domain_->region_mode().provider_key) {
    key = FI_KEY_NOTAVAIL;  // The device's, when it is enabled.
    return 0;
  }
  if (rights_ != 0 && requested >> contract::kKeyUserBits != 0) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kMr,
              "key %#" PRIx64
              ": memory that peers may reach has keys of at "
              "most %u bits (domain_attr->mr_key_size), or the device's own "
              "with FI_MR_PROV_KEY",
              requested, static_cast<unsigned>(contract::kKeyUserBits));
    return -FI_EINVAL;
  }
  const int result = domain_->TakeKey(requested, &key);
  own_key_ = result == 0;
  return result;
}

int MemoryRegion::Grant() {
  const RegionMode& mode = domain_->region_mode();
  const bool provider_key = mode.provider_key;
  const uint32_t job = has_job_               ? job_id_
                       : endpoint_ != nullptr ? endpoint_->job_id()
                                              : domain_->job_id();
  const auto flag = [](bool set, uint8_t bit) {
    return set ? bit : uint8_t{0};
  };
  const uint16_t counter =
      counter_ == nullptr ? uint16_t{0} : counter_->backend().reference();
  const contract::AdminRegisterRegion command = {
      .endpoint = endpoint_ != nullptr ? endpoint_number_ : 0,
      .iova = ToInteger(parts_[0].iova_of(
          reinterpret_cast<const void*>(start_))),  // NOLINT: as registered.
      .length = bytes_,
      .address_base = mode.virtual_address ? start_ : 0,
      .key = provider_key ? 0 : key,
      .job_id = job,
      .flags = static_cast<uint8_t>(
          rights_ | flag(endpoint_ != nullptr, contract::kRegionFlagEndpoint) |
          flag(provider_key, contract::kRegionFlagProviderKey)),
      .counter = contract::LowByte(counter),
      .counter_high = contract::HighByte(counter)};
  auto access = nic::RemoteAccess::Grant(domain_->nic(), command);
  if (access.ok()) {
    access_ = std::move(access.value());
    key = access_.key();
    return 0;
  }
  if (static_cast<int>(access.error()) != ENOSPC) {
    return base::ToReturnCode(access.error());
  }
  base::Log(base::LogLevel::kWarn, base::LogSubsystem::kMr,
            "region: the device has %u entries for memory that peers may "
            "reach, and none is left%s; close regions, or register larger ones",
            domain_->nic().info().counts.regions,
            provider_key ? ""
                         : " where a key like this one may be (keys of the "
                           "device's choice, FI_MR_PROV_KEY, may be anywhere)");
  return -FI_ENOMEM;
}

int MemoryRegion::Bind(struct fid* other, uint64_t flags) {
  if (deferred_ && access_.granted()) {
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
  if (counter_ != nullptr || rights_ == 0 ||
      !domain_->nic().info().Has(contract::kCapabilityRegionEvent)) {
    return -FI_EINVAL;
  }
  counter_ = counter;
  counter->users().Add();
  if (!access_.granted()) {
    return 0;
  }
  // Without FI_MR_RMA_EVENT the region is in use already; the device takes its
  // counter with the region only. A key that it chooses changes by this.
  (void)access_.End();
  return Grant();
}

int MemoryRegion::Enable() {
  if (!deferred_) {
    return 0;
  }
  if (access_.granted() ||
      (domain_->region_mode().endpoint && endpoint_ == nullptr)) {
    return -FI_EOPBADSTATE;
  }
  return Grant();
}

void MemoryRegion::LoseEndpoint() noexcept {
  (void)access_.End();
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
