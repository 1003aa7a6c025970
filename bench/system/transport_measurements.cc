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

uint64_t MeasureStream(const Conditions& conditions, const Stream& stream) {
  constexpr uint32_t kBytesOutstanding = 1U << 20;
  constexpr uint32_t kLimit = 1000;  // The ring has 1,024 slots.
  const uint32_t outstanding =
      std::min(kBytesOutstanding / stream.bytes, kLimit);
  auto nodes =
      Open(conditions, {.ordered = stream.ordered, .loss = stream.loss});
  DmaBuffer& local = nodes->Memory(0, stream.bytes);
  DmaBuffer& remote = nodes->Memory(1, stream.bytes);
  const bool send = stream.opcode == contract::Opcode::kSend;
  const RmaAccess access{.opcode = stream.opcode,
                         .local = local.iova(),
                         .bytes = stream.bytes,
                         .key = send ? 0 : Register(*nodes, 1, remote)};
  const SendFields fields{
      .peer = 1,
      .flags = static_cast<uint8_t>(
          contract::kTxFlagCompletion |
          (stream.delivery_complete ? contract::kTxFlagDeliveryComplete : 0))};
  BareEndpoint& initiator = nodes->endpoint(0);
  BareEndpoint& target = nodes->endpoint(1);
  uint32_t posted = 0;
  uint32_t done = 0;
  uint64_t start = 0;
  const auto serve = [&] {
    while (send && target.rx().TryPush(0, remote.iova(), stream.bytes)) {
    }
    target.rx().Publish();
    while (const auto received = target.PollRx()) {
      Expect(*received);
    }
    while (posted < done + outstanding && PushRma(initiator, fields, access)) {
      ++posted;
    }
    initiator.tx().Publish();
    while (const auto completion = initiator.PollTx()) {
      Expect(*completion);
      ++done;
    }
    if (start == 0 && done >= outstanding) {
      start = nodes->world().cycle();
    }
    return done >= outstanding + stream.operations;
  };
  Require(nodes->StepUntil(kLimitCycles, serve), *nodes,
          "stream of operations");
  return nodes->world().cycle() - start;
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
