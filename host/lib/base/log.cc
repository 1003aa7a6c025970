// SPDX-License-Identifier: Apache-2.0
#include "host/lib/base/log.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "host/lib/base/core_services.h"

namespace heddle::base {

bool LogEnabled(LogLevel level, LogSubsystem subsystem) noexcept {
  return Core().log_enabled(level, subsystem);
}

void Log(LogLevel level, LogPlace place, const char* format, ...) noexcept {
  if (!LogEnabled(level, place.subsystem())) {
    return;
  }
  const int saved_errno = errno;
  char line[1025];
  va_list arguments;
  va_start(arguments, format);
  const int written = vsnprintf(line, sizeof(line) - 1, format, arguments);
  va_end(arguments);
  if (written >= 0) {
    const size_t length = strlen(line);
    line[length] = '\n';
    line[length + 1] = '\0';
    Core().log(level, place, line);
  }
  errno = saved_errno;
}

}  // namespace heddle::base
