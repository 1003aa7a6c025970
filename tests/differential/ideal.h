// SPDX-License-Identifier: Apache-2.0
// Devices that do everything right, at once: what the checker must
// find nothing in, until a bug is put into it.
#pragma once

#include <cstdint>

#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

// A trace that is allowed for `stream`. `seed` chooses among those: how
// messages of different senders interleave, when completions are seen.
Trace RunIdeally(const Stream& stream, uint64_t seed);

}  // namespace heddle::differential
