// SPDX-License-Identifier: Apache-2.0
// A kind of device, and the device that FI_HEDDLE_DEVICE names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::contract {

struct DeviceKind {
  std::string_view name;
  // The file that opens its devices in the process; empty: they are functions
  // in PCI.
  std::string_view library;
  uint8_t obeyed_by;  // Its bit in `SettingRow::obeyed_by`.

  constexpr bool is_simulated() const { return !library.empty(); }
};

struct DeviceName {
  std::string kind;      // Empty: none is named.
  std::string function;  // PCI address; empty: any.

  // As the setting has it.
  std::string Text() const {
    return function.empty() ? kind : kind + ":" + function;
  }

  bool operator==(const DeviceName&) const = default;
};

// The kind of this name among `kinds`; null without one.
template <typename Kinds>
constexpr const DeviceKind* FindKind(const Kinds& kinds,
                                     std::string_view name) {
  for (const DeviceKind& kind : kinds) {
    if (kind.name == name) {
      return &kind;
    }
  }
  return nullptr;
}

}  // namespace heddle::contract
