// SPDX-License-Identifier: Apache-2.0
// NICs that find each other by ARP and Neighbor Discovery.
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Completion;
using contract::Statistic;
using contract::Status;

constexpr uint64_t kPrefix = 0xfd00'0000'0000'0001;
constexpr uint32_t kNobody = 0x0a0000ee;

sim::nic::LockstepOptions Resolving(uint32_t count, bool ipv6) {
  sim::nic::LockstepOptions options;
  options.resolve_neighbours = true;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t ipv4 = LockstepNodes::Address(i);
    options.addresses.push_back(ipv6 ? sim::frame::WireAddress(kPrefix, ipv4)
                                     : sim::frame::WireAddress(ipv4));
  }
  return options;
}

class NeighbourTest : public NodesTest {
 protected:
  void Send(size_t from, size_t to, uint32_t bytes) {
    DmaBuffer& source = nodes_->Memory(from, bytes + 8);
    DmaBuffer& target = nodes_->Memory(to, bytes + 8);
    for (size_t i = 0; i < bytes; ++i) {
      source.data()[i] = static_cast<std::byte>(i * 7 + from);
    }
    BareEndpoint& a = nodes_->endpoint(from);
    BareEndpoint& b = nodes_->endpoint(to);
    ASSERT_TRUE(b.rx().TryPush(1, target.iova(), bytes));
    b.rx().Publish();
    ASSERT_TRUE(a.tx().PushBuffer({.op_context = 2,
                                   .peer = static_cast<uint32_t>(to),
                                   .flags = contract::kTxFlagCompletion},
                                  source.iova(), bytes));
    a.tx().Publish();
    const auto [sent, received] = nodes_->AwaitDelivery(a, b, kLimitCycles);
    ASSERT_TRUE(sent && received) << nodes_->world().failure();
    EXPECT_EQ(sent->status, Status::kOk);
    EXPECT_EQ(received->status, Status::kOk);
    EXPECT_EQ(std::memcmp(source.data(), target.data(), bytes), 0);
  }
  int ErrorOf(const Result<uint32_t>& result) {
    return result.ok() ? 0 : static_cast<int>(result.error());
  }
};

class NeighbourStackTest : public NeighbourTest,
                           public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Each, NeighbourStackTest, testing::Range(0, 4),
                         [](const auto& stack) {
                           return std::string(stack.param & 1 ? "V6" : "V4") +
                                  (stack.param & 2 ? "Tagged" : "");
                         });

TEST_P(NeighbourStackTest, NicsThatFoundEachOtherExchangeMessages) {
  constexpr uint32_t kNodes = 3;
  sim::nic::LockstepOptions options = Resolving(kNodes, (GetParam() & 1) != 0);
  options.vlan = (GetParam() & 2) != 0 ? 0x321 : 0;
  Open(kNodes, options);
  // Each asked the two others, who heard all four questions of others and
  // answered their own.
  for (uint32_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(Count(i, Statistic::kSlowPathTx), 2U + 2U) << i;
    EXPECT_EQ(Count(i, Statistic::kSlowPathRx), 2U + 4U) << i;
    EXPECT_EQ(Count(i, Statistic::kSlowPathDrops), 0U) << i;
  }
  for (const uint32_t bytes : {0U, 8U, 10000U}) {
    Send(0, 1, bytes);
    Send(1, 0, bytes);
    Send(2, 0, bytes);
    Send(1, 1, bytes);  // To itself.
    if (HasFatalFailure()) {
      return;
    }
  }
  for (uint32_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(Count(i, Statistic::kDropNoHop), 0U);
    EXPECT_EQ(Count(i, Statistic::kTxRetransmissions), 0U);
  }
  EXPECT_EQ(nodes_->world().wire().dropped(), 0U);
}

TEST_F(NeighbourTest, EachNeighbourHasAHopAndAStaticWireHasOneForAll) {
  Open(3, Resolving(3, false));
  std::set<uint32_t> hops;
  for (uint32_t i = 0; i < 3; ++i) {
    const auto hop =
        nodes_->admin(0).ResolveNextHop({.lo = LockstepNodes::Address(i)});
    ASSERT_TRUE(hop.ok());
    EXPECT_NE(hop.value(), 0U);
    hops.insert(hop.value());
  }
  EXPECT_EQ(hops.size(), 3U);
  nodes_.reset();
  Open(2, {});
  EXPECT_EQ(nodes_->admin(0)
                .ResolveNextHop({.lo = LockstepNodes::Address(1)})
                .value(),
            0U);
  EXPECT_EQ(Count(0, Statistic::kSlowPathTx), 0U);
}

TEST_F(NeighbourTest, NobodyAtAnAddressIsFoundOutInBoundedTime) {
  sim::nic::LockstepOptions options = Resolving(2, false);
  options.neighbour_retry_cycles = 20000;
  Open(2, options);
  const uint64_t asked = Count(0, Statistic::kSlowPathTx);
  const uint64_t start = nodes_->world().cycle();
  const uint64_t evaluated = nodes_->world().evaluated_cycles();
  EXPECT_EQ(ErrorOf(nodes_->admin(0).ResolveNextHop({.lo = kNobody})),
            EHOSTUNREACH);
  const uint64_t cycles = nodes_->world().cycle() - start;
  EXPECT_GE(cycles, 4 * 20000U);
  EXPECT_LE(cycles, 5 * 20000U);
  EXPECT_EQ(Count(0, Statistic::kSlowPathTx), asked + 4);
  // Idle in between: time is skipped, not spent.
  EXPECT_LT(nodes_->world().evaluated_cycles() - evaluated, cycles / 2);
  Send(0, 1, 100);
}

TEST_F(NeighbourTest, LostQuestionsAndAnswersAreRepeated) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    sim::nic::LockstepOptions options = Resolving(2, false);
    options.seed = seed;
    options.wire.faults.loss = 0.3;
    options.neighbour_retry_cycles = 10000;
    options.rto_max_cycles = options.rto_cycles;
    Open(2, options);
    if (HasFatalFailure()) {
      return;
    }
    Send(0, 1, 5000);
    if (HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace heddle
