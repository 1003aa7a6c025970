// SPDX-License-Identifier: Apache-2.0
// Rates under traffic that the mechanisms do not favor.
#pragma once

#include <cstdint>

#include "bench/system/measurements.h"

namespace heddle::bench {

// Cycles per 8-byte SEND from one context to `peers` endpoints in turn, `burst`
// at a time to each; one completion in 16.
struct Turns {
  uint32_t peers = 1;
  uint32_t burst = 1;
};
double MeasureCyclesPerMessage(const Conditions& conditions,
                               const Turns& turns);

}  // namespace heddle::bench
