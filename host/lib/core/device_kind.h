// SPDX-License-Identifier: Apache-2.0
// The kinds of device that FI_HEDDLE_DEVICE may name.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace heddle::core {

// Simulated ones; the domain of the first device of a kind is the name and 0.
inline constexpr std::array<std::string_view, 2> kDeviceKinds = {"rtl", "soft"};

// Functions in PCI; the domain of one is its address, "0000:01:00.0".
inline constexpr std::string_view kVfioKind = "vfio";

// When none is named and there is no hardware (ADR 0011).
inline constexpr std::string_view kDefaultKind = "soft";

constexpr bool IsDeviceKind(std::string_view name) noexcept {
  return std::find(kDeviceKinds.begin(), kDeviceKinds.end(), name) !=
         kDeviceKinds.end();
}

}  // namespace heddle::core
