// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/soft_transport/world.h"

#include <algorithm>

namespace heddle::sim::soft {

namespace {

constexpr uint64_t kNsPerPacket = 50;

}  // namespace

TestWire::TestWire(World* world, size_t self)
    : world_(*world), self_(self), room_(2048) {}

DatagramWire::SendOutcome TestWire::Send(const Path& path, size_t bytes) {
  // A line has a queue of its own, of finite length.
  if (shut || world_.free_at_[self_] > world_.now_ + 40 * kNsPerPacket ||
      world_.random_.Chance(world_.weather.blocked)) {
    return SendOutcome::kBlocked;
  }
  ++sent;
  const std::span<const uint8_t> datagram(room_.data(), bytes);
  const size_t to = static_cast<size_t>(path.destination.lo & 0xffff);
  if (!world_[self_].dead && (!filter || filter(datagram))) {
    world_.Launch(self_, to, datagram);
  }
  std::fill(room_.begin(), room_.begin() + static_cast<ptrdiff_t>(bytes), 0xee);
  return SendOutcome::kSent;
}

Node::Node(World* world, size_t self, const TransportLimits& limits)
    : wire(world, self),
      client(1000 + self, limits.messages),
      transport(limits, &wire, &client, 77 + 13 * self, World::kTickNs) {
  client.Connect(&transport);
}

FabricAddress World::Address(size_t node) {
  return {.lo = 0x0a000000 + node, .hi = 0, .ipv6 = false};
}

World::World(uint64_t seed, size_t nodes, TransportLimits limits)
    : random_(seed), free_at_(nodes) {
  // Ticks of 100 ns.
  port.rto_ticks = 1000;
  port.rto_max_ticks = 20'000;
  port.backoff_ticks = 50;
  port.backoff_max_ticks = 5000;
  port.dead_ticks = 1'000'000;
  port.payload_mtu = 1024;
  port.ack_delay_ticks = 100;
  port.enable = 1;
  port.pdc_seed = static_cast<uint32_t>(seed);
  rules.safety_ticks = 5000;
  rules.reorder = 3;
  rules.ack_every = 16;
  for (size_t i = 0; i < nodes; ++i) {
    nodes_.push_back(std::make_unique<Node>(this, i, limits));
  }
  Configure();
}

void World::Configure() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    port.slot = static_cast<uint8_t>(i % 64);
    port.pdc_seed += static_cast<uint32_t>(i);
    nodes_[i]->transport.Configure(port, rules);
  }
}

void World::Launch(size_t from, size_t to, std::span<const uint8_t> bytes) {
  free_at_[from] = std::max(free_at_[from], now_) + kNsPerPacket;
  if (random_.Chance(weather.loss)) {
    return;
  }
  const int copies = random_.Chance(weather.duplication) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    uint64_t at = free_at_[from] + weather.delay_ns;
    if (i == 1 || random_.Chance(weather.reordering)) {
      at += random_.Below(static_cast<uint32_t>(weather.jitter_ns));
    }
    air_.push({.at = at,
               .number = number_++,
               .from = from,
               .to = to,
               .marked = random_.Chance(weather.marking),
               .bytes = {bytes.begin(), bytes.end()}});
  }
}

void World::Inject(size_t from, size_t to, std::vector<uint8_t> bytes,
                   uint64_t delay_ns) {
  air_.push({.at = now_ + delay_ns,
             .number = number_++,
             .from = from,
             .to = to,
             .bytes = std::move(bytes)});
}

void World::Deliver() {
  while (!air_.empty() && air_.top().at <= now_) {
    const Flying flying = air_.top();
    air_.pop();
    if (flying.to >= nodes_.size() || nodes_[flying.to]->dead) {
      continue;
    }
    Datagram datagram;
    datagram.source = Address(flying.from);
    datagram.source_udp_port = 50'000;
    datagram.congestion = flying.marked;
    datagram.bytes = flying.bytes;
    nodes_[flying.to]->transport.Receive(datagram, now_);
  }
}

void World::Step() {
  Deliver();
  uint64_t next = air_.empty() ? UINT64_MAX : air_.top().at;
  for (auto& node : nodes_) {
    if (node->dead) {
      continue;
    }
    node->client.Pump();
    const bool more = node->transport.Progress(now_, 16);
    next = std::min(next,
                    more ? now_ + kNsPerPacket : node->transport.deadline_ns());
  }
  next = std::min(next, air_.empty() ? UINT64_MAX : air_.top().at);
  now_ = std::max(now_ + 1, std::min(next, now_ + 1'000'000));
}

bool World::RunUntil(const std::function<bool()>& done, uint64_t limit_ns) {
  const uint64_t end = now_ + limit_ns;
  while (now_ < end) {
    if (done()) {
      return true;
    }
    Step();
  }
  return done();
}

bool World::Run(uint64_t limit_ns) {
  return RunUntil(
      [this] {
        return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
          return node->dead || (node->client.done() && node->transport.idle());
        });
      },
      limit_ns);
}

uint64_t World::Total(contract::Statistic which) const {
  uint64_t total = 0;
  for (const auto& node : nodes_) {
    total += node->transport.statistic(which);
  }
  return total;
}

}  // namespace heddle::sim::soft
