// SPDX-License-Identifier: Apache-2.0
// NICs on the lock-step wire with one bare endpoint each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/sim/nic/lockstep_world.h"
#include "tests/system/harness/bare_endpoint.h"
#include "tests/system/harness/recording.h"

namespace heddle {

// HEDDLE_TEST_CAPTURE and HEDDLE_TEST_TRACE name files for a capture of the
// wire and the waveforms of node 0.
//
// Node `i` has address 10.0.0.(i+1) unless another is given, and knows node `j`
// as peer `j`.
//
// Thread safety: none.
class LockstepNodes {
 public:
  // Null with a reason in `*error`. `options.addresses` is filled in if empty,
  // or else of `count` addresses; `shape` may change the endpoint of a node.
  static std::unique_ptr<LockstepNodes> Create(
      size_t count, sim::nic::LockstepOptions options, std::string* error,
      const std::function<void(size_t, BareEndpointOptions&)>& shape = {});
  ~LockstepNodes();

  sim::nic::LockstepWorld& world() { return *world_; }
  BareEndpoint& endpoint(size_t node) { return *endpoints_[node]; }
  Device& device(size_t node) { return world_->device(node); }
  AdminQueue& admin(size_t node) { return *admin_[node]; }

  // Zeroed memory that the node's NIC may use, as long as the nodes.
  DmaBuffer& Memory(size_t node, size_t bytes);

  // Steps cycle by cycle until `done` or `limit_cycles` have passed or the
  // simulation failed; whether it was done.
  bool StepUntil(uint64_t limit_cycles, const std::function<bool()>& done);

  // What became of one message; null where nothing did in time.
  struct Delivery {
    std::optional<contract::Completion> sent;
    std::optional<contract::Completion> received;
    bool done() const { return sent.has_value() && received.has_value(); }
  };
  // Steps until `from` has completed a send and `to` a receive, as
  // `StepUntil`.
  Delivery AwaitDelivery(BareEndpoint& from, BareEndpoint& to,
                         uint64_t limit_cycles);

  // What the NICs counted, for a failing test's message.
  std::string Report();

  static constexpr uint32_t Address(size_t node) {
    return 0x0a000001U + static_cast<uint32_t>(node);
  }

 private:
  LockstepNodes() = default;

  std::unique_ptr<WorldRecording> recording_;
  std::unique_ptr<sim::nic::LockstepWorld> world_;
  std::vector<std::unique_ptr<AdminQueue>> admin_;
  std::vector<std::unique_ptr<DmaBuffer>> memory_;
  std::vector<std::unique_ptr<BareEndpoint>> endpoints_;
};

}  // namespace heddle
