// SPDX-License-Identifier: Apache-2.0
// Text for the user, through libfabric's logging.
#pragma once

namespace heddle::core {

// kWarn: the user must act. kInfo: a decision with its reason. kDebug: once
// per object. Nothing is logged per operation.
enum class LogLevel { kWarn, kInfo, kDebug };

enum class LogSubsystem {
  kCore,
  kFabric,
  kDomain,
  kEpCtrl,
  kEpData,
  kAv,
  kCq,
  kEq,
  kMr
};

// False when the text would be dropped; spares the caller from building it.
// Thread-safe.
bool LogEnabled(LogLevel level, LogSubsystem subsystem) noexcept;

// Logs one line, without its newline, through the core's `fi_log`: cause,
// object, cure. Longer than 1,023 bytes is cut. Keeps errno. Thread-safe.
void Log(LogLevel level, LogSubsystem subsystem, const char* format,
         ...) noexcept __attribute__((format(printf, 3, 4)));

}  // namespace heddle::core
