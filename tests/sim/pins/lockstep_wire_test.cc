// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pins/lockstep_wire.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/frame/test_frames.h"

namespace heddle::sim::pins {
namespace {

constexpr uint32_t kIpA = 0x0a000001;
constexpr uint32_t kIpB = 0x0a000002;
constexpr size_t kBus = 64;

struct Arrival {
  uint64_t cycle;  // Of the last beat.
  uint64_t first_cycle;
  frame::Frame frame;
  bool bad_fcs;
};

// Ports that send queued frames at one beat per cycle and note what arrives.
class Bench {
 public:
  Bench(const LockstepWireOptions& options, const std::vector<uint32_t>& ips)
      : wire(options) {
    for (const uint32_t ip : ips) {
      wire.AddPort(ip);
    }
    queues.resize(ips.size());
    arrivals.resize(ips.size());
    partial_.resize(ips.size());
    first_.resize(ips.size());
    offsets_.resize(ips.size());
  }

  void Run(uint64_t cycles) {
    for (uint64_t i = 0; i < cycles; ++i) {
      wire.BeginCycle(++cycle);
      for (uint32_t port = 0; port < queues.size(); ++port) {
        Cycle(port);
      }
    }
  }

  LockstepWire wire;
  uint64_t cycle = 0;
  uint64_t period = 1;  // Cycles per beat sent.
  std::vector<std::vector<frame::Frame>> queues;
  std::vector<std::vector<Arrival>> arrivals;

 private:
  void Cycle(uint32_t port) {
    MacLink& mac = *wire.mac(port);
    ASSERT_TRUE(mac.TransmitReady());
    MacBeat beat;
    if (mac.Receive(&beat)) {
      if (partial_[port].empty()) {
        first_[port] = cycle;
      }
      partial_[port].insert(partial_[port].end(), beat.data.begin(),
                            beat.data.begin() + beat.bytes);
      if (beat.last) {
        arrivals[port].push_back({cycle, first_[port],
                                  std::exchange(partial_[port], {}),
                                  beat.error});
      }
    }
    if (!queues[port].empty() && cycle % period == 0) {
      const frame::Frame& frame = queues[port].front();
      const size_t bytes = std::min(kBus, frame.size() - offsets_[port]);
      const bool last = offsets_[port] + bytes == frame.size();
      mac.Transmit({frame.data() + offsets_[port], bytes}, last);
      offsets_[port] += bytes;
      if (last) {
        offsets_[port] = 0;
        queues[port].erase(queues[port].begin());
      }
    }
  }

  std::vector<frame::Frame> partial_;
  std::vector<uint64_t> first_;
  std::vector<size_t> offsets_;
};

TEST(LockstepWireTest, EachBeatTakesTheLatencyAtLineRate) {
  for (const size_t extra : {size_t{0}, size_t{100}, size_t{9000}}) {
    SCOPED_TRACE(extra);
    Bench bench({.latency_cycles = 50, .faults = {}, .cycle_ns = 4},
                {kIpA, kIpB});
    const frame::Frame frame = frame::MakeAck(kIpB, 0, 1, extra);
    bench.queues[0].push_back(frame);
    bench.queues[0].push_back(frame);
    bench.Run(1000);
    const uint64_t beats = (frame.size() + kBus - 1) / kBus;
    ASSERT_EQ(bench.arrivals[1].size(), 2u);
    EXPECT_EQ(bench.arrivals[1][0].frame, frame);
    EXPECT_EQ(bench.arrivals[1][0].first_cycle, 1 + 50u);
    EXPECT_EQ(bench.arrivals[1][0].cycle, beats + 50);
    EXPECT_EQ(bench.arrivals[1][1].cycle, 2 * beats + 50);
    EXPECT_TRUE(bench.wire.quiet());
  }
}

TEST(LockstepWireTest, GapsWithinAFrameArriveAsGaps) {
  Bench bench({.latency_cycles = 50, .faults = {}, .cycle_ns = 4},
              {kIpA, kIpB});
  bench.period = 3;
  const frame::Frame frame = frame::MakeAck(kIpB, 0, 1, 500);
  bench.queues[0].push_back(frame);
  bench.Run(500);
  const uint64_t beats = (frame.size() + kBus - 1) / kBus;
  ASSERT_EQ(bench.arrivals[1].size(), 1u);
  EXPECT_EQ(bench.arrivals[1][0].first_cycle, 3 + 50u);
  EXPECT_EQ(bench.arrivals[1][0].cycle, 3 * beats + 50);
}

TEST(LockstepWireTest, FramesOfTwoSendersQueueAndStayWhole) {
  Bench bench({}, {kIpA, kIpA, kIpB});
  for (uint32_t i = 0; i < 20; ++i) {
    bench.queues[0].push_back(frame::MakeAck(kIpB, 0, 2 * i, 500));
    bench.queues[1].push_back(frame::MakeAck(kIpB, 0, 2 * i + 1, 300));
  }
  bench.Run(1000);
  ASSERT_EQ(bench.arrivals[2].size(), 40u);
  std::vector<uint32_t> next = {0, 1};
  for (const Arrival& arrival : bench.arrivals[2]) {
    const uint32_t number = frame::AckNumber(arrival.frame);
    EXPECT_EQ(number, next[number % 2]);
    next[number % 2] += 2;
    EXPECT_EQ(arrival.frame,
              frame::MakeAck(kIpB, 0, number, number % 2 ? 300 : 500));
  }
}

TEST(LockstepWireTest, NeighbourFramesReachOneOrAllButTheSender) {
  Bench bench({}, {kIpA, kIpA, kIpB});
  bench.queues[0].push_back(frame::MakeArp(0xffffffffffff, 1));
  bench.queues[2].push_back(frame::MakeArp(frame::PortMac(kIpA, 1), 2));
  bench.queues[2].push_back(frame::MakeArp(frame::PortMac(kIpA, 7), 3));
  bench.Run(300);
  EXPECT_TRUE(bench.arrivals[0].empty());
  ASSERT_EQ(bench.arrivals[1].size(), 2u);
  ASSERT_EQ(bench.arrivals[2].size(), 1u);
  EXPECT_EQ(bench.arrivals[2][0].frame, frame::MakeArp(0xffffffffffff, 1));
  for (const Arrival& arrival : bench.arrivals[1]) {
    EXPECT_EQ(arrival.frame.size(), 60u);
  }
  EXPECT_EQ(bench.wire.dropped(), 1u) << "nobody has that address";
  // A port without link hears nothing, one with none says nothing.
  bench.wire.SetLink(1, false);
  bench.queues[0].push_back(frame::MakeArp(0xffffffffffff, 4));
  bench.queues[1].push_back(frame::MakeArp(0xffffffffffff, 5));
  bench.Run(300);
  EXPECT_EQ(bench.arrivals[1].size(), 2u);
  EXPECT_EQ(bench.arrivals[2].size(), 2u);
  EXPECT_TRUE(bench.arrivals[0].empty());
}

TEST(LockstepWireTest, RoutesByClaimAndSlot) {
  Bench bench({}, {kIpA, kIpB, kIpB});
  EXPECT_EQ(bench.wire.slot(1), 0);
  EXPECT_EQ(bench.wire.slot(2), 1);
  EXPECT_TRUE(bench.wire.ports(2)->ClaimPort({77}).granted);
  EXPECT_FALSE(bench.wire.ports(1)->ClaimPort({77}).granted);
  EXPECT_TRUE(bench.wire.ports(0)->ClaimPort({77}).granted);
  bench.queues[0] = {frame::MakeSyn(kIpB, 77), frame::MakeAck(kIpB, 1 << 10),
                     frame::MakeAck(kIpB, 5), frame::MakeSyn(kIpB, 78),
                     frame::MakeAck(kIpB, 9 << 10)};
  bench.Run(200);
  EXPECT_EQ(bench.arrivals[2].size(), 2u);
  EXPECT_EQ(bench.arrivals[1].size(), 1u);
  EXPECT_EQ(bench.wire.dropped(), 2u);
  bench.wire.ports(2)->ReleasePort({77});
  EXPECT_TRUE(bench.wire.ports(1)->ClaimPort({77}).granted);
}

TEST(LockstepWireTest, EachSpaceHasItsClaimsAndStrangersReachOneThatRefuses) {
  Bench bench({}, {kIpA, kIpB, kIpB, kIpB});
  const auto job = [](uint32_t id) { return firmware::JobSpace(id); };
  EXPECT_TRUE(bench.wire.ports(1)->ClaimPort({77, job(7)}).granted);
  EXPECT_FALSE(bench.wire.ports(2)->ClaimPort({77, job(7)}).granted);
  EXPECT_TRUE(bench.wire.ports(2)->ClaimPort({77, job(8)}).granted);
  EXPECT_TRUE(bench.wire.ports(3)->ClaimPort({77}).granted);
  bench.queues[0] = {frame::MakeJobSyn(kIpB, 77, 7, true),
                     frame::MakeJobSyn(kIpB, 77, 8, true),
                     frame::MakeJobSyn(kIpB, 77, 8, true),
                     frame::MakeJobSyn(kIpB, 77, 9, false),
                     frame::MakeJobSyn(kIpB, 78, 7, true)};
  bench.Run(200);
  EXPECT_EQ(bench.arrivals[1].size(), 1u);
  EXPECT_EQ(bench.arrivals[2].size(), 2u);
  EXPECT_EQ(bench.arrivals[3].size(), 1u);
  EXPECT_EQ(bench.wire.dropped(), 1u);
  bench.wire.ports(2)->ReleasePort({77, job(8)});
  bench.wire.ports(3)->ReleasePort({77});
  bench.queues[0] = {frame::MakeJobSyn(kIpB, 77, 8, true),
                     frame::MakeSyn(kIpB, 77)};
  bench.Run(200);
  EXPECT_EQ(bench.arrivals[1].size(), 3u) << "it has the port, of another job";
  EXPECT_TRUE(bench.wire.ports(1)->ClaimPort({77, job(8)}).granted)
      << "a function may have it in several";
}

std::vector<std::pair<uint64_t, uint32_t>> FaultyRun(uint64_t seed) {
  LockstepWireOptions options;
  options.faults = {
      .seed = seed, .loss = 0.05, .duplicate = 0.05, .reorder = 0.05};
  Bench bench(options, {kIpA, kIpB});
  for (uint32_t i = 0; i < 1000; ++i) {
    bench.queues[0].push_back(frame::MakeAck(kIpB, 0, i, i % 200));
  }
  bench.Run(20000);
  EXPECT_TRUE(bench.wire.quiet()) << "held frames leave";
  std::vector<std::pair<uint64_t, uint32_t>> result;
  for (const Arrival& arrival : bench.arrivals[1]) {
    result.emplace_back(arrival.cycle, frame::AckNumber(arrival.frame));
  }
  EXPECT_EQ(bench.wire.frames(), result.size());
  return result;
}

TEST(LockstepWireTest, FaultsAreTheSameInEachRun) {
  const auto first = FaultyRun(1);
  EXPECT_EQ(first, FaultyRun(1));
  EXPECT_NE(first, FaultyRun(2));
  EXPECT_GT(first.size(), 900u);
  bool reordered = false;
  for (size_t i = 1; i < first.size(); ++i) {
    reordered = reordered || first[i].second < first[i - 1].second;
  }
  EXPECT_TRUE(reordered);
}

TEST(LockstepWireTest, DamagedFramesArriveWholeAndMarkedAsTheirFaultSays) {
  LockstepWireOptions options;
  options.faults.corrupt = 0.05;
  options.faults.bad_fcs = 0.05;
  options.faults.duplicate = 0.05;
  options.faults.reorder = 0.05;
  Bench bench(options, {kIpA, kIpB});
  constexpr uint32_t kFrames = 2000;
  for (uint32_t i = 0; i < kFrames; ++i) {
    bench.queues[0].push_back(frame::MakeAck(kIpB, 0, i, i % 200));
  }
  bench.Run(30000);
  EXPECT_TRUE(bench.wire.quiet());
  EXPECT_EQ(bench.wire.dropped(), 0u) << "damage leads no frame astray";
  uint32_t bad = 0;
  uint32_t silent = 0;
  for (const Arrival& arrival : bench.arrivals[1]) {
    const uint32_t number = frame::AckNumber(arrival.frame);
    const bool changed =
        number >= kFrames ||
        arrival.frame != frame::MakeAck(kIpB, 0, number, number % 200);
    bad += arrival.bad_fcs;
    silent += changed && !arrival.bad_fcs;
  }
  EXPECT_EQ(bad, bench.wire.bad_fcs());
  EXPECT_NEAR(bad, 100, 40);
  EXPECT_GT(silent, 50u);
  EXPECT_LE(silent, bench.wire.corrupted());
  EXPECT_GE(silent + bad, bench.wire.corrupted());
}

TEST(LockstepWireTest, DelayAddsItselfToLatencyAndFrameInEachDirection) {
  const frame::Frame frame = frame::MakeAck(kIpB, 0, 1, 500);
  const uint64_t beats = (frame.size() + kBus - 1) / kBus;
  for (const bool receiver : {false, true}) {
    SCOPED_TRACE(receiver);
    LockstepWireOptions options;
    (receiver ? options.rx_faults : options.faults).delay = 300;
    Bench bench(options, {kIpA, kIpB});
    bench.queues[0] = {frame, frame};
    bench.Run(beats + 1);
    const uint64_t due = beats + 300 + (receiver ? 50 : 0);
    EXPECT_FALSE(bench.wire.quiet());
    bench.Run(100);
    EXPECT_EQ(bench.wire.next(), due) << "until then there is nothing to do";
    bench.Run(2000);
    ASSERT_EQ(bench.arrivals[1].size(), 2u);
    EXPECT_EQ(bench.arrivals[1][0].frame, frame);
    EXPECT_EQ(bench.arrivals[1][0].first_cycle, beats + 50 + 300);
    EXPECT_EQ(bench.arrivals[1][0].cycle, 2 * beats - 1 + 50 + 300);
    EXPECT_EQ(bench.arrivals[1][1].cycle, 3 * beats - 1 + 50 + 300);
    EXPECT_TRUE(bench.wire.quiet());
  }
}

TEST(LockstepWireTest, ARateLosesAtTheQueuesEndAndMarksBeforehand) {
  LockstepWireOptions options;
  options.faults.rate = 64;  // Bits per cycle: an eighth of the bus.
  options.faults.queue_bytes = 4096;
  options.faults.ecn_bytes = 1024;
  Bench bench(options, {kIpA, kIpB});
  const frame::Frame frame =
      frame::MakeAck(kIpB, 0, 0, 512 - frame::MakeAck(kIpB, 0).size());
  for (uint32_t i = 0; i < 100; ++i) {
    bench.queues[0].push_back(frame);
  }
  bench.Run(100000);
  EXPECT_TRUE(bench.wire.quiet());
  EXPECT_GT(bench.wire.overflowed(), 50u);
  EXPECT_EQ(bench.arrivals[1].size(), 100 - bench.wire.overflowed());
  uint32_t marked = 0;
  for (size_t i = 1; i < bench.arrivals[1].size(); ++i) {
    marked += bench.arrivals[1][i].frame != frame;
    EXPECT_EQ(bench.arrivals[1][i].cycle - bench.arrivals[1][i - 1].cycle, 64u);
  }
  EXPECT_EQ(marked, bench.wire.marked());
  EXPECT_GT(marked, 10u);
}

std::vector<std::pair<uint64_t, frame::Frame>> ShapedRun(uint64_t seed) {
  LockstepWireOptions options;
  for (fault::FaultOptions* const faults :
       {&options.faults, &options.rx_faults}) {
    *faults = {.seed = seed,
               .loss = 0.02,
               .duplicate = 0.02,
               .reorder = 0.02,
               .corrupt = 0.02,
               .bad_fcs = 0.02,
               .ecn = 0.02,
               .delay = 100,
               .jitter = 500,
               .rate = 200,
               .queue_bytes = 10000,
               .ecn_bytes = 2000};
  }
  Bench bench(options, {kIpA, kIpB});
  for (uint32_t i = 0; i < 2000; ++i) {
    bench.queues[0].push_back(frame::MakeAck(kIpB, 0, i, i % 200));
  }
  bench.Run(50000);
  EXPECT_TRUE(bench.wire.quiet());
  EXPECT_GT(bench.wire.overflowed(), 0u);
  EXPECT_GT(bench.wire.marked(), 0u);
  EXPECT_GT(bench.wire.lost(), 20u);
  std::vector<std::pair<uint64_t, frame::Frame>> result;
  for (const Arrival& arrival : bench.arrivals[1]) {
    result.emplace_back(arrival.cycle, arrival.frame);
  }
  return result;
}

TEST(LockstepWireTest, AllFaultsOfBothDirectionsAreTheSameInEachRun) {
  const auto first = ShapedRun(1);
  EXPECT_EQ(first, ShapedRun(1));
  EXPECT_NE(first, ShapedRun(2));
  EXPECT_GT(first.size(), 100u);
}

TEST(LockstepWireTest, AReceiversFaultsAreItsOwn) {
  LockstepWireOptions options;
  options.rx_faults.loss = 0.5;
  options.rx_faults.bad_fcs = 0.1;
  Bench bench(options, {kIpA, kIpB, kIpB});
  for (uint32_t i = 0; i < 400; ++i) {
    bench.queues[0].push_back(
        frame::MakeAck(kIpB, i % 2 == 0 ? 0 : 1 << 10, i));
  }
  bench.Run(3000);
  EXPECT_EQ(bench.wire.frames(), 400u) << "the switch forwards all";
  const size_t one = bench.arrivals[1].size();
  const size_t other = bench.arrivals[2].size();
  EXPECT_EQ(one + other + bench.wire.lost(), 400u);
  EXPECT_NEAR(static_cast<double>(one), 100, 40);
  EXPECT_NEAR(static_cast<double>(other), 100, 40);
  std::vector<uint32_t> numbers;
  uint32_t bad = 0;
  for (const uint32_t port : {1, 2}) {
    for (const Arrival& arrival : bench.arrivals[port]) {
      numbers.push_back(frame::AckNumber(arrival.frame) / 2);
      bad += arrival.bad_fcs;
    }
  }
  EXPECT_EQ(bad, bench.wire.bad_fcs());
  std::vector<uint32_t> second(
      numbers.begin() + static_cast<std::ptrdiff_t>(one), numbers.end());
  numbers.resize(one);
  EXPECT_NE(numbers, second) << "ports fail independently";
}

TEST(LockstepWireTest, FramesAreLostWhileALinkIsDown) {
  Bench bench({}, {kIpA, kIpB});
  for (const uint32_t down : {0, 1}) {
    bench.wire.SetLink(down, false);
    EXPECT_FALSE(bench.wire.link_up(down));
    bench.queues[0] = {frame::MakeAck(kIpB, 0, 1)};
    bench.queues[1] = {frame::MakeAck(kIpA, 0, 2)};
    bench.Run(100);
    bench.wire.SetLink(down, true);
  }
  EXPECT_EQ(bench.wire.lost_link_down(), 4u);
  EXPECT_TRUE(bench.arrivals[0].empty() && bench.arrivals[1].empty());
  bench.queues[0] = {frame::MakeAck(kIpB, 0, 3)};
  bench.Run(100);
  ASSERT_EQ(bench.arrivals[1].size(), 1u);
  EXPECT_EQ(frame::AckNumber(bench.arrivals[1][0].frame), 3u);
}

TEST(LockstepWireTest, RoutesIpv6) {
  const frame::WireAddress one(0x20010db800000000, 1);
  const frame::WireAddress other(0x20010db800000001, 1);
  LockstepWire wire({});
  wire.AddPort(one);
  wire.AddPort(other);
  wire.ports(1)->ClaimPort({77});
  const frame::Frame frame = frame::MakeSyn6(other, 77);
  wire.BeginCycle(1);
  wire.mac(0)->Transmit(frame, true);
  EXPECT_EQ(wire.frames(), 1u);
  wire.mac(0)->Transmit(frame::MakeSyn6(one, 77), true);
  EXPECT_EQ(wire.dropped(), 1u) << "claimed at the other address only";
}

}  // namespace
}  // namespace heddle::sim::pins
