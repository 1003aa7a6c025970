// SPDX-License-Identifier: Apache-2.0
// Modes, versions, limits, threading models, events of the target.
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t kLocal = FI_SEND | FI_RECV | FI_READ | FI_WRITE;

class ModeTest : public NodesTest {};
class VersionTest : public NodesTest {};
class LimitTest : public NodesTest {};
class ThreadingTest : public NodesTest {};
class TargetTest : public NodesTest {};

// --- Modes.

CONFORMANCE_TEST(ModeTest, AnswerHasModesOfTheHintsOnly, 69) {
  for (const uint64_t mode :
       {uint64_t{0}, uint64_t{FI_CONTEXT}, uint64_t{FI_CONTEXT | FI_CONTEXT2},
        uint64_t{FI_ASYNC_IOV | FI_RX_CQ_DATA}}) {
    const InfoPointer hints = MakeHints(FI_MSG);
    hints->mode = mode;
    const Answer answer = GetInfo(hints.get());
    if (answer.result != 0) {
      EXPECT_EQ(answer.result, -FI_ENODATA);
    }
    for (const fi_info* info : answer.own()) {
      EXPECT_EQ(info->mode & ~mode, 0U) << std::hex << mode;
      EXPECT_EQ((info->tx_attr->mode | info->rx_attr->mode) & ~info->mode, 0U);
    }
  }
}

CONFORMANCE_TEST(ModeTest, NoModeIsNeeded, 70) {
  NodeOptions options;
  options.mode = 0;
  if (!Open(options)) {
    return;
  }
  EXPECT_EQ(a().info->mode, 0U);
  for (const size_t bytes : {0U, 1U, 4096U, 100'000U}) {
    ASSERT_NO_FATAL_FAILURE(Exchange(bytes)) << bytes;
  }
}

CONFORMANCE_TEST(ModeTest, WithoutHintsAllNeededModesAreThere, 71) {
  const Answer all = GetInfo(nullptr);
  ASSERT_EQ(all.result, 0);
  // An entry is no longer offered to a caller that lacks one of its modes.
  for (const fi_info* info : all.own()) {
    const InfoPointer hints(fi_dupinfo(info));
    EXPECT_FALSE(GetInfo(hints.get()).empty());
    if (info->mode != 0) {
      hints->mode = hints->tx_attr->mode = hints->rx_attr->mode = 0;
      const Answer without = GetInfo(hints.get());
      for (const fi_info* other : without.own()) {
        EXPECT_EQ(other->mode, 0U);
      }
    }
  }
}

CONFORMANCE_TEST(ModeTest, ArraysMayBeReusedAtReturn, 72) {
  NodeOptions options;
  options.mode = 0;
  if (!Open(options)) {
    return;
  }
  if (a().info->tx_attr->iov_limit < 2 || b().info->rx_attr->iov_limit < 2) {
    return NotOffered("several segments");
  }
  Buffer sent(a(), 3000);
  Buffer received(b(), 3000);
  sent.Fill();
  iovec into[2] = {{received.data(), 1000}, {received.data() + 1000, 2000}};
  void* into_descs[2] = {received.desc(), received.desc()};
  iovec from[2] = {{sent.data(), 2500}, {sent.data() + 2500, 500}};
  void* from_descs[2] = {sent.desc(), sent.desc()};
  int contexts[2] = {};
  ASSERT_EQ(Post([&] {
              return fi_recvv(b().ep, into, into_descs, 2, FI_ADDR_UNSPEC,
                              &contexts[0]);
            }),
            0);
  std::memset(into, 0xee, sizeof(into));
  std::memset(into_descs, 0xee, sizeof(into_descs));
  ASSERT_EQ(Post([&] {
              return fi_sendv(a().ep, from, from_descs, 2, to_b(),
                              &contexts[1]);
            }),
            0);
  std::memset(from, 0xee, sizeof(from));
  std::memset(from_descs, 0xee, sizeof(from_descs));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[0]));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[1]));
  EXPECT_EQ(received.bytes(), sent.bytes());
}

CONFORMANCE_TEST(ModeTest, AnyContextIsLegal, 73) {
  NodeOptions options;
  options.mode = 0;
  if (!Open(options)) {
    return;
  }
  uint8_t memory[64];
  std::memset(memory, 0x5a, sizeof(memory));
  // The last is no address at all.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* const none = reinterpret_cast<void*>(~uintptr_t{0});
  void* const contexts[] = {nullptr, memory, memory + 1, none};
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  for (void* const context : contexts) {
    ASSERT_EQ(Receive(received, context), 0);
    ASSERT_EQ(Send(sent, 8, context), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, context));
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, context));
  }
  for (const uint8_t byte : memory) {
    EXPECT_EQ(byte, 0x5a) << "the context is written";
  }
}

// Expects that hints with this mode are accepted, and cleared where `cleared`.
void ExpectAccepted(uint64_t mode, bool cleared) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->mode |= mode;
  const Answer answer = GetInfo(hints.get());
  ASSERT_EQ(answer.result, 0);
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    EXPECT_TRUE(!cleared || (info->mode & mode) == 0);
  }
}

CONFORMANCE_TEST(ModeTest, NotifyFlagsOnlyIsAccepted, 78) {
  ExpectAccepted(FI_NOTIFY_FLAGS_ONLY, /*cleared=*/false);
}

CONFORMANCE_TEST(ModeTest, RestrictedCompletionIsAcceptedAndCleared, 79) {
  ExpectAccepted(FI_RESTRICTED_COMP, /*cleared=*/true);
}

CONFORMANCE_TEST(ModeTest, BufferedReceiveIsAcceptedAndCleared, 80) {
  ExpectAccepted(FI_BUFFERED_RECV, /*cleared=*/true);
}

CONFORMANCE_TEST(ModeTest, PrefixIsClearedOrHasItsSize, 75) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->mode |= FI_MSG_PREFIX;
  const Answer answer = GetInfo(hints.get());
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    const size_t bytes = info->ep_attr->msg_prefix_size;
    EXPECT_EQ((info->mode & FI_MSG_PREFIX) != 0, bytes != 0);
    EXPECT_EQ(bytes % 8, 0U);
  }
}

CONFORMANCE_TEST(ModeTest, ModesOfADirectionAreThoseOfTheInfo, 216) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->mode = kModes | FI_ASYNC_IOV | FI_RX_CQ_DATA;
  const Answer answer = GetInfo(hints.get());
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    EXPECT_EQ(info->tx_attr->mode & ~info->mode, 0U);
    EXPECT_EQ(info->rx_attr->mode & ~info->mode, 0U);
    EXPECT_EQ(info->tx_attr->mode & FI_RX_CQ_DATA, 0U) << "of receives";
  }
}

// --- Versions.

CONFORMANCE_TEST(VersionTest, FieldsThatAVersionDoesNotHaveAreIgnored, 11, 13) {
  // auth_key came with 1.5, the traffic class with 1.9.
  for (const uint32_t minor : {4U, 5U, 8U}) {
    const InfoPointer hints = MakeHints(FI_MSG);
    if (minor < 5) {
      hints->domain_attr->mr_mode = FI_MR_UNSPEC;
    }
    const uint32_t version = FI_VERSION(1, minor);
    const Answer clean = GetInfo(hints.get(), {.version = version});
    if (minor < 5) {
      hints->domain_attr->auth_key_size = 12345;
      hints->ep_attr->auth_key_size = 12345;
    }
    hints->domain_attr->tclass = 0x7ffe;
    hints->tx_attr->tclass = 0x7ffe;
    const Answer answer = GetInfo(hints.get(), {.version = version});
    hints->domain_attr->auth_key_size = hints->ep_attr->auth_key_size = 0;
    EXPECT_EQ(answer.result, clean.result) << minor;
    EXPECT_EQ(answer.own().size(), clean.own().size()) << minor;
  }
}

// --- Limits and attributes.

CONFORMANCE_TEST(LimitTest, HandleOfTheHintsIsCopied, 27) {
  fid handle = {};
  handle.fclass = FI_CLASS_PEP;
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->handle = &handle;
  const Answer answer = GetInfo(hints.get());
  hints->handle = nullptr;
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    EXPECT_EQ(info->handle, &handle);
  }
}

CONFORMANCE_TEST(LimitTest, EndpointTypesAreNotMixed, 204) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->ep_attr->type = FI_EP_UNSPEC;
  const Answer answer = GetInfo(hints.get());
  ASSERT_FALSE(answer.empty());
  for (const fi_ep_type type : {FI_EP_MSG, FI_EP_DGRAM, FI_EP_RDM}) {
    const InfoPointer own = MakeHints(FI_MSG);
    own->ep_attr->type = type;
    const auto all = answer.own();
    EXPECT_EQ(!GetInfo(own.get()).empty(),
              std::any_of(all.begin(), all.end(),
                          [&](const fi_info* info) {
                            return info->ep_attr->type == type;
                          }))
        << type;
  }
}

CONFORMANCE_TEST(LimitTest, ProtocolOfTheHintsHasToBeTheProviders, 205) {
  const Answer any = GetInfo(MakeHints(FI_MSG).get());
  ASSERT_FALSE(any.empty());
  const uint32_t own = any.own().front()->ep_attr->protocol;
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->ep_attr->protocol = own;
  EXPECT_FALSE(GetInfo(hints.get()).empty());
  // A requested version is negotiated down, not up.
  hints->ep_attr->protocol_version = 1;
  const Answer first = GetInfo(hints.get());
  for (const fi_info* info : first.own()) {
    EXPECT_EQ(info->ep_attr->protocol, own);
  }
  hints->ep_attr->protocol_version = 0;
  for (const uint32_t other : {uint32_t{FI_PROTO_IB_UD}, 0x8badf00dU}) {
    if (other != own) {
      hints->ep_attr->protocol = other;
      EXPECT_EQ(GetInfo(hints.get()).result, -FI_ENODATA) << other;
    }
  }
}

CONFORMANCE_TEST(LimitTest, MessageBeyondTheMaximumIsRefused, 206) {
  if (!Open()) {
    return;
  }
  const size_t limit = a().info->ep_attr->max_msg_size;
  if (limit >= SIZE_MAX / 2) {
    return NotOffered("a limit");
  }
  ASSERT_NO_FATAL_FAILURE(Exchange(8));
  // Refused before the memory is read, most of which is not there.
  uint8_t byte = 0;
  fi_context2 context = {};
  const ssize_t result =
      fi_send(a().ep, &byte, limit + 1, nullptr, to_b(), &context);
  EXPECT_TRUE(result == -FI_EMSGSIZE || result == -FI_EINVAL) << result;
}

CONFORMANCE_TEST(LimitTest, DirectionsHaveAPartOfTheCapabilities, 214, 215) {
  const Answer whole = GetInfo(MakeHints(FI_MSG).get());
  ASSERT_FALSE(whole.empty());
  for (const fi_info* info : whole.own()) {
    EXPECT_EQ(info->tx_attr->caps & ~info->caps, 0U);
    EXPECT_EQ(info->rx_attr->caps & ~info->caps, 0U);
    EXPECT_NE(info->tx_attr->caps & FI_SEND, 0U) << "0 means all";
    EXPECT_NE(info->rx_attr->caps & FI_RECV, 0U) << "0 means all";
    EXPECT_EQ(info->tx_attr->caps & FI_RECV, 0U);
    EXPECT_EQ(info->rx_attr->caps & FI_SEND, 0U);
  }
}

CONFORMANCE_TEST(LimitTest, TransmitSideHasNoMoreThanTheEndpoint, 214) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->tx_attr->caps = FI_MSG | FI_RMA | FI_WRITE;
  EXPECT_EQ(GetInfo(hints.get()).result, -FI_ENODATA);
}

CONFORMANCE_TEST(LimitTest, ReceiveSideHasNoMoreThanTheEndpoint, 215) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->rx_attr->caps = FI_MSG | FI_RMA | FI_REMOTE_WRITE;
  EXPECT_EQ(GetInfo(hints.get()).result, -FI_ENODATA);
}

CONFORMANCE_TEST(LimitTest, SizeOfTheHintsIsTheDepth, 219) {
  NodeOptions options;
  constexpr size_t kDepth = 16;
  options.hints = [](fi_info& hints) {
    hints.tx_attr->size = kDepth;
    hints.rx_attr->size = kDepth;
  };
  if (!Open(options)) {
    return;
  }
  ASSERT_GE(a().info->tx_attr->size, kDepth);
  ASSERT_GE(b().info->rx_attr->size, kDepth);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<fi_context2> contexts(kDepth);
  for (fi_context2& context : contexts) {
    buffers.push_back(std::make_unique<Buffer>(b(), 8));
    // Without a wait: so many fit.
    ASSERT_EQ(fi_recv(b().ep, buffers.back()->data(), 8, buffers.back()->desc(),
                      FI_ADDR_UNSPEC, &context),
              0);
  }
  Buffer sent(a(), 8);
  for (size_t i = 0; i < kDepth; ++i) {
    ASSERT_EQ(Send(sent, 8, NewContext()), 0);
  }
  for (size_t i = 0; i < kDepth; ++i) {
    ASSERT_TRUE(Take(b().rx).has_value());
  }
  ExpectSent(kDepth);
}

CONFORMANCE_TEST(LimitTest, SegmentsBeyondTheLimitAreRefused, 220) {
  if (!Open()) {
    return;
  }
  const size_t limit = a().info->tx_attr->iov_limit;
  ASSERT_GE(limit, 1U);
  ASSERT_NO_FATAL_FAILURE(Exchange(8));
  Buffer sent(a(), 8 * (limit + 1));
  std::vector<iovec> parts;
  std::vector<void*> descs(limit + 1, sent.desc());
  for (size_t i = 0; i <= limit; ++i) {
    parts.push_back({.iov_base = sent.data() + 8 * i, .iov_len = 8});
  }
  const auto post = [&](size_t count) {
    return fi_sendv(a().ep, parts.data(), descs.data(), count, to_b(),
                    NewContext());
  };
  Buffer received(b(), 8 * limit);
  fi_context2 context = {};
  sent.Fill();
  ASSERT_EQ(Receive(received, &context), 0);
  ASSERT_EQ(Post([&] { return post(limit); }), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &context));
  EXPECT_EQ(std::memcmp(received.data(), sent.data(), 8 * limit), 0);
  ExpectSent(1);
  EXPECT_EQ(post(limit + 1), -FI_EINVAL);
}

CONFORMANCE_TEST(LimitTest, RemoteKeysFitIntoTheirSize, 137) {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA;
  if (!Open(options, 1)) {
    return;
  }
  const size_t bytes = a().info->domain_attr->mr_key_size;
  ASSERT_GE(bytes, 1U);
  ASSERT_LE(bytes, 8U) << "more needs FI_MR_RAW";
  const uint64_t largest = ~uint64_t{0} >> (64 - 8 * bytes);
  Buffer region(a(), 64, kRemote);
  EXPECT_LE(region.key(), largest);
  if ((a().info->domain_attr->mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC)) != 0) {
    return;
  }
  std::vector<uint8_t> memory(64);
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(a().domain, memory.data(), 64, kRemote, 0, largest - 1, 0,
                      &mr, nullptr),
            0);
  EXPECT_EQ(fi_mr_key(mr), largest - 1);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

CONFORMANCE_TEST(LimitTest, CountsAreNotZeroAndCanBeOpened, 139) {
  const Answer answer = GetInfo(MakeHints(FI_MSG).get());
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    const fi_domain_attr& domain = *info->domain_attr;
    EXPECT_NE(domain.cq_cnt, 0U);
    EXPECT_NE(domain.ep_cnt, 0U);
    EXPECT_NE(domain.tx_ctx_cnt, 0U);
    EXPECT_NE(domain.rx_ctx_cnt, 0U);
    EXPECT_NE(domain.cntr_cnt, 0U);
    EXPECT_NE(domain.mr_cnt, 0U);
  }
  if (!Open({}, 1)) {
    return;
  }
  // Honest: so many open beside those of node a, up to what takes no time.
  const fi_domain_attr& domain = *a().info->domain_attr;
  std::vector<fid*> opened;
  for (size_t i = 3; i <= std::min<size_t>(domain.cq_cnt, 64); ++i) {
    fid_cq* const queue = a().OpenQueue(FI_CQ_FORMAT_CONTEXT);
    ASSERT_NE(queue, nullptr) << "queue " << i;
    opened.push_back(&queue->fid);
  }
  for (size_t i = 1; i <= std::min<size_t>(domain.cntr_cnt, 64); ++i) {
    fi_cntr_attr attr = {};
    fid_cntr* counter = nullptr;
    ASSERT_EQ(fi_cntr_open(a().domain, &attr, &counter, nullptr), 0)
        << "counter " << i;
    opened.push_back(&counter->fid);
  }
  const size_t endpoints =
      std::min({domain.ep_cnt, domain.tx_ctx_cnt, domain.rx_ctx_cnt});
  for (size_t i = 2; i <= std::min<size_t>(endpoints, 16); ++i) {
    fid_ep* const ep = a().OpenBareEndpoint();
    ASSERT_NE(ep, nullptr) << "endpoint " << i;
    opened.push_back(&ep->fid);
    ASSERT_EQ(fi_ep_bind(ep, &a().tx.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_ep_bind(ep, &a().av->fid, 0), 0);
    ASSERT_EQ(fi_enable(ep), 0) << "endpoint " << i;
  }
  for (size_t i = 1; i <= std::min<size_t>(domain.mr_cnt, 256); ++i) {
    static uint8_t memory[64];
    fid_mr* mr = nullptr;
    ASSERT_EQ(fi_mr_reg(a().domain, memory, sizeof(memory), FI_SEND | FI_RECV,
                        0, i, 0, &mr, nullptr),
              0)
        << "region " << i;
    opened.push_back(&mr->fid);
  }
  while (!opened.empty()) {
    EXPECT_EQ(fi_close(opened.back()), 0);
    opened.pop_back();
  }
}

CONFORMANCE_TEST(LimitTest, CommitCompleteIsRefused, 261) {
  const InfoPointer hints = MakeHints(FI_MSG | FI_RMA);
  hints->tx_attr->op_flags = FI_COMMIT_COMPLETE;
  const Answer answer = GetInfo(hints.get());
  if (answer.result == -FI_ENODATA) {
    return Refused("FI_COMMIT_COMPLETE among the hints", answer.result);
  }
  for (const fi_info* info : answer.own()) {
    EXPECT_NE(info->caps & FI_RMA_PMEM, 0U) << "without persistent memory";
  }
}

// --- Threading models.

CONFORMANCE_TEST(ThreadingTest, DomainsRunInThreadsOfTheirOwn, 104) {
  NodeOptions options;
  options.threading = FI_THREAD_DOMAIN;
  if (!Open(options, 4)) {
    return;
  }
  // Thread 0 has nodes 0 and 1, thread 1 nodes 2 and 3: each a domain.
  std::atomic<int> failures = 0;
  const auto run = [&](size_t from) {
    Node& sender = NodeAt(from);
    Node& receiver = NodeAt(from + 1);
    Buffer sent(sender, 64);
    Buffer received(receiver, 64);
    fi_context2 contexts[2] = {};
    for (int i = 0; i < 100 && failures == 0; ++i) {
      const auto poll = [&](const std::function<bool()>& done) {
        const Deadline deadline;
        while (!done() && !deadline.HasPassed()) {
          sender.tx.Poll();
          receiver.rx.Poll();
        }
        failures += done() ? 0 : 1;
      };
      bool posted = false;
      poll([&] {
        posted =
            posted || fi_recv(receiver.ep, received.data(), 64, received.desc(),
                              FI_ADDR_UNSPEC, &contexts[0]) == 0;
        return posted;
      });
      posted = false;
      poll([&] {
        posted = posted || fi_send(sender.ep, sent.data(), 64, sent.desc(),
                                   Address(from, from + 1), &contexts[1]) == 0;
        return posted;
      });
      poll([&] {
        return !sender.tx.taken.empty() && !receiver.rx.taken.empty();
      });
      sender.tx.taken.clear();
      receiver.rx.taken.clear();
    }
  };
  std::thread other(run, 2);
  run(0);
  other.join();
  EXPECT_EQ(failures, 0);
}

// Two queues of one domain, each with the endpoints of one thread.
CONFORMANCE_TEST(ThreadingTest, QueuesRunInThreadsOfTheirOwn, 101, 102, 103) {
  for (const fi_threading model :
       {FI_THREAD_FID, FI_THREAD_ENDPOINT, FI_THREAD_COMPLETION}) {
    NodeOptions options;
    options.threading = model;
    if (!Open(options)) {
      return;
    }
    // Two endpoints in the domain of node a, each with a queue of its own.
    struct Side {
      fid_ep* ep = nullptr;
      Queue queue;
      fi_addr_t address = FI_ADDR_UNSPEC;
      std::unique_ptr<Buffer> sent;
      std::unique_ptr<Buffer> received;
      bool failed = false;
    };
    std::array<Side, 2> sides;
    for (Side& side : sides) {
      side.ep = a().OpenBareEndpoint();
      side.queue.cq = a().OpenQueue(FI_CQ_FORMAT_TAGGED);
      ASSERT_NE(side.ep, nullptr);
      ASSERT_EQ(fi_ep_bind(side.ep, &side.queue.cq->fid, FI_TRANSMIT | FI_RECV),
                0);
      ASSERT_EQ(fi_ep_bind(side.ep, &a().av->fid, 0), 0);
      ASSERT_EQ(fi_enable(side.ep), 0);
      std::array<uint8_t, 256> name = {};
      size_t bytes = name.size();
      ASSERT_EQ(fi_getname(&side.ep->fid, name.data(), &bytes), 0);
      ASSERT_EQ(fi_av_insert(a().av, name.data(), 1, &side.address, 0, nullptr),
                1);
      side.sent = std::make_unique<Buffer>(a(), 64);
      side.received = std::make_unique<Buffer>(a(), 64);
    }
    // Each sends to itself.
    const auto run = [](Side& side) {
      fi_context2 contexts[2] = {};
      for (int i = 0; i < 100 && !side.failed; ++i) {
        bool receives = false;
        bool sends = false;
        const Deadline deadline;
        while (side.queue.taken.size() < 2 && !deadline.HasPassed()) {
          receives = receives || fi_recv(side.ep, side.received->data(), 64,
                                         side.received->desc(), FI_ADDR_UNSPEC,
                                         &contexts[0]) == 0;
          sends = sends ||
                  fi_send(side.ep, side.sent->data(), 64, side.sent->desc(),
                          side.address, &contexts[1]) == 0;
          side.queue.Poll();
        }
        side.failed = side.queue.taken.size() != 2;
        side.queue.taken.clear();
      }
    };
    std::thread other(run, std::ref(sides[1]));
    run(sides[0]);
    other.join();
    for (Side& side : sides) {
      EXPECT_FALSE(side.failed) << model;
      EXPECT_EQ(fi_close(&side.ep->fid), 0);
      EXPECT_EQ(fi_close(&side.queue.cq->fid), 0);
      side.sent.reset();
      side.received.reset();
    }
    TearDown();
  }
}

CONFORMANCE_TEST(ThreadingTest, ControlCallsAreSafeBesideTransfers, 105) {
  NodeOptions options;
  options.threading = FI_THREAD_DOMAIN;
  if (!Open(options)) {
    return;
  }
  const std::vector<uint8_t> name = b().Name();
  std::atomic<bool> stop = false;
  std::atomic<int> failures = 0;
  std::thread control([&] {
    std::vector<uint8_t> memory(4096);
    for (uint64_t i = 0; !stop; ++i) {
      fid_mr* mr = nullptr;
      failures += fi_mr_reg(a().domain, memory.data(), memory.size(),
                            FI_SEND | FI_RECV, 0, 1000 + i, 0, &mr, nullptr);
      failures += mr == nullptr || fi_close(&mr->fid) != 0 ? 1 : 0;
      fi_addr_t address = FI_ADDR_UNSPEC;
      failures +=
          fi_av_insert(a().av, name.data(), 1, &address, 0, nullptr) == 1 ? 0
                                                                          : 1;
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 50 && !HasFailure(); ++i) {
    Exchange(64);
  }
  stop = true;
  control.join();
  EXPECT_EQ(failures, 0);
}

CONFORMANCE_TEST(ThreadingTest, ManualProgressIsMadeByReadingQueues, 108) {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA;
  options.progress = FI_PROGRESS_MANUAL;
  if (!Open(options)) {
    return;
  }
  Exchange(100'000);
  // The target of remote access is driven by its queues alone.
  Buffer source(a(), 50'000, kLocal);
  Buffer target(b(), 50'000, kRemote);
  source.Fill();
  fi_context2 context = {};
  ASSERT_EQ(Post([&] {
              return fi_write(a().ep, source.data(), source.size(),
                              source.desc(), to_b(), target.address(),
                              target.key(), &context);
            }),
            0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context));
  EXPECT_TRUE(WaitUntil(
      [&] { return Load(&target.bytes().back()) == source.bytes().back(); }));
}

// --- The target of remote access.

CONFORMANCE_TEST(TargetTest, OperationsOfPeersCountAtTheTarget, 59, 179) {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA | FI_RMA_EVENT;
  options.enable = false;
  if (!Open(options)) {
    return;
  }
  const std::map<uint64_t, uint64_t> expected = {{FI_REMOTE_WRITE, 3},
                                                 {FI_REMOTE_READ, 2}};
  std::map<uint64_t, fid_cntr*> counters;
  for (const auto& [kind, count] : expected) {
    fi_cntr_attr attr = {};
    fid_cntr* counter = nullptr;
    const int opened = fi_cntr_open(b().domain, &attr, &counter, nullptr);
    if (opened == -FI_ENOSYS) {
      return NotOffered("counters");
    }
    ASSERT_EQ(opened, 0);
    ASSERT_EQ(fi_ep_bind(b().ep, &counter->fid, kind), 0);
    counters[kind] = counter;
  }
  ASSERT_TRUE(Enable());
  {
    Buffer memory(a(), 64, kLocal);
    Buffer target(b(), 64, kRemote);
    for (uint64_t i = 0; i < expected.at(FI_REMOTE_WRITE); ++i) {
      ASSERT_EQ(Post([&] {
                  return fi_write(a().ep, memory.data(), 64, memory.desc(),
                                  to_b(), target.address(), target.key(),
                                  NewContext());
                }),
                0);
    }
    for (uint64_t i = 0; i < expected.at(FI_REMOTE_READ); ++i) {
      ASSERT_EQ(Post([&] {
                  return fi_read(a().ep, memory.data(), 64, memory.desc(),
                                 to_b(), target.address(), target.key(),
                                 NewContext());
                }),
                0);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSent(5));
    for (const auto& [kind, count] : expected) {
      fid_cntr* const counter = counters.at(kind);
      const uint64_t wanted = count;
      EXPECT_TRUE(WaitUntil([&] { return fi_cntr_read(counter) >= wanted; }))
          << fi_tostr(&kind, FI_TYPE_CAPS);
      EXPECT_EQ(fi_cntr_read(counter), wanted);
    }
  }
  EXPECT_EQ(fi_close(&b().ep->fid), 0);
  b().ep = nullptr;
  for (const auto& [kind, counter] : counters) {
    EXPECT_EQ(fi_close(&counter->fid), 0);
  }
}

CONFORMANCE_TEST(TargetTest, FencedWriteFollowsAllBeforeIt, 53) {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA | FI_FENCE;
  if (!Open(options)) {
    return;
  }
  constexpr size_t kBytes = 100'000;
  Buffer source(a(), kBytes, kLocal);
  Buffer flag(a(), 1, kLocal);
  Buffer target(b(), kBytes, kRemote);
  Buffer flagged(b(), 1, kRemote);
  for (uint32_t round = 1; round <= 20; ++round) {
    source.Fill(round);
    flag.data()[0] = static_cast<uint8_t>(round);
    ASSERT_EQ(Post([&] {
                return fi_write(a().ep, source.data(), kBytes, source.desc(),
                                to_b(), target.address(), target.key(),
                                NewContext());
              }),
              0);
    iovec part = {.iov_base = flag.data(), .iov_len = 1};
    void* desc = flag.desc();
    fi_rma_iov place = {
        .addr = flagged.address(), .len = 1, .key = flagged.key()};
    fi_msg_rma message = {};
    message.msg_iov = &part;
    message.desc = &desc;
    message.iov_count = 1;
    message.addr = to_b();
    message.rma_iov = &place;
    message.rma_iov_count = 1;
    message.context = NewContext();
    ASSERT_EQ(Post([&] {
                return fi_writemsg(a().ep, &message, FI_FENCE | FI_COMPLETION);
              }),
              0);
    ASSERT_TRUE(WaitUntil([&] {
      return Load(flagged.bytes().data()) == static_cast<uint8_t>(round);
    }));
    for (size_t i = 0; i < kBytes; ++i) {
      ASSERT_EQ(Load(&target.bytes()[i]), source.bytes()[i]) << i;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSent(2));
  }
}

}  // namespace
}  // namespace heddle::conformance
