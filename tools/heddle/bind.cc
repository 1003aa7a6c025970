// SPDX-License-Identifier: Apache-2.0
// heddle bind, heddle unbind: who drives a PCI function.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "driver/vfio/pci_function.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tools/heddle/command.h"

namespace heddle::tool {
namespace {

bool IsOurs(const vfio::PciIdentity& identity) {
  return identity.vendor == contract::kPciVendor &&
         (identity.device == contract::kPciDevice ||
          identity.device == contract::kPciVirtualDevice);
}

vfio::PciFunction Look(const vfio::Sysfs& sysfs, const std::string& name) {
  const auto address = vfio::PciAddress::Parse(name);
  if (!address) {
    throw CommandError("'" + name +
                       "' is not a PCI address; specify one like 0000:01:00.0, "
                       "`heddle list` shows them");
  }
  const auto function = sysfs.Look(*address);
  if (!function.ok()) {
    throw CommandError(
        address->ToString() +
        ": no such PCI function; `heddle list` shows those of the NIC");
  }
  // A mistyped address must not detach a disk.
  if (!IsOurs(function.value().identity)) {
    throw CommandError(address->ToString() +
                       ": not a Heddle NIC; `heddle list` shows them");
  }
  return function.value();
}

}  // namespace

int BindFunction(const PciOptions& options, bool bind) {
  const vfio::Sysfs sysfs(options.sysfs);
  const vfio::PciFunction before = Look(sysfs, options.address);
  std::string message;
  const auto done = bind ? sysfs.Bind(before.address, message)
                         : sysfs.Unbind(before.address, message);
  if (!done.ok()) {
    throw CommandError(message);
  }
  const auto after = sysfs.Look(before.address);
  const std::string driver = after.ok() ? after.value().driver : std::string();
  if (options.json) {
    nlohmann::ordered_json out = {{"address", before.address.ToString()},
                                  {"driver_before", before.driver},
                                  {"driver", driver}};
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    std::printf("%s: driven by %s\n", before.address.ToString().c_str(),
                driver.empty() ? "no driver" : driver.c_str());
  }
  return kOk;
}

}  // namespace heddle::tool
