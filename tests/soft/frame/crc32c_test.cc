// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/frame/crc32c.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/soft/frame/crc32c_folded.h"
#include "tests/rtl/crc32c.h"

namespace heddle::soft::frame {
namespace {

std::vector<uint8_t> Bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

// Each way of computing it that this machine has.
std::vector<Crc32cFunction> Functions() {
  std::vector<Crc32cFunction> functions = {Crc32cByTable};
  if (Crc32cOfCpu() != nullptr) {
    functions.push_back(Crc32cOfCpu());
  }
  return functions;
}

TEST(Crc32cTest, AgreesWithPublishedVectors) {
  EXPECT_EQ(Crc32c({}), 0u);
  EXPECT_EQ(Crc32c(Bytes("123456789")), 0xe3069283u);
  // Source: RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0)), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0xff)), 0x62a8ab43u);
  std::vector<uint8_t> rising(32);
  std::vector<uint8_t> falling(32);
  for (uint8_t i = 0; i < 32; ++i) {
    rising[i] = i;
    falling[i] = static_cast<uint8_t>(31 - i);
  }
  EXPECT_EQ(Crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(Crc32c(falling), 0x113fdb5cu);
}

// Lengths and alignments around every loop, against the definition.
TEST(Crc32cTest, EveryWayAgreesWithTheDefinition) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  sim::base::Random random(kSeed);
  std::vector<uint8_t> data(9300);
  for (uint8_t& byte : data) {
    byte = static_cast<uint8_t>(random.Next());
  }
  std::vector<size_t> lengths;
  for (size_t i = 0; i < 40; ++i) lengths.push_back(i);
  for (const size_t part : {256u, 384u, 512u, 576u, 3072u, 4096u, 9216u}) {
    for (int around = -9; around <= 9; ++around) {
      lengths.push_back(part + static_cast<size_t>(around + 9) - 9);
    }
  }
  for (const size_t length : lengths) {
    for (const size_t start : {0u, 1u, 3u, 8u}) {
      const std::span<const uint8_t> bytes(data.data() + start, length);
      const auto state = static_cast<uint32_t>(random.Next());
      const uint32_t expected = test::Crc32cState(state, bytes);
      for (const Crc32cFunction function : Functions()) {
        ASSERT_EQ(function(state, bytes.data(), bytes.size()), expected)
            << length << " bytes at " << start;
      }
      if (Crc32cFolded() != nullptr && length >= kFoldedLeast) {
        ASSERT_EQ(Crc32cFolded()(state, bytes.data(), length), expected)
            << length << " bytes at " << start;
      }
      ASSERT_EQ(Crc32cState(state, bytes), expected);
    }
  }
}

TEST(Crc32cTest, PartsMayBeFedOneAfterAnother) {
  const std::vector<uint8_t> text = Bytes("the quick brown fox jumps over it");
  const std::span<const uint8_t> all(text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t state =
        Crc32cState(Crc32cState(~0u, all.first(cut)), all.subspan(cut));
    EXPECT_EQ(~state, Crc32c(all));
  }
}

}  // namespace
}  // namespace heddle::soft::frame
