// SPDX-License-Identifier: Apache-2.0
// Copies of descriptors ahead of their doorbell.
#pragma once

#include <cstdint>
#include <span>

#include "driver/device.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// The push window of a transmit context. Without a window nothing is pushed.
struct PushTarget {
  PushWindow window;
  // Payload in extension slots, too, after a copy of its descriptor.
  bool extensions = false;
};

// Writes slots to one push window, if the CPU has stores that a device accepts
// as a copy: whole words, each once, all before the doorbell.
//
// On hardware that is `movdir64b` where the CPU has it, else gathered stores
// where the mapping allows them. Eight uncached stores would cost more than the
// read that they save.
//
// Cost: one 64-byte store per slot and one barrier, no system call, lock or
// allocation.
// Thread safety: none; under its ring's lock. Borrows the mapping.
class PushPort {
 public:
  PushPort() = default;
  explicit PushPort(const PushTarget& target) noexcept;

  // Whether the CPU stores 64 bytes to uncached memory as one.
  static bool CpuHasDirectStore() noexcept;

  // False: `Copy` must not be called.
  bool open() const noexcept { return way_ != Way::kNone; }

  // Slots of an operation with `ext_slots` that are worth a copy, if they hold
  // its payload.
  uint32_t SlotsTaken(uint32_t ext_slots) const noexcept {
    return extensions_ ? 1 + ext_slots : 1;
  }

  // Copies ring slots, the first of which is at `position`. Later doorbells
  // follow the copies. At most `contract::kPushWindowSlots`.
  void Copy(uint16_t position,
            std::span<const contract::TxDesc> slots) const noexcept;

 private:
  enum class Way : uint8_t { kNone, kDirect, kGathered, kModel };

  void CopySlot(uint16_t position, const contract::TxDesc& slot) const noexcept;

  PushWindow window_;
  Way way_ = Way::kNone;
  bool extensions_ = false;
};

}  // namespace heddle
