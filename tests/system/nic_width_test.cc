// SPDX-License-Identifier: Apache-2.0
// Two whole NICs at one of the narrower data widths, with the end-to-end CRC:
// HEDDLE_DATA_W bits. What does not depend on the width is tested at 512.
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/nic/nic_model.h"
#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Completion;
using contract::Statistic;
using contract::Status;

class NicWidthTest : public NodesTest {
 protected:
  void Open(sim::nic::LockstepOptions options = {}) {
    ASSERT_NO_FATAL_FAILURE(NodesTest::Open(2, options));
  }
  uint64_t Counted(Statistic statistic) {
    return ReadStatistic(nodes_->device(0), statistic) +
           ReadStatistic(nodes_->device(1), statistic);
  }

  // A message of `bytes` from one node to the other, at odd addresses.
  void Exchange(size_t from, uint32_t bytes) {
    SCOPED_TRACE(bytes);
    const size_t to = 1 - from;
    constexpr uint32_t kMargin = 64;
    DmaBuffer& source = nodes_->Memory(from, bytes + 2 * kMargin);
    DmaBuffer& target = nodes_->Memory(to, bytes + 2 * kMargin);
    for (size_t i = 0; i < source.bytes(); ++i) {
      source.data()[i] = static_cast<std::byte>(rng_());
    }
    std::memset(target.data(), 0x5a, target.bytes());
    const uint32_t source_at = rng_() % kMargin;
    const uint32_t target_at = rng_() % kMargin;
    BareEndpoint& a = nodes_->endpoint(from);
    BareEndpoint& b = nodes_->endpoint(to);
    ASSERT_TRUE(b.rx().TryPush(77, target.iova() + target_at, bytes));
    b.rx().Publish();
    ASSERT_TRUE(a.tx().PushBuffer({.op_context = 55,
                                   .peer = static_cast<uint32_t>(to),
                                   .flags = contract::kTxFlagCompletion},
                                  source.iova() + source_at, bytes));
    a.tx().Publish();
    const auto [sent, received] = nodes_->AwaitDelivery(a, b, kLimitCycles);
    ASSERT_TRUE(sent && received);
    EXPECT_EQ(sent->status, Status::kOk);
    EXPECT_EQ(sent->op_context, 55U);
    EXPECT_EQ(received->status, Status::kOk);
    EXPECT_EQ(received->op_context, 77U);
    EXPECT_EQ(received->length, bytes);
    EXPECT_EQ(std::memcmp(target.data() + target_at, source.data() + source_at,
                          bytes),
              0);
    for (size_t i = 0; i < target.bytes(); ++i) {
      if (i < target_at || i >= target_at + bytes) {
        ASSERT_EQ(target.data()[i], std::byte{0x5a}) << "byte " << i;
      }
    }
  }
  void ExchangeBothWays() {
    for (const uint32_t bytes : {0U, 8U, 4096U, 70000U}) {
      for (const size_t from : {0U, 1U}) {
        ASSERT_NO_FATAL_FAILURE(Exchange(from, bytes));
      }
    }
  }

  const uint32_t seed_ = TestSeed();
  std::mt19937 rng_{seed_};
};

TEST(NicModelTest, HasTheWidthThatItsTestsClaim) {
  EXPECT_EQ(sim::nic::NicModel::BusBytes() * 8, HEDDLE_DATA_W);
}

TEST_F(NicWidthTest, MessagesArriveWholeInBothDirections) {
  Open();
  ExchangeBothWays();
  EXPECT_EQ(Counted(Statistic::kTimeouts), 0U);
}

TEST_F(NicWidthTest, MessagesArriveWholeOverTaggedIpv6) {
  sim::nic::LockstepOptions options;
  for (size_t node = 0; node < 2; ++node) {
    options.addresses.emplace_back(0xfd00'0000'0000'0001,
                                   LockstepNodes::Address(node));
  }
  options.vlan = 0x123;
  Open(options);
  ExchangeBothWays();
  EXPECT_EQ(Counted(Statistic::kTimeouts), 0U);
}

TEST_F(NicWidthTest, SilentCorruptionIsCaughtByTheCrc) {
  sim::nic::LockstepOptions options;
  options.seed = seed_;
  options.wire.faults.corrupt = 0.05;
  Open(options);
  for (int round = 0; round < 4; ++round) {
    ASSERT_NO_FATAL_FAILURE(ExchangeBothWays());
  }
  EXPECT_GT(Counted(Statistic::kDropCrc), 0U);
}

}  // namespace
}  // namespace heddle
