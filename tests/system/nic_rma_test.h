// SPDX-License-Identifier: Apache-2.0
// RMA operations of node 0 on regions of other nodes.
#pragma once

#include <bit>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "driver/device/device_info.h"
#include "gtest/gtest.h"
#include "tests/system/harness/lockstep_nodes.h"

namespace heddle {

inline constexpr uint8_t kBothRights =
    contract::kRegionFlagRemoteRead | contract::kRegionFlagRemoteWrite;

struct Region {
  uint32_t number = 0;
  uint64_t key = 0;
};

// Every wait ends far earlier.
inline constexpr uint64_t kRmaLimitCycles = 3000000;

class NicRmaTest : public ::testing::Test {
 protected:
  void Open(
      size_t count = 2, const sim::LockstepOptions& options = {},
      const std::function<void(size_t, BareEndpointOptions&)>& shape = {}) {
    std::string error;
    nodes_ = LockstepNodes::Create(count, options, &error, shape);
    ASSERT_NE(nodes_, nullptr) << error;
  }
  void TearDown() override {
    if (nodes_ == nullptr) return;
    EXPECT_EQ(nodes_->world().failure(), "");
    EXPECT_EQ(nodes_->world().memory(0).blocked_reads(), 0U);
    EXPECT_EQ(nodes_->world().memory(1).blocked_writes(), 0U);
    if (HasFailure()) std::fputs(nodes_->Report().c_str(), stdout);
  }

  contract::AdminAnswer Admin(size_t node, const auto& command) {
    const auto answer = nodes_->admin(node).Execute(
        std::bit_cast<contract::AdminCommand>(command));
    EXPECT_TRUE(answer.ok()) << nodes_->admin(node).failure();
    return answer.ok() ? answer.value() : contract::AdminAnswer{};
  }
  Region Register(size_t node, const DmaBuffer& memory,
                  uint8_t flags = kBothRights, uint64_t key = 0,
                  uint64_t address_base = 0) {
    contract::AdminRegisterRegion command = {};
    command.opcode = contract::AdminOpcode::kRegisterRegion;
    command.iova = ToInteger(memory.iova());
    command.length = memory.bytes();
    command.address_base = address_base;
    command.key = key;
    command.job_id = 1;
    command.flags = static_cast<uint8_t>(
        flags | (key == 0 ? contract::kRegionFlagProviderKey : 0));
    const contract::AdminAnswer answer = Admin(node, command);
    EXPECT_EQ(answer.status, contract::AdminStatus::kOk);
    return {answer.object, answer.key};
  }
  void Deregister(size_t node, const Region& region) {
    contract::AdminCommand command = {};
    command.opcode = contract::AdminOpcode::kDeregisterRegion;
    command.object = region.number;
    EXPECT_EQ(Admin(node, command).status, contract::AdminStatus::kOk);
  }

  // Makes the descriptor that node 0 pushed last an RMA operation, and
  // publishes it.
  void AsRma(contract::Opcode opcode, uint64_t key, uint64_t remote_offset) {
    contract::TxDesc& desc = nodes_->endpoint(0).LastTxDesc();
    desc.opcode = opcode;
    desc.match_bits = key;
    desc.remote_offset = remote_offset;
    nodes_->endpoint(0).tx().Publish();
  }
  bool Push(contract::Opcode opcode, const DmaBuffer& memory, uint32_t bytes,
            uint64_t key, uint64_t remote_offset, SendFields fields = {}) {
    fields.peer = 1;
    fields.flags |= contract::kTxFlagCompletion;
    if (!nodes_->endpoint(0).tx().PushBuffer(fields, memory.iova(), bytes)) {
      return false;
    }
    AsRma(opcode, key, remote_offset);
    return true;
  }
  bool PushWrite(const DmaBuffer& source, uint32_t bytes, uint64_t key,
                 uint64_t remote_offset, SendFields fields = {}) {
    return Push(contract::Opcode::kWrite, source, bytes, key, remote_offset,
                fields);
  }
  bool PushRead(const DmaBuffer& target, uint32_t bytes, uint64_t key,
                uint64_t remote_offset, SendFields fields = {}) {
    return Push(contract::Opcode::kRead, target, bytes, key, remote_offset,
                fields);
  }
  std::optional<contract::Completion> WaitTx() {
    std::optional<contract::Completion> completion;
    nodes_->StepUntil(kRmaLimitCycles, [&] {
      completion = nodes_->endpoint(0).PollTx();
      return completion.has_value();
    });
    return completion;
  }
  // Writes from node 0 and returns how that ended.
  contract::Completion Write(const DmaBuffer& source, uint32_t bytes,
                             uint64_t key, uint64_t remote_offset,
                             SendFields fields = {}) {
    EXPECT_TRUE(PushWrite(source, bytes, key, remote_offset, fields));
    const auto completion = WaitTx();
    EXPECT_TRUE(completion.has_value()) << nodes_->world().failure();
    return completion.value_or(
        contract::Completion{.status = contract::Status::kDeviceFault});
  }
  contract::Completion Read(const DmaBuffer& target, uint32_t bytes,
                            uint64_t key, uint64_t remote_offset,
                            SendFields fields = {}) {
    EXPECT_TRUE(PushRead(target, bytes, key, remote_offset, fields));
    const auto completion = WaitTx();
    EXPECT_TRUE(completion.has_value()) << nodes_->world().failure();
    return completion.value_or(
        contract::Completion{.status = contract::Status::kDeviceFault});
  }
  void ExpectRemoteError(const contract::Completion& completion,
                         contract::ReturnCode code) {
    EXPECT_EQ(completion.status, contract::Status::kRemoteError);
    EXPECT_EQ(completion.detail, static_cast<uint16_t>(code));
  }

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
