// SPDX-License-Identifier: Apache-2.0
// Our enumerations as those of fi_log and fi_param_define.
#pragma once

#include <rdma/providers/fi_log.h>

#include "host/lib/base/core_services.h"

namespace heddle::entry {

constexpr fi_log_level ToFiLogLevel(base::LogLevel level) {
  switch (level) {
    case base::LogLevel::kWarn:
      return FI_LOG_WARN;
    case base::LogLevel::kInfo:
      return FI_LOG_INFO;
    case base::LogLevel::kDebug:
      break;
  }
  return FI_LOG_DEBUG;
}

constexpr fi_log_subsys ToFiLogSubsystem(base::LogSubsystem subsystem) {
  switch (subsystem) {
    case base::LogSubsystem::kCore:
      return FI_LOG_CORE;
    case base::LogSubsystem::kFabric:
      return FI_LOG_FABRIC;
    case base::LogSubsystem::kDomain:
      return FI_LOG_DOMAIN;
    case base::LogSubsystem::kEpCtrl:
      return FI_LOG_EP_CTRL;
    case base::LogSubsystem::kEpData:
      return FI_LOG_EP_DATA;
    case base::LogSubsystem::kAv:
      return FI_LOG_AV;
    case base::LogSubsystem::kCq:
      return FI_LOG_CQ;
    case base::LogSubsystem::kCntr:
      return FI_LOG_CNTR;
    case base::LogSubsystem::kEq:
      return FI_LOG_EQ;
    case base::LogSubsystem::kMr:
      break;
  }
  return FI_LOG_MR;
}

constexpr fi_param_type ToFiParamType(const base::Parameter& parameter) {
  return parameter.number ? FI_PARAM_SIZE_T : FI_PARAM_STRING;
}

}  // namespace heddle::entry
