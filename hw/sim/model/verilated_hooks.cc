// SPDX-License-Identifier: Apache-2.0
// Verilator's ways to end a simulation; its run-time library is built with
// VL_USER_FINISH, VL_USER_STOP and VL_USER_FATAL.
#include <string>

#include "hw/sim/model/model_stopped.h"
#include "verilated.h"

namespace {

[[noreturn]] void Stop(const char* what, const char* file, int line,
                       const char* scope) {
  std::string reason = what;
  if (file != nullptr && *file != '\0') {
    reason += std::string(" at ") + file + ':' + std::to_string(line);
  }
  if (scope != nullptr && *scope != '\0') {
    reason += std::string(" in ") + scope;
  }
  throw heddle::sim::model::ModelStopped(reason);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): names are Verilator's.
void vl_finish(const char* filename, int linenum, const char* hier) {
  Stop("$finish", filename, linenum, hier);
}

void vl_stop(const char* filename, int linenum, const char* hier) {
  Stop("assertion or $stop", filename, linenum, hier);
}

void vl_fatal(const char* filename, int linenum, const char* hier,
              const char* msg) {
  Stop(msg, filename, linenum, hier);
}
// NOLINTEND(readability-identifier-naming)
