// SPDX-License-Identifier: Apache-2.0
// Seed of a randomised test.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace heddle {

// The value of HEDDLE_TEST_SEED, or another one in each run; prints it, so that
// a failure can be repeated.
inline uint32_t TestSeed() {
  const char* given = std::getenv("HEDDLE_TEST_SEED");
  const uint32_t seed =
      given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10))
                       : std::random_device{}();
  std::printf("HEDDLE_TEST_SEED=%u\n", static_cast<unsigned>(seed));
  return seed;
}

}  // namespace heddle
