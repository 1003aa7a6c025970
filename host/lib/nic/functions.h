// SPDX-License-Identifier: Apache-2.0
// The NIC's functions in PCI that this process may open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/lib/nic/profile.h"

namespace heddle::nic {

// A PCI address in its long form, "0000:01:00.0", from that or "01:00.0";
// nothing for any other text.
std::optional<std::string> FunctionName(std::string_view text);

// A function as it described itself.
struct FunctionOffer {
  std::string name;  // Its PCI address.
  backend::DeviceProfile profile;
  std::string ip;  // IPv4 or IPv6; empty when its firmware does not tell.
  uint32_t payload_mtu_bytes = 0;
};

struct FoundFunctions {
  std::vector<FunctionOffer> offers;  // By PCI address.
  // For each function that cannot be used, a line with name, cause and cure.
  std::vector<std::string> refusals;
};

// All functions, or the one that is named `only`. Each is asked once in a
// process, and is opened for that. Thread-safe.
FoundFunctions FindFunctions(const std::string& only,
                             const std::string& vf_token);

// Whether vfio-pci drives another function than `name`.
bool HasAnotherFunction(const std::string& name);

}  // namespace heddle::nic
