// SPDX-License-Identifier: Apache-2.0
#include "bench/system/transport_measurements.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "bench/system/nodes.h"
#include "driver/control/device_info.h"

namespace heddle::bench {

namespace {

void Expect(const contract::Completion& completion) {
  if (completion.status != contract::Status::kOk) {
    throw std::runtime_error("an operation failed");
  }
}

}  // namespace

uint64_t MeasureWriteStream(const Conditions& conditions,
                            const WriteStream& stream) {
  constexpr uint32_t kBytes = 65536;
  constexpr uint32_t kUnderWay = 16;
  constexpr uint32_t kWarmUp = 16;
  auto nodes =
      Open(conditions, {.ordered = stream.ordered, .loss = stream.loss});
  DmaBuffer& source = nodes->Memory(0, kBytes);
  DmaBuffer& target = nodes->Memory(1, kBytes);
  const uint64_t key = Register(*nodes, 1, target);
  BareEndpoint& writer = nodes->endpoint(0);
  uint32_t posted = 0;
  uint32_t done = 0;
  uint64_t start = 0;
  const auto serve = [&] {
    for (; posted < done + kUnderWay; ++posted) {
      if (!PushRma(writer, {.peer = 1, .flags = contract::kTxFlagCompletion},
                   {.opcode = contract::Opcode::kWrite,
                    .local = source.iova(),
                    .bytes = kBytes,
                    .key = key})) {
        break;
      }
    }
    writer.tx().Publish();
    while (const auto completion = writer.PollTx()) {
      Expect(*completion);
      ++done;
    }
    if (start == 0 && done >= kWarmUp) {
      start = nodes->world().cycle();
    }
    return done >= kWarmUp + stream.writes;
  };
  Require(nodes->StepUntil(kLimitCycles, serve), *nodes, "stream of writes");
  return nodes->world().cycle() - start;
}

uint64_t MeasureOthersOfAStuckPeer(const Conditions& conditions, bool ordered,
                                   bool stuck) {
  constexpr uint32_t kOthers = 3;
  constexpr uint32_t kStuckPeer = 4;
  constexpr uint32_t kEach = 240;  // Messages.
  constexpr uint32_t kStuckEvery =
      10;  // Messages of others per one to the stuck peer.
  constexpr uint32_t kWriteBytes = 4096;
  auto nodes = Open(conditions, {.nodes = 5, .ordered = ordered});
  BareEndpoint& sender = nodes->endpoint(0);
  DmaBuffer& source = nodes->Memory(0, kWriteBytes);
  std::vector<uint64_t> keys;
  for (uint32_t peer = 1; peer <= kOthers; ++peer) {
    DmaBuffer& target = nodes->Memory(peer, kWriteBytes);
    keys.push_back(Register(*nodes, peer, target));
    while (nodes->endpoint(peer).rx().TryPush(0, target.iova(), 8)) {
    }
    nodes->endpoint(peer).rx().Publish();
  }
  nodes->world().Step(5000);
  const uint64_t start = nodes->world().cycle();
  uint32_t posted = 0;
  uint32_t posted_stuck = 0;
  uint32_t done = 0;
  const auto post = [&] {
    if (stuck && posted / kStuckEvery >= posted_stuck) {
      if (!sender.tx().PushInline({.peer = kStuckPeer}, source.data(), 8)) {
        return false;
      }
      ++posted_stuck;
    }
    const uint32_t peer = 1 + posted % kOthers;
    const SendFields fields{.peer = peer, .flags = contract::kTxFlagCompletion};
    return posted / kOthers % 2 == 0
               ? sender.tx().PushInline(fields, source.data(), 8)
               : PushRma(sender, fields,
                         {.opcode = contract::Opcode::kWrite,
                          .local = source.iova(),
                          .bytes = kWriteBytes,
                          .key = keys[peer - 1]});
  };
  Require(nodes->StepUntil(kLimitCycles,
                           [&] {
                             while (posted < kEach * kOthers && post()) {
                               ++posted;
                             }
                             sender.tx().Publish();
                             while (const auto completion = sender.PollTx()) {
                               Expect(*completion);
                               ++done;
                             }
                             return done == kEach * kOthers;
                           }),
          *nodes, "traffic beside a stalled peer");
  const uint64_t cycles = nodes->world().cycle() - start;
  const uint64_t refused =
      ReadStatistic(nodes->device(kStuckPeer), contract::Statistic::kRxRefused);
  Require((refused > 0) == stuck, *nodes, "refusal of the stalled peer");
  return cycles;
}

namespace {

constexpr uint32_t kSenders = 8;
constexpr uint32_t kSink = kSenders;
constexpr uint32_t kIncastBytes = 65536;  // Per WRITE.
constexpr uint32_t kWrites = 8;           // Per sender.
constexpr uint32_t kAll = kWrites * kIncastBytes;

struct IncastSender {
  DmaBuffer* source;
  DmaBuffer* target;
  uint64_t key;
  uint32_t posted = 0;
};

// Cycles until all WRITEs are complete.
uint64_t RunIncast(LockstepNodes* nodes, std::vector<IncastSender>* senders) {
  const uint64_t start = nodes->world().cycle();
  uint32_t done = 0;
  const auto post = [&](uint32_t i) {
    IncastSender& sender = (*senders)[i];
    const uint64_t at = uint64_t{sender.posted} * kIncastBytes;
    if (!PushRma(nodes->endpoint(i),
                 {.peer = kSink, .flags = contract::kTxFlagCompletion},
                 {.opcode = contract::Opcode::kWrite,
                  .local = sender.source->iova() + at,
                  .bytes = kIncastBytes,
                  .key = sender.key})) {
      return false;
    }
    nodes->endpoint(i).LastTxDesc().remote_offset = at;
    ++sender.posted;
    return true;
  };
  const auto serve = [&] {
    for (uint32_t i = 0; i < kSenders; ++i) {
      while ((*senders)[i].posted < kWrites && post(i)) {
      }
      nodes->endpoint(i).tx().Publish();
      while (const auto completion = nodes->endpoint(i).PollTx()) {
        Expect(*completion);
        ++done;
      }
    }
    return done == kSenders * kWrites;
  };
  Require(nodes->StepUntil(kLimitCycles, serve), *nodes, "incast");
  return nodes->world().cycle() - start;
}

}  // namespace

Incast MeasureIncast(const Conditions& conditions, bool ordered) {
  constexpr double kRate = 256;                // The line's, bits per cycle.
  constexpr uint64_t kRoundTripCycles = 2400;  // In the empty network.
  constexpr uint32_t kBdp = 76800;             // Bytes in a round trip.
  constexpr uint8_t kDscp = 3;
  auto nodes = Open(conditions, {.nodes = kSenders + 1,
                                 .ordered = ordered,
                                 .rx_faults = {.seed = conditions.seed,
                                               .delay = 1000,
                                               .rate = kRate,
                                               .queue_bytes = kBdp,
                                               .ecn_bytes = kBdp / 2,
                                               .trim = true,
                                               .trim_dscp = kDscp},
                                 .cwnd_bytes = kBdp * 3 / 2,
                                 .base_rtt_cycles = kRoundTripCycles,
                                 .dscp_trimmed = kDscp});
  std::vector<IncastSender> senders;
  for (uint32_t i = 0; i < kSenders; ++i) {
    IncastSender sender{.source = &nodes->Memory(i, kAll),
                        .target = &nodes->Memory(kSink, kAll),
                        .key = 0};
    sender.key = Register(*nodes, kSink, *sender.target);
    for (uint32_t at = 0; at < kAll; ++at) {
      sender.source->data()[at] =
          static_cast<std::byte>(at * 7 + (at >> 12) + i);
    }
    senders.push_back(sender);
  }
  const auto cycles = static_cast<double>(RunIncast(nodes.get(), &senders));
  Incast incast;
  incast.goodput = 100 * 8.0 * kSenders * kAll / (kRate * cycles);
  incast.trimmed = nodes->world().wire().trimmed();
  for (uint32_t i = 0; i < kSenders; ++i) {
    Require(
        std::equal(senders[i].source->data(), senders[i].source->data() + kAll,
                   senders[i].target->data()),
        *nodes, "incast: data");
    const auto count = [&](contract::Statistic statistic) {
      return ReadStatistic(nodes->device(i), statistic);
    };
    incast.timeouts += count(contract::Statistic::kTimeouts);
    incast.retransmissions += count(contract::Statistic::kTxRetransmissions);
  }
  return incast;
}

}  // namespace heddle::bench
