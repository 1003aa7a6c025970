// SPDX-License-Identifier: Apache-2.0
// libfabric's objects over a backend that is no Heddle device.
#include <gtest/gtest.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <string>

#include "host/lib/ofi/transfer_handle.h"
#include "tests/host/backend/memory_fabric.h"
#include "tests/host/backend/memory_model.h"

namespace heddle::ofi {
namespace {

struct Node {
  fid_ep* endpoint = nullptr;
  fid_cq* queue = nullptr;
  fid_av* peers = nullptr;
};

class SeamTest : public MemoryFabricTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(MemoryFabricTest::SetUp());
    info_->ep_attr->type = FI_EP_RDM;
    info_->caps = FI_MSG | FI_SOURCE;
    for (Node* node : {&a_, &b_}) {
      ASSERT_NO_FATAL_FAILURE(Open(node));
    }
    sockaddr_in address = {};
    size_t length = sizeof(address);
    ASSERT_EQ(fi_getname(&b_.endpoint->fid, &address, &length), 0);
    ASSERT_EQ(fi_av_insert(a_.peers, &address, 1, &to_b_, 0, nullptr), 1);
    ASSERT_EQ(fi_getname(&a_.endpoint->fid, &address, &length), 0);
    ASSERT_EQ(fi_av_insert(b_.peers, &address, 1, &to_a_, 0, nullptr), 1);
  }

  void TearDown() override {
    for (const Node& node : {a_, b_}) {
      EXPECT_EQ(fi_close(&node.endpoint->fid), 0);
      EXPECT_EQ(fi_close(&node.queue->fid), 0);
      EXPECT_EQ(fi_close(&node.peers->fid), 0);
    }
    EXPECT_EQ(fi_close(&domain_->fid), 0);
    EXPECT_EQ(fi_close(&fabric_->fid), 0);
  }

  void Open(Node* node) {
    fi_cq_attr queue = {};
    queue.format = FI_CQ_FORMAT_DATA;
    ASSERT_EQ(fi_cq_open(domain_, &queue, &node->queue, nullptr), 0);
    fi_av_attr vector = {};
    ASSERT_EQ(fi_av_open(domain_, &vector, &node->peers, nullptr), 0);
    ASSERT_EQ(fi_endpoint(domain_, info_.get(), &node->endpoint, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(node->endpoint, &node->queue->fid,
                         FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION),
              0);
    ASSERT_EQ(fi_ep_bind(node->endpoint, &node->peers->fid, 0), 0);
    ASSERT_EQ(fi_enable(node->endpoint), 0);
  }

  // Sends `text` with the flags of fi_sendmsg.
  ssize_t Send(const std::string& text, uint64_t flags, uint64_t data = 0) {
    iovec part = {.iov_base = const_cast<char*>(text.data()),
                  .iov_len = text.size()};
    fi_msg message = {};
    message.msg_iov = &part;
    message.iov_count = 1;
    message.addr = to_b_;
    message.context = &a_;
    message.data = data;
    return fi_sendmsg(a_.endpoint, &message, flags);
  }
  void PostReceives(size_t count, uint64_t flags = FI_COMPLETION) {
    for (size_t i = 0; i < count; ++i) {
      iovec part = {.iov_base = buffers_[i].data(),
                    .iov_len = buffers_[i].size()};
      fi_msg message = {};
      message.msg_iov = &part;
      message.iov_count = 1;
      message.context = &buffers_[i];
      ASSERT_EQ(fi_recvmsg(b_.endpoint, &message, flags), 0);
    }
  }

  Node a_;
  Node b_;
  fi_addr_t to_a_ = FI_ADDR_NOTAVAIL;
  fi_addr_t to_b_ = FI_ADDR_NOTAVAIL;
  std::array<std::array<char, 8>, 5> buffers_{};
};

TEST_F(SeamTest, AMessageArrivesWithItsDataAndSource) {
  PostReceives(1);
  ASSERT_EQ(Send("hello", FI_COMPLETION | FI_REMOTE_CQ_DATA, 42), 0);
  fi_cq_data_entry entry = {};
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_cq_readfrom(b_.queue, &entry, 1, &source), 1);
  EXPECT_EQ(entry.op_context, &buffers_[0]);
  EXPECT_EQ(entry.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(entry.len, 5U);
  EXPECT_EQ(entry.buf, buffers_[0].data());
  EXPECT_EQ(entry.data, 42U);
  EXPECT_EQ(source, to_a_);
  EXPECT_STREQ(buffers_[0].data(), "hello");
  ASSERT_EQ(fi_cq_read(a_.queue, &entry, 1), 1);
  EXPECT_EQ(entry.op_context, &a_);
  EXPECT_EQ(entry.flags, FI_SEND | FI_MSG);
  EXPECT_EQ(fi_cq_read(a_.queue, &entry, 1), -FI_EAGAIN);
}

TEST_F(SeamTest, AnEntryOfTheDeviceMayGiveNoCompletion) {
  PostReceives(2, /*flags=*/0);
  ASSERT_EQ(Send("a", 0), 0);
  ASSERT_EQ(Send("b", FI_COMPLETION), 0);
  fi_cq_data_entry entries[4];
  EXPECT_EQ(fi_cq_read(b_.queue, entries, 4), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_read(a_.queue, entries, 4), 1);
}

TEST_F(SeamTest, AnEntryOfTheDeviceMayGiveSeveralCompletions) {
  PostReceives(5);
  for (const char* text : {"a", "b", "c", "d"}) {
    ASSERT_EQ(Send(text, FI_MORE), 0);
  }
  fi_cq_data_entry entries[3];
  EXPECT_EQ(fi_cq_read(b_.queue, entries, 3), -FI_EAGAIN);
  ASSERT_EQ(Send("e", 0), 0);
  // Those for which there is no room are given by the next calls, in order.
  size_t next = 0;
  for (const ssize_t expected : {3, 1, 1}) {
    fi_addr_t sources[3];
    ASSERT_EQ(fi_cq_readfrom(b_.queue, entries, static_cast<size_t>(expected),
                             sources),
              expected);
    for (ssize_t i = 0; i < expected; ++i, ++next) {
      EXPECT_EQ(entries[i].op_context, &buffers_[next]);
      EXPECT_EQ(sources[i], to_a_);
    }
  }
  EXPECT_EQ(fi_cq_read(b_.queue, entries, 3), -FI_EAGAIN);
}

TEST_F(SeamTest, AnErrorOfTheBackendIsLibfabrics) {
  PostReceives(1);
  ASSERT_EQ(Send("longer than that", 0), 0);
  fi_cq_data_entry entry;
  EXPECT_EQ(fi_cq_read(b_.queue, &entry, 1), -FI_EAVAIL);
  fi_cq_err_entry error = {};
  ASSERT_EQ(fi_cq_readerr(b_.queue, &error, 0), 1);
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.prov_errno, FI_HEDDLE_TRUNCATED);
  EXPECT_EQ(error.olen, 8U);
  EXPECT_EQ(error.op_context, &buffers_[0]);
}

TEST_F(SeamTest, WhatTheBackendRefusesIsTheCallsAnswer) {
  EXPECT_EQ(Send("no receive", 0), -FI_EAGAIN);
  std::array<char, 64> memory{};
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain_, memory.data(), memory.size(), FI_RECV, 0, 0, 0,
                      &region, nullptr),
            0);
  EXPECT_EQ(fi_recv(b_.endpoint, memory.data() + 60, 8, fi_mr_desc(region),
                    FI_ADDR_UNSPEC, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_recv(b_.endpoint, memory.data() + 56, 8, fi_mr_desc(region),
                    FI_ADDR_UNSPEC, nullptr),
            0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

// The tables of calls without flags have the default flags as constants: short,
// medium and long ones follow a change of these.
TEST_F(SeamTest, DefaultFlagsChooseTheCalls) {
  std::array<char, 256> text{};
  std::array<char, 256> received{};
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain_, text.data(), text.size(), FI_SEND, 0, 0, 0,
                      &region, nullptr),
            0);
  const backend::memory::Transmitter& transmitter =
      static_cast<const backend::memory::Transmitter&>(
          *TransferHandle::From(a_.endpoint)->transmit().context);
  for (const uint64_t flag :
       {uint64_t{FI_COMPLETION}, uint64_t{0}, uint64_t{FI_COMPLETION}}) {
    uint64_t flags = FI_TRANSMIT | flag;
    ASSERT_EQ(fi_control(&a_.endpoint->fid, FI_SETOPSFLAG, &flags), 0);
    const size_t tried = transmitter.tried;
    const size_t direct_ones = transmitter.direct_ones;
    for (const size_t bytes : {8, 100, 256}) {
      text.fill(static_cast<char>(bytes));
      ASSERT_EQ(fi_recv(b_.endpoint, received.data(), received.size(), nullptr,
                        FI_ADDR_UNSPEC, nullptr),
                0);
      ASSERT_EQ(fi_send(a_.endpoint, text.data(), bytes, fi_mr_desc(region),
                        to_b_, &received),
                0);
      EXPECT_EQ(std::count(received.begin(), received.begin() + bytes,
                           static_cast<char>(bytes)),
                static_cast<ptrdiff_t>(bytes));
      fi_cq_data_entry entry = {};
      EXPECT_EQ(fi_cq_read(a_.queue, &entry, 1), flag != 0 ? 1 : -FI_EAGAIN);
      EXPECT_EQ(entry.op_context, flag != 0 ? &received : nullptr);
    }
    EXPECT_EQ(transmitter.tried - tried, 3U);
    EXPECT_EQ(transmitter.direct_ones - direct_ones, flag != 0 ? 3U : 0U);
  }
  EXPECT_EQ(fi_close(&region->fid), 0);
}

}  // namespace
}  // namespace heddle::ofi
