// SPDX-License-Identifier: Apache-2.0
// Registration: keys, addresses, endpoints, and what a close promises.
#include <netinet/in.h>
#include <rdma/fi_ext_heddle.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "tests/host/ofi/rma_fixture.h"

namespace heddle::test {
namespace {

struct RegionTest : DeliveredTest {
  void SetUp() override {}
  void OpenMode(int mr_mode) {
    NodeOptions options = Options();
    options.mr_mode = mr_mode;
    ASSERT_NO_FATAL_FAILURE(Open(options));
  }

  // Writes and, where the device can, reads back through `address`.
  void ExpectReachable(uint64_t address, uint64_t key,
                       const std::vector<uint8_t>& memory) {
    const std::vector<uint8_t> data = Pattern(memory.size(), 9);
    std::vector<uint8_t> back(memory.size());
    ASSERT_EQ(fi_write(a->ep, data.data(), data.size(), nullptr, to_b, address,
                       key, nullptr),
              0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr));
    EXPECT_EQ(memory, data);
    if (!DeviceReads()) {
      return;
    }
    ASSERT_EQ(fi_read(a->ep, back.data(), back.size(), nullptr, to_b, address,
                      key, nullptr),
              0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a->tx_cq, FI_RMA | FI_READ, nullptr));
    EXPECT_EQ(back, data);
  }

  void ExpectRefused(uint64_t address, uint64_t key, int error) {
    const uint64_t data = 1;
    ASSERT_EQ(fi_write(a->ep, &data, sizeof(data), nullptr, to_b, address, key,
                       nullptr),
              0);
    const auto done = Take(a->tx_cq);
    ASSERT_TRUE(done.has_value());
    EXPECT_TRUE(done->error);
    EXPECT_EQ(done->failure.err, error) << fi_strerror(done->failure.err);
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(6000);
};

uint64_t AddressOf(const std::vector<uint8_t>& memory) {
  return reinterpret_cast<uint64_t>(memory.data());
}

TEST_F(RegionTest, ApplicationsKeyNamesOffsets) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(0));
  EXPECT_EQ(b->info->domain_attr->mr_mode, 0);
  EXPECT_EQ(b->info->domain_attr->mr_key_size, 6U);
  const Region region(*b, memory_.data(), memory_.size(), kRemoteAccess,
                      0xfedcba987654);
  EXPECT_EQ(region.key(), 0xfedcba987654U);
  ExpectReachable(0, region.key(), memory_);
  ExpectRefused(AddressOf(memory_), region.key(), FI_EACCES);
}

TEST_F(RegionTest, DevicesKeyAndVirtualAddressesAreKeptWhenOffered) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
                                   FI_MR_ALLOCATED | FI_MR_LOCAL));
  EXPECT_EQ(b->info->domain_attr->mr_mode, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR);
  EXPECT_EQ(b->info->domain_attr->mr_key_size, 8U);
  const Region region(*b, memory_.data(), memory_.size(), kRemoteAccess, 7);
  EXPECT_NE(region.key(), 7U);
  ExpectReachable(AddressOf(memory_), region.key(), memory_);
  ExpectRefused(0, region.key(), FI_EACCES);
}

TEST_F(RegionTest, BasicModeIsDevicesKeyAndVirtualAddresses) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(FI_MR_BASIC));
  EXPECT_EQ(b->info->domain_attr->mr_mode, FI_MR_BASIC);
  const Region region(*b, memory_.data(), memory_.size(), kRemoteAccess, 7);
  EXPECT_NE(region.key(), 7U);
  ExpectReachable(AddressOf(memory_), region.key(), memory_);
}

TEST_F(RegionTest, DevicesKeysDoNotComeBack) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(FI_MR_PROV_KEY));
  std::set<uint64_t> keys;
  for (int i = 0; i < 600; ++i) {
    const Region region(*b, memory_.data(), memory_.size());
    ASSERT_TRUE(keys.insert(region.key()).second);
  }
}

TEST_F(RegionTest, KeyInUseAndKeyTooLongAreRefused) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(0));
  const Region region(*b, memory_.data(), memory_.size(), kRemoteAccess, 77);
  fid_mr* other = nullptr;
  for (const uint64_t access : {kRemoteAccess, uint64_t{FI_SEND}}) {
    EXPECT_EQ(fi_mr_reg(b->domain, memory_.data(), 10, access, 0, 77, 0, &other,
                        nullptr),
              -FI_ENOKEY);
  }
  EXPECT_EQ(fi_mr_reg(b->domain, memory_.data(), 10, kRemoteAccess, 0,
                      uint64_t{1} << 48U, 0, &other, nullptr),
            -FI_EINVAL);
  ExpectReachable(0, region.key(), memory_);
}

TEST_F(RegionTest, KeyIsFreeAgainAfterTheClose) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(0));
  for (int i = 0; i < 100; ++i) {
    const Region region(*b, memory_.data(), memory_.size(), kRemoteAccess, 77);
    ASSERT_EQ(region.key(), 77U);
  }
}

TEST_F(RegionTest, WithoutAFreeEntryThereIsNoMemory) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(FI_MR_PROV_KEY));
  std::vector<fid_mr*> regions;
  int result = 0;
  const size_t most = 2 * b->info->domain_attr->mr_cnt;
  while (result == 0 && regions.size() < most) {
    fid_mr* region = nullptr;
    result = fi_mr_reg(b->domain, memory_.data(), 10, kRemoteAccess, 0, 0, 0,
                       &region, nullptr);
    if (result == 0) {
      regions.push_back(region);
    }
  }
  EXPECT_EQ(result, -FI_ENOMEM);
  EXPECT_GE(regions.size(), b->info->domain_attr->mr_cnt);
  // What peers do not reach needs none.
  { const Region local(*b, memory_.data(), 10, FI_SEND); }
  for (fid_mr* region : regions) {
    EXPECT_EQ(fi_close(&region->fid), 0);
  }
  const Region region(*b, memory_.data(), memory_.size());
  ExpectReachable(0, region.key(), memory_);
}

TEST_F(RegionTest, PartsThatPeersReachAreContiguous) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(0));
  EXPECT_EQ(b->info->domain_attr->mr_iov_limit, 1U);
  iovec parts[2] = {{memory_.data(), 1000}, {memory_.data() + 1000, 5000}};
  fid_mr* region = nullptr;
  ASSERT_EQ(
      fi_mr_regv(b->domain, parts, 2, kRemoteAccess, 0, 5, 0, &region, nullptr),
      0);
  ExpectReachable(0, 5, memory_);
  EXPECT_EQ(fi_close(&region->fid), 0);
  parts[1] = {memory_.data() + 1001, 100};
  EXPECT_EQ(
      fi_mr_regv(b->domain, parts, 2, kRemoteAccess, 0, 5, 0, &region, nullptr),
      -FI_EINVAL);
}

TEST_F(RegionTest, SeveralMayCoverTheSameMemory) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(0));
  const Region whole(*b, memory_.data(), memory_.size());
  Region part(*b, memory_.data() + 100, 100);
  part.Close();
  ExpectReachable(0, whole.key(), memory_);
}

TEST_F(RegionTest, RegionOfOneEndpointServesNoOther) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(FI_MR_ENDPOINT));
  EXPECT_EQ(b->info->domain_attr->mr_mode, FI_MR_ENDPOINT);
  fid_ep* other = b->OpenEndpoint();
  sockaddr_in name = {};
  size_t length = sizeof(name);
  ASSERT_EQ(fi_getname(&other->fid, &name, &length), 0);
  fi_addr_t to_other = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(a->av, &name, 1, &to_other, 0, nullptr), 1);
  Region region(*b, memory_.data(), memory_.size());
  // Disabled until it is bound and enabled.
  EXPECT_EQ(fi_mr_enable(region.mr), -FI_EOPBADSTATE);
  ExpectRefused(0, region.key(), FI_EKEYREJECTED);
  ASSERT_EQ(fi_mr_bind(region.mr, &b->ep->fid, 0), 0);
  EXPECT_EQ(fi_mr_bind(region.mr, &other->fid, 0), -FI_EINVAL);
  ExpectRefused(0, region.key(), FI_EKEYREJECTED);
  ASSERT_EQ(fi_mr_enable(region.mr), 0);
  EXPECT_EQ(fi_mr_enable(region.mr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_mr_bind(region.mr, &b->ep->fid, 0), -FI_EOPBADSTATE);
  ExpectReachable(0, region.key(), memory_);
  std::swap(to_b, to_other);
  ExpectRefused(0, region.key(), FI_EKEYREJECTED);
  std::swap(to_b, to_other);
  EXPECT_EQ(fi_close(&other->fid), 0);
  ExpectReachable(0, region.key(), memory_);
  region.Close();
  ExpectRefused(0, 0x100, FI_EKEYREJECTED);
}

TEST_F(RegionTest, EndpointTakesItsRegionsAccessAlong) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(FI_MR_ENDPOINT));
  fid_ep* other = b->OpenEndpoint();
  Region region(*b, memory_.data(), memory_.size());
  ASSERT_EQ(fi_mr_bind(region.mr, &other->fid, 0), 0);
  ASSERT_EQ(fi_mr_enable(region.mr), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
  region.Close();
}

TEST_F(RegionTest, BindingNeedsItsMode) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(0));
  const Region region(*b, memory_.data(), memory_.size());
  EXPECT_EQ(fi_mr_bind(region.mr, &b->ep->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(region.mr, &b->tx_cq->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(region.mr, &a->ep->fid, 0), -FI_EDOMAIN);
}

// What it was for.
TEST_F(RegionTest, ClosedRegionIsTouchedNoMore) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(0));
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = 64 * page;
  const std::vector<uint8_t> data = Pattern(bytes);
  std::vector<uint8_t> back(bytes);
  for (int round = 0; round < 10; ++round) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    Region region(*b, memory, bytes);
    size_t posted = 0;
    for (int i = 0; i < 4; ++i) {
      posted += fi_write(a->ep, data.data(), bytes, nullptr, to_b, 0,
                         region.key(), nullptr) == 0
                    ? 1
                    : 0;
      posted += fi_read(a->ep, back.data(), bytes, nullptr, to_b, 0,
                        region.key(), nullptr) == 0
                    ? 1
                    : 0;
    }
    // Some are under way, more or fewer.
    for (int i = 0; i < round * 6; ++i) {
      fi_cq_tagged_entry entry;
      posted -= fi_cq_read(a->tx_cq, &entry, 1) == 1 ? 1 : 0;
    }
    region.Close();
    // An access from now on ends the process.
    ASSERT_EQ(mprotect(memory, bytes, PROT_NONE), 0);
    for (; posted != 0; --posted) {
      const auto done = Take(a->tx_cq);
      ASSERT_TRUE(done.has_value());
      if (done->error) {
        EXPECT_EQ(done->failure.err, FI_EKEYREJECTED);
      }
    }
    // Nor is a byte changed of what comes there next.
    ASSERT_EQ(mprotect(memory, bytes, PROT_READ | PROT_WRITE), 0);
    std::fill_n(static_cast<uint8_t*>(memory), bytes, 0x77);
    EXPECT_TRUE(StaysEmpty(a->tx_cq));
    EXPECT_TRUE(std::all_of(static_cast<uint8_t*>(memory),
                            static_cast<uint8_t*>(memory) + bytes,
                            [](uint8_t byte) { return byte == 0x77; }));
    ASSERT_EQ(munmap(memory, bytes), 0);
  }
}

}  // namespace
}  // namespace heddle::test
