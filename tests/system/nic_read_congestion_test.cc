// SPDX-License-Identifier: Apache-2.0
// READs whose data meet on a narrow line, with and without NSCC.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Statistic;
using contract::Status;

constexpr uint64_t kLimit = 40000000;  // Cycles; every test ends far earlier.
constexpr uint32_t kBytes = 32000;     // Of a READ: eight packets.
constexpr uint32_t kReads = 16;        // Of each flow, four at a time.
constexpr size_t kFlows = 3;
constexpr uint32_t kRate = 128;           // Bits per cycle: a packet in 264.
constexpr uint32_t kQueueBytes = 100000;  // 24 packets.
constexpr uint32_t kRoundTrip = 2400;     // Of the empty network: 9 packets.

struct Outcome {
  uint64_t cycles = 0;
  uint64_t overflowed = 0, marked = 0;
  uint32_t least = 0;  // READs of the slowest flow when half were done.
};

// One reader of several sources, or several readers of one source.
class NicReadCongestionTest : public NodesTest,
                              public testing::WithParamInterface<bool> {
 protected:
  static size_t ReaderOf(size_t flow) { return GetParam() ? 0 : flow + 1; }
  static size_t SourceOf(size_t flow) { return GetParam() ? flow + 1 : 0; }

  // To the end, or for so many cycles.
  Outcome Run(bool congestion, uint64_t limit_cycles) {
    sim::nic::LockstepOptions options;
    options.seed = TestSeed();
    // The line at the node that all flows share.
    (GetParam() ? options.wire.rx_faults : options.wire.faults) = {
        .delay = 1000,
        .rate = kRate,
        .queue_bytes = kQueueBytes,
        .ecn_bytes = kQueueBytes / 4};
    if (congestion) {
      options.cwnd_bytes = 100'000;
      options.base_rtt_cycles = kRoundTrip;
    }
    Open(kFlows + 1, options);
    Prepare();
    const uint64_t begin = nodes_->world().cycle();
    Outcome outcome;
    const bool ended = nodes_->StepUntil(limit_cycles, [&] {
      uint32_t all = 0;
      for (size_t flow = 0; flow < kFlows; ++flow) {
        Step(flow);
      }
      for (const uint32_t done : done_) all += done;
      if (all <= kFlows * kReads / 2) {
        outcome.least = *std::min_element(done_.begin(), done_.end());
      }
      return all == kFlows * kReads;
    });
    EXPECT_TRUE(ended || limit_cycles != kLimit);
    outcome.cycles = nodes_->world().cycle() - begin;
    outcome.overflowed = nodes_->world().wire().overflowed();
    outcome.marked = nodes_->world().wire().marked();
    EXPECT_EQ(nodes_->world().failure(), "");
    return outcome;
  }

  void ExpectWhole() {
    for (size_t flow = 0; flow < kFlows; ++flow) {
      EXPECT_EQ(std::memcmp(sink_[flow]->data(), source_[flow]->data(), kBytes),
                0);
    }
  }

 private:
  void Prepare() {
    posted_ = done_ = {};
    for (size_t flow = 0; flow < kFlows; ++flow) {
      source_[flow] = &nodes_->Memory(SourceOf(flow), kBytes);
      sink_[flow] = &nodes_->Memory(ReaderOf(flow), kBytes);
      Fill(*source_[flow], static_cast<uint32_t>(flow) + 1);
      key_[flow] = Register(SourceOf(flow), *source_[flow]).key;
    }
  }
  void Step(size_t flow) {
    BareEndpoint& reader = nodes_->endpoint(ReaderOf(flow));
    while (
        posted_[flow] < std::min(kReads, done_[flow] + 4) &&
        reader.tx().PushBuffer({.op_context = flow,
                                .peer = static_cast<uint32_t>(SourceOf(flow)),
                                .flags = contract::kTxFlagCompletion},
                               sink_[flow]->iova(), kBytes)) {
      contract::TxDesc& desc = reader.LastTxDesc();
      desc.opcode = contract::Opcode::kRead;
      desc.match_bits = key_[flow];
      desc.remote_offset = 0;
      ++posted_[flow];
    }
    reader.tx().Publish();
    while (auto completion = reader.PollTx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      ++done_[completion->op_context];
    }
  }

  std::array<DmaBuffer*, kFlows> source_ = {}, sink_ = {};
  std::array<uint64_t, kFlows> key_ = {};
  std::array<uint32_t, kFlows> posted_ = {}, done_ = {};
};

INSTANTIATE_TEST_SUITE_P(Flows, NicReadCongestionTest, testing::Bool(),
                         [](const auto& one_reader) {
                           return std::string(one_reader.param ? "OneReader"
                                                               : "OneSource");
                         });

TEST_P(NicReadCongestionTest, NsccKeepsTheQueueShortAndTheFlowsEqual) {
  const Outcome with = Run(true, kLimit);
  ExpectWhole();
  const Outcome without = Run(false, with.cycles);
  EXPECT_GT(without.overflowed, 50U);
  EXPECT_LT(with.overflowed, without.overflowed / 4);
  EXPECT_GT(with.marked, 0U);
  EXPECT_GE(with.least, 2U) << "a flow starves";
  // The line is busy for half of the time at least.
  EXPECT_LT(with.cycles, uint64_t{kFlows} * kReads * kBytes * 8 / kRate * 2);
}

}  // namespace
}  // namespace heddle
