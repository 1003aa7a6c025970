// SPDX-License-Identifier: Apache-2.0
// heddle params: every setting, and what it is set to here.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/heddle/command.h"
#include "tools/heddle/settings_state.h"

namespace heddle::tool {
namespace {

const char* TypeName(core::SettingType type) {
  switch (type) {
    case core::SettingType::kText:
      return "text";
    case core::SettingType::kNumber:
      return "number";
    case core::SettingType::kReal:
      return "real";
    case core::SettingType::kProbability:
      return "probability";
  }
  return "";
}

nlohmann::ordered_json ToJson(const SettingState& state) {
  nlohmann::ordered_json out = {{"name", state.row->variable()},
                                {"type", TypeName(state.row->type)},
                                {"range", state.row->range},
                                {"default", state.row->default_value},
                                {"obeyed_by", state.row->ObeyedByText()},
                                {"help", state.row->help}};
  if (state.value.has_value()) {
    out["value"] = *state.value;
    out["accepted"] = state.accepted;
  }
  return out;
}

void Print(const SettingState& state) {
  const core::SettingRow& row = *state.row;
  std::printf("%s\n    %s\n    %s: %s; default: %s; applies to: %s\n",
              row.variable().c_str(), row.help, TypeName(row.type), row.range,
              *row.default_value != '\0' ? row.default_value : "none",
              row.ObeyedByText().c_str());
  if (state.value.has_value()) {
    std::printf("    set to %s%s\n", state.value->c_str(),
                state.accepted ? "" : ", which is NOT ACCEPTED");
  }
}

// Text that troff shows as it is.
std::string Escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    out += letter == '\\'  ? "\\e"
           : letter == '-' ? "\\-"
                           : std::string(1, letter);
  }
  return out;
}

}  // namespace

int PrintManual() {
  for (const core::SettingRow& row : core::SettingRows()) {
    const std::string standard =
        *row.default_value != '\0' ? Escaped(row.default_value) : "none";
    std::printf(".TP\n.B %s\n%s.\n%s: %s. Default: %s. Applies to: %s.\n",
                row.variable().c_str(), Escaped(row.help).c_str(),
                TypeName(row.type), Escaped(row.range).c_str(),
                standard.c_str(), row.ObeyedByText().c_str());
  }
  return kOk;
}

int ShowParams(bool json) {
  const auto states = SettingStates();
  const auto unknown = UnknownVariables();
  bool good = unknown.empty();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SettingState& state : states) {
    good = good && state.accepted;
    if (json) {
      list.push_back(ToJson(state));
    } else {
      Print(state);
    }
  }
  if (json) {
    const nlohmann::ordered_json out = {{"params", list}, {"unknown", unknown}};
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    for (const std::string& name : unknown) {
      std::printf("%s\n    is not a setting and is ignored\n", name.c_str());
    }
  }
  return good ? kOk : kFailed;
}

}  // namespace heddle::tool
