// SPDX-License-Identifier: Apache-2.0
// Randomness of a test.
#pragma once

#include <cstdint>
#include <cstdio>

#include "hw/sim/base/random.h"

namespace heddle::test {

// Uniform 32-bit numbers; printed seeds repeat a run.
class Rng {
 public:
  explicit Rng(uint64_t seed) : random_(seed) {}
  uint32_t operator()() { return static_cast<uint32_t>(random_.Next() >> 32); }

 private:
  sim::base::Random random_;
};

inline uint32_t Seed(uint32_t seed) {
  std::printf("seed %u\n", seed);
  return seed;
}

}  // namespace heddle::test
