// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/guest_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/seed.h"
#include "tests/sim/vfio_user/memory_file.h"

namespace heddle::sim::vfio_user {
namespace {

constexpr uint64_t kPage = 4096;

class GuestMemoryTest : public testing::Test {
 protected:
  Result<bool> Map(uint64_t iova, uint64_t bytes, uint64_t offset,
                   bool writable = true) {
    return memory_.Map(iova, bytes, file_.Copy(), offset, writable);
  }

  MemoryFile file_{16 * kPage};
  GuestMemory memory_;
};

TEST_F(GuestMemoryTest, AccessesReachTheClientsMemory) {
  ASSERT_TRUE(Map(0x10000, 2 * kPage, 3 * kPage).ok());
  const std::array<uint8_t, 4> bytes = {1, 2, 3, 4};
  ASSERT_TRUE(memory_.Write(0x10ffe, bytes));
  EXPECT_EQ(std::memcmp(file_.data() + 4 * kPage - 2, bytes.data(), 4), 0);
  file_.data()[4 * kPage] = 99;
  std::array<uint8_t, 4> back{};
  ASSERT_TRUE(memory_.Read(0x10ffe, back));
  EXPECT_EQ(back, (std::array<uint8_t, 4>{1, 2, 99, 4}));
}

TEST_F(GuestMemoryTest, RangeMayBeOfPagesInAnyOrder) {
  ASSERT_TRUE(Map(0x10000, kPage, 7 * kPage).ok());
  ASSERT_TRUE(Map(0x11000, kPage, 2 * kPage).ok());
  ASSERT_TRUE(Map(0x12000, kPage, 9 * kPage).ok());
  EXPECT_EQ(memory_.files(), 1u);
  std::vector<uint8_t> bytes(2 * kPage);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(i * 13);
  }
  ASSERT_TRUE(memory_.Write(0x10800, bytes));
  EXPECT_EQ(std::memcmp(file_.data() + 7 * kPage + 0x800, bytes.data(), 0x800),
            0);
  EXPECT_EQ(std::memcmp(file_.data() + 2 * kPage, bytes.data() + 0x800, kPage),
            0);
  EXPECT_EQ(std::memcmp(file_.data() + 9 * kPage, bytes.data() + 0x1800, 0x800),
            0);
}

TEST_F(GuestMemoryTest, AccessIsOfAllBytesOrNone) {
  ASSERT_TRUE(Map(0x10000, kPage, 0).ok());
  ASSERT_TRUE(Map(0x12000, kPage, kPage).ok());
  const std::vector<uint8_t> bytes(3 * kPage, 7);
  EXPECT_FALSE(memory_.Write(0x10000, bytes));
  EXPECT_EQ(file_.data()[0], 0);
  std::array<uint8_t, 2> back{};
  EXPECT_FALSE(memory_.Read(0x10fff, back));
  EXPECT_FALSE(memory_.Read(0xffff, back));
  EXPECT_FALSE(memory_.Read(UINT64_MAX, back));
  EXPECT_TRUE(memory_.Read(0x99999, {}));
}

TEST_F(GuestMemoryTest, ReadOnlyRangeIsNotWritten) {
  ASSERT_TRUE(Map(0x10000, kPage, 0, /*writable=*/false).ok());
  std::array<uint8_t, 1> byte = {1};
  EXPECT_TRUE(memory_.Read(0x10000, byte));
  EXPECT_FALSE(memory_.Write(0x10000, byte));
}

TEST_F(GuestMemoryTest, RangeWithoutFileIsKnownAndNotReached) {
  ASSERT_TRUE(memory_.Map(0x10000, kPage, base::OwnedFd(), 0, true).ok());
  std::array<uint8_t, 1> byte = {1};
  EXPECT_FALSE(memory_.Read(0x10000, byte));
  EXPECT_EQ(Map(0x10000, kPage, 0).error(), Errno{EEXIST});
  EXPECT_EQ(memory_.Unmap(0x10000, 0x10fff).value(), 1u);
}

TEST_F(GuestMemoryTest, BadRangesAreRefused) {
  EXPECT_EQ(Map(0x10000, 0, 0).error(), Errno{EINVAL});
  EXPECT_EQ(Map(UINT64_MAX - 100, kPage, 0).error(), Errno{EINVAL});
  EXPECT_EQ(Map(0x10000, kPage, 15 * kPage + 1).error(), Errno{EINVAL});
  EXPECT_EQ(Map(0x10000, 17 * kPage, 0).error(), Errno{EINVAL});
  EXPECT_EQ(Map(0x10000, kPage, UINT64_MAX).error(), Errno{EINVAL});
  EXPECT_EQ(memory_.files(), 0u) << "a file that nothing uses stays mapped";
  ASSERT_TRUE(Map(0x10000, 2 * kPage, 0).ok());
  EXPECT_EQ(Map(0xf000, 2 * kPage, 0).error(), Errno{EEXIST});
  EXPECT_EQ(Map(0x11000, 2 * kPage, 0).error(), Errno{EEXIST});
  EXPECT_EQ(Map(0x0, 0x100000, 0).error(), Errno{EEXIST});
  EXPECT_TRUE(Map(0x12000, kPage, 0).ok());
  EXPECT_EQ(memory_.mappings(), 2u);
}

TEST_F(GuestMemoryTest, FileThatCouldShrinkIsRefused) {
  const MemoryFile unsealed(kPage, /*sealed=*/false);
  EXPECT_EQ(memory_.Map(0x10000, kPage, unsealed.Copy(), 0, true).error(),
            Errno{EPERM});
  EXPECT_EQ(memory_
                .Map(0x10000, kPage, base::OwnedFd(open("/dev/zero", O_RDWR)),
                     0, true)
                .error(),
            Errno{EPERM});
}

// The process serves other clients, too.
TEST_F(GuestMemoryTest, ClientTakesNoMoreFilesThanItsShare) {
  std::vector<std::unique_ptr<MemoryFile>> files;
  for (uint64_t i = 0; i <= GuestMemory::kMostFiles; ++i) {
    files.push_back(std::make_unique<MemoryFile>(kPage));
    const auto done =
        memory_.Map(i * kPage, kPage, files.back()->Copy(), 0, true);
    EXPECT_EQ(done.ok(), i < GuestMemory::kMostFiles) << i;
  }
  ASSERT_TRUE(memory_.Unmap(0, UINT64_MAX).ok());
  const base::OwnedFd large(
      memfd_create("large", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(large.get(),
                      static_cast<off_t>(GuestMemory::kMostFileBytes + kPage)),
            0);
  ASSERT_EQ(fcntl(large.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(
      memory_.Map(0, kPage, base::OwnedFd(dup(large.get())), 0, true).error(),
      Errno{ENOSPC});
  EXPECT_TRUE(Map(0x10000, kPage, 0).ok());
}

// Each growth makes a mapping of the whole file in this process.
TEST_F(GuestMemoryTest, FileThatGrowsTakesNoMoreThanItsShare) {
  const base::OwnedFd file(
      memfd_create("growing", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const auto grow_and_map = [&](uint64_t i) {
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>((i + 1) * kPage)), 0);
    return memory_.Map(i * kPage, kPage, base::OwnedFd(dup(file.get())), 0,
                       true);
  };
  for (uint64_t i = 0; i < GuestMemory::kMostFiles; ++i) {
    ASSERT_TRUE(grow_and_map(i).ok()) << i;
  }
  EXPECT_EQ(grow_and_map(GuestMemory::kMostFiles).error(), Errno{ENOSPC});
  ASSERT_TRUE(memory_.Unmap(0, kPage - 1).ok());
  EXPECT_TRUE(grow_and_map(GuestMemory::kMostFiles).ok());
}

// Its owner could take a page back; ours would be a SIGBUS.
TEST_F(GuestMemoryTest, FileOfHugePagesIsRefused) {
  constexpr uint64_t kHuge = uint64_t{2} << 20;
  const base::OwnedFd file(
      memfd_create("huge", MFD_ALLOW_SEALING | MFD_CLOEXEC | MFD_HUGETLB));
  if (!file.valid()) {
    ASSERT_TRUE(errno == EINVAL || errno == ENOSYS) << std::strerror(errno);
    GTEST_SKIP() << "this kernel has no files of huge pages (memfd_create: "
                 << std::strerror(errno) << ")";
  }
  ASSERT_EQ(ftruncate(file.get(), kHuge), 0);
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(memory_.Map(0x10000, kPage, base::OwnedFd(dup(file.get())), 0, true)
                .error(),
            Errno{EPERM});
}

TEST_F(GuestMemoryTest, UnmappingEndsWhatLiesInside) {
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(Map(0x10000 + i * 2 * kPage, kPage, i * kPage).ok());
  }
  EXPECT_EQ(memory_.Unmap(0x11000, 0x11fff).value(), 0u);
  EXPECT_EQ(memory_.Unmap(0x12000, 0x14fff).value(), 2u);
  std::array<uint8_t, 1> byte{};
  EXPECT_TRUE(memory_.Read(0x10000, byte));
  EXPECT_FALSE(memory_.Read(0x12000, byte));
  // Half of one, in front, behind and in the middle: all stay.
  for (const auto& [first, last] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0x10000, 0x167ff}, {0x10800, UINT64_MAX}, {0x16400, 0x167ff}}) {
    const auto done = memory_.Unmap(first, last);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error(), Errno{EINVAL});
    EXPECT_EQ(memory_.mappings(), 2u);
  }
  EXPECT_TRUE(memory_.Read(0x16fff, byte));
  EXPECT_EQ(memory_.Unmap(0, UINT64_MAX).value(), 2u);
  EXPECT_EQ(memory_.files(), 0u);
}

TEST_F(GuestMemoryTest, GrownFileIsMappedAnew) {
  ASSERT_TRUE(Map(0x10000, kPage, 0).ok());
  ASSERT_EQ(ftruncate(file_.fd(), 32 * kPage), 0);
  ASSERT_TRUE(Map(0x20000, kPage, 31 * kPage).ok());
  const std::array<uint8_t, 1> byte = {5};
  EXPECT_TRUE(memory_.Write(0x20fff, byte));
  EXPECT_TRUE(memory_.Write(0x10000, byte));
  EXPECT_EQ(file_.data()[0], 5);
}

// Against a map of pages.
TEST_F(GuestMemoryTest, RandomMappingsAreTranslatedRightly) {
  std::mt19937 random(TestSeed());
  std::map<uint64_t, uint64_t> model;     // IOVA page to file page.
  std::map<uint64_t, uint64_t> mappings;  // First to number of pages.
  for (int step = 0; step < 20000; ++step) {
    const uint64_t first = random() % 64;
    const uint64_t pages = 1 + random() % 4;
    switch (random() % 3) {
      case 0: {
        const uint64_t from = random() % (16 - pages);
        bool free = true;
        for (uint64_t i = 0; i < pages; ++i) {
          free = free && !model.contains(first + i);
        }
        ASSERT_EQ(Map(first * kPage, pages * kPage, from * kPage).ok(), free);
        for (uint64_t i = 0; free && i < pages; ++i) {
          model[first + i] = from + i;
        }
        if (free) {
          mappings[first] = pages;
        }
        break;
      }
      case 1: {
        const auto cut = std::any_of(
            mappings.begin(), mappings.end(), [&](const auto& mapping) {
              const uint64_t end = mapping.first + mapping.second;
              return mapping.first < first + pages && end > first &&
                     (mapping.first < first || end > first + pages);
            });
        const auto done =
            memory_.Unmap(first * kPage, (first + pages) * kPage - 1);
        ASSERT_EQ(done.ok(), !cut);
        if (cut) {
          break;
        }
        size_t ended = 0;
        for (auto at = mappings.begin(); at != mappings.end();) {
          if (at->first >= first && at->first + at->second <= first + pages) {
            for (uint64_t i = 0; i < at->second; ++i) {
              model.erase(at->first + i);
            }
            at = mappings.erase(at);
            ++ended;
          } else {
            ++at;
          }
        }
        ASSERT_EQ(done.value(), ended);
        break;
      }
      default: {
        const uint64_t at = first * kPage + random() % kPage;
        const auto page = model.find(first);
        file_.data()[random() % (16 * kPage)] = static_cast<uint8_t>(random());
        std::array<uint8_t, 1> byte{};
        ASSERT_EQ(memory_.Read(at, byte), page != model.end());
        if (page != model.end()) {
          ASSERT_EQ(byte[0], file_.data()[page->second * kPage + at % kPage]);
        }
        break;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::sim::vfio_user
