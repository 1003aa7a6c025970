// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/receive_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "tests/host/semantics/match_world.h"
#include "tests/seed.h"

namespace heddle::semantics {
namespace {

using PostStatus = ReceiveQueue::PostStatus;
using ArriveStatus = ReceiveQueue::ArriveStatus;
using FinishStatus = ReceiveQueue::FinishStatus;
using CancelStatus = ReceiveQueue::CancelStatus;
using PeekAction = ReceiveQueue::PeekAction;

constexpr ReceiveQueue::Limits kLimits = {8, 8, 1 << 20};

ReceiveSpec Plain(uint64_t tag, uint64_t op_context) {
  return {{tag, 0, true, {}}, op_context, 0x1000, 100, false, 0};
}

ReceiveSpec Multi(uint64_t op_context, uint64_t length, uint64_t min_free) {
  return {{0, 0, true, {}}, op_context, 0x1000, length, true, min_free};
}

Arrival Message(uint64_t tag, uint64_t message, uint64_t length = 10) {
  return {{tag, SomeSource(0)}, length, message, length};
}

TEST(ReceiveQueue, MessageGoesToTheReceiveThatWaits) {
  ReceiveQueue queue(kLimits, 1);
  EXPECT_EQ(queue.Post(Plain(5, 50)).status, PostStatus::kPosted);
  const auto answer = queue.Arrive(Message(5, 7));
  ASSERT_EQ(answer.status, ArriveStatus::kMatched);
  EXPECT_EQ(answer.delivery.op_context, 50U);
  EXPECT_EQ(answer.delivery.message, 7U);
  EXPECT_EQ(answer.delivery.address, 0x1000U);
  EXPECT_EQ(answer.delivery.room, 100U);
  EXPECT_EQ(queue.waiting(), 0U);
  EXPECT_EQ(queue.room(), 7U) << "held until it is finished";
  EXPECT_EQ(queue.Finish(answer.delivery.receive), FinishStatus::kReleased);
  EXPECT_EQ(queue.room(), 8U);
  EXPECT_EQ(queue.Finish(answer.delivery.receive), FinishStatus::kNotFound);
}

TEST(ReceiveQueue, ReceiveTakesTheOldestMessageThatItFits) {
  ReceiveQueue queue(kLimits, 1);
  EXPECT_EQ(queue.Arrive(Message(4, 6)).status, ArriveStatus::kUnexpected);
  EXPECT_EQ(queue.Arrive(Message(5, 7)).status, ArriveStatus::kUnexpected);
  EXPECT_EQ(queue.Arrive(Message(5, 8)).status, ArriveStatus::kUnexpected);
  const auto answer = queue.Post(Plain(5, 50));
  ASSERT_EQ(answer.status, PostStatus::kMatched);
  EXPECT_EQ(answer.delivery.message, 7U);
  EXPECT_EQ(queue.unexpected(), 2U);
  EXPECT_EQ(queue.waiting(), 0U);
}

TEST(ReceiveQueue, WhatIsFullRefusesAndChangesNothing) {
  ReceiveQueue queue({1, 1, 15}, 1);
  EXPECT_EQ(queue.Arrive(Message(5, 7, 16)).status, ArriveStatus::kRefused);
  EXPECT_EQ(queue.Arrive(Message(5, 7)).status, ArriveStatus::kUnexpected);
  EXPECT_EQ(queue.Arrive(Message(5, 8, 0)).status, ArriveStatus::kRefused);
  EXPECT_EQ(queue.Post(Plain(6, 60)).status, PostStatus::kPosted);
  EXPECT_EQ(queue.Post(Plain(5, 50)).status, PostStatus::kFull);
  EXPECT_EQ(queue.unexpected(), 1U) << "the message is still there";
  EXPECT_EQ(queue.Cancel(60), CancelStatus::kCancelled);
  EXPECT_EQ(queue.Post(Plain(5, 50)).status, PostStatus::kMatched);
}

TEST(ReceiveQueue, MultiReceiveGivesEachMessageTheNextBytes) {
  ReceiveQueue queue(kLimits, 1);
  EXPECT_EQ(queue.Post(Multi(9, 100, 20)).status, PostStatus::kPosted);
  const auto first = queue.Arrive(Message(0, 1, 50)).delivery;
  const auto second = queue.Arrive(Message(0, 2, 30)).delivery;
  const auto third = queue.Arrive(Message(0, 3, 5)).delivery;
  EXPECT_EQ(first.address, 0x1000U);
  EXPECT_EQ(second.address, 0x1000U + 50);
  EXPECT_EQ(second.room, 50U);
  // Exactly `min_free` were left: it stayed. Now fewer are.
  EXPECT_EQ(third.address, 0x1000U + 80);
  EXPECT_EQ(queue.waiting(), 0U);
  EXPECT_EQ(queue.Arrive(Message(0, 4, 1)).status, ArriveStatus::kUnexpected);
  // Released by the last to finish, whichever it is.
  EXPECT_EQ(queue.Finish(third.receive), FinishStatus::kHeld);
  EXPECT_EQ(queue.Finish(first.receive), FinishStatus::kHeld);
  EXPECT_EQ(queue.Finish(second.receive), FinishStatus::kReleased);
}

TEST(ReceiveQueue, MultiReceiveIsHeldWhileItWaitsForMore) {
  ReceiveQueue queue(kLimits, 1);
  EXPECT_EQ(queue.Post(Multi(9, 100, 20)).status, PostStatus::kPosted);
  const auto first = queue.Arrive(Message(0, 1, 50)).delivery;
  EXPECT_EQ(queue.Finish(first.receive), FinishStatus::kHeld);
  EXPECT_EQ(queue.Finish(first.receive), FinishStatus::kNotFound);
  EXPECT_EQ(queue.waiting(), 1U);
  const auto longer = queue.Arrive(Message(0, 2, 60)).delivery;
  EXPECT_EQ(longer.room, 50U) << "to be truncated";
  EXPECT_EQ(queue.Finish(longer.receive), FinishStatus::kReleased);
}

TEST(ReceiveQueue, MultiReceiveWithoutMinimumIsReleasedWhenItIsFull) {
  ReceiveQueue queue(kLimits, 1);
  EXPECT_EQ(queue.Post(Multi(9, 20, 0)).status, PostStatus::kPosted);
  const auto first = queue.Arrive(Message(0, 1, 19)).delivery;
  EXPECT_EQ(queue.waiting(), 1U);
  const auto second = queue.Arrive(Message(0, 2, 1)).delivery;
  EXPECT_EQ(queue.waiting(), 0U);
  EXPECT_EQ(queue.Finish(first.receive), FinishStatus::kHeld);
  EXPECT_EQ(queue.Finish(second.receive), FinishStatus::kReleased);
}

TEST(ReceiveQueue, MultiReceiveTakesTheMessagesThatAreThere) {
  ReceiveQueue queue(kLimits, 1);
  for (uint64_t i = 1; i <= 3; ++i) {
    (void)queue.Arrive(Message(0, i, 10));
  }
  const auto first = queue.Post(Multi(9, 20, 5));
  ASSERT_EQ(first.status, PostStatus::kMatched);
  EXPECT_EQ(first.delivery.message, 1U);
  const auto second = queue.MatchNext(first.delivery.receive);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->message, 2U);
  EXPECT_EQ(second->address, 0x1000U + 10);
  EXPECT_FALSE(queue.MatchNext(first.delivery.receive).has_value());
  EXPECT_EQ(queue.unexpected(), 1U);
}

TEST(ReceiveQueue, CancelWithdrawsOneReceiveOfTheContext) {
  ReceiveQueue queue(kLimits, 1);
  EXPECT_EQ(queue.Post(Plain(5, 50)).status, PostStatus::kPosted);
  EXPECT_EQ(queue.Post(Plain(6, 50)).status, PostStatus::kPosted);
  EXPECT_EQ(queue.Cancel(51), CancelStatus::kNotFound);
  EXPECT_EQ(queue.Cancel(50), CancelStatus::kCancelled);
  EXPECT_EQ(queue.Arrive(Message(5, 1)).status, ArriveStatus::kUnexpected)
      << "the first posted is the one withdrawn";
  EXPECT_EQ(queue.Arrive(Message(6, 2)).status, ArriveStatus::kMatched);
  EXPECT_EQ(queue.Cancel(50), CancelStatus::kNotFound)
      << "a receive that has its message completes as usual";
}

TEST(ReceiveQueue, CancelledMultiReceiveEndsBehindItsMessages) {
  ReceiveQueue queue(kLimits, 1);
  EXPECT_EQ(queue.Post(Multi(9, 100, 20)).status, PostStatus::kPosted);
  const auto first = queue.Arrive(Message(0, 1, 10)).delivery;
  const auto second = queue.Arrive(Message(0, 2, 10)).delivery;
  EXPECT_EQ(queue.Cancel(9), CancelStatus::kPending);
  EXPECT_EQ(queue.Arrive(Message(0, 3, 10)).status, ArriveStatus::kUnexpected);
  EXPECT_EQ(queue.Finish(first.receive), FinishStatus::kHeld);
  EXPECT_EQ(queue.Finish(second.receive), FinishStatus::kCancelled);
  EXPECT_EQ(queue.room(), 8U);
}

TEST(ReceiveQueue, PeekShowsTheMessageAndLeavesIt) {
  ReceiveQueue queue(kLimits, 1);
  const MatchRule rule = {5, 0, true, {}};
  EXPECT_FALSE(queue.Peek(rule, PeekAction::kLook, 0).has_value());
  (void)queue.Arrive(Message(5, 7, 33));
  for (int i = 0; i < 2; ++i) {
    const auto peeked = queue.Peek(rule, PeekAction::kLook, 0);
    ASSERT_TRUE(peeked.has_value());
    EXPECT_EQ(peeked->message, 7U);
    EXPECT_EQ(peeked->length, 33U);
    EXPECT_EQ(peeked->envelope.tag, 5U);
    EXPECT_EQ(peeked->envelope.source, SomeSource(0));
  }
}

TEST(ReceiveQueue, ClaimedMessageIsReceivedByItsContextOnly) {
  ReceiveQueue queue(kLimits, 1);
  const MatchRule rule = {5, 0, true, {}};
  (void)queue.Arrive(Message(5, 7));
  ASSERT_TRUE(queue.Peek(rule, PeekAction::kClaim, 99).has_value());
  EXPECT_FALSE(queue.Peek(rule, PeekAction::kLook, 0).has_value());
  EXPECT_EQ(queue.Post(Plain(5, 50)).status, PostStatus::kPosted);
  EXPECT_EQ(queue.ReceiveClaimed(Plain(0, 98)).status, PostStatus::kNotFound);
  const auto claimed = queue.ReceiveClaimed(Plain(0, 99));
  ASSERT_EQ(claimed.status, PostStatus::kMatched);
  EXPECT_EQ(claimed.delivery.message, 7U);
  EXPECT_EQ(queue.ReceiveClaimed(Plain(0, 99)).status, PostStatus::kNotFound);
  EXPECT_EQ(queue.Finish(claimed.delivery.receive), FinishStatus::kReleased);
}

TEST(ReceiveQueue, DropLeavesAMessageToItsClaim) {
  ReceiveQueue queue(kLimits, 1);
  const uint32_t dropped = queue.Keep(Message(5, 7));
  EXPECT_TRUE(queue.Drop(dropped));
  EXPECT_EQ(queue.unexpected(), 0U);
  const uint32_t claimed = queue.Keep(Message(5, 8));
  const MatchRule rule = {5, 0, true, {}};
  ASSERT_TRUE(queue.Peek(rule, PeekAction::kClaim, 99).has_value());
  EXPECT_FALSE(queue.Drop(claimed));
  const auto taken = queue.ReceiveClaimed(Plain(0, 99));
  ASSERT_EQ(taken.status, PostStatus::kMatched);
  EXPECT_EQ(taken.delivery.message, 8U);
  EXPECT_EQ(queue.unexpected(), 0U);
}

TEST(ReceiveQueue, DiscardTakesTheMessageOut) {
  ReceiveQueue queue(kLimits, 1);
  const MatchRule rule = {5, 0, true, {}};
  (void)queue.Arrive(Message(5, 7));
  (void)queue.Arrive(Message(5, 8));
  ASSERT_TRUE(queue.Peek(rule, PeekAction::kDiscard, 0).has_value());
  EXPECT_EQ(queue.unexpected(), 1U);
  ASSERT_TRUE(queue.Peek(rule, PeekAction::kClaim, 99).has_value());
  EXPECT_FALSE(queue.DiscardClaimed(98).has_value());
  EXPECT_EQ(queue.DiscardClaimed(99), 8U);
  EXPECT_EQ(queue.unexpected(), 0U);
}

TEST(ReceiveQueue, FlushEndsReceivesInOrderAndEveryMessage) {
  ReceiveQueue queue(kLimits, 1);
  EXPECT_EQ(queue.Post(Plain(5, 50)).status, PostStatus::kPosted);
  EXPECT_EQ(queue.Post(Multi(9, 100, 20)).status, PostStatus::kPosted);
  const auto under_way = queue.Arrive(Message(0, 1, 10)).delivery;
  (void)queue.Arrive(Message(6, 2));
  (void)queue.Arrive(Message(7, 3));
  (void)queue.Peek({6, 0, true, {}}, PeekAction::kClaim, 1);
  auto flushed = queue.FlushReceive();
  ASSERT_TRUE(flushed.has_value());
  EXPECT_EQ(flushed->op_context, 50U);
  EXPECT_EQ(flushed->status, CancelStatus::kCancelled);
  flushed = queue.FlushReceive();
  ASSERT_TRUE(flushed.has_value());
  EXPECT_EQ(flushed->op_context, 9U);
  EXPECT_EQ(flushed->status, CancelStatus::kPending);
  EXPECT_FALSE(queue.FlushReceive().has_value());
  EXPECT_EQ(queue.FlushMessage(), 3U);
  EXPECT_EQ(queue.FlushMessage(), 2U);
  EXPECT_FALSE(queue.FlushMessage().has_value());
  EXPECT_EQ(queue.Finish(under_way.receive), FinishStatus::kCancelled);
}

// Plain lists, walked from the front.
struct Model {
  struct Receive {
    ReceiveSpec spec;
    uint64_t used = 0;
  };
  std::deque<Receive> posted;
  std::deque<Arrival> messages;

  static bool Fits(const MatchRule& rule, const Envelope& message) {
    return (rule.tag & ~rule.ignore) == (message.tag & ~rule.ignore) &&
           (rule.any_source || rule.source == message.source);
  }
  // Bytes that the message gets; the receive leaves when it is used up.
  static Delivery Give(Receive& to, const Arrival& message) {
    const Delivery given = {0, to.spec.op_context, message.message,
                            to.spec.buffer + to.used, to.spec.length - to.used};
    to.used += std::min(given.room, message.length);
    return given;
  }
  static bool Spent(const Receive& receive) {
    const uint64_t left = receive.spec.length - receive.used;
    return !receive.spec.multi || left == 0 || left < receive.spec.min_free;
  }
  std::vector<Delivery> Post(const ReceiveSpec& spec) {
    std::vector<Delivery> given;
    Receive receive = {spec, 0};
    for (auto at = messages.begin(); at != messages.end();) {
      if (!Fits(spec.rule, at->envelope)) {
        ++at;
        continue;
      }
      given.push_back(Give(receive, *at));
      at = messages.erase(at);
      if (Spent(receive)) {
        return given;
      }
    }
    posted.push_back(receive);
    return given;
  }
  std::vector<Delivery> Arrive(const Arrival& message) {
    for (auto at = posted.begin(); at != posted.end(); ++at) {
      if (Fits(at->spec.rule, message.envelope)) {
        const Delivery given = Give(*at, message);
        if (Spent(*at)) {
          posted.erase(at);
        }
        return {given};
      }
    }
    messages.push_back(message);
    return {};
  }
};

void ExpectSame(const std::vector<Delivery>& got,
                const std::vector<Delivery>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].op_context, expected[i].op_context);
    ASSERT_EQ(got[i].message, expected[i].message);
    ASSERT_EQ(got[i].address, expected[i].address);
    ASSERT_EQ(got[i].room, expected[i].room);
  }
}

class Churn {
 public:
  explicit Churn(uint32_t seed)
      : random_(seed), queue_({64, 64, kNone}, seed) {}

  void Step(uint64_t name) {
    std::vector<Delivery> got;
    if (random_() % 2 == 0) {
      Post(name, &got);
    } else {
      const Arrival message = {RandomMessage(random_), random_() % 40, name, 0};
      if (queue_.unexpected() == 64) {
        return;
      }
      const auto answer = queue_.Arrive(message);
      ASSERT_NE(answer.status, ArriveStatus::kRefused);
      if (answer.status == ArriveStatus::kMatched) {
        got.push_back(answer.delivery);
      }
      ExpectSame(got, model_.Arrive(message));
    }
    under_way_.insert(under_way_.end(), got.begin(), got.end());
    for (const Delivery& delivery : got) {
      ++unfinished_[delivery.op_context];
    }
    Finish();
    Cancel();
    ASSERT_EQ(queue_.waiting(), model_.posted.size());
    ASSERT_EQ(queue_.unexpected(), model_.messages.size());
  }

 private:
  void Post(uint64_t name, std::vector<Delivery>* got) {
    const ReceiveSpec spec = {
        RandomRule(random_, 2), name,          name << 16U, random_() % 100,
        random_() % 3 == 0,     random_() % 30};
    const bool full = queue_.room() == 0;
    auto answer = queue_.Post(spec);
    ASSERT_EQ(answer.status == PostStatus::kFull, full);
    if (full) {
      return;
    }
    if (answer.status == PostStatus::kMatched) {
      got->push_back(answer.delivery);
      while (const auto next = queue_.MatchNext(answer.delivery.receive)) {
        got->push_back(*next);
      }
    }
    ExpectSame(*got, model_.Post(spec));
  }

  // One delivery, any; released exactly when it is the last of a receive that
  // no longer waits.
  void Finish() {
    if (under_way_.empty() || random_() % 3 == 0) {
      return;
    }
    const size_t which = random_() % under_way_.size();
    const Delivery done = under_way_[which];
    under_way_.erase(under_way_.begin() + static_cast<ptrdiff_t>(which));
    const bool waits = std::any_of(
        model_.posted.begin(), model_.posted.end(),
        [&](const auto& r) { return r.spec.op_context == done.op_context; });
    const bool last = --unfinished_[done.op_context] == 0;
    const bool cancelled = cancelled_.count(done.op_context) != 0;
    ASSERT_EQ(queue_.Finish(done.receive), waits || !last ? FinishStatus::kHeld
                                           : cancelled
                                               ? FinishStatus::kCancelled
                                               : FinishStatus::kReleased);
  }

  void Cancel() {
    if (model_.posted.empty() || random_() % 4 != 0) {
      return;
    }
    const size_t which = random_() % model_.posted.size();
    const uint64_t context = model_.posted[which].spec.op_context;
    model_.posted.erase(model_.posted.begin() + static_cast<ptrdiff_t>(which));
    const bool pending = unfinished_[context] != 0;
    cancelled_[context] = true;
    ASSERT_EQ(queue_.Cancel(context),
              pending ? CancelStatus::kPending : CancelStatus::kCancelled);
  }

  std::mt19937 random_;
  ReceiveQueue queue_;
  Model model_;
  std::vector<Delivery> under_way_;
  std::map<uint64_t, uint32_t> unfinished_;  // By context.
  std::map<uint64_t, bool> cancelled_;
};

TEST(ReceiveQueue, AgreesWithPlainListsUnderRandomChurn) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Churn churn(seed);
  for (uint32_t step = 1; step < 30000; ++step) {
    churn.Step(step);
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "step " << step;
  }
}

}  // namespace
}  // namespace heddle::semantics
