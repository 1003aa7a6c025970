// SPDX-License-Identifier: Apache-2.0
// More endpoint pairs than PDCs: eviction, Close Commands and tombstones on
// whole NICs.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "driver/device/device_info.h"
#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/lockstep_nodes.h"

namespace heddle {
namespace {

using contract::Statistic;
using contract::Status;

constexpr size_t kEndpoints = 16;  // Per NIC, all that it has.
constexpr uint32_t kBytes = 8;

// Endpoints that send `kBytes` to each other; the payload says which message
// it is.
class PdcTest : public ::testing::Test {
 protected:
  void Open(size_t nodes, sim::LockstepOptions options) {
    std::string error;
    nodes_ = LockstepNodes::Create(nodes, std::move(options), &error);
    ASSERT_NE(nodes_, nullptr) << error;
    for (size_t node = 0; node < nodes; ++node) {
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
    if (nodes_ == nullptr) {
      return;
    }
    EXPECT_EQ(nodes_->world().failure(), "");
    if (HasFailure()) {
      std::fputs(nodes_->Report().c_str(), stdout);
    }
    extra_.clear();
  }

  // Every endpoint of node `from` sends `rounds` messages to every endpoint of
  // the other nodes; whether each arrived once, in order of its pair.
  void SendToAll(const std::vector<size_t>& from, uint32_t rounds) {
    struct Flow {
      size_t sender = 0, receiver = 0;
      uint32_t peer = 0, sent = 0;
    };
    std::vector<Flow> flows;
    for (size_t s = 0; s < all_.size(); ++s) {
      for (size_t r = 0; r < all_.size(); ++r) {
        const bool sends = std::ranges::count(from, all_[s].node) != 0;
        if (!sends || all_[s].node == all_[r].node) {
          continue;
        }
        flows.push_back({.sender = s,
                         .receiver = r,
                         .peer = all_[s].endpoint->AddPeer(
                             LockstepNodes::Address(all_[r].node),
                             all_[r].endpoint->grant())});
      }
    }
    const size_t total = flows.size() * rounds;
    std::vector<DmaBuffer*> buffers;
    std::vector<uint32_t> posted(all_.size());
    const auto expected =
        static_cast<uint32_t>(total / all_.size() * 4);  // At most, each.
    for (const Member& member : all_) {
      buffers.push_back(&nodes_->Memory(member.node, expected * kBytes));
    }
    std::vector<uint32_t> arrived(flows.size());
    size_t acked = 0, received = 0;
    uint32_t round = 0;
    size_t next = 0;
    const auto done = [&] {
      for (size_t i = 0; i < all_.size(); ++i) {
        BareEndpoint& endpoint = *all_[i].endpoint;
        while (posted[i] < expected &&
               endpoint.rx().TryPush(posted[i],
                                     buffers[i]->iova() + posted[i] * kBytes,
                                     kBytes)) {
          ++posted[i];
        }
        endpoint.rx().Publish();
        while (auto completion = endpoint.PollTx()) {
          EXPECT_EQ(completion->status, Status::kOk);
          ++acked;
        }
        while (auto completion = endpoint.PollRx()) {
          EXPECT_EQ(completion->status, Status::kOk);
          uint32_t value[2];
          std::memcpy(value,
                      buffers[i]->data() + completion->op_context * kBytes,
                      kBytes);
          EXPECT_EQ(flows.at(value[0]).receiver, i);
          EXPECT_EQ(value[1], arrived.at(value[0])++) << "once, in order";
          ++received;
        }
      }
      while (round < rounds) {
        const Flow& flow = flows[next];
        const uint32_t value[2] = {static_cast<uint32_t>(next), round};
        SendRing& tx = all_[flow.sender].endpoint->tx();
        if (!tx.PushInline({.op_context = next,
                            .peer = flow.peer,
                            .flags = contract::kTxFlagCompletion},
                           value, kBytes)) {
          break;
        }
        tx.Publish();
        if (++next == flows.size()) {
          next = 0;
          ++round;
        }
      }
      return acked == total && received >= total;
    };
    ASSERT_TRUE(nodes_->StepUntil(40000000, done))
        << acked << " sent, " << received << " received of " << total;
    nodes_->world().Step(20000);
    done();
    EXPECT_EQ(received, total) << "a message arrived twice";
  }

  uint64_t Count(size_t node, Statistic statistic) {
    return ReadStatistic(nodes_->device(node), statistic);
  }

  struct Member {
    size_t node = 0;
    BareEndpoint* endpoint = nullptr;
  };
  std::unique_ptr<LockstepNodes> nodes_;
  std::vector<std::unique_ptr<BareEndpoint>> extra_;
  std::vector<Member> all_;
};

TEST_F(PdcTest, AnInitiatorReachesMorePeersThanItHasPdcs) {
  Open(3, {});
  SendToAll({0}, 2);  // 512 pairs.
  EXPECT_GE(Count(0, Statistic::kPdcEvictions), 256U);
  EXPECT_GE(Count(0, Statistic::kPdcCloses), 256U);
  EXPECT_EQ(Count(0, Statistic::kTimeouts), 0U);
}

TEST_F(PdcTest, ATargetIsReachedByMorePeersThanItHasPdcs) {
  Open(3, {});
  // All to all: 512 pairs into each NIC and 512 out of it.
  SendToAll({0, 1, 2}, 1);
  for (size_t node = 0; node < 3; ++node) {
    EXPECT_GE(Count(node, Statistic::kRxPdcs), 512U);
    EXPECT_GE(Count(node, Statistic::kPdcCloses), 256U);
  }
}

TEST_F(PdcTest, LostCommandsAnswersAndLateSynsLoseAndDoubleNothing) {
  const uint32_t seed = TestSeed();
  sim::LockstepOptions options;
  options.seed = seed;
  options.wire.faults = {.loss = 0.02, .duplicate = 0.02, .reorder = 0.02};
  options.pdc_safety_cycles = 30000;
  options.pdc_idle_cycles = 20000;
  Open(3, options);
  SendToAll({0, 1, 2}, 1);
}

}  // namespace
}  // namespace heddle
