// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/log.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "host/lib/core/services.h"

namespace heddle::core {

bool LogEnabled(LogLevel level, LogSubsystem subsystem) noexcept {
  return CoreLogEnabled(level, subsystem);
}

void Log(LogLevel level, LogPlace place, const char* format, ...) noexcept {
  if (!CoreLogEnabled(level, place.subsystem())) {
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
    CoreLog(level, place, line);
  }
  errno = saved_errno;
}

}  // namespace heddle::core
