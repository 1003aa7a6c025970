// SPDX-License-Identifier: Apache-2.0
// The memory region object (fid_mr).
#pragma once

#include <rdma/fi_domain.h>

#include <array>
#include <cstdint>
#include <memory>

#include "host/lib/core/limits.h"
#include "host/lib/nic/region.h"
#include "host/lib/nic/remote_access.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/fork_guard.h"

namespace heddle::ofi {

class Counter;
class Endpoint;

extern fi_ops_mr domain_mr_ops;

// Memory that stays mapped for the device until closed, so that operations
// which name it by its descriptor copy nothing, and that peers may reach, if
// they have its key and it was registered for that.
//
// A region that peers may reach has one entry of the device's from the moment
// that it is enabled until it is closed; no peer's operation touches the memory
// afterwards.
//
// Thread safety: immutable once enabled; binding, enabling and closing are the
// application's to serialize.
// Ownership: the application, until fi_close.
class MemoryRegion final : public fid_mr, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Register(Domain* domain, const fi_mr_attr& attr, uint64_t flags,
                      fid_mr** region);

  static MemoryRegion* From(struct fid* handle) noexcept {
    return base::FromFid<MemoryRegion, fid_mr>(handle);
  }

  // Data path: the part that holds [address, address + bytes) of a region
  // given by its descriptor. Null for a null descriptor; any part, which the
  // post then refuses, when none holds it.
  static const nic::Region* Find(const void* descriptor, const void* address,
                                 size_t bytes) noexcept {
    if (descriptor == nullptr) {
      return nullptr;
    }
    const auto* region = static_cast<const MemoryRegion*>(descriptor);
    size_t i = 0;
    while (i + 1 < region->part_count_ &&
           !region->parts_[i].Covers(address, bytes)) {
      ++i;
    }
    return &region->parts_[i];
  }

  // Data path: the part of a region that has one only; null for a null
  // descriptor and for the others.
  static const nic::Region* Only(const void* descriptor) noexcept {
    const auto* region = static_cast<const MemoryRegion*>(descriptor);
    return region != nullptr && region->part_count_ == 1 ? region->parts_.data()
                                                         : nullptr;
  }

  // The calls of fi_mr(3), which defines their results. `Bind` and `Enable`
  // throw std::bad_alloc.
  int Bind(struct fid* other, uint64_t flags);
  int Enable();
  // Answers when the memory is touched no more.
  int Close() noexcept;

  // The endpoint that the region serves ends: so does the access.
  void LoseEndpoint() noexcept;

 private:
  void Disinherit() noexcept override;

  explicit MemoryRegion(Domain* domain) : fid_mr{}, domain_(domain) {}
  ~MemoryRegion();

  // Each answers 0 or a negative errno.
  int MapParts(const fi_mr_attr& attr);
  int ReadService(const fi_mr_attr& attr, uint64_t flags) noexcept;
  int ChooseKey(uint64_t requested);
  int BindEndpoint(Endpoint* endpoint, uint64_t flags);
  int BindCounter(Counter* counter, uint64_t flags);
  int Grant();

  size_t part_count_ = 0;
  std::array<nic::Region, core::kMrIovLimit> parts_;
  // Above: every post. Below: cold.
  Domain* domain_;
  uint64_t start_ = 0;  // What peers may reach, with `rights_`.
  uint64_t bytes_ = 0;
  uint8_t rights_ = 0;     // `contract::kRegionFlagRemote*`.
  bool own_key_ = false;   // `key` is taken in the domain.
  bool deferred_ = false;  // Begins disabled, until fi_mr_enable.
  bool has_job_ = false;
  uint32_t job_id_ = 0;
  Endpoint* endpoint_ = nullptr;
  uint32_t endpoint_number_ = 0;
  Counter* counter_ = nullptr;
  nic::RemoteAccess access_;
};

}  // namespace heddle::ofi
