// SPDX-License-Identifier: Apache-2.0
#include "tests/soft/engine/lossy_fabric.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace heddle::soft::engine {

using transport::TransportClient;
using transport::TransportLimits;
using wire::Datagram;

namespace {

constexpr uint64_t kTickNs = 100;
constexpr uint64_t kDelayNs = 2000;
constexpr uint32_t kJitterNs = 20'000;

}  // namespace

class LossyFabric::Wire final : public wire::DatagramWire {
 public:
  Wire(LossyFabric* fabric, size_t self) : fabric_(fabric), self_(self) {}

  firmware::PortClaim ClaimPort(const firmware::PortName& name) override {
    return {.granted = true, .exhausted = false, .port = name.port, .owner = 0};
  }
  void ReleasePort(const firmware::PortName& /*name*/) override {}
  std::span<uint8_t> Room() override { return room_; }
  SendOutcome Send(const wire::Path& path, size_t bytes) override {
    fabric_->Launch(self_, static_cast<size_t>(path.destination.lo),
                    std::span(room_).first(bytes));
    std::fill(room_.begin(), room_.end(), uint8_t{0xee});
    return SendOutcome::kSent;
  }
  bool Receive(Datagram* /*datagram*/) override { return false; }
  std::optional<uint16_t> TakePdcids() override {
    return static_cast<uint16_t>(granted_++ * contract::kPdcidBlock);
  }
  void ReturnPdcids(uint16_t /*first*/) override {}
  uint16_t function() const override { return 0; }
  bool link_up() const override { return true; }
  uint16_t max_bytes() const override {
    return static_cast<uint16_t>(room_.size());
  }
  uint32_t payload_mtu() const override { return 1024; }
  void Flush() override {}
  bool HasNews() const override { return false; }
  void Kick() override {}
  void Sleep(uint64_t /*timeout_ns*/) override {}

 private:
  LossyFabric* fabric_;
  size_t self_;
  uint32_t granted_ = 0;  // Blocks; there are enough for a test.
  std::vector<uint8_t> room_ = std::vector<uint8_t>(2048);
};

struct LossyFabric::Node {
  Node(LossyFabric* fabric, size_t self, TransportClient* client)
      : wire(fabric, self),
        transport(Limits(), &wire, client, 7 + self, kTickNs) {}

  static TransportLimits Limits() {
    TransportLimits limits;
    limits.pdcs = 32;
    limits.messages = 1024;
    return limits;
  }

  Wire wire;
  transport::Transport transport;
};

LossyFabric::LossyFabric(uint64_t seed, const Weather& weather)
    : random_(seed), weather_(weather) {}

LossyFabric::~LossyFabric() = default;

transport::MessageCarrier* LossyFabric::Add(TransportClient* client) {
  contract::PortCfg port;
  port.rto_ticks = 1000;
  port.rto_max_ticks = 20'000;
  port.backoff_ticks = 50;
  port.backoff_max_ticks = 5000;
  port.dead_ticks = 1'000'000'000;
  port.payload_mtu = 1024;
  port.ack_delay_ticks = 100;
  port.enable = 1;
  port.pdc_seed = static_cast<uint32_t>(random_.Below(1U << 30U));
  contract::TransportCfg rules;
  rules.safety_ticks = 5000;
  rules.reorder = 3;
  rules.ack_every = 16;
  nodes_.push_back(std::make_unique<Node>(this, nodes_.size(), client));
  nodes_.back()->transport.Configure(port, rules);
  return &nodes_.back()->transport;
}

void LossyFabric::Launch(size_t from, size_t to,
                         std::span<const uint8_t> bytes) {
  if ((filter && !filter(bytes)) || random_.Chance(weather_.loss)) {
    return;
  }
  const int copies = random_.Chance(weather_.duplication) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    uint64_t at = now_ns_ + kDelayNs;
    if (i == 1 || random_.Chance(weather_.reordering)) {
      at += random_.Below(kJitterNs);
    }
    air_.insert({at, {from, to, {bytes.begin(), bytes.end()}}});
  }
}

bool LossyFabric::Step() {
  bool busy = false;
  while (!air_.empty() && air_.begin()->first <= now_ns_) {
    const Flying flying = std::move(air_.begin()->second);
    air_.erase(air_.begin());
    if (flying.to < nodes_.size()) {
      Datagram datagram;
      datagram.source = {flying.from, 0, false};
      datagram.source_udp_port = 50'000;
      datagram.bytes = flying.bytes;
      nodes_[flying.to]->transport.Receive(datagram, now_ns_);
      busy = true;
    }
  }
  uint64_t next = air_.empty() ? now_ns_ + 1'000'000 : air_.begin()->first;
  for (auto& node : nodes_) {
    const bool more = node->transport.Progress(now_ns_, 16);
    busy |= more;
    next = std::min(next, more ? now_ns_ + 50 : node->transport.deadline_ns());
  }
  if (!air_.empty()) {
    next = std::min(next, air_.begin()->first);
  }
  now_ns_ = std::max(now_ns_ + 1, next);
  return busy;
}

}  // namespace heddle::soft::engine
