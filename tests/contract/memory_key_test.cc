// SPDX-License-Identifier: Apache-2.0
#include "hw/contract/memory_key.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <unordered_set>

namespace heddle::contract {
namespace {

TEST(KeyMaker, KeysLookLikeNoneBeforeOrOfAnotherSecret) {
  const KeyMaker one(1);
  const KeyMaker two(2);
  uint32_t bits = 0;
  uint32_t same = 0;
  for (uint32_t i = 0; i < 4096; ++i) {
    const uint64_t key = one.Make(7, i);
    EXPECT_EQ(RegionOfKey(key), 7U);
    bits += static_cast<uint32_t>(
        std::popcount((key ^ one.Make(7, i + 1)) >> kKeyIndexBits));
    same += key == two.Make(7, i) ? 1 : 0;
  }
  // Half of 28 bits change from key to key.
  EXPECT_NEAR(bits / 4096.0, 14.0, 0.5);
  EXPECT_LE(same, 1U);
}

TEST(KeyMaker, KeysOfOneRegionAreProviderKeysAndDiffer) {
  const KeyMaker keys(1);
  std::unordered_set<uint64_t> made;
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint64_t key = keys.Make(3, i);
    ASSERT_TRUE(IsProviderKey(key));
    ASSERT_FALSE(IsUserKey(key));
    ASSERT_EQ(RegionOfKey(key), 3U);
    // Within the bits that UET leaves to a provider.
    ASSERT_EQ(key >> kKeyUserBits, 1U);
    ASSERT_TRUE(made.insert(key).second) << "generation " << i;
  }
}

}  // namespace
}  // namespace heddle::contract
