// SPDX-License-Identifier: Apache-2.0
#include "tests/rtl/toeplitz.h"

#include <array>
#include <cstdint>
#include <iostream>

#include "Vheddle_toeplitz.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "tests/rtl/pins.h"

namespace heddle::test {
namespace {

constexpr size_t kDataBits = 96;
constexpr size_t kHashBits = 32;
constexpr size_t kKeyBits = kDataBits + kHashBits - 1;

class ToeplitzTest : public testing::Test {
 protected:
  void SetKey(const std::array<uint64_t, 2>& key) {
    PutBits(dut_.key_i, 0, 64, key[0]);
    PutBits(dut_.key_i, 64, kKeyBits - 64, key[1]);
  }
  uint32_t Hash(const std::array<uint64_t, 2>& data) {
    PutBits(dut_.data_i, 0, 64, data[0]);
    PutBits(dut_.data_i, 64, kDataBits - 64, data[1]);
    dut_.eval();
    return dut_.hash_o;
  }

  Vheddle_toeplitz dut_;
};

// The vectors by which network interfaces verify receive side scaling: TCP over
// IPv4. There the first bit of key, data and hash is the highest.
TEST_F(ToeplitzTest, HashesAsReceiveSideScalingDoes) {
  // Its first 128 bits; the last one is beyond those that count.
  constexpr uint64_t kHigh = 0x6d5a56da255b0ec2;
  constexpr uint64_t kLow = 0x4167253d43a38fb0;
  SetKey({kLow >> 1 | kHigh << 63, kHigh >> 1});
  const struct {
    uint32_t source, target;
    uint16_t source_port, target_port;
    uint32_t hash;
  } vectors[] = {
      {0x420995bb, 0xa18e6450, 2794, 1766, 0x51ccc178},
      {0xc75c6f02, 0x41458c53, 14230, 4739, 0xc626b0ea},
      {0x1813c65f, 0x0c16cfb8, 12898, 38024, 0x5c2b394a},
  };
  for (const auto& v : vectors) {
    const uint64_t ports = uint64_t{v.source_port} << 16 | v.target_port;
    EXPECT_EQ(Hash({uint64_t{v.target} << 32 | ports, v.source}), v.hash);
  }
}

TEST_F(ToeplitzTest, RandomDataUnderRandomKeys) {
  constexpr uint64_t kSeed = 0x70e;
  std::cout << "seed " << kSeed << '\n';
  sim::base::Random random(kSeed);
  for (int i = 0; i < 10000; ++i) {
    const std::array<uint64_t, 2> key = {
        random.Next(), random.Next() & ((uint64_t{1} << (kKeyBits - 64)) - 1)};
    const std::array<uint64_t, 2> data = {random.Next(),
                                          random.Next() & 0xffffffff};
    SetKey(key);
    ASSERT_EQ(Hash(data), Toeplitz(key, data, kHashBits)) << i;
  }
}

}  // namespace
}  // namespace heddle::test
