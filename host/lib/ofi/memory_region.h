// SPDX-License-Identifier: Apache-2.0
// The memory region object (fid_mr).
#pragma once

#include <rdma/fi_domain.h>

#include <array>
#include <cstdint>
#include <memory>

#include "host/lib/core/limits.h"
#include "host/lib/nic/region.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/fork_guard.h"

namespace heddle::ofi {

extern fi_ops_mr domain_mr_ops;

// Memory that stays mapped for the device until closed, so that operations
// which name it by its descriptor copy nothing.
//
// Thread safety: immutable. Ownership: the application, until fi_close.
class MemoryRegion final : public fid_mr, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Register(Domain* domain, const fi_mr_attr& attr, uint64_t flags,
                      fid_mr** region);

  static MemoryRegion* From(struct fid* handle) noexcept {
    return fabric::FromFid<MemoryRegion, fid_mr>(handle);
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

  int Close() noexcept;

 private:
  void Disinherit() noexcept override;

  explicit MemoryRegion(Domain* domain) : fid_mr{}, domain_(domain) {}

  size_t part_count_ = 0;
  std::array<nic::Region, core::kMrIovLimit> parts_;
  Domain* domain_;
};

}  // namespace heddle::ofi
