// SPDX-License-Identifier: Apache-2.0
// Two senders and a receiver behind a narrow line, with and without NSCC.
#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/lockstep_nodes.h"

namespace heddle {
namespace {

using contract::Status;

constexpr uint64_t kLimit = 40000000;  // Cycles; every test ends far earlier.
constexpr uint32_t kBytes = 16000;     // Of a message: four packets.
constexpr uint32_t kMessages = 40;     // Of each sender.
constexpr uint32_t kSenders = 2;
constexpr uint32_t kRate = 128;           // Bits per cycle.
constexpr uint32_t kPacketCycles = 264;   // At that rate.
constexpr uint32_t kQueueBytes = 100000;  // 24 packets.
constexpr uint32_t kRoundTrip = 2400;     // Of the empty network: 9 packets.
// Two windows that the network and its queue hold without loss, and two that
// overflow it at once.
constexpr uint32_t kFits = 48000, kOverflows = 100000;
// Cycles by which the second sender begins later.
constexpr std::array<uint64_t, 2> kOffsets = {30, 500};

struct Outcome {
  uint64_t cycles = 0;
  uint64_t overflowed = 0, marked = 0;
  uint64_t least = 0;  // Messages of the slower sender when half were done.
};

class NicCongestionTest : public testing::TestWithParam<bool> {
 protected:
  // To the end, or for so many cycles. The first window is `cwnd_bytes`; 0:
  // without NSCC.
  Outcome Run(uint32_t cwnd_bytes, uint64_t limit_cycles, uint64_t offset = 0) {
    sim::nic::LockstepOptions options;
    options.seed = TestSeed();
    options.wire.rx_faults = {.delay = 1000,
                              .rate = kRate,
                              .queue_bytes = kQueueBytes,
                              .ecn_bytes = kQueueBytes / 4};
    // Without it the same sender may meet the full queue each time.
    options.wire.faults.jitter = kPacketCycles;
    if (cwnd_bytes != 0) {
      options.cwnd_bytes = cwnd_bytes;
      options.base_rtt_cycles = kRoundTrip;
    }
    std::string error;
    nodes_ = LockstepNodes::Create(
        kSenders + 1, options, &error,
        [](size_t, BareEndpointOptions& o) { o.ordered = GetParam(); });
    EXPECT_NE(nodes_, nullptr) << error;
    Fill();
    const uint64_t begin = nodes_->world().cycle();
    second_begins_ = begin + offset;
    Outcome outcome;
    const bool ended = nodes_->StepUntil(limit_cycles, [&] {
      Step();
      const uint32_t done = acked_[0] + acked_[1];
      if (done <= kMessages) {
        outcome.least = std::min(acked_[0], acked_[1]);
      }
      return done == kSenders * kMessages && received_ == kSenders * kMessages;
    });
    EXPECT_TRUE(ended || limit_cycles != kLimit);
    outcome.cycles = nodes_->world().cycle() - begin;
    outcome.overflowed = nodes_->world().wire().overflowed();
    outcome.marked = nodes_->world().wire().marked();
    EXPECT_EQ(nodes_->world().failure(), "");
    return outcome;
  }

 private:
  void Fill() {
    sent_ = {};
    acked_ = {};
    posted_ = received_ = 0;
    sink_ = &nodes_->Memory(kSenders, kBytes);
    for (size_t node = 0; node < kSenders; ++node) {
      source_[node] = &nodes_->Memory(node, kBytes);
    }
  }
  void Step() {
    BareEndpoint& to = nodes_->endpoint(kSenders);
    while (posted_ < kSenders * kMessages &&
           to.rx().TryPush(posted_, sink_->iova(), kBytes)) {
      ++posted_;
    }
    to.rx().Publish();
    for (size_t node = 0; node < kSenders; ++node) {
      if (node == 1 && nodes_->world().cycle() < second_begins_) {
        continue;
      }
      BareEndpoint& from = nodes_->endpoint(node);
      while (sent_[node] < kMessages &&
             from.tx().PushBuffer({.op_context = sent_[node],
                                   .peer = kSenders,
                                   .flags = contract::kTxFlagCompletion},
                                  source_[node]->iova(), kBytes)) {
        ++sent_[node];
      }
      from.tx().Publish();
      while (auto completion = from.PollTx()) {
        EXPECT_EQ(completion->status, Status::kOk);
        ++acked_[node];
      }
    }
    while (auto completion = to.PollRx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      EXPECT_EQ(completion->length, kBytes);
      ++received_;
    }
  }

  std::unique_ptr<LockstepNodes> nodes_;
  DmaBuffer* sink_ = nullptr;
  std::array<DmaBuffer*, kSenders> source_ = {};
  std::array<uint32_t, kSenders> sent_ = {}, acked_ = {};
  uint32_t posted_ = 0, received_ = 0;
  uint64_t second_begins_ = 0;  // Cycle.
};

INSTANTIATE_TEST_SUITE_P(Mode, NicCongestionTest, testing::Bool(),
                         [](const auto& ordered) {
                           return std::string(ordered.param ? "Rod" : "Rud");
                         });

TEST_P(NicCongestionTest, NsccKeepsTheQueueShort) {
  const Outcome with = Run(kOverflows, kLimit);
  const Outcome without = Run(0, with.cycles);
  EXPECT_GT(without.overflowed, 50U);
  EXPECT_LT(with.overflowed, without.overflowed / 4);
  EXPECT_GT(with.marked, 0U);
}

// A sender that the first burst cost its window gets it back in some 40 round
// trips, so the shares are compared where nothing is lost.
TEST_P(NicCongestionTest, NsccGivesSendersEqualShares) {
  for (const uint64_t offset : kOffsets) {
    const Outcome outcome = Run(kFits, kLimit, offset);
    EXPECT_EQ(outcome.overflowed, 0U);
    EXPECT_GT(outcome.marked, 0U);
    EXPECT_GE(outcome.least, kMessages * 2 / 5) << "offset " << offset;
  }
}

}  // namespace
}  // namespace heddle
