// SPDX-License-Identifier: Apache-2.0
// The library is its own core: libheddle.so.1.
#include <new>

#include "host/lib/core/log_mapping.h"
#include "host/lib/core/own_core.h"
#include "host/lib/core/services.h"
#include "host/lib/core/version.h"

namespace heddle::core {
namespace {

// Adapts the printf-like arguments of WriteLog.
void WriteLine(LogLevel level, const LogPlace& place, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

void WriteLine(LogLevel level, const LogPlace& place, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  WriteLog(
      {kProviderName, ToFiLogLevel(level), ToFiLogSubsystem(place.subsystem()),
       place.function(), place.line()},
      format, arguments);
  va_end(arguments);
}

}  // namespace

bool RunsInStockCore() noexcept {
  return false;
}

bool CoreLogEnabled(LogLevel level, LogSubsystem subsystem) noexcept {
  try {
    return LogFilter::Get().Enabled(kProviderName, ToFiLogLevel(level),
                                    ToFiLogSubsystem(subsystem));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void CoreLog(LogLevel level, const LogPlace& place, const char* line) noexcept {
  WriteLine(level, place, "%s", line);
}

void CoreDefineParameter(const SettingRow& row) noexcept {
  try {
    ParameterTable::Get().Define(kProviderName, row.name,
                                 ToFiParamType(row.type), HelpText(row));
  } catch (const std::bad_alloc&) {
    Log(LogLevel::kWarn, LogSubsystem::kCore,
        "no memory to list the setting %s", row.name);
  }
}

}  // namespace heddle::core
