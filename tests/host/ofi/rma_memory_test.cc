// SPDX-License-Identifier: Apache-2.0
// Memory that goes and comes back at the same address: nothing implicit
// outlives its operation, so that each operation sees what is there now.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "tests/host/ofi/rma_fixture.h"

namespace heddle::test {
namespace {

// More than ten thousand in all, over the three ways that memory is had on
// every machine; huge pages and a child's memory come on top.
// Of each kind of memory; HEDDLE_TEST_ROUNDS asks a simulated NIC for fewer.
const int kRounds = [] {
  const char* text = std::getenv("HEDDLE_TEST_ROUNDS");
  return text == nullptr ? 3400 : std::atoi(text);
}();
const auto kChildRounds = static_cast<uint32_t>(std::min(kRounds, 1000));

struct MemoryTest : DeliveredTest {
  // Writes `buffer`, filled anew, to the peer and reads it back, then sends it.
  void Use(uint8_t* buffer, size_t bytes, const Region& target,
           const std::vector<uint8_t>& memory, uint32_t round) {
    std::memset(buffer, static_cast<int>(round % 251), bytes);
    buffer[bytes / 2] = static_cast<uint8_t>(round >> 8U);
    ASSERT_EQ(
        fi_write(a->ep, buffer, bytes, nullptr, to_b, 0, target.key(), nullptr),
        0);
    ASSERT_NO_FATAL_FAILURE(
        ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr, b->rx_cq));
    ASSERT_TRUE(std::equal(buffer, buffer + bytes, memory.begin())) << round;
    std::vector<uint8_t> received(bytes);
    ASSERT_EQ(fi_recv(b->ep, received.data(), bytes, nullptr, FI_ADDR_UNSPEC,
                      nullptr),
              0);
    ASSERT_EQ(fi_send(a->ep, buffer, bytes, nullptr, to_b, nullptr), 0);
    ASSERT_NO_FATAL_FAILURE(
        ExpectDone(b->rx_cq, FI_MSG | FI_RECV, nullptr, a->tx_cq));
    ASSERT_NO_FATAL_FAILURE(
        ExpectDone(a->tx_cq, FI_MSG | FI_SEND, nullptr, b->rx_cq));
    ASSERT_TRUE(std::equal(buffer, buffer + bytes, received.begin())) << round;
    if (!DeviceReads()) {
      return;
    }
    std::memset(buffer, 0, bytes);
    ASSERT_EQ(
        fi_read(a->ep, buffer, bytes, nullptr, to_b, 0, target.key(), nullptr),
        0);
    ASSERT_NO_FATAL_FAILURE(
        ExpectDone(a->tx_cq, FI_RMA | FI_READ, nullptr, b->rx_cq));
    ASSERT_TRUE(std::equal(buffer, buffer + bytes, memory.begin())) << round;
  }

  // Sizes below and above what is copied; most are short.
  static size_t Bytes(int round) {
    return round % 50 == 0 ? size_t{1} << 17U : 4096;
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(1U << 17U);
};

// Memory of `bytes` at an address that the caller chose, or anywhere.
struct Mapping {
  int flags = 0;
  bool advise_huge = false;  // Transparent huge pages.
  size_t bytes = 0;

  uint8_t* Map(void* address) const {
    const int fixed = address != nullptr ? MAP_FIXED : 0;
    void* mapped = mmap(address, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | fixed | flags, -1, 0);
    if (mapped == MAP_FAILED ||
        (advise_huge && madvise(mapped, bytes, MADV_HUGEPAGE) != 0)) {
      return nullptr;
    }
    return static_cast<uint8_t*>(mapped);
  }
};

// Maps, uses and unmaps at one address, again and again.
void MapAgain(const Mapping& mapping, uint8_t* address,
              const std::function<void(uint8_t*, int)>& use) {
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(mapping.Map(address), address);
    use(address, round);
    ASSERT_EQ(munmap(address, mapping.bytes), 0);
  }
}

TEST_F(MemoryTest, MappedAnew) {
  const Region target(*b, memory_.data(), memory_.size());
  const Mapping mapping = {.bytes = size_t{1} << 17U};
  uint8_t* address = mapping.Map(nullptr);
  ASSERT_NE(address, nullptr);
  MapAgain(mapping, address, [&](uint8_t* buffer, int round) {
    Use(buffer, Bytes(round), target, memory_, static_cast<uint32_t>(round));
  });
}

// Reserved huge pages; where the machine has none, transparent ones.
TEST_F(MemoryTest, HugePagesMappedAnew) {
  const Region target(*b, memory_.data(), memory_.size());
  constexpr size_t kHuge = size_t{2} << 20U;
  Mapping mapping = {.flags = MAP_HUGETLB, .bytes = kHuge};
  uint8_t* address = mapping.Map(nullptr);
  if (address == nullptr) {
    std::printf("no reserved huge page (%s): transparent ones instead\n",
                std::strerror(errno));
    mapping = {.advise_huge = true, .bytes = kHuge};
    const Mapping around = {.bytes = 2 * kHuge};
    uint8_t* found = around.Map(nullptr);
    ASSERT_NE(found, nullptr);
    address =
        found + (kHuge - reinterpret_cast<uintptr_t>(found) % kHuge) % kHuge;
    if (mapping.Map(address) == nullptr) {
      std::printf("no transparent huge pages either (%s): small ones\n",
                  std::strerror(errno));
      mapping.advise_huge = false;
    }
  }
  MapAgain(mapping, address, [&](uint8_t* buffer, int round) {
    Use(buffer, Bytes(round), target, memory_, static_cast<uint32_t>(round));
  });
}

TEST_F(MemoryTest, AllocatedAnew) {
  const Region target(*b, memory_.data(), memory_.size());
  for (int round = 0; round < kRounds; ++round) {
    const size_t bytes = Bytes(round);
    auto* buffer = static_cast<uint8_t*>(malloc(bytes));
    Use(buffer, bytes, target, memory_, static_cast<uint32_t>(round));
    free(buffer);
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST_F(MemoryTest, OnTheStack) {
  const Region target(*b, memory_.data(), memory_.size());
  for (int round = 0; round < kRounds; ++round) {
    // A frame that is left and entered again, at two depths.
    const auto deeper = [&](auto& self, int depth) -> void {
      std::array<uint8_t, 4096> buffer;
      if (depth != 0) {
        self(self, depth - 1);
        return;
      }
      Use(buffer.data(), buffer.size(), target, memory_,
          static_cast<uint32_t>(round));
    };
    deeper(deeper, round % 2);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// In a child the pages are others than the parent's: its own objects see them,
// and the parent's go on with the parent's.
TEST_F(MemoryTest, InAForkedChildAndInItsParent) {
  const Region target(*b, memory_.data(), memory_.size());
  std::vector<uint8_t> buffer(4096);
  Use(buffer.data(), buffer.size(), target, memory_, 1);
  ASSERT_FALSE(HasFatalFailure());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Inherited objects refuse; new ones work with the child's memory.
    bool good = fi_write(a->ep, buffer.data(), 8, nullptr, to_b, 0,
                         target.key(), nullptr) == -FI_EOPBADSTATE;
    NodeOptions options = Options();
    Node own(options);
    good = good && own.ok();
    if (good) {
      const fi_addr_t self = own.Insert(own);
      const Region mine(own, memory_.data(), memory_.size());
      for (uint32_t round = 0; good && round < kChildRounds; ++round) {
        std::fill(buffer.begin(), buffer.end(), static_cast<uint8_t>(round));
        good = fi_write(own.ep, buffer.data(), buffer.size(), nullptr, self, 0,
                        mine.key(), nullptr) == 0;
        const auto done = Take(own.tx_cq);
        good = good && done.has_value() && !done->error &&
               std::equal(buffer.begin(), buffer.end(), memory_.begin());
      }
    }
    _exit(good && !HasFailure() ? 0 : 1);
  }
  for (uint32_t round = 0; round < kChildRounds; ++round) {
    Use(buffer.data(), buffer.size(), target, memory_, round);
    ASSERT_FALSE(HasFatalFailure());
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace heddle::test
