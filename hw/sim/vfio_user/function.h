// SPDX-License-Identifier: Apache-2.0
// What a vfio-user session needs of the PCI function behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/result.h"
#include "hw/sim/base/owned_fd.h"

namespace heddle::sim::vfio_user {

// Regions and interrupts have the indices of Linux's vfio-pci. A session calls
// only with what is inside a region, and with interrupts that there are.
//
// Thread safety: as its session's, one thread.
class Function {
 public:
  Function() = default;
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;
  virtual ~Function() = default;

  // 0: there is none.
  virtual uint64_t region_bytes(uint32_t region) const = 0;
  // False for an access that the region does not take.
  [[nodiscard]] virtual bool ReadRegion(uint32_t region, uint64_t offset,
                                        std::span<std::byte> out) = 0;
  [[nodiscard]] virtual bool WriteRegion(uint32_t region, uint64_t offset,
                                         std::span<const std::byte> bytes) = 0;

  // How many interrupts of that index; 0: none.
  virtual uint32_t interrupts(uint32_t index) const = 0;
  // Where one is delivered from now on, an eventfd; an invalid descriptor:
  // nowhere.
  virtual void Connect(uint32_t index, uint32_t interrupt,
                       base::OwnedFd event) = 0;
  // Delivers one, as a test of the path.
  virtual void Trigger(uint32_t index, uint32_t interrupt) = 0;

  // Errors: as GuestMemory.
  virtual Result<bool> MapDma(uint64_t iova, uint64_t bytes, base::OwnedFd file,
                              uint64_t offset, bool writable) = 0;
  // Ends every mapping inside [first, last]. When it returns, none of them is
  // accessed. Errors: as GuestMemory.
  virtual Result<size_t> UnmapDma(uint64_t first, uint64_t last) = 0;

  // Errors: EIO, it does not come back.
  virtual Result<bool> Reset() = 0;
};

}  // namespace heddle::sim::vfio_user
