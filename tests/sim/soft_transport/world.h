// SPDX-License-Identifier: Apache-2.0
// Transports of several functions on one network of the test's, in virtual
// time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "hw/sim/random.h"
#include "hw/sim/soft/transport/transport.h"
#include "tests/sim/soft_transport/client_model.h"

namespace heddle::sim::soft {

// What the network does to datagrams, by seed.
struct Weather {
  double loss = 0;
  double duplication = 0;
  double reordering = 0;  // Delayed by up to `jitter_ns` more.
  double blocked = 0;     // Send refuses.
  double marking = 0;     // ECN.
  uint64_t delay_ns = 2000;
  uint64_t jitter_ns = 20'000;
};

struct Flying {
  uint64_t at = 0;
  uint64_t number = 0;
  size_t from = 0;
  size_t to = 0;
  bool marked = false;
  std::vector<uint8_t> bytes;

  bool operator>(const Flying& other) const {
    return at != other.at ? at > other.at : number > other.number;
  }
};

class World;

// One function's end of the network. Address and slot are those of its number.
class TestWire final : public DatagramWire {
 public:
  TestWire(World* world, size_t self);

  firmware::PortClaim ClaimPort(uint32_t port) override {
    return {.granted = true, .exhausted = false, .port = port, .owner = 0};
  }
  void ReleasePort(uint32_t) override {}
  std::span<uint8_t> Room() override { return room_; }
  SendOutcome Send(const Path& path, size_t bytes) override;
  bool Receive(Datagram*) override { return false; }
  uint8_t slot() const override { return 0; }
  bool link_up() const override { return true; }
  uint16_t max_bytes() const override {
    return static_cast<uint16_t>(room_.size());
  }
  uint32_t payload_mtu() const override { return 1024; }
  void Flush() override {}
  bool HasNews() const override { return false; }
  void Kick() override {}
  void Sleep(uint64_t) override {}

  uint32_t ReceiverOf(const Path&, size_t) override { return receiver; }
  bool HasLeft(uint32_t function) override { return function == left; }
  bool IsBehind(uint32_t function, uint64_t) override {
    return function == behind;
  }

  uint32_t receiver = 0;
  uint32_t left = 0;
  uint32_t behind = UINT32_MAX;
  // Nothing may be sent.
  bool shut = false;
  uint64_t sent = 0;
  // Sees each datagram; may refuse to let it through.
  std::function<bool(std::span<const uint8_t>)> filter;

 private:
  World& world_;
  size_t self_;
  std::vector<uint8_t> room_;
};

struct Node {
  Node(World* world, size_t self, const TransportLimits& limits);

  TestWire wire;
  ClientModel client;
  Transport transport;
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

  Node& operator[](size_t index) { return *nodes_[index]; }
  size_t size() const { return nodes_.size(); }
  static FabricAddress Address(size_t node);

  uint64_t now_ns() const { return now_; }
  // Runs until all clients are done, or `limit_ns` have passed. True if done.
  bool Run(uint64_t limit_ns = 60'000'000'000);
  bool RunUntil(const std::function<bool()>& done, uint64_t limit_ns);
  void RunFor(uint64_t ns) {
    RunUntil([] { return false; }, ns);
  }
  // Puts a datagram on the network that no transport sent.
  void Inject(size_t from, size_t to, std::vector<uint8_t> bytes,
              uint64_t delay_ns = 0);
  // Runs a while, a step.
  void Step();

  uint64_t Total(contract::Statistic which) const;

 private:
  friend class TestWire;
  void Launch(size_t from, size_t to, std::span<const uint8_t> bytes);
  void Deliver();

  std::vector<std::unique_ptr<Node>> nodes_;
  std::priority_queue<Flying, std::vector<Flying>, std::greater<>> air_;
  Random random_;
  uint64_t now_ = 1000;
  uint64_t number_ = 0;
  std::vector<uint64_t> free_at_;  // When a node's line takes the next one.
};

}  // namespace heddle::sim::soft
