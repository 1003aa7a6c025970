// SPDX-License-Identifier: Apache-2.0
// Room for the payload of messages that no receive has matched yet.
#pragma once

#include <cstdint>
#include <vector>

#include "host/lib/semantics/index_list.h"

namespace heddle::soft::engine {

// Shares out [0, bytes) in blocks whose size is a power of two (buddy system):
// what is free again joins its neighbour, so that mixed sizes do not wear the
// area out. Nothing allocates after construction.
//
// Thread safety: one thread at a time.
class UnexpectedArea {
 public:
  struct Block {
    uint32_t offset = 0;
    uint32_t bytes = 0;  // As requested; 0: no block.
  };

  // Throws std::bad_alloc.
  explicit UnexpectedArea(uint32_t bytes);

  // A block of `bytes`, at least 1; without `bytes` when no free block is as
  // large.
  [[nodiscard]] Block Take(uint32_t bytes) noexcept;
  // One that was taken, or none.
  void Give(const Block& block) noexcept;

  // Bytes in blocks that are taken, rounded up as they are.
  uint64_t used() const noexcept { return uint64_t{used_} * granule_; }

 private:
  struct Granule {
    semantics::ListLink link;  // Links free blocks by their first granule.
    uint8_t order = 0;
    bool free = false;
  };
  using Free = semantics::IndexList<Granule, &Granule::link>;

  // Blocks are of 2^order granules.
  static constexpr uint32_t kOrders = 21;
  static constexpr uint32_t kMaxGranules = 1U << (kOrders - 1);
  static constexpr uint32_t kMinGranule = 64;

  uint32_t OrderOf(uint32_t bytes) const noexcept;
  void Put(uint32_t at, uint32_t order) noexcept;

  uint32_t granule_;  // Bytes, a power of two.
  std::vector<Granule> granules_;
  Free free_[kOrders];
  uint32_t used_ = 0;  // Granules.
};

}  // namespace heddle::soft::engine
