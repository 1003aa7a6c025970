// SPDX-License-Identifier: Apache-2.0
#include "tools/heddle/device_choice.h"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <sys/socket.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "driver/control/function.h"
#include "driver/vfio/pci_function.h"
#include "host/lib/core/own_addresses.h"
#include "tools/heddle/command.h"
#include "tools/heddle/settings_state.h"

namespace heddle::tool {
namespace {

// The library of `kind` that libheddle.so.1 would load; empty without one.
std::string FindSimulator(const std::string& kind, const std::string& path) {
  const auto* const known = contract::FindKind(contract::kDeviceKinds, kind);
  Dl_info library{};
  if (known == nullptr || !path.empty() ||
      dladdr(reinterpret_cast<const void*>(&fi_getinfo), &library) == 0) {
    return path;
  }
  std::error_code error;
  const auto file = std::filesystem::canonical(library.dli_fname, error);
  if (error) {
    return {};
  }
  for (const std::string& candidate :
       SimulatorCandidates(std::string(known->library), {}, false,
                           file.parent_path().string())) {
    if (std::filesystem::exists(candidate, error)) {
      return candidate;
    }
  }
  return {};
}

// `address` is empty for the first there is.
OpenedDevice OpenFunctionAt(std::string address, const std::string& vf_token) {
  const FunctionAccess access = {.vf_token = vf_token};
  const auto all = FindFunctions(access.sysfs);
  if (address.empty() && all.empty()) {
    throw CommandError(
        "no Heddle NIC in PCI; run `heddle info` for the available devices");
  }
  if (address.empty()) {
    address = all.front().address.ToString();
  }
  std::string message;
  auto opened = OpenFunction(address, access, message);
  if (!opened.ok()) {
    throw CommandError(message);
  }
  return std::move(opened.value());
}

}  // namespace

std::string SimulatedAddress(const core::Settings& settings) {
  const core::OwnAddresses own(core::SimulatedReach(settings), settings.ip,
                               core::ReadInterfaces());
  return own.Own(AF_UNSPEC).value().IpText();
}

SimulatorOptions SimulatorAt(const std::string& kind,
                             const core::Settings& settings,
                             const std::string& address) {
  return {.path = FindSimulator(kind, settings.sim_path),
          .settings = core::SimulatorOptionsOf(settings, address)};
}

OpenedDevice OpenChosen(const std::string& name) {
  const core::Settings settings = AcceptedSettings();
  if (const auto address = vfio::PciAddress::Parse(name)) {
    return OpenFunctionAt(address->ToString(), settings.vf_token);
  }
  const std::string kind = !name.empty() ? name
                           : settings.device.kind.empty()
                               ? std::string(contract::kDefaultKind.name)
                               : settings.device.kind;
  if (kind == contract::kVfioKind.name) {
    return OpenFunctionAt(settings.device.function, settings.vf_token);
  }
  if (contract::FindKind(contract::kDeviceKinds, kind) == nullptr) {
    throw CommandError(kind +
                       ": no such device; give soft, rtl, or the PCI address "
                       "of a function, like 0000:01:00.0");
  }
  std::string message;
  auto opened = OpenDevice(
      kind, SimulatorAt(kind, settings, SimulatedAddress(settings)), message);
  if (!opened.ok()) {
    throw CommandError(message);
  }
  return std::move(opened.value());
}

}  // namespace heddle::tool
