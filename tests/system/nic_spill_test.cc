// SPDX-License-Identifier: Apache-2.0
// A peer without buffers, and what its messages leave to others of the context.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Statistic;
using contract::Status;

constexpr uint32_t kLongest = 1500;
constexpr uint32_t kStuck = 1;  // Nodes, and peers of node 0.
constexpr uint32_t kHealthy = 2;

class NicSpillTest : public NodesTest {
 protected:
  // The sender is an endpoint of its own on node 0.
  void Open(const BareEndpointOptions& sender,
            const sim::nic::LockstepOptions& options = {}) {
    NodesTest::Open(3, options);
    ASSERT_NE(nodes_, nullptr);
    for (const uint32_t node : {kStuck, kHealthy}) {
      target_[node] = &nodes_->Memory(node, kTargetSlots * kLongest);
    }
    Begin(sender);
  }
  void Begin(BareEndpointOptions sender) {
    sender.port = 1;
    sender.receives = false;
    ordered_ = sender.ordered;
    std::string error;
    sender_ = BareEndpoint::Create(nodes_->device(0), nodes_->admin(0), sender,
                                   &error);
    ASSERT_NE(sender_, nullptr) << error;
    for (uint32_t node = 0; node < 3; ++node) {
      sender_->AddPeer(sim::frame::WireAddress(LockstepNodes::Address(node)),
                       nodes_->endpoint(node).grant());
    }
  }

  static std::byte ByteOf(uint32_t peer, uint32_t number, uint32_t at) {
    return static_cast<std::byte>(peer * 91 + number * 7 + at * 13);
  }
  // Bytes of a message, in its descriptor or in extension slots.
  static uint32_t LengthOf(uint32_t number) {
    constexpr uint32_t kLengths[] = {8, 150, 16, 0, 1};
    return kLengths[number % 5];
  }

  // Sends message `number` of `peer`; false when the ring is full.
  bool Post(uint32_t peer, uint32_t number) {
    SendRing& tx = sender_->tx();
    (void)tx.ReleaseFromCell();
    const uint32_t length = LengthOf(number);
    std::vector<std::byte> bytes(length);
    for (uint32_t i = 0; i < length; ++i) bytes[i] = ByteOf(peer, number, i);
    const SendFields fields = {
        .op_context = uint64_t{peer} << 32 | number,
        .header_data = number,
        .peer = peer,
        .flags = contract::kTxFlagCompletion | contract::kTxFlagHeaderData};
    if (!(length <= contract::kInlineBytes
              ? tx.PushInline(fields, bytes.data(), length)
              : tx.PushInlineExt(fields, bytes.data(), length))) {
      return false;
    }
    tx.Publish();
    return true;
  }
  // Posts buffers, until there were `count` in all.
  void Receive(uint32_t node, uint32_t count = UINT32_MAX) {
    RecvRing& rx = nodes_->endpoint(node).rx();
    while (buffers_[node] < count && rx.free_slots() != 0 &&
           rx.TryPush(buffers_[node] % kTargetSlots, Buffer(node), kLongest)) {
      ++buffers_[node];
      rx.Publish();
    }
  }
  Iova Buffer(uint32_t node) {
    return Iova{ToInteger(target_[node]->iova()) +
                uint64_t{buffers_[node] % kTargetSlots} * kLongest};
  }
  // What came to a node is as sent, once, and in order where that was asked.
  void Look(uint32_t node) {
    while (const auto entry = nodes_->endpoint(node).PollRx()) {
      EXPECT_EQ(entry->status, Status::kOk);
      const auto number = static_cast<uint32_t>(entry->header_data);
      if (ordered_) {
        EXPECT_EQ(number, received_[node].size());
      }
      EXPECT_TRUE(received_[node].insert(number).second) << number;
      EXPECT_EQ(entry->length, LengthOf(number));
      const std::byte* bytes =
          target_[node]->data() + entry->op_context * kLongest;
      uint32_t wrong = 0;
      for (uint32_t i = 0; i < entry->length; ++i) {
        wrong += bytes[i] != ByteOf(node, number, i) ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0U) << "node " << node << " message " << number;
    }
    while (const auto entry = sender_->PollTx()) {
      EXPECT_EQ(entry->status, Status::kOk);
      const auto peer = static_cast<uint32_t>(entry->op_context >> 32);
      const auto number = static_cast<uint32_t>(entry->op_context);
      if (ordered_) {
        EXPECT_EQ(number, reported_[peer].size());
      }
      EXPECT_TRUE(reported_[peer].insert(number).second) << number;
    }
  }

  // Cycles in which `count` messages reach the healthy peer. Meanwhile, one to
  // two of these, messages to the other are posted until there are `stuck`.
  uint64_t CyclesOf(uint32_t count, uint32_t stuck) {
    const uint64_t start = nodes_->world().cycle();
    const uint32_t last =
        static_cast<uint32_t>(received_[kHealthy].size()) + count;
    uint32_t turn = 0;
    EXPECT_TRUE(nodes_->StepUntil(
        kLimitCycles,
        [&] {
          Receive(kHealthy);
          const bool to_stuck = posted_[kStuck] < stuck && turn % 3 == 0;
          const uint32_t peer = to_stuck ? kStuck : kHealthy;
          if ((to_stuck || posted_[kHealthy] < last) &&
              Post(peer, posted_[peer])) {
            ++posted_[peer];
            ++turn;
          }
          Look(kHealthy);
          return received_[kHealthy].size() == last;
        }))
        << received_[kHealthy].size() << " of " << last << ", stuck "
        << posted_[kStuck];
    return nodes_->world().cycle() - start;
  }
  // The other peer posts buffers, and gets what is for it.
  void Unstick() {
    EXPECT_TRUE(nodes_->StepUntil(
        kLimitCycles,
        [&] {
          Receive(kStuck, posted_[kStuck]);
          Look(kStuck);
          return received_[kStuck].size() == posted_[kStuck] &&
                 reported_[kStuck].size() == posted_[kStuck] &&
                 reported_[kHealthy].size() == posted_[kHealthy];
        }))
        << received_[kStuck].size() << " of " << posted_[kStuck];
    nodes_->world().Step(20000);
    Look(kStuck);
    EXPECT_EQ(received_[kStuck].size(), posted_[kStuck]);
  }

  static constexpr uint32_t kTargetSlots = 512;
  // Most messages of a stuck peer in the message table.
  static constexpr uint32_t kPeerShare = contract::kMessageShare / 8;
  std::unique_ptr<BareEndpoint> sender_;
  bool ordered_ = true;
  DmaBuffer* target_[3] = {};
  // By node: buffers, messages posted to it, messages that arrived, and those
  // that were reported to the sender.
  uint32_t buffers_[3] = {};
  uint32_t posted_[3] = {};
  std::set<uint32_t> received_[3];
  std::set<uint32_t> reported_[3];
};

TEST_F(NicSpillTest, APeerWithoutBuffersHoldsUpNoOther) {
  Open({.tx_log2 = 7, .spill = true});
  (void)CyclesOf(50, 0);
  const uint64_t alone = CyclesOf(400, 0);
  EXPECT_EQ(Count(0, Statistic::kTxSpilled), 0U);
  constexpr uint32_t kMessages = 90;  // In 144 slots; the ring has 128.
  (void)CyclesOf(2 * kMessages, kMessages);
  EXPECT_EQ(posted_[kStuck], kMessages);
  (void)CyclesOf(100, kMessages);  // Until their slots have been given up.
  const uint64_t beside = CyclesOf(400, kMessages);
  EXPECT_LT(beside, alone + alone / 9) << "alone " << alone;
  EXPECT_GE(Count(0, Statistic::kTxSpilled), kMessages / 2);
  EXPECT_EQ(received_[kStuck].size(), 0U);
  Unstick();
}

// Of a ring's worth of messages most wait in the spill area.
TEST_F(NicSpillTest, ARingFullForAStuckPeerHoldsUpNoOther) {
  Open({.tx_log2 = 8, .spill = true});
  (void)CyclesOf(50, 0);
  const uint64_t alone = CyclesOf(400, 0);
  constexpr uint32_t kMessages = 160;  // In 256 slots.
  EXPECT_TRUE(nodes_->StepUntil(kLimitCycles, [&] {
    while (posted_[kStuck] < kMessages && Post(kStuck, posted_[kStuck])) {
      ++posted_[kStuck];
    }
    return posted_[kStuck] == kMessages;
  }));
  // Those in front move meanwhile, and their slots are given up.
  EXPECT_LT(CyclesOf(300, kMessages), kMessages * 1000U);
  const uint64_t beside = CyclesOf(400, kMessages);
  EXPECT_LT(beside, alone + alone / 9) << "alone " << alone;
  EXPECT_EQ(received_[kStuck].size(), 0U);
  Unstick();
}

TEST_F(NicSpillTest, WithoutASpillAreaTheRingWaits) {
  Open({.tx_log2 = 6});
  uint32_t posted = 0;
  EXPECT_FALSE(nodes_->StepUntil(100000, [&] {
    while (Post(kStuck, posted)) ++posted;
    return posted > 64;
  }));
  posted_[kStuck] = posted;
  EXPECT_EQ(Count(0, Statistic::kTxSpilled), 0U);
  Unstick();
}

// A context with `early_release` takes an area in the NIC, as does the next one
// in its place: there are fewer areas than rounds.
TEST_F(NicSpillTest, WithoutASpillAreaTheNicLendsOne) {
  Open({.tx_log2 = 7, .early_release = true});
  (void)CyclesOf(50, 0);
  const uint64_t alone = CyclesOf(400, 0);
  EXPECT_EQ(Count(0, Statistic::kTxSpilled), 0U);
  constexpr uint32_t kMessages = 90;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    const uint64_t spilled = Count(0, Statistic::kTxSpilled);
    (void)CyclesOf(2 * kMessages, kMessages);
    EXPECT_EQ(posted_[kStuck], kMessages);
    (void)CyclesOf(100, kMessages);
    const uint64_t beside = CyclesOf(400, kMessages);
    EXPECT_LT(beside, alone + alone / 9) << "alone " << alone;
    EXPECT_GE(Count(0, Statistic::kTxSpilled), spilled + kMessages / 2);
    EXPECT_EQ(received_[kStuck].size(), 0U);
    if (round == 0) Unstick();
    sender_.reset();
    for (const uint32_t node : {kStuck, kHealthy}) {
      posted_[node] = 0;
      reported_[node].clear();
      received_[node].clear();
    }
    Begin({.tx_log2 = 7, .early_release = true});
  }
}

// More contexts have a stuck peer than there are areas: the last one waits for
// its peer, and gets an area when another context ends.
TEST_F(NicSpillTest, AContextThatEndsLeavesItsAreaToOthers) {
  constexpr uint32_t kAreas = 4;
  Open({.tx_log2 = 6, .early_release = true});
  std::vector<std::unique_ptr<BareEndpoint>> more;
  for (uint32_t i = 0; i < kAreas; ++i) {
    std::string error;
    more.push_back(BareEndpoint::Create(
        nodes_->device(0), nodes_->admin(0),
        {.port = 2 + i, .tx_log2 = 6, .receives = false, .early_release = true},
        &error));
    ASSERT_NE(more.back(), nullptr) << error;
    more.back()->AddPeer(
        sim::frame::WireAddress(LockstepNodes::Address(kStuck)),
        nodes_->endpoint(kStuck).grant());
    // More than its ring has slots.
    uint32_t posted = 0;
    EXPECT_TRUE(nodes_->StepUntil(kLimitCycles, [&] {
      SendRing& tx = more.back()->tx();
      (void)tx.ReleaseFromCell();
      const uint64_t byte = 0;
      if (posted < 80 && tx.PushInline({.peer = 0}, &byte, 1)) {
        ++posted;
        tx.Publish();
      }
      return posted == 80;
    })) << posted;
  }
  // The last one has none left.
  uint32_t posted = 0;
  const auto post = [&] {
    while (posted < 80 && Post(kStuck, posted)) ++posted;
    return posted == 80;
  };
  EXPECT_FALSE(nodes_->StepUntil(100000, post));
  EXPECT_LE(posted, 64U);
  more[1].reset();
  EXPECT_TRUE(nodes_->StepUntil(kLimitCycles, post)) << posted;
}

// Payload is sent again, from the spill area, in whatever order.
class NicSpillModeTest
    : public NicSpillTest,
      public ::testing::WithParamInterface<std::pair<bool, bool>> {
 protected:
  BareEndpointOptions Sender() const {
    const auto [ordered, in_nic] = GetParam();
    return {.tx_log2 = 7,
            .ordered = ordered,
            .spill = !in_nic,
            .early_release = in_nic};
  }
};

TEST_P(NicSpillModeTest, SpilledPayloadSurvivesABadNetwork) {
  sim::nic::LockstepOptions options;
  options.wire.faults.loss = 0.03;
  options.wire.faults.reorder = 0.03;
  options.seed = TestSeed();
  Open(Sender(), options);
  for (uint32_t round = 1; round <= 3; ++round) {
    (void)CyclesOf(300, round * 90);
    EXPECT_GE(Count(0, Statistic::kTxSpilled), round * 40);
    Unstick();
  }
}

INSTANTIATE_TEST_SUITE_P(
    , NicSpillModeTest,
    ::testing::Values(std::pair(false, false), std::pair(true, false),
                      std::pair(false, true), std::pair(true, true)),
    [](const auto& param) {
      return std::string(param.param.first ? "Rod" : "Rud") +
             (param.param.second ? "InTheNic" : "");
    });

TEST_F(NicSpillTest, TheNextContextFindsTheSpillAreaFree) {
  Open({.tx_log2 = 6, .spill = true});
  for (int round = 0; round < 4; ++round) {
    (void)CyclesOf(100, 200);
    EXPECT_GE(posted_[kStuck], 50U);
    sender_.reset();
    // What was posted and not sent is lost with its context.
    for (const uint32_t node : {kStuck, kHealthy}) {
      posted_[node] = 0;
      reported_[node].clear();
      received_[node].clear();
    }
    Begin({.tx_log2 = 6, .spill = true});
  }
}

// Payload stays where it is when it cannot be copied; the rest goes on.
TEST_F(NicSpillTest, AnAreaThatTheHostRefusesIsNotUsed) {
  Open({.tx_log2 = 6, .spill = true, .spill_iova = uint64_t{1} << 50});
  uint32_t posted = 0;
  EXPECT_FALSE(nodes_->StepUntil(100000, [&] {
    while (Post(kStuck, posted)) ++posted;
    return posted > 64;
  }));
  posted_[kStuck] = posted;
  EXPECT_EQ(Count(0, Statistic::kDmaWriteErrors), 1U);
  Unstick();
}

}  // namespace
}  // namespace heddle
