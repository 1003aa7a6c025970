// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/completion.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "host/lib/semantics/counter.h"
#include "tests/host/semantics/match_world.h"
#include "tests/seed.h"

namespace heddle::semantics {
namespace {

using contract::Completion;
using contract::CompletionKind;
using contract::Opcode;
using contract::ReturnCode;
using contract::Status;

TEST(Completions, TransmitEntryNamesTheOperationAndItsPeer) {
  contract::TxDesc descriptor;
  descriptor.opcode = Opcode::kWrite;
  descriptor.peer = 12;
  descriptor.op_context = 34;
  const Completion entry =
      TxCompletion(descriptor, {Status::kRemoteError, 0x1c, 0, 99}, {3, 5, 4});
  Completion expected;
  expected.kind = CompletionKind::kTx;
  expected.opcode = Opcode::kWrite;
  expected.peer = 12;
  expected.op_context = 34;
  expected.status = Status::kRemoteError;
  expected.detail = 0x1c;
  expected.message_length = 99;
  expected.context = 3;
  expected.position = 5;
  expected.queue_head = 4;
  EXPECT_EQ(entry, expected);
}

TEST(Completions, ReceiveEntryNamesItsSenderTagAndData) {
  const Completion entry =
      RxCompletion(34, {Opcode::kTaggedSend, SomeSource(3), 0x55, 0x66},
                   {Status::kTruncated, 0, 10, 20}, {1, 2, 3});
  Completion expected;
  expected.kind = CompletionKind::kRx;
  expected.opcode = Opcode::kTaggedSend;
  expected.op_context = 34;
  expected.source_fa_lo = SomeSource(3).address_lo;
  expected.source_fa_hi = SomeSource(3).address_hi;
  expected.peer = SomeSource(3).initiator;
  expected.match_bits = 0x55;
  expected.header_data = 0x66;
  expected.flags = contract::kCompletionFlagTagged |
                   contract::kCompletionFlagHeaderData |
                   contract::kCompletionFlagSourceIpv6;
  expected.status = Status::kTruncated;
  expected.length = 10;
  expected.message_length = 20;
  expected.context = 1;
  expected.position = 2;
  expected.queue_head = 3;
  EXPECT_EQ(entry, expected);
}

TEST(Completions, WhatAMessageDoesNotBringIsNotFlagged) {
  const Completion entry =
      RxCompletion(34, {Opcode::kSend, SomeSource(0), 0x55, std::nullopt},
                   {Status::kOk, 0, 10, 10}, {});
  EXPECT_EQ(entry.flags, 0U);
  EXPECT_EQ(entry.match_bits, 0U);
  EXPECT_EQ(entry.header_data, 0U);
}

TEST(Completions, CancelledReceiveHasNoContextAndNoSender) {
  const Completion entry =
      RxCompletion(34, {Opcode::kSend, SomeSource(0), 0, std::nullopt},
                   {Status::kCancelled, 0, 0, 0}, {1, 2, 3});
  EXPECT_EQ(entry.op_context, 0U);
  EXPECT_EQ(entry.peer, 0U);
  EXPECT_EQ(entry.position, 2U);
  EXPECT_EQ(entry.status, Status::kCancelled);
}

TEST(Completions, FailuresHaveAnEntryThatNobodyAskedFor) {
  EXPECT_TRUE(WantsCompletion(contract::kTxFlagCompletion, Status::kOk));
  EXPECT_FALSE(WantsCompletion(contract::kTxFlagFence, Status::kOk));
  EXPECT_TRUE(WantsCompletion(0, Status::kPeerUnreachable));
}

TEST(Completions, StatusAndReturnCodeMeanTheSame) {
  EXPECT_EQ(StatusOf(ReturnCode::kOk), Status::kOk);
  EXPECT_EQ(StatusOf(ReturnCode::kNull), Status::kOk);
  EXPECT_EQ(StatusOf(ReturnCode::kBadMkey), Status::kRemoteError);
  // Of a later contract.
  EXPECT_EQ(StatusOf(static_cast<ReturnCode>(0x30)), Status::kRemoteError);
  EXPECT_EQ(ReturnCodeOf(Status::kOk), ReturnCode::kOk);
  EXPECT_EQ(ReturnCodeOf(Status::kTruncated), ReturnCode::kOk);
  EXPECT_EQ(ReturnCodeOf(Status::kInitiatorError), ReturnCode::kInitiatorErr);
  EXPECT_EQ(ReturnCodeOf(Status::kLocalAccess), ReturnCode::kUncor);
}

TEST(CompletionRing, PhaseChangesWithEachPass) {
  CompletionRing ring(2);
  for (uint32_t i = 0; i < 12; ++i) {
    ASSERT_TRUE(ring.Reserve());
    const auto entry = ring.Produce();
    EXPECT_EQ(entry.index, i % 4);
    EXPECT_EQ(entry.phase, i / 4 % 2 == 0 ? 1 : 0);
    ASSERT_TRUE(ring.Consumed(i + 1));
  }
}

TEST(CompletionRing, RoomIsReservedOrUnreadOrFree) {
  CompletionRing ring(1);
  EXPECT_TRUE(ring.Reserve());
  EXPECT_TRUE(ring.Reserve());
  EXPECT_FALSE(ring.Reserve());
  (void)ring.Produce();
  EXPECT_FALSE(ring.Reserve()) << "an entry not read yet takes its room";
  ring.Unreserve();
  EXPECT_TRUE(ring.Reserve());
  EXPECT_TRUE(ring.Consumed(1));
  EXPECT_TRUE(ring.Reserve());
  EXPECT_FALSE(ring.Reserve());
}

TEST(CompletionRing, HostMayNotReadWhatWasNotProduced) {
  CompletionRing ring(3);
  ASSERT_TRUE(ring.Reserve());
  (void)ring.Produce();
  EXPECT_FALSE(ring.Consumed(2));
  EXPECT_FALSE(ring.Consumed(0xffffffff));
  EXPECT_EQ(ring.unread(), 1U);
  EXPECT_TRUE(ring.Consumed(1));
  EXPECT_TRUE(ring.Consumed(1));
  EXPECT_FALSE(ring.Consumed(0)) << "backwards";
}

TEST(CompletionRing, NeverOverwritesAnUnreadEntryUnderRandomUse) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  CompletionRing ring(4);
  std::vector<bool> unread(16, false);
  uint32_t produced = 0;
  uint32_t consumed = 0;
  uint32_t reserved = 0;
  for (uint32_t step = 0; step < 100000; ++step) {
    const uint32_t choice = random() % 4;
    if (choice == 0) {
      const bool room = reserved + produced - consumed < 16;
      ASSERT_EQ(ring.Reserve(), room);
      reserved += room ? 1 : 0;
    } else if (choice == 1 && reserved != 0) {
      const auto entry = ring.Produce();
      ASSERT_FALSE(unread[entry.index]);
      ASSERT_EQ(entry.index, produced % 16);
      unread[entry.index] = true;
      ++produced;
      --reserved;
    } else if (choice == 2 && consumed != produced) {
      unread[consumed % 16] = false;
      ASSERT_TRUE(ring.Consumed(++consumed));
    } else if (choice == 3 && reserved != 0 && random() % 4 == 0) {
      ring.Unreserve();
      --reserved;
    }
    ASSERT_EQ(ring.reserved(), reserved);
    ASSERT_EQ(ring.unread(), produced - consumed);
  }
}

TEST(Counter, CountsSuccessesAndErrorsApart) {
  Counter counter;
  counter.Count(Status::kOk);
  counter.Count(Status::kTruncated);
  counter.Add(10);
  counter.AddErrors(2);
  EXPECT_EQ(counter.value(), 11U);
  EXPECT_EQ(counter.errors(), 3U);
  counter.Set(~uint64_t{0});
  counter.SetErrors(0);
  counter.Count(Status::kOk);
  EXPECT_EQ(counter.value(), 0U);
  EXPECT_EQ(counter.errors(), 0U);
}

TEST(Counter, OperationsCountAsLibfabricSays) {
  EXPECT_EQ(CountedAtInitiator(Opcode::kSend), Counted::kSend);
  EXPECT_EQ(CountedAtInitiator(Opcode::kTaggedSend), Counted::kSend);
  EXPECT_EQ(CountedAtInitiator(Opcode::kRead), Counted::kRead);
  EXPECT_EQ(CountedAtInitiator(Opcode::kFetchingAtomic), Counted::kRead);
  EXPECT_EQ(CountedAtInitiator(Opcode::kWrite), Counted::kWrite);
  EXPECT_EQ(CountedAtInitiator(Opcode::kAtomic), Counted::kWrite);
  EXPECT_EQ(CountedAtInitiator(Opcode::kNop), Counted::kNothing);
}

}  // namespace
}  // namespace heddle::semantics
