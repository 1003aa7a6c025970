// SPDX-License-Identifier: Apache-2.0
// One row of the table of settings, hw/contract/gen/heddle_setting_table.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "hw/contract/gen/heddle_settings.h"

namespace heddle::contract {

// Prefix of a setting's name in the name of its environment variable.
inline constexpr std::string_view kSettingPrefix = "FI_HEDDLE_";

// The value of FI_HEDDLE_WIRE that means UDP sockets; every other names a
// one-machine wire.
inline constexpr std::string_view kUdpWire = "udp";

// Type of a value for the user: a number is an unsigned decimal integer, a
// probability is from 0 to 1.
enum class SettingType : uint8_t { kText, kNumber, kReal, kProbability };

struct SettingRow {
  const char* name;    // Without the prefix, e.g. "RTO_NS".
  const char* option;  // For a simulated device, e.g. "rto_ns".
  SettingType type;
  const char* range;          // For the user, e.g. "1 to 64".
  const char* default_value;  // For the user; "" when there is none.
  const char* help;           // One sentence, without a full stop.
  uint8_t obeyed_by;
  // Sets the member of `settings`. False: `text` is not in the range; the
  // member is then undefined.
  bool (*parse)(std::string_view text, Settings* settings);
  // The member as `parse` reads it; "" when it has no default and is unset.
  std::string (*text)(const Settings& settings);

  // Whether a simulated device has the setting as an option.
  constexpr bool is_option() const {
    return std::any_of(kDeviceKinds.begin(), kDeviceKinds.end(),
                       [this](const DeviceKind& kind) {
                         return kind.is_simulated() && IsObeyedBy(kind);
                       });
  }
  // Whether it applies neither to another device nor to the library itself.
  constexpr bool is_for_simulators_only() const {
    return is_option() && (obeyed_by & kObeyedByLibrary) == 0 &&
           !IsObeyedBy(kDeviceKinds.back());
  }
  constexpr bool IsObeyedBy(const DeviceKind& kind) const {
    return (obeyed_by & kind.obeyed_by) != 0;
  }
  std::string variable() const { return std::string(kSettingPrefix) + name; }

  // "library, soft", for the user.
  std::string ObeyedByText() const {
    std::string list = (obeyed_by & kObeyedByLibrary) != 0 ? "library" : "";
    for (const DeviceKind& kind : kDeviceKinds) {
      if (IsObeyedBy(kind)) {
        list.append(list.empty() ? "" : ", ").append(kind.name);
      }
    }
    return list;
  }
};

// "NAME=VALUE is not accepted; it takes RANGE", with the caller's `name`.
inline std::string SettingRefusal(const SettingRow& row, std::string_view name,
                                  std::string_view value) {
  std::string text(name);
  return text.append("=").append(value).append(" is not accepted; it takes ") +
         row.range;
}

}  // namespace heddle::contract
