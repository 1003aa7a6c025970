// SPDX-License-Identifier: Apache-2.0
// Transports of several functions on one network of the test's, in virtual
// time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "hw/sim/base/random.h"
#include "hw/soft/transport/transport.h"
#include "tests/soft/transport/client_model.h"

namespace heddle::soft::transport {

// What the network does to datagrams, by seed.
struct Weather {
  double loss = 0;
  double duplication = 0;
  double reordering = 0;  // Delayed by up to `jitter_ns` more.
  double blocked = 0;     // Send refuses.
  double marking = 0;     // ECN.
  double trimming = 0;    // Of requests; what is left overtakes.
  uint64_t delay_ns = 2000;
  uint64_t jitter_ns = 20'000;
};

struct Flying {
  uint64_t at = 0;
  uint64_t number = 0;
  size_t from = 0;
  size_t to = 0;
  uint64_t function = 0;  // That takes it; 0: the one that has the address.
  bool marked = false;
  wire::Trim trim = wire::Trim::kNone;
  std::vector<uint8_t> bytes;

  bool operator>(const Flying& other) const {
    return at != other.at ? at > other.at : number > other.number;
  }
};

class World;

// One function's end of the network. Its address is that of its number.
class TestWire final : public wire::DatagramWire {
 public:
  TestWire(World* world, size_t self, uint64_t name);

  firmware::PortClaim ClaimPort(const firmware::PortName& name) override {
    return {.granted = true, .exhausted = false, .port = name.port, .owner = 0};
  }
  void ReleasePort(const firmware::PortName&) override {}
  std::span<uint8_t> Room() override { return room_; }
  SendOutcome Send(const wire::Path& path, size_t bytes) override;
  bool Receive(wire::Datagram*) override { return false; }
  std::optional<uint16_t> TakePdcids() override;
  void ReturnPdcids(uint16_t first) override;
  uint16_t function() const override { return 0; }
  bool link_up() const override { return true; }
  uint16_t max_bytes() const override {
    return static_cast<uint16_t>(room_.size());
  }
  uint32_t payload_mtu() const override { return 1024; }
  void Flush() override {}
  bool HasNews() const override { return news; }
  void Kick() override {}
  void Sleep(uint64_t) override {}

  uint64_t ReceiverOf(const wire::Path& path, size_t bytes) override;
  bool HasLeft(uint64_t function) override;
  bool IsBehind(uint64_t function, uint64_t) override {
    news = news || function == answers;
    return function == behind;
  }

  // In place of what the world says.
  std::optional<uint64_t> receiver;
  uint64_t left = UINT64_MAX;
  uint64_t behind = UINT64_MAX;
  // The one whose answer arrives at the moment when it is looked at.
  uint64_t answers = UINT64_MAX;
  bool news = false;
  // Blocks of PDCIDs that this function has.
  std::set<uint16_t> blocks;
  // Nothing may be sent.
  bool shut = false;
  uint64_t sent = 0;
  // Sees each datagram; may refuse to let it through.
  std::function<bool(std::span<const uint8_t>)> filter;

 private:
  World& world_;
  size_t self_;
  uint64_t name_;
  std::vector<uint8_t> room_;
};

// A function; one that is replaced leaves its record.
struct Node {
  Node(World* world, size_t self, uint64_t name, const TransportLimits& limits);

  const uint64_t name;  // No other function of the world has it.
  TestWire wire;
  ClientModel client;
  Transport transport;
  bool left = false;  // For good.
  bool dead = false;  // Neither sends nor receives.
};

class World {
 public:
  static constexpr uint64_t kTickNs = 100;

  explicit World(uint64_t seed, size_t nodes = 2, TransportLimits limits = {});

  // Settings of all nodes; apply with `Configure`.
  contract::PortCfg port;
  contract::TransportCfg rules;
  Weather weather;
  void Configure();

  // Datagrams go to the function that had the address when they were sent, as
  // on the wire of one machine, and the switch answers for PDCIDs that no
  // function has. Else they go to who has the address when they arrive, as over
  // UDP.
  bool routed = false;
  // The function at the address ends, without a word.
  void Kill(size_t index);
  // Another one takes its place.
  void Revive(size_t index);
  // The same function begins anew.
  void Reset(size_t index);
  // Other functions share all addresses, so that the switch answers for those
  // that no function of the world has.
  bool shared = false;
  // A network where nothing can take longer than so to arrive.
  uint64_t longest_ns() const { return weather.delay_ns + weather.jitter_ns; }
  // Functions that had the address, the present one included.
  std::vector<Node*> Functions(size_t index);
  // Blocks of PDCIDs of that address that no function has.
  std::deque<uint16_t>& FreeBlocks(size_t index) { return blocks_[index]; }

  Node& operator[](size_t index) { return *nodes_[index]; }
  size_t size() const { return nodes_.size(); }
  static wire::FabricAddress Address(size_t node);

  uint64_t now_ns() const { return now_; }
  // Runs until all clients are done, or `limit_ns` have passed. True if done.
  bool Run(uint64_t limit_ns = 60'000'000'000);
  bool RunUntil(const std::function<bool()>& done, uint64_t limit_ns);
  void RunFor(uint64_t ns) {
    RunUntil([] { return false; }, ns);
  }
  // Puts a datagram on the network that no transport sent.
  void Inject(size_t from, size_t to, std::vector<uint8_t> bytes,
              uint64_t delay_ns = 0, wire::Trim trim = wire::Trim::kNone);
  // Runs a while, a step.
  void Step();

  uint64_t Total(contract::Statistic which) const;

 private:
  friend class TestWire;
  void Launch(size_t from, size_t to, std::span<const uint8_t> bytes);
  void Fly(size_t from, size_t to, std::span<const uint8_t> bytes);
  void Deliver();
  std::unique_ptr<Node> MakeNode(size_t index);
  // Who takes a datagram at that address now; 0: none.
  uint64_t FunctionFor(size_t to, std::span<const uint8_t> bytes) const;
  // No function has the PDC that it names.
  void Refuse(size_t from, size_t to, std::span<const uint8_t> bytes);

  TransportLimits limits_;
  std::vector<std::deque<uint16_t>> blocks_;  // Free ones, by address.
  uint64_t names_ = 0;
  uint32_t lives_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::pair<size_t, std::unique_ptr<Node>>> former_;
  std::priority_queue<Flying, std::vector<Flying>, std::greater<>> air_;
  sim::base::Random random_;
  uint64_t now_ = 1000;
  uint64_t number_ = 0;
  std::vector<uint64_t> free_at_;  // When a node's line takes the next one.
};

}  // namespace heddle::soft::transport
