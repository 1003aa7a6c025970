// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/ideal.h"
#include "tests/differential/right.h"

namespace heddle::differential {

Trace RunRight(const Stream& stream, uint64_t seed) {
  return RunIdeally(stream, seed);
}

}  // namespace heddle::differential
