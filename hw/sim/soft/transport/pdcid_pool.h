// SPDX-License-Identifier: Apache-2.0
// PDCIDs below the slot bits: which are free, which rest, whose the others are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::sim::soft {

// PDCs of both roles share the identifiers, so that an ACK or a control packet
// that names one belongs to one PDC. The identifier that was free for longest
// is given next. 0 is none.
class PdcidPool {
 public:
  static constexpr uint16_t kIds = 1u << (16 - contract::kSlotBits);
  static constexpr uint16_t kNoPdc = UINT16_MAX;

  // The first identifier given follows `seed`: those of a former process are
  // not the ones that its successor begins with.
  explicit PdcidPool(uint64_t seed)
      : owner_(kIds, kNoPdc), free_(kIds), resting_(kIds) {
    for (uint64_t i = 0; i < kIds; ++i) {
      const auto id = static_cast<uint16_t>((seed + i) % kIds);
      if (id != 0) {
        free_.Push({id, 0});
      }
    }
  }

  // All identifiers in use come back, to be given after all others: packets to
  // their former PDCs are still on the way.
  void ReturnAll() {
    for (uint16_t id = 1; id < kIds; ++id) {
      if (owner_[id] != kNoPdc) {
        Return(id, 0);
      }
    }
  }

  // An identifier for PDC `pdc`, or 0 when all are in use or rest.
  uint16_t Take(uint16_t pdc, uint64_t now_ns) {
    while (!resting_.empty() && resting_.front().until <= now_ns) {
      free_.Push(resting_.Pop());
    }
    if (free_.empty()) {
      return 0;
    }
    const uint16_t id = free_.Pop().id;
    owner_[id] = pdc;
    return id;
  }

  // `id` is used by nobody until `until_ns` (0: may be used at once), which
  // does not lie before that of an earlier call.
  void Return(uint16_t id, uint64_t until_ns) {
    owner_[id] = kNoPdc;
    (until_ns == 0 ? free_ : resting_).Push({id, until_ns});
  }

  // When an identifier stops resting next; UINT64_MAX: none rests.
  uint64_t next_free_ns() const {
    return resting_.empty() ? UINT64_MAX : resting_.front().until;
  }

  // The PDC with that PDCID (slot bits ignored), or kNoPdc.
  uint16_t OwnerOf(uint16_t pdcid) const { return owner_[pdcid & (kIds - 1)]; }

 private:
  struct Free {
    uint16_t id = 0;
    uint64_t until = 0;
  };
  class Ring {
   public:
    explicit Ring(size_t size) : entries_(size) {}
    bool empty() const { return head_ == tail_; }
    const Free& front() const { return entries_[head_ % entries_.size()]; }
    void Push(Free entry) { entries_[tail_++ % entries_.size()] = entry; }
    Free Pop() { return entries_[head_++ % entries_.size()]; }

   private:
    std::vector<Free> entries_;
    size_t head_ = 0;
    size_t tail_ = 0;
  };

  std::vector<uint16_t> owner_;
  Ring free_;
  Ring resting_;
};

}  // namespace heddle::sim::soft
