// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/iova_allocator.h"

#include <algorithm>
#include <iterator>

namespace heddle::vfio {

IovaAllocator::IovaAllocator(std::span<const IovaRange> usable,
                             uint64_t page_bytes)
    : page_bytes_(page_bytes) {
  const uint64_t mask = page_bytes - 1;
  for (const IovaRange& range : usable) {
    if (range.first > UINT64_MAX - mask) {
      continue;
    }
    const uint64_t first = std::max(page_bytes, (range.first + mask) & ~mask);
    const uint64_t past = (range.last + 1) & ~mask;  // 0: the end of it all.
    const uint64_t last = past - 1;
    if (range.last >= first && last >= first) {
      free_.emplace(first, last);
    }
  }
}

std::optional<uint64_t> IovaAllocator::Take(uint64_t bytes, uint64_t alignment,
                                            uint64_t phase) {
  if (bytes == 0) {
    return std::nullopt;
  }
  std::optional<uint64_t> iova = TakeFrom(cursor_, bytes, alignment, phase);
  if (!iova && cursor_ != 0) {
    iova = TakeFrom(0, bytes, alignment, phase);
  }
  if (iova) {
    cursor_ = *iova + bytes;  // Wraps to 0 after the last page.
  }
  return iova;
}

std::optional<uint64_t> IovaAllocator::TakeFrom(uint64_t from, uint64_t bytes,
                                                uint64_t alignment,
                                                uint64_t phase) {
  auto at = free_.upper_bound(from);
  if (at != free_.begin() && std::prev(at)->second >= from) {
    --at;
  }
  for (; at != free_.end(); ++at) {
    const auto [first, last] = *at;
    const uint64_t start = std::max(first, from);
    const uint64_t skip = (phase - start) & (alignment - 1);
    if (skip > last - start || bytes - 1 > last - start - skip) {
      continue;
    }
    const uint64_t iova = start + skip;
    const uint64_t end = iova + bytes - 1;
    free_.erase(at);
    if (iova != first) {
      free_.emplace(first, iova - 1);
    }
    if (end != last) {
      free_.emplace(end + 1, last);
    }
    return iova;
  }
  return std::nullopt;
}

void IovaAllocator::Return(uint64_t iova, uint64_t bytes) {
  uint64_t first = iova;
  uint64_t last = iova + bytes - 1;
  auto above = free_.upper_bound(iova);
  if (above != free_.end() && above->first == last + 1) {
    last = above->second;
    above = free_.erase(above);
  }
  if (above != free_.begin()) {
    const auto below = std::prev(above);
    if (below->second + 1 == first) {
      first = below->first;
      free_.erase(below);
    }
  }
  free_.emplace(first, last);
}

uint64_t IovaAllocator::free_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [first, last] : free_) {
    bytes += last - first + 1;
  }
  return bytes;
}

}  // namespace heddle::vfio
