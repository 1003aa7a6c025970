// SPDX-License-Identifier: Apache-2.0
// Order and progress: fences, operations of several descriptors, peers that are
// stuck beside others, spilling, counters.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hw/soft/engine/initiator.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"

namespace heddle::soft::engine {
namespace {

using contract::CounterCell;
using contract::Opcode;
using contract::Status;
using contract::Table;
using contract::TxDesc;

class EngineOrderTest : public testing::Test {
 protected:
  static constexpr uint32_t kBytes = 16384;

  EngineOrderTest() { std::iota(local_, local_ + kBytes, uint8_t{1}); }
  void Run() { Settle(fabric_, {&a_, &b_}); }
  TxDesc SendTo(uint32_t peer, uint32_t length = 8) {
    return EngineNode::Send(peer, local_, length);
  }
  TxDesc Op(Opcode opcode, uint64_t offset, uint32_t length) {
    TxDesc descriptor = a_.Rma(opcode, 1, local_, length);
    descriptor.match_bits = region_.key;
    descriptor.remote_offset = offset;
    return descriptor;
  }
  size_t posted() { return a_.carrier().posted.size(); }
  // Whether the descriptor at `position` was given up; clears that.
  bool TakeMark(uint16_t position) {
    auto* const marks = reinterpret_cast<contract::SpillMark*>(
        a_.tx.spill_base +
        EngineNode::kRing *
            sizeof(TxDesc));  // NOLINT(performance-no-int-to-ptr)
    const contract::SpillMark mark =
        std::exchange(marks[position % EngineNode::kRing], {});
    return mark == contract::SpillMark{.position = position, .given = 1};
  }
  void Progress() {
    while (a_.engine().Progress(64)) {
    }
    a_.engine().Progress(64);
  }

  FakeFabric fabric_{TestSeed()};
  EngineNode a_{&fabric_, {.spill = true}};
  EngineNode b_{&fabric_};
  uint8_t* local_ = a_.Allocate(kBytes);
  uint8_t* remote_ = b_.Allocate(kBytes);
  contract::RegionCfg region_ = b_.Region(
      0, remote_, kBytes,
      contract::kRegionFlagRemoteRead | contract::kRegionFlagRemoteWrite);
};

TEST_F(EngineOrderTest, AFenceWaitsForWhatIsInFlightToItsPeerOnly) {
  TxDesc fenced = SendTo(1);
  fenced.flags |= contract::kTxFlagFence;
  a_.Post(fenced);
  Progress();
  EXPECT_EQ(posted(), 1u) << "nothing to wait for";
  a_.Post(fenced);
  a_.Post(SendTo(1));
  a_.Post(SendTo(2));
  Progress();
  EXPECT_EQ(posted(), 2u) << "another peer's passes";
  EXPECT_EQ(a_.carrier().posted.back().name.peer.lo, 2u);
  for (int i = 0; i < 3; ++i) {
    b_.Receive(remote_, 64);
  }
  Run();
  EXPECT_EQ(posted(), 4u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(a_.Poll(0)->peer, 1u);
  }
}

TEST_F(EngineOrderTest, AFenceWaitsForAReadThatFails) {
  for (const uint32_t length : {8U, 9000U}) {
    SCOPED_TRACE(length);
    const size_t before = posted();
    TxDesc fenced = SendTo(1);
    fenced.flags |= contract::kTxFlagFence;
    a_.Post(Op(Opcode::kRead, kBytes - 1, length));
    a_.Post(fenced);
    Progress();
    EXPECT_EQ(posted(), before + 1) << "it waits";
    b_.Receive(remote_, 64);
    Run();
    const auto failed = a_.Poll(0);
    ASSERT_TRUE(failed.has_value());
    EXPECT_EQ(failed->opcode, Opcode::kRead);
    EXPECT_EQ(failed->status, Status::kRemoteError);
    const auto sent = a_.Poll(0);
    ASSERT_TRUE(sent.has_value());
    EXPECT_EQ(sent->opcode, Opcode::kSend);
    EXPECT_EQ(sent->status, Status::kOk);
  }
}

TEST_F(EngineOrderTest, OrderedWritesDoNotOvertakeReads) {
  std::fill_n(remote_, kBytes, uint8_t{0xaa});
  fabric_.hold_returns = true;
  TxDesc read = Op(Opcode::kRead, 0, 100);
  read.local_iova = EngineNode::Iova(local_ + 8192);
  a_.Post(read);
  a_.Post(Op(Opcode::kRead, 0, 100));
  Progress();
  EXPECT_EQ(posted(), 2u) << "reads pass";
  a_.Post(Op(Opcode::kWrite, 0, 100));
  Run();
  EXPECT_EQ(posted(), 2u);
  fabric_.hold_returns = false;
  Run();
  EXPECT_EQ(posted(), 3u);
  EXPECT_EQ(std::count(local_ + 8192, local_ + 8292, 0xaa), 100);
  // Small results cannot change any more, and unordered classes do not wait.
  a_.Post(Op(Opcode::kRead, 0, 16));
  a_.Post(Op(Opcode::kWrite, 0, 100));
  Progress();
  EXPECT_EQ(posted(), 5u);
  Run();
  a_.tx.ordered = contract::kOrderClassRead;
  a_.Restart();
  a_.Post(Op(Opcode::kRead, 0, 100));
  a_.Post(Op(Opcode::kWrite, 0, 100));
  Progress();
  EXPECT_EQ(posted(), 7u);
}

// -- operations of several descriptors

TEST_F(EngineOrderTest, AnOperationOfSeveralDescriptorsCompletesOnce) {
  a_.tx.counter_write = 1;
  a_.Restart();
  const auto* const cell = a_.Counter(0);
  for (int parts = 1; parts <= 4; ++parts) {
    for (int i = 0; i < parts; ++i) {
      TxDesc write = Op(Opcode::kWrite, 4096U * i, 3000);
      write.op_context = uint64_t{100} + i;
      if (i + 1 < parts) {
        write.flags = contract::kTxFlagMore;
        if (i == 0) {
          a_.Put({.opcode = Opcode::kNop});
        }
      }
      a_.Put(write);
    }
    a_.Ring();
    Run();
    const auto entry = a_.Poll(0);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->status, Status::kOk);
    EXPECT_EQ(entry->op_context, 99u + static_cast<uint64_t>(parts));
    EXPECT_EQ(entry->queue_head, a_.tx_tail());
    EXPECT_FALSE(a_.Poll(0).has_value());
    EXPECT_EQ(cell->value, static_cast<uint64_t>(parts));
  }
  EXPECT_TRUE(a_.engine().idle());
}

TEST_F(EngineOrderTest, TheFirstFailureOfAnOperationIsItsOwn) {
  TxDesc good = Op(Opcode::kWrite, 0, 8);
  TxDesc bad_key = good;
  bad_key.match_bits ^= 1;
  TxDesc outside = good;
  outside.remote_offset = kBytes;
  TxDesc last = good;
  good.flags = bad_key.flags = outside.flags = contract::kTxFlagMore;
  a_.Put(good);
  a_.Put(bad_key);
  a_.Put(outside);
  last.op_context = 9;
  last.flags = 0;  // A failure is reported all the same.
  a_.Put(last);
  a_.Ring();
  Run();
  const auto entry = a_.Poll(0);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->op_context, 9u);
  EXPECT_EQ(entry->status, Status::kRemoteError);
  EXPECT_EQ(entry->detail,
            static_cast<uint16_t>(contract::ReturnCode::kBadMkey));
  EXPECT_EQ(entry->length, 0u);
  EXPECT_FALSE(a_.Poll(0).has_value());
}

TEST_F(EngineOrderTest, ABadPartFailsItsOperation) {
  TxDesc part = Op(Opcode::kWrite, 0, 8);
  part.flags = contract::kTxFlagMore;
  a_.Put(part);
  part.segments = 0;
  a_.Put(part);
  TxDesc last = Op(Opcode::kWrite, 0, 8);
  last.op_context = 4;
  a_.Put(last);
  a_.Put(SendTo(1));
  a_.Ring();
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kFlushed) << "has nothing to wait for";
  const auto entry = a_.Poll(0);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->op_context, 4u);
  EXPECT_EQ(entry->status, Status::kBadLength);
  EXPECT_FALSE(a_.Poll(0).has_value());
}

TEST_F(EngineOrderTest, AReadThatFailsFailsItsOperationOnce) {
  for (const uint32_t length : {8U, 3000U}) {
    for (uint64_t failing = 0; failing < 3; ++failing) {
      SCOPED_TRACE(failing);
      for (uint64_t i = 0; i < 3; ++i) {
        TxDesc read =
            Op(Opcode::kRead, i == failing ? kBytes : 4096 * i, length);
        read.op_context = 10 + i;
        if (i < 2) {
          read.flags = contract::kTxFlagMore;
        }
        a_.Put(read);
      }
      a_.Ring();
      Run();
      const auto entry = a_.Poll(0);
      ASSERT_TRUE(entry.has_value());
      EXPECT_EQ(entry->op_context, 12u);
      EXPECT_EQ(entry->opcode, Opcode::kRead);
      EXPECT_EQ(entry->status, Status::kRemoteError);
      EXPECT_EQ(entry->queue_head, a_.tx_tail());
      EXPECT_FALSE(a_.Poll(0).has_value());
      EXPECT_TRUE(a_.engine().idle());
    }
  }
  a_.Post(Op(Opcode::kRead, 0, 3000));
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
}

TEST_F(EngineOrderTest, ABadPartBehindAReadFailsTheirOperationOnce) {
  for (const bool fails : {false, true}) {
    TxDesc part = Op(Opcode::kRead, fails ? kBytes : 0, 3000);
    part.flags = contract::kTxFlagMore;
    a_.Put(part);
    part.segments = 0;
    a_.Put(part);
    TxDesc last = Op(Opcode::kRead, 0, 3000);
    last.op_context = 4;
    a_.Put(last);
    a_.Ring();
    Run();
    const auto entry = a_.Poll(0);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->op_context, 4u);
    EXPECT_EQ(entry->status, fails ? Status::kRemoteError : Status::kBadLength)
        << "that of the first part";
    EXPECT_FALSE(a_.Poll(0).has_value());
    EXPECT_TRUE(a_.engine().idle());
    a_.Restart();
  }
}

TEST_F(EngineOrderTest, AContextThatEndsWithinAnOperationLeavesNothing) {
  for (int round = 0; round < 3; ++round) {
    TxDesc part = Op(Opcode::kWrite, 0, 8);
    part.flags = contract::kTxFlagMore;
    a_.Put(part);
    if (round > 0) {
      part.flags |= contract::kTxFlagFence;  // Waits.
      a_.Put(part);
    }
    if (round > 1) {
      part.flags = 0;
      a_.Put(part);
    }
    a_.Ring();
    Progress();
    a_.Restart();
    Run();
    EXPECT_TRUE(a_.engine().idle()) << round;
    EXPECT_FALSE(a_.Poll(0).has_value());
  }
  b_.Receive(remote_, 64);
  a_.Post(SendTo(1));
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
}

// -- peers beside each other

TEST_F(EngineOrderTest, APeerThatIsStuckDoesNotHoldUpOthers) {
  // More messages to a node that is not there than the ring has slots.
  for (int i = 0; i < 100; ++i) {
    a_.Post(SendTo(9));
    b_.Receive(remote_, 64);
    a_.Post(SendTo(1));
    Run();
    const auto entry = a_.Poll(0);
    ASSERT_TRUE(entry.has_value()) << i;
    EXPECT_EQ(entry->peer, 1u);
    EXPECT_EQ(entry->status, Status::kOk);
    EXPECT_TRUE(b_.Poll(1).has_value());
    ASSERT_LE(static_cast<uint16_t>(a_.tx_tail() - a_.released()),
              EngineNode::kRing);
  }
  EXPECT_GT(a_.engine().statistic(contract::Statistic::kTxSpilled), 0u);
  // They end all the same, each once.
  for (int i = 0; i < 100;) {
    fabric_.Abandon(0, Status::kPeerUnreachable, 0);
    Run();
    int ended = 0;
    while (const auto entry = a_.Poll(0)) {
      EXPECT_EQ(entry->status, Status::kPeerUnreachable);
      EXPECT_EQ(entry->peer, 9u);
      ++ended;
    }
    ASSERT_GT(ended, 0);
    i += ended;
    ASSERT_LE(i, 100);
  }
  EXPECT_TRUE(a_.engine().idle());
}

TEST_F(EngineOrderTest, WithoutASpillAreaSlotsAreHeldUntilTheEnd) {
  a_.tx.spill_base = 0;
  a_.Restart();
  a_.Post(SendTo(9));
  for (int i = 0; i < 60; ++i) {
    b_.Receive(remote_, 64);
    a_.Post(SendTo(1));
  }
  Run();
  for (int i = 0; i < 60; ++i) {
    const auto entry = a_.Poll(0);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->queue_head, 0);
  }
  EXPECT_EQ(*a_.tx_head, 0u);
}

TEST_F(EngineOrderTest, APeersShareLeavesRoomAndTheRestFollowsInOrder) {
  EngineNode::Options options;
  options.spill = true;
  options.ring_log2 = 9;
  EngineNode wide(&fabric_, options);
  constexpr uint32_t kCount = 2 * Initiator::kPeerShare + 5;
  for (uint32_t i = 0; i < kCount; ++i) {
    TxDesc send = EngineNode::Send(1, nullptr, 0);
    send.flags |= contract::kTxFlagHeaderData;
    send.header_data = i;
    wide.Put(send);
  }
  wide.Ring();
  while (wide.engine().Progress(64)) {
  }
  EXPECT_EQ(wide.carrier().posted.size(), Initiator::kPeerShare);
  EXPECT_FALSE(wide.engine().idle());
  for (uint32_t i = 0; i < kCount; ++i) {
    b_.Receive(remote_, 64);
    Settle(fabric_, {&wide, &b_});
    const auto entry = b_.Poll(1);
    ASSERT_TRUE(entry.has_value()) << i;
    EXPECT_EQ(entry->header_data, i);
  }
  EXPECT_TRUE(wide.engine().idle());
}

TEST_F(EngineOrderTest, DescriptorsThatWaitMoveToTheSpillArea) {
  // One in flight without a buffer, and a fenced one with payload in its slots
  // that waits for it, with others behind.
  TxDesc first = SendTo(1);
  first.flags = 0;
  a_.Post(first);
  std::vector<uint8_t> payload(100);
  TxDesc send = EngineNode::Send(1, nullptr, 0);
  send.flags |= contract::kTxFlagInlineExt | contract::kTxFlagHeaderData;
  send.length = 100;
  send.ext_slots = 2;
  // As many as ring and spill area hold together.
  constexpr uint64_t kOperations = 36;
  for (uint64_t i = 0; i < kOperations; ++i) {
    send.header_data = i;
    std::fill(payload.begin(), payload.end(), static_cast<uint8_t>(i));
    send.flags &= static_cast<uint8_t>(~contract::kTxFlagFence);
    if (i == 0) {
      send.flags |= contract::kTxFlagFence;
    }
    a_.Post(send, payload);
    Progress();
    ASSERT_LE(static_cast<uint16_t>(a_.tx_tail() - a_.released()),
              EngineNode::kRing)
        << i;
  }
  EXPECT_EQ(posted(), 1u);
  EXPECT_GT(a_.engine().statistic(contract::Statistic::kTxSpilled), 10u);
  for (uint64_t i = 0; i <= kOperations; ++i) {
    b_.Receive(remote_ + 128 * i, 128);
    Run();
  }
  EXPECT_EQ(b_.Poll(1)->length, 8u);
  for (uint64_t i = 0; i < kOperations; ++i) {
    const auto entry = b_.Poll(1);
    ASSERT_TRUE(entry.has_value()) << i;
    EXPECT_EQ(entry->header_data, i);
    EXPECT_EQ(entry->length, 100u);
    const uint8_t* const placed = remote_ + 128 * (i + 1);
    EXPECT_EQ(std::count(placed, placed + 100, static_cast<uint8_t>(i)), 100);
    EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
  }
  EXPECT_TRUE(a_.engine().idle());
}

TEST_F(EngineOrderTest, ASilentOperationWithoutSlotsTellsItsEnd) {
  // All to a peer without a buffer; every other one asks for a completion.
  constexpr uint16_t kOperations = 2 * EngineNode::kRing;
  std::vector<bool> marked;
  uint16_t passed = 0;
  for (uint16_t i = 0; i < kOperations; ++i) {
    TxDesc send = SendTo(1);
    send.flags = i % 2 == 0 ? 0 : contract::kTxFlagCompletion;
    send.op_context = i;
    a_.Post(send);
    Progress();
    for (; passed != a_.released(); ++passed) {
      marked.push_back(TakeMark(passed));
    }
  }
  EXPECT_GT(marked.size(), EngineNode::kRing);
  EXPECT_EQ(std::count(marked.begin(), marked.end(), false), 0);
  for (uint16_t i = 0; i < kOperations; ++i) {
    b_.Receive(remote_, 64);
    Run();
  }
  std::set<uint64_t> ended;
  while (const auto entry = a_.Poll(0)) {
    EXPECT_EQ(entry->status, Status::kOk);
    EXPECT_EQ(entry->kind, entry->op_context % 2 == 0
                               ? contract::CompletionKind::kTxSilent
                               : contract::CompletionKind::kTx);
    EXPECT_EQ(entry->position, entry->op_context);
    EXPECT_TRUE(ended.insert(entry->op_context).second);
  }
  // Those that kept their slots to the end are silent as ever.
  for (uint16_t i = 0; i < kOperations; ++i) {
    EXPECT_EQ(ended.count(i) != 0, i % 2 != 0 || i < marked.size()) << i;
  }
  EXPECT_EQ(a_.released(), a_.tx_tail());
  EXPECT_TRUE(a_.engine().idle());
}

TEST_F(EngineOrderTest, WhatIsNotStuckKeepsItsSlots) {
  a_.carrier().stuck = false;
  for (uint32_t i = 0; i < EngineNode::kRing; ++i) {
    a_.Post(SendTo(1));
  }
  Progress();
  EXPECT_EQ(a_.released(), 0);
  // Nobody rings when that changes.
  a_.carrier().stuck = true;
  Progress();
  EXPECT_GT(a_.released(), 0);
}

TEST_F(EngineOrderTest, SpilledDescriptorsTakeWhateverRoomTheAreaHas) {
  a_.Post(SendTo(9));
  // Each is in the ring where those before it were when they had to leave it.
  for (int stuck = 0; stuck < 20; ++stuck) {
    TxDesc fenced = SendTo(9);
    fenced.flags |= contract::kTxFlagFence;
    a_.Post(fenced);
    for (int i = 1; i < EngineNode::kRing; ++i) {
      b_.Receive(remote_, 64);
      a_.Post(SendTo(1));
      Run();
      ASSERT_TRUE(a_.Poll(0).has_value());
      ASSERT_TRUE(b_.Poll(1).has_value());
      ASSERT_LE(static_cast<uint16_t>(a_.tx_tail() - a_.released()),
                EngineNode::kRing)
          << stuck;
    }
  }
}

TEST_F(EngineOrderTest, ASpillAreaThatCannotBeWrittenHoldsTheSlots) {
  a_.tx.spill_base = a_.Unmapped();
  a_.Restart();
  TxDesc send = SendTo(1);
  a_.Post(send);
  send.flags |= contract::kTxFlagFence;
  for (int i = 0; i < 60; ++i) {
    a_.Post(send);
  }
  Progress();
  for (int i = 0; i < 61; ++i) {
    b_.Receive(remote_, 64);
  }
  Run();
  for (int i = 0; i < 61; ++i) {
    EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
  }
}

TEST_F(EngineOrderTest, WithoutAPdcMessagesAreTriedAgainInOrder) {
  a_.carrier().full = true;
  for (uint64_t i = 0; i < 10; ++i) {
    TxDesc send = EngineNode::Send(1, nullptr, 0);
    send.flags |= contract::kTxFlagHeaderData;
    send.header_data = i;
    a_.Post(send);
    b_.Receive(remote_, 64);
    Progress();
  }
  EXPECT_EQ(posted(), 0u);
  EXPECT_FALSE(a_.engine().idle());
  a_.carrier().full = false;
  Run();
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(b_.Poll(1)->header_data, i);
  }
  EXPECT_TRUE(a_.engine().idle());
}

TEST_F(EngineOrderTest, WhatNeverLeftIsPostedAgain) {
  a_.Post(SendTo(1));
  Progress();
  a_.carrier().known.clear();
  a_.engine().OnAbandoned(a_.carrier().posted[0].message, Status::kPeerRejected,
                          1, false);
  EXPECT_EQ(posted(), 2u);
  for (int i = 0; i < 8; ++i) {
    a_.carrier().known.clear();
    a_.engine().OnAbandoned(a_.carrier().posted[0].message,
                            Status::kPeerRejected, 1, false);
  }
  EXPECT_EQ(posted(), uint32_t{Initiator::kAttempts});
  EXPECT_EQ(a_.Poll(0)->status, Status::kPeerRejected);
}

// -- counters

TEST_F(EngineOrderTest, CountersCountWhatTheyAreBoundTo) {
  std::vector<const CounterCell*> at_a;
  std::vector<const CounterCell*> at_b;
  for (uint32_t i = 0; i < 5; ++i) {
    at_a.push_back(a_.Counter(i));
    at_b.push_back(b_.Counter(i));
  }
  a_.tx.counter_send = 1;
  a_.tx.counter_read = 2;
  a_.tx.counter_write = 3;
  a_.Restart();
  b_.rx.counter_recv = 1;
  b_.rx.counter_remote_read = 2;
  b_.rx.counter_remote_write = 3;
  b_.Write(Table::kRxCtx, 0, b_.rx);
  region_.counter = 4;
  b_.Write(Table::kRegion, 0, region_);
  for (int i = 0; i < 3; ++i) {
    b_.Receive(remote_, 64);
    TxDesc silent = SendTo(1);
    silent.flags = 0;
    a_.Post(silent);
  }
  a_.Post(Op(Opcode::kWrite, 0, 8));
  a_.Post(Op(Opcode::kWrite, 0, 5000));
  a_.Post(Op(Opcode::kWrite, kBytes, 8));
  a_.Post(Op(Opcode::kRead, 0, 5000));
  Run();
  EXPECT_EQ(at_a[0]->value, 3u);
  EXPECT_EQ(at_a[1]->value, 1u);
  EXPECT_EQ(at_a[2]->value, 2u);
  EXPECT_EQ(at_a[2]->errors, 1u);
  EXPECT_EQ(at_b[0]->value, 3u);
  EXPECT_EQ(at_b[1]->value, 1u);
  EXPECT_EQ(at_b[2]->value, 2u);
  EXPECT_EQ(at_b[3]->value, 2u) << "writes to the region";
  EXPECT_EQ(at_b[4]->value, 0u);
}

TEST_F(EngineOrderTest, OnlyWhatNobodyWaitsForIsUnheard) {
  a_.Counter(0);
  const auto unheard = [this](TxDesc descriptor, uint8_t flags) {
    descriptor.flags = flags;
    b_.Receive(remote_, 64);
    a_.Post(descriptor);
    Run();
    return a_.carrier().unheard.back();
  };
  const TxDesc write = Op(Opcode::kWrite, 0, 8);
  EXPECT_TRUE(unheard(SendTo(1), 0));
  EXPECT_TRUE(unheard(write, 0));
  EXPECT_TRUE(unheard(Op(Opcode::kWrite, 0, 2 * EngineNode::kMtu), 0));
  EXPECT_FALSE(*(a_.carrier().unheard.end() - 2)) << "not the last packet";
  EXPECT_FALSE(unheard(SendTo(1), contract::kTxFlagCompletion));
  EXPECT_FALSE(unheard(write, contract::kTxFlagDeliveryComplete));
  EXPECT_FALSE(unheard(Op(Opcode::kRead, 0, 8), 0));
  a_.tx.counter_send = 1;
  a_.Restart();
  EXPECT_FALSE(unheard(SendTo(1), 0));
  EXPECT_TRUE(unheard(write, 0)) << "they are not counted";
  a_.tx.counter_send = 0;
  a_.tx.counter_write = 1;
  a_.Restart();
  EXPECT_FALSE(unheard(write, 0));
  EXPECT_TRUE(unheard(SendTo(1), 0));
  a_.tx.counter_write = 0;
  a_.Restart();
  EXPECT_TRUE(unheard(SendTo(1), 0));
  EXPECT_FALSE(unheard(SendTo(1), contract::kTxFlagFence));
  EXPECT_FALSE(unheard(SendTo(1), 0)) << "the next fence would wait for it";
}

TEST_F(EngineOrderTest, AFullRingWaitsForWhatIsInIt) {
  TxDesc silent = SendTo(1);
  silent.flags = 0;
  for (uint32_t i = 0; i < EngineNode::kRing; ++i) {
    b_.Receive(remote_, 64);
    a_.Post(silent);
  }
  Run();
  EXPECT_FALSE(a_.carrier().unheard.front()) << "all slots were taken";
  b_.Receive(remote_, 64);
  a_.Post(silent);
  Run();
  EXPECT_TRUE(a_.carrier().unheard.back());
}

TEST_F(EngineOrderTest, CounterDoorbellsChangeTheCellAndAreEchoed) {
  const CounterCell* const cell = a_.Counter(2);
  const uint32_t page = contract::kCounterPageFirst + 2;
  a_.Doorbell(page, contract::kDoorbellCounterSetOffset, 40);
  EXPECT_EQ(cell->value, 40u);
  EXPECT_EQ(cell->echo, 1u);
  a_.Doorbell(page, contract::kDoorbellCounterAddOffset, 2);
  EXPECT_EQ(cell->value, 42u);
  a_.Doorbell(page, contract::kDoorbellCounterSetErrorsOffset, 7);
  a_.Doorbell(page, contract::kDoorbellCounterAddErrorsOffset, ~uint64_t{0});
  EXPECT_EQ(cell->errors, 6u);
  EXPECT_EQ(cell->echo, 4u);
  a_.Doorbell(page, 0x20, 9);
  EXPECT_EQ(cell->echo, 4u);
  contract::CounterCfg off = {.cell = EngineNode::Iova(cell)};
  a_.Write(Table::kCounter, 2, off);
  a_.Doorbell(page, contract::kDoorbellCounterSetOffset, 1);
  EXPECT_EQ(cell->value, 42u);
}

}  // namespace
}  // namespace heddle::soft::engine
