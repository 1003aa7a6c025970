// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/dma_memory.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/random.h"

namespace heddle::soft {
namespace {

class DmaMemoryTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 4096;

  uint64_t At(size_t offset) const {
    return reinterpret_cast<uint64_t>(host_.data() + offset);
  }
  void Map(size_t offset, size_t bytes) {
    ASSERT_TRUE(memory_.Map(At(offset), bytes).ok());
  }

  alignas(64) std::array<uint8_t, kBytes> host_{};
  DmaMemory memory_;
};

TEST_F(DmaMemoryTest, EmptyAndWrappingRangesAreRefused) {
  EXPECT_EQ(memory_.Map(At(0), 0).error(), Errno{EINVAL});
  EXPECT_EQ(memory_.Map(UINT64_MAX - 4, 16).error(), Errno{EINVAL});
  EXPECT_EQ(memory_.ranges(), 0u);
}

TEST_F(DmaMemoryTest, AnAccessOutsideTouchesNothingAndIsCounted) {
  Map(64, 64);
  const std::array<uint8_t, 65> ones = [] {
    std::array<uint8_t, 65> bytes{};
    bytes.fill(1);
    return bytes;
  }();
  EXPECT_FALSE(memory_.Write(At(64), ones)) << "one byte behind the range";
  EXPECT_FALSE(memory_.Write(At(63), std::span(ones).first(2)));
  EXPECT_FALSE(memory_.Write(At(128), std::span(ones).first(1)));
  EXPECT_FALSE(memory_.Write(UINT64_MAX, std::span(ones).first(2)));
  EXPECT_FALSE(memory_.Store(At(128), 1));
  EXPECT_FALSE(memory_.Store(At(65), 1)) << "not at a word";
  EXPECT_FALSE(memory_.Publish(At(120), std::span(ones).first<64>()));
  EXPECT_EQ(host_, (std::array<uint8_t, kBytes>{}));
  EXPECT_EQ(memory_.blocked_writes(), 7u);
  std::array<uint8_t, 65> got{};
  EXPECT_FALSE(memory_.Read(At(64), got));
  EXPECT_EQ(memory_.ReadPointer(At(0), 1), nullptr);
  EXPECT_EQ(memory_.blocked_reads(), 2u);
  EXPECT_TRUE(memory_.Write(At(64), std::span(ones).first(64)));
  EXPECT_EQ(memory_.blocked_writes(), 7u);
}

TEST_F(DmaMemoryTest, NoBytesAreFoundAnywhere) {
  EXPECT_TRUE(memory_.Write(0, {}));
  EXPECT_TRUE(memory_.Read(UINT64_MAX, {}));
  EXPECT_NE(memory_.ReadPointer(12345, 0), nullptr);
  EXPECT_EQ(memory_.blocked_reads() + memory_.blocked_writes(), 0u);
}

TEST_F(DmaMemoryTest, NothingIsReachedAfterUnmapButThroughAnotherRange) {
  Map(0, 256);
  Map(128, 256);
  EXPECT_NE(memory_.ReadPointer(At(0), 384), nullptr) << "across two ranges";
  memory_.Unmap(At(0), 256);
  EXPECT_EQ(memory_.ReadPointer(At(0), 1), nullptr) << "found in the cache";
  EXPECT_EQ(memory_.ReadPointer(At(127), 2), nullptr);
  EXPECT_NE(memory_.ReadPointer(At(128), 256), nullptr);
  memory_.Unmap(At(128), 256);
  EXPECT_EQ(memory_.ReadPointer(At(200), 1), nullptr);
}

// The cache must never say more than the table.
TEST_F(DmaMemoryTest, AgreesWithAByteMapOnRandomAccesses) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    sim::base::Random random(seed);
    DmaMemory memory;
    std::array<int, kBytes> mapped{};
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    for (int step = 0; step < 2000; ++step) {
      const uint32_t start = random.Below(kBytes - 1);
      const uint32_t bytes = 1 + random.Below(kBytes - start - 1) % 300;
      const uint32_t what = random.Below(10);
      if (what == 0) {
        ASSERT_TRUE(memory.Map(At(start), bytes).ok());
        ranges.emplace_back(start, bytes);
        for (uint32_t i = 0; i < bytes; ++i) ++mapped[start + i];
      } else if (what == 1 && !ranges.empty()) {
        const auto which = random.Below(static_cast<uint32_t>(ranges.size()));
        const auto [first, count] = ranges[which];
        memory.Unmap(At(first), count);
        ranges.erase(ranges.begin() + which);
        for (uint32_t i = 0; i < count; ++i) --mapped[first + i];
      } else {
        bool all = true;
        for (uint32_t i = 0; i < bytes; ++i) {
          all = all && mapped[start + i] > 0;
        }
        ASSERT_EQ(memory.ReadPointer(At(start), bytes) != nullptr, all);
      }
    }
  }
}

TEST_F(DmaMemoryTest, EntriesAndCellsArriveWhole) {
  Map(0, kBytes);
  std::array<uint8_t, 64> entry{};
  for (size_t i = 0; i < entry.size(); ++i) entry[i] = uint8_t(i + 1);
  ASSERT_TRUE(memory_.Publish(At(64), entry));
  EXPECT_EQ(std::memcmp(&host_[64], entry.data(), entry.size()), 0);
  EXPECT_EQ(host_[63], 0);
  EXPECT_EQ(host_[128], 0);
  ASSERT_TRUE(memory_.Store(At(256), 0x0102030405060708));
  EXPECT_EQ(host_[256], 8);
  EXPECT_EQ(host_[263], 1);
}

// A host that sees the last word sees payload and the rest of the entry.
TEST_F(DmaMemoryTest, WhatWasWrittenBeforeAnEntryIsSeenWithIt) {
  Map(0, kBytes);
  constexpr uint64_t kRounds = 2000;
  std::atomic<uint64_t> taken = 0;
  std::thread device([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      std::array<uint64_t, 8> entry;
      entry.fill(round);
      EXPECT_TRUE(memory_.Write(At(1024),
                                {reinterpret_cast<const uint8_t*>(&round), 8}));
      EXPECT_TRUE(memory_.Publish(
          At(0), std::span<const uint8_t, 64>(
                     reinterpret_cast<const uint8_t*>(entry.data()), 64)));
      while (taken.load() != round) {
        std::this_thread::yield();
      }
    }
  });
  auto* const words = reinterpret_cast<uint64_t*>(host_.data());
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const std::atomic_ref<uint64_t> last(words[7]);
    while (last.load(std::memory_order_acquire) != round) {
      std::this_thread::yield();
    }
    ASSERT_EQ(words[128], round) << "payload";
    for (int i = 0; i < 7; ++i) ASSERT_EQ(words[i], round) << i;
    taken = round;
  }
  device.join();
}

}  // namespace
}  // namespace heddle::soft
