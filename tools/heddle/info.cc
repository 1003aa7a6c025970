// SPDX-License-Identifier: Apache-2.0
// heddle info: the devices, and why one is not offered.
#include <dlfcn.h>
#include <rdma/fabric.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "driver/device/open.h"
#include "host/lib/core/address.h"
#include "host/lib/core/device_kind.h"
#include "hw/contract/gen/heddle_text.h"
#include "tools/heddle/command.h"
#include "tools/heddle/settings_state.h"

namespace heddle::tool {
namespace {

namespace text = contract::text;
using Json = nlohmann::ordered_json;

// The simulator that libheddle.so.1 would load; empty when there is none.
std::string FindSimulator(const std::string& path) {
  Dl_info library{};
  if (!path.empty() ||
      dladdr(reinterpret_cast<const void*>(&fi_getinfo), &library) == 0) {
    return path;
  }
  std::error_code error;
  const auto file = std::filesystem::canonical(library.dli_fname, error);
  if (error) {
    return {};
  }
  for (const std::string& candidate :
       SimulatorCandidates({}, false, file.parent_path().string())) {
    if (std::filesystem::exists(candidate, error)) {
      return candidate;
    }
  }
  return {};
}

std::vector<std::string> CapabilityNames(uint64_t bits) {
  std::vector<std::string> names;
  for (const text::Value& value : text::kCapabilityValues) {
    if ((bits & value.value) != 0) {
      names.emplace_back(value.name);
      bits &= ~value.value;
    }
  }
  if (bits != 0) {
    std::array<char, 32> rest{};
    std::snprintf(rest.data(), rest.size(), "unknown:%#llx",
                  static_cast<unsigned long long>(bits));
    names.emplace_back(rest.data());
  }
  return names;
}

Json Offered(const OpenedDevice& opened, const core::Settings& settings,
             const std::string& address) {
  const DeviceInfo& info = opened.info;
  return {{"device", opened.device->name()},
          {"offered", true},
          {"address", address},
          {"wire", settings.wire},
          {"link", info.link_up ? "up" : "down"},
          {"contract", std::to_string(contract::kContractMajor) + "." +
                           std::to_string(info.contract_minor)},
          {"capabilities", CapabilityNames(info.capability)},
          {"limits",
           {{"transmit_contexts", info.tx_contexts},
            {"receive_contexts", info.rx_contexts},
            {"completion_queues", info.completion_queues},
            {"interrupt_vectors", info.interrupt_vectors},
            {"messages_in_flight", info.messages},
            {"delivery_contexts", info.pdcs},
            {"datapath_bits", info.datapath_bits},
            {"payload_mtu_max_bytes", info.payload_mtu_max_bytes}}}};
}

Json Refused(const std::string& name, const std::string& reason) {
  return {{"device", name}, {"offered", false}, {"reason", reason}};
}

// The device that fi_getinfo would offer: opens it.
Json Probe(const std::string& kind, const core::Settings& settings) {
  const auto address = core::OwnAddress(settings, AF_UNSPEC);
  if (!address.has_value()) {
    return Refused(kind, "has no address; set FI_HEDDLE_IP");
  }
  SimulatorOptions options = {
      .path = FindSimulator(settings.sim_path),
      .settings = {{"address", address->IpText()}, {"wire", settings.wire}}};
  if (settings.payload_mtu_named) {
    options.settings.emplace_back("payload_mtu",
                                  std::to_string(settings.payload_mtu));
  }
  std::string message;
  const auto opened = OpenDevice(kind, options, message);
  if (!opened.ok()) {
    return Refused(kind, message);
  }
  return Offered(opened.value(), settings, address->IpText());
}

Json ProbeSimulated(const std::string& kind, const core::Settings& settings) {
  const std::string_view chosen =
      settings.device.empty() ? core::kDefaultKind : settings.device;
  if (kind == chosen) {
    return Probe(kind, settings);
  }
  return Refused(kind,
                 settings.device.empty()
                     ? "is opened only by name; set FI_HEDDLE_DEVICE=" + kind
                     : "FI_HEDDLE_DEVICE names " + settings.device);
}

std::string Words(const Json& list) {
  std::string out;
  for (const auto& word : list) {
    out += (out.empty() ? "" : " ") + word.get<std::string>();
  }
  return out.empty() ? "none" : out;
}

void Print(const Json& device) {
  std::printf("%s\n", device["device"].get<std::string>().c_str());
  if (!device["offered"].get<bool>()) {
    std::printf("    not offered: %s\n",
                device["reason"].get<std::string>().c_str());
    return;
  }
  for (const char* const key : {"address", "wire", "link", "contract"}) {
    std::printf("    %-22s %s\n", key, device[key].get<std::string>().c_str());
  }
  std::printf("    %-22s %s\n", "capabilities",
              Words(device["capabilities"]).c_str());
  for (const auto& [name, value] : device["limits"].items()) {
    std::printf("    %-22s %u\n", name.c_str(), value.get<unsigned>());
  }
}

}  // namespace

int ShowInfo(bool json) {
  const core::Settings settings = AcceptedSettings();
  Json devices = Json::array();
  bool offered = false;
  for (const std::string_view kind : core::kDeviceKinds) {
    devices.push_back(ProbeSimulated(std::string(kind), settings));
    offered = offered || devices.back()["offered"].get<bool>();
  }
  for (const char* const kind : {"vfio", "verbs"}) {
    devices.push_back(Refused(kind, "this version has no such device"));
  }
  if (json) {
    const Json out = {{"version", HEDDLE_VERSION}, {"devices", devices}};
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    std::printf("heddle %s\n", HEDDLE_VERSION);
    for (const Json& device : devices) {
      Print(device);
    }
  }
  return offered ? kOk : kFailed;
}

}  // namespace heddle::tool
