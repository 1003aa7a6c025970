// SPDX-License-Identifier: Apache-2.0
// The library is loaded by a stock libfabric core: libheddle-fi.so.
#include <rdma/providers/fi_prov.h>

#include <new>

#include "host/lib/core/log_mapping.h"
#include "host/lib/core/plugin.h"
#include "host/lib/core/services.h"
#include "host/lib/core/version.h"

namespace heddle::core {

bool RunsInStockCore() noexcept {
  return true;
}

bool CoreLogEnabled(LogLevel level, LogSubsystem subsystem) noexcept {
  return fi_log_enabled(PluginProvider(), ToFiLogLevel(level),
                        ToFiLogSubsystem(subsystem)) != 0;
}

void CoreLog(LogLevel level, const LogPlace& place, const char* line) noexcept {
  fi_log(PluginProvider(), ToFiLogLevel(level),
         ToFiLogSubsystem(place.subsystem()), place.function(), place.line(),
         "%s", line);
}

void CoreDefineParameter(const SettingRow& row) noexcept {
  try {
    fi_param_define(PluginProvider(), row.name, ToFiParamType(row.type), "%s",
                    HelpText(row).c_str());
  } catch (const std::bad_alloc&) {
    Log(LogLevel::kWarn, LogSubsystem::kCore,
        "no memory to list the setting %s", row.name);
  }
}

}  // namespace heddle::core
