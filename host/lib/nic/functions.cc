// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/functions.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "driver/control/function.h"
#include "driver/vfio/pci_function.h"
#include "host/lib/nic/peer_address.h"

namespace heddle::nic {
namespace {

FunctionOffer Describe(const std::string& name, const FunctionInfo& info) {
  FunctionOffer offer{.name = name,
                      .profile = ProfileOf(info.device),
                      .ip = {},
                      .payload_mtu_bytes = 0};
  if (info.port) {
    offer.ip = PeerAddress::OfSender(info.port->address, 0).IpText();
    offer.payload_mtu_bytes = info.port->payload_mtu_bytes;
  }
  return offer;
}

}  // namespace

std::optional<std::string> FunctionName(std::string_view text) {
  const auto address = vfio::PciAddress::Parse(text);
  return address ? std::optional(address->ToString()) : std::nullopt;
}

FoundFunctions FindFunctions(const std::string& only,
                             const std::string& vf_token) {
  static std::mutex mutex;
  static std::map<std::string, FunctionOffer> known;
  const FunctionAccess access{.vf_token = vf_token};
  FoundFunctions found;
  const auto look = [&](const std::string& name) {
    auto entry = known.find(name);
    if (entry == known.end()) {
      std::string message;
      const auto info = ProbeFunction(name, access, message);
      if (!info.ok()) {
        found.refusals.push_back(std::move(message));
        return;
      }
      entry = known.emplace(name, Describe(name, info.value())).first;
    }
    found.offers.push_back(entry->second);
  };
  const std::lock_guard lock(mutex);
  if (!only.empty()) {
    look(only);
    return found;
  }
  for (const vfio::PciFunction& function :
       heddle::FindFunctions(access.sysfs)) {
    look(function.address.ToString());
  }
  return found;
}

bool HasAnotherFunction(const std::string& name) {
  const std::vector<vfio::PciFunction> all =
      heddle::FindFunctions(vfio::Sysfs());
  return std::any_of(all.begin(), all.end(), [&](const auto& function) {
    return function.bound() && function.address.ToString() != name;
  });
}

}  // namespace heddle::nic
