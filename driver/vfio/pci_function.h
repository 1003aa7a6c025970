// SPDX-License-Identifier: Apache-2.0
// The PCI functions of this machine, as sysfs describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/result.h"

namespace heddle::vfio {

// Domain, bus, device and function: `0000:01:00.0`.
struct PciAddress {
  uint32_t domain = 0;
  uint8_t bus = 0;
  uint8_t device = 0;
  uint8_t function = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): the check misreads `<=>`.
  auto operator<=>(const PciAddress&) const = default;

  // With or without the domain. Nothing for any other text.
  static std::optional<PciAddress> Parse(std::string_view text);
  std::string ToString() const;
};

struct PciIdentity {
  uint16_t vendor = 0;
  uint16_t device = 0;

  bool operator==(const PciIdentity&) const = default;
};

// What sysfs says of one function at the time of asking.
struct PciFunction {
  PciAddress address;
  PciIdentity identity;
  std::string driver;  // Empty: none is bound.
  std::optional<uint32_t> iommu_group;
  int numa_node = -1;       // -1: not known.
  std::string vfio_device;  // `vfio0`, when the kernel has the cdev.
  std::optional<PciAddress> physical_function;  // Of a virtual one.

  bool bound() const { return driver == kDriver; }

  static constexpr const char* kDriver = "vfio-pci";
};

// Thread safety: any thread. Ownership: none; the paths are fixed.
class Sysfs {
 public:
  // `root` holds `bus/pci`; tests bring their own.
  explicit Sysfs(std::string root = "/sys") : root_(std::move(root)) {}

  // Functions of this identity, by address. A directory that cannot be read is
  // none; a function that vanishes meanwhile is left out.
  std::vector<PciFunction> Find(const PciIdentity& identity) const;

  // Errors: ENODEV when there is no such function.
  Result<PciFunction> Look(const PciAddress& address) const;

  // Directory of the function.
  std::string PathOf(const PciAddress& address) const;

  // Gives the function to vfio-pci, whatever drives it now, and to it alone
  // (driver_override). Binding twice is no error.
  // Errors, with a line in `message` that names function, cause and cure:
  // ENODEV; EACCES, EPERM without the right; ENXIO when the kernel has no
  // vfio-pci or it refused the function.
  Result<bool> Bind(const PciAddress& address, std::string& message) const;

  // Takes the function from vfio-pci and lets the kernel choose a driver.
  // Errors: as `Bind`; EBUSY when another driver than vfio-pci has it.
  Result<bool> Unbind(const PciAddress& address, std::string& message) const;

 private:
  Result<bool> WriteFile(const std::string& path, std::string_view text,
                         std::string& message) const;

  std::string root_;
};

}  // namespace heddle::vfio
