// SPDX-License-Identifier: Apache-2.0
// The library's settings as the environment of this process has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/lib/core/settings.h"

namespace heddle::tool {

struct SettingState {
  const core::SettingRow* row;
  std::optional<std::string> value;  // Not set: empty.
  bool accepted = true;
};

// The setting of this name, without the prefix; it exists.
const core::SettingRow& SettingNamed(std::string_view name);

// In the order of the library's table.
std::vector<SettingState> SettingStates();

// Variables FI_HEDDLE_* that no setting has.
std::vector<std::string> UnknownVariables();

// Throws CommandError for the first value that the library would not accept.
core::Settings AcceptedSettings();

}  // namespace heddle::tool
