// SPDX-License-Identifier: Apache-2.0
// Writes and reads that succeed: every size, every call, every local buffer.
#include <algorithm>
#include <array>
#include <list>
#include <numeric>
#include <vector>

#include "tests/host/ofi/rma_fixture.h"

namespace heddle::test {
namespace {

struct TransferTest : DeliveredTest {
  // Where the local buffer is: the application's, registered or not.
  void Write(const std::vector<uint8_t>& data, uint64_t address, uint64_t key,
             void* descriptor) {
    int context = 0;
    ASSERT_EQ(fi_write(a->ep, data.data(), data.size(), descriptor, to_b,
                       address, key, &context),
              0);
    ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, &context);
  }
  void Read(uint8_t* data, size_t bytes, uint64_t address, uint64_t key,
            void* descriptor) {
    int context = 0;
    ASSERT_EQ(
        fi_read(a->ep, data, bytes, descriptor, to_b, address, key, &context),
        0);
    ExpectDone(a->tx_cq, FI_RMA | FI_READ, &context);
  }
};

TEST_F(TransferTest, WritesEverySizeAndNothingBesides) {
  for (const bool registered : {false, true}) {
    for (const size_t bytes : kSizes) {
      SCOPED_TRACE(testing::Message() << bytes << " registered " << registered);
      const std::vector<uint8_t> data = Pattern(bytes);
      Guarded memory(bytes + 3);
      const Region target(*b, memory.data(), memory.size(), FI_REMOTE_WRITE);
      std::unique_ptr<Region> local;
      if (registered && bytes != 0) {
        local = std::make_unique<Region>(*a, data.data(), bytes, FI_WRITE);
      }
      ASSERT_NO_FATAL_FAILURE(
          Write(data, 2, target.key(),
                local == nullptr ? nullptr : local->descriptor()));
      const std::vector<uint8_t> got = memory.Content();
      EXPECT_TRUE(std::equal(data.begin(), data.end(), got.begin() + 2));
      EXPECT_EQ(got[0], 0xee);
      EXPECT_EQ(got[1], 0xee);
      EXPECT_EQ(got.back(), 0xee);
      EXPECT_TRUE(memory.BorderIsWhole());
    }
  }
  // A peer's writes do not show at the target.
  EXPECT_TRUE(StaysEmpty(b->rx_cq));
}

TEST_F(TransferTest, ReadsEverySizeAndNothingBesides) {
  for (const bool registered : {false, true}) {
    for (const size_t bytes : kSizes) {
      SCOPED_TRACE(testing::Message() << bytes << " registered " << registered);
      const std::vector<uint8_t> data = Pattern(bytes + 5, 3);
      const Region source(*b, data.data(), data.size(), FI_REMOTE_READ);
      Guarded memory(bytes);
      std::unique_ptr<Region> local;
      if (registered && bytes != 0) {
        local = std::make_unique<Region>(*a, memory.data(), bytes, FI_READ);
      }
      ASSERT_NO_FATAL_FAILURE(
          Read(memory.data(), bytes, 4, source.key(),
               local == nullptr ? nullptr : local->descriptor()));
      const std::vector<uint8_t> got = memory.Content();
      EXPECT_TRUE(std::equal(got.begin(), got.end(), data.begin() + 4));
      EXPECT_TRUE(memory.BorderIsWhole());
    }
  }
  EXPECT_TRUE(StaysEmpty(b->rx_cq));
}

TEST_F(TransferTest, ReachesItsOwnMemory) {
  const fi_addr_t self = a->Insert(*a);
  const std::vector<uint8_t> data = Pattern(5000);
  std::vector<uint8_t> memory(5000);
  std::vector<uint8_t> back(5000);
  const Region target(*a, memory.data(), memory.size());
  ASSERT_EQ(fi_write(a->ep, data.data(), data.size(), nullptr, self, 0,
                     target.key(), nullptr),
            0);
  ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
  EXPECT_EQ(memory, data);
  if (DeviceReads()) {
    ASSERT_EQ(fi_read(a->ep, back.data(), back.size(), nullptr, self, 0,
                      target.key(), nullptr),
              0);
    ExpectDone(a->tx_cq, FI_RMA | FI_READ, nullptr);
    EXPECT_EQ(back, data);
  }
}

TEST_F(TransferTest, InjectedWriteIsTheCallersAtReturnAndSilent) {
  // A write of nothing shows nowhere, so all regions stay to the end.
  std::list<std::vector<uint8_t>> memories;
  std::list<Region> regions;
  for (const size_t bytes : {0, 1, 16, 17, 100, 192}) {
    SCOPED_TRACE(bytes);
    const std::vector<uint8_t> sent = Pattern(bytes);
    std::vector<uint8_t> buffer = sent;
    std::vector<uint8_t>& memory =
        memories.emplace_back(bytes + 1, uint8_t{0xee});
    const Region& target =
        regions.emplace_back(*b, memory.data(), memory.size());
    ASSERT_EQ(
        fi_inject_write(a->ep, buffer.data(), bytes, to_b, 0, target.key()), 0);
    std::fill(buffer.begin(), buffer.end(), 0xff);
    // A read behind it shows when it is done: they are not ordered, so again.
    ASSERT_TRUE(WaitUntil([&] {
      fi_cq_tagged_entry entry;
      EXPECT_EQ(fi_cq_read(a->tx_cq, &entry, 1), -FI_EAGAIN);
      return Holds(memory, sent);
    }));
    EXPECT_EQ(memory.back(), 0xee);
  }
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
  std::vector<uint8_t> longer(193);
  EXPECT_EQ(fi_inject_write(a->ep, longer.data(), 193, to_b, 0, 1),
            -FI_EMSGSIZE);
}

// Cuts [data, data + bytes) into `count` pieces of different lengths.
std::vector<iovec> Cut(uint8_t* data, size_t bytes, size_t count) {
  std::vector<iovec> parts;
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t part =
        i + 1 == count ? bytes - at : (bytes - at) * (i + 1) / (count + 1);
    parts.push_back({data + at, part});
    at += part;
  }
  return parts;
}

std::vector<fi_rma_iov> CutRemote(size_t bytes, size_t count, uint64_t key) {
  std::vector<fi_rma_iov> parts;
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t part = i + 1 == count ? bytes - at : (bytes - at) / 3;
    // A gap of 10 bytes before each.
    parts.push_back({.addr = at + 10 * (i + 1), .len = part, .key = key});
    at += part;
  }
  return parts;
}

TEST_F(TransferTest, GathersAndScattersSegmentsOfBothSides) {
  for (const size_t bytes : {4, 150, 1000, 50000, 300000}) {
    for (size_t locals = 1; locals <= 4; ++locals) {
      for (size_t remotes = 1; remotes <= a->info->tx_attr->rma_iov_limit;
           ++remotes) {
        SCOPED_TRACE(testing::Message()
                     << bytes << " from " << locals << " to " << remotes);
        std::vector<uint8_t> sent = Pattern(bytes);
        std::vector<uint8_t> back(bytes);
        std::vector<uint8_t> memory(bytes + 10 * (remotes + 1), 0xee);
        const Region target(*b, memory.data(), memory.size());
        const Region local(*a, sent.data(), sent.size(), FI_WRITE);
        const std::vector<fi_rma_iov> to =
            CutRemote(bytes, remotes, target.key());
        std::vector<iovec> from = Cut(sent.data(), bytes, locals);
        // Registered ones, others, and both.
        std::array<void*, 4> descriptors = {};
        for (size_t i = bytes % 3; i < locals; i += 2) {
          descriptors[i] = local.descriptor();
        }
        fi_msg_rma message = {};
        message.msg_iov = from.data();
        message.desc = descriptors.data();
        message.iov_count = locals;
        message.addr = to_b;
        message.rma_iov = to.data();
        message.rma_iov_count = remotes;
        message.context = &message;
        ASSERT_EQ(fi_writemsg(a->ep, &message, FI_DELIVERY_COMPLETE), 0);
        ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, &message);
        std::vector<uint8_t> expected(memory.size(), 0xee);
        size_t at = 0;
        for (const fi_rma_iov& part : to) {
          std::copy_n(&sent[at], part.len, &expected[part.addr]);
          at += part.len;
        }
        ASSERT_EQ(memory, expected);
        if (!DeviceReads()) {
          continue;
        }
        from = Cut(back.data(), bytes, locals);
        message.msg_iov = from.data();
        message.desc = nullptr;
        ASSERT_EQ(fi_readmsg(a->ep, &message, 0), 0);
        ExpectDone(a->tx_cq, FI_RMA | FI_READ, &message);
        ASSERT_EQ(back, sent);
      }
    }
  }
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
}

TEST_F(TransferTest, VectorCallsReachOnePiece) {
  std::vector<uint8_t> sent = Pattern(9000);
  std::vector<uint8_t> memory(9000);
  std::vector<uint8_t> back(9000);
  const Region target(*b, memory.data(), memory.size());
  std::vector<iovec> from = Cut(sent.data(), 9000, 4);
  ASSERT_EQ(
      fi_writev(a->ep, from.data(), nullptr, 4, to_b, 0, target.key(), &from),
      0);
  ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, &from);
  EXPECT_EQ(memory, sent);
  if (DeviceReads()) {
    std::vector<iovec> into = Cut(back.data(), 9000, 3);
    ASSERT_EQ(
        fi_readv(a->ep, into.data(), nullptr, 3, to_b, 0, target.key(), &into),
        0);
    ExpectDone(a->tx_cq, FI_RMA | FI_READ, &into);
    EXPECT_EQ(back, sent);
  }
}

TEST_F(TransferTest, TooManySegmentsAndUnequalLengthsAreRefused) {
  std::vector<uint8_t> memory(1000);
  const Region target(*b, memory.data(), memory.size());
  std::array<iovec, 5> from;
  std::array<fi_rma_iov, 5> to;
  from.fill({memory.data(), 8});
  to.fill({.addr = 0, .len = 8, .key = target.key()});
  EXPECT_EQ(fi_writev(a->ep, from.data(), nullptr, 5, to_b, 0, 1, nullptr),
            -FI_EINVAL);
  const bool reads = DeviceReads();
  if (reads) {
    EXPECT_EQ(fi_readv(a->ep, from.data(), nullptr, 5, to_b, 0, 1, nullptr),
              -FI_EINVAL);
  }
  fi_msg_rma message = {};
  message.msg_iov = from.data();
  message.iov_count = 4;
  message.addr = to_b;
  message.rma_iov = to.data();
  for (const size_t remotes : {0, 3, 5}) {
    message.rma_iov_count = remotes;
    EXPECT_EQ(fi_writemsg(a->ep, &message, 0), -FI_EINVAL) << remotes;
    if (reads) {
      EXPECT_EQ(fi_readmsg(a->ep, &message, 0), -FI_EINVAL) << remotes;
    }
  }
  message.rma_iov_count = 4;
  message.addr = 12345;
  EXPECT_EQ(fi_writemsg(a->ep, &message, 0), -FI_EINVAL);
  EXPECT_EQ(fi_write(a->ep, memory.data(), 8, nullptr, 12345, 0, 1, nullptr),
            -FI_EINVAL);
  if (reads) {
    EXPECT_EQ(fi_read(a->ep, memory.data(), 8, nullptr, 12345, 0, 1, nullptr),
              -FI_EINVAL);
  }
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
}

TEST_F(TransferTest, BufferOutsideItsRegistrationIsRefused) {
  std::vector<uint8_t> memory(1000);
  const Region local(*a, memory.data(), 500, FI_WRITE | FI_READ);
  EXPECT_EQ(fi_write(a->ep, memory.data(), 501, local.descriptor(), to_b, 0, 1,
                     nullptr),
            -FI_EINVAL);
  if (DeviceReads()) {
    EXPECT_EQ(fi_read(a->ep, &memory[400], 101, local.descriptor(), to_b, 0, 1,
                      nullptr),
              -FI_EINVAL);
  }
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
}

TEST_F(TransferTest, ManyAtOnceAllArrive) {
  constexpr size_t kCount = 2000;
  std::vector<uint64_t> sent(kCount);
  std::iota(sent.begin(), sent.end(), 1);
  std::vector<uint64_t> memory(kCount);
  std::vector<uint64_t> back(kCount);
  const Region target(*b, memory.data(), kCount * 8);
  const auto all = [&](auto&& post) {
    size_t posted = 0;
    size_t done = 0;
    ASSERT_TRUE(WaitUntil([&] {
      while (posted < kCount && post(posted) == 0) {
        ++posted;
      }
      std::array<fi_cq_tagged_entry, 16> entries;
      const ssize_t taken = fi_cq_read(a->tx_cq, entries.data(), 16);
      EXPECT_TRUE(taken > 0 || taken == -FI_EAGAIN) << taken;
      done += taken > 0 ? static_cast<size_t>(taken) : 0;
      return done == kCount;
    }));
  };
  ASSERT_NO_FATAL_FAILURE(all([&](size_t i) {
    return fi_write(a->ep, &sent[i], 8, nullptr, to_b, i * 8, target.key(),
                    nullptr);
  }));
  EXPECT_EQ(memory, sent);
  if (DeviceReads()) {
    ASSERT_NO_FATAL_FAILURE(all([&](size_t i) {
      return fi_read(a->ep, &back[i], 8, nullptr, to_b, i * 8, target.key(),
                     nullptr);
    }));
    EXPECT_EQ(back, sent);
  }
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
}

TEST_F(TransferTest, ReadsThroughTheSmallestQueuesCopyToTheRightPlace) {
  NodeOptions options = RmaOptions();
  options.tx_size = 1;
  options.cq_size = 1;
  options.bind_flags = FI_SELECTIVE_COMPLETION;
  b.reset();
  a.reset();
  ASSERT_NO_FATAL_FAILURE(Open(options, RmaOptions()));
  constexpr size_t kCount = 300;
  constexpr size_t kBytes = 100;
  const std::vector<uint8_t> data = Pattern(kCount * kBytes);
  std::vector<uint8_t> back(data.size());
  const Region source(*b, data.data(), data.size());
  fi_cq_tagged_entry entry;
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(WaitUntil([&] {
      // Also drives what is under way.
      EXPECT_EQ(fi_cq_read(a->tx_cq, &entry, 1), -FI_EAGAIN);
      return fi_read(a->ep, &back[i * kBytes], kBytes, nullptr, to_b,
                     i * kBytes, source.key(), nullptr) == 0;
    }));
  }
  // None of them has an entry, and all of them have their data.
  ASSERT_TRUE(WaitUntil([&] {
    EXPECT_EQ(fi_cq_read(a->tx_cq, &entry, 1), -FI_EAGAIN);
    return Holds(back, data);
  }));
}

struct SelectiveTest : PairTest {
  void SetUp() override {
    NodeOptions options = RmaOptions();
    options.bind_flags = FI_SELECTIVE_COMPLETION;
    ASSERT_NO_FATAL_FAILURE(Open(options));
  }
};

TEST_F(SelectiveTest, OnlyWhatAsksForItHasAnEntry) {
  std::vector<uint8_t> data = Pattern(1000);
  std::vector<uint8_t> memory(1000);
  const Region target(*b, memory.data(), memory.size());
  iovec from = {data.data(), data.size()};
  fi_rma_iov to = {.addr = 0, .len = 1000, .key = target.key()};
  fi_msg_rma message = {};
  message.msg_iov = &from;
  message.iov_count = 1;
  message.addr = to_b;
  message.rma_iov = &to;
  message.rma_iov_count = 1;
  ASSERT_EQ(fi_write(a->ep, data.data(), 1000, nullptr, to_b, 0, target.key(),
                     nullptr),
            0);
  ASSERT_EQ(fi_writemsg(a->ep, &message, 0), 0);
  if (DeviceReads()) {
    ASSERT_EQ(fi_readmsg(a->ep, &message, 0), 0);
  }
  message.context = &message;
  ASSERT_EQ(fi_writemsg(a->ep, &message, FI_COMPLETION), 0);
  ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, &message);
  if (DeviceReads()) {
    ASSERT_EQ(fi_readmsg(a->ep, &message, FI_COMPLETION), 0);
    ExpectDone(a->tx_cq, FI_RMA | FI_READ, &message);
  }
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
  // Failures always have one.
  to.key = 0xdead;
  ASSERT_EQ(fi_writemsg(a->ep, &message, 0), 0);
  const auto failed = Take(a->tx_cq);
  ASSERT_TRUE(failed.has_value());
  EXPECT_TRUE(failed->error);
  if (DeviceReads()) {
    ASSERT_EQ(fi_readmsg(a->ep, &message, 0), 0);
    const auto failed_read = Take(a->tx_cq);
    ASSERT_TRUE(failed_read.has_value());
    EXPECT_TRUE(failed_read->error);
  }
}

// Sum of two lists.
TEST_F(RmaTest, SendOfFourSegmentsGathersThem) {
  for (const size_t piece : {5, 500, 50000}) {
    std::vector<uint8_t> sent = Pattern(4 * piece);
    std::vector<uint8_t> received(4 * piece);
    const Region local(*a, sent.data(), sent.size(), FI_SEND);
    std::array<iovec, 4> from;
    std::array<void*, 4> descriptors;
    for (size_t i = 0; i < 4; ++i) {
      from[i] = {&sent[i * piece], piece};
      descriptors[i] = i == 1 ? nullptr : local.descriptor();
    }
    ASSERT_EQ(fi_recv(b->ep, received.data(), received.size(), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_EQ(
        fi_sendv(a->ep, from.data(), descriptors.data(), 4, to_b, nullptr), 0);
    ExpectDone(b->rx_cq, FI_MSG | FI_RECV, nullptr);
    ExpectDone(a->tx_cq, FI_MSG | FI_SEND, nullptr);
    EXPECT_EQ(sent, received);
  }
}

}  // namespace
}  // namespace heddle::test
