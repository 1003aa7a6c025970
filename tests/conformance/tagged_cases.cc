// SPDX-License-Identifier: Apache-2.0
// Tagged messages: what matches, in which order, peeks and claims.
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kAnyTag = ~uint64_t{0};  // As ignore mask.
// Format of 64 fields of one bit each, which stock providers offer.
constexpr uint64_t kGeneric = 0xaaaaaaaaaaaaaaaa;

// Node a sends, node b receives.
class TaggedTest : public NodesTest {
 protected:
  bool OpenTagged(uint64_t more = 0, size_t count = 2) {
    NodeOptions options;
    options.caps = FI_TAGGED | more;
    options.hints = [](fi_info& hints) {
      hints.tx_attr->msg_order = FI_ORDER_SAS;
      hints.rx_attr->msg_order = FI_ORDER_SAS;
    };
    return Open(options, count);
  }

  ssize_t SendTagged(Buffer& buffer, size_t bytes, uint64_t tag,
                     void* context) {
    return Post([&] {
      return fi_tsend(a().ep, buffer.data(), bytes, buffer.desc(), to_b(), tag,
                      context);
    });
  }

  ssize_t ReceiveTagged(Buffer& buffer, uint64_t tag, uint64_t ignore,
                        void* context, fi_addr_t source = FI_ADDR_UNSPEC) {
    return Post([&] {
      return fi_trecv(b().ep, buffer.data(), buffer.size(), buffer.desc(),
                      source, tag, ignore, context);
    });
  }

  // fi_trecvmsg into `buffer`, which may be null.
  ssize_t ReceiveByMessage(Buffer* buffer, uint64_t tag, uint64_t ignore,
                           uint64_t flags, void* context) {
    iovec part = {};
    void* desc = nullptr;
    fi_msg_tagged message = {};
    if (buffer != nullptr) {
      part = {.iov_base = buffer->data(), .iov_len = buffer->size()};
      desc = buffer->desc();
      message.msg_iov = &part;
      message.desc = &desc;
      message.iov_count = 1;
    }
    message.addr = FI_ADDR_UNSPEC;
    message.tag = tag;
    message.ignore = ignore;
    message.context = context;
    return Post([&] { return fi_trecvmsg(b().ep, &message, flags); });
  }

  // Peeks once: the entry, or empty if there is no such message. Anything else
  // is a failure.
  std::optional<fi_cq_tagged_entry> Peek(uint64_t tag, uint64_t ignore,
                                         uint64_t flags, void* context) {
    const ssize_t result =
        ReceiveByMessage(nullptr, tag, ignore, FI_PEEK | flags, context);
    if (result != 0) {
      ADD_FAILURE() << "fi_trecvmsg with FI_PEEK: "
                    << fi_strerror(static_cast<int>(-result));
      return std::nullopt;
    }
    const auto completion = Take(b().rx);
    if (!completion.has_value()) {
      ADD_FAILURE() << "a peek without completion";
      return std::nullopt;
    }
    if (completion->error) {
      EXPECT_EQ(completion->failure.err, FI_ENOMSG);
      EXPECT_EQ(completion->failure.op_context, context);
      return std::nullopt;
    }
    EXPECT_EQ(completion->entry.op_context, context);
    return completion->entry;
  }

  // Peeks until there is one.
  std::optional<fi_cq_tagged_entry> PeekUntilFound(uint64_t tag,
                                                   uint64_t ignore,
                                                   uint64_t flags,
                                                   void* context) {
    const Deadline deadline;
    while (!deadline.HasPassed() && !HasFailure()) {
      const auto entry = Peek(tag, ignore, flags, context);
      if (entry.has_value()) {
        return entry;
      }
    }
    ADD_FAILURE() << "no message of tag " << tag << " is found";
    return std::nullopt;
  }
};

// A message of each of these lengths has its number as tag.
constexpr std::array<size_t, 6> kLengths = {64, 0, 5000, 1, 100'000, 300};

CONFORMANCE_TEST(TaggedTest, ReceivesInOppositeOrderTakeTheirTags, 51, 211) {
  if (!OpenTagged()) {
    return;
  }
  std::array<fi_context2, kLengths.size()> contexts = {};
  std::vector<std::unique_ptr<Buffer>> sent;
  std::vector<std::unique_ptr<Buffer>> received(kLengths.size());
  for (size_t i = kLengths.size(); i-- > 0;) {
    received.at(i) = std::make_unique<Buffer>(b(), kLengths.at(i) + 1);
    ASSERT_EQ(ReceiveTagged(*received.at(i), i, 0, &contexts.at(i)), 0);
  }
  for (size_t i = 0; i < kLengths.size(); ++i) {
    sent.push_back(std::make_unique<Buffer>(a(), kLengths.at(i) + 1));
    sent.back()->Fill(static_cast<uint32_t>(i));
    ASSERT_EQ(SendTagged(*sent.back(), kLengths.at(i), i, NewContext()), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts.at(i), i, kLengths.at(i)));
    EXPECT_EQ(std::memcmp(received.at(i)->data(), sent.back()->data(),
                          kLengths.at(i)),
              0);
    EXPECT_EQ(received.at(i)->bytes().back(), 0) << "beyond the message";
  }
  ExpectSent(kLengths.size());
}

CONFORMANCE_TEST(TaggedTest, MessagesWithoutReceivesAreTakenInAnyOrder, 211,
                 221) {
  if (!OpenTagged()) {
    return;
  }
  std::vector<std::unique_ptr<Buffer>> sent;
  for (size_t i = 0; i < kLengths.size(); ++i) {
    sent.push_back(std::make_unique<Buffer>(a(), kLengths.at(i) + 1));
    sent.back()->Fill(static_cast<uint32_t>(i));
    ASSERT_EQ(SendTagged(*sent.back(), kLengths.at(i), i, NewContext()), 0);
  }
  EXPECT_TRUE(StaysEmpty(b().rx));
  for (size_t i = kLengths.size(); i-- > 0;) {
    Buffer received(b(), kLengths.at(i) + 1);
    fi_context2 context = {};
    ASSERT_EQ(ReceiveTagged(received, i, 0, &context), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectTagged(&context, i, kLengths.at(i)));
    EXPECT_EQ(std::memcmp(received.data(), sent.at(i)->data(), kLengths.at(i)),
              0);
  }
  ExpectSent(kLengths.size());
}

CONFORMANCE_TEST(TaggedTest, IgnoredBitsMatchAnything, 211) {
  if (!OpenTagged()) {
    return;
  }
  Buffer sent(a(), 8);
  Buffer masked(b(), 8);
  Buffer exact(b(), 8);
  Buffer last(b(), 8);
  fi_context2 contexts[3] = {};
  // The bits of the receive's own tag below the mask do not matter either.
  ASSERT_EQ(ReceiveTagged(masked, 0x12ff, 0xff, &contexts[0]), 0);
  ASSERT_EQ(ReceiveTagged(exact, 0x3400, 0, &contexts[1]), 0);
  ASSERT_EQ(SendTagged(sent, 8, 0x3401, NewContext()), 0);
  ASSERT_EQ(SendTagged(sent, 8, 0x1334, NewContext()), 0);
  EXPECT_TRUE(StaysEmpty(b().rx)) << "neither matches";
  ASSERT_EQ(SendTagged(sent, 8, 0x12ab, NewContext()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[0], 0x12ab, 8));
  ASSERT_EQ(SendTagged(sent, 8, 0x3400, NewContext()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[1], 0x3400, 8));
  ASSERT_EQ(ReceiveTagged(last, 0x0034, ~uint64_t{0xff}, &contexts[2]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[2], 0x1334, 8));
  ASSERT_EQ(ReceiveTagged(last, 0, kAnyTag, &contexts[2]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[2], 0x3401, 8));
  ExpectSent(4);
}

CONFORMANCE_TEST(TaggedTest, OldestReceiveThatMatchesTakesTheMessage, 211) {
  if (!OpenTagged()) {
    return;
  }
  Buffer sent(a(), 8);
  Buffer buffers[4] = {{b(), 8}, {b(), 8}, {b(), 8}, {b(), 8}};
  fi_context2 contexts[4] = {};
  // Two that take any tag around two that take one.
  ASSERT_EQ(ReceiveTagged(buffers[0], 0, kAnyTag, &contexts[0]), 0);
  ASSERT_EQ(ReceiveTagged(buffers[1], 5, 0, &contexts[1]), 0);
  ASSERT_EQ(ReceiveTagged(buffers[2], 5, 0, &contexts[2]), 0);
  ASSERT_EQ(ReceiveTagged(buffers[3], 0, kAnyTag, &contexts[3]), 0);
  const std::pair<uint64_t, size_t> messages[] = {
      {5, 0}, {5, 1}, {6, 3}, {5, 2}};
  for (const auto& [tag, taker] : messages) {
    ASSERT_EQ(SendTagged(sent, 8, tag, NewContext()), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[taker], tag, 8));
  }
  ExpectSent(std::size(messages));
}

CONFORMANCE_TEST(TaggedTest, OldestMessageThatMatchesIsTaken, 211, 231) {
  if (!OpenTagged()) {
    return;
  }
  const std::pair<uint64_t, size_t> messages[] = {
      {3, 200}, {1, 30}, {2, 60'000}, {1, 0}, {3, 10}};
  std::vector<std::unique_ptr<Buffer>> sent;
  for (const auto& [tag, bytes] : messages) {
    sent.push_back(std::make_unique<Buffer>(a(), bytes + 1));
    ASSERT_EQ(SendTagged(*sent.back(), bytes, tag, NewContext()), 0);
  }
  Buffer received(b(), 60'000);
  fi_context2 context = {};
  // The second of tag 1 is not overtaken by what has come later.
  for (const auto& [tag, ignore, taken] :
       {std::tuple(uint64_t{1}, uint64_t{0}, 1),
        {0, kAnyTag, 0},
        {0, kAnyTag, 2},
        {2, uint64_t{1}, 4},
        {0, kAnyTag, 3}}) {
    const auto& [own_tag, bytes] = messages[taken];
    ASSERT_EQ(ReceiveTagged(received, tag, ignore, &context), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectTagged(&context, own_tag, bytes));
  }
  ExpectSent(std::size(messages));
}

CONFORMANCE_TEST(TaggedTest, LongMessageIsTruncated, 116) {
  if (!OpenTagged()) {
    return;
  }
  Buffer sent(a(), 100);
  Buffer part(b(), 40);
  Buffer whole(b(), 100);
  sent.Fill();
  fi_context2 contexts[2] = {};
  ASSERT_EQ(ReceiveTagged(whole, 8, 0, &contexts[1]), 0);
  ASSERT_EQ(ReceiveTagged(part, 9, 0, &contexts[0]), 0);
  ASSERT_EQ(SendTagged(sent, 100, 9, NewContext()), 0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_TRUE(completion->error);
  EXPECT_EQ(completion->failure.err, FI_ETRUNC);
  EXPECT_EQ(completion->failure.op_context, &contexts[0]);
  ASSERT_EQ(SendTagged(sent, 100, 8, NewContext()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[1], 8, 100));
  EXPECT_EQ(whole.bytes(), sent.bytes());
}

CONFORMANCE_TEST(TaggedTest, TagsAndUntaggedMessagesDoNotMeet, 51, 211) {
  if (!OpenTagged(FI_MSG)) {
    return;
  }
  Buffer sent(a(), 8);
  Buffer tagged(b(), 8);
  Buffer untagged(b(), 8);
  fi_context2 contexts[2] = {};
  ASSERT_EQ(ReceiveTagged(tagged, 0, kAnyTag, &contexts[0]), 0);
  ASSERT_EQ(Send(sent, 8, NewContext()), 0);
  EXPECT_TRUE(StaysEmpty(b().rx)) << "an untagged message has no tag";
  ASSERT_EQ(Receive(untagged, &contexts[1]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[1]));
  ASSERT_EQ(Receive(untagged, &contexts[1]), 0);
  ASSERT_EQ(SendTagged(sent, 8, 0, NewContext()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[0], 0, 8));
  EXPECT_TRUE(StaysEmpty(b().rx));
  ExpectSent(2);
}

CONFORMANCE_TEST(TaggedTest, EveryCallCarriesItsTag, 51) {
  if (!OpenTagged()) {
    return;
  }
  Buffer sent(a(), 16);
  sent.Fill();
  iovec part = {.iov_base = sent.data(), .iov_len = 16};
  void* desc = sent.desc();
  fi_msg_tagged message = {};
  message.msg_iov = &part;
  message.desc = &desc;
  message.iov_count = 1;
  message.addr = to_b();
  constexpr uint64_t kData = 0x1234567;
  const bool data = a().info->domain_attr->cq_data_size != 0;
  const bool inject = a().info->tx_attr->inject_size >= 16;
  fid_ep* const ep = a().ep;
  const struct {
    const char* name;
    bool offered;
    bool has_data;
    std::function<ssize_t(uint64_t tag)> call;
  } calls[] = {
      {"fi_tsend", true, false,
       [&](uint64_t tag) {
         return fi_tsend(ep, sent.data(), 16, desc, to_b(), tag, NewContext());
       }},
      {"fi_tsendv", true, false,
       [&](uint64_t tag) {
         return fi_tsendv(ep, &part, &desc, 1, to_b(), tag, NewContext());
       }},
      {"fi_tsendmsg", true, false,
       [&](uint64_t tag) {
         message.tag = tag;
         message.context = NewContext();
         return fi_tsendmsg(ep, &message, FI_COMPLETION);
       }},
      {"fi_tinject", inject, false,
       [&](uint64_t tag) {
         return fi_tinject(ep, sent.data(), 16, to_b(), tag);
       }},
      {"fi_tsenddata", data, true,
       [&](uint64_t tag) {
         return fi_tsenddata(ep, sent.data(), 16, desc, kData, to_b(), tag,
                             NewContext());
       }},
      {"fi_tinjectdata", data && inject, true,
       [&](uint64_t tag) {
         return fi_tinjectdata(ep, sent.data(), 16, kData, to_b(), tag);
       }},
  };
  uint64_t tag = 100;
  size_t entries = 0;
  for (const auto& each : calls) {
    if (!each.offered) {
      continue;
    }
    ++tag;
    Buffer received(b(), 16);
    fi_context2 context = {};
    iovec into = {.iov_base = received.data(), .iov_len = 16};
    void* into_desc = received.desc();
    // By each of the three calls for receives in turn.
    ASSERT_EQ(tag % 3 == 0   ? ReceiveTagged(received, tag, 0, &context)
              : tag % 3 == 1 ? ReceiveByMessage(&received, tag, 0, 0, &context)
                             : Post([&] {
                                 return fi_trecvv(b().ep, &into, &into_desc, 1,
                                                  FI_ADDR_UNSPEC, tag, 0,
                                                  &context);
                               }),
              0);
    ASSERT_EQ(Post([&] { return each.call(tag); }), 0) << each.name;
    const auto completion = Take(b().rx);
    ASSERT_TRUE(completion.has_value()) << each.name;
    ASSERT_FALSE(completion->error) << each.name;
    const fi_cq_tagged_entry& entry = completion->entry;
    EXPECT_EQ(entry.op_context, &context) << each.name;
    EXPECT_EQ(entry.tag, tag) << each.name;
    EXPECT_EQ(entry.len, 16U) << each.name;
    EXPECT_EQ(entry.flags & (FI_TAGGED | FI_RECV), FI_TAGGED | FI_RECV)
        << each.name;
    EXPECT_EQ((entry.flags & FI_REMOTE_CQ_DATA) != 0, each.has_data)
        << each.name;
    EXPECT_TRUE(!each.has_data || entry.data == kData) << each.name;
    EXPECT_EQ(received.bytes(), sent.bytes()) << each.name;
    entries += std::strstr(each.name, "inject") == nullptr ? 1 : 0;
  }
  ExpectSent(entries);
  EXPECT_TRUE(StaysEmpty(a().tx)) << "inject calls have no entry";
}

CONFORMANCE_TEST(TaggedTest, DirectedReceiveMatchesSourceAndTag, 52) {
  if (!OpenTagged(FI_DIRECTED_RECV, 3)) {
    return;
  }
  Buffer sent_by_a(a(), 8);
  Buffer sent_by_c(c(), 8);
  Buffer from_c(b(), 8);
  Buffer from_any(b(), 8);
  sent_by_a.Fill(1);
  sent_by_c.Fill(2);
  fi_context2 contexts[3] = {};
  ASSERT_EQ(ReceiveTagged(from_c, 0, kAnyTag, &contexts[0], Address(1, 2)), 0);
  ASSERT_EQ(SendTagged(sent_by_a, 8, 7, NewContext()), 0);
  EXPECT_TRUE(StaysEmpty(b().rx)) << "another source";
  ASSERT_EQ(Post([&] {
              return fi_tsend(c().ep, sent_by_c.data(), 8, sent_by_c.desc(),
                              Address(2, 1), 7, &contexts[2]);
            }),
            0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[0], 7, 8));
  EXPECT_EQ(from_c.bytes(), sent_by_c.bytes());
  ASSERT_EQ(ReceiveTagged(from_any, 7, 0, &contexts[1]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[1], 7, 8));
  EXPECT_EQ(from_any.bytes(), sent_by_a.bytes());
  ExpectSent(1);
  ExpectDone(c().tx, &contexts[2]);
}

CONFORMANCE_TEST(TaggedTest, CanceledReceiveMatchesNothing, 181, 182) {
  if (!OpenTagged()) {
    return;
  }
  Buffer sent(a(), 8);
  Buffer canceled(b(), 8);
  Buffer received(b(), 8);
  sent.Fill();
  fi_context2 contexts[2] = {};
  ASSERT_EQ(ReceiveTagged(canceled, 4, 0, &contexts[0]), 0);
  ASSERT_EQ(ReceiveTagged(received, 0, kAnyTag, &contexts[1]), 0);
  ASSERT_EQ(fi_cancel(&b().ep->fid, &contexts[0]), 0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_TRUE(completion->error);
  EXPECT_EQ(completion->failure.err, FI_ECANCELED);
  EXPECT_EQ(completion->failure.op_context, &contexts[0]);
  ASSERT_EQ(SendTagged(sent, 8, 4, NewContext()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[1], 4, 8));
  EXPECT_EQ(received.bytes(), sent.bytes());
  EXPECT_EQ(canceled.bytes(), std::vector<uint8_t>(8));
}

// --- FI_PEEK, FI_CLAIM, FI_DISCARD of fi_tagged(3).

CONFORMANCE_TEST(TaggedTest, PeekOfNothingIsNoMessage, 211) {
  if (!OpenTagged()) {
    return;
  }
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  fi_context2 contexts[2] = {};
  EXPECT_FALSE(Peek(0, kAnyTag, 0, &contexts[0]).has_value());
  // One that a receive has taken is not there, nor one of another tag.
  ASSERT_EQ(ReceiveTagged(received, 3, 0, &contexts[1]), 0);
  ASSERT_EQ(SendTagged(sent, 8, 3, NewContext()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[1], 3, 8));
  EXPECT_FALSE(Peek(0, kAnyTag, 0, &contexts[0]).has_value());
  ASSERT_EQ(SendTagged(sent, 8, 4, NewContext()), 0);
  EXPECT_TRUE(PeekUntilFound(4, 0, 0, &contexts[0]).has_value());
  EXPECT_FALSE(Peek(3, 0, 0, &contexts[0]).has_value());
  // A peek that found nothing is no receive.
  EXPECT_TRUE(StaysEmpty(b().rx));
}

CONFORMANCE_TEST(TaggedTest, PeekDescribesTheMessageAndLeavesIt, 211) {
  if (!OpenTagged()) {
    return;
  }
  for (const size_t bytes : {size_t{0}, size_t{100}, size_t{100'000}}) {
    Buffer sent(a(), bytes + 1);
    Buffer received(b(), bytes + 1);
    sent.Fill();
    fi_context2 contexts[2] = {};
    ASSERT_EQ(SendTagged(sent, bytes, 0x77, NewContext()), 0);
    for (int i = 0; i < 2; ++i) {
      const auto entry = PeekUntilFound(0x70, 0xf, 0, &contexts[0]);
      ASSERT_TRUE(entry.has_value()) << bytes;
      EXPECT_EQ(entry->tag, 0x77U);
      EXPECT_EQ(entry->len, bytes);
    }
    ASSERT_EQ(ReceiveTagged(received, 0x77, 0, &contexts[1]), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[1], 0x77, bytes));
    EXPECT_EQ(std::memcmp(received.data(), sent.data(), bytes), 0);
    EXPECT_FALSE(Peek(0, kAnyTag, 0, &contexts[0]).has_value());
    ExpectSent(1);
  }
}

CONFORMANCE_TEST(TaggedTest, ClaimedMessagesAreReceivedInAnyOrder, 211) {
  if (!OpenTagged()) {
    return;
  }
  // Two messages of one tag are claimed; the third is for others.
  constexpr size_t kMessages = 3;
  std::vector<std::unique_ptr<Buffer>> sent;
  for (uint32_t i = 0; i < kMessages; ++i) {
    sent.push_back(std::make_unique<Buffer>(a(), 1000 * (i + 1)));
    sent.back()->Fill(i);
    ASSERT_EQ(SendTagged(*sent.back(), sent.back()->size(), 6, NewContext()),
              0);
  }
  fi_context2 claims[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    const auto entry = PeekUntilFound(6, 0, FI_CLAIM, &claims[i]);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->len, sent.at(i)->size()) << "claimed already";
  }
  Buffer received(b(), 3000);
  fi_context2 context = {};
  ASSERT_EQ(ReceiveTagged(received, 0, kAnyTag, &context), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&context, 6, 3000));
  EXPECT_EQ(received.bytes(), sent.at(2)->bytes());
  for (const size_t i : {1U, 0U}) {
    Buffer own(b(), sent.at(i)->size());
    ASSERT_EQ(ReceiveByMessage(&own, 6, 0, FI_CLAIM, &claims[i]), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectTagged(&claims[i], 6, own.size()));
    EXPECT_EQ(own.bytes(), sent.at(i)->bytes());
  }
  EXPECT_FALSE(Peek(0, kAnyTag, 0, &context).has_value());
  ExpectSent(kMessages);
}

CONFORMANCE_TEST(TaggedTest, DiscardedMessageIsGone, 211) {
  if (!OpenTagged()) {
    return;
  }
  Buffer first(a(), 5000);
  Buffer second(a(), 8);
  Buffer received(b(), 5000);
  fi_context2 contexts[2] = {};
  ASSERT_EQ(SendTagged(first, 5000, 2, NewContext()), 0);
  ASSERT_EQ(SendTagged(second, 8, 2, NewContext()), 0);
  const auto entry = PeekUntilFound(2, 0, FI_DISCARD, &contexts[0]);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->len, 5000U);
  ASSERT_EQ(ReceiveTagged(received, 2, 0, &contexts[1]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&contexts[1], 2, 8));
  EXPECT_FALSE(Peek(0, kAnyTag, FI_DISCARD, &contexts[0]).has_value());
  ExpectSent(2);
}

CONFORMANCE_TEST(TaggedTest, ClaimedMessageCanBeDiscarded, 211) {
  if (!OpenTagged()) {
    return;
  }
  Buffer sent(a(), 64);
  Buffer received(b(), 64);
  fi_context2 claim = {};
  fi_context2 context = {};
  ASSERT_EQ(SendTagged(sent, 64, 2, NewContext()), 0);
  ASSERT_TRUE(PeekUntilFound(2, 0, FI_CLAIM, &claim).has_value());
  ASSERT_EQ(ReceiveByMessage(nullptr, 2, 0, FI_CLAIM | FI_DISCARD, &claim), 0);
  // fi_tagged(3) leaves open whether a discard has an entry of its own.
  (void)StaysEmpty(b().rx);
  for (const Completion& completion : b().rx.taken) {
    EXPECT_FALSE(completion.error);
    EXPECT_EQ(completion.entry.op_context, &claim);
  }
  b().rx.taken.clear();
  EXPECT_FALSE(Peek(0, kAnyTag, 0, &context).has_value());
  ASSERT_EQ(SendTagged(sent, 64, 2, NewContext()), 0);
  ASSERT_EQ(ReceiveTagged(received, 2, 0, &context), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectTagged(&context, 2, 64));
  ExpectSent(2);
}

// --- mem_tag_format.

int HighestBit(uint64_t value) {
  int bit = -1;
  for (; value != 0; value >>= 1U) {
    ++bit;
  }
  return bit;
}

// Lengths of the fields of a format, the last one first.
std::vector<int> Fields(uint64_t format) {
  std::vector<int> fields;
  bool value = false;
  for (int bit = 0; bit <= HighestBit(format); ++bit) {
    const bool next = ((format >> static_cast<unsigned>(bit)) & 1U) != 0;
    if (fields.empty() || next != value) {
      fields.push_back(0);
      value = next;
    }
    ++fields.back();
  }
  return fields;
}

CONFORMANCE_TEST(TaggedTest, FormatHasTheFieldsOfTheRequest, 209) {
  const Answer any = GetInfo(MakeHints(FI_TAGGED).get());
  if (any.result == -FI_ENODATA) {
    return NotOffered("FI_TAGGED");
  }
  ASSERT_FALSE(any.empty());
  for (const fi_info* info : any.own()) {
    EXPECT_NE(info->ep_attr->mem_tag_format, 0U);
  }
  for (const uint64_t format : {kGeneric, kGeneric >> 22U, uint64_t{0xff00},
                                uint64_t{0x00ffff00000000ff}, ~uint64_t{0}}) {
    const InfoPointer hints = MakeHints(FI_TAGGED);
    hints->ep_attr->mem_tag_format = format;
    const Answer answer = GetInfo(hints.get());
    if (answer.result != 0) {
      EXPECT_EQ(answer.result, -FI_ENODATA) << std::hex << format;
      continue;
    }
    for (const fi_info* info : answer.own()) {
      const uint64_t offered = info->ep_attr->mem_tag_format;
      EXPECT_GE(HighestBit(offered), HighestBit(format))
          << std::hex << format << ", answer " << offered;
      const std::vector<int> wanted = Fields(format);
      const std::vector<int> found = Fields(offered);
      // Fields of one bit leave the division to the application.
      if ((offered & (offered >> 1U)) == 0) {
        continue;
      }
      ASSERT_GE(found.size(), wanted.size())
          << std::hex << format << ", answer " << offered;
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_GE(found.at(i), wanted.at(i))
            << std::hex << format << ", answer " << offered;
      }
    }
  }
}

CONFORMANCE_TEST(TaggedTest, EveryBitOfTheFormatArrives, 209, 210) {
  if (!OpenTagged()) {
    return;
  }
  const int highest = HighestBit(a().info->ep_attr->mem_tag_format);
  ASSERT_GE(highest, 0);
  const uint64_t mask = kAnyTag >> static_cast<unsigned>(63 - highest);
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  fi_context2 context = {};
  for (const uint64_t tag :
       {mask, mask & 0xaaaaaaaaaaaaaaaa, mask & 0x5555555555555555,
        mask - (mask >> 1U), uint64_t{1}}) {
    ASSERT_EQ(ReceiveTagged(received, tag, 0, &context), 0);
    ASSERT_EQ(SendTagged(sent, 8, tag, NewContext()), 0);
    const auto completion = Take(b().rx);
    ASSERT_TRUE(completion.has_value()) << std::hex << tag;
    ASSERT_FALSE(completion->error) << std::hex << tag;
    // Bits beyond the format mean nothing.
    EXPECT_EQ(completion->entry.tag & mask, tag);
    ASSERT_NO_FATAL_FAILURE(ExpectSent(1));
  }
}

}  // namespace
}  // namespace heddle::conformance
