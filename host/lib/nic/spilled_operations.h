// SPDX-License-Identifier: Apache-2.0
// Operations in flight whose ring slots the device gave up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "driver/dma/registrar.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::nic {

// What is kept of a descriptor beyond its slot.
struct SpilledOperation {
  uint64_t op_context = 0;
  uint32_t peer = 0;
  uint32_t length = 0;
  // Its completion is none of so many that were written before it was posted.
  uint64_t written_before = 0;
  uint32_t passed = 0;  // Slots that the ring had released then; wraps.
  uint16_t position = 0;
  Ticket ticket = kNoTicket;
  contract::Opcode opcode = {};
  bool signaled = false;  // It asked for a completion,
  bool silent = false;    // but the application did not.
};

// By position, which is unique among them, and by age. Nothing allocates after
// `Reserve`; all in constant time.
//
// Thread safety: none.
class SpilledOperations {
 public:
  // Room for `capacity`, 1 to 65534; nothing when there is some already. False:
  // no memory.
  [[nodiscard]] bool Reserve(size_t capacity) noexcept;

  // False, changing nothing, when there is no room.
  [[nodiscard]] bool Add(const SpilledOperation& operation) noexcept;
  // Null: none. Good until the next change.
  const SpilledOperation* Find(uint16_t position) const noexcept;
  const SpilledOperation* oldest() const noexcept {
    return oldest_ == kNone ? nullptr : &nodes_[oldest_].operation;
  }
  // Precondition: there is one at the position.
  void Remove(uint16_t position) noexcept;
  bool empty() const noexcept { return oldest_ == kNone; }
  uint32_t size() const noexcept { return size_; }

 private:
  static constexpr uint16_t kNone = 0xffff;
  static constexpr size_t kBuckets = 512;

  struct Node {
    SpilledOperation operation;
    uint16_t older = kNone;
    uint16_t newer = kNone;  // Of a free one: the next free one.
    uint16_t chain = kNone;
  };

  std::unique_ptr<Node[]> nodes_;
  uint32_t size_ = 0;
  uint16_t free_ = kNone;
  uint16_t oldest_ = kNone;
  uint16_t newest_ = kNone;
  std::array<uint16_t, kBuckets> buckets_{};
};

}  // namespace heddle::nic
