// SPDX-License-Identifier: Apache-2.0
// WRITE between whole NICs, and the regions that it may reach.
#include "tests/system/nic_rma_test.h"

#include <cstring>
#include <random>

#include "gtest/gtest.h"
#include "tests/seed.h"

namespace heddle {
namespace {

using contract::Completion;
using contract::ReturnCode;
using contract::Statistic;
using contract::Status;

TEST_F(NicRmaTest, WritesOfAnySizeArriveWholeAndNothingElseChanges) {
  Open();
  DmaBuffer& source = nodes_->Memory(0, 80000);
  DmaBuffer& target = nodes_->Memory(1, 80128);
  const Region region = Register(1, target);
  uint32_t seed = 1;
  for (const uint32_t bytes : kRmaSizes) {
    SCOPED_TRACE(bytes);
    const uint64_t offset = bytes * 13 % 127;
    Fill(source, ++seed);
    std::memset(target.data(), 0x5a, target.bytes());
    const Completion done =
        Write(source, bytes, region.key, offset, {.op_context = bytes});
    EXPECT_EQ(done.status, Status::kOk);
    EXPECT_EQ(done.op_context, bytes);
    EXPECT_EQ(done.opcode, contract::Opcode::kWrite);
    // Acknowledged, not yet visible: a drain waits for that.
    Deregister(1, Register(1, target));
    ASSERT_EQ(std::memcmp(target.data() + offset, source.data(), bytes), 0);
    ASSERT_NO_FATAL_FAILURE(
        ExpectUntouched(target, std::byte{0x5a}, offset, bytes));
  }
  EXPECT_FALSE(nodes_->endpoint(1).PollRx().has_value());
  EXPECT_EQ(Count(0, Statistic::kTxRetransmissions), 0U);
  EXPECT_EQ(Count(1, Statistic::kRxRmaRefused), 0U);
}

TEST_F(NicRmaTest, InlineWritesAndVirtualAddressesWork) {
  Open();
  DmaBuffer& target = nodes_->Memory(1, 4096);
  const uint64_t base = 0x7f0000001000;
  const Region region = Register(
      1, target, {.address_base = base, .key = 0x1234, .flags = kBothRights});
  EXPECT_EQ(region.key, 0x1234U);
  uint8_t payload[192];
  for (size_t i = 0; i < sizeof payload; ++i) {
    payload[i] = static_cast<uint8_t>(i + 1);
  }
  SendRing& tx = nodes_->endpoint(0).tx();
  const SendFields fields{
      .peer = 1,
      .flags = contract::kTxFlagCompletion | contract::kTxFlagDeliveryComplete};
  for (const uint32_t bytes : {1U, 8U, 16U, 64U, 192U}) {
    ASSERT_TRUE(bytes <= contract::kInlineBytes
                    ? tx.PushInline(fields, payload, bytes)
                    : tx.PushInlineExt(fields, payload, bytes));
    AsRma(contract::Opcode::kWrite, region.key, base + 100);
    const auto done = WaitTx();
    ASSERT_TRUE(done.has_value());
    EXPECT_EQ(done->status, Status::kOk);
    EXPECT_EQ(std::memcmp(target.data() + 100, payload, bytes), 0) << bytes;
    std::memset(target.data(), 0, target.bytes());
  }
}

TEST_F(NicRmaTest, DeliveryCompleteMeansVisibleToTheOwner) {
  for (const bool write_errors : {true, false}) {
    sim::nic::LockstepOptions options;
    options.write_errors = write_errors;
    Open(2, options);
    DmaBuffer& source = nodes_->Memory(0, 20000);
    DmaBuffer& target = nodes_->Memory(1, 20000);
    const Region region = Register(1, target);
    for (uint32_t round = 1; round <= 50; ++round) {
      const uint32_t bytes = round * 397 % 20000;
      Fill(source, round);
      const Completion done =
          Write(source, bytes, region.key, 0,
                {.flags = contract::kTxFlagDeliveryComplete});
      ASSERT_EQ(done.status, Status::kOk);
      ASSERT_EQ(std::memcmp(target.data(), source.data(), bytes), 0) << round;
    }
    EXPECT_EQ(Count(0, Statistic::kTxRetransmissions), 0U);
  }
}

TEST_F(NicRmaTest, DataTravelsWithAWriteIntoTheTargetsQueue) {
  Open();
  DmaBuffer& source = nodes_->Memory(0, 10000);
  DmaBuffer& target = nodes_->Memory(1, 10000);
  Fill(source, 3);
  const Region region = Register(1, target);
  for (const uint32_t bytes : {0U, 8U, 10000U}) {
    ASSERT_TRUE(PushWrite(source, bytes, region.key, 0,
                          {.header_data = 0x1122334455667788,
                           .flags = contract::kTxFlagHeaderData}));
    const auto [sent, received] = nodes_->AwaitDelivery(
        nodes_->endpoint(0), nodes_->endpoint(1), kLimitCycles);
    ASSERT_TRUE(sent && received) << bytes;
    EXPECT_EQ(sent->status, Status::kOk);
    EXPECT_EQ(received->status, Status::kOk);
    EXPECT_EQ(received->kind, contract::CompletionKind::kTarget);
    EXPECT_EQ(received->opcode, contract::Opcode::kWrite);
    EXPECT_EQ(received->flags, contract::kCompletionFlagHeaderData);
    EXPECT_EQ(received->header_data, 0x1122334455667788U);
    EXPECT_EQ(received->length, bytes);
    EXPECT_EQ(received->match_bits, region.key);
    EXPECT_EQ(received->source_fa_lo, LockstepNodes::Address(0));
    // The data is there when the completion is.
    EXPECT_EQ(std::memcmp(target.data(), source.data(), bytes), 0);
    std::memset(target.data(), 0, target.bytes());
  }
}

// Nothing that was posted before or behind a refused write is touched by it.
TEST_F(NicRmaTest, EachErrorIsItsWritesAloneAndThePdcGoesOn) {
  Open();
  DmaBuffer& source = nodes_->Memory(0, 300000);
  DmaBuffer& target = nodes_->Memory(1, 300000);
  Fill(source, 1);
  const Region good = Register(1, target);
  const Region other = Register(1, target, contract::kRegionFlagRemoteRead);
  EXPECT_EQ(Write(source, 8, good.key, 0).status, Status::kOk);
  for (const Refusal& c : Refusals(good, target.bytes(), other)) {
    for (const uint32_t bytes : {1U, 4096U, 4097U, 250000U}) {
      SCOPED_TRACE(testing::Message() << c.name << ' ' << bytes);
      // A good one in front and one behind, in one batch.
      uint64_t ok = 0, bad = 0;
      ASSERT_TRUE(PushWrite(source, 100, good.key, 0, {.op_context = 1}));
      ASSERT_TRUE(PushWrite(source, bytes, c.key, c.offset,
                            {.op_context = 2, .rx_index = c.rx_index}));
      ASSERT_TRUE(PushWrite(source, 100, good.key, 0, {.op_context = 3}));
      for (int i = 0; i < 3; ++i) {
        const auto done = WaitTx();
        ASSERT_TRUE(done.has_value());
        if (done->op_context == 2) {
          ExpectRemoteError(*done, c.code);
          ++bad;
        } else {
          EXPECT_EQ(done->status, Status::kOk);
          ++ok;
        }
      }
      EXPECT_EQ(ok, 2U);
      EXPECT_EQ(bad, 1U);
    }
  }
  EXPECT_EQ(Count(0, Statistic::kTimeouts), 0U);
  EXPECT_EQ(Count(1, Statistic::kRxRmaRefused), 16U);
}

// On ROD, and without order on RUD.
class NicRmaOrderTest : public NicRmaTest,
                        public testing::WithParamInterface<bool> {
 protected:
  void OpenInOrder(const sim::nic::LockstepOptions& options) {
    Open(2, options,
         [](size_t, BareEndpointOptions& o) { o.ordered = GetParam(); });
  }
};

INSTANTIATE_TEST_SUITE_P(, NicRmaOrderTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& ordered) {
                           return ordered.param ? "Rod" : "Rud";
                         });

TEST_P(NicRmaOrderTest, ErrorsAndDataSurviveABadNetwork) {
  OpenInOrder(BadNetwork());
  constexpr uint32_t kWrites = 300;
  constexpr uint32_t kSlot = 6000;
  DmaBuffer& source = nodes_->Memory(0, kSlot);
  DmaBuffer& target = nodes_->Memory(1, size_t{kWrites} * kSlot);
  Fill(source, TestSeed());
  const Region region = Register(1, target);
  std::mt19937 rng(TestSeed());
  std::vector<uint32_t> sizes;
  std::vector<bool> bad;
  uint32_t posted = 0, done = 0;
  ASSERT_TRUE(nodes_->StepUntil(60000000, [&] {
    if (posted < kWrites) {
      const auto bytes = static_cast<uint32_t>(rng() % kSlot);
      const bool spoil = rng() % 4 == 0;
      if (PushWrite(source, bytes, spoil ? region.key ^ 1 << 21 : region.key,
                    uint64_t{posted} * kSlot, {.op_context = posted})) {
        sizes.push_back(bytes);
        bad.push_back(spoil);
        ++posted;
      }
    }
    while (const auto completion = nodes_->endpoint(0).PollTx()) {
      const auto index = static_cast<uint32_t>(completion->op_context);
      EXPECT_EQ(completion->status,
                bad[index] ? Status::kRemoteError : Status::kOk)
          << index;
      ++done;
    }
    return done == kWrites;
  })) << done;
  Deregister(1, region);
  for (uint32_t i = 0; i < kWrites; ++i) {
    const std::byte* slot = target.data() + size_t{i} * kSlot;
    if (bad[i]) {
      EXPECT_EQ(slot[0], std::byte{0});
    } else {
      EXPECT_EQ(std::memcmp(slot, source.data(), sizes[i]), 0) << i;
    }
  }
  EXPECT_EQ(Count(0, Statistic::kTxSelective) > 0, !GetParam());
}

// fi_close(mr) with writes on their way, then munmap.
TEST_F(NicRmaTest, NothingIsTouchedAfterDeregistration) {
  Open();
  DmaBuffer& source = nodes_->Memory(0, 200000);
  Fill(source, 1);
  for (uint32_t round = 0; round < 6; ++round) {
    std::optional<DmaBuffer> target = Fresh(1, 200000);
    ASSERT_TRUE(target.has_value());
    const Region region = Register(1, *target);
    uint32_t posted = 0;
    // More than the control program needs to take the region away.
    const bool large = round % 2 == 0;
    while (posted < (large ? 20 : 240) &&
           PushWrite(source, large ? 200000 : 9000, region.key, 0)) {
      ++posted;
    }
    // The first of them are on their way, frames in flight.
    nodes_->world().Step(400 + round * 421);
    Deregister(1, region);
    std::memset(target->data(), 0x77, target->bytes());
    nodes_->world().Step(3000);
    ASSERT_NO_FATAL_FAILURE(ExpectUntouched(*target, std::byte{0x77}));
    target.reset();
    EXPECT_GT(TakeRefusals(posted), 0U) << round;
    EXPECT_EQ(nodes_->world().memory(1).blocked_writes(), 0U);
  }
}

}  // namespace
}  // namespace heddle
