// SPDX-License-Identifier: Apache-2.0
#include "bench/system/measurements.h"

#include <chrono>
#include <stdexcept>

#include "bench/system/nodes.h"

namespace heddle::bench {
namespace {

void PostSend(BareEndpoint& endpoint, uint32_t peer, DmaBuffer& memory,
              uint32_t bytes) {
  const SendFields fields{.peer = peer};
  const bool posted =
      bytes <= contract::kInlineBytes
          ? endpoint.tx().PushInline(fields, memory.data(), bytes)
      : bytes <= contract::kInjectBytes
          ? endpoint.tx().PushInlineExt(fields, memory.data(), bytes)
          : endpoint.tx().PushBuffer(fields, memory.iova(), bytes);
  if (!posted) {
    throw std::runtime_error("transmit ring is full");
  }
  endpoint.tx().Publish();
  (void)endpoint.tx().ReleaseFromCell();
}

void PostReceive(BareEndpoint& endpoint, DmaBuffer& memory, uint32_t bytes) {
  if (!endpoint.rx().TryPush(0, memory.iova(), bytes)) {
    throw std::runtime_error("receive ring is full");
  }
  endpoint.rx().Publish();
}

// One endless stream of small messages from one endpoint to another.
class Stream {
 public:
  Stream(LockstepNodes& nodes, size_t from, size_t to, uint32_t bytes)
      : source_(nodes.endpoint(from)),
        target_(nodes.endpoint(to)),
        peer_(static_cast<uint32_t>(to)),
        bytes_(bytes),
        payload_(nodes.Memory(from, 4096)),
        buffer_(nodes.Memory(to, 4096)) {}

  // The host's part of one cycle.
  void Serve() {
    for (; target_.rx().TryPush(0, buffer_.iova(), bytes_);) {
    }
    target_.rx().Publish();
    for (;;) {
      const SendFields fields{
          .peer = peer_,
          .flags = static_cast<uint8_t>(
              ++posted_ % 16 == 0 ? contract::kTxFlagCompletion : 0)};
      if (!source_.tx().PushInline(fields, payload_.data(), bytes_)) {
        --posted_;
        break;
      }
    }
    source_.tx().Publish();
    while (source_.PollTx()) {
    }
    (void)source_.tx().ReleaseFromCell();
    while (target_.PollRx()) {
      ++received_;
    }
  }
  uint64_t received() const { return received_; }

 private:
  BareEndpoint& source_;
  BareEndpoint& target_;
  const uint32_t peer_;
  const uint32_t bytes_;
  DmaBuffer& payload_;
  DmaBuffer& buffer_;
  uint64_t posted_ = 0;
  uint64_t received_ = 0;
};

}  // namespace

RoundTrip MeasureRoundTrip(const Conditions& conditions, uint32_t bytes,
                           uint32_t rounds) {
  auto nodes = Open(conditions, {.steady = true});
  DmaBuffer& ping = nodes->Memory(0, bytes + 1);
  DmaBuffer& pong = nodes->Memory(1, bytes + 1);
  // Buffers wait one round ahead, or the first message would arrive before the
  // NIC has one.
  PostReceive(nodes->endpoint(0), ping, bytes);
  PostReceive(nodes->endpoint(1), pong, bytes);
  nodes->world().Step(1000);
  uint64_t start = 0;
  for (uint32_t round = 0; round <= rounds; ++round) {
    if (round == 1) {
      start = nodes->world().cycle();
    }
    PostReceive(nodes->endpoint(0), ping, bytes);
    PostReceive(nodes->endpoint(1), pong, bytes);
    for (const size_t side : {0U, 1U}) {
      PostSend(nodes->endpoint(side), side == 0 ? 1 : 0,
               side == 0 ? ping : pong, bytes);
      BareEndpoint& other = nodes->endpoint(1 - side);
      Require(nodes->StepUntil(kLimitCycles,
                               [&] { return other.PollRx().has_value(); }),
              *nodes, "round trip");
      nodes->world().Step(conditions.host_turnaround_cycles);
    }
  }
  return {.bytes = bytes, .cycles = (nodes->world().cycle() - start) / rounds};
}

double MeasureMessageRate(const Conditions& conditions, uint32_t bytes,
                          bool both_directions) {
  auto nodes = Open(conditions);
  std::vector<Stream> streams;
  streams.emplace_back(*nodes, 0, 1, bytes);
  if (both_directions) {
    streams.emplace_back(*nodes, 1, 0, bytes);
  }
  constexpr uint64_t kWarmUp = 2000;
  constexpr uint64_t kMessages = 10000;
  uint64_t start = 0;
  Require(
      nodes->StepUntil(kLimitCycles,
                       [&] {
                         for (Stream& stream : streams) {
                           stream.Serve();
                         }
                         if (start == 0 && streams[0].received() >= kWarmUp) {
                           start = nodes->world().cycle();
                         }
                         return streams[0].received() >= kWarmUp + kMessages;
                       }),
      *nodes, "message stream");
  return 1000.0 * kMessages /
         static_cast<double>(nodes->world().cycle() - start);
}

double MeasurePacketCycles(const Conditions& conditions) {
  auto nodes = Open(conditions);
  constexpr uint32_t kPacket = 4096;
  // The first run opens the PDC.
  uint64_t cycles[3] = {};
  const uint32_t packets[3] = {1, 64, 320};
  for (const size_t run : {0U, 1U, 2U}) {
    const uint32_t bytes = packets[run] * kPacket;
    DmaBuffer& source = nodes->Memory(0, bytes);
    DmaBuffer& target = nodes->Memory(1, bytes);
    PostReceive(nodes->endpoint(1), target, bytes);
    const uint64_t start = nodes->world().cycle();
    PostSend(nodes->endpoint(0), 1, source, bytes);
    Require(nodes->StepUntil(
                kLimitCycles,
                [&] { return nodes->endpoint(1).PollRx().has_value(); }),
            *nodes, "long message");
    cycles[run] = nodes->world().cycle() - start;
  }
  return static_cast<double>(cycles[2] - cycles[1]) / (packets[2] - packets[1]);
}

uint64_t MeasureRmaCycles(const Conditions& conditions, contract::Opcode opcode,
                          uint32_t bytes) {
  auto nodes = Open(conditions);
  DmaBuffer& local = nodes->Memory(0, bytes);
  DmaBuffer& remote = nodes->Memory(1, bytes);
  const uint64_t key = Register(*nodes, 1, remote);
  BareEndpoint& user = nodes->endpoint(0);
  uint64_t cycles = 0;
  // The first one opens the PDC.
  for (const uint32_t size : {8U, bytes}) {
    const SendFields fields{.peer = 1, .flags = contract::kTxFlagCompletion};
    Require(PushRma(user, fields,
                    {.opcode = opcode,
                     .local = local.iova(),
                     .bytes = size,
                     .key = key}),
            *nodes, "post");
    const uint64_t start = nodes->world().cycle();
    user.tx().Publish();
    Require(nodes->StepUntil(kLimitCycles,
                             [&] { return user.PollTx().has_value(); }),
            *nodes, "RMA operation");
    cycles = nodes->world().cycle() - start;
  }
  return cycles;
}

namespace {

// Cycle numbers of one message's way through both NICs.
struct Marks {
  uint64_t doorbell = 0, first_beat = 0, last_beat = 0, payload_write = 0,
           completion_write = 0;
};

Marks TraceMessage(const Conditions& conditions, Variant variant) {
  auto nodes = Open(conditions, variant);
  DmaBuffer& source = nodes->Memory(0, 64);
  DmaBuffer& target = nodes->Memory(1, 64);
  Marks marks;
  const auto mark = [&](uint64_t& at) {
    at = at == 0 ? nodes->world().cycle() : at;
  };
  // The first message opens the PDC, the second is measured.
  for (int round = 0; round < 2; ++round) {
    PostReceive(nodes->endpoint(1), target, 8);
    nodes->world().Step(2000);
    marks = {};
    nodes->world().model(0).Observe([&](const sim::nic::PinEvents& pins) {
      if (pins.doorbell) {
        mark(marks.doorbell);
      }
      if (pins.tx_beat && marks.doorbell != 0) {
        mark(marks.first_beat);
      }
    });
    nodes->world().model(1).Observe([&](const sim::nic::PinEvents& pins) {
      if (pins.rx_last_beat && marks.last_beat == 0) {
        mark(marks.last_beat);
      }
      if (pins.write_address) {
        const bool payload = pins.address / 64 == ToInteger(target.iova()) / 64;
        mark(payload ? marks.payload_write : marks.completion_write);
      }
    });
    PostSend(nodes->endpoint(0), 1, source, 8);
    Require(nodes->StepUntil(
                kLimitCycles,
                [&] { return nodes->endpoint(1).PollRx().has_value(); }),
            *nodes, "traced message");
    nodes->world().Step(5000);
  }
  return marks;
}

}  // namespace

Latencies MeasureLatencies(const Conditions& conditions) {
  const Marks strict = TraceMessage(conditions, {.steady = true});
  const Marks posted =
      TraceMessage(conditions, {.write_errors = false, .steady = true});
  const Marks read = TraceMessage(conditions, {.push = false, .steady = true});
  return {.push_doorbell_to_first_beat = strict.first_beat - strict.doorbell,
          .doorbell_to_first_beat = read.first_beat - read.doorbell,
          .last_beat_to_payload_write = strict.payload_write - strict.last_beat,
          .payload_write_to_completion_write =
              strict.completion_write - strict.payload_write,
          .payload_write_to_completion_write_posted =
              posted.completion_write - posted.payload_write};
}

SimulationSpeed MeasureSimulationSpeed(const Conditions& conditions) {
  auto nodes = Open(conditions);
  Stream stream(*nodes, 0, 1, 8);
  const auto start = std::chrono::steady_clock::now();
  const uint64_t first = nodes->world().evaluated_cycles();
  Require(nodes->StepUntil(kLimitCycles,
                           [&] {
                             stream.Serve();
                             return stream.received() >= 20000;
                           }),
          *nodes, "message stream");
  const std::chrono::duration<double> wall =
      std::chrono::steady_clock::now() - start;
  // Both NICs were evaluated in this time.
  return {.cycles = 2 * (nodes->world().evaluated_cycles() - first),
          .seconds = wall.count()};
}

}  // namespace heddle::bench
