// SPDX-License-Identifier: Apache-2.0
// Which device addresses of a function are free.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

namespace heddle::vfio {

// Both ends belong to it.
struct IovaRange {
  uint64_t first = 0;
  uint64_t last = 0;

  bool operator==(const IovaRange&) const = default;
};

// Hands out ranges in rising order and begins anew at the end, so that a range
// that was returned is not the next one taken: an access that comes too late
// meets no mapping rather than a wrong one.
//
// Thread safety: none.
class IovaAllocator {
 public:
  // `usable`: what the IOMMU maps, in any order, not overlapping. Ranges are
  // cut to whole pages of `page_bytes`, a power of two; page 0 is never used.
  IovaAllocator(std::span<const IovaRange> usable, uint64_t page_bytes);

  // `bytes`, a multiple of the page, at an address that is `phase` above a
  // multiple of `alignment` (a power of two, at least a page; `phase` is below
  // it). Nothing when there is no such range.
  std::optional<uint64_t> Take(uint64_t bytes, uint64_t alignment,
                               uint64_t phase);

  // Precondition: taken, with this size, and not returned since.
  void Return(uint64_t iova, uint64_t bytes);

  uint64_t page_bytes() const { return page_bytes_; }
  uint64_t free_bytes() const;

 private:
  using FreeMap = std::map<uint64_t, uint64_t>;  // First and last byte.

  std::optional<uint64_t> TakeFrom(uint64_t from, uint64_t bytes,
                                   uint64_t alignment, uint64_t phase);

  uint64_t page_bytes_;
  uint64_t cursor_ = 0;
  FreeMap free_;
};

}  // namespace heddle::vfio
