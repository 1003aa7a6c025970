// SPDX-License-Identifier: Apache-2.0
// A device that fails: everything outstanding ends in error, and is named.
#include <dlfcn.h>
#include <rdma/fi_ext_heddle.h>

#include <cstdlib>
#include <set>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

// Fails the devices of this process; null where the device cannot be told.
void (*FailAll())() {
  const char* path = std::getenv("FI_HEDDLE_SIM_PATH");
  void* simulator =
      path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  return simulator == nullptr ? nullptr
                              : reinterpret_cast<void (*)()>(dlsym(
                                    simulator, "heddle_loopback_fail_all"));
}

class FailureTest : public PairTest {
 protected:
  void OpenAndFind(const NodeOptions& options = {}) {
    ASSERT_NO_FATAL_FAILURE(Open(options));
    fail_ = FailAll();
    if (fail_ == nullptr) {
      GTEST_SKIP() << "needs the loopback device";
    }
  }

  // Errors of a device fault until the queue says that there is no more.
  static std::multiset<void*> TakeFaults(fid_cq* cq) {
    std::multiset<void*> contexts;
    fi_cq_tagged_entry entry;
    ssize_t result = -FI_EAGAIN;
    while (WaitUntil([&] {
             result = fi_cq_read(cq, &entry, 1);
             return result != -FI_EAGAIN;
           }) &&
           result == -FI_EAVAIL) {
      fi_cq_err_entry error = {};
      EXPECT_EQ(fi_cq_readerr(cq, &error, 0), 1);
      EXPECT_EQ(error.err, FI_EIO);
      EXPECT_EQ(error.prov_errno, FI_HEDDLE_DEVICE_FAULT);
      contexts.insert(error.op_context);
    }
    EXPECT_EQ(result, -FI_EIO);
    return contexts;
  }

  void (*fail_)() = nullptr;
};

TEST_F(FailureTest, CompletesEveryOperationInError) {
  ASSERT_NO_FATAL_FAILURE(OpenAndFind());
  if (IsSkipped()) {
    return;
  }
  const std::vector<uint8_t> data = Pattern(100000);
  std::vector<uint8_t> room(100000);
  std::multiset<void*> sent;
  std::multiset<void*> posted;
  // In the ring, in extension slots, copied, mapped; none has a buffer at b.
  const size_t sizes[] = {0, 8, 32, 33, 150, 192, 193, 5000, 100000};
  static uint8_t contexts[2 * std::size(sizes)];
  uint8_t* next = contexts;
  for (const size_t bytes : sizes) {
    ASSERT_EQ(fi_send(a->ep, data.data(), bytes, nullptr, to_b, next), 0);
    sent.insert(next++);
    ASSERT_EQ(fi_recv(a->ep, room.data(), bytes, nullptr, FI_ADDR_UNSPEC, next),
              0);
    posted.insert(next++);
  }
  fail_();
  EXPECT_EQ(TakeFaults(a->tx_cq), sent);
  EXPECT_EQ(TakeFaults(a->rx_cq), posted);
  // Told once, and still told.
  EXPECT_EQ(TakeFaults(a->tx_cq), std::multiset<void*>());
  EXPECT_EQ(fi_send(a->ep, data.data(), 8, nullptr, to_b, nullptr), -FI_EIO);
  EXPECT_EQ(fi_send(a->ep, data.data(), 300, nullptr, to_b, nullptr), -FI_EIO);
  EXPECT_EQ(fi_recv(a->ep, room.data(), 8, nullptr, FI_ADDR_UNSPEC, nullptr),
            -FI_EIO);
}

TEST_F(FailureTest, WhatWasDoneBeforeIsNotReportedAgain) {
  ASSERT_NO_FATAL_FAILURE(OpenAndFind());
  if (IsSkipped()) {
    return;
  }
  // The first message has no buffer at b, so the second completes before it:
  // its slot is not released yet.
  Node c;
  ASSERT_TRUE(c.ok());
  const fi_addr_t to_c = a->Insert(c);
  uint64_t value = 1;
  uint64_t received = 0;
  int waiting = 0;
  int done = 0;
  ASSERT_EQ(fi_recv(c.ep, &received, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a->ep, &value, 8, nullptr, to_b, &waiting), 0);
  ASSERT_EQ(fi_send(a->ep, &value, 8, nullptr, to_c, &done), 0);
  ASSERT_TRUE(Take(c.rx_cq).has_value());
  const auto second = Take(a->tx_cq);
  ASSERT_TRUE(second.has_value());
  ASSERT_EQ(second->entry.op_context, &done);
  fail_();
  EXPECT_EQ(TakeFaults(a->tx_cq), std::multiset<void*>{&waiting});
}

TEST_F(FailureTest, SilentOperationsEndInErrorUnlessTheyWereDone) {
  ASSERT_NO_FATAL_FAILURE(OpenAndFind({.bind_flags = FI_SELECTIVE_COMPLETION}));
  if (IsSkipped()) {
    return;
  }
  uint64_t value = 1;
  uint64_t received = 0;
  ASSERT_EQ(fi_recv(b->ep, &received, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a->ep, &value, 8, to_b), 0);
  ASSERT_TRUE(WaitUntil([&] {
    fi_cq_tagged_entry entry;
    (void)fi_cq_read(b->rx_cq, &entry, 1);
    return received == 1;
  }));
  int context = 0;
  ASSERT_EQ(fi_send(a->ep, &value, 8, nullptr, to_b, &context), 0);
  ASSERT_EQ(fi_inject(a->ep, &value, 8, to_b), 0);
  fail_();
  // An injected message has no context but its endpoint's.
  EXPECT_EQ(TakeFaults(a->tx_cq),
            (std::multiset<void*>{&context, a->ep->fid.context}));
}

TEST_F(FailureTest, WakesABlockedReader) {
  ASSERT_NO_FATAL_FAILURE(OpenAndFind({.wait_object = FI_WAIT_FD}));
  if (IsSkipped()) {
    return;
  }
  uint64_t received = 0;
  ASSERT_EQ(fi_recv(b->ep, &received, 8, nullptr, FI_ADDR_UNSPEC, &received),
            0);
  fail_();
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_sread(b->rx_cq, &entry, 1, nullptr, kLimitMs), -FI_EAVAIL);
  fi_cq_err_entry error = {};
  ASSERT_EQ(fi_cq_readerr(b->rx_cq, &error, 0), 1);
  EXPECT_EQ(error.op_context, &received);
  EXPECT_EQ(fi_cq_sread(b->rx_cq, &entry, 1, nullptr, kLimitMs), -FI_EIO);
}

TEST_F(FailureTest, IsAnEventOfEachEndpoint) {
  ASSERT_NO_FATAL_FAILURE(OpenAndFind());
  if (IsSkipped()) {
    return;
  }
  Node node({.enable = false});
  ASSERT_TRUE(node.ok());
  fid_eq* of_domain = nullptr;
  fid_eq* of_endpoint = nullptr;
  ASSERT_EQ(fi_eq_open(node.fabric, nullptr, &of_domain, nullptr), 0);
  ASSERT_EQ(fi_eq_open(node.fabric, nullptr, &of_endpoint, nullptr), 0);
  ASSERT_EQ(fi_domain_bind(node.domain, &of_domain->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(node.ep, &of_endpoint->fid, 0), 0);
  ASSERT_EQ(fi_enable(node.ep), 0);
  fid_ep* other = node.OpenEndpoint();
  fail_();
  EXPECT_TRUE(TakeFaults(node.tx_cq).empty());
  const auto take = [](fid_eq* queue) {
    uint32_t event = 0;
    fi_eq_entry entry;
    EXPECT_EQ(fi_eq_read(queue, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
    fi_eq_err_entry error = {};
    EXPECT_GT(fi_eq_readerr(queue, &error, 0), 0);
    EXPECT_EQ(error.err, FI_EIO);
    EXPECT_EQ(error.prov_errno, FI_HEDDLE_DEVICE_FAULT);
    EXPECT_EQ(fi_eq_read(queue, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
    return error;
  };
  // An endpoint with a queue of its own reports there, the other one at the
  // domain's.
  const fi_eq_err_entry own = take(of_endpoint);
  EXPECT_EQ(own.fid, &node.ep->fid);
  EXPECT_EQ(own.context, node.ep->fid.context);
  EXPECT_EQ(take(of_domain).fid, &other->fid);
  EXPECT_EQ(fi_close(&other->fid), 0);
  EXPECT_EQ(fi_close(&of_domain->fid), -FI_EBUSY);
  // Closing in order works on a failed device, too.
  ASSERT_EQ(fi_close(&node.ep->fid), 0);
  node.ep = nullptr;
  EXPECT_EQ(fi_close(&of_endpoint->fid), 0);
  for (fid* object :
       {&node.av->fid, &node.rx_cq->fid, &node.tx_cq->fid, &node.domain->fid}) {
    EXPECT_EQ(fi_close(object), 0);
  }
  node.av = nullptr;
  node.rx_cq = nullptr;
  node.tx_cq = nullptr;
  node.domain = nullptr;
  EXPECT_EQ(fi_close(&of_domain->fid), 0);
}

}  // namespace
}  // namespace heddle::test
