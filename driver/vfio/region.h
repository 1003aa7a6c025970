// SPDX-License-Identifier: Apache-2.0
// One region of a VFIO device: a BAR, or configuration space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "driver/result.h"
#include "driver/vfio/kernel.h"

namespace heddle::vfio {

// Thread safety: accesses from any thread.
// Ownership: of the mappings; borrows kernel and device, which outlive it.
class Region {
 public:
  // Opens region `index`, which has at least `bytes`, and maps the parts that
  // the kernel allows (`bytes` of 0: none). Errors: ENXIO when the region is
  // smaller than `bytes`; those of the kernel, with the call that failed in
  // `message`.
  static Result<Region> Open(Kernel& kernel, int device_fd, uint32_t index,
                             uint64_t bytes, std::string& message);

  Region() = default;
  Region(Region&& other) noexcept { Swap(other); }
  Region& operator=(Region&& other) noexcept {
    Swap(other);
    return *this;
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  uint64_t bytes() const { return bytes_; }

  // Address of [offset, offset + bytes) in the mapping; null when it is not
  // mapped.
  volatile std::byte* Mapped(uint64_t offset, uint64_t bytes) const;

  // Naturally aligned accesses of one register; through the mapping, or else
  // through the kernel. A read that fails is all ones, as of a lost device.
  template <typename T>
  T Read(uint64_t offset) const {
    if (const auto* address = Mapped(offset, sizeof(T))) {
      return *reinterpret_cast<const volatile T*>(address);
    }
    T value{};
    const bool read = kernel_
                          ->ReadAt(fd_, offset_ + offset,
                                   std::as_writable_bytes(std::span(&value, 1)))
                          .ok();
    return read ? value : static_cast<T>(~T{0});
  }

  template <typename T>
  bool Write(uint64_t offset, T value) const {
    if (auto* address = Mapped(offset, sizeof(T))) {
      *reinterpret_cast<volatile T*>(address) = value;
      return true;
    }
    return kernel_
        ->WriteAt(fd_, offset_ + offset, std::as_bytes(std::span(&value, 1)))
        .ok();
  }

 private:
  struct Area {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    void* address = nullptr;
  };

  void Swap(Region& other) noexcept;

  Kernel* kernel_ = nullptr;
  int fd_ = -1;
  uint64_t offset_ = 0;  // In the device's file.
  uint64_t bytes_ = 0;
  std::vector<Area> areas_;
};

}  // namespace heddle::vfio
