// SPDX-License-Identifier: Apache-2.0
// Operations that the target refuses: errno, prov_errno, and no byte touched.
#include <rdma/fi_ext_heddle.h>

#include <array>

#include "tests/host/ofi/ip_name.h"
#include "tests/host/ofi/rma_fixture.h"

namespace heddle::test {
namespace {

constexpr size_t kBytes = 10000;

struct ErrorTest : RmaTest {
  // Whether reading and writing `bytes` at `address` fail so, with memory and
  // buffer as they were.
  void ExpectRefused(size_t bytes, uint64_t address, uint64_t key, int error,
                     int prov_errno) {
    SCOPED_TRACE(testing::Message() << bytes << " at " << address);
    const std::vector<uint8_t> data = Pattern(bytes);
    ASSERT_EQ(fi_write(a->ep, data.data(), bytes, nullptr, to_b, address, key,
                       &data_),
              0);
    fi_cq_err_entry failure = ExpectError(a->tx_cq, error, prov_errno);
    EXPECT_EQ(failure.op_context, &data_);
    EXPECT_EQ(failure.flags, uint64_t{FI_RMA | FI_WRITE});
    if (DeviceReads()) {
      Guarded buffer(bytes);
      ASSERT_EQ(fi_read(a->ep, buffer.data(), bytes, nullptr, to_b, address,
                        key, &buffer),
                0);
      failure = ExpectError(a->tx_cq, error, prov_errno);
      EXPECT_EQ(failure.op_context, &buffer);
      EXPECT_EQ(failure.flags, uint64_t{FI_RMA | FI_READ});
      EXPECT_EQ(buffer.Content(), std::vector<uint8_t>(bytes, 0xee));
      EXPECT_TRUE(buffer.BorderIsWhole());
    }
    EXPECT_EQ(memory_.Content(), std::vector<uint8_t>(kBytes, 0xee));
    EXPECT_TRUE(memory_.BorderIsWhole());
  }

  // The pair still works.
  void ExpectAlive() {
    const std::vector<uint8_t> sent = Pattern(100);
    std::vector<uint8_t> received(100);
    Exchange(sent, received);
    EXPECT_EQ(sent, received);
  }

  Guarded memory_{kBytes};
  int data_ = 0;
};

// Short ones travel in the descriptor, some in one packet, long ones in many.
constexpr size_t kSome[] = {8, 100, 4096, 9000};

TEST_F(ErrorTest, UnknownKey) {
  const Region region(*b, memory_.data(), kBytes);
  for (const uint64_t key : {region.key() + 1, uint64_t{0xffffffffffff},
                             uint64_t{1} << 48U, ~uint64_t{0}}) {
    for (const size_t bytes : kSome) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectRefused(bytes, 0, key, FI_EKEYREJECTED, FI_HEDDLE_BAD_KEY));
    }
  }
  ExpectAlive();
}

TEST_F(ErrorTest, KeyOfAClosedRegion) {
  Region region(*b, memory_.data(), kBytes);
  const uint64_t key = region.key();
  region.Close();
  for (const size_t bytes : kSome) {
    ASSERT_NO_FATAL_FAILURE(
        ExpectRefused(bytes, 0, key, FI_EKEYREJECTED, FI_HEDDLE_BAD_KEY));
  }
  ExpectAlive();
}

TEST_F(ErrorTest, BytesOutsideTheRegion) {
  // The region ends before the memory does.
  constexpr size_t kRegion = 5000;
  const Region region(*b, memory_.data() + 1000, kRegion);
  struct Range {
    size_t bytes;
    uint64_t address;
  };
  for (const Range& range :
       {Range{1, kRegion}, Range{kRegion + 1, 0}, Range{4096, kRegion - 4095},
        Range{8, ~uint64_t{0}}, Range{8, ~uint64_t{0} - 7},
        Range{9000, kRegion - 100}, Range{0, kRegion + 1}}) {
    ASSERT_NO_FATAL_FAILURE(ExpectRefused(range.bytes, range.address,
                                          region.key(), FI_EACCES,
                                          FI_HEDDLE_OUT_OF_RANGE));
  }
  ExpectAlive();
}

TEST_F(DeliveredTest, LastByteOfTheRegionIsInside) {
  Guarded memory(100);
  const Region region(*b, memory.data(), 100);
  const uint8_t one = 1;
  ASSERT_EQ(fi_write(a->ep, &one, 1, nullptr, to_b, 99, region.key(), nullptr),
            0);
  ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
  EXPECT_EQ(memory.data()[99], 1);
  ASSERT_EQ(fi_write(a->ep, &one, 0, nullptr, to_b, 100, region.key(), nullptr),
            0);
  ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
  EXPECT_TRUE(memory.BorderIsWhole());
}

TEST_F(ErrorTest, RightThatTheRegionDoesNotGive) {
  const std::vector<uint8_t> data = Pattern(kBytes);
  const Region readable(*b, memory_.data(), kBytes, FI_REMOTE_READ);
  const Region writable(*b, memory_.data(), kBytes, FI_REMOTE_WRITE);
  Guarded buffer(kBytes);
  for (const size_t bytes : kSome) {
    ASSERT_EQ(fi_write(a->ep, data.data(), bytes, nullptr, to_b, 0,
                       readable.key(), nullptr),
              0);
    (void)ExpectError(a->tx_cq, FI_EACCES, FI_HEDDLE_NO_RIGHT);
    if (DeviceReads()) {
      ASSERT_EQ(fi_read(a->ep, buffer.data(), bytes, nullptr, to_b, 0,
                        writable.key(), nullptr),
                0);
      (void)ExpectError(a->tx_cq, FI_EACCES, FI_HEDDLE_NO_RIGHT);
    }
  }
  EXPECT_EQ(memory_.Content(), std::vector<uint8_t>(kBytes, 0xee));
  EXPECT_EQ(buffer.Content(), std::vector<uint8_t>(kBytes, 0xee));
  ExpectAlive();
}

// Local rights give peers none.
TEST_F(ErrorTest, RegionWithoutRemoteRights) {
  const Region region(*b, memory_.data(), kBytes,
                      FI_SEND | FI_RECV | FI_READ | FI_WRITE);
  ASSERT_NO_FATAL_FAILURE(
      ExpectRefused(8, 0, region.key(), FI_EKEYREJECTED, FI_HEDDLE_BAD_KEY));
}

TEST_F(ErrorTest, OneBadPieceOfSeveralFailsTheOperationOnce) {
  const Region region(*b, memory_.data(), kBytes);
  std::vector<uint8_t> data = Pattern(300);
  iovec from = {data.data(), data.size()};
  std::array<fi_rma_iov, 3> to;
  for (size_t i = 0; i < 3; ++i) {
    to[i] = {.addr = 1000 * i, .len = 100, .key = region.key()};
  }
  to[1].key = 0xbad;
  fi_msg_rma message = {};
  message.msg_iov = &from;
  message.iov_count = 1;
  message.addr = to_b;
  message.rma_iov = to.data();
  message.rma_iov_count = 3;
  message.context = &message;
  ASSERT_EQ(fi_writemsg(a->ep, &message, 0), 0);
  const fi_cq_err_entry failure =
      ExpectError(a->tx_cq, FI_EKEYREJECTED, FI_HEDDLE_BAD_KEY);
  EXPECT_EQ(failure.op_context, &message);
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
  ExpectAlive();
}

TEST_F(ErrorTest, InjectedWriteFailsWithTheEndpointsContext) {
  const uint64_t data = 1;
  ASSERT_EQ(fi_inject_write(a->ep, &data, sizeof(data), to_b, 0, 0xbad), 0);
  const fi_cq_err_entry failure =
      ExpectError(a->tx_cq, FI_EKEYREJECTED, FI_HEDDLE_BAD_KEY);
  EXPECT_EQ(failure.op_context, a->ep->fid.context);
}

TEST_F(ErrorTest, ErrorNamesThePeerAndTheReason) {
  const uint64_t data = 1;
  ASSERT_EQ(
      fi_write(a->ep, &data, sizeof(data), nullptr, to_b, 0, 0xbad, nullptr),
      0);
  const fi_cq_err_entry failure =
      ExpectError(a->tx_cq, FI_EKEYREJECTED, FI_HEDDLE_BAD_KEY);
  std::array<char, 200> text = {};
  (void)fi_cq_strerror(a->tx_cq, failure.prov_errno, failure.err_data,
                       text.data(), text.size());
  const std::string port = std::to_string(ntohs(IpName(*b).sin_port));
  EXPECT_NE(std::string(text.data()).find(port), std::string::npos)
      << text.data();
  EXPECT_NE(std::string(text.data()).find("key"), std::string::npos);
}

// A job's memory is the job's.
TEST_F(ErrorTest, OtherJob) {
  b.reset();
  a.reset();
  NodeOptions of_a = RmaOptions();
  of_a.auth_key = 5;
  NodeOptions of_b = RmaOptions();
  of_b.auth_key = 6;
  of_b.domain_auth_key = 6;
  ASSERT_NO_FATAL_FAILURE(Open(of_a, of_b));
  const Region region(*b, memory_.data(), kBytes);
  const uint64_t data = 1;
  ASSERT_EQ(fi_write(a->ep, &data, sizeof(data), nullptr, to_b, 0, region.key(),
                     nullptr),
            0);
  const auto done = Take(a->tx_cq);
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(done->error);
  EXPECT_TRUE(done->failure.err == FI_EREMOTEIO ||
              done->failure.err == FI_EKEYREJECTED)
      << fi_strerror(done->failure.err);
  EXPECT_EQ(memory_.Content(), std::vector<uint8_t>(kBytes, 0xee));
}

TEST_F(ErrorTest, DirectionThatTheEndpointDoesNotHaveIsRefused) {
  b.reset();
  a.reset();
  NodeOptions writer = RmaOptions();
  writer.caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_WRITE;
  NodeOptions reader = RmaOptions();
  reader.caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ;
  ASSERT_NO_FATAL_FAILURE(Open(writer, reader));
  uint64_t data = 0;
  EXPECT_EQ(fi_read(a->ep, &data, 8, nullptr, to_b, 0, 1, nullptr),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_write(b->ep, &data, 8, nullptr, to_a, 0, 1, nullptr),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_inject_writedata(b->ep, &data, 8, 1, to_a, 0, 1),
            -FI_EOPNOTSUPP);
}

TEST_F(ErrorTest, FlagsThatAreNotOfferedAreRefused) {
  uint64_t data = 0;
  iovec local = {&data, 8};
  fi_rma_iov remote = {.addr = 0, .len = 8, .key = 1};
  fi_msg_rma message = {};
  message.msg_iov = &local;
  message.iov_count = 1;
  message.addr = to_b;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  for (const uint64_t flag : {FI_COMMIT_COMPLETE, FI_MULTI_RECV, FI_PEEK}) {
    EXPECT_EQ(fi_writemsg(a->ep, &message, flag), -FI_EOPNOTSUPP);
    EXPECT_EQ(fi_readmsg(a->ep, &message, flag), -FI_EOPNOTSUPP);
  }
  // Neither applies to reads.
  EXPECT_EQ(fi_readmsg(a->ep, &message, FI_INJECT), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_readmsg(a->ep, &message, FI_REMOTE_CQ_DATA), -FI_EOPNOTSUPP);
  // Without the capability.
  EXPECT_EQ(fi_writemsg(a->ep, &message, FI_FENCE), -FI_EOPNOTSUPP);
}

TEST_F(ErrorTest, DisabledEndpointTransfersNothing) {
  NodeOptions options = RmaOptions();
  options.enable = false;
  const Node node(options);
  uint64_t data = 0;
  EXPECT_EQ(fi_write(node.ep, &data, 8, nullptr, 0, 0, 1, nullptr),
            -FI_EOPBADSTATE);
  EXPECT_EQ(fi_read(node.ep, &data, 8, nullptr, 0, 0, 1, nullptr),
            -FI_EOPBADSTATE);
}

}  // namespace
}  // namespace heddle::test
