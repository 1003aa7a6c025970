// SPDX-License-Identifier: Apache-2.0
// Operations with delivery complete: in memory when their completion is.
#include <algorithm>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Status;

struct DeliveryCase {
  const char* name;
  bool ordered;
  bool write_errors;
  uint32_t receives;  // Posted at a time, at most.
};

void PrintTo(const DeliveryCase& tested, std::ostream* out) {
  *out << tested.name;
}

class NicDeliveryTest : public NodesTest,
                        public ::testing::WithParamInterface<DeliveryCase> {};

// Packets are lost, duplicated and overtaken, and those that wait for the
// target's slow memory are retransmitted by time-outs.
TEST_P(NicDeliveryTest, DataIsInMemoryWhenItsCompletionIs) {
  const uint32_t seed = TestSeed();
  sim::nic::LockstepOptions options;
  options.wire.faults = {.loss = 0.02, .duplicate = 0.02, .reorder = 0.02};
  options.seed = seed;
  options.write_errors = GetParam().write_errors;
  options.memory.write_delay_cycles = 2000;
  options.memory.response_delay_cycles = 500;
  options.memory.stall = 0.1;
  options.rto_cycles = 512;
  options.rto_max_cycles = 2048;
  Open(2, options, [](size_t, BareEndpointOptions& shape) {
    shape.ordered = GetParam().ordered;
  });
  constexpr uint32_t kOperations = 30;
  constexpr size_t kBytes = 50'000;
  constexpr uint32_t kInFlight = 12;
  DmaBuffer& source = nodes_->Memory(0, 2 * kBytes);
  DmaBuffer& target = nodes_->Memory(1, kOperations * kBytes);
  const uint64_t key = Register(1, target).key;
  Fill(source, seed);
  std::mt19937 rng(seed);
  struct Operation {
    uint32_t bytes;
    size_t from;
    bool send;
  };
  std::vector<Operation> operations(kOperations);
  std::vector<uint32_t> sends;
  for (uint32_t i = 0; i < kOperations; ++i) {
    const uint32_t most = i % 3 == 0 ? kBytes : i % 3 == 1 ? 12'000 : 100;
    operations[i] = {.bytes = static_cast<uint32_t>(1 + rng() % most),
                     .from = rng() % kBytes,
                     .send = rng() % 2 == 0};
    if (operations[i].send) sends.push_back(i);
  }
  uint32_t posted = 0, done = 0, late = 0;
  size_t received = 0, receives = 0;
  ASSERT_TRUE(nodes_->StepUntil(40'000'000, [&] {
    while (receives < sends.size() &&
           receives - received < GetParam().receives) {
      // A message of an unordered PDC may take the receive of another.
      EXPECT_TRUE(b().rx().TryPush(
          receives, Iova{ToInteger(target.iova()) + sends[receives] * kBytes},
          kBytes));
      b().rx().Publish();
      ++receives;
    }
    while (posted < kOperations && posted - done < kInFlight) {
      const Operation& next = operations[posted];
      const SendFields fields = {
          .opcode =
              next.send ? contract::Opcode::kSend : contract::Opcode::kWrite,
          .op_context = posted,
          .peer = 1,
          .flags =
              contract::kTxFlagCompletion | contract::kTxFlagDeliveryComplete,
          .match_bits = next.send ? 0 : key,
          .remote_offset = next.send ? 0 : posted * kBytes};
      EXPECT_TRUE(a().tx().PushBuffer(
          fields, Iova{ToInteger(source.iova()) + next.from}, next.bytes));
      a().tx().Publish();
      ++posted;
    }
    while (const auto completion = a().PollTx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      ++done;
      const Operation& ended = operations[completion->op_context];
      const auto holds = [&](uint32_t place) {
        return std::memcmp(target.data() + place * kBytes,
                           source.data() + ended.from, ended.bytes) == 0;
      };
      const bool there =
          ended.send ? std::any_of(sends.begin(), sends.end(), holds)
                     : holds(static_cast<uint32_t>(completion->op_context));
      EXPECT_TRUE(there) << "operation " << completion->op_context << ", "
                         << ended.bytes << " bytes";
      late += !there;
    }
    while (const auto completion = b().PollRx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      ++received;
    }
    return late != 0 || (done == kOperations && received == sends.size());
  })) << done;
  EXPECT_GT(Count(0, contract::Statistic::kTimeouts), 0U);
  EXPECT_GT(Count(1, contract::Statistic::kRxDuplicates), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    , NicDeliveryTest,
    ::testing::Values(DeliveryCase{"Unordered", false, true, 8},
                      DeliveryCase{"UnorderedPosted", false, false, 8},
                      DeliveryCase{"UnorderedFewReceives", false, true, 1},
                      DeliveryCase{"Ordered", true, true, 8},
                      DeliveryCase{"OrderedPosted", true, false, 1}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace heddle
