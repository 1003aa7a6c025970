// SPDX-License-Identifier: Apache-2.0
// RMA operations of node 0 on regions of other nodes.
#pragma once

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {

// Around an inline payload, a beat and a packet, and of many packets.
inline constexpr uint32_t kRmaSizes[] = {0,    1,    8,    63,   64,    65,
                                         4095, 4096, 4097, 8192, 65536, 70001};

class NicRmaTest : public NodesTest {
 protected:
  void TearDown() override {
    NodesTest::TearDown();
    if (nodes_ == nullptr) return;
    EXPECT_EQ(nodes_->world().memory(0).blocked_reads(), 0U);
    EXPECT_EQ(nodes_->world().memory(1).blocked_writes(), 0U);
  }
  static sim::nic::LockstepOptions BadNetwork() {
    sim::nic::LockstepOptions options;
    options.wire.faults = {.loss = 0.03, .duplicate = 0.03, .reorder = 0.03};
    options.seed = TestSeed();
    return options;
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
  // Writes from node 0 and returns how that ended.
  contract::Completion Write(const DmaBuffer& source, uint32_t bytes,
                             uint64_t key, uint64_t remote_offset,
                             const SendFields& fields = {}) {
    EXPECT_TRUE(PushWrite(source, bytes, key, remote_offset, fields));
    return Ended();
  }
  contract::Completion Read(const DmaBuffer& target, uint32_t bytes,
                            uint64_t key, uint64_t remote_offset,
                            const SendFields& fields = {}) {
    EXPECT_TRUE(PushRead(target, bytes, key, remote_offset, fields));
    return Ended();
  }
  void ExpectRemoteError(const contract::Completion& completion,
                         contract::ReturnCode code) {
    EXPECT_EQ(completion.status, contract::Status::kRemoteError);
    EXPECT_EQ(completion.detail, static_cast<uint16_t>(code));
  }

  // Takes the completions of `posted` operations, done or refused because
  // their region is gone; how many were refused.
  uint32_t TakeRefusals(uint32_t posted) {
    uint32_t refused = 0;
    for (uint32_t i = 0; i < posted; ++i) {
      const contract::Completion done = Ended();
      if (done.status != contract::Status::kOk) {
        ExpectRemoteError(done, contract::ReturnCode::kBadMkey);
        ++refused;
      }
    }
    return refused;
  }

  // What a target refuses.
  struct Refusal {
    const char* name;
    uint64_t key;
    uint64_t offset;
    uint16_t rx_index;
    contract::ReturnCode code;
  };
  // At a region of `bytes`, and at one without the right.
  static std::vector<Refusal> Refusals(const Region& region, uint64_t bytes,
                                       const Region& without_right) {
    using enum contract::ReturnCode;
    return {{"key", region.key ^ 1 << 20, 0, 0, kBadMkey},
            {"right", without_right.key, 0, 0, kPermViolation},
            {"range", region.key, bytes, 0, kBadAddr},
            {"index", region.key, 0, 7, kBadIndex}};
  }

  // Memory of a node that may end before the node does.
  std::optional<DmaBuffer> Fresh(size_t node, size_t bytes) {
    auto memory = DmaBuffer::Create(nodes_->device(node), bytes);
    EXPECT_TRUE(memory.ok());
    if (!memory.ok()) return std::nullopt;
    return std::move(memory.value());
  }

 private:
  contract::Completion Ended() {
    const auto completion = WaitTx();
    EXPECT_TRUE(completion.has_value()) << nodes_->world().failure();
    return completion.value_or(
        contract::Completion{.status = contract::Status::kDeviceFault});
  }
};

// Whether all bytes are `value` but those of [first, first + bytes).
inline void ExpectUntouched(const DmaBuffer& memory, std::byte value,
                            size_t first = 0, size_t bytes = 0) {
  for (size_t i = 0; i < memory.bytes(); ++i) {
    if (i < first || i >= first + bytes) {
      ASSERT_EQ(memory.data()[i], value) << "byte " << i;
    }
  }
}

}  // namespace heddle
