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

// Ranges of any alignment are mapped by the pages they lie in, each at an IOVA
// of its own, so that ranges may overlap. Memory that this process cannot write
// (constants) is mapped for reading.
//
// Accounting: the kernel counts the pages of each mapping against
// RLIMIT_MEMLOCK, and type 1 limits the number of mappings; both are known here
// before it refuses.
//
// Thread safety: any thread. Ownership: of the mappings it made; borrows
// `iommu`.
class AddressSpace {
 public:
  explicit AddressSpace(Iommu& iommu);
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  // Ends what is left, whoever forgot it.
  ~AddressSpace();

  // Errors: EINVAL for an empty or wrapping range, ENOSPC when the IOMMU takes
  // no more mappings or no IOVA is free, ENOMEM (RLIMIT_MEMLOCK, or no memory),
  // EFAULT when something of it is not mapped in this process.
  Result<Iova> Map(void* address, size_t bytes);

  // Keeps IOVAs for memory that is mapped by and by; in whole pages, as are
  // `address` and what is mapped there. Errors: EINVAL, ENOSPC.
  Result<Iova> Reserve(void* address, size_t bytes);
  // At `iova` of a reservation. Errors: as `Map`, EINVAL for parts of pages.
  Result<Iova> MapReserved(Iova iova, void* address, size_t bytes);
  // Precondition: nothing is mapped in it.
  void Release(Iova iova, size_t bytes);

  // The range of exactly one `Map` or `MapReserved`. Its IOVA is used again
  // only when the kernel has confirmed that it is unmapped. Errors: EINVAL when
  // there is no such mapping, EIO when the kernel did not end it.
  Result<bool> Unmap(Iova iova, size_t bytes);

  // Why `Map` of `bytes` failed so, in one line with a cure; for a log.
  std::string Explain(Errno error, size_t bytes) const;

  uint64_t pinned_bytes() const;
  size_t mappings() const;
  uint64_t free_bytes() const;  // Of IOVAs.

 private:
  struct Mapping {
    uint64_t pages_bytes = 0;  // What the kernel knows.
    uint64_t bytes = 0;        // What was asked for.
    bool reserved = false;     // Its IOVAs stay kept.
  };

  bool IsWholePages(const void* address, size_t bytes) const;
  // Of whole pages; under `mutex_`.
  Result<bool> MapPages(std::byte* pages, uint64_t bytes, uint64_t iova);

  Iommu& iommu_;
  mutable std::mutex mutex_;
  IovaAllocator free_;
  std::map<uint64_t, Mapping> mapped_;  // By the IOVA that `Map` returned.
  uint64_t pinned_bytes_ = 0;
};

}  // namespace heddle::vfio
