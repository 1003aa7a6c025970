// SPDX-License-Identifier: Apache-2.0
// Capabilities: what fi_getinfo returns, and what endpoints then do.
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

class CapabilityTest : public NodesTest {};

constexpr uint64_t kBothDirections = FI_SEND | FI_RECV;
constexpr uint64_t kBothSides =
    FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

std::string Text(uint64_t caps) {
  return fi_tostr(&caps, FI_TYPE_CAPS);
}

// Expects that the answer to `caps` alone has all of `implied`.
void ExpectImplied(uint64_t caps, uint64_t implied) {
  const Answer answer = GetInfo(MakeHints(caps).get());
  if (answer.result == -FI_ENODATA) {
    return NotOffered(Text(caps));
  }
  ASSERT_EQ(answer.result, 0);
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    EXPECT_EQ(info->caps & implied, implied) << Text(info->caps);
  }
}

void ExpectNoData(uint64_t caps) {
  const Answer answer = GetInfo(MakeHints(caps).get());
  EXPECT_TRUE(answer.result == -FI_ENODATA || answer.result == -FI_EBADFLAGS)
      << Text(caps) << ": " << answer.result;
  EXPECT_EQ(answer.infos, nullptr) << Text(caps);
}

CONFORMANCE_TEST(CapabilityTest, NoneInTheHintsMeansAll, 42) {
  uint64_t all = 0;
  const Answer answer = GetInfo(MakeHints(0).get());
  for (const fi_info* info : answer.own()) {
    all |= info->caps;
  }
  for (uint64_t bit = 1; bit != 0; bit <<= 1U) {
    if ((kPrimary & bit) != 0 && !GetInfo(MakeHints(bit).get()).empty()) {
      EXPECT_NE(all & bit, 0U) << Text(bit) << " is offered on request only";
    }
  }
  EXPECT_NE(all & kPrimary, 0U);
}

CONFORMANCE_TEST(CapabilityTest, PrimaryOnesAreThoseOfTheHints, 43, 44) {
  int answers = 0;
  constexpr uint64_t kRequests[] = {FI_MSG,
                                    FI_TAGGED,
                                    FI_RMA,
                                    FI_ATOMIC,
                                    FI_MSG | FI_TAGGED,
                                    FI_MSG | FI_RMA,
                                    FI_MSG | FI_DIRECTED_RECV,
                                    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC,
                                    FI_MSG | FI_SEND,
                                    FI_RMA | FI_READ};
  for (const uint64_t caps : kRequests) {
    const Answer answer = GetInfo(MakeHints(caps).get());
    for (const fi_info* info : answer.own()) {
      ++answers;
      EXPECT_EQ(info->caps & caps, caps) << Text(caps);
      EXPECT_EQ(info->caps & kPrimary, caps & kPrimary)
          << "requested " << Text(caps) << ", answer " << Text(info->caps);
    }
  }
  EXPECT_GT(answers, 0);
}

CONFORMANCE_TEST(CapabilityTest, MessagesAloneMeanBothDirections, 45) {
  ExpectImplied(FI_MSG, kBothDirections);
}

CONFORMANCE_TEST(CapabilityTest, SenderReceivesNothing, 46) {
  NodeOptions options;
  options.caps = FI_MSG | FI_SEND;
  if (!Open(options, 1)) {
    return;
  }
  Buffer buffer(a(), 64);
  fi_context2 context = {};
  const ssize_t result = fi_recv(a().ep, buffer.data(), 64, buffer.desc(),
                                 FI_ADDR_UNSPEC, &context);
  EXPECT_TRUE(result == -FI_EOPNOTSUPP || result == -FI_ENOSYS) << result;
}

CONFORMANCE_TEST(CapabilityTest, ModifiersOfRemoteAccessNeedRemoteAccess, 47) {
  for (const uint64_t modifier :
       {FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE}) {
    ExpectNoData(FI_MSG | modifier);
  }
}

CONFORMANCE_TEST(CapabilityTest, SecondaryOnesAreThereOrThereIsNoData, 48) {
  const std::map<uint64_t, uint64_t> needs = {
      {FI_MULTI_RECV, FI_MSG},  {FI_SOURCE, FI_MSG},
      {FI_SHARED_AV, FI_MSG},   {FI_TRIGGER, FI_MSG},
      {FI_FENCE, FI_MSG},       {FI_LOCAL_COMM, FI_MSG},
      {FI_REMOTE_COMM, FI_MSG}, {FI_SOURCE_ERR, FI_MSG | FI_SOURCE},
      {FI_RMA_EVENT, FI_RMA},   {FI_RMA_PMEM, FI_RMA},
  };
  for (const auto& [bit, with] : needs) {
    const Answer answer = GetInfo(MakeHints(with | bit).get());
    if (answer.result != 0) {
      EXPECT_EQ(answer.result, -FI_ENODATA) << Text(bit);
      continue;
    }
    EXPECT_FALSE(answer.empty()) << Text(bit);
    for (const fi_info* info : answer.own()) {
      EXPECT_NE(info->caps & bit, 0U) << Text(bit);
    }
  }
}

CONFORMANCE_TEST(CapabilityTest, AtomicsAloneMeanBothSides, 49) {
  ExpectImplied(FI_ATOMIC, kBothSides);
}

CONFORMANCE_TEST(CapabilityTest, RemoteAccessAloneMeansBothSides, 50) {
  ExpectImplied(FI_RMA, kBothSides);
}

CONFORMANCE_TEST(CapabilityTest, TagsAloneMeanBothDirections, 51) {
  ExpectImplied(FI_TAGGED, kBothDirections);
}

CONFORMANCE_TEST(CapabilityTest, DirectedReceiveMatchesItsSourceAlone, 52) {
  NodeOptions options;
  options.caps = FI_MSG | FI_DIRECTED_RECV;
  if (!Open(options, 3)) {
    return;
  }
  Buffer from_a(b(), 8);
  Buffer from_c(b(), 8);
  Buffer sent_by_a(a(), 8);
  Buffer sent_by_c(c(), 8);
  sent_by_a.Fill(1);
  sent_by_c.Fill(2);
  fi_context2 contexts[4] = {};
  // The first receive is for c, whose message comes last.
  ASSERT_EQ(Receive(from_c, &contexts[0], Address(1, 2)), 0);
  ASSERT_EQ(Send(sent_by_a, 8, &contexts[1]), 0);
  EXPECT_TRUE(StaysEmpty(b().rx));
  ASSERT_EQ(Receive(from_a, &contexts[2], to_a()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[2]));
  ASSERT_EQ(Post([&] {
              return fi_send(c().ep, sent_by_c.data(), 8, sent_by_c.desc(),
                             Address(2, 1), &contexts[3]);
            }),
            0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[0]));
  EXPECT_EQ(from_a.bytes(), sent_by_a.bytes());
  EXPECT_EQ(from_c.bytes(), sent_by_c.bytes());
  ExpectDone(a().tx, &contexts[1]);
  ExpectDone(c().tx, &contexts[3]);
}

CONFORMANCE_TEST(CapabilityTest, SourceOfAnUndirectedReceiveIsIgnored, 52) {
  if (!Open({}, 3)) {
    return;
  }
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  sent.Fill();
  fi_context2 contexts[2] = {};
  // Node c, as the source names it, sends nothing.
  ASSERT_EQ(Receive(received, &contexts[0], Address(1, 2)), 0);
  ASSERT_EQ(Send(sent, 8, &contexts[1]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[0]));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[1]));
  EXPECT_EQ(received.bytes(), sent.bytes());
}

CONFORMANCE_TEST(CapabilityTest, EndpointReachesItself, 55) {
  uint64_t either = 0;
  const Answer answer = GetInfo(MakeHints(FI_MSG).get());
  for (const fi_info* info : answer.own()) {
    EXPECT_NE(info->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM), 0U);
    either |= info->caps;
  }
  for (const uint64_t bit : {FI_LOCAL_COMM, FI_REMOTE_COMM}) {
    EXPECT_EQ(!GetInfo(MakeHints(FI_MSG | bit).get()).empty(),
              (either & bit) != 0)
        << Text(bit);
  }
  NodeOptions options;
  options.caps = FI_MSG | FI_LOCAL_COMM;
  if (!Open(options, 1)) {
    return;
  }
  Buffer sent(a(), 1000);
  Buffer received(a(), 1000);
  sent.Fill();
  fi_context2 contexts[2] = {};
  ASSERT_EQ(fi_recv(a().ep, received.data(), 1000, received.desc(),
                    FI_ADDR_UNSPEC, &contexts[0]),
            0);
  ASSERT_EQ(Post([&] {
              return fi_send(a().ep, sent.data(), 1000, sent.desc(),
                             Address(0, 0), &contexts[1]);
            }),
            0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().rx, &contexts[0]));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[1]));
  EXPECT_EQ(received.bytes(), sent.bytes());
}

CONFORMANCE_TEST(CapabilityTest, MulticastNeedsMessages, 56) {
  ExpectNoData(FI_MULTICAST);
}

CONFORMANCE_TEST(CapabilityTest, OneBufferTakesSeveralMessages, 57, 264) {
  NodeOptions options;
  options.caps = FI_MSG | FI_MULTI_RECV;
  if (!Open(options)) {
    return;
  }
  constexpr size_t kBytes = 64;
  constexpr int kMessages = 6;
  size_t release = 2 * kBytes;
  ASSERT_EQ(fi_setopt(&b().ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                      &release, sizeof(release)),
            0);
  Buffer pool(b(), 4 * kBytes);
  Buffer more(b(), 4 * kBytes);
  Buffer sent(a(), kBytes);
  fi_context2 contexts[3] = {};
  for (Buffer* const buffer : {&pool, &more}) {
    iovec part = {.iov_base = buffer->data(), .iov_len = buffer->size()};
    void* desc = buffer->desc();
    fi_msg message = {};
    message.msg_iov = &part;
    message.desc = &desc;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &contexts[buffer == &pool ? 0 : 1];
    ASSERT_EQ(Post([&] { return fi_recvmsg(b().ep, &message, FI_MULTI_RECV); }),
              0);
  }
  // Messages until the first buffer is released: 64 of 256 bytes are too few
  // for the minimum of 128, with or without alignment.
  int entries = 0;
  bool released = false;
  for (int i = 0; i < kMessages && !released; ++i) {
    sent.Fill(static_cast<uint32_t>(i));
    ASSERT_EQ(Send(sent, kBytes, &contexts[2]), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[2]));
    bool data = false;
    while (!data) {
      const auto completion = Take(b().rx);
      ASSERT_TRUE(completion.has_value());
      ASSERT_FALSE(completion->error);
      const fi_cq_tagged_entry& entry = completion->entry;
      released |= entry.op_context == &contexts[0] &&
                  (entry.flags & FI_MULTI_RECV) != 0;
      // The release may be an entry of its own.
      data = (entry.flags & FI_RECV) != 0;
      if (data) {
        ASSERT_EQ(entry.len, kBytes);
        EXPECT_EQ(std::memcmp(entry.buf, sent.data(), kBytes), 0) << i;
        entries += entry.op_context == &contexts[0] ? 1 : 0;
      }
    }
  }
  EXPECT_TRUE(released);
  EXPECT_GE(entries, 2);
}

CONFORMANCE_TEST(CapabilityTest, SenderIsReportedOnRequest, 62) {
  for (const uint64_t source : {uint64_t{FI_SOURCE}, uint64_t{0}}) {
    NodeOptions options;
    options.caps = FI_MSG | source;
    if (!Open(options)) {
      return;
    }
    Buffer sent(a(), 8);
    Buffer received(b(), 8);
    fi_context2 contexts[2] = {};
    ASSERT_EQ(Receive(received, &contexts[0]), 0);
    // Another queue is driven by hand: fi_cq_readfrom takes this one's entry.
    fi_cq_tagged_entry entry = {};
    fi_addr_t from = 4711;
    ASSERT_EQ(Post([&] {
                return fi_send(a().ep, sent.data(), 8, sent.desc(), to_b(),
                               &contexts[1]);
              }),
              0);
    ssize_t count = -FI_EAGAIN;
    while (count == -FI_EAGAIN) {
      a().tx.Poll();
      count = fi_cq_readfrom(b().rx.cq, &entry, 1, &from);
    }
    ASSERT_EQ(count, 1);
    EXPECT_EQ(entry.op_context, &contexts[0]);
    // It is a secondary capability, which may be there unrequested.
    const bool reports = (b().info->caps & FI_SOURCE) != 0;
    EXPECT_TRUE(reports || source == 0);
    EXPECT_EQ(from, reports ? to_a() : FI_ADDR_NOTAVAIL)
        << (reports ? "with" : "without") << " FI_SOURCE";
    ExpectDone(a().tx, &contexts[1]);
    TearDown();
  }
}

}  // namespace
}  // namespace heddle::conformance
