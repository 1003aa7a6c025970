// SPDX-License-Identifier: Apache-2.0
// Traffic classes: packets of urgent DSCPs precede those of others.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Opcode;

constexpr uint8_t kExpedited = 46;
constexpr uint8_t kOther = 45;      // As those that stream, not urgent.
constexpr uint32_t kOthers = 12;    // Contexts that stream, a PDC each.
constexpr uint32_t kBytes = 65536;  // An operation of theirs.
constexpr uint64_t kPacketCycles = 66;

// Node 0 has contexts that stream and one with few small operations, all to
// node 1.
class ClassTest : public NodesTest {
 protected:
  void OpenStreams() {
    sim::nic::LockstepOptions options;
    options.seed = TestSeed();
    ASSERT_NO_FATAL_FAILURE(Open(2, options));
    memory_ = &nodes_->Memory(0, kBytes);
    target_ = &nodes_->Memory(1, kBytes);
    key_ = Register(1, *target_).key;
    for (uint32_t i = 0; i < kOthers; ++i) {
      others_.push_back(Add(static_cast<uint8_t>(i + 1)));
    }
    outstanding_.assign(kOthers, 0);
  }
  std::unique_ptr<BareEndpoint> Add(uint8_t traffic_class) {
    std::string error;
    auto endpoint = BareEndpoint::Create(
        nodes_->device(0), nodes_->admin(0),
        {.port = ++port_, .traffic_class = traffic_class}, &error);
    EXPECT_NE(endpoint, nullptr) << error;
    peer_ = endpoint->AddPeer(LockstepNodes::Address(1), b().grant());
    return endpoint;
  }
  void Post(BareEndpoint& endpoint, Opcode opcode, uint32_t bytes) {
    const SendFields fields{.peer = peer_,
                            .flags = contract::kTxFlagCompletion};
    const bool pushed =
        opcode == Opcode::kWrite && bytes <= contract::kInlineBytes
            ? endpoint.tx().PushInline(fields, memory_->data(), bytes)
            : endpoint.tx().PushBuffer(fields, memory_->iova(), bytes);
    ASSERT_TRUE(pushed);
    contract::TxDesc& desc = endpoint.LastTxDesc();
    desc.opcode = opcode;
    desc.match_bits = key_;
    endpoint.tx().Publish();
  }
  // Keeps two operations of each stream in progress.
  void Serve(Opcode opcode) {
    for (uint32_t i = 0; i < kOthers; ++i) {
      while (const auto done = others_[i]->PollTx()) {
        EXPECT_EQ(done->status, contract::Status::kOk);
        --outstanding_[i];
        ++served_;
      }
      for (; outstanding_[i] < 2; ++outstanding_[i]) {
        Post(*others_[i], opcode, kBytes);
      }
    }
  }
  void ServeUntil(Opcode opcode, const std::function<bool()>& done) {
    ASSERT_TRUE(nodes_->StepUntil(kLimitCycles, [&] {
      Serve(opcode);
      return done();
    }));
  }
  // Cycles of an 8-byte operation beside streams of `opcode`.
  uint64_t Take(BareEndpoint& endpoint, Opcode opcode) {
    const uint64_t start = nodes_->world().cycle();
    Post(endpoint, opcode, 8);
    ServeUntil(opcode, [&] {
      const auto done = endpoint.PollTx();
      return done.has_value() && done->status == contract::Status::kOk;
    });
    return nodes_->world().cycle() - start;
  }
  // An urgent operation waits for two packets of the streams less than another.
  void ExpectAhead(Opcode opcode) {
    constexpr uint64_t kSamples = 24;
    ASSERT_NO_FATAL_FAILURE(OpenStreams());
    const auto urgent = Add(kExpedited);
    const auto other = Add(kOther);
    ServeUntil(opcode, [&] { return served_ >= 2 * kOthers; });
    // The first ones open the PDCs.
    (void)Take(*urgent, opcode);
    (void)Take(*other, opcode);
    uint64_t urgent_cycles = 0;
    uint64_t other_cycles = 0;
    for (uint64_t i = 0; i < kSamples; ++i) {
      urgent_cycles += Take(*urgent, opcode);
      other_cycles += Take(*other, opcode);
    }
    RecordProperty("urgent", std::to_string(urgent_cycles / kSamples));
    RecordProperty("other", std::to_string(other_cycles / kSamples));
    EXPECT_LT(urgent_cycles + 2 * kSamples * kPacketCycles, other_cycles);
  }

  DmaBuffer* memory_ = nullptr;
  DmaBuffer* target_ = nullptr;
  uint64_t key_ = 0;
  uint32_t port_ = 10;
  uint32_t peer_ = 0;
  uint64_t served_ = 0;
  std::vector<std::unique_ptr<BareEndpoint>> others_;
  std::vector<uint32_t> outstanding_;
};

TEST_F(ClassTest, UrgentWritesPrecedeThoseOfOthers) {
  ExpectAhead(Opcode::kWrite);
}

TEST_F(ClassTest, DataOfUrgentReadsPrecedesThatOfOthers) {
  ExpectAhead(Opcode::kRead);
}

}  // namespace
}  // namespace heddle
