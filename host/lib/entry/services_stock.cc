// SPDX-License-Identifier: Apache-2.0
// The library is loaded by a stock libfabric core: libheddle-fi.so.
#include <rdma/providers/fi_prov.h>

#include "host/lib/entry/log_mapping.h"
#include "host/lib/entry/plugin.h"
#include "host/lib/entry/services.h"

namespace heddle::entry {
namespace {

using base::LogLevel;
using base::LogPlace;
using base::LogSubsystem;

bool IsLogEnabled(LogLevel level, LogSubsystem subsystem) noexcept {
  return fi_log_enabled(PluginProvider(), ToFiLogLevel(level),
                        ToFiLogSubsystem(subsystem)) != 0;
}

void WriteToLog(LogLevel level, const LogPlace& place,
                const char* line) noexcept {
  fi_log(PluginProvider(), ToFiLogLevel(level),
         ToFiLogSubsystem(place.subsystem()), place.function(), place.line(),
         "%s", line);
}

void DefineParameter(const base::Parameter& parameter) noexcept {
  fi_param_define(PluginProvider(), parameter.name, ToFiParamType(parameter),
                  "%s", parameter.help);
}

constexpr base::CoreServices kServices = {.stock = true,
                                          .log_enabled = IsLogEnabled,
                                          .log = WriteToLog,
                                          .define_parameter = DefineParameter};

}  // namespace

void UseThisCore() noexcept {
  base::UseCore(kServices);
}

}  // namespace heddle::entry
