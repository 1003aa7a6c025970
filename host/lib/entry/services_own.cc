// SPDX-License-Identifier: Apache-2.0
// The library is its own core: libheddle.so.1.
#include <new>

#include "host/lib/base/version.h"
#include "host/lib/entry/log_mapping.h"
#include "host/lib/entry/own_core.h"
#include "host/lib/entry/services.h"

namespace heddle::entry {
namespace {

using base::LogLevel;
using base::LogPlace;
using base::LogSubsystem;

// Adapts the printf-like arguments of WriteLog.
void WriteLine(LogLevel level, const LogPlace& place, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

void WriteLine(LogLevel level, const LogPlace& place, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  WriteLog(
      {base::kProviderName, ToFiLogLevel(level),
       ToFiLogSubsystem(place.subsystem()), place.function(), place.line()},
      format, arguments);
  va_end(arguments);
}

bool IsLogEnabled(LogLevel level, LogSubsystem subsystem) noexcept {
  try {
    return LogFilter::Get().Enabled(base::kProviderName, ToFiLogLevel(level),
                                    ToFiLogSubsystem(subsystem));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void WriteToLog(LogLevel level, const LogPlace& place,
                const char* line) noexcept {
  WriteLine(level, place, "%s", line);
}

void DefineParameter(const base::Parameter& parameter) noexcept {
  try {
    ParameterTable::Get().Define(base::kProviderName, parameter.name,
                                 ToFiParamType(parameter), parameter.help);
  } catch (const std::bad_alloc&) {
    base::Log(LogLevel::kWarn, LogSubsystem::kCore,
              "no memory to list the setting %s", parameter.name);
  }
}

constexpr base::CoreServices kServices = {.stock = false,
                                          .log_enabled = IsLogEnabled,
                                          .log = WriteToLog,
                                          .define_parameter = DefineParameter};

}  // namespace

void UseThisCore() noexcept {
  base::UseCore(kServices);
}

}  // namespace heddle::entry
