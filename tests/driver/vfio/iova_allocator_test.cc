// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/iova_allocator.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "tests/seed.h"

namespace heddle::vfio {
namespace {

constexpr uint64_t kPage = 4096;

TEST(IovaAllocator, RangesAreCutToPagesAndPageZeroIsLeftOut) {
  const std::array<IovaRange, 3> usable = {{{0, 2 * kPage - 1},
                                            {5 * kPage + 1, 8 * kPage},
                                            {20 * kPage, 20 * kPage + 5}}};
  IovaAllocator allocator(usable, kPage);
  EXPECT_EQ(allocator.free_bytes(), 3 * kPage);
  EXPECT_EQ(allocator.Take(kPage, kPage, 0), kPage);
  EXPECT_EQ(allocator.Take(2 * kPage, kPage, 0), 6 * kPage);
  EXPECT_EQ(allocator.Take(kPage, kPage, 0), std::nullopt);
}

TEST(IovaAllocator, LastPageOfTheAddressSpaceIsUsable) {
  const std::array<IovaRange, 1> usable = {
      {{UINT64_MAX - 2 * kPage + 1, UINT64_MAX}}};
  IovaAllocator allocator(usable, kPage);
  EXPECT_EQ(allocator.Take(2 * kPage, kPage, 0), UINT64_MAX - 2 * kPage + 1);
  EXPECT_EQ(allocator.Take(kPage, kPage, 0), std::nullopt);
  allocator.Return(UINT64_MAX - kPage + 1, kPage);
  EXPECT_EQ(allocator.Take(kPage, kPage, 0), UINT64_MAX - kPage + 1);
}

TEST(IovaAllocator, AddressHasTheAlignmentAndPhaseAskedFor) {
  const std::array<IovaRange, 1> usable = {{{kPage, (uint64_t{1} << 30) - 1}}};
  IovaAllocator allocator(usable, kPage);
  constexpr uint64_t kHuge = uint64_t{2} << 20;
  for (uint64_t phase : {uint64_t{0}, kPage, kHuge - kPage}) {
    const std::optional<uint64_t> iova =
        allocator.Take(3 * kHuge, kHuge, phase);
    ASSERT_TRUE(iova);
    EXPECT_EQ(*iova % kHuge, phase);
  }
}

TEST(IovaAllocator, WhatWasReturnedIsNotTakenNext) {
  const std::array<IovaRange, 1> usable = {{{kPage, 5 * kPage - 1}}};
  IovaAllocator allocator(usable, kPage);
  const uint64_t first = allocator.Take(kPage, kPage, 0).value();
  allocator.Return(first, kPage);
  EXPECT_NE(allocator.Take(kPage, kPage, 0), first);
  EXPECT_NE(allocator.Take(kPage, kPage, 0), first);
  EXPECT_NE(allocator.Take(kPage, kPage, 0), first);
  EXPECT_EQ(allocator.Take(kPage, kPage, 0), first);  // Nothing else is left.
}

// Against a map of pages.
TEST(IovaAllocator, RandomUseNeverOverlapsAndLosesNothing) {
  std::mt19937_64 random(TestSeed());
  const std::vector<IovaRange> usable = {{3 * kPage, 90 * kPage - 1},
                                         {100 * kPage, 164 * kPage - 1}};
  constexpr uint64_t kUsablePages = 87 + 64;
  IovaAllocator allocator(usable, kPage);
  std::map<uint64_t, uint64_t> taken;  // First page: pages.
  uint64_t taken_pages = 0;
  for (int step = 0; step < 20000; ++step) {
    if (taken.empty() || random() % 2 == 0) {
      const uint64_t pages = 1 + random() % 12;
      const uint64_t alignment = kPage << (random() % 4);
      const uint64_t phase = random() % (alignment / kPage) * kPage;
      const std::optional<uint64_t> iova =
          allocator.Take(pages * kPage, alignment, phase);
      if (!iova) {
        continue;
      }
      ASSERT_EQ(*iova % alignment, phase);
      const uint64_t first = *iova / kPage;
      const bool low = first >= 3 && first + pages <= 90;
      const bool high = first >= 100 && first + pages <= 164;
      ASSERT_TRUE(low || high) << first << " + " << pages;
      const auto above = taken.lower_bound(first);
      ASSERT_TRUE(above == taken.end() || above->first >= first + pages);
      ASSERT_TRUE(above == taken.begin() ||
                  std::prev(above)->first + std::prev(above)->second <= first);
      taken[first] = pages;
      taken_pages += pages;
    } else {
      auto which = taken.begin();
      std::advance(which, static_cast<long>(random() % taken.size()));
      allocator.Return(which->first * kPage, which->second * kPage);
      taken_pages -= which->second;
      taken.erase(which);
    }
    ASSERT_EQ(allocator.free_bytes(), (kUsablePages - taken_pages) * kPage);
  }
  for (const auto& [first, pages] : taken) {
    allocator.Return(first * kPage, pages * kPage);
  }
  // All in one piece again.
  EXPECT_EQ(allocator.Take(87 * kPage, kPage, 0), 3 * kPage);
  EXPECT_EQ(allocator.Take(64 * kPage, kPage, 0), 100 * kPage);
}

}  // namespace
}  // namespace heddle::vfio
