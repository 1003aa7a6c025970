// SPDX-License-Identifier: Apache-2.0
// Transmit queue of a device that gives up slots of operations that are stuck.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "host/lib/nic/spilled_operations.h"
#include "tests/host/nic/played_queue.h"
#include "tests/seed.h"

namespace heddle::nic {
namespace {

using contract::Completion;
using contract::CompletionKind;
using contract::Opcode;
using contract::SpillMark;
using contract::Status;
using contract::TxDesc;

TEST(TxSpillTest, OthersGoOnPastStuckOperationsOfAllKinds) {
  PlayedQueue queue(/*spill=*/true);
  uint32_t stuck = 0;
  const auto post = [&](uint32_t peer, size_t bytes, bool asked, bool read) {
    // Positions of those that are stuck are passed a ring at a time.
    for (int tries = 0; tries < 10; ++tries) {
      if (queue.Post(peer, bytes, asked, read) == 0) {
        return true;
      }
      queue.model().Spill();
    }
    return false;
  };
  // As many as the ring has slots, of each kind.
  for (const size_t bytes : {0, 16, 100, 192, 500, 5000}) {
    for (const bool asked : {false, true}) {
      for (int i = 0; i < 10; ++i, ++stuck) {
        ASSERT_TRUE(post(PlayedQueue::kStuck, bytes, asked, false));
      }
      ASSERT_TRUE(post(PlayedQueue::kStuck, 300, asked, true));
      ++stuck;
    }
  }
  EXPECT_GT(queue.model().spilled, 64u);
  // Positions come round more than once meanwhile.
  for (uint32_t i = 0; i < 200'000; ++i) {
    ASSERT_TRUE(post(1, i % 3 == 0 ? 300 : 8, i % 2 == 0, false)) << i;
    if (i % 5 == 0) {
      for (ContextModel::Operation* operation : queue.model().UnderWay()) {
        if (operation->descriptor.peer == 1) {
          ASSERT_NO_FATAL_FAILURE(queue.End(operation));
          break;
        }
      }
    }
    while (queue.model().UnderWayCount() > stuck + 20) {
      ASSERT_NO_FATAL_FAILURE(
          queue.End(queue.model().UnderWay().at(stuck + i % 20)));
    }
    if (i % 7 == 0) {
      ASSERT_NO_FATAL_FAILURE(queue.PollAll());
    }
  }
  EXPECT_GE(queue.model().UnderWayCount(), stuck);
  while (queue.model().UnderWayCount() != 0) {
    ASSERT_NO_FATAL_FAILURE(queue.End(queue.model().UnderWay().front()));
  }
  ASSERT_NO_FATAL_FAILURE(queue.PollAll());
  EXPECT_EQ(queue.outstanding(), 0u);
  EXPECT_FALSE(queue->FindLost().has_value());
}

class TxSpillRandomTest {
 public:
  explicit TxSpillRandomTest(uint32_t seed) : random_(seed) {}

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      ASSERT_NO_FATAL_FAILURE(Step());
    }
  }

  // All that has not ended is reported, and what has is at most where it asked
  // for no completion.
  void Fail() {
    ASSERT_NO_FATAL_FAILURE(queue_.PollAll());
    std::set<uint64_t> lost;
    while (const auto entry = queue_->FindLost()) {
      EXPECT_EQ(entry->status, Status::kDeviceFault);
      ASSERT_TRUE(lost.insert(entry->op_context).second);
      EXPECT_EQ(queue_->FindLost()->op_context, entry->op_context);
      if (done_silently_.count(entry->op_context) == 0) {
        ASSERT_NO_FATAL_FAILURE(queue_.Retire(*entry));
      } else {
        (void)queue_->Retire<backend::Locked>(*entry);
      }
    }
    EXPECT_EQ(queue_.outstanding(), 0u) << "neither done nor reported";
    queue_->Abandon();
  }

  void Finish() {
    for (auto all = queue_.model().UnderWay(); !all.empty();
         all = queue_.model().UnderWay()) {
      ASSERT_NO_FATAL_FAILURE(queue_.End(all.at(Pick(all.size()))));
    }
    ASSERT_NO_FATAL_FAILURE(queue_.PollAll());
    EXPECT_EQ(queue_.outstanding(), 0u);
  }
  uint64_t spilled() { return queue_.model().spilled; }

 private:
  size_t Pick(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }

  void Step() {
    constexpr std::array<size_t, 7> kBytes = {0, 8, 16, 100, 192, 700, 3000};
    switch (Pick(8)) {
      case 0:
      case 1:
      case 2:
      case 3:
        if (Pick(12) == 0) {
          (void)queue_.Post(1, 1 + Pick(1000), Pick(2) == 0, true);
        } else {
          (void)queue_.Post(1, kBytes.at(Pick(kBytes.size())), Pick(2) == 0);
        }
        break;
      case 4:
      case 5:
        End();
        break;
      case 6:
        queue_.model().Spill();
        break;
      default:
        for (size_t i = Pick(4); i != 0 && !queue_.model().completions.empty();
             --i) {
          queue_.Poll();
        }
        break;
    }
  }

  // One of those that ended last, as a rule: the others are stuck.
  void End() {
    const auto all = queue_.model().UnderWay();
    if (all.empty()) {
      return;
    }
    const size_t young = std::min<size_t>(all.size(), 8);
    ContextModel::Operation* const operation =
        Pick(8) == 0 ? all.at(Pick(all.size()))
                     : all.at(all.size() - 1 - Pick(young));
    const Status status =
        Pick(16) == 0 ? Status::kPeerUnreachable : Status::kOk;
    const TxDesc& descriptor = operation->descriptor;
    if ((descriptor.flags & contract::kTxFlagCompletion) == 0 &&
        status == Status::kOk) {
      done_silently_.insert(descriptor.op_context);
    }
    queue_.End(operation, status);
  }

  std::mt19937 random_;
  PlayedQueue queue_{/*spill=*/true};
  std::set<uint64_t> done_silently_;
};

TEST(TxSpillTest, WhatOperationsHoldStaysUntilTheyEnd) {
  const uint32_t seed = TestSeed();
  for (uint32_t round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    TxSpillRandomTest test(seed + round);
    ASSERT_NO_FATAL_FAILURE(test.Run(4000));
    EXPECT_GT(test.spilled(), 0u);
    ASSERT_NO_FATAL_FAILURE(test.Finish());
  }
}

TEST(TxSpillTest, WhatADeviceThatFailsOwesIsFoundWithoutASlot) {
  const uint32_t seed = TestSeed();
  for (uint32_t round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    TxSpillRandomTest test(seed + 100 * round);
    ASSERT_NO_FATAL_FAILURE(test.Run(static_cast<int>(100 * round)));
    ASSERT_NO_FATAL_FAILURE(test.Fail());
  }
}

TEST(TxSpillTest, AnEndpointThatGoesGivesBackWhatSpilledOperationsHold) {
  PlayedQueue queue(/*spill=*/true);
  for (int i = 0; i < 200; ++i) {
    if (queue.Post(PlayedQueue::kStuck, 5000, i % 2 == 0) != 0) {
      queue.model().Spill();
    }
  }
  EXPECT_GT(queue.model().spilled, 64u);
  std::vector<uint64_t> mapped;
  for (const auto* operation : queue.model().UnderWay()) {
    mapped.push_back(operation->descriptor.local_iova);
    EXPECT_TRUE(queue.IsMapped(mapped.back()));
  }
  queue->Abandon();
  for (const uint64_t iova : mapped) {
    EXPECT_FALSE(queue.IsMapped(iova));
  }
}

// As an application that reads no completion, because it asks for none.
TEST(TxSpillTest, SilentEntriesAreDrainedByPosts) {
  constexpr uint32_t kEntries = 256;
  PlayedQueue queue(/*spill=*/true, kEntries);
  queue.completions().drains = true;
  size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (queue.Post(PlayedQueue::kStuck, 300, /*asked=*/false) != 0) {
      ++refused;
      queue.model().Spill();
    }
    const auto all = queue.model().UnderWay();
    // Each has an entry, or will.
    ASSERT_LE(all.size() + queue.model().completions.size(), kEntries * 3 / 4)
        << i;
    // It takes none for a while, then all.
    if (i % 1000 > 700) {
      for (ContextModel::Operation* operation : all) {
        ASSERT_NO_FATAL_FAILURE(queue.End(operation));
      }
    }
  }
  EXPECT_GT(queue.model().spilled, 500u);
  EXPECT_GT(refused, 100u);
}

TEST(TxSpillTest, SmallCompletionQueueLeavesTheSlotsWhereTheyAre) {
  const PlayedQueue queue(/*spill=*/true, 64);
  EXPECT_EQ(ToInteger(queue->spill_iova()), 0u);
}

// Posts and ends silent operations until `position` is next.
void GoTo(PlayedQueue* queue, uint16_t position) {
  for (uint16_t next = 0; next != position;) {
    while (queue->Post(1, 8, /*asked=*/false) != 0) {
    }
    for (ContextModel::Operation* operation : queue->model().UnderWay()) {
      next = static_cast<uint16_t>(operation->descriptor.position + 1);
      ASSERT_NO_FATAL_FAILURE(queue->End(operation));
    }
  }
}

// Contract, `spill_base`: a mark may come after its operation ended.
TEST(TxSpillTest, MarkThatCameLateSaysNothing65536SlotsLater) {
  PlayedQueue queue(/*spill=*/true);
  constexpr uint16_t kPosition = 100;
  ASSERT_NO_FATAL_FAILURE(GoTo(&queue, kPosition));
  queue.model().Mark(kPosition);
  ASSERT_EQ(queue.Post(1, 8, false), 0);
  ASSERT_NO_FATAL_FAILURE(queue.End(queue.model().UnderWay().front()));
  ASSERT_NO_FATAL_FAILURE(GoTo(&queue, kPosition));
  ASSERT_EQ(queue.Post(1, 5000, false), 0);
  const uint64_t iova = queue.model().UnderWay().front()->descriptor.local_iova;
  EXPECT_TRUE(queue.IsMapped(iova));
  while (queue.Post(PlayedQueue::kStuck, 8, false) == 0) {
  }
  ASSERT_NO_FATAL_FAILURE(queue.End(queue.model().UnderWay().front()));
  for (int i = 0; i < 200; ++i) {
    if (queue.Post(PlayedQueue::kStuck, 8, false) != 0) {
      queue.model().Spill();
    }
  }
  EXPECT_FALSE(queue.IsMapped(iova));
}

TEST(TxSpillTest, FailureReadLateIsNotOfWhoeverHasItsPositionByThen) {
  for (const bool spilled : {false, true}) {
    SCOPED_TRACE(spilled);
    PlayedQueue queue(/*spill=*/true);
    constexpr uint16_t kPosition = 100;
    ASSERT_NO_FATAL_FAILURE(GoTo(&queue, kPosition));
    ASSERT_EQ(queue.Post(1, 8, /*asked=*/false), 0);
    ASSERT_NO_FATAL_FAILURE(
        queue.End(queue.model().UnderWay().front(), Status::kPeerUnreachable));
    Completion failure = queue.model().completions.front();
    ASSERT_NO_FATAL_FAILURE(GoTo(&queue, kPosition));
    ASSERT_EQ(queue.Post(PlayedQueue::kStuck, 5000, /*asked=*/true), 0);
    const TxDesc user = queue.model().UnderWay().front()->descriptor;
    ASSERT_EQ(user.position, failure.position);
    for (int i = 0; spilled && i < 200; ++i) {
      if (queue.Post(PlayedQueue::kStuck, 8, false) != 0) {
        queue.model().Spill();
      }
    }
    ASSERT_EQ(queue.model().UnderWay().front()->given, spilled);
    // Both have the context that the application gives all.
    failure.op_context = user.op_context;
    EXPECT_TRUE(queue->Retire<backend::Locked>(failure));
    EXPECT_TRUE(queue.IsMapped(user.local_iova));
    queue.model().completions.pop_front();
    ++queue.completions().read;
    ASSERT_NO_FATAL_FAILURE(queue.End(queue.model().UnderWay().front()));
    ASSERT_NO_FATAL_FAILURE(queue.PollAll());
    EXPECT_FALSE(queue.IsMapped(user.local_iova));
  }
}

TEST(SpilledOperationsTest, IsFoundByPositionAndInOrderOfAge) {
  std::mt19937 random(TestSeed());
  SpilledOperations operations;
  constexpr size_t kRoom = 100;
  EXPECT_EQ(operations.Find(0), nullptr);
  ASSERT_TRUE(operations.Reserve(kRoom));
  std::deque<uint16_t> model;  // By age.
  for (int i = 0; i < 20'000; ++i) {
    const auto position =
        static_cast<uint16_t>(random() % 4 * 512 + random() % 64);
    const auto at = std::find(model.begin(), model.end(), position);
    const SpilledOperation* found = operations.Find(position);
    ASSERT_EQ(found != nullptr, at != model.end());
    if (found != nullptr) {
      EXPECT_EQ(found->position, position);
      operations.Remove(position);
      model.erase(at);
    } else {
      const bool added = operations.Add({.position = position});
      ASSERT_EQ(added, model.size() < kRoom);
      if (added) {
        model.push_back(position);
      }
    }
    ASSERT_EQ(operations.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(operations.oldest()->position, model.front());
    }
  }
}

}  // namespace
}  // namespace heddle::nic
