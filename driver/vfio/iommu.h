// SPDX-License-Identifier: Apache-2.0
// How a VFIO device is attached to an IOMMU, and memory to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/result.h"
#include "driver/vfio/iova_allocator.h"
#include "driver/vfio/kernel.h"
#include "driver/vfio/pci_function.h"

namespace heddle::vfio {

struct IommuLimits {
  std::vector<IovaRange> usable;  // IOVAs that can be mapped.
  uint64_t page_bytes = 4096;     // Smallest mapping.
  // Mappings that may exist at a time; nothing: no limit but memory.
  std::optional<uint32_t> entries;
};

// One device's address space.
//
// Thread safety: `Map` and `Unmap` from any thread.
// Ownership: owns what attaches the device; borrows the kernel. The device's
// descriptor stays valid, and memory mapped, until destruction.
class Iommu {
 public:
  Iommu() = default;
  Iommu(const Iommu&) = delete;
  Iommu& operator=(const Iommu&) = delete;
  // Everything is unmapped, the device detached.
  virtual ~Iommu() = default;

  virtual int device_fd() const = 0;
  virtual const IommuLimits& limits() const = 0;
  // `group` or `iommufd`.
  virtual const char* kind() const = 0;

  // All in whole pages. Without `writable` the device can only read them.
  // Errors: the kernel's (ENOMEM, EFAULT, ENOSPC, ...).
  virtual Result<bool> Map(void* address, uint64_t bytes, uint64_t iova,
                           bool writable) = 0;
  // Errors: EIO when something else than this range was unmapped, the kernel's.
  virtual Result<bool> Unmap(uint64_t iova, uint64_t bytes) = 0;
};

// Through /dev/vfio/<group> and a container of type 1 v2. `vf_token` (a UUID,
// or empty) proves to the kernel that the owner of the physical function lets
// us use this virtual one.
//
// Errors, with a line in `message` that names object, cause and cure.
Result<std::unique_ptr<Iommu>> AttachGroup(Kernel& kernel,
                                           const PciFunction& function,
                                           const std::string& vf_token,
                                           std::string& message);

// Through /dev/vfio/devices/<name> and /dev/iommu.
Result<std::unique_ptr<Iommu>> AttachIommufd(Kernel& kernel,
                                             const PciFunction& function,
                                             std::string& message);

}  // namespace heddle::vfio
