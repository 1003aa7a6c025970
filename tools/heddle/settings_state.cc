// SPDX-License-Identifier: Apache-2.0
#include "tools/heddle/settings_state.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tools/heddle/command.h"

namespace heddle::tool {
namespace {

// The one variable that the library is shown.
thread_local const char* shown = nullptr;

bool Accepts(const std::string& variable) {
  const char* const nothing = nullptr;
  shown = variable.c_str();
  const bool valid = core::ReadSettings(&nothing, [](const char* name) {
                       return std::string_view(name) == shown
                                  ? std::getenv(name)
                                  : static_cast<const char*>(nullptr);
                     }).valid;
  shown = nullptr;
  return valid;
}

}  // namespace

const core::SettingRow& SettingNamed(std::string_view name) {
  const auto rows = core::SettingRows();
  return *std::find_if(rows.begin(), rows.end(),
                       [name](const auto& row) { return row.name == name; });
}

std::vector<SettingState> SettingStates() {
  std::vector<SettingState> states;
  for (const core::SettingRow& row : core::SettingRows()) {
    SettingState state{.row = &row, .value = std::nullopt};
    const std::string variable = row.variable();
    const char* const value = std::getenv(variable.c_str());
    // To the library an empty value is none.
    if (value != nullptr && *value != '\0') {
      state.value = value;
      state.accepted = Accepts(variable);
    }
    states.push_back(std::move(state));
  }
  return states;
}

std::vector<std::string> UnknownVariables() {
  std::vector<std::string> unknown;
  const auto rows = core::SettingRows();
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view name = *entry;
    name = name.substr(0, name.find('='));
    if (name.starts_with(contract::kSettingPrefix) &&
        std::none_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return name == row.variable(); })) {
      unknown.emplace_back(name);
    }
  }
  std::sort(unknown.begin(), unknown.end());
  return unknown;
}

core::Settings AcceptedSettings() {
  for (const SettingState& state : SettingStates()) {
    if (!state.accepted) {
      throw CommandError(contract::SettingRefusal(
                             *state.row, state.row->variable(), *state.value) +
                         "; correct or unset it");
    }
  }
  return core::ReadSettings(environ, [](const char* name) -> const char* {
    return std::getenv(name);
  });
}

}  // namespace heddle::tool
