// SPDX-License-Identifier: Apache-2.0
// What fi_domain(3) and fi_endpoint(3) promise of any provider.
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <atomic>
#include <thread>

#include "tests/host/ofi/ip_name.h"
#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

class RulesTest : public PairTest {};

// ----------------------------------------------------------------- objects

// Every slot of a table of `size` bytes behind the size holds a function.
template <typename Table>
void ExpectWhole(const Table& table, const char* name) {
  EXPECT_GE(table.size, sizeof(Table)) << name;
  const auto* slots = reinterpret_cast<void* const*>(&table);
  for (size_t i = 1; i < sizeof(Table) / sizeof(*slots); ++i) {
    EXPECT_NE(slots[i], nullptr) << name << " slot " << i;
  }
}

TEST_F(RulesTest, TablesTellTheirSizeAndHaveNoHoles) {
  Node node;
  ASSERT_TRUE(node.ok());
  ExpectWhole(*node.domain->ops, "domain");
  ExpectWhole(*node.domain->mr, "mr");
  ExpectWhole(*node.av->ops, "av");
  ExpectWhole(*node.tx_cq->ops, "cq");
  ExpectWhole(*node.ep->ops, "ep");
  ExpectWhole(*node.ep->cm, "cm");
  ExpectWhole(*node.ep->msg, "msg");
  ExpectWhole(*node.ep->rma, "rma");
  ExpectWhole(*node.ep->tagged, "tagged");
  ExpectWhole(*node.ep->atomic, "atomic");
  ExpectWhole(*node.ep->collective, "collective");
  const struct {
    const fid* object;
    size_t fclass;
  } objects[] = {{&node.fabric->fid, FI_CLASS_FABRIC},
                 {&node.domain->fid, FI_CLASS_DOMAIN},
                 {&node.av->fid, FI_CLASS_AV},
                 {&node.tx_cq->fid, FI_CLASS_CQ},
                 {&node.ep->fid, FI_CLASS_EP}};
  for (const auto& [object, fclass] : objects) {
    EXPECT_EQ(object->fclass, fclass);
    EXPECT_GE(object->ops->size, sizeof(fi_ops)) << fclass;
    // Unknown commands and interfaces.
    auto* changeable = const_cast<fid*>(object);
    uint64_t argument = 0;
    EXPECT_EQ(fi_control(changeable, 0x7fff, &argument), -FI_ENOSYS) << fclass;
    void* ops = nullptr;
    EXPECT_EQ(fi_open_ops(changeable, "no such", 0, &ops, nullptr), -FI_ENOSYS);
    EXPECT_EQ(fi_set_ops(changeable, "no such", 0, &argument, nullptr),
              -FI_ENOSYS);
  }
}

TEST_F(RulesTest, AdvertisedCountsCanBeOpened) {
  Node node({.enable = false});
  ASSERT_TRUE(node.ok());
  const fi_domain_attr& attr = *node.info->domain_attr;
  std::vector<fid_cq*> queues = {node.tx_cq, node.rx_cq};
  while (queues.size() < attr.cq_cnt) {
    fi_cq_attr cq_attr = {};
    fid_cq* queue = nullptr;
    ASSERT_EQ(fi_cq_open(node.domain, &cq_attr, &queue, nullptr), 0)
        << queues.size();
    queues.push_back(queue);
  }
  std::vector<fid_ep*> endpoints;
  ASSERT_EQ(attr.ep_cnt, attr.tx_ctx_cnt);
  ASSERT_EQ(attr.ep_cnt, attr.rx_ctx_cnt);
  while (endpoints.size() < attr.ep_cnt) {
    fid_cq* queue = queues[endpoints.size() % queues.size()];
    fid_ep* ep = nullptr;
    ASSERT_EQ(fi_endpoint(node.domain, node.info.get(), &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &queue->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_ep_bind(ep, &node.av->fid, 0), 0);
    ASSERT_EQ(fi_enable(ep), 0) << endpoints.size();
    endpoints.push_back(ep);
  }
  // One more is an error, and takes nothing with it.
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(node.domain, node.info.get(), &ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(ep, &queues[0]->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(ep, &node.av->fid, 0), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOSPC);
  EXPECT_EQ(fi_close(&endpoints.back()->fid), 0);
  EXPECT_EQ(fi_enable(ep), 0);
  endpoints.back() = ep;
  for (fid_ep* open : endpoints) {
    EXPECT_EQ(fi_close(&open->fid), 0);
  }
  for (size_t i = 2; i < queues.size(); ++i) {
    EXPECT_EQ(fi_close(&queues[i]->fid), 0);
  }
}

TEST_F(RulesTest, LargestCompletionQueueIsOpenedForMore) {
  Node node;
  ASSERT_TRUE(node.ok());
  fi_cq_attr attr = {};
  attr.size = 1U << 20U;
  fid_cq* queue = nullptr;
  ASSERT_EQ(fi_cq_open(node.domain, &attr, &queue, nullptr), 0);
  EXPECT_EQ(attr.size, 32768U);
  EXPECT_EQ(fi_close(&queue->fid), 0);
}

TEST_F(RulesTest, VectorTypeIsTheOneAskedFor) {
  for (const fi_av_type of_domain : {FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE}) {
    Node node({.av_type = of_domain});
    ASSERT_TRUE(node.ok());
    for (const fi_av_type type : {FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE}) {
      fi_av_attr attr = {};
      attr.type = type;
      fid_av* av = nullptr;
      ASSERT_EQ(fi_av_open(node.domain, &attr, &av, nullptr), 0);
      const fi_av_type expected = type != FI_AV_UNSPEC        ? type
                                  : of_domain != FI_AV_UNSPEC ? of_domain
                                                              : FI_AV_TABLE;
      EXPECT_EQ(attr.type, expected) << of_domain << ' ' << type;
      EXPECT_EQ(fi_close(&av->fid), 0);
    }
  }
}

// ---------------------------------------------------------------- endpoints

TEST_F(RulesTest, InfoThatIsNoneOfOursOpensNoEndpoint) {
  Node node;
  ASSERT_TRUE(node.ok());
  const auto result = [&](const auto& change) {
    const InfoPointer info(fi_dupinfo(node.info.get()));
    change(*info);
    fid_ep* ep = nullptr;
    const int opened = fi_endpoint(node.domain, info.get(), &ep, nullptr);
    EXPECT_EQ(ep, nullptr);
    return opened;
  };
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_endpoint(node.domain, nullptr, &ep, nullptr), -FI_EINVAL);
  EXPECT_EQ(result([](fi_info& i) { i.ep_attr->type = FI_EP_DGRAM; }),
            -FI_EINVAL);
  EXPECT_EQ(result([](fi_info& i) { i.ep_attr->tx_ctx_cnt = 2; }), -FI_ENOSYS);
  EXPECT_EQ(
      result([](fi_info& i) { i.ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT; }),
      -FI_ENOSYS);
  EXPECT_EQ(
      result([](fi_info& i) { i.tx_attr->op_flags = FI_COMMIT_COMPLETE; }),
      -FI_EBADFLAGS);
  EXPECT_EQ(result([](fi_info& i) { i.rx_attr->op_flags = FI_MULTI_RECV; }),
            -FI_EBADFLAGS);
  EXPECT_EQ(result([](fi_info& i) { i.src_addrlen = 4; }), -FI_EINVAL);
  EXPECT_EQ(result([](fi_info& i) {
              static_cast<sockaddr_in*>(i.src_addr)->sin_addr.s_addr ^= 1;
            }),
            -FI_EADDRNOTAVAIL);
  EXPECT_EQ(result([](fi_info& i) { i.caps = FI_MSG | FI_SOURCE_ERR; }),
            -FI_EINVAL);
  EXPECT_EQ(fi_endpoint2(node.domain, node.info.get(), &ep, FI_PEER_TRANSFER,
                         nullptr),
            -FI_EINVAL);
}

TEST_F(RulesTest, InfoThatIsNoneOfOursOpensNoDomain) {
  Node node;
  ASSERT_TRUE(node.ok());
  fid_domain* domain = nullptr;
  EXPECT_EQ(fi_domain(node.fabric, nullptr, &domain, nullptr), -FI_EINVAL);
  const InfoPointer info(fi_dupinfo(node.info.get()));
  free(info->domain_attr->name);
  info->domain_attr->name = nullptr;
  EXPECT_EQ(fi_domain(node.fabric, info.get(), &domain, nullptr), -FI_EINVAL);
  info->domain_attr->name = strdup("nosuch0");
  EXPECT_EQ(fi_domain(node.fabric, info.get(), &domain, nullptr), -FI_ENODEV);
  EXPECT_EQ(domain, nullptr);
}

TEST_F(RulesTest, NameIsSetOnceAndBeforeEnable) {
  Node node;
  ASSERT_TRUE(node.ok());
  sockaddr_in name = IpName(node);
  EXPECT_EQ(fi_setname(&node.ep->fid, &name, sizeof(name)), -FI_EOPBADSTATE);
  fid_ep* bare = nullptr;
  ASSERT_EQ(fi_endpoint(node.domain, node.info.get(), &bare, nullptr), 0);
  EXPECT_EQ(fi_setname(&bare->fid, &name, 4), -FI_EINVAL);
  EXPECT_EQ(fi_setname(&bare->fid, nullptr, sizeof(name)), -FI_EINVAL);
  name.sin_addr.s_addr ^= 1;
  EXPECT_EQ(fi_setname(&bare->fid, &name, sizeof(name)), -FI_EADDRNOTAVAIL);
  EXPECT_EQ(fi_close(&bare->fid), 0);
}

TEST_F(RulesTest, MessageBeyondTheLimitIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const size_t most = a->info->ep_attr->max_msg_size;
  ASSERT_EQ(most, 0xffffffffU);
  // The address space behind it does not matter: nothing is touched.
  uint8_t byte = 0;
  EXPECT_EQ(fi_send(a->ep, &byte, most + 1, nullptr, to_b, nullptr),
            -FI_EMSGSIZE);
  EXPECT_EQ(fi_recv(a->ep, &byte, most + 1, nullptr, FI_ADDR_UNSPEC, nullptr),
            -FI_EMSGSIZE);
  const iovec parts[2] = {{.iov_base = &byte, .iov_len = SIZE_MAX},
                          {.iov_base = &byte, .iov_len = 2}};
  EXPECT_EQ(fi_sendv(a->ep, parts, nullptr, 2, to_b, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_recvv(a->ep, parts, nullptr, 2, FI_ADDR_UNSPEC, nullptr),
            -FI_EMSGSIZE);
}

TEST_F(RulesTest, FlagsOfACallReplaceTheDefaults) {
  NodeOptions options;
  options.tx_op_flags = FI_INJECT;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  // FI_INJECT by default: what is larger is refused, but not with flags 0.
  std::vector<uint8_t> sent = Pattern(1000);
  std::vector<uint8_t> received(1000);
  EXPECT_EQ(fi_send(a->ep, sent.data(), sent.size(), nullptr, to_b, nullptr),
            -FI_EMSGSIZE);
  iovec part = {.iov_base = sent.data(), .iov_len = sent.size()};
  fi_msg message = {};
  message.msg_iov = &part;
  message.iov_count = 1;
  message.addr = to_b;
  ASSERT_EQ(fi_recv(b->ep, received.data(), received.size(), nullptr,
                    FI_ADDR_UNSPEC, nullptr),
            0);
  ASSERT_EQ(fi_sendmsg(a->ep, &message, 0), 0);
  ASSERT_TRUE(Take(b->rx_cq).has_value());
  ASSERT_TRUE(Take(a->tx_cq).has_value());
  EXPECT_EQ(received, sent);
}

TEST_F(RulesTest, CancelOfWhatWasNotPostedFindsNothing) {
  Node node;
  ASSERT_TRUE(node.ok());
  int context = 0;
  EXPECT_EQ(fi_cancel(&node.ep->fid, &context), -FI_ENOENT);
  EXPECT_EQ(fi_cancel(&node.ep->fid, nullptr), -FI_ENOENT);
}

TEST_F(RulesTest, BadUseOfAVectorIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Open());
  fid_av* av = a->av;
  const sockaddr_in name = IpName(*b);
  fi_addr_t index = 0;
  int error = 0;
  EXPECT_EQ(fi_av_insert(av, &name, 1, &index, FI_PEEK, nullptr),
            -FI_EBADFLAGS);
  EXPECT_EQ(fi_av_insert(av, nullptr, 1, &index, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(av, &name, 1, &index, FI_SYNC_ERR, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(av, nullptr, 0, nullptr, FI_SYNC_ERR, &error), 0);
  EXPECT_EQ(fi_av_insertsvc(av, nullptr, "1", &index, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsvc(av, "10.0.0.1", nullptr, &index, 0, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsvc(av, "no host", "1", &index, 0, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(
      fi_av_insertsym(av, "10.0.0.1", 1, "1", 1, &index, FI_PEEK, nullptr),
      -FI_EBADFLAGS);
  index = 77;
  EXPECT_EQ(fi_av_remove(av, &index, 1, 0), -FI_EINVAL);
  index = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_remove(av, &index, 1, 0), -FI_EINVAL);
  EXPECT_EQ(fi_av_remove(av, &to_b, 1, FI_PEEK), -FI_EBADFLAGS);
  size_t length = sizeof(name);
  sockaddr_in found;
  EXPECT_EQ(fi_av_lookup(av, 77, &found, &length), -FI_EINVAL);
  EXPECT_EQ(fi_av_lookup(av, FI_ADDR_NOTAVAIL, &found, &length), -FI_EINVAL);
  EXPECT_EQ(fi_av_bind(av, &a->tx_cq->fid, 0), -FI_ENOSYS);
  fi_av_attr attr = {};
  attr.rx_ctx_bits = -1;
  EXPECT_EQ(fi_av_open(a->domain, &attr, &av, nullptr), -FI_EINVAL);
  attr.rx_ctx_bits = 2;
  EXPECT_EQ(fi_av_open(a->domain, &attr, &av, nullptr), -FI_ENOSYS);
  attr = {};
  attr.flags = FI_PEEK;
  EXPECT_EQ(fi_av_open(a->domain, &attr, &av, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_open(a->domain, nullptr, &av, nullptr), -FI_EINVAL);
}

// ---------------------------------------------------------------- threading

class ModelTest : public ::testing::TestWithParam<fi_threading> {};

TEST_P(ModelTest, ControlCallsAreSafeBesideDataTransfer) {
  NodeOptions options;
  options.threading = GetParam();
  Node node(options);
  ASSERT_TRUE(node.ok());
  const fi_addr_t self = node.Insert(node);
  constexpr uint32_t kPerMessage = 5;
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> messages{0};
  std::thread control([&] {
    sockaddr_in address = IpName(node);
    std::vector<uint8_t> memory(10000);
    for (uint32_t i = 0; !stop; ++i) {
      // A simulated device is no faster than what is rung: a few a message.
      while (!stop && i > kPerMessage * (messages + 1)) {
        std::this_thread::yield();
      }
      address.sin_port = htons(static_cast<uint16_t>(1 + i % 60000));
      fi_addr_t index = FI_ADDR_UNSPEC;
      EXPECT_EQ(fi_av_insert(node.av, &address, 1, &index, 0, nullptr), 1);
      fid_mr* region = nullptr;
      EXPECT_EQ(fi_mr_reg(node.domain, memory.data(), memory.size(), FI_SEND, 0,
                          i, 0, &region, nullptr),
                0);
      EXPECT_EQ(fi_close(&region->fid), 0);
      EXPECT_EQ(fi_av_remove(node.av, &index, 1, 0), 0);
    }
  });
  for (uint64_t i = 0; i < 100; ++i) {
    uint64_t received = 0;
    EXPECT_EQ(fi_recv(node.ep, &received, sizeof(received), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    EXPECT_EQ(fi_inject(node.ep, &i, sizeof(i), self), 0);
    if (!Take(node.rx_cq).has_value()) {
      ADD_FAILURE() << "message " << i << " does not arrive";
      break;
    }
    EXPECT_EQ(received, i);
    ++messages;
  }
  stop = true;
  control.join();
}

TEST_P(ModelTest, DomainsRunInThreadsOfTheirOwn) {
  NodeOptions options;
  options.threading = GetParam();
  const auto work = [&] {
    Node node(options);
    ASSERT_TRUE(node.ok()) << fi_strerror(-node.result);
    const fi_addr_t self = node.Insert(node);
    for (uint64_t i = 0; i < 100; ++i) {
      uint64_t received = 0;
      ASSERT_EQ(fi_recv(node.ep, &received, sizeof(received), nullptr,
                        FI_ADDR_UNSPEC, nullptr),
                0);
      ASSERT_EQ(fi_send(node.ep, &i, sizeof(i), nullptr, self, nullptr), 0);
      ASSERT_TRUE(Take(node.rx_cq).has_value());
      ASSERT_TRUE(Take(node.tx_cq).has_value());
      ASSERT_EQ(received, i);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Models, ModelTest,
                         ::testing::Values(FI_THREAD_SAFE, FI_THREAD_FID,
                                           FI_THREAD_ENDPOINT,
                                           FI_THREAD_COMPLETION,
                                           FI_THREAD_DOMAIN));

TEST_F(RulesTest, ManualProgressMovesMessagesWhenQueuesAreRead) {
  NodeOptions options;
  options.progress = FI_PROGRESS_MANUAL;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  EXPECT_EQ(a->info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  const std::vector<uint8_t> sent = Pattern(5000);
  std::vector<uint8_t> received(5000);
  ASSERT_NO_FATAL_FAILURE(Exchange(sent, received));
  EXPECT_EQ(sent, received);
}

}  // namespace
}  // namespace heddle::test
