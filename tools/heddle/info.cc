// SPDX-License-Identifier: Apache-2.0
// heddle info: the devices, and why one is not offered.
#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/base/hex.h"
#include "driver/control/function.h"
#include "driver/control/open.h"
#include "host/lib/base/socket_address.h"
#include "hw/contract/fabric_address_text.h"
#include "hw/contract/gen/heddle_text.h"
#include "hw/contract/gen/heddle_uet_profile.h"
#include "tools/heddle/command.h"
#include "tools/heddle/device_choice.h"
#include "tools/heddle/settings_state.h"

namespace heddle::tool {
namespace {

namespace text = contract::text;
namespace uet_profile = contract::uet_profile;
using Json = nlohmann::ordered_json;

std::vector<std::string> CapabilityNames(uint64_t bits) {
  std::vector<std::string> names;
  for (const text::Value& value : text::kCapabilityValues) {
    if ((bits & value.value) != 0) {
      names.emplace_back(value.name);
      bits &= ~value.value;
    }
  }
  if (bits != 0) {
    names.push_back("unknown:" + Hex(bits));
  }
  return names;
}

// Rows of the profile AI Base of UET that a device has; hardware is the RTL.
Json UetProfile(const std::string& kind) {
  Json rows = Json::array();
  Json missing = Json::array();
  for (const uet_profile::Row& row : uet_profile::kAiBase) {
    const bool held = kind == "soft" ? row.soft : row.rtl;
    (held ? rows : missing).push_back(row.id);
  }
  return {{"name", "AI Base"}, {"rows", rows}, {"missing", missing}};
}

Json Offered(const OpenedDevice& opened, const std::string& kind,
             const core::Settings& settings, const std::string& address) {
  const DeviceInfo& info = opened.info;
  return {{"device", opened.device->name()},
          {"offered", true},
          {"address", address},
          {"wire", settings.wire},
          {"link", info.link_up ? "up" : "down"},
          {"contract", std::to_string(contract::kContractMajor) + "." +
                           std::to_string(info.contract_minor)},
          {"capabilities", CapabilityNames(info.capability)},
          {"uet_profile", UetProfile(kind)},
          {"limits",
           {{"transmit_contexts", info.counts.tx_contexts},
            {"receive_contexts", info.counts.rx_contexts},
            {"completion_queues", info.counts.completion_queues},
            {"counters", info.counts.counters},
            {"memory_regions", info.counts.regions},
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
  const std::string address = SimulatedAddress(settings);
  std::string message;
  const auto opened =
      OpenDevice(kind, SimulatorAt(kind, settings, address), message);
  if (!opened.ok()) {
    return Refused(kind, message);
  }
  return Offered(opened.value(), kind, settings, address);
}

std::string OtherIsNamed(const core::Settings& settings) {
  return "FI_HEDDLE_DEVICE names " + settings.device.Text();
}

Json ProbeFunction(const std::string& name, const core::Settings& settings) {
  std::string message;
  const auto opened =
      OpenFunction(name, {.vf_token = settings.vf_token}, message);
  if (!opened.ok()) {
    return Refused(name, message);
  }
  std::string address = "unknown";
  if (const auto admin = AdminQueue::Create(*opened.value().device);
      admin.ok()) {
    if (const auto port = admin.value()->QueryPort(); port.ok()) {
      address = contract::Text(port.value().address);
    }
  }
  return Offered(opened.value(), "rtl", settings, address);
}

// Functions in PCI, or a line that there are none.
std::vector<Json> ProbeFunctions(const core::Settings& settings) {
  std::vector<Json> devices;
  const bool wanted = settings.device.kind.empty() ||
                      settings.device.kind == contract::kVfioKind.name;
  for (const auto& function : FindFunctions(vfio::Sysfs())) {
    const std::string name = function.address.ToString();
    const bool chosen = wanted && (settings.device.function.empty() ||
                                   settings.device.function == name);
    devices.push_back(chosen ? ProbeFunction(name, settings)
                             : Refused(name, OtherIsNamed(settings)));
  }
  if (devices.empty()) {
    devices.push_back(
        Refused("vfio", "this machine has no PCI function of the NIC"));
  }
  return devices;
}

Json ProbeSimulated(const std::string& kind, bool hardware,
                    const core::Settings& settings) {
  const bool named = !settings.device.kind.empty();
  if (named ? kind == settings.device.kind
            : kind == contract::kDefaultKind.name && !hardware) {
    return Probe(kind, settings);
  }
  return Refused(kind,
                 named ? OtherIsNamed(settings)
                 : kind == contract::kDefaultKind.name
                     ? "there is hardware; set FI_HEDDLE_DEVICE=" + kind
                     : "is opened only by name; set FI_HEDDLE_DEVICE=" + kind);
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
  const Json& profile = device["uet_profile"];
  std::printf("    %-22s %s, %zu of %zu rows (without %s)\n", "uet_profile",
              profile["name"].get<std::string>().c_str(),
              profile["rows"].size(),
              profile["rows"].size() + profile["missing"].size(),
              Words(profile["missing"]).c_str());
  for (const auto& [name, value] : device["limits"].items()) {
    std::printf("    %-22s %u\n", name.c_str(), value.get<unsigned>());
  }
}

}  // namespace

int ShowInfo(bool json) {
  const core::Settings settings = AcceptedSettings();
  Json devices = Json::array();
  bool offered = false;
  for (Json& function : ProbeFunctions(settings)) {
    devices.push_back(std::move(function));
    offered = offered || devices.back()["offered"].get<bool>();
  }
  const bool hardware = offered;
  for (const contract::DeviceKind& kind : contract::kDeviceKinds) {
    if (!kind.is_simulated()) {
      continue;
    }
    devices.push_back(
        ProbeSimulated(std::string(kind.name), hardware, settings));
    offered = offered || devices.back()["offered"].get<bool>();
  }
  devices.push_back(Refused("verbs", "this version has no such device"));
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
