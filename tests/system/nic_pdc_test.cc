// SPDX-License-Identifier: Apache-2.0
// More endpoint pairs than PDCs: eviction, Close Commands and tombstones on
// whole NICs.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Statistic;
using contract::Status;

constexpr size_t kEndpoints = 16;  // Per NIC, all that it has.
constexpr uint32_t kBytes = 8;

// Endpoints that send `kBytes` to each other; the payload says which message
// it is.
class PdcTest : public NodesTest {
 protected:
  void Open(const sim::nic::LockstepOptions& options) {
    ASSERT_NO_FATAL_FAILURE(NodesTest::Open(kNodes, options));
    std::string error;
    for (size_t node = 0; node < kNodes; ++node) {
      for (size_t i = 0; i < kEndpoints; ++i) {
        if (i != 0) {
          extra_.push_back(BareEndpoint::Create(
              nodes_->device(node), nodes_->admin(node), {}, &error));
          ASSERT_NE(extra_.back(), nullptr) << error;
        }
        all_.push_back({.node = node,
                        .endpoint = i == 0 ? &nodes_->endpoint(node)
                                           : extra_.back().get()});
      }
    }
  }
  void TearDown() override {
    NodesTest::TearDown();
    extra_.clear();
  }

  // Every endpoint of the nodes `from` sends `rounds` messages to every
  // endpoint of the other nodes; each must arrive once, in order of its pair.
  void SendToAll(const std::vector<size_t>& from, uint32_t rounds) {
    for (const size_t node : from) {
      AddFlowsFrom(node);
    }
    const size_t total = flows_.size() * rounds;
    const auto expected = static_cast<uint32_t>(kNodes * kEndpoints * rounds);
    for (Member& member : all_) {
      member.expected = expected;  // At most.
      member.buffer = &nodes_->Memory(member.node, expected * kBytes);
    }
    ASSERT_TRUE(nodes_->StepUntil(40000000,
                                  [&] {
                                    Poll();
                                    Post(rounds);
                                    return acked_ == total &&
                                           received_ >= total;
                                  }))
        << acked_ << " sent, " << received_ << " received of " << total;
    nodes_->world().Step(20000);
    Poll();
    EXPECT_EQ(received_, total) << "a message arrived twice";
  }

  static constexpr size_t kNodes = 3;

 private:
  struct Member {
    size_t node = 0;
    BareEndpoint* endpoint = nullptr;
    DmaBuffer* buffer = nullptr;
    uint32_t expected = 0, posted = 0;
  };
  struct Flow {
    size_t sender = 0, receiver = 0;
    uint32_t peer = 0;     // The receiver, as the sender knows it.
    uint32_t arrived = 0;  // Messages so far.
  };

  void AddFlowsFrom(size_t node) {
    for (size_t s = 0; s < all_.size(); ++s) {
      for (size_t r = 0; r < all_.size(); ++r) {
        if (all_[s].node == node && all_[r].node != node) {
          const uint32_t peer = all_[s].endpoint->AddPeer(
              LockstepNodes::Address(all_[r].node), all_[r].endpoint->grant());
          flows_.push_back({.sender = s, .receiver = r, .peer = peer});
        }
      }
    }
  }

  // Provides buffers, takes completions.
  void Poll() {
    for (size_t i = 0; i < all_.size(); ++i) {
      Member& member = all_[i];
      BareEndpoint& endpoint = *member.endpoint;
      while (member.posted < member.expected &&
             endpoint.rx().TryPush(
                 member.posted, member.buffer->iova() + member.posted * kBytes,
                 kBytes)) {
        ++member.posted;
      }
      endpoint.rx().Publish();
      while (auto completion = endpoint.PollTx()) {
        EXPECT_EQ(completion->status, Status::kOk);
        ++acked_;
      }
      while (auto completion = endpoint.PollRx()) {
        EXPECT_EQ(completion->status, Status::kOk);
        uint32_t value[2];
        std::memcpy(value,
                    member.buffer->data() + completion->op_context * kBytes,
                    kBytes);
        Flow& flow = flows_.at(value[0]);
        EXPECT_EQ(flow.receiver, i);
        EXPECT_EQ(value[1], flow.arrived++) << "once, in order";
        ++received_;
      }
    }
  }

  // Sends what there is room for, one message of each flow after another.
  void Post(uint32_t rounds) {
    while (round_ < rounds) {
      const Flow& flow = flows_[next_];
      const uint32_t value[2] = {static_cast<uint32_t>(next_), round_};
      SendRing& tx = all_[flow.sender].endpoint->tx();
      if (!tx.PushInline({.op_context = next_,
                          .peer = flow.peer,
                          .flags = contract::kTxFlagCompletion},
                         value, kBytes)) {
        return;
      }
      tx.Publish();
      if (++next_ == flows_.size()) {
        next_ = 0;
        ++round_;
      }
    }
  }
  std::vector<std::unique_ptr<BareEndpoint>> extra_;
  std::vector<Member> all_;
  std::vector<Flow> flows_;
  size_t next_ = 0;  // Flow to send on.
  uint32_t round_ = 0;
  size_t acked_ = 0, received_ = 0;
};

TEST_F(PdcTest, AnInitiatorReachesMorePeersThanItHasPdcs) {
  Open({});
  SendToAll({0}, 2);  // 512 pairs.
  EXPECT_GE(Count(0, Statistic::kPdcEvictions), 256U);
  EXPECT_GE(Count(0, Statistic::kPdcCloses), 256U);
  EXPECT_EQ(Count(0, Statistic::kTimeouts), 0U);
}

TEST_F(PdcTest, ATargetIsReachedByMorePeersThanItHasPdcs) {
  Open({});
  // All to all: 512 pairs into each NIC and 512 out of it.
  SendToAll({0, 1, 2}, 1);
  for (size_t node = 0; node < kNodes; ++node) {
    EXPECT_GE(Count(node, Statistic::kRxPdcs), 512U);
    EXPECT_GE(Count(node, Statistic::kPdcCloses), 256U);
  }
}

TEST_F(PdcTest, CommandClosesThePdcsOfBothRoles) {
  Open({});
  SendToAll({0}, 1);
  // Starts to close them and returns how many are open.
  const auto close = [&](size_t node) {
    contract::AdminCommand command = {};
    command.opcode = contract::AdminOpcode::kClosePdcs;
    const contract::AdminAnswer answer = Admin(node, command);
    EXPECT_EQ(answer.status, contract::AdminStatus::kOk);
    return answer.detail;
  };
  const auto closes_all = [&](size_t node) {
    for (int i = 0; i < 100; ++i) {
      if (close(node) == 0) return true;
      nodes_->world().Step(2000);
    }
    return false;
  };
  const uint32_t served = close(1);
  EXPECT_GT(served, 0U);
  EXPECT_TRUE(closes_all(1)) << "its peer was not asked";
  const uint32_t left = close(0);  // To the other node.
  EXPECT_GT(left, 0U);
  EXPECT_LE(served + left, 256U);
  EXPECT_TRUE(closes_all(0));
  EXPECT_EQ(close(2), 0U);
  EXPECT_EQ(Count(0, Statistic::kTimeouts), 0U);
  EXPECT_NE(nodes_->device(0).ReadRegister64(contract::kBar0CapabilityOffset) &
                contract::kCapabilityClosePdcs,
            0U);
}

TEST_F(PdcTest, LostCommandsAnswersAndLateSynsLoseAndDoubleNothing) {
  const uint32_t seed = TestSeed();
  sim::nic::LockstepOptions options;
  options.seed = seed;
  options.wire.faults = {.loss = 0.02, .duplicate = 0.02, .reorder = 0.02};
  options.pdc_safety_cycles = 30000;
  options.pdc_idle_cycles = 20000;
  Open(options);
  SendToAll({0, 1, 2}, 1);
}

}  // namespace
}  // namespace heddle
