// SPDX-License-Identifier: Apache-2.0
// The patterns of traffic that docs/performance.md states figures for.
#pragma once

#include <vector>

#include "bench/system/measurements.h"
#include "bench/system/table.h"

namespace heddle::bench {

std::vector<Section> Patterns(const Conditions& conditions);

}  // namespace heddle::bench
