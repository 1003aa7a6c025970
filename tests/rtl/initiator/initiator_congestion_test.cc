// SPDX-License-Identifier: Apache-2.0
// Congestion windows, fixed and under NSCC, in the initiator.
#include <algorithm>
#include <cstdint>
#include <random>

#include "gtest/gtest.h"
#include "tests/rtl/initiator/initiator_bench.h"
#include "tests/seed.h"

namespace heddle {
namespace {

using contract::Status;

constexpr uint32_t kPacket = 1024;
constexpr uint32_t kNominal = kPacket + 108;  // What it counts in a window.

void ExpectAllDone(const InitiatorBench& bench) {
  for (const std::string& error : bench.errors) {
    ADD_FAILURE() << error;
  }
  for (size_t i = 0; i < bench.messages.size(); ++i) {
    EXPECT_EQ(bench.messages[i].completions, 1) << "message " << i;
    EXPECT_EQ(bench.messages[i].status, Status::kOk) << "message " << i;
  }
}

TEST(InitiatorCongestionTest, FixedWindowIsWhatLeavesUnanswered) {
  for (const bool rud : {false, true}) {
    for (const uint32_t packets : {1u, 2u, 5u, 63u, 64u, 200u}) {
      InitiatorBench bench(1);
      bench.rud = rud;
      bench.cwnd_bytes = packets * kNominal;
      bench.targets[7].silent = true;
      bench.Post(7, 100 * kPacket);
      bench.Run(300);
      EXPECT_EQ(bench.packets_seen, std::min(packets, 64u)) << rud;
      EXPECT_EQ(bench.timeouts_seen, 0u);
    }
  }
}

// The packet that closes the window asks for an answer: nobody waits for a
// timer.
TEST(InitiatorCongestionTest, FixedWindowOfAnySizeKeepsMoving) {
  for (const bool rud : {false, true}) {
    for (uint32_t packets = 1; packets < 20; ++packets) {
      InitiatorBench bench(1);
      bench.rud = rud;
      bench.cwnd_bytes = packets * kNominal;
      bench.Post(7, 300 * kPacket);
      bench.Post(7, 300 * kPacket, true);
      ASSERT_TRUE(bench.Run(100000)) << packets << " packets";
      EXPECT_EQ(bench.timeouts_seen, 0u);
      EXPECT_EQ(bench.retransmissions_seen, 0u);
      ExpectAllDone(bench);
    }
  }
}

// An answer that is late by eight packets of a window of 64 costs an eighth of
// the rate.
TEST(InitiatorCongestionTest, AckIsRequestedTwiceAsOftenWithAWindow) {
  for (const bool rud : {false, true}) {
    for (const bool window : {false, true}) {
      InitiatorBench bench(1);
      bench.rud = rud;
      bench.cwnd_bytes = window ? 64 * kNominal : 0;
      bench.Post(7, 200 * kPacket);
      ASSERT_TRUE(bench.Run(100'000));
      EXPECT_EQ(bench.longest_unasked, window ? 7u : 15u) << rud;
      ExpectAllDone(bench);
    }
  }
}

// Cycles per packet: no multiple of the cycles in which packets are issued,
// else the same peer meets each full queue.
constexpr int kBottleneck = 7;

// Two peers share one bottleneck of 28 packets in a round trip.
struct Shared {
  uint64_t cycles = 0, lost = 0, marked = 0;
  uint64_t least = 0, most = 0;  // Packets of the peers, halfway.
};

Shared Share(bool rud, bool congestion) {
  InitiatorBench bench(TestSeed());
  bench.rud = rud;
  bench.network = {.delay_cycles = 100,
                   .bottleneck_cycles = kBottleneck,
                   .queue_packets = 24,
                   .marking_packets = 6};
  if (congestion) {
    bench.cwnd_bytes = 38 * kNominal;
    bench.base_rtt_ns = 200 * InitiatorBench::kCycleNs;
  }
  for (int i = 0; i < 50; ++i) {
    bench.Post(1, 64 * kPacket);
    bench.Post(2, 64 * kPacket);
  }
  Shared s;
  const uint64_t begin = bench.cycle;
  bench.Run(kBottleneck * 3200);  // Half of it on an ideal network.
  s.least = std::min(bench.packets_to[1], bench.packets_to[2]);
  s.most = std::max(bench.packets_to[1], bench.packets_to[2]);
  EXPECT_TRUE(bench.Run(1000000));
  if (congestion) {
    ExpectAllDone(bench);  // Without it ROD may give up the weaker one.
  }
  s.cycles = bench.cycle - begin;
  s.lost = bench.packets_lost;
  s.marked = bench.packets_marked;
  return s;
}

TEST(InitiatorCongestionTest, NsccSharesABottleneckAndLosesLittleThere) {
  for (const bool rud : {false, true}) {
    const Shared without = Share(rud, false);
    const Shared with = Share(rud, true);
    EXPECT_GT(without.lost, 200u);
    EXPECT_LT(with.lost, without.lost / 4);
    EXPECT_GT(with.marked, 0u);
    EXPECT_LT(with.cycles, kBottleneck * 6400 * 2);
    EXPECT_GT(with.least, with.most / 2);
  }
}

// As the reference provider's, whose ACK_CC has zeros for its state, or plain
// ones: what is in flight is known by the PSNs alone.
TEST(InitiatorCongestionTest, NsccGoesOnWithAnswersThatHaveNoState) {
  for (const bool rud : {false, true}) {
    for (const bool plain : {false, true}) {
      InitiatorBench bench(1);
      bench.rud = rud;
      bench.plain_acks = plain;
      bench.cwnd_bytes = 20 * kNominal;
      bench.base_rtt_ns = 200 * InitiatorBench::kCycleNs;
      bench.network.delay_cycles = 100;
      for (int i = 0; i < 20; ++i) bench.Post(7, 100 * kPacket);
      ASSERT_TRUE(bench.Run(200'000)) << rud << plain;
      EXPECT_EQ(bench.packets_seen, 2000u);
      EXPECT_EQ(bench.timeouts_seen, 0u);
      ExpectAllDone(bench);
    }
  }
}

TEST(InitiatorCongestionTest, NsccOnABadNetworkDeliversExactlyOnce) {
  std::mt19937 rng(TestSeed());
  const auto below = [&rng](uint32_t limit) {
    return static_cast<uint32_t>(rng() % limit);
  };
  for (int round = 0; round < 3; ++round) {
    InitiatorBench bench(static_cast<uint32_t>(rng()));
    bench.cwnd_bytes = kNominal * (1 + below(70));
    bench.base_rtt_ns = below(4) == 0 ? 0 : 200 + below(2000);
    bench.network = {.loss = 0.03,
                     .duplicate = 0.03,
                     .reorder = 0.1,
                     .delay_cycles = 10 + below(100),
                     .bottleneck_cycles = below(3),
                     .queue_packets = 8 + below(40),
                     .marking_packets = below(20)};
    for (uint32_t peer = 1; peer <= 5; ++peer) {
      bench.targets[peer].drops_ahead = below(3) * 0.2;
      bench.targets[peer].one_message = below(2) != 0;
    }
    for (int i = 0; i < 200; ++i) {
      bench.rud = below(2) != 0;
      bench.Post(1 + below(5), below(40 * kPacket), below(4) == 0);
      if (below(50) == 0) {
        bench.messages.back().error = contract::ReturnCode::kBadMkey;
        bench.messages.back().error_at = below(bench.messages.back().packets);
      }
    }
    ASSERT_TRUE(bench.Run(3000000)) << "round " << round;
    for (const std::string& error : bench.errors) {
      ADD_FAILURE() << error;
    }
    for (size_t i = 0; i < bench.messages.size(); ++i) {
      EXPECT_EQ(bench.messages[i].completions, 1) << "message " << i;
      EXPECT_EQ(bench.messages[i].status == Status::kOk,
                !bench.messages[i].error.has_value())
          << "message " << i;
    }
  }
}

}  // namespace
}  // namespace heddle
