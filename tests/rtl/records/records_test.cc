// SPDX-License-Identifier: Apache-2.0
// Compares generated records with the fields of their packed structs.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "Vrecords_probe.h"
#include "gtest/gtest.h"
#include "rtl/odd_records.h"
#include "tests/rtl/pins.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

using rtl::Color;

static_assert(rtl::kWidth == 13 && rtl::kEntries == 5 && rtl::kOn);
static_assert(rtl::kBelow == -3 && rtl::kByte == 0xff);
static_assert(static_cast<int>(Color::kGreen) == 3);
static_assert(static_cast<int>(Color::kBlue) == 6);
static_assert(std::is_same_v<decltype(rtl::Odd::flag), bool>);
static_assert(std::is_same_v<decltype(rtl::Odd::one), uint8_t>);
static_assert(std::is_same_v<decltype(rtl::Odd::index), uint16_t>);
static_assert(std::is_same_v<decltype(rtl::Odd::second), Color>);
static_assert(std::is_same_v<decltype(rtl::Odd::colors), std::array<Color, 2>>);

class RecordsTest : public testing::Test {
 protected:
  RecordsTest() : rng_(TestSeed()) {}

  // A record of random bits.
  rtl::Odd Random() {
    std::array<uint8_t, (rtl::Odd::kBits + 7) / 8> bits;
    for (uint8_t& byte : bits) byte = static_cast<uint8_t>(rng_());
    return rtl::SampleAt<rtl::Odd>(bits, 0);
  }

  Vrecords_probe dut_;
  std::mt19937 rng_;
};

TEST_F(RecordsTest, EachFieldIsWhereTheRtlHasIt) {
  for (int i = 0; i < 1000; ++i) {
    const rtl::Odd odd = Random();
    rtl::Drive(dut_.record_i, odd);
    for (uint8_t element = 0; element < 4; ++element) {
      dut_.element_i = element;
      dut_.eval();
      ASSERT_EQ(dut_.fives_o, odd.fives[element]);
      ASSERT_EQ(dut_.colors_o, static_cast<uint8_t>(odd.colors[element % 2]));
      ASSERT_EQ(GetBits(dut_.wides_o, 0, 64), odd.wides[element % 2][0]);
      ASSERT_EQ(GetBits(dut_.wides_o, 64, 36), odd.wides[element % 2][1]);
      if (element == 3) continue;
      ASSERT_EQ(dut_.sevens_o, odd.sevens[1][element]);
      ASSERT_EQ(rtl::Sample<rtl::Inner>(dut_.inners_o), odd.inners[element]);
      ASSERT_EQ(rtl::SampleElement<rtl::Inner>(dut_.array_o, element),
                odd.inners[element]);
    }
    ASSERT_EQ(dut_.bits_o, rtl::Odd::kBits);
    ASSERT_EQ(dut_.flag_o, odd.flag);
    ASSERT_EQ(dut_.one_o, odd.one);
    ASSERT_EQ(dut_.index_o, odd.index);
    ASSERT_EQ(dut_.first_o, static_cast<uint8_t>(odd.first));
    ASSERT_EQ(dut_.second_o, static_cast<uint8_t>(odd.second));
    ASSERT_EQ(dut_.middle_o, odd.middle);
    ASSERT_EQ(dut_.word_o, odd.word);
    ASSERT_EQ(GetBits(dut_.more_o, 0, 64), odd.more_lo);
    ASSERT_EQ(GetBits(dut_.more_o, 64, 1), odd.more_hi);
    ASSERT_EQ(GetBits(dut_.address_o, 0, 64), odd.address_lo);
    ASSERT_EQ(GetBits(dut_.address_o, 64, 36), odd.address_hi);
    for (size_t w = 0; w < 4; ++w) {
      ASSERT_EQ(GetBits(dut_.wide_o, 64 * w, w == 3 ? 8 : 64), odd.wide[w]);
    }
    ASSERT_EQ(dut_.inner_valid_o, odd.inner.valid);
    ASSERT_EQ(dut_.inner_color_o, static_cast<uint8_t>(odd.inner.color));
    ASSERT_EQ(dut_.inner_index_o, odd.inner.index);
    ASSERT_EQ(dut_.high_o, odd.high);
    ASSERT_EQ(dut_.operator_o, odd.operator_);
  }
}

TEST_F(RecordsTest, DriveReplacesAllBitsOfAPortAndAnElementNoOthers) {
  std::memset(&dut_.record_i, 0xff, sizeof dut_.record_i);
  rtl::Drive(dut_.record_i, rtl::Odd{});
  EXPECT_EQ(rtl::Sample<rtl::Odd>(dut_.record_i), rtl::Odd{});
  std::array<uint8_t, 7> port;
  port.fill(0xff);
  rtl::DriveElement(port, 1, rtl::Inner{.index = 0x5a5});
  EXPECT_EQ(GetBits(port, 0, 17), 0x1ffffu);
  EXPECT_EQ(rtl::SampleElement<rtl::Inner>(port, 1).index, 0x5a5);
  EXPECT_EQ(GetBits(port, 34, 22), 0x3fffffu);
}

TEST_F(RecordsTest, ValuesAreTruncatedToTheirFields) {
  const rtl::Inner wide = {.index = 0xffff};
  EXPECT_EQ(wide, (rtl::Inner{.index = 0x1fff}));
  EXPECT_NE(wide, (rtl::Inner{.index = 0x0fff}));
  EXPECT_NE(wide, (rtl::Inner{.valid = true, .index = 0x1fff}));
}

TEST_F(RecordsTest, FailuresShowTheFieldsThatAreNotZero) {
  rtl::Odd odd = {.index = 0x1a, .inner = {.valid = true}};
  odd.fives[2] = 3;
  EXPECT_EQ(testing::PrintToString(odd),
            "{ index=0x1a inner={ valid=0x1 } fives=0x0,0x0,0x3,0x0 }");
}

TEST_F(RecordsTest, WireBytesAreThoseFromTheTop) {
  const std::vector<uint8_t> bytes = {1, 2, 3};
  const auto wide = rtl::Wide<200>::FromWireBytes(bytes);
  EXPECT_EQ(wide[3], 0x01u);
  EXPECT_EQ(wide[2], uint64_t{0x0203} << 48);
  std::vector<uint8_t> all(25);
  std::memcpy(all.data(), bytes.data(), bytes.size());
  EXPECT_EQ(wide.WireBytes(), all);
}

TEST_F(RecordsTest, WideHoldsTheImageOfARecord) {
  struct Image {
    uint64_t a;
    uint32_t b, c;
    bool operator==(const Image&) const = default;
  };
  const Image image = {1, 2, 3};
  const auto wide = rtl::Wide<128>::From(image);
  EXPECT_EQ(wide[1], uint64_t{3} << 32 | 2);
  EXPECT_EQ(wide.To<Image>(), image);
}

}  // namespace
}  // namespace heddle::test
