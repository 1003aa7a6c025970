// SPDX-License-Identifier: Apache-2.0
// What the NIC does with descriptors and buffers that are wrong.
#include <cstring>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Completion;
using contract::Status;

constexpr uint64_t kLimit = 1000000;
constexpr uint64_t kNowhere = 0x1000;  // Never mapped.

class NicBadInputTest : public NodesTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(NodesTest::Open(2, {}));
    std::string error;
    auto other =
        BareEndpoint::Create(nodes_->device(0), nodes_->admin(0), {}, &error);
    ASSERT_NE(other, nullptr) << error;
    other_ = std::move(other);
    other_->AddPeer(LockstepNodes::Address(0), nodes_->endpoint(0).grant());
    other_->AddPeer(LockstepNodes::Address(1), nodes_->endpoint(1).grant());
  }
  void TearDown() override {
    NodesTest::TearDown();
    EXPECT_EQ(nodes_->world().memory(0).blocked_reads(), blocked_reads_);
    EXPECT_EQ(nodes_->world().memory(1).blocked_writes(), blocked_writes_);
    other_.reset();
  }

  // Corrupts the descriptor that was pushed last.
  void Change(const std::function<void(contract::TxDesc&)>& change) {
    BareEndpoint& a = nodes_->endpoint(0);
    change(a.LastTxDesc());
    a.tx().Publish();
  }

  // The last descriptor of node 0 ends with `status`, its context with it, and
  // another context of the NIC goes on.
  void ExpectRefused(Status status, uint64_t op_context = 1) {
    BareEndpoint& a = nodes_->endpoint(0);
    auto refused = WaitTx(a);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, status);
    EXPECT_EQ(refused->op_context, op_context);
    // What is posted behind it is flushed.
    const uint64_t value = 7;
    ASSERT_TRUE(a.tx().PushInline({.op_context = 2, .peer = 1}, &value, 8));
    a.tx().Publish();
    auto flushed = WaitTx(a);
    ASSERT_TRUE(flushed);
    EXPECT_EQ(flushed->status, Status::kFlushed);
    EXPECT_EQ(flushed->op_context, 2U);
    ExpectContextWorks(*other_);
  }

  void ExpectContextWorks(BareEndpoint& endpoint) {
    const uint64_t value = 7;
    BareEndpoint& b = nodes_->endpoint(1);
    DmaBuffer& target = nodes_->Memory(1, 64);
    ASSERT_TRUE(b.rx().TryPush(1, target.iova(), 64));
    b.rx().Publish();
    ASSERT_TRUE(endpoint.tx().PushInline(
        {.peer = 1, .flags = contract::kTxFlagCompletion}, &value, 8));
    endpoint.tx().Publish();
    auto sent = WaitTx(endpoint);
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->status, Status::kOk);
  }

  void PushSend() {
    const uint64_t value = 7;
    ASSERT_TRUE(nodes_->endpoint(0).tx().PushInline(
        {.op_context = 1, .peer = 1}, &value, 8));
  }
  std::unique_ptr<BareEndpoint> other_;  // Second endpoint of node 0.
  uint64_t blocked_reads_ = 0;           // Announced.
  uint64_t blocked_writes_ = 0;
};

TEST_F(NicBadInputTest, UnknownOpcodeIsRefused) {
  PushSend();
  Change([](contract::TxDesc& d) {
    d.opcode = static_cast<contract::Opcode>(77);
  });
  ExpectRefused(Status::kBadOpcode);
}

TEST_F(NicBadInputTest, OpcodeThatTheDeviceDoesNotOfferIsRefused) {
  PushSend();
  Change([](contract::TxDesc& d) { d.opcode = contract::Opcode::kAtomic; });
  ExpectRefused(Status::kBadOpcode);
}

TEST_F(NicBadInputTest, InlineLengthBeyondTheDescriptorIsRefused) {
  PushSend();
  Change([](contract::TxDesc& d) { d.length = 17; });
  ExpectRefused(Status::kBadLength);
}

TEST_F(NicBadInputTest, UnknownFlagIsRefused) {
  PushSend();
  Change([](contract::TxDesc& d) { d.flags |= 0x80; });
  ExpectRefused(Status::kBadLength);
}

// A peer that the application removed is no reason to end its context.
TEST_F(NicBadInputTest,
       PeerOutsideTheAddressVectorIsRefusedAndTheContextGoesOn) {
  PushSend();
  Change([](contract::TxDesc& d) { d.peer = 100000; });
  auto refused = WaitTx(nodes_->endpoint(0));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, Status::kBadPeer);
  EXPECT_EQ(refused->op_context, 1U);
  EXPECT_EQ(refused->peer, 100000U);
  ExpectContextWorks(nodes_->endpoint(0));
}

TEST_F(NicBadInputTest, SlotWithAnotherPositionIsRefused) {
  PushSend();
  Change([](contract::TxDesc& d) { d.position ^= 0x4000; });
  // Nothing in such a slot can be trusted, the operation's context included.
  ExpectRefused(Status::kBadPosition, 0);
}

TEST_F(NicBadInputTest, UnmappedSourceEndsInAnErrorAtBothSides) {
  BareEndpoint& a = nodes_->endpoint(0);
  BareEndpoint& b = nodes_->endpoint(1);
  DmaBuffer& target = nodes_->Memory(1, 64);
  ASSERT_TRUE(b.rx().TryPush(9, target.iova(), 64));
  b.rx().Publish();
  ASSERT_TRUE(
      a.tx().PushBuffer({.op_context = 1, .peer = 1}, Iova{kNowhere}, 64));
  a.tx().Publish();
  std::optional<Completion> received;
  nodes_->StepUntil(kLimit, [&] {
    received = b.PollRx();
    return received.has_value();
  });
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, Status::kInitiatorError);
  EXPECT_EQ(target.data()[0], std::byte{0});
  blocked_reads_ = nodes_->world().memory(0).blocked_reads();
  EXPECT_GT(blocked_reads_, 0U);
  ExpectRefused(Status::kLocalAccess);
}

TEST_F(NicBadInputTest, UnmappedReceiveBufferIsBlockedAndReported) {
  BareEndpoint& a = nodes_->endpoint(0);
  BareEndpoint& b = nodes_->endpoint(1);
  DmaBuffer& source = nodes_->Memory(0, 10000);
  ASSERT_TRUE(b.rx().TryPush(9, Iova{kNowhere}, 10000));
  b.rx().Publish();
  ASSERT_TRUE(a.tx().PushBuffer(
      {.peer = 1, .flags = contract::kTxFlagCompletion}, source.iova(), 9000));
  a.tx().Publish();
  std::optional<Completion> received;
  nodes_->StepUntil(kLimit, [&] {
    received = b.PollRx();
    return received.has_value();
  });
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, Status::kLocalAccess);
  EXPECT_EQ(received->op_context, 9U);
  blocked_writes_ = nodes_->world().memory(1).blocked_writes();
  EXPECT_GT(blocked_writes_, 0U);
  EXPECT_GT(
      ReadStatistic(nodes_->device(1), contract::Statistic::kDmaWriteErrors),
      0U);
  auto sent = WaitTx(a);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->status, Status::kOk);
  ExpectContextWorks(*other_);
}

TEST_F(NicBadInputTest, DestroyedContextTouchesItsRingAndBuffersNoMore) {
  BareEndpoint& a = nodes_->endpoint(0);
  DmaBuffer& source = nodes_->Memory(0, 1 << 20);
  // No buffer at the peer: the message is under way when the context ends.
  ASSERT_TRUE(a.tx().PushBuffer({.peer = 1}, source.iova(), 1 << 20));
  a.tx().Publish();
  nodes_->world().Step(3000);
  ASSERT_TRUE(nodes_->admin(0).DestroyTx(0).ok());
  const Iova iova = source.iova();
  nodes_->device(0).Unmap(iova, source.bytes());
  nodes_->world().Step(50000);
  EXPECT_EQ(nodes_->world().memory(0).blocked_reads(), 0U);
  EXPECT_TRUE(nodes_->device(0).Map(source.data(), source.bytes()).ok());
  ExpectContextWorks(*other_);
}

}  // namespace
}  // namespace heddle
