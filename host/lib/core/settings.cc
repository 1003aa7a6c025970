// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "host/lib/base/core_services.h"
#include "host/lib/base/log.h"
#include "host/lib/nic/functions.h"
#include "hw/contract/gen/heddle_setting_table.h"

namespace heddle::core {
namespace {

// Help, range and default in one line.
std::string HelpText(const SettingRow& row) {
  std::string text = std::string(row.help) + ". Takes " + row.range;
  if (*row.default_value != '\0') {
    text += std::string(" (default: ") + row.default_value + ")";
  }
  return text;
}

bool IsKnown(std::string_view name) {
  return std::any_of(
      contract::kSettings.begin(), contract::kSettings.end(),
      [name](const SettingRow& row) { return name == row.variable(); });
}

void WarnOfUnknownNames(const char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    std::string_view name = *environment;
    name = name.substr(0, name.find('='));
    if (name.starts_with(contract::kSettingPrefix) && !IsKnown(name)) {
      base::Log(base::LogLevel::kWarn, base::LogSubsystem::kCore,
                "%s is not a setting of this provider and is ignored; `fi_info "
                "-g FI_HEDDLE` lists the settings",
                std::string(name).c_str());
    }
  }
}

// Gives the function that the device names its long form. False: none can have
// that name.
bool SpellFunction(contract::DeviceName* device) {
  if (device->kind == contract::kVfioKind.name && !device->function.empty()) {
    device->function = nic::FunctionName(device->function).value_or("");
    return !device->function.empty();
  }
  return true;
}

// Separates the users of one machine: never 0, distinct for user ids below
// `kJobIdMax`.
uint32_t DefaultJobId() {
  return getuid() % contract::kJobIdMax + 1;
}

bool IsDefault(const SettingRow& row, const Settings& settings) {
  return row.text(settings) == row.default_value;
}

}  // namespace

std::span<const SettingRow> SettingRows() noexcept {
  return contract::kSettings;
}

void DefineSettings() noexcept {
  for (const SettingRow& row : contract::kSettings) {
    try {
      base::Core().define_parameter({.name = row.name,
                                     .number = row.type == SettingType::kNumber,
                                     .help = HelpText(row).c_str()});
    } catch (const std::bad_alloc&) {
      base::Log(base::LogLevel::kWarn, base::LogSubsystem::kCore,
                "no memory to list the setting %s", row.name);
    }
  }
}

Settings ReadSettings(const char* const* environment,
                      const char* (*lookup)(const char* name)) {
  Settings settings;
  for (const SettingRow& row : contract::kSettings) {
    const std::string name = row.variable();
    const char* text = lookup(name.c_str());
    if (text == nullptr || *text == '\0') {
      continue;
    }
    if (!row.parse(text, &settings) || !SpellFunction(&settings.device)) {
      settings.valid = false;
      base::Log(
          base::LogLevel::kWarn, base::LogSubsystem::kCore,
          "%s. Until it is corrected or unset, this provider offers nothing",
          contract::SettingRefusal(row, name, text).c_str());
    }
  }
  if (settings.job_id == 0) {
    settings.job_id = DefaultJobId();
  }
  WarnOfUnknownNames(environment);
  return settings;
}

const Settings& GetSettings() {
  // Never destroyed: threads of the application may still use it at exit.
  static const Settings* const settings =
      new Settings(ReadSettings(environ, [](const char* name) -> const char* {
        return secure_getenv(name);
      }));
  return *settings;
}

std::vector<std::pair<std::string, std::string>> SimulatorOptionsOf(
    const Settings& settings, const std::string& ip) {
  Settings own = settings;
  own.ip = ip;
  std::vector<std::pair<std::string, std::string>> options;
  for (const SettingRow& row : contract::kSettings) {
    if (row.is_option() && !IsDefault(row, own)) {
      options.emplace_back(row.option, row.text(own));
    }
  }
  return options;
}

std::string SetForSimulatorsOnly(const Settings& settings) {
  std::string names;
  for (const SettingRow& row : contract::kSettings) {
    if (row.is_for_simulators_only() && !IsDefault(row, settings)) {
      names.append(names.empty() ? "" : ", ").append(row.variable());
    }
  }
  return names;
}

}  // namespace heddle::core
