// SPDX-License-Identifier: Apache-2.0
// Counters of whole NICs, and what they say of the data.
#include <bit>
#include <cstring>
#include <optional>

#include "driver/base/mmio.h"
#include "driver/queue/doorbells.h"
#include "gtest/gtest.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::CounterCell;
using contract::Status;

uint64_t Value(const BareEndpoint& endpoint, Counted counted) {
  return LoadShared(&endpoint.Cell(counted).value);
}
uint64_t Errors(const BareEndpoint& endpoint, Counted counted) {
  return LoadShared(&endpoint.Cell(counted).errors);
}

class NicCounterTest : public NodesTest {
 protected:
  void Open(const sim::nic::LockstepOptions& options = {}) {
    NodesTest::Open(2, options, [](size_t, BareEndpointOptions& shape) {
      shape.counters = true;
    });
  }
  bool Reaches(const BareEndpoint& endpoint, Counted counted, uint64_t value) {
    return nodes_->StepUntil(kLimitCycles,
                             [&] { return Value(endpoint, counted) >= value; });
  }
};

TEST_F(NicCounterTest, AReceiveIsCountedWhenItsDataIsThere) {
  for (const bool write_errors : {false, true}) {
    sim::nic::LockstepOptions options;
    options.write_errors = write_errors;
    Open(options);
    DmaBuffer& source = nodes_->Memory(0, 10000);
    DmaBuffer& target = nodes_->Memory(1, 10000);
    for (uint32_t round = 1; round <= 40; ++round) {
      const uint32_t bytes = round * 431 % 10000;
      Fill(source, round);
      ASSERT_TRUE(b().rx().TryPush(round, target.iova(), bytes));
      b().rx().Publish();
      // Without a completion, the counter is all that the sender sees.
      ASSERT_TRUE(a().tx().PushBuffer({.peer = 1}, source.iova(), bytes));
      a().tx().Publish();
      ASSERT_TRUE(Reaches(b(), Counted::kRecv, round)) << round;
      ASSERT_EQ(std::memcmp(target.data(), source.data(), bytes), 0) << round;
      ASSERT_TRUE(Reaches(a(), Counted::kSend, round)) << round;
      EXPECT_EQ(Value(b(), Counted::kRecv), round);
      while (b().PollRx()) {
      }
    }
    EXPECT_FALSE(a().PollTx().has_value());
    for (const Counted counted :
         {Counted::kRead, Counted::kWrite, Counted::kRemoteWrite}) {
      EXPECT_EQ(Value(a(), counted) + Value(b(), counted), 0U);
    }
  }
}

TEST_F(NicCounterTest, AWriteIsCountedInContextAndRegionWhenItsDataIsThere) {
  Open();
  DmaBuffer& source = nodes_->Memory(0, 10000);
  DmaBuffer& target = nodes_->Memory(1, 10000);
  // The region counts where nothing else of the endpoint does.
  const Region region = Register(
      1, target,
      {.flags = contract::kRegionFlagRemoteWrite,
       .counter = static_cast<uint8_t>(b().counter(Counted::kRemoteRead) + 1)});
  for (uint32_t round = 1; round <= 40; ++round) {
    const uint32_t bytes = round == 7 ? 0 : round * 431 % 10000;
    Fill(source, round);
    ASSERT_TRUE(a().tx().PushBuffer({.opcode = contract::Opcode::kWrite,
                                     .peer = 1,
                                     .match_bits = region.key},
                                    source.iova(), bytes));
    a().tx().Publish();
    const bool by_region = round % 2 == 0;
    ASSERT_TRUE(Reaches(
        b(), by_region ? Counted::kRemoteRead : Counted::kRemoteWrite, round));
    ASSERT_EQ(std::memcmp(target.data(), source.data(), bytes), 0) << round;
    ASSERT_TRUE(Reaches(a(), Counted::kWrite, round)) << round;
    ASSERT_TRUE(Reaches(b(), Counted::kRemoteRead, round));
    ASSERT_TRUE(Reaches(b(), Counted::kRemoteWrite, round));
  }
  EXPECT_EQ(Value(a(), Counted::kSend), 0U);
  EXPECT_FALSE(b().PollRx().has_value());
}

TEST_F(NicCounterTest, FailuresAreCountedApart) {
  Open();
  DmaBuffer& source = nodes_->Memory(0, 4096);
  DmaBuffer& target = nodes_->Memory(1, 4096);
  const Region region = Register(1, target);
  ASSERT_TRUE(a().tx().PushBuffer({.opcode = contract::Opcode::kWrite,
                                   .peer = 1,
                                   .match_bits = region.key ^ 1 << 20},
                                  source.iova(), 100));
  ASSERT_TRUE(a().tx().PushBuffer(
      {.opcode = contract::Opcode::kWrite, .peer = 1, .match_bits = region.key},
      source.iova(), 100));
  ASSERT_TRUE(b().rx().TryPush(1, target.iova(), 50));
  b().rx().Publish();
  ASSERT_TRUE(a().tx().PushBuffer({.peer = 1}, source.iova(), 100));
  a().tx().Publish();
  ASSERT_TRUE(Reaches(a(), Counted::kSend, 1));
  ASSERT_TRUE(Reaches(a(), Counted::kWrite, 1));
  EXPECT_EQ(Errors(a(), Counted::kWrite), 1U);
  EXPECT_EQ(Value(a(), Counted::kWrite), 1U);
  ASSERT_TRUE(nodes_->StepUntil(
      kLimitCycles, [&] { return Errors(b(), Counted::kRecv) == 1; }));
  EXPECT_EQ(Value(b(), Counted::kRecv), 0U) << "the receive was cut";
  EXPECT_EQ(Value(b(), Counted::kRemoteWrite), 1U);
  EXPECT_EQ(Errors(b(), Counted::kRemoteWrite), 0U);
}

TEST_F(NicCounterTest, HostChangesACounterThatGoesOnCounting) {
  Open();
  DmaBuffer& source = nodes_->Memory(0, 64);
  const uint32_t number = a().counter(Counted::kSend);
  const auto change = [&](uint32_t offset, uint64_t amount) {
    Ring(CounterDoorbell(nodes_->device(0), number, offset), amount);
  };
  change(contract::kDoorbellCounterSetOffset, 1000);
  change(contract::kDoorbellCounterAddErrorsOffset, 7);
  ASSERT_TRUE(nodes_->StepUntil(kLimitCycles, [&] {
    return LoadShared(&a().Cell(Counted::kSend).echo) == 2;
  }));
  EXPECT_EQ(Value(a(), Counted::kSend), 1000U);
  EXPECT_EQ(Errors(a(), Counted::kSend), 7U);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(b().rx().TryPush(1, {}, 0));
    ASSERT_TRUE(a().tx().PushBuffer({.peer = 1}, source.iova(), 0));
  }
  b().rx().Publish();
  a().tx().Publish();
  change(contract::kDoorbellCounterAddOffset, 100);
  ASSERT_TRUE(Reaches(a(), Counted::kSend, 1110));
  EXPECT_EQ(Value(a(), Counted::kSend), 1110U);
  EXPECT_EQ(LoadShared(&a().Cell(Counted::kSend).echo), 3U);
}

}  // namespace
}  // namespace heddle
