// SPDX-License-Identifier: Apache-2.0
// What the library needs of the libfabric core that it runs in: a stock one, or
// its own.
#pragma once

#include "host/lib/base/log.h"

namespace heddle::base {

// A setting as a core lists it (`fi_info -e`).
struct Parameter {
  const char* name = nullptr;  // Without the provider's prefix.
  bool number = false;         // Else text.
  const char* help = nullptr;  // One line. The core copies it.
};

// Every member is set; all are thread-safe and throw nothing.
struct CoreServices {
  bool stock = false;  // A stock core loaded the library.
  bool (*log_enabled)(LogLevel level,
                      LogSubsystem subsystem) noexcept = nullptr;
  // `line` ends with a newline.
  void (*log)(LogLevel level, const LogPlace& place,
              const char* line) noexcept = nullptr;
  void (*define_parameter)(const Parameter& parameter) noexcept = nullptr;
};

// The core of this process's copy of the library. Until `UseCore`, one that
// logs and lists nothing.
const CoreServices& Core() noexcept;

// Called once, before the first call of the API; `services` outlives the
// process.
void UseCore(const CoreServices& services) noexcept;

}  // namespace heddle::base
