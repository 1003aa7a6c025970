// SPDX-License-Identifier: Apache-2.0
#include "tests/soft/transport/world.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hw/contract/gen/heddle_wire.h"

namespace heddle::soft::transport {

using contract::wire::PdsNack;
using contract::wire::PdsPrologue;
using contract::wire::PdsRequest;
using wire::Path;

namespace {

constexpr uint64_t kNsPerPacket = 50;
// Bytes that a switch keeps of a datagram, from its PDS header on.
constexpr std::ptrdiff_t kTrimmed = 16;
// Far from those that tests make up.
constexpr uint64_t kFirstName = uint64_t{1} << 40;

bool IsRequest(std::span<const uint8_t> bytes) {
  const auto type = PdsPrologue::Decode(bytes.data()).type;
  return type == contract::PdsType::kRodReq ||
         type == contract::PdsType::kRudReq;
}

}  // namespace

TestWire::TestWire(World* world, size_t self, uint64_t name)
    : world_(*world), self_(self), name_(name), room_(2048) {}

std::optional<uint16_t> TestWire::TakePdcids() {
  std::deque<uint16_t>& free = world_.blocks_[self_];
  if (free.empty()) {
    return std::nullopt;
  }
  const uint16_t first = free.front();
  free.pop_front();
  blocks.insert(first);
  return first;
}

void TestWire::ReturnPdcids(uint16_t first) {
  ASSERT_EQ(blocks.erase(first), 1u);
  world_.blocks_[self_].push_back(first);
}

uint64_t TestWire::ReceiverOf(const Path& path, size_t bytes) {
  if (receiver.has_value()) {
    return *receiver;
  }
  return world_.routed ? world_.FunctionFor(
                             static_cast<size_t>(path.destination.lo & 0xffff),
                             std::span<const uint8_t>(room_.data(), bytes))
                       : 0;
}

bool TestWire::HasLeft(uint64_t function) {
  for (const auto& [index, node] : world_.former_) {
    if (node->name == function) {
      return true;
    }
  }
  for (const auto& node : world_.nodes_) {
    if (node->name == function) {
      return node->left;
    }
  }
  return function == left;
}

wire::DatagramWire::SendOutcome TestWire::Send(const Path& path, size_t bytes) {
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

Node::Node(World* world, size_t self, uint64_t the_name,
           const TransportLimits& limits)
    : name(the_name),
      wire(world, self, the_name),
      client(1000 + self, limits.messages),
      transport(limits, &wire, &client, 77 + 13 * self + 1000 * the_name,
                World::kTickNs) {
  client.Connect(&transport);
}

wire::FabricAddress World::Address(size_t node) {
  return {.lo = 0x0a000000 + node, .hi = 0, .ipv6 = false};
}

World::World(uint64_t seed, size_t nodes, TransportLimits limits)
    : limits_(limits), blocks_(nodes), random_(seed), free_at_(nodes) {
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
    for (uint32_t first = 0; first < 1U << 16; first += contract::kPdcidBlock) {
      blocks_[i].push_back(static_cast<uint16_t>(first));
    }
    nodes_.push_back(MakeNode(i));
  }
  Configure();
}

std::unique_ptr<Node> World::MakeNode(size_t index) {
  auto node =
      std::make_unique<Node>(this, index, kFirstName + names_++, limits_);
  node->client.life = ++lives_;
  return node;
}

void World::Kill(size_t index) {
  Node& node = *nodes_[index];
  node.dead = node.left = true;
  for (const uint16_t first : node.wire.blocks) {
    blocks_[index].push_back(first);
  }
  node.wire.blocks.clear();
}

void World::Revive(size_t index) {
  former_.emplace_back(index, std::move(nodes_[index]));
  nodes_[index] = MakeNode(index);
  nodes_[index]->client.check_order = former_.back().second->client.check_order;
  nodes_[index]->transport.Configure(port, rules);
}

void World::Reset(size_t index) {
  nodes_[index]->transport.Reset();
  nodes_[index]->client.BeginIncarnation();
  nodes_[index]->client.life = ++lives_;
}

std::vector<Node*> World::Functions(size_t index) {
  std::vector<Node*> functions;
  for (const auto& [at, node] : former_) {
    if (at == index) {
      functions.push_back(node.get());
    }
  }
  functions.push_back(nodes_[index].get());
  return functions;
}

void World::Configure() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    port.pdc_seed += static_cast<uint32_t>(i);
    nodes_[i]->transport.Configure(port, rules);
  }
}

uint64_t World::FunctionFor(size_t to, std::span<const uint8_t> bytes) const {
  if (to >= nodes_.size() || nodes_[to]->left) {
    return 0;
  }
  const auto header = PdsRequest::Decode(bytes.data());
  const bool syn = IsRequest(bytes) && header.syn != 0;
  const auto block = static_cast<uint16_t>(
      header.dpdcid - header.dpdcid % contract::kPdcidBlock);
  const Node& node = *nodes_[to];
  return syn || node.wire.blocks.count(block) != 0 ? node.name : 0;
}

void World::Refuse(size_t from, size_t to, std::span<const uint8_t> bytes) {
  const auto type = PdsPrologue::Decode(bytes.data()).type;
  PdsNack nack;
  if (IsRequest(bytes)) {
    const auto header = PdsRequest::Decode(bytes.data());
    if (header.syn != 0) {
      return;
    }
    nack.nack_psn = header.psn;
    nack.dpdcid = header.spdcid;
  } else if (type == contract::PdsType::kCp) {
    const auto header = contract::wire::PdsCp::Decode(bytes.data());
    if (header.cp_type == contract::CpType::kClearCommand) {
      return;
    }
    nack.nack_psn = header.psn;
    nack.dpdcid = header.spdcid;
  } else {
    return;
  }
  nack.type = contract::PdsType::kNack;
  nack.nack_code = contract::NackCode::kInvDpdcid;
  std::vector<uint8_t> answer(PdsNack::kBytes);
  nack.Encode(answer.data());
  Fly(to, from, answer);
}

void World::Launch(size_t from, size_t to, std::span<const uint8_t> bytes) {
  free_at_[from] = std::max(free_at_[from], now_) + kNsPerPacket;
  if (random_.Chance(weather.loss)) {
    return;
  }
  Fly(from, to, bytes);
}

void World::Fly(size_t from, size_t to, std::span<const uint8_t> bytes) {
  const uint64_t function = routed ? FunctionFor(to, bytes) : 0;
  if (routed && function == 0) {
    if (to < nodes_.size() && (shared || !nodes_[to]->left)) {
      Refuse(from, to, bytes);
    }
    return;
  }
  const int copies = random_.Chance(weather.duplication) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    uint64_t at = std::max(free_at_[from], now_) + weather.delay_ns;
    const bool trimmed = weather.trimming > 0 && IsRequest(bytes) &&
                         random_.Chance(weather.trimming);
    if (trimmed) {
      at = now_ + weather.delay_ns;
    } else if (i == 1 || random_.Chance(weather.reordering)) {
      at += random_.Below(static_cast<uint32_t>(weather.jitter_ns));
    }
    air_.push({.at = at,
               .number = number_++,
               .from = from,
               .to = to,
               .function = function,
               .marked = random_.Chance(weather.marking),
               .trim = trimmed ? wire::Trim::kPath : wire::Trim::kNone,
               .bytes = {bytes.begin(),
                         trimmed ? bytes.begin() + kTrimmed : bytes.end()}});
  }
}

void World::Inject(size_t from, size_t to, std::vector<uint8_t> bytes,
                   uint64_t delay_ns, wire::Trim trim) {
  air_.push({.at = now_ + delay_ns,
             .number = number_++,
             .from = from,
             .to = to,
             .trim = trim,
             .bytes = std::move(bytes)});
}

void World::Deliver() {
  while (!air_.empty() && air_.top().at <= now_) {
    const Flying flying = air_.top();
    air_.pop();
    if (flying.to >= nodes_.size() || nodes_[flying.to]->dead ||
        (flying.function != 0 && flying.function != nodes_[flying.to]->name)) {
      continue;
    }
    wire::Datagram datagram;
    datagram.source = Address(flying.from);
    datagram.source_udp_port = 50'000;
    datagram.congestion = flying.marked;
    datagram.trim = flying.trim;
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

}  // namespace heddle::soft::transport
