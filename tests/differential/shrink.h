// SPDX-License-Identifier: Apache-2.0
// Finds a small part of a stream that still fails.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/differential/stream.h"

namespace heddle::differential {

// Delta debugging: leaves out ever smaller pieces as long as `fails` says so of
// what remains, then makes what is left plainer. Calls `fails` at most
// `max_runs` times. `fails` may err to false: a run that fails only sometimes
// shrinks less. The last sync always stays.
Stream Shrink(const Stream& failing,
              const std::function<bool(const Stream&)>& fails,
              uint32_t max_runs);

}  // namespace heddle::differential
