// SPDX-License-Identifier: Apache-2.0
#include "bench/system/pattern_measurements.h"

#include <bit>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/system/nodes.h"

namespace heddle::bench {
namespace {

constexpr uint32_t kBytes = 8;
constexpr size_t kSource = 0;
constexpr uint32_t kEndpointsOfANic = 14;  // It has 16 receive contexts.

size_t TargetsFor(uint32_t peers) {
  return (peers + kEndpointsOfANic - 1) / kEndpointsOfANic;
}

// Endpoints of the other NICs, each a peer of the source's endpoint: a PDC
// leads to each of them.
class Peers {
 public:
  Peers(LockstepNodes* nodes, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const size_t target = 1 + i % TargetsFor(count);
      std::string error;
      endpoints_.push_back(BareEndpoint::Create(
          nodes->device(target), nodes->admin(target), {.rx_log2 = 8}, &error));
      if (endpoints_.back() == nullptr) {
        throw std::runtime_error(error);
      }
      buffers_.push_back(&nodes->Memory(target, kBytes));
      peers_.push_back(nodes->endpoint(kSource).AddPeer(
          LockstepNodes::Address(target), endpoints_.back()->grant()));
    }
  }

  // Takes what arrived, and posts receives; returns how many arrived.
  uint64_t Serve() {
    uint64_t arrived = 0;
    for (size_t i = 0; i < endpoints_.size(); ++i) {
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
  uint32_t operator[](size_t index) const { return peers_[index]; }

 private:
  std::vector<DmaBuffer*> buffers_;
  std::vector<std::unique_ptr<BareEndpoint>> endpoints_;
  std::vector<uint32_t> peers_;  // In the source's address vector.
};

}  // namespace

double MeasureCyclesPerMessage(const Conditions& conditions,
                               const Turns& turns) {
  const size_t count = 1 + TargetsFor(turns.peers);
  auto nodes = Open(conditions, {.nodes = count,
                                 .av_entries = static_cast<uint32_t>(
                                     std::bit_ceil(count + turns.peers))});
  Peers peers(nodes.get(), turns.peers);
  BareEndpoint& source = nodes->endpoint(kSource);
  DmaBuffer& payload = nodes->Memory(kSource, kBytes);
  const uint64_t warm_up = 2000 + 20 * turns.peers;  // PDCs open meanwhile.
  constexpr uint64_t kMessages = 3000;
  uint64_t posted = 0;
  uint64_t received = 0;
  uint64_t start = 0;
  const auto post = [&] {
    const auto flags = static_cast<uint8_t>(
        posted % 16 == 15 ? contract::kTxFlagCompletion : 0);
    return source.tx().PushInline(
        {.peer = peers[posted / turns.burst % turns.peers], .flags = flags},
        payload.data(), kBytes);
  };
  const auto serve = [&] {
    received += peers.Serve();
    while (post()) {
      ++posted;
    }
    source.tx().Publish();
    while (source.PollTx()) {
    }
    (void)source.tx().ReleaseFromCell();
    if (start == 0 && received >= warm_up) {
      start = nodes->world().cycle() + 1;
    }
    return received >= warm_up + kMessages;
  };
  Require(nodes->StepUntil(kLimitCycles, serve), *nodes,
          "messages to peers in turn");
  return static_cast<double>(nodes->world().cycle() + 1 - start) / kMessages;
}

}  // namespace heddle::bench
