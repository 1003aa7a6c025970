// SPDX-License-Identifier: Apache-2.0
// Three peers whose data meet in a queue that trims: WRITEs of all to one NIC,
// and READs of one from all.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/lockstep_nodes.h"

namespace heddle {
namespace {

using contract::Opcode;
using contract::Statistic;
using contract::Status;

constexpr uint64_t kLimit = 40000000;  // Cycles; every test ends far earlier.
constexpr uint32_t kPeers = 3;
constexpr uint32_t kHub = kPeers;  // The node whose receiver is narrow.
constexpr uint32_t kPieceBytes = 32768;
constexpr uint32_t kPieces = 16;
constexpr uint32_t kBytes = kPieceBytes * kPieces;  // Of each peer.
constexpr double kRate = 256;                       // Bits per cycle.
constexpr uint64_t kRoundTrip = 1400;               // Of the empty network.
constexpr uint32_t kBdp = 44800;                    // Rate x round trip.

class NicTrimTest : public testing::TestWithParam<std::tuple<bool, Opcode>> {
 protected:
  void SetUp() override {
    sim::nic::LockstepOptions options;
    options.seed = TestSeed();
    options.wire.rx_faults = {.delay = 500,
                              .rate = kRate,
                              .queue_bytes = kBdp,
                              .trim = true,
                              .trim_dscp = 44};
    options.cwnd_bytes = kBdp * 3 / 2;
    options.base_rtt_cycles = kRoundTrip;
    options.dscp_trimmed = 3;
    options.dscp_trimmed_lasthop = 44;
    std::string error;
    nodes_ = LockstepNodes::Create(kPeers + 1, options, &error,
                                   [](size_t, BareEndpointOptions& o) {
                                     o.ordered = std::get<0>(GetParam());
                                   });
    ASSERT_NE(nodes_, nullptr) << error;
    const bool writes = std::get<1>(GetParam()) == Opcode::kWrite;
    for (uint32_t peer = 0; peer < kPeers; ++peer) {
      DmaBuffer& source = nodes_->Memory(peer, kBytes);
      DmaBuffer& target = nodes_->Memory(kHub, kBytes);
      for (uint32_t i = 0; i < kBytes; ++i) {
        source.data()[i] = static_cast<std::byte>(i * 7 + (i >> 11) + peer);
      }
      const uint64_t key =
          writes ? Register(kHub, target) : Register(peer, source);
      flows_.push_back({.source = &source, .target = &target, .key = key});
    }
  }

  uint64_t Register(size_t node, const DmaBuffer& memory) {
    contract::AdminRegisterRegion command = {};
    command.opcode = contract::AdminOpcode::kRegisterRegion;
    command.iova = ToInteger(memory.iova());
    command.length = memory.bytes();
    command.job_id = BareEndpointOptions{}.job_id;
    command.flags = contract::kRegionFlagRemoteRead |
                    contract::kRegionFlagRemoteWrite |
                    contract::kRegionFlagProviderKey;
    const auto answer = nodes_->admin(node).Execute(
        std::bit_cast<contract::AdminCommand>(command));
    EXPECT_TRUE(answer.ok());
    return answer.ok() ? answer.value().key : 0;
  }

  // The next piece of the peer's data; false: its ring has no room.
  bool Post(uint32_t peer) {
    const bool writes = std::get<1>(GetParam()) == Opcode::kWrite;
    const Flow& flow = flows_[peer];
    const uint32_t at = flow.posted * kPieceBytes;
    BareEndpoint& from = nodes_->endpoint(writes ? peer : kHub);
    const Iova local = writes ? flow.source->iova() : flow.target->iova();
    if (!from.tx().PushBuffer({.op_context = peer,
                               .peer = writes ? kHub : peer,
                               .flags = contract::kTxFlagCompletion},
                              local + at, kPieceBytes)) {
      return false;
    }
    contract::TxDesc& descriptor = from.LastTxDesc();
    descriptor.opcode = std::get<1>(GetParam());
    descriptor.match_bits = flow.key;
    descriptor.remote_offset = at;
    return true;
  }

  uint64_t Total(Statistic statistic) {
    uint64_t total = 0;
    for (uint32_t node = 0; node <= kHub; ++node) {
      total += ReadStatistic(nodes_->device(node), statistic);
    }
    return total;
  }

  struct Flow {
    DmaBuffer* source = nullptr;
    DmaBuffer* target = nullptr;
    uint64_t key = 0;
    uint32_t posted = 0;
  };
  std::unique_ptr<LockstepNodes> nodes_;
  std::vector<Flow> flows_;
};

INSTANTIATE_TEST_SUITE_P(
    Mode, NicTrimTest,
    testing::Combine(testing::Bool(),
                     testing::Values(Opcode::kWrite, Opcode::kRead)),
    [](const auto& mode) {
      return std::string(std::get<0>(mode.param) ? "Rod" : "Rud") +
             (std::get<1>(mode.param) == Opcode::kWrite ? "Write" : "Read");
    });

TEST_P(NicTrimTest, AllDataArriveWithoutATimeOut) {
  uint32_t done = 0;
  ASSERT_TRUE(nodes_->StepUntil(kLimit, [&] {
    for (uint32_t peer = 0; peer < kPeers; ++peer) {
      while (flows_[peer].posted < kPieces && Post(peer)) {
        ++flows_[peer].posted;
      }
    }
    for (uint32_t node = 0; node <= kHub; ++node) {
      nodes_->endpoint(node).tx().Publish();
      while (const auto completion = nodes_->endpoint(node).PollTx()) {
        EXPECT_EQ(completion->status, Status::kOk);
        ++done;
      }
    }
    return done == kPeers * kPieces;
  })) << nodes_->Report();
  for (const Flow& flow : flows_) {
    EXPECT_EQ(std::memcmp(flow.target->data(), flow.source->data(), kBytes), 0);
  }
  const auto& wire = nodes_->world().wire();
  EXPECT_GT(wire.trimmed(), 10U);
  EXPECT_EQ(wire.overflowed(), 0U);
  EXPECT_EQ(Total(Statistic::kTimeouts), 0U) << nodes_->Report();
  // The rest were SYNs of PDCs that were not open yet, and duplicates.
  EXPECT_GT(Total(Statistic::kRxTrimmed), wire.trimmed() / 2);
}

}  // namespace
}  // namespace heddle
