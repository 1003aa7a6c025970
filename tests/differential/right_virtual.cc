// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/right.h"
#include "tests/differential/virtual_run.h"

namespace heddle::differential {

Trace RunRight(const Stream& stream, uint64_t /*seed*/) {
  return RunVirtually(stream, {}).trace;
}

}  // namespace heddle::differential
