// SPDX-License-Identifier: Apache-2.0
// What tests of whole NICs start from: nodes on a lock-step wire.
#pragma once

#include <bit>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "tests/system/harness/lockstep_nodes.h"

namespace heddle {

inline constexpr uint8_t kBothRights =
    contract::kRegionFlagRemoteRead | contract::kRegionFlagRemoteWrite;

struct Region {
  uint32_t number = 0;
  uint64_t key = 0;
};

class NodesTest : public ::testing::Test {
 protected:
  // Every wait ends far earlier.
  static constexpr uint64_t kLimitCycles = 3000000;

  void Open(
      size_t count = 2, const sim::nic::LockstepOptions& options = {},
      const std::function<void(size_t, BareEndpointOptions&)>& shape = {}) {
    std::string error;
    nodes_ = LockstepNodes::Create(count, options, &error, shape);
    ASSERT_NE(nodes_, nullptr) << error;
  }
  void TearDown() override {
    if (nodes_ == nullptr) return;
    EXPECT_EQ(nodes_->world().failure(), "");
    if (HasFailure()) std::fputs(nodes_->Report().c_str(), stdout);
  }

  BareEndpoint& a() { return nodes_->endpoint(0); }
  BareEndpoint& b() { return nodes_->endpoint(1); }

  contract::AdminAnswer Admin(size_t node, const auto& command) {
    const auto answer = nodes_->admin(node).Execute(
        std::bit_cast<contract::AdminCommand>(command));
    EXPECT_TRUE(answer.ok()) << nodes_->admin(node).failure();
    return answer.ok() ? answer.value() : contract::AdminAnswer{};
  }
  // All of `memory`, with what else `command` says. Key 0: one of the NIC's.
  Region Register(size_t node, const DmaBuffer& memory,
                  contract::AdminRegisterRegion command) {
    command.opcode = contract::AdminOpcode::kRegisterRegion;
    command.iova = ToInteger(memory.iova());
    command.length = memory.bytes();
    command.job_id = 1;
    if (command.key == 0) command.flags |= contract::kRegionFlagProviderKey;
    const contract::AdminAnswer answer = Admin(node, command);
    EXPECT_EQ(answer.status, contract::AdminStatus::kOk);
    return {answer.object, answer.key};
  }
  Region Register(size_t node, const DmaBuffer& memory,
                  uint8_t flags = kBothRights) {
    contract::AdminRegisterRegion command = {};
    command.flags = flags;
    return Register(node, memory, command);
  }
  void Deregister(size_t node, const Region& region) {
    contract::AdminCommand command = {};
    command.opcode = contract::AdminOpcode::kDeregisterRegion;
    command.object = region.number;
    EXPECT_EQ(Admin(node, command).status, contract::AdminStatus::kOk);
  }

  // The next completion of what `endpoint` sends.
  std::optional<contract::Completion> WaitTx(BareEndpoint& endpoint) {
    std::optional<contract::Completion> completion;
    nodes_->StepUntil(kLimitCycles, [&] {
      completion = endpoint.PollTx();
      return completion.has_value();
    });
    return completion;
  }
  std::optional<contract::Completion> WaitTx() { return WaitTx(a()); }

  uint64_t Count(size_t node, contract::Statistic statistic) {
    return ReadStatistic(nodes_->device(node), statistic);
  }

  std::unique_ptr<LockstepNodes> nodes_;
};

inline void Fill(DmaBuffer& buffer, uint32_t seed) {
  std::mt19937 rng(seed);
  for (size_t i = 0; i < buffer.bytes(); ++i) {
    buffer.data()[i] = static_cast<std::byte>(rng());
  }
}

}  // namespace heddle
