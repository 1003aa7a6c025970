// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/initiator_message.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/host/semantics/below.h"
#include "tests/seed.h"

namespace heddle::semantics {
namespace {

using contract::Opcode;
using contract::ReturnCode;
using contract::Status;
using Data = InitiatorMessage::Data;
using Level = InitiatorMessage::Level;

InitiatorMessage Send(Level level, uint32_t packets = 2, bool copied = false) {
  return InitiatorMessage({Opcode::kSend, 20, packets, level, copied});
}

TEST(InitiatorMessage, TransmitCompleteNeedsEveryAckAndAnAnswer) {
  for (const Level level : {Level::kTransmit, Level::kDelivery}) {
    InitiatorMessage message = Send(level);
    EXPECT_EQ(message.delivery_complete(), level == Level::kDelivery);
    EXPECT_TRUE(message.Acknowledged(1));
    message.Answered(ReturnCode::kOk);
    EXPECT_FALSE(message.completion_due());
    EXPECT_FALSE(message.Acknowledged(2)) << "more than are in flight";
    EXPECT_TRUE(message.Acknowledged(1));
    EXPECT_TRUE(message.completion_due());
    EXPECT_TRUE(message.retired());
    EXPECT_EQ(message.outcome(), (Outcome{Status::kOk, 0, 20, 20}));
    InitiatorMessage unanswered = Send(level);
    EXPECT_TRUE(unanswered.Acknowledged(2));
    EXPECT_FALSE(unanswered.completion_due());
    unanswered.Answered(ReturnCode::kNull);
    EXPECT_TRUE(unanswered.completion_due()) << "a default response is success";
  }
}

TEST(InitiatorMessage, InjectCompletesAtOnceOnlyWithACopy) {
  InitiatorMessage copied = Send(Level::kInject, 1, true);
  EXPECT_TRUE(copied.completion_due());
  EXPECT_FALSE(copied.retired()) << "its slot is needed to send it again";
  EXPECT_TRUE(copied.Acknowledged(1));
  copied.Answered(ReturnCode::kOk);
  EXPECT_TRUE(copied.retired());
  EXPECT_FALSE(Send(Level::kInject, 1, false).completion_due());
  InitiatorMessage failed = Send(Level::kInject, 1, true);
  failed.Answered(ReturnCode::kBadIndex);
  EXPECT_FALSE(failed.completion_due()) << "not as a success";
  EXPECT_TRUE(failed.Acknowledged(1));
  EXPECT_TRUE(failed.completion_due());
  EXPECT_FALSE(Send(Level::kTransmit, 1, true).completion_due());
}

TEST(InitiatorMessage, ErrorCompletesWhenNothingCanComeAnyMore) {
  InitiatorMessage message = Send(Level::kTransmit);
  message.Answered(ReturnCode::kBadMkey);
  message.Answered(ReturnCode::kOk);
  EXPECT_TRUE(message.Acknowledged(1));
  EXPECT_FALSE(message.completion_due());
  EXPECT_TRUE(message.Acknowledged(1));
  EXPECT_TRUE(message.completion_due());
  EXPECT_EQ(message.outcome(),
            (Outcome{Status::kRemoteError,
                     static_cast<uint16_t>(ReturnCode::kBadMkey), 0, 20}));
}

TEST(InitiatorMessage, OwnErrorIsReportedAndNotThePeersEcho) {
  InitiatorMessage message = Send(Level::kTransmit, 1);
  message.Fail(Status::kLocalAccess, 0);
  message.Answered(ReturnCode::kInitiatorErr);
  EXPECT_TRUE(message.Acknowledged(1));
  EXPECT_EQ(message.outcome().status, Status::kLocalAccess);
}

TEST(InitiatorMessage, AbandonedOneEndsAtOnceAndAFinishedOneStaysAsItWas) {
  InitiatorMessage message = Send(Level::kTransmit);
  message.Abandon(Status::kPeerUnreachable, 0);
  EXPECT_TRUE(message.retired());
  EXPECT_EQ(message.outcome().status, Status::kPeerUnreachable);
  InitiatorMessage done = Send(Level::kTransmit, 1);
  EXPECT_TRUE(done.Acknowledged(1));
  done.Answered(ReturnCode::kOk);
  done.Abandon(Status::kPeerUnreachable, 0);
  EXPECT_EQ(done.outcome().status, Status::kOk);
}

TEST(InitiatorMessage, ReadCompletesWithItsLastByte) {
  InitiatorMessage read({Opcode::kRead, 20, 2, Level::kTransmit, false});
  read.Answered(ReturnCode::kOk);
  EXPECT_TRUE(read.Acknowledged(2));
  EXPECT_EQ(read.Returned(10, 10), Data::kPlace);
  EXPECT_FALSE(read.completion_due());
  EXPECT_EQ(read.Returned(10, 10), Data::kDiscard) << "came before";
  EXPECT_EQ(read.Returned(5, 10), Data::kMalformed);
  EXPECT_EQ(read.Returned(10, 11), Data::kMalformed);
  EXPECT_EQ(read.Returned(0xffffffff, 2), Data::kMalformed);
  EXPECT_EQ(read.Returned(0, 10), Data::kPlace);
  EXPECT_TRUE(read.completion_due());
  EXPECT_EQ(read.outcome(), (Outcome{Status::kOk, 0, 20, 20}));
  EXPECT_EQ(Send(Level::kTransmit).Returned(0, 1), Data::kMalformed);
}

TEST(InitiatorMessage, DataOfAFailedReadAreNotPlaced) {
  InitiatorMessage read({Opcode::kRead, 20, 2, Level::kTransmit, false});
  EXPECT_EQ(read.Returned(0, 10), Data::kPlace);
  read.Answered(ReturnCode::kBadAddr);
  EXPECT_EQ(read.Returned(10, 10), Data::kDiscard);
  EXPECT_FALSE(read.retired());
  EXPECT_TRUE(read.Acknowledged(2));
  EXPECT_TRUE(read.retired());
  EXPECT_EQ(read.outcome().length, 0U);
}

TEST(InitiatorMessage, RestartNeedsEverythingAnew) {
  InitiatorMessage read({Opcode::kRead, 20, 2, Level::kTransmit, false});
  EXPECT_EQ(read.Returned(0, 10), Data::kPlace);
  EXPECT_TRUE(read.Acknowledged(1));
  read.Answered(ReturnCode::kOk);
  read.Restart();
  EXPECT_TRUE(read.Acknowledged(2));
  EXPECT_EQ(read.Returned(10, 10), Data::kPlace);
  EXPECT_EQ(read.Returned(0, 10), Data::kPlace) << "again";
  EXPECT_FALSE(read.completion_due()) << "no answer yet";
  read.Answered(ReturnCode::kOk);
  EXPECT_TRUE(read.retired());
  EXPECT_EQ(read.outcome(), (Outcome{Status::kOk, 0, 20, 20}));
}

// Whatever the order of the events: due with the last, and due once it was.
TEST(InitiatorMessage, CompletesWithItsLastEventInRandomOrders) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (uint32_t round = 0; round < 5000; ++round) {
    const uint32_t packets = 1 + Below(random, 5);
    InitiatorMessage message(
        {Opcode::kRead, packets, packets, Level::kTransmit, false});
    uint32_t acks = packets;
    uint32_t returned = 0;  // Bit per byte.
    bool answered = false;
    const uint32_t all = (1U << packets) - 1;
    while (acks != 0 || returned != all || !answered) {
      ASSERT_FALSE(message.completion_due());
      const uint32_t choice = Below(random, 3);
      if (choice == 0 && acks != 0) {
        ASSERT_TRUE(message.Acknowledged(1));
        --acks;
      } else if (choice == 1) {
        const uint32_t byte = Below(random, packets);
        ASSERT_EQ(message.Returned(byte, 1),
                  (returned >> byte & 1U) == 0 ? Data::kPlace : Data::kDiscard);
        returned |= 1U << byte;
      } else if (choice == 2) {
        message.Answered(ReturnCode::kOk);
        answered = true;
      }
    }
    ASSERT_TRUE(message.completion_due());
    ASSERT_TRUE(message.retired());
  }
}

}  // namespace
}  // namespace heddle::semantics
