// SPDX-License-Identifier: Apache-2.0
// Fabrics, domains and their attributes.
#include <rdma/fi_rma.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

class ObjectTest : public NodesTest {};
class DomainTest : public NodesTest {};

CONFORMANCE_TEST(ObjectTest, FabricKeepsClassAndContext, 86) {
  const Answer answer = GetInfo(MakeHints(FI_MSG).get());
  if (answer.result == -FI_ENODATA) {
    return NotOffered("reliable datagrams with messages");
  }
  ASSERT_FALSE(answer.empty());
  int context = 0;
  fid_fabric* fabric = nullptr;
  ASSERT_EQ(fi_fabric(answer.own().front()->fabric_attr, &fabric, &context), 0);
  EXPECT_EQ(fabric->fid.fclass, size_t{FI_CLASS_FABRIC});
  EXPECT_EQ(fabric->fid.context, &context);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

CONFORMANCE_TEST(ObjectTest, ObjectsBeginWithClassContextAndOperations, 87) {
  if (!Open({}, 1)) {
    return;
  }
  const struct {
    const fid* object;
    size_t fclass;
  } objects[] = {{&a().fabric->fid, FI_CLASS_FABRIC},
                 {&a().domain->fid, FI_CLASS_DOMAIN},
                 {&a().av->fid, FI_CLASS_AV},
                 {&a().tx.cq->fid, FI_CLASS_CQ},
                 {&a().ep->fid, FI_CLASS_EP}};
  for (const auto& [object, fclass] : objects) {
    EXPECT_EQ(object->fclass, fclass);
    ASSERT_NE(object->ops, nullptr) << fclass;
    EXPECT_GE(object->ops->size, sizeof(fi_ops)) << fclass;
    EXPECT_NE(object->ops->close, nullptr) << fclass;
  }
  EXPECT_EQ(a().tx.cq->fid.context, &a().tx);
  EXPECT_EQ(a().ep->fid.context, &a());
  EXPECT_GE(a().fabric->ops->size, sizeof(fi_ops_fabric));
  EXPECT_GE(a().domain->ops->size, sizeof(fi_ops_domain));
  EXPECT_GE(a().av->ops->size, sizeof(fi_ops_av));
  EXPECT_GE(a().tx.cq->ops->size, sizeof(fi_ops_cq));
  EXPECT_GE(a().ep->ops->size, sizeof(fi_ops_ep));
  EXPECT_GE(a().ep->msg->size, sizeof(fi_ops_msg));
}

CONFORMANCE_TEST(ObjectTest, DomainsOfOneNameOpenBesideEachOther, 88) {
  if (!Open({}, 1)) {
    return;
  }
  fid_domain* second = nullptr;
  fid_domain* third = nullptr;
  int context = 0;
  ASSERT_EQ(fi_domain(a().fabric, a().info.get(), &second, &context), 0);
  ASSERT_EQ(fi_domain(a().fabric, a().info.get(), &third, nullptr), 0);
  EXPECT_NE(second, a().domain);
  EXPECT_NE(second, third);
  EXPECT_EQ(second->fid.fclass, size_t{FI_CLASS_DOMAIN});
  EXPECT_EQ(second->fid.context, &context);
  EXPECT_EQ(fi_close(&third->fid), 0);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

CONFORMANCE_TEST(ObjectTest, DomainInUseStaysOpen, 90) {
  if (!Open()) {
    return;
  }
  ASSERT_EQ(fi_close(&b().domain->fid), -FI_EBUSY);
  Exchange(1000);
}

CONFORMANCE_TEST(ObjectTest, EachObjectOfADomainKeepsItOpen, 91) {
  const Answer answer = GetInfo(MakeHints(FI_MSG).get());
  if (answer.result == -FI_ENODATA) {
    return NotOffered("reliable datagrams with messages");
  }
  ASSERT_FALSE(answer.empty());
  const InfoPointer info(fi_dupinfo(answer.own().front()));
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
  ASSERT_EQ(fi_close(&fabric->fid), -FI_EBUSY) << "with a domain";
  fi_cq_attr cq_attr = {};
  fid_cq* cq = nullptr;
  ASSERT_EQ(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
  ASSERT_EQ(fi_close(&domain->fid), -FI_EBUSY) << "with a completion queue";
  ASSERT_EQ(fi_close(&cq->fid), 0);
  fi_av_attr av_attr = {};
  av_attr.type = FI_AV_TABLE;
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
  ASSERT_EQ(fi_close(&domain->fid), -FI_EBUSY) << "with an address vector";
  ASSERT_EQ(fi_close(&av->fid), 0);
  uint8_t memory[64] = {};
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(domain, memory, sizeof(memory), FI_SEND | FI_RECV, 0, 1,
                      0, &mr, nullptr),
            0);
  ASSERT_EQ(fi_close(&domain->fid), -FI_EBUSY) << "with a region";
  ASSERT_EQ(fi_close(&mr->fid), 0);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  ASSERT_EQ(fi_close(&domain->fid), -FI_EBUSY) << "with an endpoint";
  ASSERT_EQ(fi_close(&ep->fid), 0);
  fi_eq_attr eq_attr = {};
  fid_eq* eq = nullptr;
  ASSERT_EQ(fi_eq_open(fabric, &eq_attr, &eq, nullptr), 0);
  EXPECT_EQ(fi_close(&domain->fid), 0) << "an event queue is the fabric's";
  ASSERT_EQ(fi_close(&fabric->fid), -FI_EBUSY) << "with an event queue";
  EXPECT_EQ(fi_close(&eq->fid), 0);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

CONFORMANCE_TEST(ObjectTest, UnknownOperationsAreNotThere, 95, 96) {
  if (!Open({}, 1)) {
    return;
  }
  void* ops = nullptr;
  EXPECT_EQ(fi_open_ops(&a().domain->fid, "heddle-conformance-none", 0, &ops,
                        nullptr),
            -FI_ENOSYS);
  fi_ops none = {};
  none.size = sizeof(none);
  EXPECT_EQ(fi_set_ops(&a().domain->fid, "heddle-conformance-none", 0, &none,
                       nullptr),
            -FI_ENOSYS);
}

CONFORMANCE_TEST(DomainTest, NameIsStableAndServesAsHint, 98) {
  const Answer first = GetInfo(MakeHints(FI_MSG).get());
  if (first.result == -FI_ENODATA) {
    return NotOffered("reliable datagrams with messages");
  }
  const Answer second = GetInfo(MakeHints(FI_MSG).get());
  ASSERT_FALSE(first.empty());
  ASSERT_EQ(first.own().size(), second.own().size());
  for (size_t i = 0; i < first.own().size(); ++i) {
    const char* const name = first.own()[i]->domain_attr->name;
    ASSERT_NE(name, nullptr);
    EXPECT_STREQ(name, second.own()[i]->domain_attr->name);
    const InfoPointer hints = MakeHints(FI_MSG);
    hints->domain_attr->name = CopyText(name);
    const Answer answer = GetInfo(hints.get());
    EXPECT_FALSE(answer.empty()) << name;
    for (const fi_info* info : answer.own()) {
      EXPECT_STREQ(info->domain_attr->name, name);
    }
  }
}

CONFORMANCE_TEST(DomainTest, ThreadingThatIsNotGivenIsSafe, 99) {
  const Answer answer = GetInfo(MakeHints(FI_MSG).get());
  if (answer.result == -FI_ENODATA) {
    return NotOffered("reliable datagrams with messages");
  }
  ASSERT_FALSE(answer.empty());
  EXPECT_EQ(answer.own().front()->domain_attr->threading, FI_THREAD_SAFE);
}

CONFORMANCE_TEST(DomainTest, ThreadsShareAnEndpoint, 100) {
  NodeOptions options;
  options.threading = FI_THREAD_SAFE;
  if (!Open(options)) {
    return;
  }
  ASSERT_EQ(a().info->domain_attr->threading, FI_THREAD_SAFE);
  constexpr size_t kThreads = 4;
  constexpr size_t kMessages = 50;
  struct Sender {
    uint64_t values[kMessages];
    fi_context2 contexts[kMessages];
    ssize_t result;
  };
  std::vector<Sender> senders(kThreads);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::thread> threads;
  std::atomic<size_t> running = kThreads;
  for (size_t i = 0; i < kThreads; ++i) {
    buffers.push_back(std::make_unique<Buffer>(a(), kMessages * 8));
  }
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Buffer& buffer = *buffers[i];
      for (size_t j = 0; j < kMessages; ++j) {
        const uint64_t value = i * kMessages + j;
        std::memcpy(buffer.data() + 8 * j, &value, 8);
        do {
          senders[i].result =
              fi_send(a().ep, buffer.data() + 8 * j, 8, buffer.desc(), to_b(),
                      &senders[i].contexts[j]);
        } while (senders[i].result == -FI_EAGAIN);
      }
      --running;
    });
  }
  Buffer received(b(), 8);
  fi_context2 context = {};
  std::set<uint64_t> values;
  for (size_t i = 0; i < kThreads * kMessages && !HasFailure(); ++i) {
    EXPECT_EQ(Receive(received, &context), 0);
    ExpectDone(b().rx, &context);
    uint64_t value = 0;
    std::memcpy(&value, received.data(), 8);
    values.insert(value);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(values.size(), kThreads * kMessages);
  std::set<const void*> contexts;
  for (size_t i = 0; i < kThreads * kMessages && !HasFailure(); ++i) {
    const auto completion = Take(a().tx);
    ASSERT_TRUE(completion.has_value());
    contexts.insert(completion->entry.op_context);
  }
  EXPECT_EQ(contexts.size(), kThreads * kMessages);
  for (const Sender& sender : senders) {
    EXPECT_EQ(sender.result, 0);
  }
}

CONFORMANCE_TEST(DomainTest, MessageArrivesWithoutCallsOfEither, 106) {
  NodeOptions options;
  options.progress = FI_PROGRESS_AUTO;
  if (!Open(options)) {
    return;
  }
  ASSERT_EQ(a().info->domain_attr->data_progress, FI_PROGRESS_AUTO);
  ASSERT_EQ(a().info->domain_attr->control_progress, FI_PROGRESS_AUTO);
  constexpr size_t kBytes = 100'000;
  Buffer sent(a(), kBytes);
  Buffer received(b(), kBytes);
  sent.Fill();
  fi_context2 contexts[2] = {};
  ASSERT_EQ(Receive(received, &contexts[0]), 0);
  ASSERT_EQ(Send(sent, kBytes, &contexts[1]), 0);
  // No call of the library until the last byte is there.
  const uint8_t expected = sent.bytes().back();
  const Deadline deadline;
  while (Load(&received.bytes().back()) != expected && !deadline.HasPassed()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Load(&received.bytes().back()), expected)
      << "no progress without calls";
  ExpectDone(b().rx, &contexts[0]);
  ExpectDone(a().tx, &contexts[1]);
  EXPECT_EQ(received.bytes(), sent.bytes());
}

CONFORMANCE_TEST(DomainTest, AutomaticProgressIsOffered, 109) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
  const Answer answer = GetInfo(hints.get());
  if (answer.result == -FI_ENODATA) {
    return NotOffered("FI_PROGRESS_AUTO");
  }
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
    EXPECT_EQ(info->domain_attr->control_progress, FI_PROGRESS_AUTO);
  }
}

CONFORMANCE_TEST(DomainTest, ResourceManagementIsAsRequestedOrStronger, 110) {
  for (const fi_resource_mgmt hint :
       {FI_RM_UNSPEC, FI_RM_DISABLED, FI_RM_ENABLED}) {
    const InfoPointer hints = MakeHints(FI_MSG);
    hints->domain_attr->resource_mgmt = hint;
    const Answer answer = GetInfo(hints.get());
    if (answer.result == -FI_ENODATA && hint == FI_RM_UNSPEC) {
      return NotOffered("reliable datagrams with messages");
    }
    EXPECT_FALSE(answer.empty()) << hint;
    for (const fi_info* info : answer.own()) {
      const fi_resource_mgmt result = info->domain_attr->resource_mgmt;
      EXPECT_NE(result, FI_RM_UNSPEC);
      EXPECT_TRUE(hint != FI_RM_ENABLED || result == FI_RM_ENABLED);
    }
  }
}

CONFORMANCE_TEST(DomainTest, FullTransmitQueueRefusesAndRecovers, 111) {
  if (!Open()) {
    return;
  }
  // Without a receive, messages stay in the queue of the sender or on their
  // way; a provider that takes more than its queue has room elsewhere.
  const size_t enough = std::min<size_t>(a().info->tx_attr->size, 4096) + 16;
  Buffer sent(a(), 8);
  std::vector<fi_context2> contexts(enough);
  size_t posted = 0;
  ssize_t result = 0;
  while (posted < enough && result == 0) {
    // The first send may wait for the provider to find the peer.
    result = posted == 0 ? Send(sent, 8, &contexts[0])
                         : fi_send(a().ep, sent.data(), 8, sent.desc(), to_b(),
                                   &contexts[posted]);
    posted += result == 0 ? 1 : 0;
  }
  EXPECT_TRUE(result == 0 || result == -FI_EAGAIN) << result;
  Buffer received(b(), 8);
  fi_context2 context = {};
  for (size_t i = 0; i < posted && !HasFailure(); ++i) {
    ASSERT_EQ(Receive(received, &context), 0);
    const auto completion = Take(b().rx);
    ASSERT_TRUE(completion.has_value()) << i << " of " << posted;
    ASSERT_FALSE(completion->error) << i << " of " << posted;
  }
  for (size_t i = 0; i < posted; ++i) {
    const auto completion = Take(a().tx);
    ASSERT_TRUE(completion.has_value()) << i << " of " << posted;
    ASSERT_FALSE(completion->error);
  }
  Exchange(8);
}

CONFORMANCE_TEST(DomainTest, MessageWaitsForItsReceive, 113, 221) {
  if (!Open()) {
    return;
  }
  for (const size_t bytes : {8U, 5000U, 200'000U}) {
    Buffer sent(a(), bytes);
    Buffer received(b(), bytes);
    sent.Fill();
    fi_context2 contexts[2] = {};
    ASSERT_EQ(Send(sent, bytes, &contexts[0]), 0);
    EXPECT_TRUE(StaysEmpty(b().rx));
    ASSERT_EQ(Receive(received, &contexts[1]), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[1])) << bytes;
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[0])) << bytes;
    EXPECT_EQ(received.bytes(), sent.bytes());
  }
}

CONFORMANCE_TEST(DomainTest, LongMessageIsTruncatedAtTheReceiver, 116) {
  if (!Open()) {
    return;
  }
  for (const size_t bytes : {100U, 100'000U}) {
    Buffer sent(a(), bytes);
    Buffer received(b(), 40);
    sent.Fill();
    fi_context2 contexts[2] = {};
    ASSERT_EQ(Receive(received, &contexts[0]), 0);
    ASSERT_EQ(Send(sent, bytes, &contexts[1]), 0);
    const auto completion = Take(b().rx);
    ASSERT_TRUE(completion.has_value()) << bytes;
    ASSERT_TRUE(completion->error) << bytes;
    EXPECT_EQ(completion->failure.err, FI_ETRUNC);
    EXPECT_EQ(completion->failure.op_context, &contexts[0]);
    EXPECT_TRUE(Take(a().tx).has_value()) << "the send completes";
  }
}

CONFORMANCE_TEST(DomainTest, TypeOfTheVectorIsTheRequestedOne, 120) {
  for (const fi_av_type type : {FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE}) {
    const InfoPointer hints = MakeHints(FI_MSG);
    hints->domain_attr->av_type = type;
    const Answer answer = GetInfo(hints.get());
    EXPECT_FALSE(answer.empty()) << type;
    for (const fi_info* info : answer.own()) {
      EXPECT_TRUE(type == FI_AV_UNSPEC || info->domain_attr->av_type == type)
          << type;
    }
    if (!answer.empty()) {
      const fi_info& info = *answer.own().front();
      fid_fabric* fabric = nullptr;
      fid_domain* domain = nullptr;
      fid_av* av = nullptr;
      fi_av_attr attr = {};
      attr.type = info.domain_attr->av_type;
      const InfoPointer copy(fi_dupinfo(&info));
      ASSERT_EQ(fi_fabric(copy->fabric_attr, &fabric, nullptr), 0);
      ASSERT_EQ(fi_domain(fabric, copy.get(), &domain, nullptr), 0);
      EXPECT_EQ(fi_av_open(domain, &attr, &av, nullptr), 0) << attr.type;
      for (fid* const object :
           {av == nullptr ? nullptr : &av->fid, &domain->fid, &fabric->fid}) {
        EXPECT_TRUE(object == nullptr || fi_close(object) == 0);
      }
    }
  }
}

CONFORMANCE_TEST(DomainTest, TableCountsInsertions, 121) {
  if (!Open({}, 3)) {
    return;
  }
  fi_av_attr attr = {};
  attr.type = FI_AV_TABLE;
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(a().domain, &attr, &av, nullptr), 0);
  fi_addr_t expected = 0;
  for (const Node* const node : {&c(), &a(), &b()}) {
    fi_addr_t address = FI_ADDR_UNSPEC;
    EXPECT_EQ(fi_av_insert(av, node->Name().data(), 1, &address, 0, nullptr),
              1);
    EXPECT_EQ(address, expected++);
  }
  EXPECT_EQ(fi_close(&av->fid), 0);
}

CONFORMANCE_TEST(DomainTest, RegistrationModesAreAPartOfTheHints, 124, 125) {
  for (const int mode :
       {0, int{FI_MR_LOCAL}, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY,
        FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR, kMrModes}) {
    const InfoPointer hints = MakeHints(FI_MSG | FI_RMA);
    hints->domain_attr->mr_mode = mode;
    const Answer answer = GetInfo(hints.get());
    if (answer.result != 0) {
      EXPECT_EQ(answer.result, -FI_ENODATA) << mode;
    }
    for (const fi_info* info : answer.own()) {
      EXPECT_EQ(info->domain_attr->mr_mode & ~mode, 0) << mode;
    }
  }
}

CONFORMANCE_TEST(DomainTest, UnregisteredBuffersWork, 126) {
  NodeOptions options;
  options.mr_mode &= ~FI_MR_LOCAL;
  if (!Open(options)) {
    return;
  }
  for (const size_t bytes : {1U, 4096U, 300'000U}) {
    const std::vector<uint8_t> sent = Pattern(bytes);
    std::vector<uint8_t> received(bytes);
    fi_context2 contexts[2] = {};
    ASSERT_EQ(Post([&] {
                return fi_recv(b().ep, received.data(), bytes, nullptr,
                               FI_ADDR_UNSPEC, &contexts[0]);
              }),
              0);
    ASSERT_EQ(Post([&] {
                return fi_send(a().ep, sent.data(), bytes, nullptr, to_b(),
                               &contexts[1]);
              }),
              0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[0]));
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[1]));
    EXPECT_EQ(received, sent);
  }
}

CONFORMANCE_TEST(DomainTest, BeforeVersion15RegistrationHasTwoModes, 136) {
  const InfoPointer hints = MakeHints(FI_MSG | FI_RMA);
  hints->mode |= FI_LOCAL_MR;
  hints->domain_attr->mr_mode = FI_MR_UNSPEC;
  const Answer answer = GetInfo(hints.get(), {.version = FI_VERSION(1, 4)});
  if (answer.result == -FI_ENODATA) {
    return NotOffered("remote access for callers of version 1.4");
  }
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    const int mode = info->domain_attr->mr_mode;
    EXPECT_TRUE(mode == FI_MR_BASIC || mode == FI_MR_SCALABLE) << mode;
  }
}

CONFORMANCE_TEST(DomainTest, DataOfTheWholeWidthArrive, 138) {
  if (!Open()) {
    return;
  }
  const size_t bytes = a().info->domain_attr->cq_data_size;
  if (bytes == 0) {
    return NotOffered("remote completion data");
  }
  ASSERT_GE(bytes, 4U);
  const uint64_t data =
      0xf1e2d3c4b5a69788 >> (64 - 8 * std::min<size_t>(bytes, 8));
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  fi_context2 contexts[2] = {};
  ASSERT_EQ(Receive(received, &contexts[0]), 0);
  ASSERT_EQ(Post([&] {
              return fi_senddata(a().ep, sent.data(), 8, sent.desc(), data,
                                 to_b(), &contexts[1]);
            }),
            0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_FALSE(completion->error);
  EXPECT_NE(completion->entry.flags & FI_REMOTE_CQ_DATA, 0U);
  EXPECT_EQ(completion->entry.data, data);
  ExpectDone(a().tx, &contexts[1]);
}

CONFORMANCE_TEST(DomainTest, ContextsBeyondTheLimitAreRefused, 140) {
  const Answer all = GetInfo(MakeHints(FI_MSG).get());
  if (all.result == -FI_ENODATA) {
    return NotOffered("reliable datagrams with messages");
  }
  ASSERT_FALSE(all.empty());
  size_t max_tx = 0;
  size_t max_rx = 0;
  for (const fi_info* info : all.own()) {
    max_tx = std::max(max_tx, info->domain_attr->max_ep_tx_ctx);
    max_rx = std::max(max_rx, info->domain_attr->max_ep_rx_ctx);
  }
  const InfoPointer tx = MakeHints(FI_MSG);
  tx->ep_attr->tx_ctx_cnt = max_tx + 1;
  EXPECT_EQ(GetInfo(tx.get()).result, -FI_ENODATA) << max_tx;
  const InfoPointer rx = MakeHints(FI_MSG);
  rx->ep_attr->rx_ctx_cnt = max_rx + 1;
  EXPECT_EQ(GetInfo(rx.get()).result, -FI_ENODATA) << max_rx;
}

CONFORMANCE_TEST(DomainTest, SegmentsOfARegionAreLimited, 141) {
  if (!Open({}, 1)) {
    return;
  }
  const size_t limit = a().info->domain_attr->mr_iov_limit;
  ASSERT_GE(limit, 1U);
  std::vector<std::vector<uint8_t>> memory(std::min<size_t>(limit, 64) + 1,
                                           std::vector<uint8_t>(4096));
  std::vector<iovec> segments;
  segments.reserve(memory.size());
  for (auto& part : memory) {
    segments.push_back({.iov_base = part.data(), .iov_len = part.size()});
  }
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_regv(a().domain, segments.data(), segments.size() - 1,
                       FI_SEND | FI_RECV, 0, 77, 0, &mr, nullptr),
            0);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  if (limit <= 64) {
    const int result = fi_mr_regv(a().domain, segments.data(), segments.size(),
                                  FI_SEND | FI_RECV, 0, 78, 0, &mr, nullptr);
    EXPECT_EQ(result, -FI_EINVAL) << "more than " << limit << " segments";
    EXPECT_TRUE(result != 0 || fi_close(&mr->fid) == 0);
  }
}

CONFORMANCE_TEST(DomainTest, CountOfRegionsIsAccepted, 142) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->domain_attr->mr_cnt = 64;
  EXPECT_EQ(GetInfo(hints.get()).result, 0);
}

}  // namespace
}  // namespace heddle::conformance
