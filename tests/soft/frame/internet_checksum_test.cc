// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/frame/internet_checksum.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/random.h"

namespace heddle::soft::frame {
namespace {

// RFC 1071, word by word.
uint16_t Expected(std::span<const uint8_t> bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    sum += i % 2 == 0 ? uint32_t{bytes[i]} << 8 : bytes[i];
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>(sum);
}

// Lengths and alignments around every loop; a sum of all ones is the largest.
TEST(InternetChecksumTest, AgreesWithTheDefinition) {
  constexpr uint64_t kSeed = 23;
  SCOPED_TRACE(kSeed);
  sim::base::Random random(kSeed);
  std::vector<uint8_t> data(9300);
  for (const bool ones : {false, true}) {
    for (uint8_t& byte : data) {
      byte = ones ? 0xff : static_cast<uint8_t>(random.Next());
    }
    for (size_t length = 0; length < 9290; length += length < 600 ? 1 : 61) {
      for (const size_t start : {0u, 1u, 8u}) {
        const std::span<const uint8_t> bytes(data.data() + start, length);
        const uint16_t expected = Expected(bytes);
        ASSERT_EQ(ChecksumFold(ChecksumPart(bytes)), expected) << length;
      }
    }
  }
}

TEST(InternetChecksumTest, PartsOfEvenLengthAddUp) {
  std::vector<uint8_t> data(700);
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<uint8_t>(i * 7);
  }
  const std::span<const uint8_t> all(data);
  for (size_t cut = 0; cut <= all.size(); cut += 2) {
    EXPECT_EQ(ChecksumFold(ChecksumPart(all.first(cut)) +
                           ChecksumPart(all.subspan(cut))),
              Expected(all));
  }
}

}  // namespace
}  // namespace heddle::soft::frame
