// SPDX-License-Identifier: Apache-2.0
// Text for the user, through libfabric's logging.
#pragma once

namespace heddle::base {

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
  kCntr,
  kEq,
  kMr
};

// What a line is about and where in the source it is written: made from the
// subsystem, it names the function that made it.
class LogPlace {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): stands for its subsystem.
  constexpr LogPlace(LogSubsystem subsystem,
                     const char* function = __builtin_FUNCTION(),
                     int line = __builtin_LINE()) noexcept
      : subsystem_(subsystem), function_(function), line_(line) {}

  constexpr LogSubsystem subsystem() const noexcept { return subsystem_; }
  constexpr const char* function() const noexcept { return function_; }
  constexpr int line() const noexcept { return line_; }

 private:
  LogSubsystem subsystem_;
  const char* function_;
  int line_;
};

// False when the text would be dropped; spares the caller from building it.
// Thread-safe.
bool LogEnabled(LogLevel level, LogSubsystem subsystem) noexcept;

// Logs one line, without its newline, through the core's `fi_log`: cause,
// object, cure. Longer than 1,023 bytes is cut. Keeps errno. Thread-safe.
void Log(LogLevel level, LogPlace place, const char* format, ...) noexcept
    __attribute__((format(printf, 3, 4)));

}  // namespace heddle::base
