// SPDX-License-Identifier: Apache-2.0
// What endpoints refuse, and how.
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdlib>

#include "tests/host/ofi/ip_name.h"
#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

class BadUseTest : public PairTest {};

// ------------------------------------------------------------------- state

TEST_F(BadUseTest, DisabledEndpointTransfersNothing) {
  Node node({.enable = false});
  ASSERT_TRUE(node.ok());
  uint8_t byte = 0;
  iovec part = {.iov_base = &byte, .iov_len = 1};
  fi_msg message = {};
  message.msg_iov = &part;
  message.iov_count = 1;
  fid_ep* ep = node.ep;
  const ssize_t expected = -FI_EOPBADSTATE;
  EXPECT_EQ(fi_send(ep, &byte, 1, nullptr, 0, nullptr), expected);
  EXPECT_EQ(fi_sendv(ep, &part, nullptr, 1, 0, nullptr), expected);
  EXPECT_EQ(fi_sendmsg(ep, &message, 0), expected);
  EXPECT_EQ(fi_senddata(ep, &byte, 1, nullptr, 0, 0, nullptr), expected);
  EXPECT_EQ(fi_inject(ep, &byte, 1, 0), expected);
  EXPECT_EQ(fi_injectdata(ep, &byte, 1, 0, 0), expected);
  EXPECT_EQ(fi_recv(ep, &byte, 1, nullptr, 0, nullptr), expected);
  EXPECT_EQ(fi_recvv(ep, &part, nullptr, 1, 0, nullptr), expected);
  EXPECT_EQ(fi_recvmsg(ep, &message, 0), expected);
  EXPECT_EQ(fi_cancel(&ep->fid, &byte), expected);
  sockaddr_in name;
  size_t length = sizeof(name);
  EXPECT_EQ(fi_getname(&ep->fid, &name, &length), expected);
}

TEST_F(BadUseTest, BindKeepsItsRules) {
  ASSERT_NO_FATAL_FAILURE(Open({.enable = false}));
  fid_ep* bare = nullptr;
  ASSERT_EQ(fi_endpoint(a->domain, a->info.get(), &bare, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(bare, &a->tx_cq->fid, 0), -FI_EBADFLAGS);
  EXPECT_EQ(fi_ep_bind(bare, &a->tx_cq->fid, FI_SELECTIVE_COMPLETION),
            -FI_EBADFLAGS);
  EXPECT_EQ(fi_ep_bind(bare, &a->tx_cq->fid, FI_TRANSMIT | FI_READ),
            -FI_EBADFLAGS);
  EXPECT_EQ(fi_ep_bind(bare, &b->tx_cq->fid, FI_TRANSMIT), -FI_EDOMAIN);
  EXPECT_EQ(fi_ep_bind(bare, &b->av->fid, 0), -FI_EDOMAIN);
  EXPECT_EQ(fi_ep_bind(bare, &a->domain->fid, 0), -FI_EINVAL);
  ASSERT_EQ(fi_ep_bind(bare, &a->tx_cq->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_ep_bind(bare, &a->rx_cq->fid, FI_TRANSMIT), -FI_EINVAL);
  ASSERT_EQ(fi_ep_bind(bare, &a->av->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(bare, &a->av->fid, 0), -FI_EINVAL);
  ASSERT_EQ(fi_ep_bind(bare, &a->rx_cq->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(bare), 0);
  EXPECT_EQ(fi_ep_bind(bare, &a->rx_cq->fid, FI_RECV), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_ep_bind(bare, &a->av->fid, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_close(&bare->fid), 0);
}

TEST_F(BadUseTest, CloseDiscardsWhatIsOutstanding) {
  ASSERT_NO_FATAL_FAILURE(Open());
  fid_ep* more = a->OpenEndpoint();
  auto buffer = std::make_unique<std::vector<uint8_t>>(100000);
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(fi_recv(more, buffer->data(), buffer->size(), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_EQ(
        fi_send(more, buffer->data(), buffer->size(), nullptr, to_b, nullptr),
        0);
  }
  EXPECT_EQ(fi_close(&more->fid), 0);
  buffer.reset();
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
  EXPECT_TRUE(StaysEmpty(a->rx_cq));
  // The queues go on with the other endpoint.
  const fi_addr_t self = a->Insert(*a);
  uint64_t value = 9;
  uint64_t received = 0;
  ASSERT_EQ(fi_recv(a->ep, &received, sizeof(received), nullptr, FI_ADDR_UNSPEC,
                    nullptr),
            0);
  ASSERT_EQ(fi_send(a->ep, &value, sizeof(value), nullptr, self, nullptr), 0);
  ASSERT_TRUE(Take(a->rx_cq).has_value());
  ASSERT_TRUE(Take(a->tx_cq).has_value());
  EXPECT_EQ(received, 9U);
}

TEST_F(BadUseTest, CloseDoesNotWaitForASilentPeer) {
  // Longer than the test may take. Settings are read once: a process that runs
  // other tests before keeps theirs.
  ASSERT_EQ(setenv("FI_HEDDLE_DEAD_NS", "3600000000000", /*replace=*/1), 0);
  ASSERT_NO_FATAL_FAILURE(Open());
  sockaddr_in absent = IpName(*b);
  absent.sin_addr.s_addr = htonl(ntohl(absent.sin_addr.s_addr) ^ 0x55);
  fi_addr_t to_absent = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(a->av, &absent, 1, &to_absent, 0, nullptr), 1);
  const std::vector<uint8_t> data = Pattern(50000);
  fid_ep* more = a->OpenEndpoint();
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(
        fi_send(more, data.data(), data.size(), nullptr, to_absent, nullptr),
        0);
  }
  EXPECT_EQ(fi_close(&more->fid), 0);
}

// --------------------------------------------------------------- addresses

TEST_F(BadUseTest, SendNeedsAnIndexOfTheVector) {
  ASSERT_NO_FATAL_FAILURE(Open());
  uint8_t byte = 0;
  for (const fi_addr_t wrong :
       {fi_addr_t{FI_ADDR_UNSPEC}, to_b + 1, fi_addr_t{1} << 40U}) {
    EXPECT_EQ(fi_send(a->ep, &byte, 1, nullptr, wrong, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_inject(a->ep, &byte, 1, wrong), -FI_EINVAL);
  }
  ASSERT_EQ(fi_av_remove(a->av, &to_b, 1, 0), 0);
  EXPECT_EQ(fi_send(a->ep, &byte, 1, nullptr, to_b, nullptr), -FI_EINVAL);
}

TEST_F(BadUseTest, SilentPeerEndsInAnErrorThatNamesIt) {
  const char* dead_ns = std::getenv("FI_HEDDLE_DEAD_NS");
  if (dead_ns == nullptr || std::strtoll(dead_ns, nullptr, 10) > 10000000000) {
    GTEST_SKIP() << "needs FI_HEDDLE_DEAD_NS of at most 10 s";
  }
  ASSERT_NO_FATAL_FAILURE(Open());
  // An address at which there is no device, so that nothing answers.
  sockaddr_in absent = IpName(*b);
  absent.sin_addr.s_addr = htonl(ntohl(absent.sin_addr.s_addr) ^ 0x55);
  absent.sin_port = htons(4321);
  fi_addr_t to_absent = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(a->av, &absent, 1, &to_absent, 0, nullptr), 1);
  int context = 0;
  ASSERT_EQ(
      fi_send(a->ep, &context, sizeof(context), nullptr, to_absent, &context),
      0);
  const auto failed = Take(a->tx_cq);
  ASSERT_TRUE(failed.has_value());
  ASSERT_TRUE(failed->error);
  EXPECT_EQ(failed->failure.err, FI_EHOSTUNREACH);
  EXPECT_EQ(failed->failure.op_context, &context);
  ASSERT_EQ(failed->failure.err_data_size, sizeof(absent));
  EXPECT_EQ(std::memcmp(failed->failure.err_data, &absent, sizeof(absent)), 0);
  char text[256] = "";
  EXPECT_EQ(fi_cq_strerror(a->tx_cq, failed->failure.prov_errno,
                           failed->failure.err_data, text, sizeof(text)),
            text);
  EXPECT_NE(std::string(text).find(":4321"), std::string::npos) << text;
  // Other peers are not concerned.
  const std::vector<uint8_t> sent = Pattern(100);
  std::vector<uint8_t> received(100);
  ASSERT_NO_FATAL_FAILURE(Exchange(sent, received));
  EXPECT_EQ(sent, received);
}

TEST_F(BadUseTest, PortsAreClaimedOnce) {
  Node first({.service = "5001"});
  ASSERT_TRUE(first.ok()) << fi_strerror(-first.result);
  EXPECT_EQ(IpName(first).sin_port, htons(5001));
  // Another function at the same address, and another endpoint of this one.
  const Node second({.service = "5001"});
  EXPECT_EQ(second.result, -FI_EADDRINUSE);
  fid_ep* bare = nullptr;
  ASSERT_EQ(fi_endpoint(first.domain, first.info.get(), &bare, nullptr), 0);
  sockaddr_in name = IpName(first);
  EXPECT_EQ(fi_setname(&bare->fid, &name, sizeof(name)), -FI_EADDRINUSE);
  name.sin_port = htons(5002);
  EXPECT_EQ(fi_setname(&bare->fid, &name, sizeof(name)), 0);
  sockaddr_in found = {};
  size_t length = sizeof(found);
  EXPECT_EQ(fi_getname(&bare->fid, &found, &length), 0);
  EXPECT_EQ(found.sin_port, htons(5002));
  name.sin_addr.s_addr = htonl(ntohl(name.sin_addr.s_addr) + 1);
  EXPECT_EQ(fi_close(&bare->fid), 0);
}

TEST_F(BadUseTest, ShortNameBufferIsFilledAndToldTheSize) {
  Node node;
  ASSERT_TRUE(node.ok());
  const sockaddr_in full = IpName(node);
  unsigned char part[6] = {0, 0, 0, 0, 0xee, 0xee};
  size_t length = 4;
  EXPECT_EQ(fi_getname(&node.ep->fid, part, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof(full));
  EXPECT_EQ(std::memcmp(part, &full, 4), 0);
  EXPECT_EQ(part[4], 0xee);
  length = 0;
  EXPECT_EQ(fi_getname(&node.ep->fid, nullptr, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof(full));
}

// ------------------------------------------------------------- directions

TEST_F(BadUseTest, SendOnlyEndpointDoesNotReceive) {
  NodeOptions sender;
  sender.caps = FI_MSG | FI_SEND;
  NodeOptions receiver;
  receiver.caps = FI_MSG | FI_RECV;
  ASSERT_NO_FATAL_FAILURE(Open(sender, receiver));
  uint64_t value = 4;
  uint64_t received = 0;
  EXPECT_EQ(fi_recv(a->ep, &value, sizeof(value), nullptr, 0, nullptr),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_send(b->ep, &value, sizeof(value), nullptr, to_a, nullptr),
            -FI_EOPNOTSUPP);
  ASSERT_EQ(fi_recv(b->ep, &received, sizeof(received), nullptr, FI_ADDR_UNSPEC,
                    nullptr),
            0);
  ASSERT_EQ(fi_send(a->ep, &value, sizeof(value), nullptr, to_b, nullptr), 0);
  ASSERT_TRUE(Take(b->rx_cq).has_value());
  ASSERT_TRUE(Take(a->tx_cq).has_value());
  EXPECT_EQ(received, 4U);
}

// ---------------------------------------------------------- flags, options

TEST_F(BadUseTest, CompletionLevelsAndFlagsNotOfferedAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Open());
  uint8_t byte = 0;
  iovec part = {.iov_base = &byte, .iov_len = 1};
  fi_msg message = {};
  message.msg_iov = &part;
  message.iov_count = 1;
  message.addr = to_b;
  for (const uint64_t flag : {FI_COMMIT_COMPLETE, FI_MULTICAST}) {
    EXPECT_EQ(fi_sendmsg(a->ep, &message, flag), -FI_EOPNOTSUPP);
  }
  for (const uint64_t flag : {FI_MULTI_RECV, FI_PEEK, FI_CLAIM}) {
    EXPECT_EQ(fi_recvmsg(a->ep, &message, flag), -FI_EOPNOTSUPP);
  }
}

TEST_F(BadUseTest, OptionsAreRefusedAsDefined) {
  Node node;
  ASSERT_TRUE(node.ok());
  size_t value = 0;
  size_t length = sizeof(value);
  fid* ep = &node.ep->fid;
  EXPECT_EQ(
      fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &length),
      -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value,
                      sizeof(value)),
            -FI_ENOPROTOOPT);
  EXPECT_EQ(
      fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &value, sizeof(int)),
      -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_getopt(ep, 77, 0, &value, &length), -FI_ENOPROTOOPT);
}

// --------------------------------------------------------- not implemented

TEST_F(BadUseTest, WhatTheEndpointDoesNotDoAnswersNotImplemented) {
  ASSERT_NO_FATAL_FAILURE(Open());
  fid_ep* ep = a->ep;
  uint64_t data = 0;
  const ssize_t expected = -FI_ENOSYS;
  EXPECT_EQ(fi_read(ep, &data, 8, nullptr, to_b, 0, 0, nullptr), expected);
  EXPECT_EQ(fi_write(ep, &data, 8, nullptr, to_b, 0, 0, nullptr), expected);
  EXPECT_EQ(fi_inject_write(ep, &data, 8, to_b, 0, 0), expected);
  EXPECT_EQ(fi_tsend(ep, &data, 8, nullptr, to_b, 1, nullptr), expected);
  EXPECT_EQ(fi_trecv(ep, &data, 8, nullptr, to_b, 1, 0, nullptr), expected);
  EXPECT_EQ(fi_tinject(ep, &data, 8, to_b, 1), expected);
  EXPECT_EQ(
      fi_atomic(ep, &data, 1, nullptr, to_b, 0, 0, FI_UINT64, FI_SUM, nullptr),
      expected);
  size_t count = 0;
  EXPECT_EQ(fi_atomicvalid(ep, FI_UINT64, FI_SUM, &count), expected);
  EXPECT_EQ(fi_barrier(ep, to_b, nullptr), expected);
  EXPECT_EQ(fi_connect(ep, &data, nullptr, 0), expected);
  EXPECT_EQ(fi_accept(ep, nullptr, 0), expected);
  EXPECT_EQ(fi_shutdown(ep, 0), expected);
  EXPECT_EQ(fi_getpeer(ep, &data, &count), expected);
  fid_mc* group = nullptr;
  EXPECT_EQ(fi_join(ep, &data, 0, &group, nullptr), expected);
  fid_ep* context = nullptr;
  EXPECT_EQ(fi_tx_context(ep, 0, nullptr, &context, nullptr), expected);
  EXPECT_EQ(fi_rx_context(ep, 0, nullptr, &context, nullptr), expected);
  EXPECT_EQ(ep->ops->tx_size_left(ep), expected);
  EXPECT_EQ(ep->ops->rx_size_left(ep), expected);
  void* ops = nullptr;
  EXPECT_EQ(fi_open_ops(&ep->fid, "unknown", 0, &ops, nullptr), expected);
  EXPECT_EQ(fi_set_ops(&ep->fid, "unknown", 0, ops, nullptr), expected);
}

TEST_F(BadUseTest, WhatTheDomainDoesNotDoAnswersNotImplemented) {
  Node node;
  ASSERT_TRUE(node.ok());
  fid_domain* domain = node.domain;
  fid_ep* ep = nullptr;
  fid_cntr* counter = nullptr;
  fid_poll* poll_set = nullptr;
  fid_stx* stx = nullptr;
  fi_cntr_attr counter_attr = {};
  fi_poll_attr poll_attr = {};
  EXPECT_EQ(fi_scalable_ep(domain, node.info.get(), &ep, nullptr), -FI_ENOSYS);
  if (node.info->domain_attr->cntr_cnt == 0) {
    EXPECT_EQ(fi_cntr_open(domain, &counter_attr, &counter, nullptr),
              -FI_ENOSYS);
  }
  EXPECT_EQ(fi_poll_open(domain, &poll_attr, &poll_set), -FI_ENOSYS);
  EXPECT_EQ(fi_stx_context(domain, node.info->tx_attr, &stx, nullptr),
            -FI_ENOSYS);
  EXPECT_EQ(fi_srx_context(domain, node.info->rx_attr, &ep, nullptr),
            -FI_ENOSYS);
  fi_atomic_attr atomic_attr = {};
  EXPECT_EQ(fi_query_atomic(domain, FI_UINT64, FI_SUM, &atomic_attr, 0),
            -FI_ENOSYS);
  void* ops = nullptr;
  EXPECT_EQ(fi_open_ops(&domain->fid, "unknown", 0, &ops, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_set_ops(&domain->fid, "unknown", 0, ops, nullptr), -FI_ENOSYS);
}

}  // namespace
}  // namespace heddle::test
