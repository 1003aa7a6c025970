// SPDX-License-Identifier: Apache-2.0
// Seed of a randomised test.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>

namespace heddle {

// The seed that the running test took, for whoever repeats it.
inline std::optional<uint32_t> latest_test_seed;

// The value of HEDDLE_TEST_SEED, or another one in each run; prints it, so that
// a failure can be repeated.
inline uint32_t TestSeed() {
  const char* given = std::getenv("HEDDLE_TEST_SEED");
  const uint32_t seed =
      given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10))
                       : std::random_device{}();
  std::printf("HEDDLE_TEST_SEED=%u\n", static_cast<unsigned>(seed));
  latest_test_seed = seed;
  return seed;
}

}  // namespace heddle
