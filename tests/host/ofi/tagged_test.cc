// SPDX-License-Identifier: Apache-2.0
// Tagged messages, buffers of many messages, and receives of one sender.
#include <rdma/fi_ext_heddle.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <map>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

constexpr uint64_t kFlags = FI_TAGGED | FI_RECV;

class TaggedTest : public PairTest {
 protected:
  ssize_t Send(const std::vector<uint8_t>& bytes, uint64_t tag) {
    return fi_tsend(a->ep, bytes.data(), bytes.size(), nullptr, to_b, tag,
                    nullptr);
  }
  ssize_t Receive(std::vector<uint8_t>& buffer, uint64_t tag, uint64_t ignore,
                  void* context, fi_addr_t source = FI_ADDR_UNSPEC) {
    return fi_trecv(b->ep, buffer.data(), buffer.size(), nullptr, source, tag,
                    ignore, context);
  }
  // A receive without a buffer.
  ssize_t Look(uint64_t tag, uint64_t ignore, uint64_t flags, void* context) {
    const fi_msg_tagged message = {.msg_iov = nullptr,
                                   .desc = nullptr,
                                   .iov_count = 0,
                                   .addr = FI_ADDR_UNSPEC,
                                   .tag = tag,
                                   .ignore = ignore,
                                   .context = context,
                                   .data = 0};
    return fi_trecvmsg(b->ep, &message, flags);
  }
  ssize_t ReceiveClaimed(std::vector<uint8_t>& buffer, void* context) {
    iovec part = {.iov_base = buffer.data(), .iov_len = buffer.size()};
    const fi_msg_tagged message = {.msg_iov = &part,
                                   .desc = nullptr,
                                   .iov_count = 1,
                                   .addr = FI_ADDR_UNSPEC,
                                   .tag = 0,
                                   .ignore = 0,
                                   .context = context,
                                   .data = 0};
    return fi_trecvmsg(b->ep, &message, FI_CLAIM);
  }
  // Peeks until the message is there, and takes the completion.
  void Find(uint64_t tag, uint64_t flags, void* context, Outcome* found) {
    std::optional<Outcome> got;
    ASSERT_TRUE(WaitUntil([&] {
      EXPECT_EQ(Look(tag, 0, flags, context), 0);
      got = Take(b->rx_cq);
      return !got.has_value() || !got->error;
    }));
    ASSERT_TRUE(got.has_value());
    *found = *got;
  }
  // The next of b's, which succeeded.
  void Got(Outcome* outcome) {
    const auto got = Take(b->rx_cq);
    ASSERT_TRUE(got.has_value());
    ASSERT_FALSE(got->error)
        << fi_strerror(got->failure.err) << ", " << got->failure.prov_errno;
    *outcome = *got;
  }
  void Failed(int error, void* context) {
    const auto got = Take(b->rx_cq);
    ASSERT_TRUE(got.has_value());
    ASSERT_TRUE(got->error);
    EXPECT_EQ(got->failure.err, error);
    EXPECT_EQ(got->failure.op_context, context);
  }
  void Sent() {
    const auto sent = Take(a->tx_cq);
    ASSERT_TRUE(sent.has_value());
    ASSERT_FALSE(sent->error) << fi_strerror(sent->failure.err);
    EXPECT_EQ(sent->entry.flags, uint64_t{FI_TAGGED | FI_SEND});
  }

  std::array<int, 8> contexts_{};
};

TEST_F(TaggedTest, AMessageGoesToTheFirstReceiveThatItsTagFits) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  std::vector<std::vector<uint8_t>> buffers(4, std::vector<uint8_t>(32));
  ASSERT_EQ(Receive(buffers[0], 0x10, 0, &contexts_[0]), 0);
  ASSERT_EQ(Receive(buffers[1], 0x20, 0x0f, &contexts_[1]), 0);
  ASSERT_EQ(Receive(buffers[2], 0x10, 0, &contexts_[2]), 0);
  ASSERT_EQ(Receive(buffers[3], 0, ~uint64_t{0}, &contexts_[3]), 0);
  const struct {
    uint64_t tag;
    size_t receive;
  } kCases[] = {{0x2a, 1}, {0x10, 0}, {0x10, 2}, {0x10, 3}};
  for (const auto& [tag, receive] : kCases) {
    SCOPED_TRACE(receive);
    const auto sent = Pattern(20, static_cast<uint32_t>(receive));
    ASSERT_EQ(Send(sent, tag), 0);
    Outcome got;
    ASSERT_NO_FATAL_FAILURE(Got(&got));
    EXPECT_EQ(got.entry.op_context, &contexts_.at(receive));
    EXPECT_EQ(got.entry.tag, tag);
    EXPECT_EQ(got.entry.flags, kFlags);
    EXPECT_EQ(got.entry.len, 20U);
    EXPECT_EQ(got.entry.buf, buffers[receive].data());
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), buffers[receive].begin()));
    ASSERT_NO_FATAL_FAILURE(Sent());
  }
}

TEST_F(TaggedTest, AMessageWaitsForItsReceive) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  // Within a descriptor, copied, and longer than what is copied.
  const std::vector<size_t> kSizes = {0, 8, 100, 4096, 16384, 16385, 200'000};
  for (size_t i = 0; i < kSizes.size(); ++i) {
    const auto sent = Pattern(kSizes[i]);
    ASSERT_EQ(Send(sent, i), 0);
    Outcome found;
    if (kSizes[i] <= 16384) {
      ASSERT_NO_FATAL_FAILURE(Find(i, FI_PEEK, &contexts_[0], &found));
      EXPECT_EQ(found.entry.len, kSizes[i]);
    }
    std::vector<uint8_t> received(kSizes[i]);
    ASSERT_EQ(Receive(received, i, 0, &contexts_[1]), 0);
    Outcome got;
    ASSERT_NO_FATAL_FAILURE(Got(&got));
    EXPECT_EQ(got.entry.op_context, &contexts_[1]);
    EXPECT_EQ(got.entry.tag, i);
    EXPECT_EQ(received, sent);
    ASSERT_NO_FATAL_FAILURE(Sent());
  }
}

TEST_F(TaggedTest, ReceivesMayBePostedInTheOppositeOrder) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  constexpr uint64_t kMessages = 100;
  for (uint64_t tag = 0; tag < kMessages; ++tag) {
    ASSERT_TRUE(WaitUntil([&] {
      (void)fi_cq_read(b->rx_cq, nullptr, 0);
      return fi_tinject(a->ep, &tag, sizeof(tag), to_b, tag) == 0;
    }));
  }
  for (uint64_t tag = kMessages; tag-- != 0;) {
    uint64_t value = 0;
    ASSERT_EQ(fi_trecv(b->ep, &value, sizeof(value), nullptr, FI_ADDR_UNSPEC,
                       tag, 0, nullptr),
              0);
    Outcome got;
    ASSERT_NO_FATAL_FAILURE(Got(&got));
    ASSERT_EQ(value, tag);
  }
}

TEST_F(TaggedTest, AllCallsThatSendCarryTheTag) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  std::vector<uint8_t> sent = Pattern(64);
  iovec parts[2] = {{.iov_base = sent.data(), .iov_len = 40},
                    {.iov_base = &sent[40], .iov_len = 24}};
  const fi_msg_tagged message = {.msg_iov = static_cast<const iovec*>(parts),
                                 .desc = nullptr,
                                 .iov_count = 2,
                                 .addr = to_b,
                                 .tag = 3,
                                 .ignore = 0,
                                 .context = nullptr,
                                 .data = 33};
  uint64_t tag = 0;
  const auto check = [&](ssize_t posted, bool reported, uint64_t data) {
    SCOPED_TRACE(tag);
    ASSERT_EQ(posted, 0);
    std::vector<uint8_t> received(64);
    ASSERT_EQ(Receive(received, tag, 0, nullptr), 0);
    Outcome got;
    ASSERT_NO_FATAL_FAILURE(Got(&got));
    EXPECT_EQ(received, sent);
    EXPECT_EQ(got.entry.tag, tag);
    EXPECT_EQ(got.entry.flags, kFlags | (data != 0 ? FI_REMOTE_CQ_DATA : 0));
    EXPECT_TRUE(data == 0 || got.entry.data == data);
    if (reported) {
      ASSERT_NO_FATAL_FAILURE(Sent());
    } else {
      EXPECT_TRUE(StaysEmpty(a->tx_cq));
    }
    ++tag;
  };
  check(fi_tinject(a->ep, sent.data(), 64, to_b, 0), false, 0);
  check(fi_tsend(a->ep, sent.data(), 64, nullptr, to_b, 1, nullptr), true, 0);
  check(fi_tsendv(a->ep, static_cast<const iovec*>(parts), nullptr, 2, to_b, 2,
                  nullptr),
        true, 0);
  check(fi_tsendmsg(a->ep, &message, FI_REMOTE_CQ_DATA | FI_INJECT), true, 33);
  check(fi_tsenddata(a->ep, sent.data(), 64, nullptr, 44, to_b, 4, nullptr),
        true, 44);
  check(fi_tinjectdata(a->ep, sent.data(), 64, 55, to_b, 5), false, 55);
}

TEST_F(TaggedTest, AllCallsThatReceiveHaveTheRule) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  std::vector<uint8_t> buffer(64);
  iovec parts[2] = {{.iov_base = buffer.data(), .iov_len = 40},
                    {.iov_base = &buffer[40], .iov_len = 24}};
  ASSERT_EQ(fi_trecvv(b->ep, static_cast<const iovec*>(parts), nullptr, 2,
                      FI_ADDR_UNSPEC, 8, 7, nullptr),
            0);
  const auto sent = Pattern(64);
  ASSERT_EQ(Send(sent, 13), 0);
  Outcome got;
  ASSERT_NO_FATAL_FAILURE(Got(&got));
  EXPECT_EQ(buffer, sent);
  const fi_msg_tagged message = {.msg_iov = static_cast<const iovec*>(parts),
                                 .desc = nullptr,
                                 .iov_count = 2,
                                 .addr = FI_ADDR_UNSPEC,
                                 .tag = 16,
                                 .ignore = 1,
                                 .context = &contexts_[3],
                                 .data = 0};
  ASSERT_EQ(fi_trecvmsg(b->ep, &message, FI_COMPLETION), 0);
  const auto more = Pattern(64, 9);
  ASSERT_EQ(Send(more, 17), 0);
  ASSERT_NO_FATAL_FAILURE(Got(&got));
  EXPECT_EQ(got.entry.op_context, &contexts_[3]);
  EXPECT_EQ(buffer, more);
}

TEST_F(TaggedTest, APeekFindsNothingOrWhatHasArrived) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED | FI_SOURCE}));
  ASSERT_EQ(Look(5, 0, FI_PEEK, &contexts_[0]), 0);
  ASSERT_NO_FATAL_FAILURE(Failed(FI_ENOMSG, &contexts_[0]));
  ASSERT_EQ(fi_tinjectdata(a->ep, &contexts_, 24, 77, to_b, 5), 0);
  Outcome found;
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(Find(5, FI_PEEK, &contexts_[1], &found));
    EXPECT_EQ(found.entry.op_context, &contexts_[1]);
    EXPECT_EQ(found.entry.len, 24U);
    EXPECT_EQ(found.entry.tag, 5U);
    EXPECT_EQ(found.entry.flags, kFlags | FI_REMOTE_CQ_DATA);
    EXPECT_EQ(found.entry.data, 77U);
    EXPECT_EQ(found.source, to_a);
  }
  std::vector<uint8_t> buffer(24);
  ASSERT_EQ(Receive(buffer, 5, 0, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(Got(&found));
  EXPECT_EQ(found.source, to_a);
}

TEST_F(TaggedTest, AClaimedMessageIsForItsContextAlone) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  for (const uint32_t seed : {1, 2}) {
    ASSERT_EQ(fi_tinject(a->ep, Pattern(30, seed).data(), 30, to_b, 5), 0);
  }
  Outcome found;
  ASSERT_NO_FATAL_FAILURE(Find(5, FI_PEEK | FI_CLAIM, &contexts_[0], &found));
  EXPECT_EQ(found.entry.len, 30U);
  std::vector<uint8_t> buffer(30);
  ASSERT_EQ(Receive(buffer, 5, 0, &contexts_[1]), 0);
  ASSERT_NO_FATAL_FAILURE(Got(&found));
  EXPECT_EQ(buffer, Pattern(30, 2)) << "the claimed one";
  EXPECT_EQ(ReceiveClaimed(buffer, &contexts_[1]), -FI_ENOMSG);
  ASSERT_EQ(ReceiveClaimed(buffer, &contexts_[0]), 0);
  ASSERT_NO_FATAL_FAILURE(Got(&found));
  EXPECT_EQ(found.entry.op_context, &contexts_[0]);
  EXPECT_EQ(found.entry.tag, 5U);
  EXPECT_EQ(buffer, Pattern(30, 1));
  EXPECT_EQ(ReceiveClaimed(buffer, &contexts_[0]), -FI_ENOMSG);
}

TEST_F(TaggedTest, AMessageIsDiscardedWithAClaimOrWithout) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  for (const uint64_t tag : {5, 5, 6}) {
    ASSERT_EQ(fi_tinject(a->ep, &contexts_, 8, to_b, tag), 0);
  }
  Outcome found;
  ASSERT_NO_FATAL_FAILURE(Find(5, FI_PEEK | FI_DISCARD, &contexts_[0], &found));
  EXPECT_EQ(found.entry.len, 8U);
  ASSERT_NO_FATAL_FAILURE(Find(5, FI_PEEK | FI_CLAIM, &contexts_[0], &found));
  ASSERT_EQ(Look(0, 0, FI_CLAIM | FI_DISCARD, &contexts_[0]), 0);
  ASSERT_NO_FATAL_FAILURE(Got(&found));
  EXPECT_EQ(found.entry.op_context, &contexts_[0]);
  ASSERT_NO_FATAL_FAILURE(Find(6, FI_PEEK, &contexts_[1], &found));
  ASSERT_EQ(Look(5, 0, FI_PEEK, &contexts_[1]), 0);
  ASSERT_NO_FATAL_FAILURE(Failed(FI_ENOMSG, &contexts_[1]));
}

TEST_F(TaggedTest, FlagsThatDoNotGoTogetherAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  EXPECT_EQ(Look(0, 0, FI_DISCARD, nullptr), -FI_EINVAL);
  EXPECT_EQ(Look(0, 0, FI_PEEK | FI_CLAIM | FI_DISCARD, nullptr), -FI_EINVAL);
  EXPECT_EQ(Look(0, 0, FI_MULTI_RECV, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(Look(0, 0, FI_INJECT, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(Look(0, 0, FI_CLAIM, nullptr), -FI_ENOMSG);
}

TEST_F(TaggedTest, CancelEndsOneReceiveOfItsContext) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED | FI_MSG}));
  std::vector<std::vector<uint8_t>> buffers(3, std::vector<uint8_t>(8));
  ASSERT_EQ(Receive(buffers[0], 1, 0, &contexts_[0]), 0);
  ASSERT_EQ(Receive(buffers[1], 1, 0, &contexts_[0]), 0);
  ASSERT_EQ(fi_recv(b->ep, buffers[2].data(), 8, nullptr, FI_ADDR_UNSPEC,
                    &contexts_[2]),
            0);
  EXPECT_EQ(fi_cancel(&b->ep->fid, &contexts_[1]), -FI_ENOENT);
  ASSERT_EQ(fi_cancel(&b->ep->fid, &contexts_[0]), 0);
  ASSERT_NO_FATAL_FAILURE(Failed(FI_ECANCELED, &contexts_[0]));
  EXPECT_TRUE(StaysEmpty(b->rx_cq));
  // The younger one is still there.
  ASSERT_EQ(Send(Pattern(8), 1), 0);
  Outcome got;
  ASSERT_NO_FATAL_FAILURE(Got(&got));
  EXPECT_EQ(got.entry.buf, buffers[1].data());
  ASSERT_EQ(fi_cancel(&b->ep->fid, &contexts_[2]), 0);
  ASSERT_NO_FATAL_FAILURE(Failed(FI_ECANCELED, &contexts_[2]));
  EXPECT_EQ(fi_cancel(&b->ep->fid, &contexts_[0]), -FI_ENOENT);
}

TEST_F(TaggedTest, MessagesWithAndWithoutTagsDoNotMix) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED | FI_MSG}));
  uint64_t tagged = 0;
  uint64_t plain = 0;
  ASSERT_EQ(fi_trecv(b->ep, &tagged, 8, nullptr, FI_ADDR_UNSPEC, 0,
                     ~uint64_t{0}, &contexts_[0]),
            0);
  const uint64_t one = 1;
  const uint64_t two = 2;
  // It has no receive, and stops no other.
  ASSERT_EQ(fi_inject(a->ep, &one, 8, to_b), 0);
  ASSERT_EQ(fi_tinject(a->ep, &two, 8, to_b, 99), 0);
  Outcome got;
  ASSERT_NO_FATAL_FAILURE(Got(&got));
  EXPECT_EQ(got.entry.op_context, &contexts_[0]);
  EXPECT_EQ(tagged, 2U);
  ASSERT_EQ(fi_recv(b->ep, &plain, 8, nullptr, FI_ADDR_UNSPEC, &contexts_[1]),
            0);
  ASSERT_NO_FATAL_FAILURE(Got(&got));
  EXPECT_EQ(got.entry.flags, uint64_t{FI_MSG | FI_RECV});
  EXPECT_EQ(plain, 1U);
}

TEST_F(TaggedTest, ALongerMessageIsTruncated) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  std::vector<uint8_t> buffer(10);
  ASSERT_EQ(Receive(buffer, 1, 0, &contexts_[0]), 0);
  const auto sent = Pattern(500);
  ASSERT_EQ(Send(sent, 1), 0);
  const auto got = Take(b->rx_cq);
  ASSERT_TRUE(got.has_value() && got->error);
  EXPECT_EQ(got->failure.err, FI_ETRUNC);
  EXPECT_EQ(got->failure.op_context, &contexts_[0]);
  EXPECT_EQ(got->failure.len, 10U);
  EXPECT_EQ(got->failure.olen, 490U);
  EXPECT_EQ(got->failure.tag, 1U);
  EXPECT_EQ(got->failure.flags, kFlags);
  EXPECT_TRUE(std::equal(buffer.begin(), buffer.end(), sent.begin()));
}

TEST_F(TaggedTest, CallsNeedTheCapabilityAndAnEnabledEndpoint) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED, .enable = false}));
  std::vector<uint8_t> buffer(8);
  EXPECT_EQ(Send(buffer, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(Receive(buffer, 0, 0, nullptr), -FI_EOPBADSTATE);
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  EXPECT_EQ(fi_send(a->ep, buffer.data(), 8, nullptr, to_b, nullptr),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_recv(b->ep, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, nullptr),
            -FI_EOPNOTSUPP);
  ASSERT_NO_FATAL_FAILURE(
      Open({.caps = FI_TAGGED | FI_SEND}, {.caps = FI_TAGGED | FI_RECV}));
  EXPECT_EQ(fi_tsend(b->ep, buffer.data(), 8, nullptr, to_a, 0, nullptr),
            -FI_EOPNOTSUPP);
  EXPECT_EQ(
      fi_trecv(a->ep, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr),
      -FI_EOPNOTSUPP);
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_MSG}));
  EXPECT_EQ(Send(buffer, 0), -FI_ENOSYS);
  EXPECT_EQ(Receive(buffer, 0, 0, nullptr), -FI_ENOSYS);
}

TEST_F(TaggedTest, SelectiveReceivesAreReportedOnRequest) {
  ASSERT_NO_FATAL_FAILURE(
      Open({.caps = FI_TAGGED, .bind_flags = FI_SELECTIVE_COMPLETION}));
  std::vector<uint8_t> quiet(8);
  uint64_t loud = 0;
  ASSERT_EQ(Receive(quiet, 1, 0, &contexts_[0]), 0);
  iovec part = {.iov_base = &loud, .iov_len = sizeof(loud)};
  const fi_msg_tagged message = {.msg_iov = &part,
                                 .desc = nullptr,
                                 .iov_count = 1,
                                 .addr = FI_ADDR_UNSPEC,
                                 .tag = 2,
                                 .ignore = 0,
                                 .context = &contexts_[1],
                                 .data = 0};
  ASSERT_EQ(fi_trecvmsg(b->ep, &message, FI_COMPLETION), 0);
  const auto sent = Pattern(8);
  ASSERT_EQ(fi_tinject(a->ep, sent.data(), 8, to_b, 1), 0);
  ASSERT_EQ(fi_tinject(a->ep, sent.data(), 8, to_b, 2), 0);
  Outcome got;
  ASSERT_NO_FATAL_FAILURE(Got(&got));
  EXPECT_EQ(got.entry.op_context, &contexts_[1]);
  EXPECT_EQ(quiet, sent);
  EXPECT_TRUE(StaysEmpty(b->rx_cq));
}

TEST_F(TaggedTest, RegisteredMemoryIsUsedInPlace) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED}));
  std::vector<uint8_t> buffer(5000);
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(b->domain, buffer.data(), buffer.size(), FI_RECV, 0, 0, 0,
                      &region, nullptr),
            0);
  for (const uint64_t tag : {1, 2, 3}) {
    ASSERT_EQ(fi_trecv(b->ep, buffer.data(), buffer.size(), fi_mr_desc(region),
                       FI_ADDR_UNSPEC, tag, 0, &contexts_[0]),
              0);
    const auto sent = Pattern(5000, static_cast<uint32_t>(tag));
    ASSERT_EQ(Send(sent, tag), 0);
    Outcome got;
    ASSERT_NO_FATAL_FAILURE(Got(&got));
    EXPECT_EQ(got.entry.op_context, &contexts_[0]);
    EXPECT_EQ(got.entry.tag, tag);
    EXPECT_EQ(buffer, sent);
  }
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(TaggedTest, MoreReceivesThanTheQueueHasSlotsAreTaken) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED, .rx_size = 16}));
  constexpr uint64_t kReceives = 1000;
  std::vector<uint64_t> values(kReceives);
  for (uint64_t i = 0; i < kReceives; ++i) {
    ASSERT_TRUE(WaitUntil([&] {
      (void)fi_cq_read(b->rx_cq, nullptr, 0);
      return fi_trecv(b->ep, &values[i], 8, nullptr, FI_ADDR_UNSPEC, i, 0,
                      &values[i]) == 0;
    })) << i;
  }
  for (uint64_t i = kReceives; i-- != 0;) {
    ASSERT_EQ(fi_tinject(a->ep, &i, 8, to_b, i), 0);
    Outcome got;
    ASSERT_NO_FATAL_FAILURE(Got(&got));
    ASSERT_EQ(got.entry.op_context, &values[i]);
    ASSERT_EQ(values[i], i);
  }
}

// The order of the table is part of libfabric's ABI since 1.0: callers reach
// its functions by offset.
static_assert(offsetof(fi_ops_tagged, size) == 0 * sizeof(void*));
static_assert(offsetof(fi_ops_tagged, recv) == 1 * sizeof(void*));
static_assert(offsetof(fi_ops_tagged, recvv) == 2 * sizeof(void*));
static_assert(offsetof(fi_ops_tagged, recvmsg) == 3 * sizeof(void*));
static_assert(offsetof(fi_ops_tagged, send) == 4 * sizeof(void*));
static_assert(offsetof(fi_ops_tagged, sendv) == 5 * sizeof(void*));
static_assert(offsetof(fi_ops_tagged, sendmsg) == 6 * sizeof(void*));
static_assert(offsetof(fi_ops_tagged, inject) == 7 * sizeof(void*));
static_assert(offsetof(fi_ops_tagged, senddata) == 8 * sizeof(void*));
static_assert(offsetof(fi_ops_tagged, injectdata) == 9 * sizeof(void*));
static_assert(sizeof(fi_ops_tagged) == 10 * sizeof(void*));

TEST_F(TaggedTest, TheTableHasItsSizeAndEachFunctionOnce) {
  for (const bool enable : {true, false}) {
    for (const uint64_t caps :
         {uint64_t{FI_TAGGED}, uint64_t{FI_TAGGED | FI_RECV},
          uint64_t{FI_TAGGED | FI_SEND}}) {
      SCOPED_TRACE(caps);
      const Node node({.caps = caps, .enable = enable});
      ASSERT_EQ(node.result, 0);
      const fi_ops_tagged& table = *node.ep->tagged;
      EXPECT_EQ(table.size, sizeof(table));
      std::array<uintptr_t, 10> words;
      std::memcpy(words.data(), &table, sizeof(table));
      EXPECT_EQ(std::count(words.begin(), words.end(), 0U), 0);
      // Those that are refused share a function for each form of call.
      if (enable && caps == FI_TAGGED) {
        std::sort(words.begin(), words.end());
        EXPECT_EQ(std::unique(words.begin(), words.end()), words.end());
      }
    }
  }
}

// -- FI_DIRECTED_RECV

class DirectedTest : public TaggedTest {};

TEST_F(DirectedTest, AReceiveTakesMessagesOfItsSource) {
  ASSERT_NO_FATAL_FAILURE(
      Open({.caps = FI_TAGGED | FI_MSG | FI_DIRECTED_RECV}));
  const auto c = std::make_unique<Node>(
      NodeOptions{.caps = FI_TAGGED | FI_MSG | FI_DIRECTED_RECV});
  ASSERT_EQ(c->result, 0);
  const fi_addr_t of_c = b->Insert(*c);
  const fi_addr_t from_c = c->Insert(*b);
  uint64_t tagged = 0;
  uint64_t plain = 0;
  EXPECT_EQ(fi_trecv(b->ep, &tagged, 8, nullptr, of_c + 1, 1, 0, nullptr),
            -FI_EINVAL);
  ASSERT_EQ(fi_trecv(b->ep, &tagged, 8, nullptr, of_c, 1, 0, nullptr), 0);
  ASSERT_EQ(fi_recv(b->ep, &plain, 8, nullptr, of_c, nullptr), 0);
  const uint64_t wrong = 1;
  const uint64_t right = 2;
  ASSERT_EQ(fi_tinject(a->ep, &wrong, 8, to_b, 1), 0);
  ASSERT_EQ(fi_inject(a->ep, &wrong, 8, to_b), 0);
  Outcome found;
  ASSERT_NO_FATAL_FAILURE(Find(1, FI_PEEK, nullptr, &found));
  ASSERT_EQ(fi_tinject(c->ep, &right, 8, from_c, 1), 0);
  ASSERT_NO_FATAL_FAILURE(Got(&found));
  EXPECT_EQ(tagged, 2U);
  ASSERT_EQ(fi_inject(c->ep, &right, 8, from_c), 0);
  ASSERT_NO_FATAL_FAILURE(Got(&found));
  EXPECT_EQ(plain, 2U);
  // FI_ADDR_UNSPEC is any.
  ASSERT_EQ(fi_recv(b->ep, &plain, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(Got(&found));
  EXPECT_EQ(plain, 1U);
  ASSERT_EQ(fi_trecv(b->ep, &tagged, 8, nullptr, to_a, 1, 0, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(Got(&found));
  EXPECT_EQ(tagged, 1U);
}

TEST_F(DirectedTest, WithoutTheCapabilityTheSourceIsIgnored) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_TAGGED | FI_MSG}));
  uint64_t value = 0;
  const uint64_t sent = 5;
  ASSERT_EQ(fi_trecv(b->ep, &value, 8, nullptr, 12345, 1, 0, nullptr), 0);
  ASSERT_EQ(fi_tinject(a->ep, &sent, 8, to_b, 1), 0);
  Outcome got;
  ASSERT_NO_FATAL_FAILURE(Got(&got));
  EXPECT_EQ(value, 5U);
}

// -- FI_MULTI_RECV

class MultiRecvTest : public TaggedTest {
 protected:
  void SetMinimum(size_t bytes) {
    ASSERT_EQ(fi_setopt(&b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                        &bytes, sizeof(bytes)),
              0);
  }
  ssize_t Post(std::vector<uint8_t>& buffer, void* context) {
    iovec part = {.iov_base = buffer.data(), .iov_len = buffer.size()};
    const fi_msg message = {.msg_iov = &part,
                            .desc = nullptr,
                            .iov_count = 1,
                            .addr = FI_ADDR_UNSPEC,
                            .context = context,
                            .data = 0};
    return fi_recvmsg(b->ep, &message, FI_MULTI_RECV | FI_COMPLETION);
  }
  // Completions up to the one that releases the buffer; the flag.
  void TakeUntilReleased(std::vector<Outcome>* got) {
    do {
      got->emplace_back();
      ASSERT_NO_FATAL_FAILURE(Got(&got->back()));
    } while ((got->back().entry.flags & FI_MULTI_RECV) == 0);
  }
};

TEST_F(MultiRecvTest, ABufferTakesMessagesUntilTooLittleIsFree) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_MSG | FI_MULTI_RECV}));
  ASSERT_NO_FATAL_FAILURE(SetMinimum(100));
  std::vector<uint8_t> buffer(350);
  ASSERT_EQ(Post(buffer, &contexts_[0]), 0);
  for (const uint32_t seed : {1, 2, 3}) {
    ASSERT_EQ(fi_inject(a->ep, Pattern(90, seed).data(), 90, to_b), 0);
  }
  std::vector<Outcome> got;
  ASSERT_NO_FATAL_FAILURE(TakeUntilReleased(&got));
  size_t messages = 0;
  for (const Outcome& each : got) {
    EXPECT_EQ(each.entry.op_context, &contexts_[0]);
    if ((each.entry.flags & FI_RECV) == 0) {
      EXPECT_EQ(each.entry.flags, uint64_t{FI_MULTI_RECV});
      continue;
    }
    ++messages;
    EXPECT_EQ(each.entry.len, 90U);
    const auto* const at = static_cast<const uint8_t*>(each.entry.buf);
    ASSERT_TRUE(at >= buffer.data() &&
                at + 90 <= buffer.data() + buffer.size());
    const auto sent = Pattern(90, static_cast<uint32_t>(messages));
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), at));
  }
  EXPECT_EQ(messages, 3U);
  EXPECT_TRUE(StaysEmpty(b->rx_cq));
}

TEST_F(MultiRecvTest, ABufferTakesMessagesThatPrecededIt) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV}));
  for (const uint32_t seed : {1, 2, 3, 4}) {
    ASSERT_EQ(fi_inject(a->ep, Pattern(64, seed).data(), 64, to_b), 0);
  }
  // Tagged messages of one sender do not overtake.
  const uint64_t last = 0;
  ASSERT_EQ(fi_tinject(a->ep, &last, 8, to_b, 1), 0);
  Outcome found;
  ASSERT_NO_FATAL_FAILURE(Find(1, FI_PEEK, nullptr, &found));
  std::vector<uint8_t> buffer(256);
  ASSERT_EQ(Post(buffer, &contexts_[0]), 0);
  std::vector<Outcome> got;
  ASSERT_NO_FATAL_FAILURE(TakeUntilReleased(&got));
  for (uint32_t i = 0; i < 4; ++i) {
    const auto sent = Pattern(64, i + 1);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), &buffer[64UL * i])) << i;
  }
}

TEST_F(MultiRecvTest, CancelReleasesTheBuffer) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_MSG | FI_MULTI_RECV}));
  std::vector<uint8_t> buffer(1000);
  ASSERT_EQ(Post(buffer, &contexts_[0]), 0);
  ASSERT_EQ(fi_inject(a->ep, buffer.data(), 90, to_b), 0);
  Outcome got;
  ASSERT_NO_FATAL_FAILURE(Got(&got));
  EXPECT_EQ(got.entry.flags, uint64_t{FI_MSG | FI_RECV});
  ASSERT_EQ(fi_cancel(&b->ep->fid, &contexts_[0]), 0);
  ASSERT_NO_FATAL_FAILURE(Failed(FI_ECANCELED, &contexts_[0]));
  EXPECT_EQ(fi_cancel(&b->ep->fid, &contexts_[0]), -FI_ENOENT);
}

TEST_F(MultiRecvTest, TheMinimumIsAnOptionOfEndpointsThatHaveIt) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_MSG | FI_MULTI_RECV}));
  size_t value = 0;
  size_t length = sizeof(value);
  ASSERT_EQ(fi_getopt(&b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                      &value, &length),
            0);
  EXPECT_EQ(value, 64U);
  ASSERT_NO_FATAL_FAILURE(SetMinimum(4096));
  ASSERT_EQ(fi_getopt(&b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                      &value, &length),
            0);
  EXPECT_EQ(value, 4096U);
  length = 4;
  EXPECT_EQ(fi_getopt(&b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                      &value, &length),
            -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof(value));
  value = size_t{1} << 40;
  EXPECT_EQ(fi_setopt(&b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                      &value, sizeof(value)),
            -FI_EINVAL);
  ASSERT_NO_FATAL_FAILURE(Open());
  length = sizeof(value);
  EXPECT_EQ(fi_getopt(&b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                      &value, &length),
            -FI_ENOPROTOOPT);
}

TEST_F(MultiRecvTest, TheFlagNeedsTheCapability) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_MSG | FI_TAGGED}));
  std::vector<uint8_t> buffer(100);
  EXPECT_EQ(Post(buffer, nullptr), -FI_EOPNOTSUPP);
}

// -- peers and room of other kinds

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// b's device, rtl, has no tags; builds with sanitizers have no model of it.
class UntaggedPeerTest : public TaggedTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(
        Open({.caps = FI_TAGGED | FI_MSG}, {.caps = FI_MSG}));
  }
};

TEST_F(UntaggedPeerTest, ATaggedSendFailsAndOthersGoOn) {
  const std::vector<uint8_t> bytes = Pattern(100);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_tsend(a->ep, bytes.data(), bytes.size(), nullptr, to_b, 7,
                       contexts_.data()),
              0);
    const auto sent = Take(a->tx_cq);
    ASSERT_TRUE(sent.has_value());
    ASSERT_TRUE(sent->error);
    EXPECT_EQ(sent->failure.op_context, contexts_.data());
    EXPECT_EQ(sent->failure.err, FI_EOPNOTSUPP);
    EXPECT_EQ(sent->failure.prov_errno, FI_HEDDLE_PEER_UNSUPPORTED);
    EXPECT_EQ(sent->failure.flags, uint64_t{FI_TAGGED | FI_SEND});
    std::vector<uint8_t> received(bytes.size());
    ASSERT_NO_FATAL_FAILURE(Exchange(bytes, received));
    EXPECT_EQ(received, bytes);
  }
}

// A sender with tags sends all but the shortest messages as deferrable.
TEST_F(UntaggedPeerTest, MessagesOfEachLengthArrive) {
  for (const size_t length : {8, 100, 4096, 70000}) {
    SCOPED_TRACE(length);
    const std::vector<uint8_t> bytes = Pattern(length);
    std::vector<uint8_t> received(length);
    ASSERT_NO_FATAL_FAILURE(Exchange(bytes, received));
    EXPECT_EQ(received, bytes);
    // Before its receive, and longer than that.
    ASSERT_EQ(fi_send(a->ep, bytes.data(), length, nullptr, to_b, nullptr), 0);
    EXPECT_TRUE(StaysEmpty(a->tx_cq));
    ASSERT_EQ(fi_recv(b->ep, received.data(), length - 1, nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_NO_FATAL_FAILURE(Failed(FI_ETRUNC, nullptr));
    const auto sent = Take(a->tx_cq, kLimit, b->rx_cq);
    ASSERT_TRUE(sent.has_value());
    EXPECT_FALSE(sent->error) << sent->failure.prov_errno;
  }
}

#endif

// With FI_HEDDLE_UNEXPECTED_MESSAGES=64.
class ScarceTest : public TaggedTest {};

TEST_F(ScarceTest, UnmatchedMessagesWaitAndStopNoOtherSender) {
  constexpr uint32_t kHeaders = 64;
  constexpr uint32_t kEach = 5000;
  constexpr size_t kBytes = 100;
  const NodeOptions options{.caps = FI_TAGGED, .cq_size = 1024};
  ASSERT_NO_FATAL_FAILURE(Open(options));
  struct Sender {
    std::unique_ptr<Node> node;
    fi_addr_t to_b = FI_ADDR_UNSPEC;
    uint32_t posted = 0;
    uint32_t completed = 0;
  };
  std::array<Sender, 2> senders;
  for (Sender& sender : senders) {
    sender.node = std::make_unique<Node>(options);
    ASSERT_EQ(sender.node->result, 0);
    sender.to_b = sender.node->Insert(*b);
  }
  const size_t before = ResidentBytes();
  const std::vector<uint8_t> bytes = Pattern(kBytes);
  const auto step = [&] {
    for (Sender& sender : senders) {
      while (sender.posted != kEach &&
             fi_tsend(sender.node->ep, bytes.data(), kBytes, nullptr,
                      sender.to_b, 7, nullptr) == 0) {
        ++sender.posted;
      }
      fi_cq_tagged_entry entries[16];
      const ssize_t count = fi_cq_read(sender.node->tx_cq, entries, 16);
      sender.completed += count > 0 ? static_cast<uint32_t>(count) : 0;
    }
  };
  for (int i = 0; i < 1000; ++i) {
    step();
    (void)fi_cq_read(b->rx_cq, nullptr, 0);
  }
  const size_t full = ResidentBytes();
  std::vector<uint8_t> received(kBytes);
  constexpr int kExchanges = 200;
  for (int i = 0; i < kExchanges; ++i) {
    ASSERT_EQ(Receive(received, 8, 0, nullptr), 0);
    ASSERT_EQ(Send(bytes, 8), 0);
    step();
    Outcome got;
    ASSERT_NO_FATAL_FAILURE(Got(&got));
    EXPECT_EQ(got.entry.tag, 8U);
    ASSERT_NO_FATAL_FAILURE(Sent());
  }
  const size_t after = ResidentBytes();
  std::printf(
      "%u unmatched messages posted, %u completed, %d exchanged: "
      "%zu KiB resident before, %zu KiB when %u headers are full, "
      "%zu KiB after\n",
      senders[0].posted + senders[1].posted,
      senders[0].completed + senders[1].completed, kExchanges, before >> 10U,
      full >> 10U, kHeaders, after >> 10U);
  EXPECT_LE(senders[0].completed + senders[1].completed, kHeaders);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr size_t kRoom = size_t{32} << 20U;
#else
  constexpr size_t kRoom = size_t{4} << 20U;
#endif
  EXPECT_LT(full, before + kRoom);
  EXPECT_LT(after, full + kRoom / 4);
  // None is lost.
  uint32_t asked = 0;
  uint32_t arrived = 0;
  ASSERT_TRUE(WaitUntil([&] {
    while (asked != 2 * kEach && asked < arrived + kHeaders &&
           Receive(received, 7, 0, nullptr) == 0) {
      ++asked;
    }
    step();
    fi_cq_tagged_entry entries[16];
    const ssize_t count = fi_cq_read(b->rx_cq, entries, 16);
    EXPECT_TRUE(count > 0 || count == -FI_EAGAIN) << count;
    arrived += count > 0 ? static_cast<uint32_t>(count) : 0;
    return arrived == 2 * kEach && senders[0].completed == kEach &&
           senders[1].completed == kEach;
  }));
}

}  // namespace
}  // namespace heddle::test
