// SPDX-License-Identifier: Apache-2.0
// Messages between two engines.
#include <algorithm>
#include <numeric>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"

namespace heddle::soft::engine {
namespace {

using contract::CompletionKind;
using contract::NackCode;
using contract::Opcode;
using contract::ReturnCode;
using contract::Status;
using contract::Table;
using contract::TxDesc;

class EngineSendTest : public testing::Test {
 protected:
  uint8_t* Filled(EngineNode& node, size_t bytes) {
    uint8_t* const data = node.Allocate(bytes);
    for (size_t i = 0; i < bytes; ++i) {
      data[i] = static_cast<uint8_t>(i * 31 + bytes);
    }
    return data;
  }
  void Run() { Settle(fabric_, {&a_, &b_}); }

  FakeFabric fabric_{TestSeed()};
  EngineNode a_{&fabric_};
  EngineNode b_{&fabric_};
};

TEST_F(EngineSendTest, AMessageArrivesWithItsNamesAndBothSidesAreTold) {
  const uint8_t* const data = Filled(a_, 100);
  uint8_t* const buffer = b_.Allocate(200);
  b_.Receive(buffer, 200, 0x1111);
  TxDesc send = EngineNode::Send(1, data, 100);
  send.op_context = 0x2222;
  send.flags |= contract::kTxFlagHeaderData;
  send.header_data = 0x3333;
  a_.Post(send);
  Run();

  const auto rx = b_.Poll(1);
  ASSERT_TRUE(rx.has_value());
  EXPECT_EQ(rx->kind, CompletionKind::kRx);
  EXPECT_EQ(rx->status, Status::kOk);
  EXPECT_EQ(rx->opcode, Opcode::kSend);
  EXPECT_EQ(rx->op_context, 0x1111u);
  EXPECT_EQ(rx->length, 100u);
  EXPECT_EQ(rx->message_length, 100u);
  EXPECT_EQ(rx->header_data, 0x3333u);
  EXPECT_EQ(rx->flags, contract::kCompletionFlagHeaderData);
  EXPECT_EQ(rx->source_fa_lo, 0u);
  EXPECT_EQ(rx->peer, uint32_t{EngineNode::kPid} << 12U);
  EXPECT_EQ(rx->queue_head, 1);
  EXPECT_EQ(rx->position, 0);
  EXPECT_TRUE(std::equal(data, data + 100, buffer));
  EXPECT_EQ(buffer[100], 0);

  const auto tx = a_.Poll(0);
  ASSERT_TRUE(tx.has_value());
  EXPECT_EQ(tx->kind, CompletionKind::kTx);
  EXPECT_EQ(tx->status, Status::kOk);
  EXPECT_EQ(tx->op_context, 0x2222u);
  EXPECT_EQ(tx->length, 100u);
  EXPECT_EQ(tx->peer, 1u);
  EXPECT_EQ(tx->queue_head, 1);
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_EQ(a_.engine().statistic(contract::Statistic::kTxMessages), 1u);
  EXPECT_EQ(b_.engine().statistic(contract::Statistic::kRxMessages), 1u);
}

TEST_F(EngineSendTest, EveryLengthAroundAPacketArrives) {
  uint8_t* const data = Filled(a_, 5000);
  uint8_t* const buffer = b_.Allocate(5000);
  for (const uint32_t length :
       {0U, 1U, 1023U, 1024U, 1025U, 2047U, 2048U, 2049U, 5000U}) {
    SCOPED_TRACE(length);
    std::fill_n(buffer, 5000, uint8_t{0});
    b_.Receive(buffer, 5000);
    a_.Post(EngineNode::Send(1, data, length));
    Run();
    const auto rx = b_.Poll(1);
    ASSERT_TRUE(rx.has_value());
    EXPECT_EQ(rx->length, length);
    EXPECT_TRUE(std::equal(data, data + length, buffer));
    ASSERT_TRUE(a_.Poll(0).has_value());
    const auto& posted = a_.carrier().posted.back();
    EXPECT_EQ(posted.packets, std::max(1U, (length + 1023) / 1024));
    EXPECT_TRUE(posted.name.ordered);
    EXPECT_EQ(posted.name.target_ri, 1);
    EXPECT_EQ(posted.name.job_id, EngineNode::kJob);
    EXPECT_EQ(posted.path.port, EngineNode::kPid);
  }
}

TEST_F(EngineSendTest, UnorderedContextsUsePdcsOfTheFunctionPair) {
  a_.tx.ordered = 0;
  a_.Write(Table::kTxCtx, 0, a_.tx);
  uint8_t* const data = Filled(a_, 9000);
  uint8_t* const buffer = b_.Allocate(9000);
  b_.Receive(buffer, 9000);
  a_.Post(EngineNode::Send(1, data, 9000));
  Run();
  ASSERT_TRUE(b_.Poll(1).has_value());
  EXPECT_TRUE(std::equal(data, data + 9000, buffer));
  const transport::PdcName& name = a_.carrier().posted.back().name;
  EXPECT_FALSE(name.ordered);
  EXPECT_EQ(name.job_id, 0u);
  EXPECT_EQ(name.target_ri, 0);
  EXPECT_TRUE(a_.Poll(0).has_value());
}

TEST_F(EngineSendTest, InlinePayloadComesFromTheRing) {
  uint8_t* const buffer = b_.Allocate(512);
  b_.Receive(buffer, 512);
  b_.Receive(buffer + 256, 256);
  TxDesc small = EngineNode::Send(1, nullptr, 0);
  small.flags |= contract::kTxFlagInline;
  small.length = 16;
  small.local_iova = 0x0807060504030201;
  small.local_length = 0x0c0b0a09;
  small.rsvd0 = 0x100f0e0d;
  a_.Post(small);
  std::vector<uint8_t> payload(192);
  std::iota(payload.begin(), payload.end(), uint8_t{7});
  TxDesc larger = EngineNode::Send(1, nullptr, 0);
  larger.flags |= contract::kTxFlagInlineExt;
  larger.length = 130;
  larger.ext_slots = 3;
  a_.Post(larger, payload);
  Run();
  ASSERT_TRUE(b_.Poll(1).has_value());
  ASSERT_TRUE(b_.Poll(1).has_value());
  for (uint8_t i = 0; i < 16; ++i) {
    EXPECT_EQ(buffer[i], i + 1);
  }
  EXPECT_TRUE(std::equal(payload.begin(), payload.begin() + 130, buffer + 256));
  EXPECT_EQ(buffer[256 + 130], 0);
  a_.Poll(0);
  const auto tx = a_.Poll(0);
  ASSERT_TRUE(tx.has_value());
  EXPECT_EQ(tx->queue_head, 5);
}

TEST_F(EngineSendTest, SegmentsAreGathered) {
  uint8_t* const data = Filled(a_, 4096);
  uint8_t* const buffer = b_.Allocate(4096);
  b_.Receive(buffer, 4096);
  std::array<contract::TxSegment, 4> segments = {};
  const std::array<uint32_t, 4> lengths = {1, 1500, 0, 700};
  uint32_t total = 0;
  std::vector<uint8_t> expected;
  for (size_t i = 0; i < 4; ++i) {
    const uint8_t* const from = data + 2000 - i * 500;
    segments[i] = {EngineNode::Iova(from), lengths[i], 0};
    expected.insert(expected.end(), from, from + lengths[i]);
    total += lengths[i];
  }
  TxDesc send = EngineNode::Send(1, nullptr, 0);
  send.length = total;
  send.segments = 4;
  send.ext_slots = 1;
  a_.Post(send, {reinterpret_cast<uint8_t*>(segments.data()), 64});
  Run();
  ASSERT_TRUE(b_.Poll(1).has_value());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), buffer));
  const auto tx = a_.Poll(0);
  ASSERT_TRUE(tx.has_value());
  EXPECT_EQ(tx->status, Status::kOk);
  EXPECT_EQ(tx->length, total);
}

TEST_F(EngineSendTest, LongerThanTheBufferIsTruncatedAndTheSenderSucceeds) {
  uint8_t* const data = Filled(a_, 3000);
  uint8_t* const buffer = b_.Allocate(3000);
  b_.Receive(buffer, 1500);
  b_.Receive(buffer, 10);
  b_.Receive(buffer, 0);
  a_.Post(EngineNode::Send(1, data, 3000));
  a_.Post(EngineNode::Send(1, data, 11));
  a_.Post(EngineNode::Send(1, data, 1));
  Run();
  for (const auto& [placed, length] :
       {std::pair{1500U, 3000U}, std::pair{10U, 11U}, std::pair{0U, 1U}}) {
    const auto rx = b_.Poll(1);
    ASSERT_TRUE(rx.has_value());
    EXPECT_EQ(rx->status, Status::kTruncated);
    EXPECT_EQ(rx->length, placed);
    EXPECT_EQ(rx->message_length, length);
    EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
  }
  EXPECT_EQ(buffer[1500], 0);
}

TEST_F(EngineSendTest, WithoutABufferTheMessageWaits) {
  uint8_t* const data = Filled(a_, 10);
  uint8_t* const buffer = b_.Allocate(10);
  a_.Post(EngineNode::Send(1, data, 10));
  Run();
  EXPECT_GT(fabric_.refusals[NackCode::kNoPktBuffer], 0u);
  EXPECT_FALSE(a_.Poll(0).has_value());
  EXPECT_FALSE(a_.engine().idle());
  b_.Receive(buffer, 10);
  Run();
  EXPECT_TRUE(b_.Poll(1).has_value());
  EXPECT_TRUE(a_.Poll(0).has_value());
}

TEST_F(EngineSendTest, WithoutAContextTheSenderIsTold) {
  uint8_t* const data = Filled(a_, 5000);
  for (const uint32_t length : {10U, 5000U}) {
    TxDesc send = EngineNode::Send(1, data, length);
    send.rx_index = 3;
    a_.Post(send);
    Run();
    const auto tx = a_.Poll(0);
    ASSERT_TRUE(tx.has_value());
    EXPECT_EQ(tx->status, Status::kRemoteError);
    EXPECT_EQ(tx->detail, static_cast<uint16_t>(ReturnCode::kBadIndex));
  }
  EXPECT_TRUE(a_.engine().idle());
}

TEST_F(EngineSendTest, ANameWithoutAContextIsAnsweredByItsUnknownPart) {
  b_.rx.flags = contract::kRxCtxFlagRelative;
  ASSERT_TRUE(b_.Write(Table::kRxCtx, 0, b_.rx));
  contract::RxCtxCfg absolute = b_.rx;
  absolute.flags = 0;
  absolute.pid_on_fep = EngineNode::kPid + 1;
  absolute.job_id = EngineNode::kJob + 1;
  ASSERT_TRUE(b_.Write(Table::kRxCtx, 1, absolute));
  uint8_t* const data = Filled(a_, 5000);
  struct Case {
    uint8_t flags;
    uint32_t job;
    uint16_t pid;
    uint16_t rx_index;
    ReturnCode code;
  };
  const uint8_t relative = contract::kTxCtxFlagRelative;
  constexpr uint32_t kJob = EngineNode::kJob;
  constexpr uint16_t kPid = EngineNode::kPid;
  for (const Case& c : {Case{0, kJob, kPid, 0, ReturnCode::kBadPid},
                        Case{0, kJob, kPid + 1, 1, ReturnCode::kBadIndex},
                        Case{relative, kJob + 1, kPid, 0,  // It has absolute
                             ReturnCode::kBadJobId},       // ones only.
                        Case{relative, kJob, kPid + 1, 0, ReturnCode::kBadPid},
                        Case{relative, kJob, kPid, 1, ReturnCode::kBadIndex}}) {
    a_.tx.flags = c.flags;
    a_.tx.job_id = c.job;
    a_.av[1].pid_on_fep = c.pid;
    a_.Write(Table::kTxCtx, 0, a_.tx);
    a_.Restart();
    for (const uint32_t length : {10U, 5000U}) {
      TxDesc send = EngineNode::Send(1, data, length);
      send.rx_index = c.rx_index;
      a_.Post(send);
      Run();
      const auto tx = a_.Poll(0);
      ASSERT_TRUE(tx.has_value()) << length;
      EXPECT_EQ(tx->status, Status::kRemoteError);
      EXPECT_EQ(tx->detail, static_cast<uint16_t>(c.code)) << length;
    }
  }
}

// Contexts 0 and 1 of the target have one place, 0 in the space that the sender
// names and 1 in another.
class EngineSpaceTest : public EngineSendTest {
 protected:
  void ExpectOwn(bool relative, bool ordered, uint8_t other_flags,
                 uint32_t other_job) {
    contract::RxCtxCfg other = b_.rx;
    other.flags = other_flags;
    other.job_id = other_job;
    if (relative) {
      b_.rx.flags = contract::kRxCtxFlagRelative;
      a_.tx.flags = contract::kTxCtxFlagRelative;
    }
    a_.tx.ordered = ordered ? a_.tx.ordered : uint8_t{0};
    ASSERT_TRUE(b_.Write(Table::kRxCtx, 0, b_.rx));
    ASSERT_TRUE(b_.Write(Table::kRxCtx, 1, other));
    ASSERT_TRUE(a_.Write(Table::kTxCtx, 0, a_.tx));
    uint8_t* const data = Filled(a_, 5000);
    uint8_t* const buffer = b_.Allocate(5000);
    b_.Receive(buffer, 5000);
    a_.Post(EngineNode::Send(1, data, 5000));
    Run();
    const auto rx = b_.Poll(1);
    ASSERT_TRUE(rx.has_value());
    EXPECT_EQ(rx->context, 0);
    ASSERT_TRUE(a_.Poll(0).has_value());
    EXPECT_TRUE(std::equal(data, data + 5000, buffer));
    // Functions that share an address may have the place, each for a job.
    const transport::PdcName& name = a_.carrier().posted.back().name;
    EXPECT_EQ(name.relative, relative);
    EXPECT_EQ(name.job_id, relative || ordered ? EngineNode::kJob : 0);
  }
};

TEST_F(EngineSpaceTest, AbsoluteOnes) {
  ExpectOwn(false, true, contract::kRxCtxFlagRelative, EngineNode::kJob);
}

TEST_F(EngineSpaceTest, RelativeOnesBesideAbsoluteOnes) {
  ExpectOwn(true, true, 0, EngineNode::kJob);
}

TEST_F(EngineSpaceTest, RelativeOnesOfTwoJobs) {
  ExpectOwn(true, false, contract::kRxCtxFlagRelative, EngineNode::kJob + 1);
}

TEST_F(EngineSendTest, WhatIsLeftOfARefusedMessageTakesNoBuffer) {
  a_.tx.ordered = 0;
  a_.Write(Table::kTxCtx, 0, a_.tx);
  contract::RxCtxCfg off = b_.rx;
  off.enable = 0;
  ASSERT_TRUE(b_.Write(Table::kRxCtx, 0, off));
  uint8_t* const data = Filled(a_, 5000);
  fabric_.hold_answers = true;
  a_.Post(EngineNode::Send(1, data, 5000));
  a_.engine().Progress(16);
  while (fabric_.errors == 0) {
    ASSERT_TRUE(fabric_.Step());
  }
  ASSERT_TRUE(b_.Write(Table::kRxCtx, 0, b_.rx));
  uint8_t* const buffer = b_.Allocate(5000);
  b_.Receive(buffer, 5000, 0x1111);
  Run();
  fabric_.hold_answers = false;
  Run();
  const auto tx = a_.Poll(0);
  ASSERT_TRUE(tx.has_value());
  EXPECT_EQ(tx->status, Status::kRemoteError);
  EXPECT_FALSE(b_.Poll(1).has_value());
  EXPECT_TRUE(a_.engine().idle());
  a_.Post(EngineNode::Send(1, data, 5000));
  Run();
  const auto rx = b_.Poll(1);
  ASSERT_TRUE(rx.has_value()) << "the buffer is taken";
  EXPECT_EQ(rx->status, Status::kOk);
  EXPECT_EQ(rx->op_context, 0x1111u);
  EXPECT_TRUE(std::equal(data, data + 5000, buffer));
}

TEST_F(EngineSendTest, AMessageGivenUpDoesNotWaitForABuffer) {
  TxDesc send = EngineNode::Send(1, nullptr, 10);
  send.local_iova = a_.Unmapped();
  a_.Post(send);
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kLocalAccess);
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_FALSE(b_.Poll(1).has_value());
}

TEST_F(EngineSendTest, OneGivenUpWhileItsBeginningWaitedTakesNoBuffer) {
  a_.tx.ordered = 0;
  a_.Write(Table::kTxCtx, 0, a_.tx);
  TxDesc send = EngineNode::Send(1, nullptr, 5000);
  send.local_iova = a_.Unmapped() - 1500;  // The second packet fails.
  a_.Post(send);
  Run();
  uint8_t* const buffer = b_.Allocate(5000);
  b_.Receive(buffer, 5000, 0x1111);
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kLocalAccess);
  EXPECT_FALSE(b_.Poll(1).has_value());
  a_.Restart();
  uint8_t* const data = Filled(a_, 5000);
  a_.Post(EngineNode::Send(1, data, 5000));
  Run();
  const auto rx = b_.Poll(1);
  ASSERT_TRUE(rx.has_value()) << "the buffer is taken";
  EXPECT_EQ(rx->status, Status::kOk);
  EXPECT_TRUE(std::equal(data, data + 5000, buffer));
}

TEST_F(EngineSendTest, AWrongJobIsAnsweredAndTakesNoBuffer) {
  a_.tx.job_id = EngineNode::kJob + 1;
  a_.Write(Table::kTxCtx, 0, a_.tx);
  uint8_t* const data = Filled(a_, 5000);
  uint8_t* const buffer = b_.Allocate(5000);
  b_.Receive(buffer, 5000);
  for (const uint32_t length : {10U, 5000U}) {
    a_.Post(EngineNode::Send(1, data, length));
    Run();
    const auto tx = a_.Poll(0);
    ASSERT_TRUE(tx.has_value()) << length;
    EXPECT_EQ(tx->status, Status::kRemoteError);
    EXPECT_EQ(tx->detail, static_cast<uint16_t>(ReturnCode::kBadJobId));
    EXPECT_EQ(tx->length, 0u);
    EXPECT_FALSE(b_.Poll(1).has_value());
  }
  EXPECT_EQ(buffer[0], 0);
  EXPECT_TRUE(a_.engine().idle());
}

TEST_F(EngineSendTest, PayloadThatCannotBeReadFailsBothSides) {
  uint8_t* const buffer = b_.Allocate(5000);
  for (const uint32_t length : {10U, 5000U}) {
    SCOPED_TRACE(length);
    a_.Write(Table::kTxCtx, 0, a_.tx);  // Out of its error.
    b_.Receive(buffer, 5000);
    TxDesc send = EngineNode::Send(1, nullptr, length);
    send.local_iova = a_.Unmapped();
    if (length > 1024) {
      send.local_iova -= 1500;  // The second packet fails.
    }
    send.position = 0;
    a_.Slot(0) = send;
    a_.Doorbell(contract::kTxPageFirst, 0, 1);
    Run();
    const auto tx = a_.Poll(0);
    ASSERT_TRUE(tx.has_value());
    EXPECT_EQ(tx->status, Status::kLocalAccess);
    const auto rx = b_.Poll(1);
    ASSERT_TRUE(rx.has_value());
    EXPECT_EQ(rx->status, Status::kInitiatorError);
    EXPECT_TRUE(a_.engine().idle());
  }
  EXPECT_EQ(a_.dma().blocked_reads(), 2u);
}

TEST_F(EngineSendTest, ABufferOutsideRegisteredMemoryIsNotTouched) {
  uint8_t* const data = Filled(a_, 3000);
  for (const uint32_t length : {8U, 3000U}) {
    b_.Receive(reinterpret_cast<void*>(b_.Unmapped() - 4), length);
    a_.Post(EngineNode::Send(1, data, length));
    Run();
    const auto rx = b_.Poll(1);
    ASSERT_TRUE(rx.has_value());
    EXPECT_EQ(rx->status, Status::kLocalAccess);
    EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
  }
  EXPECT_GT(b_.dma().blocked_writes(), 0u);
}

TEST_F(EngineSendTest, RefusedMemoryIsToldWhenThereIsRoomForTheAnswer) {
  fabric_.in_order = true;
  const uint8_t* const data = Filled(a_, 5000);
  for (const uint8_t ordered : {uint8_t{0xff}, uint8_t{0}}) {
    a_.tx.ordered = ordered;
    a_.Restart();
    auto* const buffer = reinterpret_cast<uint8_t*>(b_.Unmapped() - 2048);
    buffer[0] = 0;
    b_.Receive(buffer, 5000);
    TxDesc send = EngineNode::Send(1, data, 5000);
    send.flags |= contract::kTxFlagDeliveryComplete;
    a_.Post(send);
    a_.engine().Progress(16);
    while (buffer[0] == 0) {
      ASSERT_TRUE(fabric_.Step());
    }
    fabric_.refusals.clear();
    fabric_.guarantees = false;  // Other answers took the room meanwhile.
    Run();
    EXPECT_GT(fabric_.refusals[NackCode::kNoGtdDelAvail], 0u);
    EXPECT_FALSE(a_.Poll(0, /*consume=*/false).has_value());
    fabric_.guarantees = true;
    Run();
    const auto tx = a_.Poll(0);
    ASSERT_TRUE(tx.has_value());
    EXPECT_EQ(tx->status, Status::kRemoteError);
    EXPECT_EQ(tx->detail,
              static_cast<uint16_t>(ReturnCode::kHostUnsuccessCmpl));
    EXPECT_EQ(b_.Poll(1)->status, Status::kLocalAccess);
  }
}

class EngineGoneContextTest : public EngineSendTest,
                              public testing::WithParamInterface<bool> {
 protected:
  // Until something of the message is placed; then its context goes.
  void SendInto(uint8_t* buffer, uint8_t flags) {
    fabric_.in_order = true;
    a_.tx.ordered = GetParam() ? 0xff : 0;
    a_.Restart();
    b_.Receive(buffer, kBytes);
    TxDesc send = EngineNode::Send(1, Filled(a_, kBytes), kBytes);
    send.flags = static_cast<uint8_t>(send.flags | flags);
    a_.Post(send);
    a_.engine().Progress(16);
    fabric_.hold_answers = true;
    while (buffer[0] == 0) {
      ASSERT_TRUE(fabric_.Step());
    }
    contract::RxCtxCfg off = b_.rx;
    off.enable = 0;
    ASSERT_TRUE(b_.Write(Table::kRxCtx, 0, off));
    std::fill_n(buffer, kBytes, uint8_t{0});
    fabric_.hold_answers = false;
  }
  static constexpr uint32_t kBytes = 5000;
};

TEST_P(EngineGoneContextTest, WhatAsksForDeliveryEndsAsIfNoneHadBeenThere) {
  uint8_t* const buffer = b_.Allocate(kBytes);
  ASSERT_NO_FATAL_FAILURE(SendInto(buffer, contract::kTxFlagDeliveryComplete));
  fabric_.guarantees = false;
  fabric_.refusals.clear();
  Run();
  EXPECT_GT(fabric_.refusals[NackCode::kNoGtdDelAvail], 0u);
  EXPECT_FALSE(a_.Poll(0, /*consume=*/false).has_value());
  fabric_.guarantees = true;
  Run();
  const auto tx = a_.Poll(0);
  ASSERT_TRUE(tx.has_value());
  EXPECT_EQ(tx->status, Status::kRemoteError);
  EXPECT_EQ(tx->detail, static_cast<uint16_t>(ReturnCode::kBadIndex));
  EXPECT_EQ(fabric_.errors, 1u) << "the rest is taken for nothing";
  EXPECT_FALSE(b_.Poll(1).has_value());
  EXPECT_EQ(std::count(buffer, buffer + kBytes, 0), kBytes);
  EXPECT_TRUE(a_.engine().idle());
}

TEST_P(EngineGoneContextTest, WhatDoesNotIsTakenForNothing) {
  uint8_t* const buffer = b_.Allocate(kBytes);
  ASSERT_NO_FATAL_FAILURE(SendInto(buffer, 0));
  Run();
  const auto tx = a_.Poll(0);
  ASSERT_TRUE(tx.has_value());
  EXPECT_EQ(tx->status, Status::kOk);
  EXPECT_FALSE(b_.Poll(1).has_value());
  EXPECT_EQ(std::count(buffer, buffer + kBytes, 0), kBytes);
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineGoneContextTest, testing::Bool());

}  // namespace
}  // namespace heddle::soft::engine
