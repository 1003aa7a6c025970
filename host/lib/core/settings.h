// SPDX-License-Identifier: Apache-2.0
// The user's settings: the environment variables FI_HEDDLE_*, which
// hw/contract/settings.toml lists.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/contract/gen/heddle_settings.h"
#include "hw/contract/settings/row.h"

namespace heddle::core {

using contract::SettingRow;
using contract::SettingType;

// As used: `function` in its long form, and a JobID of the user's where none is
// set.
struct Settings : contract::Settings {
  // False when a variable had a bad value, which was logged: fi_getinfo then
  // fails with -FI_EINVAL rather than run with something else.
  bool valid = true;

  // Endpoints are named in their job, and reach those of it that are.
  bool relative() const noexcept {
    return addressing == contract::Addressing::kRelative;
  }
  // On the wire "udp" it is what the interface carries, unless it is set.
  uint32_t payload_mtu_or_fallback() const noexcept {
    return payload_mtu != 0 ? payload_mtu : contract::kPayloadMtuFallback;
  }
  bool is_udp() const noexcept { return wire == contract::kUdpWire; }
};

// All of them, in the order in which they are listed; static.
std::span<const SettingRow> SettingRows() noexcept;

// Tells the core's `fi_param_define` about every row. Call once, before the
// first fi_getparams.
void DefineSettings() noexcept;

// The settings of this process, read at the first call with secure_getenv.
// Thread-safe.
const Settings& GetSettings();

// Reads the settings anew, for `GetSettings` and tests. `environment` is a
// null-terminated array of NAME=value; `lookup` is how one value is read.
// Logs what is wrong with them.
Settings ReadSettings(const char* const* environment,
                      const char* (*lookup)(const char* name));

// Options {name, value} of a simulated device at the address `ip`: `ip`, and
// the settings of simulated devices that differ from their defaults.
std::vector<std::pair<std::string, std::string>> SimulatorOptionsOf(
    const Settings& settings, const std::string& ip);

// Variables of settings that differ from their defaults and that only simulated
// devices obey, in one line; empty for none.
std::string SetForSimulatorsOnly(const Settings& settings);

}  // namespace heddle::core
