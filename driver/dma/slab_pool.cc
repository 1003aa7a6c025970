// SPDX-License-Identifier: Apache-2.0
#include "driver/dma/slab_pool.h"

#include <bit>
#include <cerrno>
#include <utility>

namespace heddle {

Result<SlabClass> SlabClass::Create(Device& device, uint32_t slab_bytes,
                                    uint32_t count) {
  if (count == 0 || count > UINT16_MAX || slab_bytes < 64 ||
      !std::has_single_bit(slab_bytes)) {
    return Errno{EINVAL};
  }
  Result<DmaBuffer> memory =
      DmaBuffer::Create(device, size_t{count} * slab_bytes);
  if (!memory.ok()) {
    return memory.error();
  }
  SlabClass created;
  created.memory_ = std::move(memory.value());
  created.slab_bytes_ = slab_bytes;
  created.free_ = std::make_unique<uint16_t[]>(count);
  created.free_count_ = count;
  for (uint32_t i = 0; i < count; ++i) {
    created.free_[i] = static_cast<uint16_t>(count - 1 - i);
  }
  return created;
}

Result<SlabPool> SlabPool::Create(Device& device, const SlabCounts& counts) {
  const std::array<uint32_t, kSlabBytes.size()> count = {
      counts.small, counts.medium, counts.large};
  SlabPool pool;
  for (size_t i = 0; i < count.size(); ++i) {
    Result<SlabClass> created =
        SlabClass::Create(device, kSlabBytes[i], count[i]);
    if (!created.ok()) {
      return created.error();
    }
    pool.classes_[i] = std::move(created.value());
  }
  return pool;
}

}  // namespace heddle
