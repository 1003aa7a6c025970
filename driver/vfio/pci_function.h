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

// A function as sysfs described it at the time of the call.
struct PciFunction {
  PciAddress address;
  PciIdentity identity;
  std::string driver;  // Empty: none is bound.
  std::optional<uint32_t> iommu_group;
  int numa_node = -1;       // -1: unknown.
  std::string vfio_device;  // `vfio0`, when the kernel has the cdev.
  std::optional<PciAddress> physical_function;  // For a virtual one.

  bool bound() const { return driver == kDriver; }

  static constexpr const char* kDriver = "vfio-pci";
};

// Thread safety: any thread. Ownership: none; the paths are fixed.
class Sysfs {
 public:
  // `root` contains `bus/pci`; tests supply their own.
  explicit Sysfs(std::string root = "/sys") : root_(std::move(root)) {}

  // Functions of this identity, by address. An unreadable directory contains
  // none; a function that vanishes meanwhile is omitted.
  std::vector<PciFunction> Find(const PciIdentity& identity) const;

  // Errors: ENODEV when there is no such function.
  Result<PciFunction> Look(const PciAddress& address) const;

  // Directory of the function.
  std::string PathOf(const PciAddress& address) const;

  // Binds the function to vfio-pci instead of its present driver, exclusively
  // (driver_override). Binding twice is no error. Errors, with a line in
  // `message` that names function, cause and cure: ENODEV; EACCES, EPERM
  // without the right; ENXIO when the kernel has no vfio-pci or it refused the
  // function.
  Result<bool> Bind(const PciAddress& address, std::string& message) const;

  // Unbinds the function from vfio-pci and lets the kernel choose a driver.
  // Errors: as `Bind`; EBUSY when another driver than vfio-pci has it.
  Result<bool> Unbind(const PciAddress& address, std::string& message) const;

 private:
  Result<bool> WriteFile(const std::string& path, std::string_view text,
                         std::string& message) const;

  std::string root_;
};

}  // namespace heddle::vfio
