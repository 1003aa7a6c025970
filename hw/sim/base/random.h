// SPDX-License-Identifier: Apache-2.0
// Small deterministic generator: the same seed gives the same run on every
// host and standard library.
#pragma once

#include <cstdint>

namespace heddle::sim::base {

// SplitMix64. Streams that must not influence each other have one each.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound); `bound` is at least 1.
  uint32_t Below(uint32_t bound) {
    return static_cast<uint32_t>(((Next() >> 32) * bound) >> 32);
  }

  // True with `probability` in [0, 1].
  bool Chance(double probability) {
    constexpr double kTwoTo53 = 9007199254740992.0;
    return static_cast<double>(Next() >> 11) < probability * kTwoTo53;
  }

 private:
  uint64_t state_;
};

}  // namespace heddle::sim::base
