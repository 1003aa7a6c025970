// SPDX-License-Identifier: Apache-2.0
#include "driver/control/function.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "driver/vfio/opening_turn.h"
#include "driver/vfio/vfio_device.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {
namespace {

constexpr vfio::PciIdentity kPhysical = {.vendor = contract::kPciVendor,
                                         .device = contract::kPciDevice};
constexpr vfio::PciIdentity kVirtual = {.vendor = contract::kPciVendor,
                                        .device = contract::kPciVirtualDevice};

std::string Text(const vfio::PciIdentity& identity) {
  char text[16];
  std::snprintf(text, sizeof(text), "%04x:%04x", identity.vendor,
                identity.device);
  return text;
}

// The function that `address` names.
Result<vfio::PciFunction> Look(const std::string& address,
                               const FunctionAccess& access,
                               std::string& message) {
  const auto parsed = vfio::PciAddress::Parse(address);
  if (!parsed) {
    message = address + ": not a PCI address; specify one like 0000:01:00.0";
    return Errno{EINVAL};
  }
  Result<vfio::PciFunction> function = access.sysfs.Look(*parsed);
  if (!function.ok()) {
    message = address + ": no such PCI function; lspci -d " + Text(kPhysical) +
              " and lspci -d " + Text(kVirtual) + " list those of this NIC";
    return function.error();
  }
  const vfio::PciIdentity& identity = function.value().identity;
  if (identity != kPhysical && identity != kVirtual) {
    message = address + ": is a " + Text(identity) + ", not a Heddle NIC (" +
              Text(kPhysical) + ", virtual " + Text(kVirtual) +
              "); name another function";
    return Errno{ENODEV};
  }
  return function;
}

Result<OpenedDevice> Open(const vfio::PciFunction& function,
                          const FunctionAccess& access, std::string& message) {
  Result<std::unique_ptr<vfio::VfioDevice>> device = vfio::VfioDevice::Open(
      *access.kernel, function, {.vf_token = access.vf_token}, message);
  if (!device.ok()) {
    return device.error();
  }
  return OnceReady(std::unique_ptr<Device>(std::move(device.value())), message);
}

}  // namespace

std::vector<vfio::PciFunction> FindFunctions(const vfio::Sysfs& sysfs) {
  std::vector<vfio::PciFunction> found = sysfs.Find(kPhysical);
  for (vfio::PciFunction& function : sysfs.Find(kVirtual)) {
    found.push_back(std::move(function));
  }
  std::sort(found.begin(), found.end(),
            [](const vfio::PciFunction& a, const vfio::PciFunction& b) {
              return a.address < b.address;
            });
  return found;
}

Result<OpenedDevice> OpenFunction(const std::string& address,
                                  const FunctionAccess& access,
                                  std::string& message) {
  const Result<vfio::PciFunction> function = Look(address, access, message);
  if (!function.ok()) {
    return function.error();
  }
  const vfio::OpeningTurn turn(access.sysfs, function.value().address);
  return Open(function.value(), access, message);
}

Result<FunctionInfo> ProbeFunction(const std::string& address,
                                   const FunctionAccess& access,
                                   std::string& message) {
  const Result<vfio::PciFunction> function = Look(address, access, message);
  if (!function.ok()) {
    return function.error();
  }
  // Ends after the device.
  const vfio::OpeningTurn turn(access.sysfs, function.value().address);
  const Result<OpenedDevice> opened = Open(function.value(), access, message);
  if (!opened.ok()) {
    return opened.error();
  }
  Device& device = *opened.value().device;
  FunctionInfo info{.device = opened.value().info, .port = std::nullopt};
  const auto admin = AdminQueue::Create(device);
  if (!admin.ok()) {
    message = device.name() + ": admin queue: " +
              device.Explain(admin.error(), AdminQueue::kMemoryBytes);
    return admin.error();
  }
  const Result<PortInfo> port = admin.value()->QueryPort();
  if (port.ok()) {
    info.port = port.value();
  } else if (port.error() != Errno{EOPNOTSUPP}) {
    message = device.name() + ": request for its address: " +
              std::strerror(static_cast<int>(port.error()));
    return port.error();
  }
  return info;
}

}  // namespace heddle
