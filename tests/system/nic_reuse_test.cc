// SPDX-License-Identifier: Apache-2.0
// Operations that outlive their context, and what has its number by then.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "tests/system/nic_rma_test.h"

namespace heddle {
namespace {

using contract::Statistic;
using contract::Status;

constexpr size_t kContexts = 16;  // Per NIC.
constexpr uint32_t kBytes = 3000;
constexpr uint32_t kLatency = 3000;  // Of the wire, in cycles.
constexpr std::byte kFirst{0x11};    // What an operation's memory holds,
constexpr std::byte kLater{0x22};    // and what it holds afterwards.

// All contexts of node 0 but one are taken, so that each new one has the same
// number, and so are its completion queues but two.
class ReuseTest : public NicRmaTest {
 protected:
  void Open() {
    sim::nic::LockstepOptions options;
    options.wire.latency_cycles = kLatency;
    // Nothing is sent again while contexts come and go.
    options.rto_cycles = options.rto_max_cycles = kLimitCycles / 2;
    options.dead_cycles = uint64_t{100} * kLimitCycles;
    ASSERT_NO_FATAL_FAILURE(NodesTest::Open(2, options));
    for (size_t i = 2; i < kContexts; ++i) {
      others_.push_back(Begin(static_cast<uint32_t>(i)));
      ASSERT_NE(others_.back(), nullptr);
    }
  }
  void TearDown() override {
    NicRmaTest::TearDown();
    Close();
  }
  void Close() {
    user_.reset();
    others_.clear();
  }

  std::unique_ptr<BareEndpoint> Begin(uint32_t port) {
    std::string error;
    auto endpoint =
        BareEndpoint::Create(nodes_->device(0), nodes_->admin(0),
                             {.port = port, .receives = false}, &error);
    EXPECT_NE(endpoint, nullptr) << error;
    if (endpoint != nullptr) {
      endpoint->AddPeer(LockstepNodes::Address(1), b().grant());
    }
    return endpoint;
  }
  // Posts an operation of the next use.
  void Post(const DmaBuffer& memory, contract::Opcode opcode,
            uint64_t key = 0) {
    ASSERT_TRUE(user_->tx().PushBuffer(
        {.op_context = 0xdead, .flags = contract::kTxFlagCompletion},
        memory.iova(), kBytes));
    user_->LastTxDesc().opcode = opcode;
    user_->LastTxDesc().match_bits = key;
    user_->tx().Publish();
  }
  // Uses the number that the operation's context had `uses` times more. The
  // last user stays.
  void UseAgain(uint32_t uses) {
    const uint64_t start = nodes_->world().cycle();
    for (uint32_t i = 0; i < uses; ++i) {
      user_.reset();
      user_ = Begin(1);
      ASSERT_NE(user_, nullptr);
    }
    ASSERT_LT(nodes_->world().cycle() - start, kLimitCycles / 3);
  }
  // What was lost is sent again and answered, and nobody is told.
  void ExpectNothingCompleted() {
    const uint64_t end = nodes_->world().cycle() + 4 * kLimitCycles;
    const uint64_t before = Count(0, Statistic::kRxFrames);
    const auto answered = [&] {
      return Count(0, Statistic::kRxFrames) != before;
    };
    while (!answered() && nodes_->world().cycle() < end) {
      nodes_->world().Step(1000);
    }
    EXPECT_TRUE(answered());
    nodes_->world().Step(20000);
    EXPECT_FALSE(user_->PollTx().has_value());
  }
  // The number's last user works.
  void ExpectUsable() {
    DmaBuffer& source = nodes_->Memory(0, kBytes);
    DmaBuffer& target = nodes_->Memory(1, kBytes);
    Fill(source, 5);
    ASSERT_TRUE(b().rx().TryPush(2, target.iova(), kBytes));
    b().rx().Publish();
    ASSERT_NO_FATAL_FAILURE(Post(source, contract::Opcode::kSend));
    const auto done = WaitTx(*user_);
    ASSERT_TRUE(done.has_value());
    EXPECT_EQ(done->status, Status::kOk);
  }

  std::unique_ptr<BareEndpoint> user_;
  std::vector<std::unique_ptr<BareEndpoint>> others_;
};

// Numbers of the uses of a context must not come again as long as that.
constexpr uint32_t kUses = 16;

TEST_F(ReuseTest, SendOfADestroyedContextIsNeitherReadNorCompleted) {
  Open();
  user_ = Begin(1);
  DmaBuffer& source = nodes_->Memory(0, kBytes);
  DmaBuffer& target = nodes_->Memory(1, kBytes);
  std::memset(source.data(), static_cast<int>(kFirst), kBytes);
  ASSERT_TRUE(b().rx().TryPush(1, target.iova(), kBytes));
  b().rx().Publish();
  nodes_->world().Step(1000);
  nodes_->world().SetLink(1, false);
  ASSERT_NO_FATAL_FAILURE(Post(source, contract::Opcode::kSend));
  nodes_->world().Step(3000);
  ASSERT_NO_FATAL_FAILURE(UseAgain(kUses));
  std::memset(source.data(), static_cast<int>(kLater), kBytes);
  nodes_->world().SetLink(1, true);
  ExpectNothingCompleted();
  ExpectUntouched(target, std::byte{0});
  ExpectUsable();
}

// Its request is lost, or its data are.
TEST_F(ReuseTest, DataOfADestroyedContextsReadAreNotPlaced) {
  for (const size_t lost : {1U, 0U}) {
    SCOPED_TRACE(lost);
    Close();
    Open();
    user_ = Begin(1);
    DmaBuffer& result = nodes_->Memory(0, kBytes);
    DmaBuffer& source = nodes_->Memory(1, kBytes);
    std::memset(source.data(), static_cast<int>(kFirst), kBytes);
    const Region region = Register(1, source);
    nodes_->world().Step(1000);
    if (lost == 1) nodes_->world().SetLink(1, false);
    ASSERT_NO_FATAL_FAILURE(Post(result, contract::Opcode::kRead, region.key));
    nodes_->world().Step(kLatency / 2);  // The request is on its way.
    nodes_->world().SetLink(lost, false);
    nodes_->world().Step(4 * kLatency);
    EXPECT_EQ(Count(1, Statistic::kRxRequests) != 0, lost == 0);
    ASSERT_NO_FATAL_FAILURE(UseAgain(kUses));
    nodes_->world().SetLink(lost, true);
    ExpectNothingCompleted();
    ExpectUntouched(result, std::byte{0});
    ExpectUsable();
  }
}

}  // namespace
}  // namespace heddle
