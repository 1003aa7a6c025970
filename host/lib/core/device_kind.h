// SPDX-License-Identifier: Apache-2.0
// The kinds of device that fi_getinfo knows, without opening one.
#pragma once

#include <cstdint>
#include <string_view>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::core {

// What every device of a kind has. An opened one may have more; that it has
// this is checked when something is opened on it that needs it.
struct DeviceKind {
  std::string_view name;    // Of FI_HEDDLE_DEVICE; the domain is `name` 0.
  uint64_t capability = 0;  // Bits of contract `capability`.
};

inline constexpr DeviceKind kDeviceKinds[] = {
    {"rtl", contract::kCapabilitySend},
    {"soft",
     contract::kCapabilitySend | contract::kCapabilityWrite |
         contract::kCapabilityRead | contract::kCapabilityScatterGather |
         contract::kCapabilityCounters | contract::kCapabilityDeliveryComplete |
         contract::kCapabilityRegionEvent | contract::kCapabilityFence |
         contract::kCapabilityMore},
};

// Null for a name that none has.
constexpr const DeviceKind* FindDeviceKind(std::string_view name) noexcept {
  for (const DeviceKind& kind : kDeviceKinds) {
    if (kind.name == name) {
      return &kind;
    }
  }
  return nullptr;
}

}  // namespace heddle::core
