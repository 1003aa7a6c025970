// SPDX-License-Identifier: Apache-2.0
// Pre-mapped bounce buffers of a few fixed sizes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "driver/dma/dma_buffer.h"
#include "driver/result.h"

namespace heddle {

// One bounce buffer. Empty when `address` is null.
struct Slab {
  std::byte* address = nullptr;
  Iova iova{};
  uint16_t size_class = 0;
  uint16_t index = 0;
};

// Slabs of one size: an array with a stack of free entries. The last freed is
// the next handed out, so that it is likely still in the cache.
//
// Thread safety: none; belongs to one endpoint under its lock.
class SlabClass {
 public:
  // `count` slabs of `slab_bytes`, a power of two of at least 64.
  // Errors: EINVAL for count 0 or above 65535, and those of `DmaBuffer`.
  static Result<SlabClass> Create(Device& device, uint32_t slab_bytes,
                                  uint32_t count);

  // O(1), no system call. False when none is free.
  [[nodiscard]] bool TryTake(Slab& slab) noexcept {
    if (free_count_ == 0) {
      return false;
    }
    const uint16_t index = free_[--free_count_];
    slab.index = index;
    slab.address = memory_.data() + size_t{index} * slab_bytes_;
    slab.iova = memory_.iova() + uint64_t{index} * slab_bytes_;
    return true;
  }

  // Precondition: `index` was taken and not returned since.
  void Return(uint16_t index) noexcept { free_[free_count_++] = index; }

  uint32_t slab_bytes() const noexcept { return slab_bytes_; }
  uint32_t free_count() const noexcept { return free_count_; }

 private:
  DmaBuffer memory_;
  std::unique_ptr<uint16_t[]> free_;
  uint32_t free_count_ = 0;
  uint32_t slab_bytes_ = 0;
};

// Number of slabs of each size in a pool; all are mapped at creation.
struct SlabCounts {
  uint32_t small = 1024;  // 256 bytes each.
  uint32_t medium = 256;  // 4 KiB each.
  uint32_t large = 64;    // 64 KiB each.
};

// A bounded set of bounce buffers: it never grows, and reports "full".
//
// Thread safety: none; belongs to one endpoint under its lock.
// Ownership: owns the memory; slabs taken become invalid with the pool.
class SlabPool {
 public:
  static constexpr std::array<uint32_t, 3> kSlabBytes = {256, 4096, 65536};
  static constexpr uint32_t kMaxSlabBytes = kSlabBytes.back();

  // Errors: as `SlabClass::Create`.
  static Result<SlabPool> Create(Device& device, const SlabCounts& counts);

  // Takes a slab of the smallest size that holds `bytes`, or of a larger one
  // when that is used up. O(1). False, changing nothing, when all that would
  // fit are in use or `bytes` exceeds `kMaxSlabBytes`.
  [[nodiscard]] bool TryTake(uint32_t bytes, Slab& slab) noexcept {
    for (size_t i = 0; i < classes_.size(); ++i) {
      if (bytes <= kSlabBytes[i] && classes_[i].TryTake(slab)) {
        slab.size_class = static_cast<uint16_t>(i);
        return true;
      }
    }
    return false;
  }

  // Precondition: `slab` came from this pool and was not returned since.
  void Return(const Slab& slab) noexcept {
    classes_[slab.size_class].Return(slab.index);
  }

  uint32_t free_count(uint32_t size_class) const noexcept {
    return classes_[size_class].free_count();
  }

 private:
  std::array<SlabClass, kSlabBytes.size()> classes_;
};

}  // namespace heddle
