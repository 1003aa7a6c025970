// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/growing_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "tests/host/nic/loopback_device.h"

namespace heddle::nic {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

struct GrowingMemoryTest : ::testing::Test {
  std::shared_ptr<test::LoopbackWire> wire =
      std::make_shared<test::LoopbackWire>();
  test::LoopbackDevice device{wire, {.own_thread = false}};
};

TEST_F(GrowingMemoryTest, GrowsWithoutMovingAndKeepsContents) {
  auto created = GrowingMemory::Create(device, 64 * kMebibyte, 4096);
  ASSERT_TRUE(created.ok());
  GrowingMemory memory = std::move(created.value());
  void* const data = memory.data();
  const Iova iova = memory.iova();
  std::memset(data, 0x5a, 4096);
  ASSERT_TRUE(memory.Grow(10 * kMebibyte).ok());
  EXPECT_EQ(memory.data(), data);
  EXPECT_EQ(memory.iova(), iova);
  EXPECT_GE(memory.bytes(), 10 * kMebibyte);
  EXPECT_EQ(static_cast<unsigned char*>(data)[4095], 0x5a);
  EXPECT_EQ(static_cast<unsigned char*>(data)[4096], 0);
  EXPECT_EQ(static_cast<unsigned char*>(data)[10 * kMebibyte - 1], 0);
}

TEST_F(GrowingMemoryTest, RefusesToGrowBeyondItsLimit) {
  auto created = GrowingMemory::Create(device, kMebibyte, 4096);
  ASSERT_TRUE(created.ok());
  EXPECT_TRUE(created.value().Grow(kMebibyte).ok());
  auto more = created.value().Grow(kMebibyte + 1);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error(), Errno{ENOMEM});
}

TEST_F(GrowingMemoryTest, UnmapsEverythingThatItMapped) {
  {
    auto created = GrowingMemory::Create(device, 64 * kMebibyte, 4096 * 3);
    ASSERT_TRUE(created.ok());
    ASSERT_TRUE(created.value().Grow(kMebibyte).ok());
    EXPECT_GT(device.mapping_count(), 1U);
  }
  EXPECT_EQ(device.mapping_count(), 0U);
  EXPECT_FALSE(device.failed()) << device.failure();
}

}  // namespace
}  // namespace heddle::nic
