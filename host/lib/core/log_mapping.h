// SPDX-License-Identifier: Apache-2.0
// Our enumerations as those of fi_log and fi_param_define.
#pragma once

#include <rdma/providers/fi_log.h>

#include <string>

#include "host/lib/core/log.h"
#include "host/lib/core/settings.h"

namespace heddle::core {

constexpr fi_log_level ToFiLogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kWarn:
      return FI_LOG_WARN;
    case LogLevel::kInfo:
      return FI_LOG_INFO;
    case LogLevel::kDebug:
      break;
  }
  return FI_LOG_DEBUG;
}

constexpr fi_log_subsys ToFiLogSubsystem(LogSubsystem subsystem) {
  switch (subsystem) {
    case LogSubsystem::kCore:
      return FI_LOG_CORE;
    case LogSubsystem::kFabric:
      return FI_LOG_FABRIC;
    case LogSubsystem::kDomain:
      return FI_LOG_DOMAIN;
    case LogSubsystem::kEpCtrl:
      return FI_LOG_EP_CTRL;
    case LogSubsystem::kEpData:
      return FI_LOG_EP_DATA;
    case LogSubsystem::kAv:
      return FI_LOG_AV;
    case LogSubsystem::kCq:
      return FI_LOG_CQ;
    case LogSubsystem::kCntr:
      return FI_LOG_CNTR;
    case LogSubsystem::kEq:
      return FI_LOG_EQ;
    case LogSubsystem::kMr:
      break;
  }
  return FI_LOG_MR;
}

constexpr fi_param_type ToFiParamType(SettingType type) {
  return type == SettingType::kUnsigned ? FI_PARAM_SIZE_T : FI_PARAM_STRING;
}

// Help, range and default in one line.
inline std::string HelpText(const SettingRow& row) {
  std::string text = std::string(row.help) + ". Takes " + row.range;
  if (*row.default_value != '\0') {
    text += std::string(" (default: ") + row.default_value + ")";
  }
  return text;
}

}  // namespace heddle::core
