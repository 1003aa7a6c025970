// SPDX-License-Identifier: Apache-2.0
// Events of one endpoint must not disturb the traffic of others: no frame is
// dropped, and no pause is long.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Statistic;

constexpr uint32_t kBytes = 8;
constexpr uint64_t kLongestPause = 64;  // Cycles.

// Streams of small messages, from node 0 to each other node in turn.
class UndisturbedTest : public NodesTest {
 protected:
  void OpenStreams(size_t peers, sim::nic::LockstepOptions options,
                   size_t others = 0, bool ordered = false) {
    options.seed = TestSeed();
    ASSERT_NO_FATAL_FAILURE(Open(peers + 1 + others, options,
                                 [=, this](size_t, BareEndpointOptions& o) {
                                   o.ordered = ordered;
                                   o.spill = to_stuck_;
                                   o.tx_log2 = 12;
                                   o.rx_log2 = 12;
                                   o.cq_log2 = 12;
                                   o.av_entries = 256;
                                 }));
    peers_ = peers;
    posted_ = received_ = 0;
    payload_ = &nodes_->Memory(0, kBytes);
    for (size_t i = 1; i <= peers; ++i) {
      buffers_[i] = &nodes_->Memory(i, kBytes);
    }
    first_ = 1;
    entries_ = static_cast<uint32_t>(peers);
  }
  // Node 1 has so many entries in the address vector: messages go by each of
  // them in turn.
  void AddEntries(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t index =
          a().AddPeer(LockstepNodes::Address(1), b().grant());
      if (i == 0) {
        first_ = index;
      }
    }
    entries_ = count;
  }
  // The hosts' part of a cycle.
  void Serve() {
    for (size_t i = 1; i <= peers_; ++i) {
      RecvRing& ring = nodes_->endpoint(i).rx();
      while (ring.TryPush(0, buffers_[i]->iova(), kBytes)) {
      }
      ring.Publish();
      while (nodes_->endpoint(i).PollRx()) {
        ++received_;
      }
    }
    while (a().tx().PushInline(
        {.peer = to_stuck_ && posted_ % 10 == 9
                     ? kStuckEntry
                     : static_cast<uint32_t>(first_ + posted_ % entries_),
         .flags = static_cast<uint8_t>(
             posted_ % 16 == 15 ? contract::kTxFlagCompletion : 0)},
        payload_->data(), kBytes)) {
      ++posted_;
    }
    a().tx().Publish();
    while (a().PollTx()) {
    }
    (void)a().tx().ReleaseFromCell();
  }
  // Cycles for each of so many messages.
  double CyclesPerMessage(uint64_t messages) {
    const auto run = [&](uint64_t until) {
      EXPECT_TRUE(nodes_->StepUntil(kLimitCycles, [&] {
        Serve();
        return received_ >= until;
      }));
    };
    run(1000);
    const uint64_t start = nodes_->world().cycle();
    const uint64_t first = received_;
    run(first + messages);
    return static_cast<double>(nodes_->world().cycle() - start) /
           static_cast<double>(received_ - first);
  }
  // The sum over all nodes.
  uint64_t Counted(Statistic statistic) {
    uint64_t count = 0;
    for (size_t node = 0; node <= peers_; ++node) {
      count += Count(node, statistic);
    }
    return count;
  }
  void ExpectNothingDropped() {
    EXPECT_EQ(Counted(Statistic::kDropOverflow), 0U);
    EXPECT_EQ(Counted(Statistic::kTxRetransmissions), 0U);
  }

  bool IsSink(size_t node, uint64_t address) const {
    return address / 64 == ToInteger(buffers_[node]->iova()) / 64;
  }

  // Streams from node 0 to node 1, and an endpoint of its own on node 0 that
  // has sent `messages` to node 2, which has no receives.
  void OpenBesideStuck(uint32_t messages, bool ordered) {
    ASSERT_NO_FATAL_FAILURE(OpenStreams(1, {}, 1));
    std::string error;
    other_ = BareEndpoint::Create(
        nodes_->device(0), nodes_->admin(0),
        {.port = 7, .tx_log2 = 10, .ordered = ordered, .spill = true}, &error);
    ASSERT_NE(other_, nullptr) << error;
    other_->AddPeer(LockstepNodes::Address(kOther),
                    nodes_->endpoint(kOther).grant());
    PostStuck(messages);
  }
  void PostStuck(uint32_t messages) {
    for (uint32_t i = 0; i < messages; ++i) {
      (void)other_->tx().ReleaseFromCell();
      if (!other_->tx().PushInline({}, payload_->data(), kBytes)) break;
      ++stuck_;
    }
    other_->tx().Publish();
  }
  void ServeFor(uint64_t cycles) {
    const uint64_t end = nodes_->world().cycle() + cycles;
    EXPECT_TRUE(nodes_->StepUntil(kLimitCycles, [&] {
      Serve();
      return nodes_->world().cycle() >= end;
    }));
  }
  void TearDown() override {
    other_.reset();
    NodesTest::TearDown();
  }

  // The posted messages and receives last for longer than `event`.
  void ExpectNoPauseDuring(const std::function<void()>& event) {
    CyclesPerMessage(1000);
    uint64_t writes = 0, last = 0, pause = 0;
    const auto observe = [&](const sim::nic::PinEvents& pins) {
      if (pins.write_address && IsSink(kTarget, pins.address)) {
        const uint64_t now = nodes_->world().cycle();
        pause = writes++ == 0 ? 0 : std::max(pause, now - last);
        last = now;
      }
    };
    nodes_->world().model(kTarget).Observe(observe);
    const uint64_t start = nodes_->world().cycle();
    event();
    const uint64_t end = nodes_->world().cycle();
    nodes_->world().model(kTarget).Observe({});
    std::printf("%llu cycles, %llu messages, longest pause %llu cycles\n",
                static_cast<unsigned long long>(end - start),
                static_cast<unsigned long long>(writes),
                static_cast<unsigned long long>(pause));
    EXPECT_LT(end - last, kLongestPause) << "nothing was left to receive";
    EXPECT_LE(pause, kLongestPause);
    CyclesPerMessage(500);
    EXPECT_EQ(Counted(Statistic::kDropOverflow), 0U);
    // Messages to a stuck peer are retransmitted, those to the target are not.
    EXPECT_EQ(Count(kTarget, Statistic::kRxDuplicates), 0U);
  }

  static constexpr uint32_t kStuckEntry = 2;  // The entry of `kOther`.
  static constexpr size_t kTarget = 1;
  static constexpr size_t kOther = 2;
  size_t peers_ = 0;
  uint64_t posted_ = 0, received_ = 0;
  uint32_t stuck_ = 0;
  bool to_stuck_ = false;  // Every tenth message of a stream.
  std::unique_ptr<BareEndpoint> other_;

 private:
  uint32_t first_ = 0, entries_ = 0;
  DmaBuffer* payload_ = nullptr;
  std::array<DmaBuffer*, 8> buffers_ = {};
};

TEST_F(UndisturbedTest, CongestionControlHoldsNoAcknowledgement) {
  constexpr size_t kPeers = 3;
  constexpr uint64_t kMessages = 2000;
  ASSERT_NO_FATAL_FAILURE(OpenStreams(kPeers, {}));
  const double without = CyclesPerMessage(kMessages);
  ExpectNothingDropped();
  sim::nic::LockstepOptions options;
  options.cwnd_bytes = 64 * 4200;
  options.base_rtt_cycles = 1000;
  ASSERT_NO_FATAL_FAILURE(OpenStreams(kPeers, options));
  const double with = CyclesPerMessage(kMessages);
  ExpectNothingDropped();
  std::printf("%.2f cycles per message, with congestion control %.2f\n",
              without, with);
  EXPECT_LE(with, without + 0.3);
}

// Packets after a gap arrive at line rate. A frame that finds no room
// after them could be another peer's.
TEST_F(UndisturbedTest, WhatFollowsAGapIsNotDropped) {
  sim::nic::LockstepOptions options;
  options.wire.latency_cycles = 500;
  options.wire.faults.loss = 0.005;
  ASSERT_NO_FATAL_FAILURE(OpenStreams(1, options, 0, /*ordered=*/true));
  std::printf("%.2f cycles per message\n", CyclesPerMessage(5000));
  EXPECT_EQ(Count(kTarget, Statistic::kDropOverflow), 0U);
  EXPECT_GT(Count(kTarget, Statistic::kRxOutOfOrder), 2000U);
}

// `ResolveTest` has as many peers as the NIC caches.
TEST_F(UndisturbedTest, ManyPeersInTurnCostNoMoreThanAFew) {
  constexpr uint32_t kEntries = 200;
  ASSERT_NO_FATAL_FAILURE(OpenStreams(1, {}));
  AddEntries(kEntries);
  const double each = CyclesPerMessage(10 * kEntries);
  std::printf("%.2f cycles per message\n", each);
  EXPECT_LE(each, 3.0);
}

// An unused endpoint ends while its NIC receives for another.
TEST_F(UndisturbedTest, AnIdleEndpointEndsWithoutAPause) {
  ASSERT_NO_FATAL_FAILURE(OpenStreams(1, {}));
  std::string error;
  auto idle = BareEndpoint::Create(nodes_->device(kTarget),
                                   nodes_->admin(kTarget), {.port = 7}, &error);
  ASSERT_NE(idle, nullptr) << error;
  ExpectNoPauseDuring([&] { idle.reset(); });
}

TEST_F(UndisturbedTest, ARegionEndsWithoutAPause) {
  ASSERT_NO_FATAL_FAILURE(OpenStreams(1, {}));
  const Region region = Register(kTarget, nodes_->Memory(kTarget, 4096));
  ExpectNoPauseDuring([&] { Deregister(kTarget, region); });
}

// Its peer has no receives: messages leave its ring.
TEST_F(UndisturbedTest, AnotherContextSpillsWithoutAPause) {
  for (const bool ordered : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(OpenBesideStuck(16, ordered));
    ExpectNoPauseDuring([&] {
      for (int round = 0; round < 50; ++round) {
        PostStuck(20);
        ServeFor(100);
      }
      ServeFor(2000);
    });
    EXPECT_GE(stuck_, 900U);
    EXPECT_GE(Count(0, Statistic::kTxSpilled), 200U);
    other_.reset();
    stuck_ = 0;
  }
}

// Every tenth message is to a peer that has no receives.
TEST_F(UndisturbedTest, MessagesOfTheContextSpillWithoutAPause) {
  to_stuck_ = true;
  ASSERT_NO_FATAL_FAILURE(OpenStreams(1, {}, 1));
  CyclesPerMessage(10000);
  const uint64_t before = Count(0, Statistic::kTxSpilled);
  ExpectNoPauseDuring([&] { ServeFor(10000); });
  EXPECT_GE(Count(0, Statistic::kTxSpilled), before + 100);
}

TEST_F(UndisturbedTest, AnotherContextThatSpilledEndsWithoutAPause) {
  ASSERT_NO_FATAL_FAILURE(OpenBesideStuck(900, true));
  ServeFor(20000);
  EXPECT_GE(Count(0, Statistic::kTxSpilled), 200U);
  ExpectNoPauseDuring([&] { other_.reset(); });
}

// Messages to it are outstanding. It serves again, and they come as to a new
// peer.
TEST_F(UndisturbedTest, APeerOfAnotherContextResetsWithoutAPause) {
  ASSERT_NO_FATAL_FAILURE(OpenBesideStuck(900, true));
  BareEndpoint& peer = nodes_->endpoint(kOther);
  DmaBuffer& buffer = nodes_->Memory(kOther, kBytes);
  ASSERT_TRUE(peer.rx().TryPush(0, buffer.iova(), kBytes));
  peer.rx().Publish();
  EXPECT_TRUE(nodes_->StepUntil(kLimitCycles, [&] {
    Serve();
    return peer.PollRx().has_value();
  })) << "the PDC is open";
  ServeFor(20000);
  std::unique_ptr<AdminQueue> admin;
  std::unique_ptr<BareEndpoint> again;
  ExpectNoPauseDuring([&] {
    Device& device = nodes_->device(kOther);
    ASSERT_TRUE(device.Reset().ok());
    peer.Forget();
    std::string error;
    ASSERT_TRUE(WaitReady(device, kReadyLimit, error).ok()) << error;
    auto created = AdminQueue::Create(device);
    ASSERT_TRUE(created.ok());
    admin = std::move(created.value());
    again = BareEndpoint::Create(device, *admin, {}, &error);
    ASSERT_NE(again, nullptr) << error;
    const uint64_t before = Count(kOther, Statistic::kRxRefused);
    EXPECT_TRUE(nodes_->StepUntil(kLimitCycles, [&] {
      Serve();
      return Count(kOther, Statistic::kRxRefused) > before;
    })) << "it has no receives, either";
    ServeFor(5000);
  });
}

}  // namespace
}  // namespace heddle
