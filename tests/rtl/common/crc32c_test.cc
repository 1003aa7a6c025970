// SPDX-License-Identifier: Apache-2.0
#include "tests/rtl/crc32c.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <span>
#include <vector>

#include "Vcrc32c_back.h"
#include "Vcrc32c_forward_by_1.h"
#include "Vcrc32c_forward_by_128.h"
#include "Vcrc32c_inverse_by_1.h"
#include "Vheddle_crc32c.h"
#include "Vheddle_crc32c_mul.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "tests/rtl/pins.h"

namespace heddle::test {
namespace {

constexpr size_t kBeat = HEDDLE_DATA_W / 8;
constexpr size_t kStack = 144;  // Bytes of the model that goes back.

class Crc32cTest : public testing::Test {
 protected:
  static constexpr uint64_t kSeed = 0xc3c;

  void SetUp() override { std::cout << "seed " << kSeed << '\n'; }

  std::vector<uint8_t> Bytes(size_t count) {
    std::vector<uint8_t> bytes(count);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng_.Next());
    return bytes;
  }

  // State behind `bytes` and the zeros that fill its last beat.
  uint32_t Padded(uint32_t state, std::span<const uint8_t> bytes) {
    for (size_t at = 0; at < bytes.size(); at += kBeat) {
      const size_t count = std::min(kBeat, bytes.size() - at);
      uint8_t* beat = PinBytes(step_.data_i);
      std::fill_n(beat, kBeat, uint8_t{0});
      std::copy_n(bytes.data() + at, count, beat);
      step_.crc_i = state;
      step_.en_i = 1;
      step_.eval();
      state = step_.crc_o;
    }
    return state;
  }

  uint32_t Times(uint32_t a, uint32_t b) {
    mul_.a_i = a;
    mul_.b_i = b;
    mul_.en_i = 1;
    mul_.eval();
    return mul_.product_o;
  }

  // Moves over `bytes` zeros.
  uint32_t Forward(uint32_t state, size_t bytes) {
    by_1_.count_i = static_cast<uint8_t>(bytes % 128);
    by_1_.eval();
    by_128_.count_i = static_cast<uint8_t>(bytes / 128);
    by_128_.eval();
    return Times(state, Times(by_1_.power_o, by_128_.power_o));
  }

  // Takes `bytes` zeros back.
  uint32_t Back(uint32_t state, size_t bytes) {
    inverse_.count_i = static_cast<uint8_t>(bytes);
    inverse_.eval();
    return Times(state, inverse_.power_o);
  }

  uint32_t State(uint32_t state, std::span<const uint8_t> bytes) {
    return Back(Padded(state, bytes), (kBeat - bytes.size() % kBeat) % kBeat);
  }

  sim::base::Random rng_{kSeed};
  Vheddle_crc32c step_;
  Vheddle_crc32c_mul mul_;
  Vcrc32c_forward_by_1 by_1_;
  Vcrc32c_forward_by_128 by_128_;
  Vcrc32c_inverse_by_1 inverse_;
  Vcrc32c_back back_;
};

TEST_F(Crc32cTest, KnownValues) {
  const std::array<uint8_t, 9> digits = {'1', '2', '3', '4', '5',
                                         '6', '7', '8', '9'};
  EXPECT_EQ(Crc32c(digits), 0xe3069283u);
  EXPECT_EQ(~State(0xffffffffu, digits), 0xe3069283u);
  // RFC 3720, B.4.
  const std::vector<uint8_t> zeros(32, 0x00);
  const std::vector<uint8_t> ones(32, 0xff);
  EXPECT_EQ(~State(0xffffffffu, zeros), 0x8a9136aau);
  EXPECT_EQ(~State(0xffffffffu, ones), 0x62a8ab43u);
}

TEST_F(Crc32cTest, WholeBeatsAgreeWithTheDefinition) {
  for (uint32_t i = 0; i < 200; ++i) {
    const auto start = static_cast<uint32_t>(rng_.Next());
    const std::vector<uint8_t> bytes = Bytes(kBeat * (1 + rng_.Below(8)));
    ASSERT_EQ(Padded(start, bytes), Crc32cState(start, bytes));
  }
}

TEST_F(Crc32cTest, PaddingOfThePartialLastBeatIsUndone) {
  for (size_t count = 1; count <= 4 * kBeat; ++count) {
    const auto start = static_cast<uint32_t>(rng_.Next());
    const std::vector<uint8_t> bytes = Bytes(count);
    ASSERT_EQ(State(start, bytes), Crc32cState(start, bytes)) << count;
  }
}

TEST_F(Crc32cTest, StatesOfPartsJoin) {
  for (uint32_t i = 0; i < 300; ++i) {
    const std::vector<uint8_t> whole = Bytes(16383);
    const size_t cut = i < 2 ? i * whole.size() : rng_.Below(16384);
    const std::span<const uint8_t> first = std::span(whole).first(cut);
    const std::span<const uint8_t> second = std::span(whole).subspan(cut);
    const uint32_t left = Crc32cState(0xffffffffu, first);
    const uint32_t right = Crc32cState(0, second);
    ASSERT_EQ(Forward(left, second.size()) ^ right,
              Crc32cState(0xffffffffu, whole))
        << cut;
  }
}

TEST_F(Crc32cTest, BackGivesAnyLengthOfAStackFromItsPaddedBytes) {
  for (size_t count = 4; count <= kStack; ++count) {
    const std::vector<uint8_t> bytes = Bytes(count);
    uint8_t* stack = PinBytes(back_.data_i);
    std::fill_n(stack, kStack, uint8_t{0});
    std::copy(bytes.begin(), bytes.end(), stack);
    back_.crc_i = 0xffffffffu;
    back_.en_i = 1;
    back_.eval();
    ASSERT_EQ(Forward(back_.crc_o, count), Crc32cState(0xffffffffu, bytes))
        << count;
  }
}

TEST_F(Crc32cTest, RestsWhileNotEnabled) {
  step_.crc_i = 0xffffffffu;
  step_.en_i = 0;
  step_.eval();
  EXPECT_EQ(step_.crc_o, 0u);
  mul_.a_i = 0x80000000u;
  mul_.b_i = 0x12345678u;
  mul_.en_i = 1;
  mul_.eval();
  EXPECT_EQ(mul_.product_o, 0x12345678u);
  mul_.en_i = 0;
  mul_.eval();
  EXPECT_EQ(mul_.product_o, 0u);
}

}  // namespace
}  // namespace heddle::test
