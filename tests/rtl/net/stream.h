// SPDX-License-Identifier: Apache-2.0
// What the tests of the network side share.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/sim/base/random.h"
#include "tests/rtl/pins.h"

namespace heddle::test {

constexpr uint32_t kStrobe = HEDDLE_DATA_W / 8;  // Bytes of a beat.

inline uint32_t Beats(size_t bytes) {
  return static_cast<uint32_t>((bytes + kStrobe - 1) / kStrobe);
}

inline std::vector<uint8_t> RandomBytes(sim::base::Random& rng, size_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.Next() >> 40);
  return bytes;
}

// Beat `index` of `bytes`; what is beyond the end is noise.
template <typename Port>
void PutBeat(Port& port, const std::vector<uint8_t>& bytes, size_t index,
             sim::base::Random& rng) {
  uint8_t* out = PinBytes(port);
  for (size_t i = 0; i < kStrobe; ++i) {
    const size_t at = index * kStrobe + i;
    out[i] = at < bytes.size() ? bytes[at] : static_cast<uint8_t>(rng.Next());
  }
}

// Ones' complement sum of 16-bit big-endian words, an odd last byte padded.
inline uint32_t OnesSum(const uint8_t* bytes, size_t count, uint32_t sum = 0) {
  for (size_t i = 0; i < count; ++i) {
    sum += i % 2 ? bytes[i] : uint32_t{bytes[i]} << 8;
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return (sum & 0xffff) + (sum >> 16);
}

}  // namespace heddle::test
