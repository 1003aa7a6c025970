// SPDX-License-Identifier: Apache-2.0
// Descriptors, credits, heads, doorbells: what the host sees of the queues.
#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"

namespace heddle::soft::engine {
namespace {

using contract::Opcode;
using contract::Status;
using contract::Table;
using contract::TxDesc;

class EngineRingTest : public testing::Test {
 protected:
  void Run() { Settle(fabric_, {&a_, &b_}); }
  TxDesc Nop() { return {.opcode = Opcode::kNop}; }
  TxDesc SendOf(uint32_t length) { return EngineNode::Send(1, data_, length); }

  FakeFabric fabric_{TestSeed()};
  EngineNode a_{&fabric_};
  EngineNode b_{&fabric_};
  uint8_t* data_ = a_.Allocate(4096);
  uint8_t* buffer_ = b_.Allocate(4096);
};

constexpr int kStepLimit = 1000;

struct Bad {
  const char* what;
  void (*spoil)(TxDesc&);
  Status status;
};

const Bad kBad[] = {
    {"unknown opcode", [](TxDesc& d) { d.opcode = static_cast<Opcode>(200); },
     Status::kBadOpcode},
    {"atomic", [](TxDesc& d) { d.opcode = Opcode::kAtomic; },
     Status::kBadOpcode},
    {"unknown flag", [](TxDesc& d) { d.flags |= 0x80; }, Status::kBadLength},
    {"both kinds of inline",
     [](TxDesc& d) {
       d.flags |= contract::kTxFlagInline | contract::kTxFlagInlineExt;
     },
     Status::kBadLength},
    {"nop of a length", [](TxDesc& d) { d.opcode = Opcode::kNop; },
     Status::kBadLength},
    {"length differs", [](TxDesc& d) { d.local_length = 9; },
     Status::kBadLength},
    {"no segment", [](TxDesc& d) { d.segments = 0; }, Status::kBadLength},
    {"segment of nothing", [](TxDesc& d) { d.length = d.local_length = 0; },
     Status::kBadLength},
    {"slots of nothing", [](TxDesc& d) { d.ext_slots = 1; },
     Status::kBadLength},
    {"reserved", [](TxDesc& d) { d.rsvd0 = 1; }, Status::kBadLength},
    {"inline too long",
     [](TxDesc& d) {
       d.flags |= contract::kTxFlagInline;
       d.segments = 0;
       d.length = 17;
     },
     Status::kBadLength},
    {"inline read",
     [](TxDesc& d) {
       d.opcode = Opcode::kRead;
       d.flags |= contract::kTxFlagInline;
       d.segments = 0;
     },
     Status::kBadLength},
    {"read with header data",
     [](TxDesc& d) {
       d.opcode = Opcode::kRead;
       d.flags |= contract::kTxFlagHeaderData;
     },
     Status::kBadLength},
    {"too many segments", [](TxDesc& d) { d.segments = 5; },
     Status::kBadLength},
    {"segments without their slot", [](TxDesc& d) { d.segments = 2; },
     Status::kBadLength},
    {"peer outside", [](TxDesc& d) { d.peer = 16; }, Status::kBadPeer},
    {"peer far outside", [](TxDesc& d) { d.peer = 0xffffffff; },
     Status::kBadPeer},
    {"position", [](TxDesc& d) { ++d.position; }, Status::kBadPosition},
};

TEST_F(EngineRingTest, EachBadDescriptorIsNamedAndSendsNothing) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.what);
    a_.Restart();
    TxDesc descriptor = SendOf(8);
    descriptor.op_context = 5;
    descriptor.flags = 0;  // Failures are reported all the same.
    const uint16_t position = a_.Put(descriptor);
    bad.spoil(a_.Slot(position));
    a_.Ring();
    TxDesc next = SendOf(8);
    next.op_context = 6;
    a_.Post(next);
    Run();
    const auto first = a_.Poll(0);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->status, bad.status);
    EXPECT_EQ(first->op_context, bad.status == Status::kBadPosition ? 0u : 5u);
    EXPECT_EQ(first->queue_head, 1);
    if (bad.status != Status::kBadPeer) {
      EXPECT_TRUE(a_.carrier().posted.empty());
      const auto second = a_.Poll(0);
      ASSERT_TRUE(second.has_value());
      EXPECT_EQ(second->status, Status::kFlushed);
      EXPECT_EQ(second->op_context, 6u);
    }
    a_.carrier().posted.clear();
  }
}

TEST_F(EngineRingTest, BadSegmentsAreRefused) {
  using Segments = std::array<contract::TxSegment, 4>;
  const Segments good = {
      {{EngineNode::Iova(data_), 5, 0}, {EngineNode::Iova(data_), 5, 0}}};
  TxDesc descriptor = SendOf(8);
  descriptor.length = 10;
  descriptor.segments = 2;
  descriptor.ext_slots = 1;
  for (int kind = 0; kind < 4; ++kind) {
    SCOPED_TRACE(kind);
    a_.Restart();
    Segments segments = good;
    if (kind == 0) segments[1].length = 6;
    if (kind == 1) segments[0].rsvd0 = 1;
    if (kind == 2) segments[2].iova = 1;
    if (kind == 3) segments[1].length = 0xfffffff6;
    a_.Post(descriptor, {reinterpret_cast<uint8_t*>(segments.data()), 64});
    Run();
    const auto first = a_.Poll(0);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->status, Status::kBadLength);
    EXPECT_EQ(first->queue_head, 2) << "with its extension slot";
    EXPECT_TRUE(a_.carrier().posted.empty());
  }
}

TEST_F(EngineRingTest, AnExtensionOverTheEndOfTheRingIsRefused) {
  for (int i = 0; i < EngineNode::kRing - 1; ++i) {
    a_.Put(Nop());
  }
  TxDesc descriptor = SendOf(0);
  descriptor.flags |= contract::kTxFlagInlineExt;
  descriptor.length = 10;
  descriptor.ext_slots = 1;
  a_.Post(descriptor);
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kBadLength);
}

TEST_F(EngineRingTest, ARingThatCannotBeReadIsReported) {
  a_.tx.ring_base = a_.Unmapped();
  a_.Restart();
  a_.Post(SendOf(8));
  Run();
  const auto entry = a_.Poll(0);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->status, Status::kLocalAccess);
  EXPECT_EQ(entry->op_context, 0u);
}

TEST_F(EngineRingTest, AnAddressVectorThatCannotBeReadIsABadPeer) {
  a_.tx.av_base = a_.Unmapped();
  a_.Restart();
  a_.Post(SendOf(8));
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kBadPeer);
}

TEST_F(EngineRingTest, ATailBeyondTheRingIsABadPosition) {
  a_.Doorbell(0, contract::kDoorbellTailOffset, 3 * EngineNode::kRing);
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kBadPosition);
}

TEST_F(EngineRingTest, ExtensionSlotsArePublishedBeforeTheOperationStarts) {
  b_.Receive(buffer_, 64);
  std::vector<uint8_t> payload(64, 9);
  TxDesc descriptor = SendOf(0);
  descriptor.flags |= contract::kTxFlagInlineExt;
  descriptor.length = 64;
  descriptor.ext_slots = 1;
  const uint16_t position = a_.Put(descriptor, payload);
  a_.Doorbell(0, contract::kDoorbellTailOffset, position + 1U);
  Run();
  EXPECT_TRUE(a_.carrier().posted.empty());
  a_.Ring();
  Run();
  EXPECT_EQ(b_.Poll(1)->length, 64u);
}

TEST_F(EngineRingTest, SilentOperationsMoveTheHeadCellByQuarters) {
  fabric_.hold_answers = true;
  for (int i = 0; i < 20; ++i) {
    b_.Receive(buffer_, 64);
    TxDesc send = SendOf(8);
    send.flags = 0;
    a_.Post(send);
  }
  Run();
  EXPECT_EQ(*a_.tx_head, 0u);
  fabric_.hold_answers = false;
  Run();
  EXPECT_FALSE(a_.Poll(0).has_value());
  EXPECT_EQ(*a_.tx_head, 20u) << "nothing in flight";
}

TEST_F(EngineRingTest, SlotsAreReleasedInRingOrder) {
  TxDesc first = SendOf(8);
  first.peer = 9;  // Nobody is there, so its message stays.
  a_.Post(first);
  b_.Receive(buffer_, 64);
  a_.Post(SendOf(8));
  Run();
  const auto entry = a_.Poll(0);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->position, 1);
  EXPECT_EQ(entry->queue_head, 0);
}

TEST_F(EngineRingTest, NopsReleaseTheirSlotsSilently) {
  for (int i = 0; i < 5; ++i) {
    a_.Put(Nop());
  }
  a_.Ring();
  Run();
  EXPECT_FALSE(a_.Poll(0).has_value());
  EXPECT_EQ(*a_.tx_head, 5u);
}

TEST_F(EngineRingTest, AFullCompletionQueueHoldsOperationsBack) {
  EngineNode::Options options;
  options.cq_log2 = 3;
  EngineNode small(&fabric_, options);
  for (int i = 0; i < 20; ++i) {
    b_.Receive(buffer_, 64);
    small.Post(EngineNode::Send(1, small.Allocate(8), 8));
  }
  Settle(fabric_, {&small, &b_});
  EXPECT_EQ(small.carrier().posted.size(), 8u);
  uint32_t seen = 0;
  while (small.Poll(0, false).has_value()) {
    ++seen;
  }
  EXPECT_EQ(seen, 8u);
  small.Consume(0, 4);
  Settle(fabric_, {&small, &b_});
  EXPECT_EQ(small.carrier().posted.size(), 12u);
  small.Consume(0, 400);
  Settle(fabric_, {&small, &b_});
  EXPECT_EQ(small.carrier().posted.size(), 12u) << "credits invented";
  while (small.Poll(0).has_value()) {
    Settle(fabric_, {&small, &b_});
  }
  EXPECT_EQ(small.carrier().posted.size(), 20u);
  EXPECT_EQ(small.polled(0), 20u);
}

TEST_F(EngineRingTest, AReceiverWithoutCreditRefuses) {
  EngineNode::Options options;
  options.cq_log2 = 3;
  EngineNode small(&fabric_, options);
  TxDesc send = SendOf(8);
  send.peer = 2;
  for (int i = 0; i < 10; ++i) {
    small.Receive(small.Allocate(64), 64);
    a_.Post(send);
  }
  Settle(fabric_, {&a_, &small});
  EXPECT_GT(fabric_.refusals[contract::NackCode::kNoResource], 0u);
  EXPECT_EQ(*small.rx_head, 0u);
  uint32_t seen = 0;
  for (; small.Poll(1).has_value(); ++seen) {
    Settle(fabric_, {&a_, &small});
  }
  EXPECT_EQ(seen, 10u);
}

TEST_F(EngineRingTest, AnArmedQueueInterruptsOncePerArming) {
  for (int i = 0; i < 4; ++i) {
    b_.Receive(buffer_, 64);
  }
  a_.Consume(0, 0, true);
  EXPECT_TRUE(a_.interrupts.empty());
  a_.Post(SendOf(8));
  a_.Post(SendOf(8));
  Run();
  EXPECT_EQ(a_.interrupts, std::vector<uint8_t>{10});
  a_.Consume(0, 1, true);
  EXPECT_EQ(a_.interrupts.size(), 2u) << "one is there already";
  a_.Consume(0, 2, true);
  EXPECT_EQ(a_.interrupts.size(), 2u);
}

TEST_F(EngineRingTest, AddressesAreCachedUntilInvalidated) {
  b_.Receive(buffer_, 64);
  b_.Receive(buffer_, 64);
  a_.Post(SendOf(8));
  Run();
  a_.av[1].flags = 0;
  a_.Post(SendOf(8));
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
  EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
  a_.Doorbell(0, contract::kDoorbellOpOffset,
              static_cast<uint64_t>(contract::DoorbellOp::kAvInvalidate));
  a_.Post(SendOf(8));
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kBadPeer);
  a_.av[1].flags = contract::kAvFlagValid;
  a_.Post(SendOf(8));
  b_.Receive(buffer_, 64);
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kOk) << "inserting needs nothing";
}

// -- receive rings

TEST_F(EngineRingTest, ACancelledReceiveIsReportedAndSkipped) {
  b_.Receive(buffer_, 64, 1);
  b_.Receive(buffer_ + 64, 64, 2);
  b_.CancelReceive(0);
  const auto entry = b_.Poll(1);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->status, Status::kCancelled);
  EXPECT_EQ(entry->position, 0);
  EXPECT_EQ(entry->op_context, 0u);
  EXPECT_EQ(*b_.rx_head, 1u);
  b_.CancelReceive(0);
  b_.CancelReceive(7);
  EXPECT_FALSE(b_.Poll(1).has_value());
  a_.Post(SendOf(8));
  Run();
  EXPECT_EQ(b_.Poll(1)->op_context, 2u);
}

TEST_F(EngineRingTest, ACancelledReceiveBehindOthersIsReportedAtOnce) {
  b_.Receive(buffer_, 64, 1);
  b_.Receive(buffer_, 64, 2);
  b_.Receive(buffer_, 64, 3);
  b_.CancelReceive(1);
  const auto entry = b_.Poll(1);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->position, 1);
  EXPECT_EQ(entry->queue_head, 0);
  b_.CancelReceive(1);
  EXPECT_FALSE(b_.Poll(1).has_value()) << "cancelled once";
  a_.Post(SendOf(8));
  a_.Post(SendOf(8));
  Run();
  EXPECT_EQ(b_.Poll(1)->op_context, 1u);
  const auto third = b_.Poll(1);
  EXPECT_EQ(third->op_context, 3u);
  EXPECT_EQ(third->queue_head, 3);
}

TEST_F(EngineRingTest, CancellationsWithoutRoomAreOwed) {
  EngineNode::Options options;
  options.cq_log2 = 3;
  EngineNode small(&fabric_, options);
  for (uint16_t i = 0; i < 20; ++i) {
    small.Receive(small.Allocate(8), 8);
  }
  for (uint16_t i = 0; i < 20; ++i) {
    small.CancelReceive(static_cast<uint16_t>(19 - i));
  }
  std::vector<bool> seen(20);
  for (int i = 0; i < 20; ++i) {
    const auto entry = small.Poll(1);
    ASSERT_TRUE(entry.has_value()) << i;
    EXPECT_EQ(entry->status, Status::kCancelled);
    EXPECT_FALSE(seen[entry->position]);
    seen[entry->position] = true;
  }
  EXPECT_FALSE(small.Poll(1).has_value());
  EXPECT_EQ(*small.rx_head, 20u);
}

TEST_F(EngineRingTest, BadReceivesAreReportedAndSkipped) {
  for (uint16_t i = 0; i < 4; ++i) {
    b_.RxSlot(i) = {.position = i,
                    .length = 64,
                    .op_context = uint64_t{10} + i,
                    .local_iova = EngineNode::Iova(buffer_)};
  }
  b_.RxSlot(0).flags = contract::kRxFlagMultiRecv;
  b_.RxSlot(2).position = 9;
  b_.RingRx(4);
  const auto first = b_.Poll(1);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->status, Status::kBadLength);
  EXPECT_EQ(first->op_context, 10u);
  EXPECT_EQ(*b_.rx_head, 1u);
  a_.Post(SendOf(8));
  a_.Post(SendOf(8));
  Run();
  EXPECT_EQ(b_.Poll(1)->op_context, 11u);
  EXPECT_EQ(b_.Poll(1)->status, Status::kBadPosition);
  EXPECT_EQ(b_.Poll(1)->op_context, 13u);
}

// -- the end of contexts

TEST_F(EngineRingTest, ADisabledContextReadsNothingMoreAndReportsNothing) {
  b_.Receive(buffer_, 4096);
  a_.Post(SendOf(4000));
  fabric_.hold_answers = true;
  a_.engine().Progress(1);
  fabric_.Step();
  contract::TxCtxCfg off = a_.tx;
  off.enable = 0;
  a_.Write(Table::kTxCtx, 0, off);
  EXPECT_EQ(a_.engine().Drain(Table::kTxCtx, 0), Engine::DrainState::kDone);
  a_.dma().Unmap(a_.Arena(), EngineNode::kArenaMapped);
  fabric_.hold_answers = false;
  Run();
  EXPECT_EQ(a_.dma().blocked_reads(), 0u);
  EXPECT_EQ(a_.dma().blocked_writes(), 0u);
  EXPECT_EQ(b_.Poll(1)->status, Status::kInitiatorError);
  EXPECT_TRUE(a_.engine().idle());
}

TEST_F(EngineRingTest, ADisabledReceiverTakesTheRestForNothing) {
  b_.Receive(buffer_, 4096);
  std::fill_n(data_, 4096, uint8_t{1});
  a_.Post(SendOf(4000));
  a_.engine().Progress(1);
  fabric_.hold_answers = true;
  for (int i = 0; i < kStepLimit && buffer_[0] == 0; ++i) {
    fabric_.Step();
  }
  ASSERT_NE(buffer_[0], 0);
  contract::RxCtxCfg off = b_.rx;
  off.enable = 0;
  b_.Write(Table::kRxCtx, 0, off);
  EXPECT_EQ(b_.engine().Drain(Table::kRxCtx, 0), Engine::DrainState::kDone);
  std::fill_n(buffer_, 4096, uint8_t{0});
  fabric_.hold_answers = false;
  Run();
  EXPECT_EQ(std::count(buffer_, buffer_ + 4096, 1), 0);
  EXPECT_FALSE(b_.Poll(1).has_value());
  EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
}

TEST_F(EngineRingTest, ADeadPeerIsNamed) {
  a_.Post(SendOf(8));
  a_.Post(SendOf(3000));
  Run();
  fabric_.Abandon(0, Status::kPeerUnreachable, 0);
  for (int i = 0; i < 2; ++i) {
    const auto entry = a_.Poll(0);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->status, Status::kPeerUnreachable);
    EXPECT_EQ(entry->peer, 1u);
  }
  EXPECT_TRUE(a_.engine().idle());
}

TEST_F(EngineRingTest, AMessageOpenAtADeadPeersTargetEnds) {
  b_.Receive(buffer_, 4096);
  std::fill_n(data_, 4096, uint8_t{1});
  a_.Post(SendOf(4000));
  a_.engine().Progress(1);
  for (int i = 0; i < kStepLimit && buffer_[0] == 0; ++i) {
    fabric_.Step();
  }
  ASSERT_NE(buffer_[0], 0);
  fabric_.Abandon(0, Status::kPeerUnreachable, 0);
  const auto entry = b_.Poll(1);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->status, Status::kInitiatorError);
}

TEST_F(EngineRingTest, TablesKeepWhatWasWrittenAndKnowTheirEnds) {
  std::array<uint8_t, 64> got{};
  ASSERT_TRUE(a_.engine().ReadTable(Table::kTxCtx, 0, got));
  EXPECT_EQ(std::memcmp(got.data(), &a_.tx, 64), 0);
  EXPECT_FALSE(a_.Write(Table::kTxCtx, 2, a_.tx));
  EXPECT_FALSE(a_.Write(Table::kCounter, 8, contract::CounterCfg{}));
  EXPECT_FALSE(a_.Write(Table::kRegion, 64, contract::RegionCfg{}));
  EXPECT_FALSE(a_.Write(static_cast<Table>(77), 0, a_.tx));
  EXPECT_FALSE(a_.engine().ReadTable(Table::kCq, 4, got));
  EXPECT_EQ(a_.engine().Drain(Table::kCq, 4), Engine::DrainState::kNoEntry);
  for (uint32_t page = 0; page < 256; ++page) {
    for (uint32_t offset = 0; offset < 64; offset += 8) {
      if (offset != 0 || page > contract::kRxPageFirst) {
        b_.Doorbell(page, offset, ~uint64_t{0});
      }
    }
  }
}

TEST_F(EngineRingTest, ListensFromTheFirstEnabledContextOn) {
  Engine& engine = a_.engine();
  const contract::RxCtxCfg on = a_.rx;
  contract::RxCtxCfg off = on;
  off.enable = 0;
  EXPECT_TRUE(engine.Listens({}));
  EXPECT_TRUE(a_.Write(Table::kRxCtx, 0, off));
  EXPECT_TRUE(engine.Listens({}));
  engine.StopListening();
  EXPECT_FALSE(engine.Listens({}));
  EXPECT_TRUE(a_.Write(Table::kRxCtx, 0, off));
  EXPECT_FALSE(engine.Listens({}));
  EXPECT_TRUE(a_.Write(Table::kRxCtx, 1, on));
  EXPECT_TRUE(engine.Listens({}));
  engine.Reset();
  EXPECT_FALSE(engine.Listens({}));
}

TEST_F(EngineRingTest, AResetForgetsEverything) {
  a_.Post(SendOf(8));
  a_.engine().Progress(8);
  EXPECT_FALSE(a_.engine().idle());
  a_.engine().Reset();
  EXPECT_TRUE(a_.engine().idle());
  a_.Ring();
  EXPECT_FALSE(a_.engine().Progress(8));
}

}  // namespace
}  // namespace heddle::soft::engine
