// SPDX-License-Identifier: Apache-2.0
// Memory that a device may read and write, for as long as the object lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "driver/device.h"
#include "driver/result.h"

namespace heddle {

// Adds an offset in bytes to a device address.
constexpr Iova operator+(Iova base, uint64_t bytes) noexcept {
  return Iova{static_cast<uint64_t>(base) + bytes};
}

constexpr uint64_t ToInteger(Iova iova) noexcept {
  return static_cast<uint64_t>(iova);
}

// Zeroed pages of this process, mapped for one device.
//
// Pages are huge when `bytes` fills at least one and the system has some; the
// size is rounded up to whole pages. A forked child does not inherit them, so
// copy-on-write never moves a page that the device still addresses.
//
// Thread safety: none beyond that of a pointer. Ownership: owns the pages and
// the mapping; borrows the device, which must outlive it.
class DmaBuffer {
 public:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kHugePageBytes = size_t{2} << 20;

  // Errors: EINVAL for 0 bytes, ENOMEM, and those of `Device::Map`.
  static Result<DmaBuffer> Create(Device& device, size_t bytes);

  DmaBuffer() = default;
  DmaBuffer(DmaBuffer&& other) noexcept { Swap(other); }
  DmaBuffer& operator=(DmaBuffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  DmaBuffer(const DmaBuffer&) = delete;
  DmaBuffer& operator=(const DmaBuffer&) = delete;

  // Unmaps for the device first: the pages return to the system only when the
  // device can no longer access them.
  ~DmaBuffer();

  std::byte* data() const noexcept { return address_; }
  // At least the requested size; 0 for a default-constructed buffer.
  size_t bytes() const noexcept { return bytes_; }
  Iova iova() const noexcept { return iova_; }

  // The buffer's start as `count` entries of a contract struct.
  // Precondition: they fit.
  template <typename T>
  std::span<T> entries(size_t count) const noexcept {
    return {reinterpret_cast<T*>(address_), count};
  }

 private:
  void Swap(DmaBuffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(iova_, other.iova_);
  }

  Device* device_ = nullptr;
  std::byte* address_ = nullptr;
  size_t bytes_ = 0;
  Iova iova_{};
};

}  // namespace heddle
