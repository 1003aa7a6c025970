// SPDX-License-Identifier: Apache-2.0
// The line coverage of the Verilated NIC, as libFuzzer counts coverage.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::fuzz {

// Counters of the coverage points of one model.
using CoveragePoints = std::vector<uint32_t*>;

// Those of models created since the last call.
CoveragePoints TakeCoveragePoints();

}  // namespace heddle::fuzz
