// SPDX-License-Identifier: Apache-2.0
// Counters, completions at the target, levels of completion and fences.
#include <netinet/in.h>
#include <rdma/fi_ext_heddle.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "tests/host/ofi/rma_fixture.h"

namespace heddle::test {
namespace {

fid_cntr* OpenCounter(const Node& node, fi_wait_obj wait = FI_WAIT_UNSPEC) {
  fi_cntr_attr attr = {};
  attr.events = FI_CNTR_EVENTS_COMP;
  attr.wait_obj = wait;
  fid_cntr* counter = nullptr;
  EXPECT_EQ(fi_cntr_open(node.domain, &attr, &counter, nullptr), 0);
  return counter;
}

struct CounterTest : PairTest {
  static constexpr std::array<uint64_t, 6> kKinds = {
      FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};

  // Nodes with a counter for each kind of operation.
  void SetUp() override {
    NodeOptions options = RmaOptions();
    options.caps |= FI_RMA_EVENT;
    options.enable = false;
    ASSERT_NO_FATAL_FAILURE(Open(options));
    for (Node* node : {a.get(), b.get()}) {
      auto& counters = node == a.get() ? of_a_ : of_b_;
      for (size_t i = 0; i < kKinds.size(); ++i) {
        counters[i] = OpenCounter(*node);
        ASSERT_EQ(fi_ep_bind(node->ep, &counters[i]->fid, kKinds[i]), 0);
      }
      ASSERT_EQ(fi_enable(node->ep), 0);
    }
    to_b = a->Insert(*b);
    to_a = b->Insert(*a);
  }
  void TearDown() override {
    for (auto* counters : {&of_a_, &of_b_}) {
      for (fid_cntr* counter : *counters) {
        if (counter != nullptr) {
          // In use.
          EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
          closing_.push_back(counter);
        }
      }
    }
    // The endpoint first, then what is bound to it.
    for (Node* node : {a.get(), b.get()}) {
      EXPECT_EQ(fi_close(&node->ep->fid), 0);
      node->ep = nullptr;
    }
    for (fid_cntr* counter : closing_) {
      EXPECT_EQ(fi_close(&counter->fid), 0);
    }
    PairTest::TearDown();
  }

  static std::array<uint64_t, 6> Values(
      const std::array<fid_cntr*, 6>& counters) {
    std::array<uint64_t, 6> values = {};
    std::transform(counters.begin(), counters.end(), values.begin(),
                   [](fid_cntr* counter) { return fi_cntr_read(counter); });
    return values;
  }

  std::array<fid_cntr*, 6> of_a_ = {};
  std::array<fid_cntr*, 6> of_b_ = {};
  std::vector<fid_cntr*> closing_;
};

using Counts = std::array<uint64_t, 6>;

TEST_F(CounterTest, EachKindOfOperationCountsWhereItBelongs) {
  std::vector<uint8_t> data = Pattern(5000);
  std::vector<uint8_t> memory(5000);
  const Region target(*b, memory.data(), memory.size());
  ASSERT_EQ(
      fi_recv(b->ep, memory.data(), 5000, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a->ep, data.data(), 5000, nullptr, to_b, nullptr), 0);
  EXPECT_EQ(fi_cntr_wait(of_b_[1], 1, kLimitMs), 0);
  EXPECT_EQ(fi_cntr_wait(of_a_[0], 1, kLimitMs), 0);
  EXPECT_EQ(memory, data);
  EXPECT_EQ(Values(of_a_), (Counts{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Values(of_b_), (Counts{0, 1, 0, 0, 0, 0}));
  data = Pattern(5000, 1);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(fi_write(a->ep, data.data(), 5000, nullptr, to_b, 0, target.key(),
                       nullptr),
              0);
    EXPECT_EQ(fi_cntr_wait(of_a_[3], static_cast<uint64_t>(i), kLimitMs), 0);
  }
  EXPECT_EQ(fi_cntr_wait(of_b_[5], 3, kLimitMs), 0);
  EXPECT_EQ(memory, data);
  // By the counter alone: no completion is read before the data are looked at.
  for (const size_t bytes : {size_t{10}, size_t{300}, size_t{5000}}) {
    std::vector<uint8_t> back(bytes);
    const uint64_t before = fi_cntr_read(of_a_[2]);
    ASSERT_EQ(fi_read(a->ep, back.data(), bytes, nullptr, to_b, 0, target.key(),
                      nullptr),
              0);
    EXPECT_EQ(fi_cntr_wait(of_a_[2], before + 1, kLimitMs), 0);
    EXPECT_TRUE(std::equal(back.begin(), back.end(), data.begin())) << bytes;
  }
  EXPECT_EQ(fi_cntr_wait(of_b_[4], 3, kLimitMs), 0);
  EXPECT_EQ(Values(of_a_), (Counts{1, 0, 3, 3, 0, 0}));
  EXPECT_EQ(Values(of_b_), (Counts{0, 1, 0, 0, 3, 3}));
}

TEST_F(CounterTest, InjectedAndSeveralPiecesCountOnce) {
  std::vector<uint8_t> data = Pattern(100);
  std::vector<uint8_t> memory(1000);
  const Region target(*b, memory.data(), memory.size());
  ASSERT_EQ(fi_inject_write(a->ep, data.data(), 100, to_b, 0, target.key()), 0);
  EXPECT_EQ(fi_cntr_wait(of_a_[3], 1, kLimitMs), 0);
  iovec from = {data.data(), 100};
  std::array<fi_rma_iov, 4> to;
  for (size_t i = 0; i < 4; ++i) {
    to[i] = {.addr = 200 * i, .len = 25, .key = target.key()};
  }
  fi_msg_rma message = {};
  message.msg_iov = &from;
  message.iov_count = 1;
  message.addr = to_b;
  message.rma_iov = to.data();
  message.rma_iov_count = 4;
  ASSERT_EQ(fi_writemsg(a->ep, &message, 0), 0);
  EXPECT_EQ(fi_cntr_wait(of_a_[3], 2, kLimitMs), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr));
  EXPECT_EQ(fi_cntr_read(of_a_[3]), 2U);
}

TEST_F(CounterTest, FailureCountsAsError) {
  const uint64_t data = 1;
  ASSERT_EQ(fi_write(a->ep, &data, 8, nullptr, to_b, 0, 0xbad, nullptr), 0);
  ASSERT_TRUE(WaitUntil([&] { return fi_cntr_readerr(of_a_[3]) != 0; }));
  EXPECT_EQ(fi_cntr_readerr(of_a_[3]), 1U);
  EXPECT_EQ(fi_cntr_read(of_a_[3]), 0U);
  (void)ExpectError(a->tx_cq, FI_EKEYREJECTED, FI_HEDDLE_BAD_KEY);
}

TEST_F(CounterTest, PeersOperationsCompleteAtTheTarget) {
  std::vector<uint8_t> memory(1000);
  const Region target(*b, memory.data(), memory.size());
  const std::vector<uint8_t> data = Pattern(1000);
  ASSERT_EQ(fi_write(a->ep, data.data(), 1000, nullptr, to_b, 0, target.key(),
                     nullptr),
            0);
  ASSERT_NO_FATAL_FAILURE(
      ExpectDone(b->rx_cq, FI_RMA | FI_REMOTE_WRITE, nullptr));
  EXPECT_EQ(memory, data);
  std::vector<uint8_t> back(1000);
  ASSERT_EQ(fi_read(a->ep, back.data(), 1000, nullptr, to_b, 0, target.key(),
                    nullptr),
            0);
  ASSERT_NO_FATAL_FAILURE(
      ExpectDone(b->rx_cq, FI_RMA | FI_REMOTE_READ, nullptr));
  ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
  ExpectDone(a->tx_cq, FI_RMA | FI_READ, nullptr);
}

TEST_F(CounterTest, BindingKeepsItsRules) {
  NodeOptions options = RmaOptions();
  options.enable = false;
  const Node node(options);
  fid_cntr* counter = OpenCounter(node);
  EXPECT_EQ(fi_ep_bind(node.ep, &counter->fid, 0), -FI_EBADFLAGS);
  EXPECT_EQ(fi_ep_bind(node.ep, &counter->fid, FI_MULTI_RECV), -FI_EBADFLAGS);
  EXPECT_EQ(fi_ep_bind(node.ep, &of_a_[0]->fid, FI_SEND), -FI_EDOMAIN);
  // Without FI_RMA_EVENT.
  EXPECT_EQ(fi_ep_bind(node.ep, &counter->fid, FI_REMOTE_WRITE), -FI_EINVAL);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_ep_bind(a->ep, &of_a_[0]->fid, FI_SEND), -FI_EOPBADSTATE);
}

TEST_F(CounterTest, OneCounterPerKindAndOneForSeveral) {
  NodeOptions options = RmaOptions();
  options.enable = false;
  Node node(options);
  fid_cntr* counter = OpenCounter(node);
  ASSERT_EQ(fi_ep_bind(node.ep, &counter->fid, FI_WRITE | FI_READ), 0);
  EXPECT_EQ(fi_ep_bind(node.ep, &counter->fid, FI_WRITE), -FI_EINVAL);
  ASSERT_EQ(fi_enable(node.ep), 0);
  const fi_addr_t self = node.Insert(node);
  uint64_t memory = 0;
  uint64_t data = 5;
  {
    const Region target(node, &memory, 8);
    ASSERT_EQ(
        fi_write(node.ep, &data, 8, nullptr, self, 0, target.key(), nullptr),
        0);
    EXPECT_EQ(fi_cntr_wait(counter, 1, kLimitMs), 0);
    ASSERT_EQ(
        fi_read(node.ep, &data, 8, nullptr, self, 0, target.key(), nullptr), 0);
    EXPECT_EQ(fi_cntr_wait(counter, 2, kLimitMs), 0);
  }
  EXPECT_EQ(fi_close(&node.ep->fid), 0);
  node.ep = nullptr;
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

struct PlainCounterTest : ::testing::Test {
  Node node{RmaOptions()};
};

TEST_F(PlainCounterTest, SetAndAddAreSeenAtReturn) {
  fid_cntr* counter = OpenCounter(node);
  EXPECT_EQ(fi_cntr_read(counter), 0U);
  EXPECT_EQ(fi_cntr_readerr(counter), 0U);
  for (uint64_t i = 1; i <= 100; ++i) {
    ASSERT_EQ(fi_cntr_add(counter, i), 0);
    ASSERT_EQ(fi_cntr_read(counter), i * (i + 1) / 2);
    ASSERT_EQ(fi_cntr_adderr(counter, 2), 0);
    ASSERT_EQ(fi_cntr_readerr(counter), 2 * i);
  }
  EXPECT_EQ(fi_cntr_set(counter, ~uint64_t{0}), 0);
  EXPECT_EQ(fi_cntr_read(counter), ~uint64_t{0});
  EXPECT_EQ(fi_cntr_seterr(counter, 7), 0);
  EXPECT_EQ(fi_cntr_readerr(counter), 7U);
  EXPECT_EQ(fi_cntr_wait(counter, 5, 0), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(PlainCounterTest, WaitEndsByTimeAndNeedsAWaitObject) {
  fid_cntr* counter = OpenCounter(node);
  EXPECT_EQ(fi_cntr_wait(counter, 1, 1), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  counter = OpenCounter(node, FI_WAIT_NONE);
  EXPECT_EQ(fi_cntr_wait(counter, 0, 1), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  fi_cntr_attr attr = {};
  for (const fi_wait_obj object :
       {FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_SET, FI_WAIT_POLLFD}) {
    attr.wait_obj = object;
    EXPECT_EQ(fi_cntr_open(node.domain, &attr, &counter, nullptr), -FI_ENOSYS);
  }
  attr.wait_obj = FI_WAIT_NONE;
  attr.flags = 1;
  EXPECT_EQ(fi_cntr_open(node.domain, &attr, &counter, nullptr), -FI_EINVAL);
}

TEST_F(PlainCounterTest, ErrorEndsAWait) {
  fid_cntr* counter = OpenCounter(node);
  std::atomic<int> result{0};
  std::thread waiter([&] { result = fi_cntr_wait(counter, 1, -1); });
  // One of them comes after the wait has begun.
  EXPECT_TRUE(WaitUntil([&] {
    EXPECT_EQ(fi_cntr_adderr(counter, 1), 0);
    return result != 0;
  }));
  waiter.join();
  EXPECT_EQ(result, -FI_EAVAIL);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(PlainCounterTest, AsManyAsAdvertisedCanBeOpened) {
  std::vector<fid_cntr*> counters;
  for (size_t i = 0; i < node.info->domain_attr->cntr_cnt; ++i) {
    counters.push_back(OpenCounter(node, FI_WAIT_NONE));
  }
  EXPECT_FALSE(counters.empty());
  for (fid_cntr* counter : counters) {
    EXPECT_EQ(fi_close(&counter->fid), 0);
  }
}

struct RegionCounterTest : PairTest {
  void OpenMode(int mr_mode) {
    NodeOptions options = RmaOptions();
    options.caps |= FI_RMA_EVENT;
    options.mr_mode = mr_mode;
    ASSERT_NO_FATAL_FAILURE(Open(options));
  }
  void ExpectCounts(const Region& region, const uint64_t& memory,
                    fid_cntr* counter) {
    const uint64_t data = 42;
    ASSERT_EQ(
        fi_write(a->ep, &data, 8, nullptr, to_b, 0, region.key(), nullptr), 0);
    EXPECT_EQ(fi_cntr_wait(counter, 1, kLimitMs), 0);
    EXPECT_EQ(memory, 42U);
    uint64_t back = 0;
    ASSERT_EQ(fi_read(a->ep, &back, 8, nullptr, to_b, 0, region.key(), nullptr),
              0);
    ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
    ExpectDone(a->tx_cq, FI_RMA | FI_READ, nullptr);
    // Reads change nothing.
    EXPECT_EQ(fi_cntr_read(counter), 1U);
  }
  uint64_t memory_ = 0;
};

TEST_F(RegionCounterTest, CountsWritesOfPeersOnceEnabled) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(FI_MR_RMA_EVENT | FI_MR_PROV_KEY));
  EXPECT_EQ(b->info->domain_attr->mr_mode, FI_MR_RMA_EVENT | FI_MR_PROV_KEY);
  fid_cntr* counter = OpenCounter(*b);
  {
    Region region(*b, &memory_, 8, kRemoteAccess, 0, FI_RMA_EVENT);
    EXPECT_EQ(region.key(), FI_KEY_NOTAVAIL);
    EXPECT_EQ(fi_mr_bind(region.mr, &counter->fid, 0), -FI_EBADFLAGS);
    ASSERT_EQ(fi_mr_bind(region.mr, &counter->fid, FI_REMOTE_WRITE), 0);
    EXPECT_EQ(fi_mr_bind(region.mr, &counter->fid, FI_REMOTE_WRITE),
              -FI_EINVAL);
    ASSERT_EQ(fi_mr_enable(region.mr), 0);
    EXPECT_NE(region.key(), FI_KEY_NOTAVAIL);
    EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
    ASSERT_NO_FATAL_FAILURE(ExpectCounts(region, memory_, counter));
  }
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(RegionCounterTest, CountsWithoutTheModeToo) {
  ASSERT_NO_FATAL_FAILURE(OpenMode(0));
  fid_cntr* counter = OpenCounter(*b);
  {
    Region region(*b, &memory_, 8);
    const uint64_t key = region.key();
    ASSERT_EQ(fi_mr_bind(region.mr, &counter->fid, FI_REMOTE_WRITE), 0);
    EXPECT_EQ(region.key(), key);
    ASSERT_NO_FATAL_FAILURE(ExpectCounts(region, memory_, counter));
  }
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

struct DataTest : RmaTest {};

TEST_F(DataTest, EightBytesOfDataCompleteAtTheTargetAfterTheWrite) {
  std::vector<uint8_t> memory(70000);
  const Region target(*b, memory.data(), memory.size());
  for (const size_t bytes : {0, 8, 100, 5000, 70000}) {
    SCOPED_TRACE(bytes);
    const std::vector<uint8_t> data = Pattern(bytes);
    const uint64_t value = 0x1122334455667788 + bytes;
    ASSERT_EQ(fi_writedata(a->ep, data.data(), bytes, nullptr, value, to_b, 0,
                           target.key(), nullptr),
              0);
    const auto told = Take(b->rx_cq);
    ASSERT_TRUE(told.has_value());
    ASSERT_FALSE(told->error);
    EXPECT_EQ(told->entry.flags,
              uint64_t{FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA});
    EXPECT_EQ(told->entry.data, value);
    EXPECT_EQ(told->entry.len, bytes);
    EXPECT_EQ(told->entry.op_context, nullptr);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin()));
    ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
  }
  const uint8_t one = 1;
  ASSERT_EQ(fi_inject_writedata(a->ep, &one, 1, 99, to_b, 0, target.key()), 0);
  const auto told = Take(b->rx_cq);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->entry.data, 99U);
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
}

TEST_F(DataTest, TakesNoReceiveBuffer) {
  uint64_t memory = 0;
  uint64_t received = 0;
  uint64_t data = 5;
  const Region target(*b, &memory, 8);
  ASSERT_EQ(fi_recv(b->ep, &received, 8, nullptr, FI_ADDR_UNSPEC, &received),
            0);
  ASSERT_EQ(
      fi_writedata(a->ep, &data, 8, nullptr, 1, to_b, 0, target.key(), nullptr),
      0);
  ExpectDone(b->rx_cq, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, nullptr);
  EXPECT_EQ(received, 0U);
  ASSERT_EQ(fi_send(a->ep, &data, 8, nullptr, to_b, nullptr), 0);
  ExpectDone(b->rx_cq, FI_MSG | FI_RECV, &received);
  EXPECT_EQ(received, 5U);
}

TEST_F(DataTest, OfSeveralPiecesComeAfterAllOfThem) {
  std::vector<uint8_t> memory(40000);
  std::vector<uint8_t> data = Pattern(40000);
  const Region target(*b, memory.data(), memory.size());
  iovec from = {data.data(), data.size()};
  std::array<fi_rma_iov, 4> to;
  for (size_t i = 0; i < 4; ++i) {
    to[i] = {.addr = 10000 * i, .len = 10000, .key = target.key()};
  }
  fi_msg_rma message = {};
  message.msg_iov = &from;
  message.iov_count = 1;
  message.addr = to_b;
  message.rma_iov = to.data();
  message.rma_iov_count = 4;
  message.data = 7;
  ASSERT_EQ(fi_writemsg(a->ep, &message, FI_REMOTE_CQ_DATA), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(
      b->rx_cq, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, nullptr));
  EXPECT_EQ(memory, data);
  EXPECT_TRUE(StaysEmpty(b->rx_cq));
  ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
}

TEST_F(DataTest, SenderIsNamedToThoseWhoAsk) {
  b.reset();
  a.reset();
  NodeOptions options = RmaOptions();
  options.caps |= FI_SOURCE;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  uint64_t memory = 0;
  const Region target(*b, &memory, 8);
  ASSERT_EQ(fi_writedata(a->ep, &memory, 8, nullptr, 1, to_b, 0, target.key(),
                         nullptr),
            0);
  const auto told = Take(b->rx_cq);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->source, to_a);
}

struct LevelTest : RmaTest {};

// The data are there when the completion says so, without a look at the target.
TEST_F(LevelTest, DeliveryCompleteMeansThatTheDataAreThere) {
  std::vector<uint8_t> memory(300000);
  const Region target(*b, memory.data(), memory.size());
  iovec from = {};
  fi_rma_iov to = {};
  fi_msg_rma message = {};
  message.msg_iov = &from;
  message.iov_count = 1;
  message.addr = to_b;
  message.rma_iov = &to;
  message.rma_iov_count = 1;
  for (uint32_t round = 0; round < 50; ++round) {
    const size_t bytes = round % 5 == 0 ? memory.size() : round * 100;
    std::vector<uint8_t> data = Pattern(bytes, round);
    from = {data.data(), bytes};
    to = {.addr = 0, .len = bytes, .key = target.key()};
    ASSERT_EQ(fi_writemsg(a->ep, &message, FI_DELIVERY_COMPLETE), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr));
    ASSERT_TRUE(std::equal(data.begin(), data.end(), memory.begin())) << round;
  }
}

struct DeliveredMessageTest : DeliveredTest {};

// The target reads no completion before its buffer is looked at.
TEST_F(DeliveredMessageTest, IsInTheBufferOfItsReceive) {
  for (const size_t bytes : {1, 100, 3000, 50'000, 65'536, 65'537}) {
    SCOPED_TRACE(bytes);
    const std::vector<uint8_t> sent = Pattern(bytes);
    std::vector<uint8_t> received(bytes);
    ASSERT_EQ(fi_recv(b->ep, received.data(), bytes, nullptr, FI_ADDR_UNSPEC,
                      &received),
              0);
    ASSERT_EQ(fi_send(a->ep, sent.data(), bytes, nullptr, to_b, nullptr), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a->tx_cq, FI_MSG | FI_SEND, nullptr));
    EXPECT_TRUE(received == sent);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b->rx_cq, FI_MSG | FI_RECV, &received));
  }
}

TEST_F(DeliveredMessageTest, IsReceivedInSeveralSegments) {
  const std::vector<uint8_t> sent = Pattern(3000);
  std::vector<uint8_t> received(3000);
  const std::array<iovec, 2> parts = {
      {{received.data(), 1000}, {received.data() + 1000, 2000}}};
  ASSERT_EQ(fi_recvv(b->ep, parts.data(), nullptr, parts.size(), FI_ADDR_UNSPEC,
                     &received),
            0);
  ASSERT_EQ(fi_send(a->ep, sent.data(), sent.size(), nullptr, to_b, nullptr),
            0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a->tx_cq, FI_MSG | FI_SEND, nullptr));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b->rx_cq, FI_MSG | FI_RECV, &received));
  EXPECT_TRUE(received == sent);
}

TEST_F(LevelTest, EachLevelIsAFlagAndADefault) {
  for (const uint64_t level :
       {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE}) {
    b.reset();
    a.reset();
    NodeOptions options = RmaOptions();
    options.tx_op_flags = level;
    ASSERT_NO_FATAL_FAILURE(Open(options));
    EXPECT_EQ(a->info->tx_attr->op_flags, level);
    std::vector<uint8_t> memory(8);
    const std::vector<uint8_t> data = Pattern(8, static_cast<uint32_t>(level));
    const Region target(*b, memory.data(), 8);
    ASSERT_EQ(fi_write(a->ep, data.data(), 8, nullptr, to_b, 0, target.key(),
                       nullptr),
              0);
    ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
    // Only the last level says that the data are there by now.
    if (level == FI_DELIVERY_COMPLETE) {
      EXPECT_EQ(memory, data);
    }
    EXPECT_TRUE(WaitUntil([&] { return Holds(memory, data); }));
    std::vector<uint8_t> received(8);
    Exchange(Pattern(8), received);
  }
}

TEST_F(LevelTest, DeliveryCompleteMessageWaitsForItsReceive) {
  b.reset();
  a.reset();
  NodeOptions options = RmaOptions();
  options.tx_op_flags = FI_DELIVERY_COMPLETE;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  uint64_t data = 5;
  uint64_t received = 0;
  ASSERT_EQ(fi_send(a->ep, &data, 8, nullptr, to_b, nullptr), 0);
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
  ASSERT_EQ(fi_recv(b->ep, &received, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ExpectDone(b->rx_cq, FI_MSG | FI_RECV, nullptr);
  ExpectDone(a->tx_cq, FI_MSG | FI_SEND, nullptr);
}

// A message that the receiver's close cuts off is none that was delivered.
TEST_F(LevelTest, DeliveryCompleteMessageOfAClosedReceiverIsThereOrFails) {
  constexpr size_t kBytes = 300000;
  constexpr size_t kRounds = 12;
  b.reset();
  a.reset();
  NodeOptions options = RmaOptions();
  options.tx_op_flags = FI_DELIVERY_COMPLETE;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  const std::vector<uint8_t> data = Pattern(kBytes);
  size_t whole = 0;  // Polls that the first, which is not cut off, takes.
  for (size_t round = 0; round < kRounds; ++round) {
    fid_ep* const receiver = b->OpenEndpoint();
    sockaddr_in name = {};
    size_t length = sizeof(name);
    ASSERT_EQ(fi_getname(&receiver->fid, &name, &length), 0);
    fi_addr_t to = FI_ADDR_UNSPEC;
    ASSERT_EQ(fi_av_insert(a->av, &name, 1, &to, 0, nullptr), 1);
    std::vector<uint8_t> received(kBytes);
    ASSERT_EQ(fi_recv(receiver, received.data(), kBytes, nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_EQ(fi_send(a->ep, data.data(), kBytes, nullptr, to, nullptr), 0);
    const size_t polls = round == 0 ? SIZE_MAX : whole * round / kRounds;
    fi_cq_tagged_entry entry;
    ssize_t ended = -FI_EAGAIN;
    size_t poll = 0;
    for (; poll < polls && ended == -FI_EAGAIN; ++poll) {
      fi_cq_read(b->rx_cq, &entry, 1);
      ended = fi_cq_read(a->tx_cq, &entry, 1);
    }
    whole = round == 0 ? poll : whole;
    ASSERT_EQ(fi_close(&receiver->fid), 0);
    bool delivered = ended == 1;
    if (ended == -FI_EAGAIN) {
      const auto done = Take(a->tx_cq, kLimit, b->rx_cq);
      ASSERT_TRUE(done.has_value());
      delivered = !done->error;
    } else {
      ASSERT_EQ(ended, 1);
    }
    EXPECT_TRUE(!delivered || received == data) << round;
    while (fi_cq_read(b->rx_cq, &entry, 1) == 1) {
    }
  }
}

TEST_F(LevelTest, FencedOperationSeesWhatCameBefore) {
  b.reset();
  a.reset();
  NodeOptions options = RmaOptions();
  options.caps |= FI_FENCE;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  constexpr size_t kBytes = 200000;
  std::vector<uint8_t> memory(kBytes);
  std::vector<uint8_t> back(kBytes);
  const Region target(*b, memory.data(), kBytes);
  iovec into = {back.data(), kBytes};
  fi_rma_iov from = {.addr = 0, .len = kBytes, .key = target.key()};
  fi_msg_rma message = {};
  message.msg_iov = &into;
  message.iov_count = 1;
  message.addr = to_b;
  message.rma_iov = &from;
  message.rma_iov_count = 1;
  for (uint32_t round = 0; round < 20; ++round) {
    const std::vector<uint8_t> data = Pattern(kBytes, round);
    ASSERT_EQ(fi_write(a->ep, data.data(), kBytes, nullptr, to_b, 0,
                       target.key(), nullptr),
              0);
    ASSERT_EQ(fi_readmsg(a->ep, &message, FI_FENCE), 0);
    ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
    ExpectDone(a->tx_cq, FI_RMA | FI_READ, nullptr);
    ASSERT_EQ(back, data) << round;
  }
}

}  // namespace
}  // namespace heddle::test
