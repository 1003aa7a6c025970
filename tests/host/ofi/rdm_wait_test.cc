// SPDX-License-Identifier: Apache-2.0
// Waiting for completions.
#include <netinet/in.h>
#include <poll.h>

#include <thread>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

class WaitTest : public PairTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Open({.wait_object = FI_WAIT_FD}));
  }

  void PostReceive() {
    ASSERT_EQ(fi_recv(b->ep, &buffer_, sizeof(buffer_), nullptr, FI_ADDR_UNSPEC,
                      &buffer_),
              0);
  }
  void SendOne() {
    ++value_;
    ASSERT_EQ(fi_inject(a->ep, &value_, sizeof(value_), to_b), 0);
  }

  uint64_t value_ = 0;
  uint64_t buffer_ = 0;
};

constexpr int kLongMs = 30000;

TEST_F(WaitTest, BlockedReaderWakesForAMessage) {
  ASSERT_NO_FATAL_FAILURE(PostReceive());
  std::thread sender([&] { SendOne(); });
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_sread(b->rx_cq, &entry, 1, nullptr, kLongMs), 1);
  EXPECT_EQ(entry.op_context, &buffer_);
  sender.join();
}

TEST_F(WaitTest, NoWakeUpIsLostInALongExchange) {
  for (int i = 0; i < 200; ++i) {
    ASSERT_NO_FATAL_FAILURE(PostReceive());
    std::thread sender([&] { SendOne(); });
    fi_cq_tagged_entry entry;
    fi_addr_t source = 0;
    const ssize_t result =
        fi_cq_sreadfrom(b->rx_cq, &entry, 1, &source, nullptr, kLongMs);
    sender.join();
    ASSERT_EQ(result, 1) << i;
    ASSERT_EQ(buffer_, value_);
  }
}

TEST_F(WaitTest, TimeoutReturnsWithoutAnEntry) {
  fi_cq_tagged_entry entry;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(fi_cq_sread(b->rx_cq, &entry, 1, nullptr, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_sread(b->rx_cq, &entry, 1, nullptr, 20), -FI_EAGAIN);
  EXPECT_GE(std::chrono::steady_clock::now() - before,
            std::chrono::milliseconds(20));
}

TEST_F(WaitTest, SignalWakesABlockedReader) {
  std::thread signaller([&] { EXPECT_EQ(fi_cq_signal(b->rx_cq), 0); });
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_sread(b->rx_cq, &entry, 1, nullptr, -1), -FI_EAGAIN);
  signaller.join();
}

TEST_F(WaitTest, ErrorWakesABlockedReader) {
  ASSERT_NO_FATAL_FAILURE(PostReceive());
  ASSERT_EQ(fi_cancel(&b->ep->fid, &buffer_), 0);
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_sread(b->rx_cq, &entry, 1, nullptr, kLongMs), -FI_EAVAIL);
  fi_cq_err_entry error = {};
  EXPECT_EQ(fi_cq_readerr(b->rx_cq, &error, 0), 1);
}

TEST_F(WaitTest, DescriptorTellsOfEntriesAfterTryWait) {
  int fd = -1;
  ASSERT_EQ(fi_control(&b->rx_cq->fid, FI_GETWAIT, &fd), 0);
  ASSERT_GE(fd, 0);
  fid* object = &b->rx_cq->fid;
  for (int i = 0; i < 100; ++i) {
    ASSERT_NO_FATAL_FAILURE(PostReceive());
    ASSERT_EQ(fi_trywait(b->fabric, &object, 1), 0) << i;
    std::thread sender([&] { SendOne(); });
    // It may be readable without an entry, never the other way round.
    ssize_t safe = 0;
    for (int wakes = 0; safe == 0 && wakes < 10; ++wakes) {
      pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
      EXPECT_EQ(poll(&ready, 1, kLongMs), 1) << i;
      safe = fi_trywait(b->fabric, &object, 1);
    }
    sender.join();
    ASSERT_EQ(safe, -FI_EAGAIN);
    fi_cq_tagged_entry entry;
    ASSERT_EQ(fi_cq_read(b->rx_cq, &entry, 1), 1);
    ASSERT_EQ(buffer_, value_);
  }
}

TEST_F(WaitTest, EachWaitingQueueHasItsOwnDescriptor) {
  int tx_fd = -1;
  int rx_fd = -1;
  ASSERT_EQ(fi_control(&b->tx_cq->fid, FI_GETWAIT, &tx_fd), 0);
  ASSERT_EQ(fi_control(&b->rx_cq->fid, FI_GETWAIT, &rx_fd), 0);
  EXPECT_NE(tx_fd, rx_fd);
}

TEST(WaitObjects, PollingReadersMayWaitToo) {
  for (const fi_wait_obj object : {FI_WAIT_UNSPEC, FI_WAIT_YIELD}) {
    SCOPED_TRACE(object);
    NodeOptions options;
    options.wait_object = object;
    Node node(options);
    ASSERT_TRUE(node.ok());
    const fi_addr_t self = node.Insert(node);
    uint64_t value = 6;
    uint64_t received = 0;
    fi_cq_tagged_entry entry;
    EXPECT_EQ(fi_cq_sread(node.rx_cq, &entry, 1, nullptr, 5), -FI_EAGAIN);
    ASSERT_EQ(fi_recv(node.ep, &received, sizeof(received), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_EQ(fi_inject(node.ep, &value, sizeof(value), self), 0);
    EXPECT_EQ(fi_cq_sread(node.rx_cq, &entry, 1, nullptr, kLongMs), 1);
    EXPECT_EQ(received, 6U);
  }
}

TEST(WaitObjects, QueueWithoutWaitObjectCannotBeWaitedFor) {
  Node node;
  ASSERT_TRUE(node.ok());
  fid* object = &node.rx_cq->fid;
  EXPECT_EQ(fi_trywait(node.fabric, &object, 1), -FI_EINVAL);
  int fd = -1;
  EXPECT_EQ(fi_control(&node.rx_cq->fid, FI_GETWAIT, &fd), -FI_ENODATA);
}

TEST(WaitObjects, DescriptorIsAlsoToBeHadForPoll) {
  Node node({.wait_object = FI_WAIT_POLLFD});
  ASSERT_TRUE(node.ok());
  pollfd entry = {};
  fi_wait_pollfd set = {};
  EXPECT_EQ(fi_control(&node.rx_cq->fid, FI_GETWAIT, &set), -FI_ETOOSMALL);
  ASSERT_EQ(set.nfds, 1U);
  set.fd = &entry;
  ASSERT_EQ(fi_control(&node.rx_cq->fid, FI_GETWAIT, &set), 0);
  EXPECT_EQ(entry.events, POLLIN);
  const fi_addr_t self = node.Insert(node);
  uint64_t received = 0;
  ASSERT_EQ(fi_recv(node.ep, &received, sizeof(received), nullptr,
                    FI_ADDR_UNSPEC, nullptr),
            0);
  fid* object = &node.rx_cq->fid;
  ASSERT_EQ(fi_trywait(node.fabric, &object, 1), 0);
  EXPECT_EQ(poll(&entry, 1, 0), 0);
  const uint64_t value = 7;
  ASSERT_EQ(fi_inject(node.ep, &value, sizeof(value), self), 0);
  EXPECT_EQ(poll(&entry, 1, kLongMs), 1);
  EXPECT_TRUE(Take(node.rx_cq).has_value());
  EXPECT_EQ(received, 7U);
}

TEST(WaitObjects, WaitSetWakesForAnyOfItsQueues) {
  Node node({.enable = false});
  ASSERT_TRUE(node.ok());
  fid_wait* set = nullptr;
  fi_wait_attr set_attr = {};
  set_attr.wait_obj = FI_WAIT_UNSPEC;
  ASSERT_EQ(fi_wait_open(node.fabric, &set_attr, &set), 0);
  fi_cq_attr attr = {};
  attr.format = FI_CQ_FORMAT_CONTEXT;
  attr.wait_obj = FI_WAIT_SET;
  fid_cq* queues[2] = {};
  EXPECT_EQ(fi_cq_open(node.domain, &attr, &queues[0], nullptr), -FI_EINVAL);
  attr.wait_set = set;
  for (fid_cq*& queue : queues) {
    ASSERT_EQ(fi_cq_open(node.domain, &attr, &queue, nullptr), 0);
  }
  EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(node.domain, node.info.get(), &ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(ep, &queues[0]->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_ep_bind(ep, &queues[1]->fid, FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(ep, &node.av->fid, 0), 0);
  ASSERT_EQ(fi_enable(ep), 0);
  sockaddr_in name = {};
  size_t length = sizeof(name);
  ASSERT_EQ(fi_getname(&ep->fid, &name, &length), 0);
  fi_addr_t self = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(node.av, &name, 1, &self, 0, nullptr), 1);

  EXPECT_EQ(fi_wait(set, 10), -FI_ETIMEDOUT);
  fi_cq_entry entry;
  // Such a queue is not waited for by itself.
  EXPECT_EQ(fi_cq_sread(queues[0], &entry, 1, nullptr, 0), -FI_ENOSYS);
  uint64_t value = 3;
  uint64_t received = 0;
  ASSERT_EQ(fi_recv(ep, &received, sizeof(received), nullptr, FI_ADDR_UNSPEC,
                    &received),
            0);
  ASSERT_EQ(fi_send(ep, &value, sizeof(value), nullptr, self, &value), 0);
  int found = 0;
  for (int i = 0; i < 20 && found < 2; ++i) {
    ASSERT_EQ(fi_wait(set, kLongMs), 0);
    for (fid_cq* queue : queues) {
      found += fi_cq_read(queue, &entry, 1) == 1 ? 1 : 0;
    }
  }
  EXPECT_EQ(found, 2);
  EXPECT_EQ(received, 3U);
  EXPECT_EQ(fi_wait(set, 0), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  EXPECT_EQ(fi_close(&queues[0]->fid), 0);
  EXPECT_EQ(fi_close(&queues[1]->fid), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

}  // namespace
}  // namespace heddle::test
