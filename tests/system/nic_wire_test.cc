// SPDX-License-Identifier: Apache-2.0
// What the wire may do to a stream of messages: damage, and a pulled plug.
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Statistic;
using contract::Status;

constexpr uint64_t kLimit = 40000000;  // Cycles; every test ends far earlier.
constexpr uint32_t kSlot = 20000;

// A stream of messages of mixed lengths from node 0 to node 1.
class NicWireTest : public NodesTest {
 protected:
  void Open(const sim::fault::FaultOptions& faults, uint32_t count,
            const sim::fault::FaultOptions& rx_faults = {}) {
    sim::nic::LockstepOptions options;
    options.seed = seed_;
    options.wire.faults = faults;
    options.wire.rx_faults = rx_faults;
    ASSERT_NO_FATAL_FAILURE(NodesTest::Open(2, options));
    count_ = count;
    source_ = &nodes_->Memory(0, uint64_t{count} * kSlot);
    target_ = &nodes_->Memory(1, uint64_t{count} * kSlot);
    for (size_t i = 0; i < source_->bytes(); ++i) {
      source_->data()[i] = static_cast<std::byte>(rng_());
    }
    for (uint32_t i = 0; i < count; ++i) {
      lengths_.push_back(
          static_cast<uint32_t>(rng_() % (rng_() % 4 == 0 ? kSlot : 100)));
    }
  }
  // Posts what fits and takes what is done, until `done` or the limit.
  bool Run(const std::function<bool()>& done) {
    return nodes_->StepUntil(kLimit, [&] {
      Step();
      return done();
    });
  }
  bool RunThroughTimeouts(uint64_t count) {
    const uint64_t before = Counted(Statistic::kTimeouts);
    uint32_t calls = 0;  // Each look costs a hundred cycles.
    return Run([&] {
      return ++calls % 1024 == 0 &&
             Counted(Statistic::kTimeouts) >= before + count;
    });
  }
  bool RunToTheEnd() {
    return Run([this] { return acked_ == count_ && received_ == count_; });
  }
  void ExpectEverythingArrivedIntact() {
    for (uint32_t i = 0; i < count_; ++i) {
      EXPECT_EQ(std::memcmp(target_->data() + uint64_t{i} * kSlot,
                            source_->data() + uint64_t{i} * kSlot, lengths_[i]),
                0)
          << "message " << i << " of " << lengths_[i] << " bytes";
    }
  }
  uint64_t Counted(Statistic statistic) {
    return ReadStatistic(nodes_->device(0), statistic) +
           ReadStatistic(nodes_->device(1), statistic);
  }

  const uint32_t seed_ = TestSeed();
  std::mt19937 rng_{seed_};
  uint32_t acked_ = 0;
  uint32_t received_ = 0;

 private:
  void Step() {
    BareEndpoint& a = nodes_->endpoint(0);
    BareEndpoint& b = nodes_->endpoint(1);
    while (posted_ < count_ &&
           b.rx().TryPush(posted_, target_->iova() + uint64_t{posted_} * kSlot,
                          kSlot)) {
      ++posted_;
    }
    b.rx().Publish();
    while (sent_ < count_ &&
           a.tx().PushBuffer({.op_context = sent_,
                              .peer = 1,
                              .flags = contract::kTxFlagCompletion},
                             source_->iova() + uint64_t{sent_} * kSlot,
                             lengths_[sent_])) {
      ++sent_;
    }
    a.tx().Publish();
    while (auto completion = a.PollTx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      EXPECT_EQ(completion->op_context, acked_);
      ++acked_;
    }
    while (auto completion = b.PollRx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      EXPECT_EQ(completion->op_context, received_);
      EXPECT_EQ(completion->length, lengths_[received_]);
      ++received_;
    }
  }

  uint32_t count_ = 0;
  DmaBuffer* source_ = nullptr;
  DmaBuffer* target_ = nullptr;
  std::vector<uint32_t> lengths_;
  uint32_t posted_ = 0;
  uint32_t sent_ = 0;
};

TEST_F(NicWireTest, FramesWithABadFcsAreDroppedCountedAndSentAgain) {
  sim::fault::FaultOptions faults;
  faults.bad_fcs = 0.03;
  ASSERT_NO_FATAL_FAILURE(Open(faults, 200));
  ASSERT_TRUE(RunToTheEnd());
  ExpectEverythingArrivedIntact();
  nodes_->world().Step(20000);  // The last acknowledgements arrive.
  EXPECT_GT(nodes_->world().wire().bad_fcs(), 0U);
  EXPECT_EQ(Counted(Statistic::kDropMacError),
            nodes_->world().wire().bad_fcs());
}

TEST_F(NicWireTest, SilentCorruptionIsCaughtByCrcAndLengthAlone) {
  sim::fault::FaultOptions faults;
  faults.corrupt = 0.03;
  ASSERT_NO_FATAL_FAILURE(Open(faults, 200));
  ASSERT_TRUE(RunToTheEnd());
  ExpectEverythingArrivedIntact();
  nodes_->world().Step(20000);  // The last acknowledgements arrive.
  EXPECT_GT(nodes_->world().wire().corrupted(), 0U);
  // A changed packet type may have a longer header than the frame.
  EXPECT_EQ(Counted(Statistic::kDropCrc) + Counted(Statistic::kDropTruncated),
            nodes_->world().wire().corrupted());
  EXPECT_EQ(Counted(Statistic::kDropIpChecksum), 0U);
}

TEST_F(NicWireTest, AllFaultsTogetherLoseDoubleAndChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(Open({.loss = 0.01,
                                .duplicate = 0.01,
                                .reorder = 0.01,
                                .corrupt = 0.01,
                                .bad_fcs = 0.01},
                               300));
  ASSERT_TRUE(RunToTheEnd());
  ExpectEverythingArrivedIntact();
}

// A round trip of half the retransmission time, and a bottleneck whose queue
// the window overruns.
TEST_F(NicWireTest, ALongAndNarrowWireLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(Open({.delay = 4000,
                                .jitter = 500,
                                .rate = 128,
                                .queue_bytes = 16384,
                                .ecn_bytes = 4096},
                               60));
  ASSERT_TRUE(RunToTheEnd());
  ExpectEverythingArrivedIntact();
  sim::pins::LockstepWire& wire = nodes_->world().wire();
  EXPECT_GT(wire.overflowed(), 0U);
  EXPECT_GT(wire.marked(), 0U);
  EXPECT_GT(Counted(Statistic::kTxRetransmissions), 0U);
  EXPECT_EQ(Counted(Statistic::kDropIpChecksum), 0U)
      << "a mark keeps the checksum of the header";
  EXPECT_EQ(Counted(Statistic::kDropCrc), 0U)
      << "the end-to-end CRC does not cover the mark";
}

TEST_F(NicWireTest, FaultsOfTheReceiversLoseDoubleAndChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(Open({}, 300,
                               {.loss = 0.01,
                                .duplicate = 0.01,
                                .reorder = 0.01,
                                .corrupt = 0.01,
                                .bad_fcs = 0.01,
                                .ecn = 0.05,
                                .delay = 300}));
  ASSERT_TRUE(RunToTheEnd());
  ExpectEverythingArrivedIntact();
  EXPECT_GT(nodes_->world().wire().marked(), 0U);
  EXPECT_GT(nodes_->world().wire().lost(), 0U);
}

TEST_F(NicWireTest, TrafficGoesOnAfterALinkWasDown) {
  constexpr uint32_t kLink = contract::kBar0DeviceStatusLinkMask;
  ASSERT_NO_FATAL_FAILURE(Open({}, 200));
  sim::nic::LockstepWorld& world = nodes_->world();
  uint32_t before = 0;
  for (const size_t node : {size_t{0}, size_t{1}}) {
    SCOPED_TRACE(node);
    const auto status = [&] {
      return nodes_->device(node).ReadRegister32(
          contract::kBar0DeviceStatusOffset);
    };
    ASSERT_TRUE(Run([&] { return received_ >= before + 30; }));
    EXPECT_NE(status() & kLink, 0U);
    world.SetLink(node, /*up=*/false);
    EXPECT_EQ(status() & kLink, 0U);
    EXPECT_NE(status() & contract::kBar0DeviceStatusReadyMask, 0U);
    // What was on its way still arrives; then only time-outs pass.
    const uint64_t lost = world.wire().lost_link_down();
    ASSERT_TRUE(RunThroughTimeouts(3));
    EXPECT_GT(world.wire().lost_link_down(), lost);
    before = received_;
    ASSERT_TRUE(RunThroughTimeouts(1));
    EXPECT_EQ(received_, before);
    world.SetLink(node, /*up=*/true);
    EXPECT_NE(status() & kLink, 0U);
  }
  ASSERT_TRUE(RunToTheEnd());
  ExpectEverythingArrivedIntact();
}

}  // namespace
}  // namespace heddle
