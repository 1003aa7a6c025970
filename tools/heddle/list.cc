// SPDX-License-Identifier: Apache-2.0
// heddle list: the NIC's functions in PCI.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/control/function.h"
#include "driver/vfio/pci_function.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tools/heddle/command.h"
#include "tools/heddle/device_choice.h"

namespace heddle::tool {
namespace {

using Json = nlohmann::ordered_json;

// Adds the attributes that only an open function reports, or the reason why it
// cannot be opened.
void Ask(const vfio::PciFunction& function, Json& entry) {
  if (!function.bound()) {
    entry["reason"] = "not bound to vfio-pci; run `heddle bind " +
                      function.address.ToString() + "`";
    return;
  }
  try {
    const OpenedDevice opened = OpenChosen(function.address.ToString());
    entry["link"] = opened.info.link_up ? "up" : "down";
    entry["contract"] = std::to_string(contract::kContractMajor) + "." +
                        std::to_string(opened.info.contract_minor);
  } catch (const CommandError& error) {
    entry["reason"] = error.what();
  }
}

Json Describe(const vfio::PciFunction& function, bool is_virtual, bool ask) {
  Json entry = {{"address", function.address.ToString()},
                {"function", is_virtual ? "virtual" : "physical"},
                {"driver", Json()},
                {"iommu_group", Json()},
                {"numa_node", Json()}};
  if (!function.driver.empty()) {
    entry["driver"] = function.driver;
  }
  if (function.iommu_group) {
    entry["iommu_group"] = *function.iommu_group;
  }
  if (function.numa_node >= 0) {
    entry["numa_node"] = function.numa_node;
  }
  if (function.physical_function) {
    entry["physical_function"] = function.physical_function->ToString();
  }
  if (!function.vfio_device.empty()) {
    entry["vfio_device"] = function.vfio_device;
  }
  if (ask) {
    Ask(function, entry);
  }
  return entry;
}

std::string Text(const Json& value) {
  return value.is_null()     ? "-"
         : value.is_string() ? value.get<std::string>()
                             : value.dump();
}

void Print(const Json& functions) {
  std::printf("%-14s %-9s %-10s %6s %5s %-5s %s\n", "address", "function",
              "driver", "group", "numa", "link", "contract");
  for (const Json& entry : functions) {
    std::printf(
        "%-14s %-9s %-10s %6s %5s %-5s %s\n", Text(entry["address"]).c_str(),
        Text(entry["function"]).c_str(), Text(entry["driver"]).c_str(),
        Text(entry["iommu_group"]).c_str(), Text(entry["numa_node"]).c_str(),
        Text(entry.value("link", Json())).c_str(),
        Text(entry.value("contract", Json())).c_str());
    if (entry.contains("reason")) {
      std::printf("    %s\n", Text(entry["reason"]).c_str());
    }
  }
}

}  // namespace

int ListFunctions(const PciOptions& options) {
  const vfio::Sysfs sysfs(options.sysfs);
  // Another machine's sysfs, or a test's, has no functions to open.
  const bool ask = options.sysfs == kSysfs;
  Json functions = Json::array();
  for (const vfio::PciFunction& function : FindFunctions(sysfs)) {
    functions.push_back(
        Describe(function,
                 function.identity.device == contract::kPciVirtualDevice, ask));
  }
  if (options.json) {
    const Json out = {{"functions", functions}};
    std::printf("%s\n", out.dump(2).c_str());
  } else if (functions.empty()) {
    std::printf(
        "no Heddle NIC in PCI; `heddle info` lists simulated devices\n");
  } else {
    Print(functions);
  }
  return kOk;
}

}  // namespace heddle::tool
