// SPDX-License-Identifier: Apache-2.0
// Queues that fill, errors, keys, infos that are none.
#include <poll.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t kLocal = FI_SEND | FI_RECV | FI_READ | FI_WRITE;

class ResourceTest : public NodesTest {
 protected:
  void ExchangeEverySize() {
    for (const size_t bytes :
         {0U,      1U,      7U,      8U,      16U,     17U,       63U,   64U,
          65U,     191U,    192U,    193U,    1000U,   4095U,     4096U, 4097U,
          16'384U, 16'385U, 65'535U, 65'536U, 65'537U, 1'000'000U}) {
      ASSERT_NO_FATAL_FAILURE(Exchange(bytes, static_cast<uint32_t>(bytes)))
          << bytes;
    }
  }
};
class ErrorTest : public NodesTest {};
class OpenTest : public NodesTest {};

CONFORMANCE_TEST(ResourceTest, SmallQueuesKeepEveryCompletion, 112) {
  NodeOptions options;
  options.tx_cq_size = options.rx_cq_size = 2;
  if (!Open(options)) {
    return;
  }
  constexpr size_t kMessages = 40;
  Buffer sent(a(), 8 * kMessages);
  Buffer received(b(), 8 * kMessages);
  sent.Fill();
  std::vector<fi_context2> contexts(2 * kMessages);
  size_t receives = 0;
  size_t sends = 0;
  const auto receive = [&] {
    return fi_recv(b().ep, received.data() + 8 * receives, 8, received.desc(),
                   FI_ADDR_UNSPEC, &contexts[receives]);
  };
  const auto send = [&] {
    return fi_send(a().ep, sent.data() + 8 * sends, 8, sent.desc(), to_b(),
                   &contexts[kMessages + sends]);
  };
  // As many as there is room for, without a look at the queues; the rest when
  // they are read. A first exchange lets the peers find each other.
  ASSERT_EQ(Post(receive), 0);
  ++receives;
  ASSERT_EQ(Post(send), 0);
  ++sends;
  while (receives < kMessages && receive() == 0) {
    ++receives;
  }
  while (sends < receives && send() == 0) {
    ++sends;
  }
  while (receives < kMessages || sends < kMessages) {
    if (receives < kMessages) {
      ASSERT_EQ(Post(receive), 0);
      ++receives;
    }
    if (sends < kMessages) {
      ASSERT_EQ(Post(send), 0);
      ++sends;
    }
  }
  std::set<const void*> done;
  for (size_t i = 0; i < kMessages; ++i) {
    for (Queue* const queue : {&a().tx, &b().rx}) {
      const auto completion = Take(*queue);
      ASSERT_TRUE(completion.has_value()) << i << " of " << kMessages;
      ASSERT_FALSE(completion->error);
      EXPECT_TRUE(done.insert(completion->entry.op_context).second);
    }
  }
  EXPECT_EQ(done.size(), contexts.size());
  EXPECT_EQ(received.bytes(), sent.bytes());
}

// Receives without entries of their own end in errors that need entries.
CONFORMANCE_TEST(ResourceTest, QueueAsLargeAsTheReceivesHoldsTheirErrors, 119) {
  constexpr size_t kReceives = 16;
  NodeOptions options;
  options.rx_bind_flags = FI_SELECTIVE_COMPLETION;
  options.rx_cq_size = kReceives;
  options.hints = [](fi_info& hints) { hints.rx_attr->size = kReceives; };
  if (!Open(options)) {
    return;
  }
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  fi_context2 first[2] = {};
  // The buffer is the provider's until this completion, not until the sender's.
  ASSERT_EQ(ReceiveWithFlags(received, FI_COMPLETION, &first[0]), 0);
  ASSERT_EQ(Send(sent, 8, &first[1]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &first[0]));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &first[1]));
  std::vector<fi_context2> contexts(kReceives);
  for (fi_context2& context : contexts) {
    ASSERT_EQ(Receive(received, &context), 0);
  }
  for (fi_context2& context : contexts) {
    ASSERT_EQ(fi_cancel(&b().ep->fid, &context), 0);
  }
  std::set<const void*> canceled;
  for (size_t i = 0; i < kReceives; ++i) {
    const auto completion = Take(b().rx);
    ASSERT_TRUE(completion.has_value()) << i << " of " << kReceives;
    ASSERT_TRUE(completion->error);
    EXPECT_EQ(completion->failure.err, FI_ECANCELED);
    canceled.insert(completion->failure.op_context);
  }
  EXPECT_EQ(canceled.size(), kReceives);
}

CONFORMANCE_TEST(ResourceTest, WithoutManagementAMissingReceiveIsAnError, 114) {
  NodeOptions options;
  options.hints = [](fi_info& hints) {
    hints.domain_attr->resource_mgmt = FI_RM_DISABLED;
  };
  if (!Open(options)) {
    return;
  }
  if (a().info->domain_attr->resource_mgmt != FI_RM_DISABLED) {
    return NotOffered("FI_RM_DISABLED: resources are managed all the same");
  }
  Buffer sent(a(), 8);
  fi_context2 context = {};
  ASSERT_EQ(Send(sent, 8, &context), 0);
  const auto completion = Take(a().tx);
  ASSERT_TRUE(completion.has_value());
  EXPECT_TRUE(completion->error);
}

CONFORMANCE_TEST(ResourceTest, MessagesOfEverySizeArriveWhole, 202) {
  for (const fi_threading model : {FI_THREAD_DOMAIN, FI_THREAD_SAFE}) {
    TearDown();
    NodeOptions options;
    options.threading = model;
    if (!Open(options)) {
      return;
    }
    ASSERT_NO_FATAL_FAILURE(ExchangeEverySize());
  }
  // Boundaries: each message fills one receive, however much room that has,
  // and waits for it.
  constexpr size_t kSizes[] = {5, 0, 3000, 1};
  Buffer sent(a(), 3000);
  sent.Fill();
  for (const size_t bytes : kSizes) {
    ASSERT_EQ(Send(sent, bytes, NewContext()), 0);
  }
  Buffer received(b(), 4000);
  fi_context2 context = {};
  std::multiset<size_t> lengths;
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    ASSERT_EQ(Receive(received, &context), 0);
    const auto completion = Take(b().rx);
    ASSERT_TRUE(completion.has_value() && !completion->error);
    lengths.insert(completion->entry.len);
    EXPECT_EQ(std::memcmp(received.data(), sent.data(), completion->entry.len),
              0);
  }
  EXPECT_EQ(lengths,
            std::multiset<size_t>(std::begin(kSizes), std::end(kSizes)));
  ExpectSent(std::size(kSizes));
}

CONFORMANCE_TEST(ErrorTest, DataOfAnErrorFitIntoTheirLimit, 143) {
  if (!Open()) {
    return;
  }
  Buffer sent(a(), 64);
  Buffer received(b(), 40);
  fi_context2 contexts[2] = {};
  ASSERT_EQ(Receive(received, &contexts[0]), 0);
  ASSERT_EQ(fi_cancel(&b().ep->fid, &contexts[0]), 0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_TRUE(completion->error);
  EXPECT_LE(completion->failure.err_data_size,
            b().info->domain_attr->max_err_data);
}

// A write that is injected has no context of its own.
CONFORMANCE_TEST(ErrorTest, InjectedWriteFailsWithTheEndpointsContext, 168) {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA;
  if (!Open(options)) {
    return;
  }
  Buffer target(b(), 64, kRemote);
  const uint64_t value = 0x1234;
  ASSERT_EQ(Post([&] {
              return fi_inject_write(a().ep, &value, sizeof(value), to_b(),
                                     target.address(), target.key() ^ 0x5a5a);
            }),
            0);
  const auto completion = Take(a().tx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_TRUE(completion->error);
  EXPECT_EQ(completion->failure.op_context, a().ep->fid.context);
}

// Before 1.5 an entry ended with err_data.
CONFORMANCE_TEST(ErrorTest, EntryOfAnOldVersionEndsWithItsData, 10) {
  NodeOptions options;
  options.version = FI_VERSION(1, 4);
  options.mr_mode = FI_MR_UNSPEC;
  options.hints = [](fi_info& hints) { hints.mode |= FI_LOCAL_MR; };
  if (!Open(options)) {
    return;
  }
  Buffer received(b(), 8);
  fi_context2 context = {};
  ASSERT_EQ(Receive(received, &context), 0);
  ASSERT_EQ(fi_cancel(&b().ep->fid, &context), 0);
  fi_cq_tagged_entry entry = {};
  ssize_t count = -FI_EAGAIN;
  const Deadline deadline;
  while (count == -FI_EAGAIN && !deadline.HasPassed()) {
    count = fi_cq_read(b().rx.cq, &entry, 1);
  }
  ASSERT_EQ(count, -FI_EAVAIL);
  fi_cq_err_entry failure;
  constexpr size_t kEnd = offsetof(fi_cq_err_entry, err_data_size);
  std::memset(&failure, 0x5a, sizeof(failure));
  ASSERT_EQ(fi_cq_readerr(b().rx.cq, &failure, 0), 1);
  EXPECT_EQ(failure.err, FI_ECANCELED);
  EXPECT_EQ(failure.op_context, &context);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&failure);
  for (size_t i = kEnd; i < sizeof(failure); ++i) {
    EXPECT_EQ(bytes[i], 0x5a) << i;
  }
}

CONFORMANCE_TEST(OpenTest, InfoThatIsNoneOpensNoEndpoint, 147) {
  if (!Open({}, 1)) {
    return;
  }
  fid_ep* ep = nullptr;
  const InfoPointer info(fi_dupinfo(a().info.get()));
  info->ep_attr->type = static_cast<fi_ep_type>(FI_EP_SOCK_DGRAM + 1);
  EXPECT_EQ(fi_endpoint(a().domain, info.get(), &ep, nullptr), -FI_EINVAL);
  EXPECT_EQ(ep, nullptr);
}

CONFORMANCE_TEST(OpenTest, FlagsForPeersAreRefused, 89) {
  if (!Open({}, 1)) {
    return;
  }
  fid_domain* domain = nullptr;
  const int result =
      fi_domain2(a().fabric, a().info.get(), &domain, FI_PEER, nullptr);
  EXPECT_TRUE(result == -FI_EINVAL || result == -FI_ENOSYS) << result;
  EXPECT_EQ(domain, nullptr);
  // Without flags it is fi_domain.
  domain = nullptr;
  const int plain = fi_domain2(a().fabric, a().info.get(), &domain, 0, nullptr);
  EXPECT_TRUE(plain == 0 || plain == -FI_ENOSYS) << plain;
  if (domain != nullptr) {
    EXPECT_EQ(fi_close(&domain->fid), 0);
  }
}

CONFORMANCE_TEST(OpenTest, FlagsForPeersOpenNoEndpoint, 149) {
  if (!Open({}, 1)) {
    return;
  }
  fid_ep* ep = nullptr;
  const int result =
      fi_endpoint2(a().domain, a().info.get(), &ep, FI_PEER_TRANSFER, nullptr);
  EXPECT_TRUE(result == -FI_EINVAL || result == -FI_ENOSYS) << result;
  EXPECT_EQ(ep, nullptr);
}

CONFORMANCE_TEST(OpenTest, ContextsBeyondOneAreThereOrThereIsNoData, 212) {
  const Answer one = GetInfo(MakeHints(FI_MSG).get());
  ASSERT_FALSE(one.empty());
  for (const fi_info* info : one.own()) {
    EXPECT_EQ(info->ep_attr->tx_ctx_cnt, 1U) << "0 is one";
    EXPECT_EQ(info->ep_attr->rx_ctx_cnt, 1U) << "0 is one";
  }
  for (const bool transmit : {true, false}) {
    for (const size_t count : {size_t{2}, size_t{FI_SHARED_CONTEXT}}) {
      const InfoPointer hints = MakeHints(FI_MSG);
      (transmit ? hints->ep_attr->tx_ctx_cnt : hints->ep_attr->rx_ctx_cnt) =
          count;
      const Answer answer = GetInfo(hints.get());
      if (answer.result != 0) {
        EXPECT_EQ(answer.result, -FI_ENODATA);
      }
      for (const fi_info* info : answer.own()) {
        const size_t got =
            transmit ? info->ep_attr->tx_ctx_cnt : info->ep_attr->rx_ctx_cnt;
        EXPECT_TRUE(count == FI_SHARED_CONTEXT ? got == count : got >= count)
            << "wanted " << count << ", got " << got;
      }
    }
  }
}

// An address of a vector of that type serves transfers.
CONFORMANCE_TEST(OpenTest, AddressesOfAMapServe, 122) {
  NodeOptions options;
  options.av_type = FI_AV_MAP;
  options.hints = [](fi_info& hints) {
    hints.domain_attr->av_type = FI_AV_MAP;
  };
  if (!Open(options, 3)) {
    return;
  }
  EXPECT_NE(Address(0, 1), Address(0, 2));
  EXPECT_NE(Address(0, 1), FI_ADDR_NOTAVAIL);
  Exchange(100);
}

CONFORMANCE_TEST(ResourceTest, WaitObjectOfAnEventQueueBecomesReadable, 189) {
  if (!Open({}, 1)) {
    return;
  }
  fi_eq_attr attr = {};
  attr.wait_obj = FI_WAIT_FD;
  attr.flags = FI_WRITE;
  fid_eq* eq = nullptr;
  ASSERT_EQ(fi_eq_open(a().fabric, &attr, &eq, nullptr), 0);
  int fd = -1;
  ASSERT_EQ(fi_control(&eq->fid, FI_GETWAIT, &fd), 0);
  pollfd waits = {.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&waits, 1, 0), 0) << "no event is there";
  fi_eq_entry entry = {};
  entry.context = &entry;
  ASSERT_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0),
            static_cast<ssize_t>(sizeof(entry)));
  EXPECT_EQ(poll(&waits, 1, 0), 1);
  fi_eq_entry back = {};
  uint32_t event = 0;
  EXPECT_EQ(fi_eq_read(eq, &event, &back, sizeof(back), 0),
            static_cast<ssize_t>(sizeof(back)));
  EXPECT_EQ(event, uint32_t{FI_NOTIFY});
  EXPECT_EQ(back.context, &entry);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

}  // namespace
}  // namespace heddle::conformance
