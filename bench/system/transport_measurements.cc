// SPDX-License-Identifier: Apache-2.0
#include "bench/system/transport_measurements.h"

#include <stdexcept>
#include <vector>

#include "bench/system/nodes.h"
#include "driver/device/device_info.h"

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
  constexpr uint32_t kEach = 240;       // Messages.
  constexpr uint32_t kStuckEvery = 10;  // Of the others' messages, a stuck one.
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
          *nodes, "traffic beside a stuck peer");
  const uint64_t cycles = nodes->world().cycle() - start;
  const uint64_t refused =
      ReadStatistic(nodes->device(kStuckPeer), contract::Statistic::kRxRefused);
  Require((refused > 0) == stuck, *nodes, "refusal of the stuck peer");
  return cycles;
}

}  // namespace heddle::bench
