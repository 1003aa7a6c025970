// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/address_space.h"

#include <gtest/gtest.h>
#include <linux/vfio.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "driver/vfio/uapi.h"
#include "tests/driver/vfio/fake_kernel.h"
#include "tests/seed.h"

namespace heddle::vfio {
namespace {

constexpr uint64_t kPage = 4096;

class AddressSpaceTest : public testing::TestWithParam<const char*> {
 protected:
  AddressSpace& space() {
    if (!space_) {
      std::string message;
      const bool group = GetParam() == std::string("group");
      auto attached =
          group ? AttachGroup(kernel_, FakeKernel::Function(), "", message)
                : AttachIommufd(kernel_, FakeKernel::Function(), message);
      EXPECT_TRUE(attached.ok()) << message;
      iommu_ = std::move(attached.value());
      space_ = std::make_unique<AddressSpace>(*iommu_);
    }
    return *space_;
  }
  static void* At(uint64_t address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody follows it.
    return reinterpret_cast<void*>(address);
  }

  FakeKernel kernel_;
  std::unique_ptr<Iommu> iommu_;
  std::unique_ptr<AddressSpace> space_;
};

TEST_P(AddressSpaceTest, UnalignedRangeIsMappedByItsPages) {
  const Result<Iova> iova = space().Map(At(0x7000'0000'0ff0), 0x20);
  ASSERT_TRUE(iova.ok());
  ASSERT_EQ(kernel_.dma().size(), 1u);
  const auto& [first, dma] = *kernel_.dma().begin();
  EXPECT_EQ(dma.address, 0x7000'0000'0000u);
  EXPECT_EQ(dma.bytes, 2 * kPage);
  EXPECT_TRUE(dma.writable);
  EXPECT_EQ(static_cast<uint64_t>(iova.value()), first + 0xff0);
  EXPECT_EQ(space().pinned_bytes(), 2 * kPage);
  EXPECT_TRUE(space().Unmap(iova.value(), 0x20).ok());
  EXPECT_EQ(kernel_.dma().size(), 0u);
  EXPECT_EQ(space().pinned_bytes(), 0u);
}

TEST_P(AddressSpaceTest, OverlappingRangesHaveMappingsOfTheirOwn) {
  const Iova a = space().Map(At(0x10000), 0x3000).value();
  const Iova b = space().Map(At(0x11000), 0x3000).value();
  const Iova c = space().Map(At(0x10000), 0x3000).value();
  EXPECT_EQ(kernel_.dma().size(), 3u);
  EXPECT_TRUE(space().Unmap(b, 0x3000).ok());
  EXPECT_TRUE(kernel_.dma().contains(static_cast<uint64_t>(a)));
  EXPECT_TRUE(kernel_.dma().contains(static_cast<uint64_t>(c)));
  EXPECT_TRUE(space().Unmap(a, 0x3000).ok());
  EXPECT_TRUE(space().Unmap(c, 0x3000).ok());
}

TEST_P(AddressSpaceTest, LargeRangesKeepTheirPlaceInAHugePage) {
  constexpr uint64_t kHuge = uint64_t{2} << 20;
  const uint64_t address = 0x7f00'0000'0000 + 5 * kPage;
  const Iova iova = space().Map(At(address), 8 * kHuge).value();
  EXPECT_EQ(static_cast<uint64_t>(iova) % kHuge, address % kHuge);
}

TEST_P(AddressSpaceTest, EmptyAndWrappingRangesAreRefused) {
  EXPECT_EQ(space().Map(At(0x10000), 0).error(), Errno{EINVAL});
  EXPECT_EQ(space().Map(At(UINT64_MAX - 5), 100).error(), Errno{EINVAL});
  EXPECT_EQ(space().Map(At(UINT64_MAX - 5), 3).error(), Errno{EINVAL});
  EXPECT_EQ(kernel_.dma().size(), 0u);
}

TEST_P(AddressSpaceTest, OnlyAMappingAsMadeIsUnmapped) {
  const Iova iova = space().Map(At(0x10000), 0x3000).value();
  EXPECT_EQ(space().Unmap(iova, 0x2000).error(), Errno{EINVAL});
  EXPECT_EQ(space().Unmap(Iova{12345}, 0x3000).error(), Errno{EINVAL});
  EXPECT_EQ(kernel_.dma().size(), 1u);
  EXPECT_TRUE(space().Unmap(iova, 0x3000).ok());
  EXPECT_EQ(space().Unmap(iova, 0x3000).error(), Errno{EINVAL});
}

TEST_P(AddressSpaceTest, MemoryThatCannotBeWrittenIsMappedForReading) {
  kernel_.constant_pages.insert(0x20000);
  ASSERT_TRUE(space().Map(At(0x1f000), 0x2000).ok());
  EXPECT_FALSE(kernel_.dma().begin()->second.writable);
}

TEST_P(AddressSpaceTest, LimitOfLockedMemoryIsExplained) {
  kernel_.lock_limit = 4 * kPage;
  ASSERT_TRUE(space().Map(At(0x10000), 3 * kPage).ok());
  const Result<Iova> over = space().Map(At(0x20000), 2 * kPage);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error(), Errno{ENOMEM});
  const std::string why = space().Explain(over.error(), 2 * kPage);
  EXPECT_NE(why.find("mapping 8192 bytes"), std::string::npos) << why;
  // Refused mappings cost nothing.
  EXPECT_EQ(space().pinned_bytes(), 3 * kPage);
  ASSERT_TRUE(space().Map(At(0x20000), kPage).ok());
}

TEST_P(AddressSpaceTest, LimitOfThisProcessIsNamedWithItsCure) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(before.rlim_max, 3 * kPage);
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &low), 0);
  kernel_.lock_limit = low.rlim_cur;
  const Iova a = space().Map(At(0x10000), 2 * kPage).value();
  const Result<Iova> over = space().Map(At(0x20000), 2 * kPage);
  ASSERT_FALSE(over.ok());
  const std::string why = space().Explain(over.error(), 2 * kPage);
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
  EXPECT_NE(why.find("8192 are locked for it, RLIMIT_MEMLOCK is 12288: raise "
                     "it (ulimit -l)"),
            std::string::npos)
      << why;
  EXPECT_TRUE(space().Unmap(a, 2 * kPage).ok());
}

// Whatever the kernel refuses: no page stays counted, no address taken.
TEST_P(AddressSpaceTest, EachRefusalLeavesNothingBehind) {
  const uint64_t free = IovaAllocator(kernel_.usable, kPage).free_bytes();
  const bool group = GetParam() == std::string("group");
  const unsigned long map = group ? VFIO_IOMMU_MAP_DMA : uapi::kIoasMap;
  for (const int error : {EFAULT, ENOMEM, ENOSPC, EEXIST, EINVAL, EBUSY}) {
    SCOPED_TRACE(error);
    // The second one: memory that cannot be written is tried again.
    kernel_.constant_pages = {0x20000};
    kernel_.FailControl(map, Errno{error});
    const Result<Iova> iova = space().Map(At(0x20000), kPage);
    if (error == EFAULT) {
      ASSERT_TRUE(iova.ok());
      EXPECT_FALSE(kernel_.dma().begin()->second.writable);
      EXPECT_TRUE(space().Unmap(iova.value(), kPage).ok());
    } else {
      ASSERT_FALSE(iova.ok());
      EXPECT_EQ(iova.error(), Errno{error});
      EXPECT_NE(space().Explain(iova.error(), kPage).find("mapping 4096 bytes"),
                std::string::npos);
    }
    kernel_.FailControl(map, Errno{error == EFAULT ? EPERM : error});
    void* const memory = At(0x30000);
    const Iova base = space().Reserve(memory, 4 * kPage).value();
    EXPECT_FALSE(space().MapReserved(base, memory, kPage).ok());
    space().Release(base, 4 * kPage);
    EXPECT_EQ(kernel_.dma().size(), 0u);
    EXPECT_EQ(space().pinned_bytes(), 0u);
    EXPECT_EQ(space().mappings(), 0u);
    EXPECT_EQ(space().free_bytes(), free);
  }
}

TEST_P(AddressSpaceTest, ReservedAddressesAreMappedInPlaceOnly) {
  const uint64_t free = IovaAllocator(kernel_.usable, kPage).free_bytes();
  void* const memory = At(0x7f00'0000'3000);
  const Iova base = space().Reserve(memory, 16 * kPage).value();
  EXPECT_EQ(space().pinned_bytes(), 0u);
  const Iova front = space().MapReserved(base, memory, kPage).value();
  const Iova other = space().Map(At(0x10000), 4 * kPage).value();
  EXPECT_GE(static_cast<uint64_t>(other),
            static_cast<uint64_t>(base) + 16 * kPage);
  const Iova next{static_cast<uint64_t>(base) + kPage};
  EXPECT_EQ(space().MapReserved(next, At(0x7f00'0000'4000), 2 * kPage).value(),
            next);
  EXPECT_EQ(kernel_.dma().at(static_cast<uint64_t>(next)).address,
            0x7f00'0000'4000u);
  EXPECT_EQ(space().pinned_bytes(), 7 * kPage);
  EXPECT_EQ(space().MapReserved(next, At(0x7f00'0000'4001), kPage).error(),
            Errno{EINVAL});
  EXPECT_TRUE(space().Unmap(front, kPage).ok());
  EXPECT_TRUE(space().Unmap(next, 2 * kPage).ok());
  EXPECT_EQ(space().MapReserved(front, memory, kPage).value(), front);
  EXPECT_TRUE(space().Unmap(front, kPage).ok());
  space().Release(base, 16 * kPage);
  EXPECT_TRUE(space().Unmap(other, 4 * kPage).ok());
  EXPECT_EQ(space().pinned_bytes(), 0u);
  EXPECT_EQ(space().free_bytes(), free);
}

TEST_P(AddressSpaceTest, AddressesThatAreUsedUpAreRefusedAndComeBack) {
  kernel_.usable = {{0x100000, 0x100000 + 4 * kPage - 1}};
  const Iova a = space().Map(At(0x10000), 2 * kPage).value();
  ASSERT_TRUE(space().Map(At(0x20000), 2 * kPage).ok());
  const Result<Iova> over = space().Map(At(0x30000), 1);
  EXPECT_EQ(over.error(), Errno{ENOSPC});
  const std::string why = space().Explain(over.error(), 1);
  EXPECT_NE(why.find("0 bytes of the IOMMU's addresses"), std::string::npos)
      << why;
  EXPECT_EQ(why.find("dma_entry_limit"), std::string::npos) << why;
  EXPECT_TRUE(space().Unmap(a, 2 * kPage).ok());
  EXPECT_TRUE(space().Map(At(0x30000), 1).ok());
}

TEST_P(AddressSpaceTest, AddressOfAMappingThatDoesNotEndIsNotUsedAgain) {
  kernel_.usable = {{0x100000, 0x100000 + 2 * kPage - 1}};
  const Iova a = space().Map(At(0x10000), kPage).value();
  kernel_.unmap_hangs_on = true;
  EXPECT_EQ(space().Unmap(a, kPage).error(), Errno{EIO});
  ASSERT_TRUE(space().Map(At(0x20000), kPage).ok());
  EXPECT_EQ(space().Map(At(0x30000), kPage).error(), Errno{ENOSPC});
}

TEST_P(AddressSpaceTest, WhatWasForgottenEndsWithIt) {
  ASSERT_TRUE(space().Map(At(0x10000), 3 * kPage).ok());
  ASSERT_TRUE(space().Map(At(0x20000), 1).ok());
  space_.reset();
  EXPECT_EQ(kernel_.dma().size(), 0u);
}

TEST_P(AddressSpaceTest, RandomUseKeepsTheAccounts) {
  std::mt19937_64 random(TestSeed());
  kernel_.usable = {{0x100000, 0x100000 + 256 * kPage - 1}};
  struct Held {
    Iova iova;
    size_t bytes;
  };
  std::vector<Held> held;
  for (int i = 0; i < 3000; ++i) {
    if (held.empty() || random() % 5 < 3) {
      const size_t bytes = 1 + random() % (9 * kPage);
      const Result<Iova> iova =
          space().Map(At(0x5000'0000'0000 + random() % (1 << 20)), bytes);
      if (iova.ok()) {
        held.push_back({iova.value(), bytes});
      } else {
        ASSERT_EQ(iova.error(), Errno{ENOSPC});
      }
    } else {
      std::swap(held[random() % held.size()], held.back());
      ASSERT_TRUE(space().Unmap(held.back().iova, held.back().bytes).ok());
      held.pop_back();
    }
    uint64_t bytes = 0;
    for (const auto& [iova, dma] : kernel_.dma()) {
      bytes += dma.bytes;
    }
    ASSERT_EQ(space().pinned_bytes(), bytes);
    ASSERT_EQ(space().mappings(), held.size());
    ASSERT_EQ(kernel_.dma().size(), held.size());
  }
}

INSTANTIATE_TEST_SUITE_P(, AddressSpaceTest,
                         testing::Values("group", "iommufd"),
                         [](const auto& of) { return std::string(of.param); });

class GroupSpaceTest : public AddressSpaceTest {};

TEST_P(GroupSpaceTest, NumberOfMappingsIsLimitedAndExplained) {
  kernel_.entries = 2;
  ASSERT_TRUE(space().Map(At(0x10000), 1).ok());
  ASSERT_TRUE(space().Map(At(0x20000), 1).ok());
  const int before = kernel_.calls();
  const Result<Iova> over = space().Map(At(0x30000), 1);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error(), Errno{ENOSPC});
  EXPECT_EQ(kernel_.calls(), before) << "the kernel was asked";
  const std::string why = space().Explain(over.error(), 1);
  EXPECT_NE(why.find("all 2 mappings"), std::string::npos) << why;
}

TEST_P(GroupSpaceTest, KernelThatDoesNotTellItsAddressesHasTheCommonOnes) {
  kernel_.usable.clear();
  EXPECT_EQ(space().Map(At(0x10000), kPage).error(), Errno{EINVAL});
  EXPECT_GE(iommu_->limits().usable.front().first, uint64_t{1} << 32);
}

INSTANTIATE_TEST_SUITE_P(, GroupSpaceTest, testing::Values("group"));

}  // namespace
}  // namespace heddle::vfio
