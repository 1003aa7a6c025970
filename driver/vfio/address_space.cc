// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/address_space.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace heddle::vfio {
namespace {

// Ranges of at least this keep their place in a huge page, so that the IOMMU
// can use entries of that size.
constexpr uint64_t kHugeBytes = uint64_t{2} << 20;

}  // namespace

AddressSpace::AddressSpace(Iommu& iommu)
    : iommu_(iommu), free_(iommu.limits().usable, iommu.limits().page_bytes) {}

AddressSpace::~AddressSpace() {
  while (!mapped_.empty()) {
    const auto [iova, mapping] = *mapped_.begin();
    if (!Unmap(Iova{iova}, mapping.bytes).ok()) {
      mapped_.erase(iova);  // The end of the IOMMU's descriptors ends it.
    }
  }
}

Result<Iova> AddressSpace::Map(void* address, size_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(address);
  const uint64_t page = free_.page_bytes();
  if (bytes == 0 || start + (bytes - 1) < start ||
      start + (bytes - 1) > UINT64_MAX - page) {
    return Errno{EINVAL};
  }
  const uint64_t first = start & ~(page - 1);
  const uint64_t last = (start + (bytes - 1)) | (page - 1);
  const uint64_t whole = last - first + 1;
  const uint64_t alignment = whole >= kHugeBytes ? kHugeBytes : page;

  const std::scoped_lock lock(mutex_);
  const std::optional<uint64_t> iova =
      free_.Take(whole, alignment, first & (alignment - 1));
  if (!iova) {
    return Errno{ENOSPC};
  }
  auto* const pages = static_cast<std::byte*>(address) - (start - first);
  const Result<bool> done = MapPages(pages, whole, *iova);
  if (!done.ok()) {
    free_.Return(*iova, whole);
    return done.error();
  }
  const uint64_t answer = *iova + (start - first);
  mapped_[answer] = {.pages_bytes = whole, .bytes = bytes, .reserved = false};
  pinned_bytes_ += whole;
  return Iova{answer};
}

Result<bool> AddressSpace::MapPages(std::byte* pages, uint64_t bytes,
                                    uint64_t iova) {
  if (iommu_.limits().entries && mapped_.size() >= *iommu_.limits().entries) {
    return Errno{ENOSPC};
  }
  Result<bool> done = iommu_.Map(pages, bytes, iova, /*writable=*/true);
  if (!done.ok() && done.error() == Errno{EFAULT}) {
    done = iommu_.Map(pages, bytes, iova, /*writable=*/false);
  }
  return done;
}

bool AddressSpace::IsWholePages(const void* address, size_t bytes) const {
  const uint64_t within = free_.page_bytes() - 1;
  return bytes != 0 && (bytes & within) == 0 &&
         (reinterpret_cast<uintptr_t>(address) & within) == 0;
}

Result<Iova> AddressSpace::Reserve(void* address, size_t bytes) {
  if (!IsWholePages(address, bytes)) {
    return Errno{EINVAL};
  }
  const uint64_t page = free_.page_bytes();
  const uint64_t alignment = bytes >= kHugeBytes ? kHugeBytes : page;
  const std::scoped_lock lock(mutex_);
  const std::optional<uint64_t> iova = free_.Take(
      bytes, alignment, reinterpret_cast<uintptr_t>(address) & (alignment - 1));
  return iova ? Result<Iova>(Iova{*iova}) : Result<Iova>(Errno{ENOSPC});
}

Result<Iova> AddressSpace::MapReserved(Iova iova, void* address, size_t bytes) {
  if (!IsWholePages(address, bytes)) {
    return Errno{EINVAL};
  }
  const auto at = static_cast<uint64_t>(iova);
  const std::scoped_lock lock(mutex_);
  const Result<bool> done =
      MapPages(static_cast<std::byte*>(address), bytes, at);
  if (!done.ok()) {
    return done.error();
  }
  mapped_[at] = {.pages_bytes = bytes, .bytes = bytes, .reserved = true};
  pinned_bytes_ += bytes;
  return iova;
}

void AddressSpace::Release(Iova iova, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  free_.Return(static_cast<uint64_t>(iova), bytes);
}

Result<bool> AddressSpace::Unmap(Iova iova, size_t bytes) {
  const auto address = static_cast<uint64_t>(iova);
  const std::scoped_lock lock(mutex_);
  const auto found = mapped_.find(address);
  if (found == mapped_.end() || found->second.bytes != bytes) {
    return Errno{EINVAL};
  }
  const uint64_t whole = found->second.pages_bytes;
  const uint64_t first = address & ~(free_.page_bytes() - 1);
  if (!iommu_.Unmap(first, whole).ok()) {
    return Errno{EIO};
  }
  if (!found->second.reserved) {
    free_.Return(first, whole);
  }
  mapped_.erase(found);
  pinned_bytes_ -= whole;
  return true;
}

std::string AddressSpace::Explain(Errno error, size_t bytes) const {
  std::string what =
      "mapping " +
      (bytes == 0 ? std::string("memory") : std::to_string(bytes) + " bytes") +
      " for the device: " + std::strerror(static_cast<int>(error));
  if (error == Errno{ENOMEM}) {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur != RLIM_INFINITY) {
      return what + "; " + std::to_string(pinned_bytes()) +
             " are locked for it, RLIMIT_MEMLOCK is " +
             std::to_string(limit.rlim_cur) + ": raise it (ulimit -l)";
    }
  }
  if (error == Errno{ENOSPC}) {
    const auto limit = iommu_.limits().entries;
    return limit && mappings() >= *limit
               ? what + "; all " + std::to_string(*limit) +
                     " mappings that the IOMMU supports exist: register fewer, "
                     "larger regions, or raise vfio_iommu_type1's "
                     "dma_entry_limit"
               : what + "; " + std::to_string(mappings()) +
                     " mappings exist, " + std::to_string(free_bytes()) +
                     " bytes of the IOMMU's addresses are free: close unused "
                     "objects";
  }
  return what;
}

uint64_t AddressSpace::pinned_bytes() const {
  const std::scoped_lock lock(mutex_);
  return pinned_bytes_;
}

uint64_t AddressSpace::free_bytes() const {
  const std::scoped_lock lock(mutex_);
  return free_.free_bytes();
}

size_t AddressSpace::mappings() const {
  const std::scoped_lock lock(mutex_);
  return mapped_.size();
}

}  // namespace heddle::vfio
