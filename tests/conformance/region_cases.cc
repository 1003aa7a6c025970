// SPDX-License-Identifier: Apache-2.0
// Modes of memory registration.
#include <rdma/fi_rma.h>
#include <sys/mman.h>

#include <cstring>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t kLocal = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
constexpr size_t kBytes = 64;

// Node a writes to memory of node b.
class RegionTest : public NodesTest {
 protected:
  // Opens with these bits besides; false, with the verdict, where the answer
  // has none of them or they cannot be had.
  bool OpenWith(int mode, const char* name, uint64_t caps = FI_MSG | FI_RMA) {
    NodeOptions options;
    options.caps = caps;
    options.mr_mode |= mode;
    if (!Open(options)) {
      return false;
    }
    if ((b().info->domain_attr->mr_mode & mode) == 0) {
      NotOffered(name);
    }
    return (b().info->domain_attr->mr_mode & mode) != 0;
  }

  fid_mr* Register(void* memory, uint64_t key) {
    fid_mr* mr = nullptr;
    EXPECT_EQ(
        fi_mr_reg(b().domain, memory, kBytes, kRemote, 0, key, 0, &mr, nullptr),
        0);
    return mr;
  }

  uint64_t AddressOf(const void* memory) {
    return (b().info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC)) !=
                   0
               ? reinterpret_cast<uint64_t>(memory)
               : 0;
  }

  // The end of a write to the region.
  std::optional<Completion> WriteTo(const void* memory, fid_mr* mr,
                                    Buffer& source) {
    EXPECT_EQ(Post([&] {
                return fi_write(a().ep, source.data(), kBytes, source.desc(),
                                to_b(), AddressOf(memory), fi_mr_key(mr),
                                &context_);
              }),
              0);
    return Take(a().tx);
  }
  void ExpectWritten(const uint8_t* memory, fid_mr* mr, Buffer& source) {
    const auto completion = WriteTo(memory, mr, source);
    ASSERT_TRUE(completion.has_value());
    ASSERT_FALSE(completion->error) << fi_strerror(completion->failure.err);
    EXPECT_TRUE(WaitUntil(
        [&] { return std::memcmp(memory, source.data(), kBytes) == 0; }));
  }

  fi_context2 context_ = {};
};

CONFORMANCE_TEST(RegionTest, RegistrationIsSynchronousUnlessBound, 94) {
  if (!Open({}, 1)) {
    return;
  }
  // At its return a region has its descriptor and key.
  std::vector<uint8_t> memory(kBytes);
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(a().domain, memory.data(), kBytes, kLocal, 0, 1, 0, &mr,
                      nullptr),
            0);
  EXPECT_EQ(mr->fid.fclass, size_t{FI_CLASS_MR});
  EXPECT_NE(fi_mr_key(mr), FI_KEY_NOTAVAIL);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  // A domain of its own: what is bound stays bound.
  fid_domain* domain = nullptr;
  ASSERT_EQ(fi_domain(a().fabric, a().info.get(), &domain, nullptr), 0);
  fi_eq_attr attr = {};
  fid_eq* eq = nullptr;
  ASSERT_EQ(fi_eq_open(a().fabric, &attr, &eq, nullptr), 0);
  const int bound = fi_domain_bind(domain, &eq->fid, FI_REG_MR);
  if (bound == 0) {
    int context = 0;
    mr = nullptr;
    ASSERT_EQ(fi_mr_reg(domain, memory.data(), kBytes, kLocal, 0, 2, 0, &mr,
                        &context),
              0);
    fi_eq_entry entry = {};
    uint32_t event = 0;
    ssize_t read = -FI_EAGAIN;
    const Deadline deadline;
    while (read == -FI_EAGAIN && !deadline.HasPassed()) {
      read = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
    }
    EXPECT_EQ(read, static_cast<ssize_t>(sizeof(entry)));
    EXPECT_EQ(event, uint32_t{FI_MR_COMPLETE});
    EXPECT_EQ(entry.fid, &mr->fid);
    EXPECT_EQ(entry.context, &context);
    EXPECT_EQ(fi_close(&mr->fid), 0);
  } else {
    EXPECT_LT(bound, 0) << "an error number";
  }
  EXPECT_EQ(fi_close(&domain->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

CONFORMANCE_TEST(RegionTest, MemoryMayComeAfterItsRegistration, 130) {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA;
  options.mr_mode &= ~FI_MR_ALLOCATED;
  if (!Open(options)) {
    return;
  }
  ASSERT_EQ(b().info->domain_attr->mr_mode & FI_MR_ALLOCATED, 0);
  constexpr size_t kPage = 4096;
  void* const place = mmap(nullptr, kPage, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  fid_mr* mr = nullptr;
  const int registered =
      fi_mr_reg(b().domain, place, kBytes, kRemote, 0, 1, 0, &mr, nullptr);
  EXPECT_EQ(registered, 0) << fi_strerror(-registered);
  if (registered == 0) {
    EnableRegion(b(), mr);
    ASSERT_EQ(mmap(place, kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              place);
    Buffer source(a(), kBytes, kLocal);
    source.Fill();
    ExpectWritten(static_cast<uint8_t*>(place), mr, source);
    EXPECT_EQ(fi_close(&mr->fid), 0);
  }
  EXPECT_EQ(munmap(place, kPage), 0);
}

CONFORMANCE_TEST(RegionTest, RegionServesOnceBoundAndEnabled, 131) {
  if (!OpenWith(FI_MR_ENDPOINT, "FI_MR_ENDPOINT")) {
    return;
  }
  std::vector<uint8_t> memory(kBytes);
  Buffer source(a(), kBytes, kLocal);
  source.Fill();
  fid_mr* const mr = Register(memory.data(), 1);
  ASSERT_NE(mr, nullptr);
  EXPECT_LT(fi_mr_enable(mr), 0) << "bound to no endpoint";
  ASSERT_EQ(fi_mr_bind(mr, &b().ep->fid, 0), 0);
  ASSERT_EQ(fi_mr_enable(mr), 0);
  ExpectWritten(memory.data(), mr, source);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

CONFORMANCE_TEST(RegionTest, RefreshFollowsTheMapping, 132) {
  if (!OpenWith(FI_MR_MMU_NOTIFY, "FI_MR_MMU_NOTIFY")) {
    return;
  }
  constexpr size_t kPage = 4096;
  void* const place = mmap(nullptr, kPage, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  fid_mr* const mr = Register(place, 1);
  ASSERT_NE(mr, nullptr);
  EnableRegion(b(), mr);
  ASSERT_EQ(mmap(place, kPage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            place);
  const iovec part = {.iov_base = place, .iov_len = kBytes};
  ASSERT_EQ(fi_mr_refresh(mr, &part, 1, 0), 0);
  Buffer source(a(), kBytes, kLocal);
  source.Fill();
  ExpectWritten(static_cast<uint8_t*>(place), mr, source);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  EXPECT_EQ(munmap(place, kPage), 0);
}

CONFORMANCE_TEST(RegionTest, RegionWithACounterCountsOnceEnabled, 133) {
  if (!OpenWith(FI_MR_RMA_EVENT, "FI_MR_RMA_EVENT",
                FI_MSG | FI_RMA | FI_RMA_EVENT)) {
    return;
  }
  fi_cntr_attr attr = {};
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(b().domain, &attr, &counter, nullptr), 0);
  std::vector<uint8_t> memory(kBytes);
  Buffer source(a(), kBytes, kLocal);
  source.Fill();
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(b().domain, memory.data(), kBytes, kRemote, 0, 1,
                      FI_RMA_EVENT, &mr, nullptr),
            0);
  ASSERT_EQ(fi_mr_bind(mr, &counter->fid, FI_REMOTE_WRITE), 0);
  if ((b().info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
    ASSERT_EQ(fi_mr_bind(mr, &b().ep->fid, 0), 0);
  }
  ASSERT_EQ(fi_mr_enable(mr), 0);
  ExpectWritten(memory.data(), mr, source);
  EXPECT_TRUE(WaitUntil([&] { return fi_cntr_read(counter) == 1; }));
  EXPECT_EQ(fi_close(&mr->fid), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

CONFORMANCE_TEST(RegionTest, LongKeysAreMapped, 134) {
  if (!OpenWith(FI_MR_RAW, "keys of more than 8 bytes")) {
    return;
  }
  ASSERT_GT(b().info->domain_attr->mr_key_size, 8U);
  std::vector<uint8_t> memory(kBytes);
  Buffer source(a(), kBytes, kLocal);
  source.Fill();
  fid_mr* const mr = Register(memory.data(), 1);
  ASSERT_NE(mr, nullptr);
  EnableRegion(b(), mr);
  uint64_t base = 0;
  std::vector<uint8_t> key(b().info->domain_attr->mr_key_size);
  size_t bytes = key.size();
  ASSERT_EQ(fi_mr_raw_attr(mr, &base, key.data(), &bytes, 0), 0);
  uint64_t mapped = 0;
  ASSERT_EQ(fi_mr_map_raw(a().domain, base, key.data(), bytes, &mapped, 0), 0);
  ASSERT_EQ(Post([&] {
              return fi_write(a().ep, source.data(), kBytes, source.desc(),
                              to_b(), AddressOf(memory.data()), mapped,
                              &context_);
            }),
            0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
  EXPECT_EQ(fi_mr_unmap_key(a().domain, mapped), 0);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

// No buffer needs to be registered for collectives that there are none of.
CONFORMANCE_TEST(RegionTest, CollectiveModeIsClearedWithoutCollectives, 135) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->domain_attr->mr_mode |= FI_MR_COLLECTIVE;
  const Answer answer = GetInfo(hints.get());
  ASSERT_EQ(answer.result, 0);
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    EXPECT_EQ(info->domain_attr->mr_mode & FI_MR_COLLECTIVE, 0);
  }
}

}  // namespace
}  // namespace heddle::conformance
