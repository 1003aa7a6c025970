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
#include "host/lib/nic/tx_queue.h"
#include "tests/driver/fake_device.h"
#include "tests/seed.h"

namespace heddle::nic {
namespace {

using contract::Completion;
using contract::CompletionKind;
using contract::Opcode;
using contract::SpillMark;
using contract::Status;
using contract::TxDesc;

// The device's side of a transmit context, as the contract has it.
class ContextModel {
 public:
  ContextModel(FakeDevice* device, const TxQueue& queue)
      : device_(device),
        size_(1U << queue.ring_log2()),
        slots_(At<TxDesc>(ToInteger(queue.ring_iova()))),
        cell_(At<uint64_t>(ToInteger(queue.head_cell_iova()))),
        marks_(At<SpillMark>(ToInteger(queue.spill_iova()) +
                             uint64_t{size_} * contract::kDescBytes)) {}

  struct Operation {
    TxDesc descriptor;
    uint16_t slots = 1;
    bool ended = false;
    bool given = false;  // Up; its slots are released.
  };

  template <typename T>
  static T* At(uint64_t iova) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<T*>(iova - FakeDevice::kIovaOffset);
  }

  // What the last doorbell published.
  void Fetch() {
    uint16_t tail = taken_;
    if (!device_->rung.empty()) {
      tail = static_cast<uint16_t>(device_->rung.back().value >>
                                   contract::kDoorbellTailCountLsb);
      device_->rung.clear();
    }
    ASSERT_LE(static_cast<uint16_t>(tail - told_), size_);
    while (taken_ != tail) {
      const TxDesc descriptor = slots_[taken_ & (size_ - 1U)];
      ASSERT_EQ(descriptor.position, taken_);
      ASSERT_TRUE(descriptor.opcode == Opcode::kNop ||
                  std::none_of(given_.begin(), given_.end(),
                               [&](const Operation& other) {
                                 return other.descriptor.position == taken_;
                               }))
          << "one name for two operations";
      const auto slots = static_cast<uint16_t>(1 + descriptor.ext_slots);
      ring_.push_back({.descriptor = descriptor,
                       .slots = slots,
                       .ended = descriptor.opcode == Opcode::kNop});
      taken_ = static_cast<uint16_t>(taken_ + slots);
    }
    Release();
  }

  // Gives up what is oldest while the ring is as full as that.
  void Spill() {
    // Those in flight have entries of the message table.
    while (given_.size() < contract::kMessageShare &&
           static_cast<uint16_t>(taken_ - told_) >= size_ - size_ / 4 &&
           !ring_.empty()) {
      Operation operation = ring_.front();
      ring_.pop_front();
      const uint16_t position = operation.descriptor.position;
      marks_[position & (size_ - 1U)] = {.position = position, .given = 1};
      head_ = static_cast<uint16_t>(head_ + operation.slots);
      operation.given = true;
      given_.push_back(operation);
      Release();
      Store();
      ++spilled;
    }
  }

  // All that have not ended, the oldest first.
  std::vector<Operation*> UnderWay() {
    std::vector<Operation*> found;
    for (Operation& operation : given_) {
      found.push_back(&operation);
    }
    for (Operation& operation : ring_) {
      if (!operation.ended) {
        found.push_back(&operation);
      }
    }
    return found;
  }

  void End(Operation* operation, Status status) {
    const TxDesc descriptor = operation->descriptor;
    const bool given = operation->given;
    const bool asked = (descriptor.flags & contract::kTxFlagCompletion) != 0 ||
                       status != Status::kOk;
    operation->ended = true;
    given_.remove_if([](const Operation& other) { return other.ended; });
    Release();
    if (asked || given) {
      told_ = head_;
      completions.push_back(
          {.op_context = descriptor.op_context,
           .peer = descriptor.peer,
           .queue_head = head_,
           .position = descriptor.position,
           .status = status,
           .opcode = descriptor.opcode,
           .kind = asked ? CompletionKind::kTx : CompletionKind::kTxSilent});
    } else if (static_cast<uint16_t>(head_ - told_) > (size_ - 1U) / 4) {
      Store();
    }
    if (UnderWay().empty() && head_ != told_) {
      Store();
    }
  }

  std::deque<Completion> completions;  // Not read yet.
  uint64_t spilled = 0;

 private:
  void Release() {
    while (!ring_.empty() && ring_.front().ended) {
      head_ = static_cast<uint16_t>(head_ + ring_.front().slots);
      ring_.pop_front();
    }
  }
  void Store() { *cell_ = told_ = head_; }

  FakeDevice* device_;
  uint32_t size_;
  TxDesc* slots_;
  uint64_t* cell_;
  SpillMark* marks_;
  uint16_t taken_ = 0;
  uint16_t head_ = 0;
  uint16_t told_ = 0;
  std::list<Operation> ring_;  // From the head on.
  std::list<Operation> given_;
};

// A queue with its device, and what the application expects of both. The
// context of an operation is its number.
class SpillingQueue {
 public:
  static constexpr uint32_t kStuck = 7;  // A peer.

  SpillingQueue() {
    auto created = TxQueue::Create(
        device_, {.operations = 32, .copy_limit_bytes = 1024, .spill = true},
        &credit_);
    EXPECT_TRUE(created.ok() && created.value()->Bind(device_, 0).ok());
    queue_ = std::move(created.value());
    model_.emplace(&device_, *queue_);
  }

  TxQueue* operator->() { return queue_.get(); }
  ContextModel& model() { return *model_; }

  struct Payload {
    std::vector<uint8_t> bytes;  // Of the caller.
    bool asked = false;
    bool read = false;
  };

  // 0 or EAGAIN.
  int Post(uint32_t peer, size_t bytes, bool asked, bool read = false) {
    auto payload = std::make_unique<Payload>();
    payload->bytes.assign(bytes, static_cast<uint8_t>(next_));
    payload->asked = asked;
    payload->read = read;
    const Segment segment = {.address = payload->bytes.data(), .bytes = bytes};
    RmaOperation operation;
    operation.context = next_;
    operation.peer = peer;
    operation.flags = asked ? contract::kTxFlagCompletion : uint8_t{0};
    operation.opcode = Opcode::kRead;
    const RemoteSegment remote = {.bytes = bytes};
    const int error =
        read ? queue_->PostRma<Locked>(operation, {&segment, 1}, {&remote, 1})
             : PostSend(operation, segment);
    if (error == 0) {
      outstanding_.emplace(next_++, std::move(payload));
    }
    model_->Fetch();
    return error;
  }

  // The device is done with it. Its payload is there to the end.
  void End(ContextModel::Operation* operation, Status status = Status::kOk) {
    const TxDesc descriptor = operation->descriptor;
    const auto at = outstanding_.find(descriptor.op_context);
    ASSERT_NE(at, outstanding_.end());
    if (descriptor.segments == 1) {
      ASSERT_TRUE(
          device_.IsMapped(descriptor.local_iova, descriptor.local_length));
      auto* const memory = ContextModel::At<uint8_t>(descriptor.local_iova);
      if (at->second->read) {
        std::fill_n(memory, descriptor.local_length, uint8_t{0xaa});
      } else {
        ASSERT_EQ(std::count(memory, memory + descriptor.local_length,
                             static_cast<uint8_t>(descriptor.op_context)),
                  descriptor.local_length);
      }
    }
    const bool silent = (descriptor.flags & contract::kTxFlagCompletion) == 0;
    model_->End(operation, status);
    if (silent && status != Status::kOk) {
      // The cell may leave the head of its entry behind by any number of slots.
      ASSERT_NO_FATAL_FAILURE(PollAll());
    }
    if (status == Status::kOk && !at->second->asked && !at->second->read) {
      done_.push_back(std::move(at->second));
      outstanding_.erase(at);
    }
  }

  // Reads one completion.
  void Poll() {
    const Completion entry = model_->completions.front();
    model_->completions.pop_front();
    if (entry.kind == CompletionKind::kTxSilent) {
      const Locked::Guard guard(queue_->lock());
      queue_->RetireSilent(entry);
      return;
    }
    Retire(entry);
  }

  void Retire(const Completion& entry) {
    const bool report = queue_->Retire<Locked>(entry);
    const auto at = outstanding_.find(entry.op_context);
    ASSERT_NE(at, outstanding_.end()) << "never posted, or reported twice";
    const Payload& payload = *at->second;
    // An error is the reader's to report, whatever this says.
    EXPECT_EQ(report, payload.asked || !payload.read);
    if (payload.read && entry.status == Status::kOk) {
      EXPECT_EQ(std::count(payload.bytes.begin(), payload.bytes.end(), 0xaa),
                static_cast<ptrdiff_t>(payload.bytes.size()));
    }
    outstanding_.erase(at);
  }

  void PollAll() {
    while (!model_->completions.empty()) {
      ASSERT_NO_FATAL_FAILURE(Poll());
    }
  }
  bool IsMapped(uint64_t iova) const { return device_.IsMapped(iova, 1); }
  size_t outstanding() const { return outstanding_.size(); }

 private:
  int PostSend(const SendOperation& operation, const Segment& segment) {
    return segment.bytes <= contract::kInlineBytes
               ? queue_->PostInline<Locked>(operation, segment.address,
                                            segment.bytes)
               : queue_->Post<Locked>(operation, {&segment, 1});
  }

  FakeDevice device_;
  CqCredit credit_{1U << 20};
  std::unique_ptr<TxQueue> queue_;
  std::optional<ContextModel> model_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::unique_ptr<Payload>> outstanding_;
  // Memory that was sent may still be mapped: it stays until the end.
  std::vector<std::unique_ptr<Payload>> done_;
};

TEST(TxSpillTest, OthersGoOnPastStuckOperationsOfAllKinds) {
  SpillingQueue queue;
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
        ASSERT_TRUE(post(SpillingQueue::kStuck, bytes, asked, false));
      }
      ASSERT_TRUE(post(SpillingQueue::kStuck, 300, asked, true));
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
    while (queue.model().UnderWay().size() > stuck + 20) {
      ASSERT_NO_FATAL_FAILURE(
          queue.End(queue.model().UnderWay().at(stuck + i % 20)));
    }
    if (i % 7 == 0) {
      ASSERT_NO_FATAL_FAILURE(queue.PollAll());
    }
  }
  EXPECT_GE(queue.model().UnderWay().size(), stuck);
  while (!queue.model().UnderWay().empty()) {
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
        (void)queue_->Retire<Locked>(*entry);
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
  SpillingQueue queue_;
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
  SpillingQueue queue;
  for (int i = 0; i < 200; ++i) {
    if (queue.Post(SpillingQueue::kStuck, 5000, i % 2 == 0) != 0) {
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
