// SPDX-License-Identifier: Apache-2.0
// Memory of this process at device addresses of our choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "driver/device.h"
#include "driver/result.h"
#include "driver/vfio/iommu.h"
#include "driver/vfio/iova_allocator.h"

namespace heddle::vfio {

// Ranges of any alignment are mapped by whole pages, each at an IOVA of its
// own, so that ranges may overlap. Memory that this process cannot write
// (constants) is mapped for reading.
//
// Accounting: the kernel counts the pages of each mapping against
// RLIMIT_MEMLOCK, and type 1 limits the number of mappings; this class tracks
// both before the kernel refuses.
//
// Thread safety: any thread. Ownership: of the mappings it made; borrows
// `iommu`.
class AddressSpace {
 public:
  explicit AddressSpace(Iommu& iommu);
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  // Ends the remaining mappings.
  ~AddressSpace();

  // Errors: EINVAL for an empty or wrapping range, ENOSPC when the IOMMU
  // accepts no more mappings or no IOVA is free, ENOMEM (RLIMIT_MEMLOCK, or no
  // memory), EFAULT when a part of it is not mapped in this process.
  Result<Iova> Map(void* address, size_t bytes);

  // Reserves IOVAs for memory that is mapped later; in whole pages, as are
  // `address` and the memory mapped there. Errors: EINVAL, ENOSPC.
  Result<Iova> Reserve(void* address, size_t bytes);
  // At `iova` of a reservation. Errors: as `Map`, EINVAL for parts of pages.
  Result<Iova> MapReserved(Iova iova, void* address, size_t bytes);
  // Precondition: nothing is mapped in it.
  void Release(Iova iova, size_t bytes);

  // The range of exactly one `Map` or `MapReserved`. Its IOVA is reused only
  // when the kernel has confirmed that it is unmapped. Errors: EINVAL when
  // there is no such mapping, EIO when the kernel did not end it.
  Result<bool> Unmap(Iova iova, size_t bytes);

  // Explains in one line why `Map` of `bytes` failed with `error`, with a
  // remedy; for a log.
  std::string Explain(Errno error, size_t bytes) const;

  uint64_t pinned_bytes() const;
  size_t mappings() const;
  uint64_t free_bytes() const;  // Free IOVAs.

 private:
  struct Mapping {
    uint64_t pages_bytes = 0;  // Mapped in the kernel.
    uint64_t bytes = 0;        // As requested.
    bool reserved = false;     // Its IOVAs stay reserved.
  };

  bool IsWholePages(const void* address, size_t bytes) const;
  // Maps whole pages; under `mutex_`.
  Result<bool> MapPages(std::byte* pages, uint64_t bytes, uint64_t iova);

  Iommu& iommu_;
  mutable std::mutex mutex_;
  IovaAllocator free_;
  std::map<uint64_t, Mapping> mapped_;  // By the IOVA that `Map` returned.
  uint64_t pinned_bytes_ = 0;
};

}  // namespace heddle::vfio
