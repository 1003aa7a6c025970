// SPDX-License-Identifier: Apache-2.0
// Random receives, peeks, claims and messages against a plain model of
// matching.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"
#include "tests/soft/engine/lossy_fabric.h"
#include "tests/soft/engine/match_ring.h"

namespace heddle::soft::engine {
namespace {

using contract::Completion;
using contract::MatchDesc;
using contract::MatchOp;
using contract::Status;

// Two senders and a receiver. Messages of one step come from one sender, whose
// context is ordered, and have arrived when the step ends: so the order of
// arrivals and of descriptors is known, and two plain lists give the outcome of
// each operation.
class Model {
 public:
  Model(uint32_t seed, TestFabric* fabric)
      : random_(seed),
        fabric_(*fabric),
        receiver_(fabric, {}),
        senders_{std::make_unique<EngineNode>(fabric),
                 std::make_unique<EngineNode>(fabric)},
        // Rings of descriptors are larger than the room for receives.
        ring_(&receiver_, {.receives = kReceives}),
        buffers_(receiver_.Allocate(kBuffers * kBuffer)) {
    for (auto& sender : senders_) {
      data_.push_back(sender->Allocate(kData));
      for (uint32_t i = 0; i < kData; ++i) {
        data_.back()[i] = static_cast<uint8_t>(random_());
      }
    }
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      SCOPED_TRACE(i);
      switch (Number(5)) {
        case 0:
        case 1:
          Send();
          break;
        case 2:
        case 3:
          Receive();
          break;
        default:
          Other();
          break;
      }
      Check();
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }

 private:
  static constexpr uint32_t kData = 32768;
  static constexpr uint32_t kBuffer = 8192;
  static constexpr uint32_t kBuffers = 128;
  static constexpr uint32_t kReceives = 16;
  static constexpr uint32_t kUnexpected = 24;  // The ring has room for more.

  struct Message {
    uint32_t from = 0;
    uint64_t tag = 0;
    uint32_t at = 0;  // In the sender's data.
    uint32_t length = 0;
    uint64_t claim = 0;  // 0: it waits.
  };
  struct Posted {
    MatchDesc descriptor;
    uint32_t used = 0;
  };

  uint32_t Number(uint32_t n) {
    return std::uniform_int_distribution<uint32_t>(0, n - 1)(random_);
  }

  static bool Matches(const MatchDesc& rule, const Message& message) {
    const bool any = (rule.flags & contract::kMatchFlagAnySource) != 0;
    return ((rule.match_bits ^ message.tag) & ~rule.ignore_bits) == 0 &&
           (any || rule.source_fa_lo == message.from + 1);
  }

  // A receive takes the message; returns whether the receive takes more.
  bool Take(Posted& posted, const Message& message) {
    const MatchDesc& descriptor = posted.descriptor;
    const bool multi = (descriptor.flags & contract::kMatchFlagMultiRecv) != 0;
    const uint32_t free = descriptor.length - posted.used;
    const uint32_t length = std::min(message.length, free);
    Completion entry;
    entry.status = message.length > free ? Status::kTruncated : Status::kOk;
    entry.op_context = descriptor.op_context;
    entry.length = length;
    entry.message_length = message.length;
    entry.match_bits = message.tag;
    entry.source_fa_lo = message.from + 1;
    entry.flags = contract::kCompletionFlagTagged;
    const uint64_t address = descriptor.local_iova + posted.used;
    if (multi) {
      entry.queue_head = static_cast<uint16_t>(posted.used);
      entry.flags |= contract::kCompletionFlagBufferOffset;
    }
    posted.used += length;
    const uint32_t left = descriptor.length - posted.used;
    const bool goes_on = multi && left != 0 && left >= descriptor.min_free;
    if (multi && !goes_on) {
      entry.flags |= contract::kCompletionFlagBufferReleased;
    }
    expected_.push_back({entry, address, data_[message.from] + message.at});
    return goes_on;
  }

  void Arrive(const Message& message) {
    for (auto it = posted_.begin(); it != posted_.end(); ++it) {
      if (Matches(it->descriptor, message)) {
        if (!Take(*it, message)) {
          posted_.erase(it);
        }
        return;
      }
    }
    unexpected_.push_back(message);
  }

  void Send() {
    const uint32_t from = Number(2);
    EngineNode& sender = *senders_[from];
    uint32_t count = 1 + Number(4);
    uint32_t sent = 0;
    for (; count != 0 && unexpected_.size() < kUnexpected; --count) {
      Message message = {from, Number(4), 0,
                         Number(3) == 0 ? Number(6000) : Number(100)};
      message.at = Number(kData - message.length);
      sender.Put(
          TaggedSend(0, data_[from] + message.at, message.length, message.tag));
      ++sent;
      Arrive(message);
    }
    sender.Ring();
    for (int i = 0; i < 1'000'000 && sent != 0; ++i) {
      sender.engine().Progress(4);
      fabric_.Step();
      while (const auto entry = sender.Poll(0)) {
        EXPECT_EQ(entry->status, Status::kOk);
        --sent;
      }
    }
    EXPECT_EQ(sent, 0u);
  }

  MatchDesc Rule(MatchOp opcode) {
    MatchDesc descriptor = MatchRing::Op(opcode, Number(4));
    descriptor.op_context = ++contexts_;
    if (Number(4) == 0) {
      descriptor.ignore_bits = Number(2) == 0 ? ~uint64_t{0} : 1;
    }
    if (Number(3) == 0) {
      descriptor.flags = 0;
      descriptor.source_fa_lo = 1 + Number(2);
      descriptor.initiator = uint32_t{EngineNode::kPid} << 12U;
    }
    return descriptor;
  }

  // First message that waits and matches.
  std::list<Message>::iterator Find(const MatchDesc& rule) {
    return std::find_if(unexpected_.begin(), unexpected_.end(),
                        [&](const Message& message) {
                          return message.claim == 0 && Matches(rule, message);
                        });
  }

  void AddBuffer(MatchDesc* descriptor) {
    descriptor->local_iova =
        EngineNode::Iova(buffers_ + next_buffer_++ % kBuffers * kBuffer);
    descriptor->length = Number(3) == 0 ? Number(50) : kBuffer;
  }

  void Receive() {
    if (posted_.size() >= kReceives) {
      Cancel();
      return;
    }
    Posted posted = {Rule(MatchOp::kReceive), 0};
    MatchDesc& descriptor = posted.descriptor;
    AddBuffer(&descriptor);
    if (Number(5) == 0 && descriptor.length != 0) {
      descriptor.flags |= contract::kMatchFlagMultiRecv;
      descriptor.min_free = Number(200);
    }
    bool goes_on = true;
    bool took = false;
    const bool multi = (descriptor.flags & contract::kMatchFlagMultiRecv) != 0;
    for (auto it = Find(descriptor);
         it != unexpected_.end() && goes_on && (multi || !took);
         it = Find(descriptor)) {
      goes_on = Take(posted, *it);
      took = true;
      unexpected_.erase(it);
    }
    if (goes_on && (multi || !took)) {
      posted_.push_back(posted);
    }
    ring_.Post(descriptor, descriptor.op_context);
  }

  void Cancel() {
    const uint32_t which = Number(static_cast<uint32_t>(posted_.size()));
    const auto it = std::next(posted_.begin(), which);
    Completion entry;
    entry.status = Status::kCancelled;
    entry.op_context = it->descriptor.op_context;
    entry.flags = (it->descriptor.flags & contract::kMatchFlagMultiRecv) != 0
                      ? contract::kCompletionFlagBufferReleased
                      : uint8_t{0};
    expected_.push_back({entry, 0, nullptr});
    ring_.Cancel(static_cast<uint32_t>(entry.op_context));
    posted_.erase(it);
  }

  void ExpectSeen(uint64_t op_context, const Message* message) {
    Completion entry;
    entry.op_context = op_context;
    entry.status = message == nullptr ? Status::kNoMessage : Status::kOk;
    if (message != nullptr) {
      entry.message_length = message->length;
      entry.match_bits = message->tag;
      entry.source_fa_lo = message->from + 1;
      entry.flags = contract::kCompletionFlagTagged;
    }
    expected_.push_back({entry, 0, nullptr});
  }

  void Other() {
    const auto opcode = static_cast<MatchOp>(1 + Number(5));
    MatchDesc descriptor = Rule(opcode);
    const bool of_claim = opcode == MatchOp::kReceiveClaimed ||
                          opcode == MatchOp::kDiscardClaimed;
    auto it = unexpected_.end();
    if (of_claim) {
      if (opcode == MatchOp::kReceiveClaimed && posted_.size() >= kReceives) {
        return;
      }
      if (!claims_.empty() && Number(8) != 0) {
        descriptor.op_context =
            claims_[Number(static_cast<uint32_t>(claims_.size()))];
      }
      it = std::find_if(unexpected_.begin(), unexpected_.end(),
                        [&](const Message& message) {
                          return message.claim == descriptor.op_context;
                        });
      AddBuffer(&descriptor);
    } else {
      it = Find(descriptor);
    }
    const bool found = it != unexpected_.end();
    if (found && opcode == MatchOp::kReceiveClaimed) {
      Posted posted = {descriptor, 0};
      Take(posted, *it);
    } else {
      ExpectSeen(descriptor.op_context, found ? &*it : nullptr);
    }
    if (found && opcode == MatchOp::kClaim) {
      it->claim = descriptor.op_context;
      claims_.push_back(descriptor.op_context);
    } else if (found && opcode != MatchOp::kPeek) {
      unexpected_.erase(it);
    }
    ring_.Post(descriptor, descriptor.op_context);
  }

  void Check() {
    while (const auto entry = receiver_.Poll(1)) {
      ASSERT_FALSE(expected_.empty()) << "of " << entry->op_context;
      const Expected& expected = expected_.front();
      const Completion& told = expected.entry;
      ASSERT_EQ(entry->op_context, told.op_context);
      ASSERT_EQ(entry->status, told.status);
      ASSERT_EQ(entry->length, told.length);
      ASSERT_EQ(entry->message_length, told.message_length);
      ASSERT_EQ(entry->match_bits, told.match_bits);
      ASSERT_EQ(entry->source_fa_lo, told.source_fa_lo);
      ASSERT_EQ(entry->flags, told.flags);
      ASSERT_EQ(entry->queue_head, told.queue_head);
      if (told.length != 0) {
        const auto* const placed =
            reinterpret_cast<const uint8_t*>(expected.address);
        ASSERT_TRUE(std::equal(placed, placed + told.length, expected.data));
      }
      expected_.pop_front();
    }
    ASSERT_TRUE(expected_.empty())
        << "no completion of " << expected_.front().entry.op_context;
    ASSERT_EQ(ring_.waiting(), 0u);
  }

  struct Expected {
    Completion entry;
    uint64_t address = 0;
    const uint8_t* data = nullptr;
  };

  std::mt19937 random_;
  TestFabric& fabric_;
  EngineNode receiver_;
  std::unique_ptr<EngineNode> senders_[2];
  MatchRing ring_;
  uint8_t* buffers_;
  std::vector<uint8_t*> data_;
  std::list<Posted> posted_;
  std::list<Message> unexpected_;
  std::deque<Expected> expected_;
  std::vector<uint64_t> claims_;
  uint64_t contexts_ = 0;
  uint32_t next_buffer_ = 0;
};

TEST(EngineMatchRandomTest, EachMessageMeetsTheReceiveOfTheModel) {
  const uint32_t seed = TestSeed();
  for (uint32_t round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    FakeFabric fabric(seed + round);
    Model(seed + round, &fabric).Run(400);
  }
}

TEST(EngineMatchRandomTest, EachMessageMeetsTheReceiveOfTheModelOnABadWire) {
  const uint32_t seed = TestSeed();
  for (uint32_t round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    LossyFabric fabric(seed + round,
                       {.loss = 0.02, .duplication = 0.02, .reordering = 0.1});
    Model(seed + round, &fabric).Run(200);
  }
}

// Whatever the host writes, the device completes each descriptor at most once
// and continues.
TEST(EngineMatchRandomTest, AnyDescriptorHasADefinedEnd) {
  const uint32_t seed = TestSeed();
  std::mt19937 random(seed);
  FakeFabric fabric(seed);
  EngineNode sender(&fabric);
  EngineNode node(&fabric);
  MatchRing ring(&node, {.area_bytes = 8192, .unexpected = 4, .receives = 8});
  uint8_t* const data = sender.Allocate(4096);
  for (int i = 0; i < 4000; ++i) {
    MatchDesc descriptor;
    auto* const bytes = reinterpret_cast<uint8_t*>(&descriptor);
    std::generate(bytes, bytes + sizeof(descriptor), std::ref(random));
    descriptor.opcode = static_cast<MatchOp>(random() % 8);
    descriptor.match_bits = random() % 2;
    descriptor.local_iova =
        random() % 2 == 0
            ? node.Unmapped() - random() % 64
            : node.Arena() + EngineNode::kArenaMapped - random() % 100;
    descriptor.length = static_cast<uint32_t>(random() % 100);
    ring.Put(descriptor);
    ring.Ring();
    if (random() % 4 == 0) {
      ring.Cancel(static_cast<uint32_t>(random()));
    }
    if (sender.released() == sender.tx_tail()) {
      sender.Post(TaggedSend(1, data, static_cast<uint32_t>(random() % 4096),
                             random() % 2));
    }
    for (int step = 0; step < 20; ++step) {
      sender.engine().Progress(1);
      fabric.Step();
    }
    while (node.Poll(1)) {
    }
    while (sender.Poll(0)) {
    }
    if (ring.waiting() > 32) {
      ring.Write();
    }
  }
  // The next life is a good one.
  ring.Write();
  Settle(fabric, {&sender, &node});
  while (node.Poll(1)) {
  }
  ring.Post(MatchRing::Op(MatchOp::kPeek, 77), 5);
  const auto entry = node.Poll(1);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->op_context, 5u);
}

}  // namespace
}  // namespace heddle::soft::engine
