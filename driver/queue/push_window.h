// SPDX-License-Identifier: Apache-2.0
// Copies of descriptors ahead of their doorbell.
#pragma once

#include <cstdint>

#include "driver/device.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// Writes descriptors to one push window, if there is a way that a device takes
// for a copy: whole words, each once, all before the doorbell.
//
// On hardware that is `movdir64b` where the CPU has it, else gathered stores
// where the mapping allows them. Eight uncached stores would cost more than the
// read that they save.
//
// Cost: one 64-byte store and one barrier, no system call, lock or allocation.
// Thread safety: none; under its ring's lock. Borrows the mapping.
class PushPort {
 public:
  PushPort() = default;
  explicit PushPort(const PushWindow& window) noexcept;

  // Whether the CPU stores 64 bytes to uncached memory as one.
  static bool CpuHasDirectStore() noexcept;

  // False: `Copy` must not be called.
  bool open() const noexcept { return way_ != Way::kNone; }

  // Copies the ring slot at `position`. Later doorbells follow the copy.
  void Copy(uint16_t position, const contract::TxDesc& slot) const noexcept;

 private:
  enum class Way : uint8_t { kNone, kDirect, kGathered, kModel };

  PushWindow window_;
  Way way_ = Way::kNone;
};

}  // namespace heddle
