// SPDX-License-Identifier: Apache-2.0
// Receive contexts that match: messages before and after their receives.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"
#include "tests/soft/engine/match_ring.h"

namespace heddle::soft::engine {
namespace {

using contract::Completion;
using contract::CompletionKind;
using contract::MatchDesc;
using contract::MatchOp;
using contract::NackCode;
using contract::Opcode;
using contract::Statistic;
using contract::Status;
using contract::TxDesc;

constexpr uint64_t kAll = ~uint64_t{0};

// Ordered and unordered contexts.
class EngineMatchTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr uint32_t kBytes = 64 * 1024;

  EngineMatchTest() {
    a_.tx.ordered = GetParam() ? 0xff : 0;
    a_.Restart();
    fabric_.in_order = true;
    for (uint32_t i = 0; i < kBytes; ++i) {
      data_[i] = static_cast<uint8_t>(i * 7 + i / 256);
    }
  }
  void Run() { Settle(fabric_, {&a_, &b_, &c_}); }
  void Send(uint64_t tag, uint32_t length, uint32_t from = 0) {
    a_.Post(TaggedSend(1, data_ + from, length, tag));
    Run();
  }
  // Completions of `b_` in their order.
  std::vector<Completion> Done() {
    std::vector<Completion> done;
    while (const auto entry = b_.Poll(1)) {
      done.push_back(*entry);
    }
    return done;
  }
  Completion One() {
    const std::vector<Completion> done = Done();
    EXPECT_EQ(done.size(), 1u);
    return done.empty() ? Completion{} : done.front();
  }
  void ExpectPlaced(const uint8_t* buffer, uint32_t length,
                    uint32_t from = 0) const {
    EXPECT_TRUE(std::equal(buffer, buffer + length, data_ + from));
  }

  FakeFabric fabric_{TestSeed()};
  EngineNode a_{&fabric_};
  EngineNode b_{&fabric_};
  EngineNode c_{&fabric_};
  MatchRing ring_{&b_, {}};
  uint8_t* data_ = a_.Allocate(kBytes);
  uint8_t* buffer_ = b_.Allocate(kBytes);
  uint8_t* other_ = b_.Allocate(kBytes);
};

INSTANTIATE_TEST_SUITE_P(Ordered, EngineMatchTest, testing::Bool(),
                         [](const auto& param_info) {
                           return param_info.param ? "Rod" : "Rud";
                         });

TEST_P(EngineMatchTest, AMessageGoesToTheReceiveOfItsTagWithItsNames) {
  ring_.Post(MatchRing::Receive(other_, 100, 6), 0x66);
  ring_.Post(MatchRing::Receive(buffer_, 100, 5), 0x55);
  EXPECT_EQ(*ring_.head, 2u);
  TxDesc send = TaggedSend(1, data_, 90, 5);
  send.flags |= contract::kTxFlagHeaderData;
  send.header_data = 0x3333;
  a_.Post(send);
  Run();
  const Completion rx = One();
  EXPECT_EQ(rx.kind, CompletionKind::kRx);
  EXPECT_EQ(rx.status, Status::kOk);
  EXPECT_EQ(rx.opcode, Opcode::kTaggedSend);
  EXPECT_EQ(rx.op_context, 0x55u);
  EXPECT_EQ(rx.length, 90u);
  EXPECT_EQ(rx.message_length, 90u);
  EXPECT_EQ(rx.match_bits, 5u);
  EXPECT_EQ(rx.header_data, 0x3333u);
  EXPECT_EQ(rx.flags, contract::kCompletionFlagHeaderData |
                          contract::kCompletionFlagTagged);
  EXPECT_EQ(rx.source_fa_lo, 0u);
  EXPECT_EQ(rx.peer, uint32_t{EngineNode::kPid} << 12U);
  EXPECT_EQ(OffsetOf(rx), 0u);
  ExpectPlaced(buffer_, 90);
  EXPECT_EQ(buffer_[90], 0);
  const auto tx = a_.Poll(0);
  ASSERT_TRUE(tx.has_value());
  EXPECT_EQ(tx->status, Status::kOk);
  EXPECT_EQ(b_.engine().statistic(Statistic::kRxUnexpected), 0u);
  EXPECT_EQ(b_.engine().statistic(Statistic::kRxMessages), 1u);
}

TEST_P(EngineMatchTest, EachLengthArrivesBeforeAndAfterItsReceive) {
  for (const uint32_t length :
       {0U, 1U, 64U, 1023U, 1024U, 1025U, 2049U, 30000U}) {
    for (const bool before : {false, true}) {
      SCOPED_TRACE(testing::Message() << length << " before " << before);
      std::fill_n(buffer_, kBytes, uint8_t{0});
      if (before) {
        Send(9, length, 3);
        ASSERT_TRUE(a_.Poll(0).has_value());
        EXPECT_TRUE(Done().empty());
      }
      ring_.Post(MatchRing::Receive(buffer_, kBytes, 9), length);
      if (!before) {
        Send(9, length, 3);
        ASSERT_TRUE(a_.Poll(0).has_value());
      }
      const Completion rx = One();
      EXPECT_EQ(rx.status, Status::kOk);
      EXPECT_EQ(rx.length, length);
      EXPECT_EQ(rx.op_context, length);
      EXPECT_EQ(rx.match_bits, 9u);
      ExpectPlaced(buffer_, length, 3);
      EXPECT_EQ(buffer_[length], 0);
    }
  }
  EXPECT_EQ(b_.engine().statistic(Statistic::kRxUnexpected), 8u);
}

TEST_P(EngineMatchTest, TheFirstMessageAndTheFirstReceiveThatMatchMeet) {
  Send(1, 10, 0);
  Send(2, 20, 100);
  Send(2, 21, 200);
  ring_.Post(MatchRing::Receive(buffer_, 50, 2), 1);
  ring_.Post(MatchRing::Receive(buffer_ + 50, 50, 0, kAll), 2);
  ring_.Post(MatchRing::Receive(buffer_ + 100, 50, 0, kAll), 3);
  ring_.Post(MatchRing::Receive(buffer_ + 150, 50, 0, kAll), 4);
  ring_.Post(MatchRing::Receive(buffer_ + 200, 50, 7), 5);
  Send(7, 30, 300);
  Send(7, 31, 400);
  const std::vector<Completion> done = Done();
  ASSERT_EQ(done.size(), 5u);
  const std::vector<std::pair<uint64_t, uint32_t>> expected = {
      {1, 20}, {2, 10}, {3, 21}, {4, 30}, {5, 31}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(done[i].op_context, expected[i].first);
    EXPECT_EQ(done[i].length, expected[i].second);
  }
}

TEST_P(EngineMatchTest, TheSourceCountsWithoutTheFlagForAny) {
  c_.tx.ordered = a_.tx.ordered;
  c_.Restart();
  uint8_t* const theirs = c_.Allocate(64);
  MatchDesc directed = MatchRing::Receive(buffer_, 64, 3);
  directed.flags = 0;
  directed.source_fa_lo = 2;  // c_
  directed.initiator = uint32_t{EngineNode::kPid} << 12U;
  ring_.Post(directed, 1);
  ring_.Post(MatchRing::Receive(other_, 64, 3), 2);
  Send(3, 11);
  c_.Post(TaggedSend(1, theirs, 12, 3));
  Run();
  const std::vector<Completion> done = Done();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].op_context, 2u);
  EXPECT_EQ(done[0].source_fa_lo, 0u);
  EXPECT_EQ(done[1].op_context, 1u);
  EXPECT_EQ(done[1].source_fa_lo, 2u);
  // One of the same address, and another endpoint.
  directed.source_fa_lo = 0;
  directed.initiator = 1;
  ring_.Post(directed, 3);
  Send(3, 13);
  EXPECT_TRUE(Done().empty());
}

TEST_P(EngineMatchTest, LongerMessagesAreCutBeforeAndAfterTheirReceive) {
  for (const uint32_t length : {40U, 5000U}) {
    for (const bool before : {false, true}) {
      SCOPED_TRACE(testing::Message() << length << " before " << before);
      std::fill_n(buffer_, kBytes, uint8_t{0});
      if (before) {
        Send(1, length);
      }
      ring_.Post(MatchRing::Receive(buffer_, 33, 1), 8);
      if (!before) {
        Send(1, length);
      }
      const Completion rx = One();
      EXPECT_EQ(rx.status, Status::kTruncated);
      EXPECT_EQ(rx.length, 33u);
      EXPECT_EQ(rx.message_length, length);
      ExpectPlaced(buffer_, 33);
      EXPECT_EQ(buffer_[33], 0);
      const auto tx = a_.Poll(0);
      ASSERT_TRUE(tx.has_value());
      EXPECT_EQ(tx->status, Status::kOk);
    }
  }
}

TEST_P(EngineMatchTest, AReceiveTakesAMessageThatIsStillArriving) {
  a_.Post(TaggedSend(1, data_, 20000, 1));
  a_.engine().Progress(1);
  while (b_.engine().statistic(Statistic::kRxUnexpected) == 0) {
    ASSERT_TRUE(fabric_.Step());
  }
  ring_.Post(MatchRing::Receive(buffer_, 15000, 1), 8);
  EXPECT_TRUE(Done().empty());
  Run();
  const Completion rx = One();
  EXPECT_EQ(rx.status, Status::kTruncated);
  EXPECT_EQ(rx.length, 15000u);
  EXPECT_EQ(rx.message_length, 20000u);
  ExpectPlaced(buffer_, 15000);
  EXPECT_EQ(buffer_[15000], 0);
}

TEST_P(EngineMatchTest, TheSpacesOfAnRiAreApart) {
  MatchRing sends(&b_, {.context = 1, .tagged = false});
  ring_.Post(MatchRing::Receive(buffer_, 64, 0, kAll), 1);
  sends.Post(MatchRing::Receive(other_, 64, 0), 2);
  a_.Post(EngineNode::Send(1, data_, 10));
  Run();
  Completion rx = One();
  EXPECT_EQ(rx.op_context, 2u);
  EXPECT_EQ(rx.opcode, Opcode::kSend);
  EXPECT_EQ(rx.flags, 0);
  EXPECT_EQ(rx.context, 1);
  Send(4, 11);
  rx = One();
  EXPECT_EQ(rx.op_context, 1u);
  EXPECT_EQ(rx.context, 0);
  // Early ones, too.
  a_.Post(EngineNode::Send(1, data_, 12));
  Run();
  ring_.Post(MatchRing::Op(MatchOp::kPeek, 0, kAll), 3);
  EXPECT_EQ(One().status, Status::kNoMessage);
  sends.Post(MatchRing::Receive(other_, 64, 0), 4);
  EXPECT_EQ(One().length, 12u);
}

TEST_P(EngineMatchTest, PlainContextsServeSendsBesideTaggedOnes) {
  EngineNode d(&fabric_);
  MatchRing tags(&d, {.context = 1});
  uint8_t* const plain = d.Allocate(64);
  d.Receive(plain, 64, 7);
  tags.Post(MatchRing::Receive(plain, 64, 1), 8);
  a_.Post(EngineNode::Send(3, data_, 10));
  a_.Post(TaggedSend(3, data_, 11, 1));
  Settle(fabric_, {&a_, &d});
  const auto first = d.Poll(1);
  const auto second = d.Poll(1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->op_context + second->op_context, 15u);
  const Completion& sent = first->op_context == 7 ? *first : *second;
  EXPECT_EQ(sent.length, 10u);
  EXPECT_EQ(sent.queue_head, 1);
}

TEST_P(EngineMatchTest, ATaggedSendWithoutAContextOfTagsIsRefused) {
  a_.Post(TaggedSend(2, data_, 10, 1));
  a_.Post(TaggedSend(2, data_, 5000, 1));
  Run();
  for (int i = 0; i < 2; ++i) {
    const auto tx = a_.Poll(0);
    ASSERT_TRUE(tx.has_value());
    EXPECT_EQ(tx->status, Status::kRemoteError);
    EXPECT_EQ(tx->detail,
              static_cast<uint8_t>(contract::ReturnCode::kBadIndex));
  }
}

TEST_P(EngineMatchTest, PeekShowsTheMessageAndLeavesIt) {
  ring_.Post(MatchRing::Op(MatchOp::kPeek, 1), 1);
  Completion rx = One();
  EXPECT_EQ(rx.status, Status::kNoMessage);
  EXPECT_EQ(rx.op_context, 1u);
  TxDesc send = TaggedSend(1, data_, 3000, 1);
  send.flags |= contract::kTxFlagHeaderData;
  send.header_data = 77;
  a_.Post(send);
  Run();
  for (uint64_t i = 0; i < 2; ++i) {
    ring_.Post(MatchRing::Op(MatchOp::kPeek, 0, kAll), 2 + i);
    rx = One();
    EXPECT_EQ(rx.status, Status::kOk);
    EXPECT_EQ(rx.op_context, 2 + i);
    EXPECT_EQ(rx.length, 0u);
    EXPECT_EQ(rx.message_length, 3000u);
    EXPECT_EQ(rx.match_bits, 1u);
    EXPECT_EQ(rx.header_data, 77u);
    EXPECT_EQ(rx.peer, uint32_t{EngineNode::kPid} << 12U);
  }
  ring_.Post(MatchRing::Receive(buffer_, 3000, 1), 4);
  EXPECT_EQ(One().length, 3000u);
}

TEST_P(EngineMatchTest, AClaimedMessageIsOfItsClaimAlone) {
  Send(1, 100);
  Send(1, 200, 100);
  ring_.Post(MatchRing::Op(MatchOp::kClaim, 1), 0xc1);
  EXPECT_EQ(One().message_length, 100u);
  ring_.Post(MatchRing::Op(MatchOp::kPeek, 1), 2);
  EXPECT_EQ(One().message_length, 200u);
  ring_.Post(MatchRing::Receive(other_, 500, 1), 3);
  EXPECT_EQ(One().length, 200u);
  // It is claimed once.
  ring_.Post(MatchRing::Op(MatchOp::kClaim, 1), 0xc2);
  EXPECT_EQ(One().status, Status::kNoMessage);
  MatchDesc receive = MatchRing::Receive(buffer_, 500, 99);
  receive.opcode = MatchOp::kReceiveClaimed;
  ring_.Post(receive, 0xc2);
  Completion rx = One();
  EXPECT_EQ(rx.status, Status::kNoMessage);
  EXPECT_EQ(rx.op_context, 0xc2u);
  ring_.Post(receive, 0xc1);
  rx = One();
  EXPECT_EQ(rx.status, Status::kOk);
  EXPECT_EQ(rx.length, 100u);
  EXPECT_EQ(rx.op_context, 0xc1u);
  ExpectPlaced(buffer_, 100);
  ring_.Post(receive, 0xc1);
  EXPECT_EQ(One().status, Status::kNoMessage);
}

TEST_P(EngineMatchTest, DiscardedMessagesAreGoneWithTheirRoom) {
  for (int i = 0; i < 100; ++i) {
    const uint32_t length = i % 2 == 0 ? 20000 : 10;
    Send(1, length);
    ASSERT_TRUE(a_.Poll(0).has_value());
    if (i % 4 < 2) {
      ring_.Post(MatchRing::Op(MatchOp::kDiscard, 1), 1);
    } else {
      ring_.Post(MatchRing::Op(MatchOp::kClaim, 1), 2);
      EXPECT_EQ(One().status, Status::kOk);
      ring_.Post(MatchRing::Op(MatchOp::kDiscardClaimed, 0), 2);
    }
    const Completion rx = One();
    EXPECT_EQ(rx.status, Status::kOk);
    EXPECT_EQ(rx.message_length, length);
    ring_.Post(MatchRing::Op(MatchOp::kPeek, 0, kAll), 3);
    EXPECT_EQ(One().status, Status::kNoMessage);
  }
  ring_.Post(MatchRing::Op(MatchOp::kDiscardClaimed, 0), 2);
  EXPECT_EQ(One().status, Status::kNoMessage);
}

TEST_P(EngineMatchTest, AMessageIsDiscardedWhileItArrives) {
  a_.Post(TaggedSend(1, data_, 20000, 1));
  a_.engine().Progress(1);
  while (b_.engine().statistic(Statistic::kRxUnexpected) == 0) {
    ASSERT_TRUE(fabric_.Step());
  }
  ring_.Post(MatchRing::Op(MatchOp::kDiscard, 1), 1);
  EXPECT_EQ(One().message_length, 20000u);
  // Another one has its place; the rest of the first one must not get there.
  Run();
  const std::vector<uint8_t> area(ring_.area, ring_.area + 256 * 1024);
  EXPECT_TRUE(Done().empty());
  const auto tx = a_.Poll(0);
  ASSERT_TRUE(tx.has_value());
  EXPECT_EQ(tx->status, Status::kOk);
  ring_.Post(MatchRing::Op(MatchOp::kPeek, 0, kAll), 3);
  EXPECT_EQ(One().status, Status::kNoMessage);
}

TEST_P(EngineMatchTest, ABufferTakesManyMessagesUntilTooLittleIsFree) {
  Send(1, 100, 0);
  MatchDesc many = MatchRing::Receive(buffer_, 500, 1);
  many.flags |= contract::kMatchFlagMultiRecv;
  many.min_free = 150;
  Send(1, 120, 100);
  ring_.Post(many, 0x11);
  Send(1, 0, 0);
  Send(1, 200, 220);  // Leaves 80.
  Send(1, 10, 0);     // Has to wait.
  const std::vector<Completion> done = Done();
  ASSERT_EQ(done.size(), 4u);
  const uint32_t offsets[] = {0, 100, 220, 220};
  const uint32_t lengths[] = {100, 120, 0, 200};
  for (size_t i = 0; i < done.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(done[i].op_context, 0x11u);
    EXPECT_EQ(OffsetOf(done[i]), offsets[i]);
    EXPECT_EQ(done[i].length, lengths[i]);
    EXPECT_EQ(done[i].flags & contract::kCompletionFlagBufferOffset,
              contract::kCompletionFlagBufferOffset);
    EXPECT_EQ((done[i].flags & contract::kCompletionFlagBufferReleased) != 0,
              i == 3);
  }
  ExpectPlaced(buffer_, 420);
  ring_.Post(MatchRing::Receive(other_, 100, 1), 0x12);
  EXPECT_EQ(One().length, 10u);
}

TEST_P(EngineMatchTest, AMessageBeyondABufferOfManyIsCutAndEndsIt) {
  MatchDesc many = MatchRing::Receive(buffer_, 70000, 1);
  many.length = 66000;
  many.flags |= contract::kMatchFlagMultiRecv;
  // Beyond 64 KiB: the offset has two halves.
  uint8_t* const large = b_.Allocate(70000);
  many.local_iova = EngineNode::Iova(large);
  ring_.Post(many, 1);
  Send(1, 65000);
  Send(1, 600);
  Send(1, 600);
  const std::vector<Completion> done = Done();
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(OffsetOf(done[2]), 65600u);
  EXPECT_EQ(done[2].length, 400u);
  EXPECT_EQ(done[2].status, Status::kTruncated);
  EXPECT_NE(done[2].flags & contract::kCompletionFlagBufferReleased, 0);
}

TEST_P(EngineMatchTest, CancelIsExact) {
  ring_.Post(MatchRing::Receive(buffer_, 64, 1), 0xf00000001);
  ring_.Post(MatchRing::Receive(buffer_, 64, 1), 0xf00000002);
  ring_.Post(MatchRing::Receive(buffer_, 64, 1), 0xf00000003);
  ring_.Cancel(2);
  Completion rx = One();
  EXPECT_EQ(rx.status, Status::kCancelled);
  EXPECT_EQ(rx.op_context, 0xf00000002u);
  EXPECT_EQ(rx.flags, 0);
  ring_.Cancel(2);
  ring_.Cancel(9);
  EXPECT_TRUE(Done().empty());
  Send(1, 10);
  EXPECT_EQ(One().op_context, 0xf00000001u);
  ring_.Cancel(1);
  EXPECT_TRUE(Done().empty());
  Send(1, 11);
  EXPECT_EQ(One().op_context, 0xf00000003u);
}

TEST_P(EngineMatchTest, ACancelledBufferOfManyIsReleasedOnce) {
  MatchDesc many = MatchRing::Receive(buffer_, 5000, 1);
  many.flags |= contract::kMatchFlagMultiRecv;
  ring_.Post(many, 1);
  ring_.Cancel(1);
  Completion rx = One();
  EXPECT_EQ(rx.status, Status::kCancelled);
  EXPECT_EQ(rx.flags, contract::kCompletionFlagBufferReleased);
  // While a message arrives its completion reports it.
  ring_.Post(many, 2);
  a_.Post(TaggedSend(1, data_, 4000, 1));
  a_.engine().Progress(1);
  fabric_.Step();
  while (fabric_.refusals.empty() && buffer_[0] == buffer_[1]) {
    ASSERT_TRUE(fabric_.Step());
  }
  ring_.Cancel(2);
  EXPECT_TRUE(Done().empty());
  Run();
  rx = One();
  EXPECT_EQ(rx.status, Status::kOk);
  EXPECT_EQ(rx.length, 4000u);
  EXPECT_EQ(rx.flags & (contract::kCompletionFlagBufferReleased |
                        contract::kCompletionFlagBufferOffset),
            contract::kCompletionFlagBufferReleased |
                contract::kCompletionFlagBufferOffset);
}

TEST_P(EngineMatchTest, DescriptorsWaitForAPlaceAndTheRingIsReleased) {
  MatchRing few(&b_, {.receives = 2});
  for (uint64_t i = 0; i < 5; ++i) {
    few.Put({.opcode = MatchOp::kReceive,
             .flags = contract::kMatchFlagAnySource,
             .length = 64,
             .op_context = i,
             .local_iova = EngineNode::Iova(buffer_ + 64 * i),
             .match_bits = 1});
  }
  few.Ring();
  EXPECT_EQ(few.waiting(), 3u);
  // One that waits in the ring is cancelled there.
  few.Cancel(3);
  Send(1, 10);
  const std::vector<Completion> done = Done();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].op_context, 0u);
  EXPECT_EQ(done[1].op_context, 3u);
  EXPECT_EQ(done[1].status, Status::kCancelled);
  EXPECT_EQ(few.waiting(), 1u);
  for (const uint64_t next : {1U, 2U, 4U}) {
    Send(1, 11);
    EXPECT_EQ(One().op_context, next);
    EXPECT_EQ(few.waiting(), 0u);
  }
}

TEST_P(EngineMatchTest, EachBadDescriptorHasOneCompletion) {
  const auto expect = [this](MatchDesc descriptor, Status status) {
    ring_.Post(descriptor, 0x77);
    const Completion rx = One();
    EXPECT_EQ(rx.status, status);
    EXPECT_EQ(rx.op_context, 0x77u);
    EXPECT_EQ(rx.flags & contract::kCompletionFlagBufferReleased, 0);
    EXPECT_EQ(ring_.waiting(), 0u);
  };
  Send(1, 10);
  const MatchDesc good = MatchRing::Receive(buffer_, 64, 1);
  MatchDesc bad = good;
  bad.opcode = static_cast<MatchOp>(6);
  expect(bad, Status::kBadOpcode);
  bad = good;
  bad.flags = 8 | contract::kMatchFlagAnySource;
  expect(bad, Status::kBadLength);
  bad = good;
  bad.length = 0;
  bad.flags |= contract::kMatchFlagMultiRecv;
  expect(bad, Status::kBadLength);
  bad = good;
  bad.min_free = 1;
  expect(bad, Status::kBadLength);
  bad = good;
  bad.opcode = MatchOp::kReceiveClaimed;
  bad.flags |= contract::kMatchFlagMultiRecv;
  expect(bad, Status::kBadLength);
  bad = good;
  bad.local_iova = b_.Unmapped();
  expect(bad, Status::kLocalAccess);  // And the message with it.
  MatchRing sends(&b_, {.context = 1, .tagged = false});
  sends.Post(MatchRing::Receive(buffer_, 64, 1), 0x78);
  EXPECT_EQ(One().status, Status::kBadLength);
  // A slot that the host did not write.
  ring_.Put(good);
  ring_.Slot(static_cast<uint16_t>(ring_.tail() - 1)).position += 1;
  ring_.Ring();
  const Completion rx = One();
  EXPECT_EQ(rx.status, Status::kBadPosition);
  EXPECT_EQ(rx.op_context, 0u);
  // The context continues.
  Send(1, 12);
  ring_.Post(good, 1);
  EXPECT_EQ(One().length, 12u);
}

TEST_P(EngineMatchTest, ARingThatCannotBeReadIsReported) {
  ring_.cfg.ring_base = b_.Unmapped();
  ring_.Write();
  ring_.Post(MatchRing::Receive(buffer_, 64, 1), 1);
  EXPECT_EQ(One().status, Status::kLocalAccess);
  EXPECT_EQ(ring_.waiting(), 0u);
}

TEST_P(EngineMatchTest, AnAreaThatRefusesFailsTheReceive) {
  ring_.cfg.unexpected_base = b_.Unmapped();
  ring_.Write();
  for (const uint32_t length : {100U, 5000U}) {
    SCOPED_TRACE(length);
    std::fill_n(buffer_, kBytes, uint8_t{0});
    Send(1, length);
    ring_.Post(MatchRing::Receive(buffer_, 6000, 1), 1);
    const Completion rx = One();
    EXPECT_EQ(rx.status, Status::kLocalAccess);
    EXPECT_EQ(rx.length, 0u);
    EXPECT_EQ(rx.message_length, length);
    EXPECT_EQ(buffer_[0], 0);
    // The sender learns of it if it requests delivery.
    ASSERT_TRUE(a_.Poll(0).has_value());
    TxDesc send = TaggedSend(1, data_, length, 2);
    send.flags |= contract::kTxFlagDeliveryComplete;
    a_.Post(send);
    Run();
    const auto tx = a_.Poll(0);
    ASSERT_TRUE(tx.has_value());
    EXPECT_EQ(tx->status, Status::kRemoteError);
    ring_.Post(MatchRing::Op(MatchOp::kDiscard, 2), 2);
    EXPECT_EQ(One().status, Status::kOk);
  }
  // Messages that find their receive do not need it.
  ring_.Post(MatchRing::Receive(buffer_, 6000, 1), 3);
  Send(1, 5000);
  EXPECT_EQ(One().status, Status::kOk);
}

TEST_P(EngineMatchTest, WithoutRoomForItAMessageComesAgain) {
  MatchRing small(&b_, {.area_bytes = 4096, .unexpected = 2});
  Send(1, 3000);
  Send(1, 3000);  // No room in the area.
  ASSERT_TRUE(a_.Poll(0).has_value());
  EXPECT_FALSE(a_.Poll(0).has_value());
  EXPECT_NE(fabric_.refusals[NackCode::kNoPktBuffer], 0u);
  small.Post(MatchRing::Receive(buffer_, 3000, 1), 1);
  Run();
  EXPECT_EQ(One().length, 3000u);
  ASSERT_TRUE(a_.Poll(0).has_value());
  // No room for headers.
  Send(1, 0);
  Send(1, 0);
  ASSERT_TRUE(a_.Poll(0).has_value());
  EXPECT_FALSE(a_.Poll(0).has_value());
  for (int i = 0; i < 3; ++i) {
    small.Post(MatchRing::Receive(buffer_, 3000, 1), 2);
    Run();
    EXPECT_EQ(One().status, Status::kOk);
  }
  // One longer than the area goes straight to its receive.
  small.Post(MatchRing::Receive(buffer_, kBytes, 1), 3);
  Send(1, 50000);
  EXPECT_EQ(One().length, 50000u);
}

TEST_P(EngineMatchTest, CompletionsWaitForRoomInTheirQueue) {
  EngineNode::Options options;
  options.cq_log2 = 2;
  EngineNode d(&fabric_, options);
  MatchRing ring(&d, {});
  uint8_t* const buffer = d.Allocate(4096);
  const auto send = [&](uint64_t tag, uint32_t length) {
    a_.Post(TaggedSend(3, data_, length, tag));
    Settle(fabric_, {&a_, &d});
  };
  for (uint32_t i = 0; i < 6; ++i) {
    send(1, i);
  }
  MatchDesc many = MatchRing::Receive(buffer, 4096, 1);
  many.flags |= contract::kMatchFlagMultiRecv;
  ring.Post(many, 1);
  ring.Post(MatchRing::Receive(buffer, 100, 2), 2);
  ring.Post(MatchRing::Op(MatchOp::kPeek, 9), 3);
  EXPECT_EQ(ring.waiting(), 2u);
  send(1, 6);  // After those that have not been matched.
  std::vector<Completion> done;
  for (int i = 0; i < 20; ++i) {
    if (const auto entry = d.Poll(1)) {
      done.push_back(*entry);
      Settle(fabric_, {&a_, &d});
    }
  }
  ASSERT_EQ(done.size(), 8u);
  for (uint32_t i = 0; i < 7; ++i) {
    // The peek does not wait for a message.
    const size_t at = i < 6 ? i : done[6].op_context == 3 ? 7 : 6;
    EXPECT_EQ(done[at].op_context, 1u);
    EXPECT_EQ(done[at].length, i);
  }
  EXPECT_EQ(ring.waiting(), 0u);
  send(2, 50);
  ASSERT_TRUE(d.Poll(1).has_value());
}

TEST_P(EngineMatchTest, ACancellationWaitsForRoomInItsQueue) {
  EngineNode::Options options;
  options.cq_log2 = 1;
  EngineNode d(&fabric_, options);
  MatchRing ring(&d, {.receives = 4});
  for (uint64_t i = 0; i < 4; ++i) {
    ring.Post(MatchRing::Receive(nullptr, 0, 1), i);
  }
  for (uint32_t i = 0; i < 4; ++i) {
    ring.Cancel(i);
  }
  // No further receive is taken meanwhile: what is owed stays bounded.
  ring.Post(MatchRing::Receive(nullptr, 0, 1), 4);
  EXPECT_EQ(ring.waiting(), 1u);
  for (uint64_t i = 0; i < 4; ++i) {
    const auto entry = d.Poll(1);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->op_context, i);
    EXPECT_EQ(entry->status, Status::kCancelled);
  }
  EXPECT_EQ(ring.waiting(), 0u);
  EXPECT_FALSE(d.Poll(1).has_value());
}

TEST_P(EngineMatchTest, ASenderThatDiesFailsClaimsAndLeavesNoPartOfAMessage) {
  Send(1, 100);  // Whole: it stays.
  ASSERT_TRUE(a_.Poll(0).has_value());
  const auto begin = [&](uint64_t tag) {
    const uint64_t before = b_.engine().statistic(Statistic::kRxUnexpected);
    a_.Post(TaggedSend(1, data_, 20000, tag));
    a_.engine().Progress(1);
    while (b_.engine().statistic(Statistic::kRxUnexpected) == before) {
      ASSERT_TRUE(fabric_.Step());
    }
  };
  begin(2);
  fabric_.Abandon(0, Status::kPeerUnreachable, 0);
  begin(3);
  ring_.Post(MatchRing::Op(MatchOp::kClaim, 3), 0xc);
  EXPECT_EQ(One().status, Status::kOk);
  fabric_.Abandon(0, Status::kPeerUnreachable, 0);
  begin(4);
  ring_.Post(MatchRing::Receive(buffer_, kBytes, 4), 0xd);
  fabric_.Abandon(0, Status::kPeerUnreachable, 0);
  Completion rx = One();
  EXPECT_EQ(rx.op_context, 0xdu);
  EXPECT_EQ(rx.status, Status::kInitiatorError);
  EXPECT_EQ(buffer_[0], 0);
  MatchDesc receive = MatchRing::Receive(buffer_, kBytes, 0);
  receive.opcode = MatchOp::kReceiveClaimed;
  ring_.Post(receive, 0xc);
  rx = One();
  EXPECT_EQ(rx.op_context, 0xcu);
  EXPECT_EQ(rx.status, Status::kInitiatorError);
  EXPECT_EQ(rx.length, 0u);
  EXPECT_EQ(buffer_[0], 0);
  ring_.Post(receive, 0xc);
  EXPECT_EQ(One().status, Status::kNoMessage) << "it was claimed once";
  ring_.Post(MatchRing::Op(MatchOp::kDiscard, 0, kAll), 1);
  EXPECT_EQ(One().message_length, 100u);
  ring_.Post(MatchRing::Op(MatchOp::kPeek, 0, kAll), 1);
  EXPECT_EQ(One().status, Status::kNoMessage);
}

TEST_P(EngineMatchTest, AClaimedPartOfAMessageGivesItsRoomBack) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t before = b_.engine().statistic(Statistic::kRxUnexpected);
    a_.Post(TaggedSend(1, data_, 20000, 1));
    a_.engine().Progress(1);
    while (b_.engine().statistic(Statistic::kRxUnexpected) == before) {
      ASSERT_TRUE(fabric_.Step()) << i;
    }
    ring_.Post(MatchRing::Op(MatchOp::kClaim, 1), 0xc);
    ASSERT_EQ(One().status, Status::kOk) << i;
    fabric_.Abandon(0, Status::kPeerUnreachable, 0);
    ASSERT_TRUE(a_.Poll(0).has_value());
    if (i % 2 == 0) {
      ring_.Post(MatchRing::Op(MatchOp::kDiscardClaimed, 0), 0xc);
      EXPECT_EQ(One().status, Status::kOk);
    } else {
      MatchDesc receive = MatchRing::Receive(buffer_, kBytes, 0);
      receive.opcode = MatchOp::kReceiveClaimed;
      ring_.Post(receive, 0xc);
      EXPECT_EQ(One().status, Status::kInitiatorError);
    }
  }
}

TEST_P(EngineMatchTest, ASenderThatCannotReadLeavesNoMessage) {
  TxDesc send = TaggedSend(1, data_, 3000, 1);
  send.local_iova = a_.Unmapped() - 1024;
  a_.Post(send);
  Run();
  ring_.Post(MatchRing::Op(MatchOp::kPeek, 0, kAll), 1);
  EXPECT_EQ(One().status, Status::kNoMessage);
  a_.Restart();
  ring_.Post(MatchRing::Receive(buffer_, kBytes, 1), 2);
  a_.Post(send);
  Run();
  const Completion rx = One();
  EXPECT_EQ(rx.status, Status::kInitiatorError);
  EXPECT_EQ(rx.op_context, 2u);
}

TEST_P(EngineMatchTest, AContextThatEndsForgetsAllAndTheNextBeginsAnew) {
  Send(1, 100);
  ring_.Post(MatchRing::Op(MatchOp::kClaim, 1), 0xc);
  EXPECT_EQ(One().status, Status::kOk);
  Send(1, 100);
  ring_.Post(MatchRing::Receive(buffer_, 64, 2), 1);
  a_.Post(TaggedSend(1, data_, 20000, 3));
  a_.engine().Progress(1);
  while (b_.engine().statistic(Statistic::kRxUnexpected) != 3) {
    ASSERT_TRUE(fabric_.Step());
  }
  ring_.Post(MatchRing::Receive(buffer_, kBytes, 3), 4);
  ring_.Disable();
  ring_.Post(MatchRing::Receive(buffer_, 64, 1), 5);
  ring_.Cancel(1);
  Run();
  ring_.Write();
  Run();
  EXPECT_TRUE(Done().empty());
  EXPECT_EQ(buffer_[0], 0);
  ring_.Post(MatchRing::Op(MatchOp::kPeek, 0, kAll), 1);
  EXPECT_EQ(One().status, Status::kNoMessage);
  while (a_.Poll(0)) {
  }
  a_.Restart();
  // All credit of the queue is back.
  for (int i = 0; i < 1100; ++i) {
    Send(1, 1);
    ring_.Post(MatchRing::Receive(buffer_, 64, 1), 1);
    ASSERT_EQ(One().status, Status::kOk);
    (void)a_.Poll(0);
  }
  b_.engine().Reset();
  ring_.Post(MatchRing::Receive(buffer_, 64, 1), 1);
  EXPECT_TRUE(Done().empty());
}

TEST_P(EngineMatchTest, CountersCountMessages) {
  contract::CounterCell* const cell = b_.Counter(2);
  ring_.cfg.counter_recv = 3;
  ring_.Write();
  Send(1, 100);
  EXPECT_EQ(cell->value, 0u);
  ring_.Post(MatchRing::Op(MatchOp::kPeek, 1), 1);
  EXPECT_EQ(cell->value, 0u);
  ring_.Post(MatchRing::Receive(buffer_, 64, 1), 1);
  EXPECT_EQ(cell->value + cell->errors, 1u);
  ring_.Post(MatchRing::Receive(buffer_, 64, 1), 1);
  Send(1, 10);
  EXPECT_EQ(cell->value + cell->errors, 2u);
}

}  // namespace
}  // namespace heddle::soft::engine
