// SPDX-License-Identifier: Apache-2.0
#include "bench/system/pattern_measurements.h"

#include <bit>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/system/nodes.h"
#include "driver/control/device_info.h"

namespace heddle::bench {
namespace {

constexpr uint32_t kBytes = 8;
constexpr size_t kSource = 0;
constexpr uint32_t kEndpointsOfANic = 14;  // It has 16 receive contexts.
constexpr uint32_t kStuckEvery = 10;
constexpr uint64_t kStoppedCycles = 200000;  // Without a message.

uint32_t EndpointsOf(const Messages& messages) {
  return messages.endpoints != 0 ? messages.endpoints : messages.peers;
}

size_t TargetsFor(uint32_t endpoints) {
  return (endpoints + kEndpointsOfANic - 1) / kEndpointsOfANic;
}

// NIC of an endpoint; the stuck one, after the others, has its own.
size_t TargetOf(uint32_t endpoint, uint32_t others) {
  return 1 + (endpoint < others ? endpoint % TargetsFor(others)
                                : TargetsFor(others));
}

// Endpoints of the other NICs, as peers of the source's endpoint: a PDC leads
// to each endpoint.
class Peers {
 public:
  Peers(LockstepNodes* nodes, const Messages& messages) {
    const uint32_t others = EndpointsOf(messages);
    for (uint32_t i = 0; i < messages.peers; ++i) {
      if (i < others) {
        Open(nodes, TargetOf(i, others), messages.rx_log2);
      }
      Add(nodes, i % others, others, messages.ipv6);
    }
    if (messages.stuck_peer) {
      Open(nodes, TargetOf(others, others), messages.rx_log2);
      Add(nodes, others, others, messages.ipv6);
    }
  }

  // Takes what arrived at the first `count`, and posts receives there; returns
  // how many arrived.
  uint64_t Serve(uint32_t count) {
    uint64_t arrived = 0;
    for (size_t i = 0; i < count; ++i) {
      BareEndpoint& endpoint = *endpoints_[i];
      while (endpoint.rx().TryPush(0, buffers_[i]->iova(), kBytes)) {
      }
      endpoint.rx().Publish();
      while (endpoint.PollRx()) {
        ++arrived;
      }
    }
    return arrived;
  }
  // In the source's address vector.
  uint32_t operator[](size_t index) const { return peers_[index]; }

 private:
  void Open(LockstepNodes* nodes, size_t target, uint8_t rx_log2) {
    std::string error;
    endpoints_.push_back(
        BareEndpoint::Create(nodes->device(target), nodes->admin(target),
                             {.rx_log2 = rx_log2, .sends = false}, &error));
    if (endpoints_.back() == nullptr) {
      throw std::runtime_error(error);
    }
    buffers_.push_back(&nodes->Memory(target, kBytes));
  }
  void Add(LockstepNodes* nodes, uint32_t endpoint, uint32_t others,
           bool ipv6) {
    peers_.push_back(nodes->endpoint(kSource).AddPeer(
        AddressOf(TargetOf(endpoint, others), ipv6),
        endpoints_[endpoint]->grant()));
  }

  std::vector<DmaBuffer*> buffers_;
  std::vector<std::unique_ptr<BareEndpoint>> endpoints_;
  std::vector<uint32_t> peers_;
};

// Posts the SENDs of a pattern as long as the ring has room.
class Sender {
 public:
  Sender(LockstepNodes* nodes, const Peers* peers, const Messages& messages)
      : source_(nodes->endpoint(kSource)),
        payload_(nodes->Memory(kSource, kBytes)),
        peers_(*peers),
        messages_(messages) {}

  void Serve() {
    while (Post()) {
      ++posted_;
      if (messages_.doorbells) {
        source_.tx().Publish();
      }
    }
    source_.tx().Publish();
    while (source_.PollTx()) {
    }
    (void)source_.tx().ReleaseFromCell();
  }

 private:
  bool Post() {
    const bool stuck =
        messages_.stuck_peer && posted_ % kStuckEvery == kStuckEvery - 1;
    const uint64_t others =
        messages_.stuck_peer ? posted_ - posted_ / kStuckEvery : posted_;
    const auto flags = static_cast<uint8_t>(
        posted_ % 16 == 15 ? contract::kTxFlagCompletion : 0);
    return source_.tx().PushInline(
        {.peer = peers_[stuck ? messages_.peers
                              : others / messages_.burst % messages_.peers],
         .flags = flags},
        payload_.data(), kBytes);
  }

  BareEndpoint& source_;
  DmaBuffer& payload_;
  const Peers& peers_;
  const Messages messages_;
  uint64_t posted_ = 0;
};

// The source, the NICs of its peers and, last, that of the stuck peer.
Variant VariantOf(const Conditions& conditions, const Messages& messages) {
  const uint32_t stuck = messages.stuck_peer ? 1 : 0;
  const size_t count = 1 + TargetsFor(EndpointsOf(messages)) + stuck;
  Variant variant{.nodes = count,
                  .ordered = messages.ordered,
                  .spill = messages.spill,
                  .early_release = messages.early_release,
                  .ipv6 = messages.ipv6,
                  .av_entries = static_cast<uint32_t>(
                      std::bit_ceil(count + messages.peers + stuck)),
                  .loss = messages.loss};
  if (messages.congestion_control) {
    // From the start as many packets as the PSN window has.
    variant.cwnd_bytes = 64 * (contract::kPayloadMtuFallback + 128);
    variant.base_rtt_cycles = 2 * conditions.wire_latency_cycles + 300;
  }
  return variant;
}

// The NICs clean the rings of all contexts, a slot in a cycle, and fetch the
// first buffers; then they are idle for good, and nothing steps.
void FetchBuffers(LockstepNodes* nodes, Peers* peers, uint32_t endpoints) {
  (void)peers->Serve(endpoints);
  const uint64_t end = nodes->world().cycle() + kLimitCycles;
  (void)nodes->StepUntil(kLimitCycles, [] { return false; });
  Require(nodes->world().failure().empty() && nodes->world().cycle() < end,
          *nodes, "receive buffers");
}

}  // namespace

MessageRate MeasureMessages(const Conditions& conditions,
                            const Messages& messages) {
  const uint32_t endpoints = EndpointsOf(messages);
  const Variant variant = VariantOf(conditions, messages);
  const size_t count = variant.nodes;
  auto nodes = Open(conditions, variant);
  Peers peers(nodes.get(), messages);
  FetchBuffers(nodes.get(), &peers, endpoints);
  Sender sender(nodes.get(), &peers, messages);
  const uint64_t warm_up = messages.warm_up + 20 * endpoints;
  const uint64_t all = warm_up + messages.count;
  uint64_t received = 0;
  uint64_t start = 0;
  uint64_t last = nodes->world().cycle();
  const auto serve = [&] {
    const uint64_t arrived = peers.Serve(endpoints);
    const uint64_t now = nodes->world().cycle();
    received += arrived;
    last = arrived != 0 ? now : last;
    sender.Serve();
    if (start == 0 && received >= warm_up) {
      start = now + 1;
    }
    return received >= all || now - last > kStoppedCycles;
  };
  Require(nodes->StepUntil(kLimitCycles, serve), *nodes, "small messages");
  const auto counted = [&](size_t node, contract::Statistic statistic) {
    return ReadStatistic(nodes->device(node), statistic);
  };
  if (messages.stuck_peer) {
    Require(counted(count - 1, contract::Statistic::kRxRefused) > 0, *nodes,
            "refusal of the stuck peer's messages");
    Require((messages.spill || messages.early_release) ==
                (counted(kSource, contract::Statistic::kTxSpilled) > 0),
            *nodes, "spilling");
  }
  MessageRate rate{
      .cycles = static_cast<double>(nodes->world().cycle() + 1 - start) /
                messages.count,
      .arrived = received,
      .stopped = received < all,
  };
  for (size_t i = 0; i < count; ++i) {
    rate.dropped += counted(i, contract::Statistic::kDropOverflow);
  }
  return rate;
}

}  // namespace heddle::bench
