// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/coverage_counters.h"

#include <utility>

#include "verilated_cov.h"

namespace heddle::fuzz {
namespace {

CoveragePoints points;

}  // namespace

CoveragePoints TakeCoveragePoints() {
  return std::exchange(points, {});
}

}  // namespace heddle::fuzz

// The linker lets a model's registration of a point pass through here
// (--wrap of VerilatedCovContext::_inserti(uint32_t*)): Verilator offers no way
// to read counters but to write them to a file.
extern "C" {
void __real__ZN19VerilatedCovContext8_insertiEPj(VerilatedCovContext* context,
                                                 uint32_t* counter);
void __wrap__ZN19VerilatedCovContext8_insertiEPj(VerilatedCovContext* context,
                                                 uint32_t* counter) {
  heddle::fuzz::points.push_back(counter);
  __real__ZN19VerilatedCovContext8_insertiEPj(context, counter);
}
}
