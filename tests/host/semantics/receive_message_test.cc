// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/receive_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/host/semantics/below.h"
#include "tests/seed.h"

namespace heddle::semantics {
namespace {

using Action = ReceiveMessage::Action;
using contract::ReturnCode;
using contract::Status;

constexpr uint32_t kMtu = 10;

// Packet `index` of a message.
MessagePacket Packet(uint32_t length, uint32_t index) {
  const uint32_t offset = index * kMtu;
  const uint32_t bytes = std::min(kMtu, length - offset);
  return {length, offset, bytes, index == 0, offset + bytes == length, false};
}

MessagePacket Unread(MessagePacket packet) {
  packet.ie = true;
  return packet;
}

TEST(ReceiveMessage, CompletesWithTheLastMissingPacketInAnyOrder) {
  ReceiveMessage message(35, 100);
  for (const uint32_t index : {3U, 0U, 2U}) {
    const auto verdict = message.Accept(Packet(35, index));
    EXPECT_EQ(verdict.action, Action::kAccepted);
    EXPECT_EQ(verdict.place_offset, index * kMtu);
    EXPECT_EQ(verdict.place_bytes, index == 3 ? 5U : kMtu);
    EXPECT_EQ(verdict.code, ReturnCode::kOk);
    EXPECT_FALSE(message.complete());
  }
  EXPECT_EQ(message.Accept(Packet(35, 1)).action, Action::kAccepted);
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(message.outcome(), (Outcome{Status::kOk, 0, 35, 35}));
  EXPECT_EQ(message.modified_length(), 35U);
}

TEST(ReceiveMessage, OfNoBytesIsOnePacket) {
  ReceiveMessage message(0, 0);
  EXPECT_FALSE(message.complete());
  EXPECT_EQ(message.Accept(Packet(0, 0)).action, Action::kAccepted);
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(message.Accept(Packet(0, 0)).action, Action::kDuplicate);
  EXPECT_EQ(message.outcome(), (Outcome{Status::kOk, 0, 0, 0}));
}

TEST(ReceiveMessage, DuplicateIsNotPlacedAgain) {
  ReceiveMessage message(20, 100);
  EXPECT_EQ(message.Accept(Packet(20, 0)).action, Action::kAccepted);
  const auto again = message.Accept(Packet(20, 0));
  EXPECT_EQ(again.action, Action::kDuplicate);
  EXPECT_EQ(again.place_bytes, 0U);
  EXPECT_FALSE(message.complete());
  EXPECT_EQ(message.outcome().length, 10U);
}

TEST(ReceiveMessage, LongerThanTheBufferIsCutAndStillTakesAllPackets) {
  ReceiveMessage message(35, 15);
  EXPECT_EQ(message.Accept(Packet(35, 0)).place_bytes, 10U);
  EXPECT_EQ(message.Accept(Packet(35, 1)).place_bytes, 5U);
  EXPECT_EQ(message.Accept(Packet(35, 2)).place_bytes, 0U);
  EXPECT_FALSE(message.complete());
  const auto last = message.Accept(Packet(35, 3));
  EXPECT_EQ(last.action, Action::kAccepted);
  EXPECT_EQ(last.code, ReturnCode::kOk) << "no error of the sender's";
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(message.outcome(), (Outcome{Status::kTruncated, 0, 15, 35}));
  EXPECT_EQ(message.modified_length(), 15U);
}

TEST(ReceiveMessage, LongerThanTheBufferIsRefusedWhereThatIsAsked) {
  ReceiveMessage message(20, 15, ReceiveMessage::Longer::kReject);
  const auto first = message.Accept(Packet(20, 0));
  EXPECT_EQ(first.action, Action::kAccepted);
  EXPECT_EQ(first.code, ReturnCode::kTooLong);
  EXPECT_EQ(first.place_bytes, 0U);
  EXPECT_EQ(message.Accept(Packet(20, 1)).code, ReturnCode::kTooLong);
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(message.outcome().status, Status::kTruncated);
  EXPECT_EQ(message.outcome().length, 0U);
  EXPECT_EQ(message.modified_length(), 0U);
  ReceiveMessage fits(20, 20, ReceiveMessage::Longer::kReject);
  EXPECT_EQ(fits.Accept(Packet(20, 0)).code, ReturnCode::kOk);
}

TEST(ReceiveMessage, PacketsThatContradictTheMessageChangeNothing) {
  const MessagePacket good = Packet(35, 1);
  std::vector<MessagePacket> bad(9, good);
  bad[0].request_length = 36;
  bad[1].som = true;
  bad[2].eom = true;
  bad[3].offset = 0;
  bad[4].length = 0;
  bad[5].length = 26;          // Beyond the end.
  bad[6].length = 25;          // To the end, without eom.
  bad[7].offset = 0xfffffff8;  // Wraps.
  bad[8].offset = 5;           // Bytes of packet 0 and others.
  ReceiveMessage message(35, 100);
  ASSERT_EQ(message.Accept(Packet(35, 0)).action, Action::kAccepted);
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(message.Accept(bad[i]).action, Action::kMalformed) << i;
  }
  for (const uint32_t index : {1U, 2U, 3U}) {
    EXPECT_EQ(message.Accept(Packet(35, index)).action, Action::kAccepted);
  }
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(message.outcome(), (Outcome{Status::kOk, 0, 35, 35}));
}

TEST(ReceiveMessage, SendersErrorPlacesNothingMoreAndWaitsForAllPackets) {
  ReceiveMessage message(35, 100);
  EXPECT_EQ(message.Accept(Packet(35, 0)).place_bytes, 10U);
  const auto second = message.Accept(Unread(Packet(35, 2)));
  EXPECT_EQ(second.action, Action::kAccepted);
  EXPECT_EQ(second.code, ReturnCode::kInitiatorErr);
  EXPECT_EQ(second.place_bytes, 0U);
  const auto third = message.Accept(Packet(35, 1));
  EXPECT_EQ(third.code, ReturnCode::kInitiatorErr);
  EXPECT_EQ(third.place_bytes, 0U);
  EXPECT_FALSE(message.complete());
  EXPECT_EQ(message.Accept(Unread(Packet(35, 3))).action, Action::kAccepted);
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(
      message.outcome(),
      (Outcome{Status::kInitiatorError,
               static_cast<uint16_t>(ReturnCode::kInitiatorErr), 10, 35}));
  EXPECT_EQ(message.modified_length(), 10U);
}

TEST(ReceiveMessage, SenderMayEndAFailedMessageEarly) {
  ReceiveMessage message(35, 100);
  MessagePacket end = Unread(Packet(35, 2));
  end.eom = true;
  end.length = 0;
  EXPECT_EQ(message.Accept(end).action, Action::kAccepted);
  EXPECT_EQ(message.Accept(end).action, Action::kDuplicate);
  EXPECT_FALSE(message.complete()) << "packets before it are on their way";
  EXPECT_EQ(message.Accept(Packet(35, 3)).action, Action::kMalformed);
  EXPECT_EQ(message.Accept(Unread(Packet(35, 1))).action, Action::kAccepted);
  EXPECT_EQ(message.Accept(Packet(35, 0)).action, Action::kAccepted);
  EXPECT_TRUE(message.complete());
  // As the only packet.
  ReceiveMessage only(35, 100);
  MessagePacket all = Unread(Packet(35, 0));
  all.eom = true;
  EXPECT_EQ(only.Accept(all).action, Action::kAccepted);
  EXPECT_TRUE(only.complete());
  // Not before bytes that have come.
  ReceiveMessage behind(35, 100);
  EXPECT_EQ(behind.Accept(Packet(35, 2)).action, Action::kAccepted);
  EXPECT_EQ(behind.Accept(end).action, Action::kMalformed);
}

TEST(ReceiveMessage, FirstErrorStays) {
  ReceiveMessage message(20, 100);
  message.Fail(Status::kLocalAccess, 3);
  EXPECT_EQ(message.code(), ReturnCode::kUncor);
  const auto verdict = message.Accept(Unread(Packet(20, 0)));
  EXPECT_EQ(verdict.code, ReturnCode::kUncor);
  message.Fail(Status::kDeviceFault, 4);
  EXPECT_EQ(message.Accept(Packet(20, 1)).place_bytes, 0U);
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(message.outcome(), (Outcome{Status::kLocalAccess, 3, 0, 20}));
}

TEST(ReceiveMessage, DiscardedMessageCompletesWithoutError) {
  ReceiveMessage message(20, 0);
  message.Discard();
  for (const uint32_t index : {0U, 1U}) {
    const auto verdict = message.Accept(Packet(20, index));
    EXPECT_EQ(verdict.code, ReturnCode::kOk);
    EXPECT_EQ(verdict.place_bytes, 0U);
  }
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(message.outcome().status, Status::kOk);
}

TEST(ReceiveMessage, WholeWindowWithEverySecondPacketFirstFits) {
  constexpr uint32_t kPackets = contract::kPdcWindow;
  ReceiveMessage message(kPackets * kMtu, kPackets * kMtu);
  for (uint32_t first = 0; first < 2; ++first) {
    for (uint32_t i = first == 0 ? 1 : 0; i < kPackets; i += 2) {
      ASSERT_EQ(message.Accept(Packet(kPackets * kMtu, i)).action,
                Action::kAccepted);
    }
  }
  EXPECT_TRUE(message.complete());
}

TEST(ReceiveMessage, MoreGapsThanAnySenderMakesAreRefused) {
  constexpr uint32_t kLength = 4000;
  ReceiveMessage message(kLength, kLength);
  for (uint32_t i = 0; i < ReceiveMessage::kRanges; ++i) {
    ASSERT_EQ(message.Accept(Packet(kLength, 1 + 2 * i)).action,
              Action::kAccepted);
  }
  EXPECT_EQ(message.Accept(Packet(kLength, 399)).action, Action::kFull);
  EXPECT_EQ(message.Accept(Packet(kLength, 2)).action, Action::kAccepted);
  EXPECT_EQ(message.Accept(Packet(kLength, 399)).action, Action::kAccepted);
}

TEST(ReceiveMessage, LargestMessageCompletes) {
  constexpr uint32_t kLength = contract::kMaxMessageBytes;
  ReceiveMessage message(kLength, kLength);
  EXPECT_EQ(message
                .Accept({kLength, 0x80000000, kLength - 0x80000000, false, true,
                         false})
                .action,
            Action::kAccepted);
  EXPECT_EQ(message.Accept({kLength, 0, 0x80000000, true, false, false}).action,
            Action::kAccepted);
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(message.outcome().length, kLength);
}

// A window of packets, some twice, in random order, against an array of bytes.
TEST(ReceiveMessage, PutsRandomMessagesTogetherByteForByte) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (uint32_t round = 0; round < 2000; ++round) {
    const uint32_t length = Below(random, kMtu * contract::kPdcWindow);
    const uint32_t room = Below(random, length + 20);
    const uint32_t packets = length == 0 ? 1 : (length + kMtu - 1) / kMtu;
    const uint32_t failing =
        Below(random, 4) == 0 ? Below(random, packets) : packets;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < packets; ++i) {
      order.insert(order.end(), 1 + Below(random, 2), i);
    }
    std::shuffle(order.begin(), order.end(), random);
    ReceiveMessage message(length, room);
    std::vector<uint8_t> buffer(room, 0);
    std::vector<bool> seen(packets, false);
    uint32_t missing = packets;
    bool failed = false;
    for (const uint32_t index : order) {
      ASSERT_EQ(message.complete(), missing == 0);
      MessagePacket packet = Packet(length, index);
      packet.ie = index >= failing;
      const auto verdict = message.Accept(packet);
      ASSERT_EQ(verdict.action,
                seen[index] ? Action::kDuplicate : Action::kAccepted);
      missing -= seen[index] ? 0 : 1;
      failed = failed || (packet.ie && !seen[index]);
      seen[index] = true;
      ASSERT_EQ(verdict.code,
                failed ? ReturnCode::kInitiatorErr : ReturnCode::kOk);
      ASSERT_TRUE(!failed || verdict.place_bytes == 0);
      for (uint32_t i = 0; i < verdict.place_bytes; ++i) {
        ++buffer.at(verdict.place_offset + i);
      }
    }
    ASSERT_TRUE(message.complete());
    const auto placed = std::count(buffer.begin(), buffer.end(), 1);
    ASSERT_EQ(message.outcome().length, static_cast<uint32_t>(placed));
    ASSERT_EQ(message.outcome().status, failed ? Status::kInitiatorError
                                        : length > room ? Status::kTruncated
                                                        : Status::kOk);
    if (!failed) {
      ASSERT_EQ(static_cast<uint32_t>(placed), std::min(length, room));
    }
    ASSERT_EQ(std::count(buffer.begin(), buffer.end(), 0) + placed, room)
        << "no byte twice";
  }
}

}  // namespace
}  // namespace heddle::semantics
