// SPDX-License-Identifier: Apache-2.0
// What the library needs of a libfabric core: its own one or the stock one.
#pragma once

#include <cstdint>
#include <span>

#include "host/lib/core/log.h"
#include "host/lib/core/settings.h"

namespace heddle::core {

// Exactly one of services_own.cc and services_stock.cc is linked.

// True in the form that a stock core loads.
bool RunsInStockCore() noexcept;

bool CoreLogEnabled(LogLevel level, LogSubsystem subsystem) noexcept;

// `line` ends with a newline.
void CoreLog(LogLevel level, const LogPlace& place, const char* line) noexcept;

void CoreDefineParameter(const SettingRow& row) noexcept;

}  // namespace heddle::core
