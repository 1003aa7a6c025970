// SPDX-License-Identifier: Apache-2.0
// Where the tests of the checker have their traces from.
#pragma once

#include <cstdint>

#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

// A trace of `stream` without a fault: of the ideal devices, or of soft devices
// in virtual time, as the program is linked. `seed` chooses among those of the
// ideal devices.
Trace RunRight(const Stream& stream, uint64_t seed);

}  // namespace heddle::differential
