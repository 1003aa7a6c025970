// SPDX-License-Identifier: Apache-2.0
// DMA memory that grows without moving.
#pragma once

#include <cstddef>

#include "driver/device.h"
#include "driver/result.h"

namespace heddle::nic {

// Reserves addresses for `limit_bytes`, and gives memory to the front part.
// Pointers and IOVAs into it stay good while it grows, which is why a device
// context may hold its base. Grown memory is zero. A forked child does not
// inherit it.
//
// Thread safety: `Grow` one thread at a time; reading what is grown, any.
// Ownership: owns memory and mappings; borrows the device.
class GrowingMemory {
 public:
  // Errors: EINVAL for 0 bytes, ENOMEM, those of `Device::Reserve` and `Map`.
  static Result<GrowingMemory> Create(Device& device, size_t limit_bytes,
                                      size_t first_bytes);

  GrowingMemory() = default;
  GrowingMemory(GrowingMemory&& other) noexcept { Swap(other); }
  GrowingMemory& operator=(GrowingMemory&& other) noexcept {
    Swap(other);
    return *this;
  }
  GrowingMemory(const GrowingMemory&) = delete;
  GrowingMemory& operator=(const GrowingMemory&) = delete;
  ~GrowingMemory();

  // Makes at least `bytes` usable. Errors: ENOMEM beyond the limit,
  // those of `Device::Map`.
  Result<bool> Grow(size_t bytes);

  void* data() const noexcept { return base_; }
  size_t bytes() const noexcept { return bytes_; }
  Iova iova() const noexcept { return iova_; }

 private:
  void Swap(GrowingMemory& other) noexcept;

  Device* device_ = nullptr;
  std::byte* base_ = nullptr;
  size_t limit_bytes_ = 0;
  size_t first_bytes_ = 0;  // The first mapping; each later one doubles.
  size_t bytes_ = 0;
  Iova iova_{};
  bool reserved_ = false;
};

}  // namespace heddle::nic
