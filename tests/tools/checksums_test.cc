// SPDX-License-Identifier: Apache-2.0
#include "tools/heddle/checksums.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace heddle::tool {
namespace {

Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Source: RFC 3720, B.4, and the check value of CRC-32C.
TEST(Crc32c, HasThePublishedValues) {
  Crc32c check;
  check.Add(AsBytes("123456789"));
  EXPECT_EQ(check.Value(), 0xe3069283u);
  Crc32c zeros;
  zeros.Add(std::vector<uint8_t>(32, 0));
  EXPECT_EQ(zeros.Value(), 0x8a9136aau);
  Crc32c ones;
  ones.Add(std::vector<uint8_t>(32, 0xff));
  EXPECT_EQ(ones.Value(), 0x62a8ab43u);
}

TEST(Crc32c, IsTheSameInPieces) {
  Crc32c pieces;
  pieces.Add(AsBytes("1234"));
  pieces.Add(AsBytes(""));
  pieces.Add(AsBytes("56789"));
  EXPECT_EQ(pieces.Value(), 0xe3069283u);
}

// Source: RFC 1071, section 3.
TEST(InternetChecksum, HasThePublishedValue) {
  const std::vector<uint8_t> data = {0x00, 0x01, 0xf2, 0x03,
                                     0xf4, 0xf5, 0xf6, 0xf7};
  InternetChecksum sum;
  sum.Add(data);
  EXPECT_EQ(sum.Value(), static_cast<uint16_t>(~0xddf2));
}

TEST(InternetChecksum, IsZeroOverDataWithItsChecksumAndAnOddByte) {
  const std::vector<uint8_t> data = {0x12, 0x34, 0x56};
  InternetChecksum sum;
  sum.Add(data);
  InternetChecksum all;
  all.AddWord(sum.Value());
  all.Add(data);
  EXPECT_EQ(all.Value(), 0);
}

}  // namespace
}  // namespace heddle::tool
