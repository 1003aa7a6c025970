// SPDX-License-Identifier: Apache-2.0
// READ between whole NICs.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "driver/base/mmio.h"
#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/nic_rma_test.h"

namespace heddle {
namespace {

using contract::Completion;
using contract::ReturnCode;
using contract::Statistic;
using contract::Status;

class NicReadTest : public NicRmaTest {};

TEST_F(NicReadTest, ReadsOfAnySizeArriveWholeAndNothingElseChanges) {
  Open();
  DmaBuffer& target = nodes_->Memory(0, 80128);
  DmaBuffer& source = nodes_->Memory(1, 80000);
  const Region region = Register(1, source, contract::kRegionFlagRemoteRead);
  uint32_t seed = 1;
  for (const uint32_t bytes : kRmaSizes) {
    SCOPED_TRACE(bytes);
    const uint64_t offset = bytes * 13 % 127;
    Fill(source, ++seed);
    std::memset(target.data(), 0x5a, target.bytes());
    const Completion done =
        Read(target, bytes, region.key, offset, {.op_context = bytes});
    EXPECT_EQ(done.status, Status::kOk);
    EXPECT_EQ(done.op_context, bytes);
    EXPECT_EQ(done.length, bytes);
    EXPECT_EQ(done.opcode, contract::Opcode::kRead);
    // They are there when the completion is.
    ASSERT_EQ(std::memcmp(target.data(), source.data() + offset, bytes), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectUntouched(target, std::byte{0x5a}, 0, bytes));
  }
  EXPECT_FALSE(nodes_->endpoint(1).PollRx().has_value());
  for (const size_t node : {0U, 1U}) {
    EXPECT_EQ(Count(node, Statistic::kTxRetransmissions), 0U);
    EXPECT_EQ(Count(node, Statistic::kTimeouts), 0U);
    EXPECT_EQ(Count(node, Statistic::kTxNacks), 0U);
  }
}

TEST_F(NicReadTest, SeesTheWritesBeforeIt) {
  Open();
  DmaBuffer& source = nodes_->Memory(0, 20000);
  DmaBuffer& result = nodes_->Memory(0, 20000);
  DmaBuffer& remote = nodes_->Memory(1, 20000);
  const Region region = Register(1, remote);
  for (uint32_t round = 1; round <= 60; ++round) {
    const uint32_t bytes = 1 + round * 331 % 19999;
    Fill(source, round);
    ASSERT_TRUE(PushWrite(source, bytes, region.key, 0));
    ASSERT_TRUE(PushRead(result, bytes, region.key, 0));
    for (int i = 0; i < 2; ++i) {
      const auto done = WaitTx();
      ASSERT_TRUE(done.has_value());
      EXPECT_EQ(done->status, Status::kOk);
    }
    ASSERT_EQ(std::memcmp(result.data(), source.data(), bytes), 0) << round;
  }
}

// Nothing that was posted before or behind a refused read is touched by it.
TEST_F(NicReadTest, EachErrorIsItsReadsAloneAndThePdcGoesOn) {
  Open();
  DmaBuffer& source = nodes_->Memory(1, 300000);
  DmaBuffer& target = nodes_->Memory(0, 300000);
  DmaBuffer& sound = nodes_->Memory(0, 100);
  Fill(source, 1);
  const Region good = Register(1, source);
  const Region other = Register(1, source, contract::kRegionFlagRemoteWrite);
  for (const Refusal& c : Refusals(good, source.bytes(), other)) {
    for (const uint32_t bytes : {1U, 4096U, 4097U, 250000U}) {
      SCOPED_TRACE(testing::Message() << c.name << ' ' << bytes);
      ASSERT_TRUE(PushRead(sound, 100, good.key, 0, {.op_context = 1}));
      ASSERT_TRUE(PushRead(target, bytes, c.key, c.offset,
                           {.op_context = 2, .rx_index = c.rx_index}));
      ASSERT_TRUE(PushWrite(sound, 0, good.key, 0, {.op_context = 3}));
      ASSERT_TRUE(PushRead(sound, 100, good.key, 0, {.op_context = 4}));
      for (int i = 0; i < 4; ++i) {
        const auto done = WaitTx();
        ASSERT_TRUE(done.has_value());
        if (done->op_context == 2) {
          ExpectRemoteError(*done, c.code);
        } else {
          EXPECT_EQ(done->status, Status::kOk) << done->op_context;
        }
      }
    }
  }
  ExpectUntouched(target, std::byte{0});
  EXPECT_EQ(Count(0, Statistic::kTimeouts), 0U);
  EXPECT_EQ(Count(1, Statistic::kRxRmaRefused), 16U);
}

TEST_F(NicReadTest, ErrorsAndDataSurviveABadNetwork) {
  Open(2, BadNetwork());
  constexpr uint32_t kOperations = 300;
  constexpr uint32_t kSlot = 20000;
  DmaBuffer& local = nodes_->Memory(0, size_t{kOperations} * kSlot);
  DmaBuffer& remote = nodes_->Memory(1, size_t{kOperations} * kSlot);
  Fill(local, TestSeed() + 1);
  Fill(remote, TestSeed());
  const std::vector<std::byte> wanted(remote.data(),
                                      remote.data() + remote.bytes());
  const std::vector<std::byte> own(local.data(), local.data() + local.bytes());
  const Region region = Register(1, remote);
  std::mt19937 rng(TestSeed());
  struct Operation {
    uint32_t bytes;
    bool bad, write;
  };
  std::vector<Operation> operations;
  uint32_t done = 0;
  ASSERT_TRUE(nodes_->StepUntil(100000000, [&] {
    if (operations.size() < kOperations) {
      const uint64_t at = operations.size() * kSlot;
      const Operation next = {.bytes = static_cast<uint32_t>(rng() % kSlot),
                              .bad = rng() % 4 == 0,
                              .write = rng() % 3 == 0};
      const uint64_t key = next.bad ? region.key ^ 1 << 21 : region.key;
      const SendFields fields{.op_context = operations.size(),
                              .peer = 1,
                              .flags = contract::kTxFlagCompletion};
      if (nodes_->endpoint(0).tx().PushBuffer(
              fields, Iova{ToInteger(local.iova()) + at}, next.bytes)) {
        AsRma(next.write ? contract::Opcode::kWrite : contract::Opcode::kRead,
              key, at);
        operations.push_back(next);
      }
    }
    while (const auto completion = nodes_->endpoint(0).PollTx()) {
      const size_t index = completion->op_context;
      EXPECT_EQ(completion->status,
                operations[index].bad ? Status::kRemoteError : Status::kOk)
          << index;
      ++done;
    }
    return done == kOperations;
  })) << done;
  Deregister(1, region);
  for (uint32_t i = 0; i < kOperations; ++i) {
    const size_t at = size_t{i} * kSlot;
    const Operation& operation = operations[i];
    const bool reads = !operation.bad && !operation.write;
    const bool writes = !operation.bad && operation.write;
    EXPECT_EQ(std::memcmp(local.data() + at, (reads ? wanted : own).data() + at,
                          operation.bytes),
              0)
        << i;
    EXPECT_EQ(std::memcmp(remote.data() + at,
                          (writes ? own : wanted).data() + at, operation.bytes),
              0)
        << i;
  }
}

// The target's memory belongs to its owner again when it is told of the read.
TEST_F(NicReadTest, ItsTargetIsToldOnceWhenItsDataAreNotReadAgain) {
  for (const double loss : {0.0, 0.05}) {
    sim::nic::LockstepOptions options;
    options.wire.faults.loss = loss;
    options.seed = TestSeed();
    Open(2, options, [](size_t, BareEndpointOptions& shape) {
      shape.counters = shape.events = true;
    });
    constexpr uint32_t kOperations = 120;
    constexpr uint32_t kSlot = 10000;
    DmaBuffer& local = nodes_->Memory(0, size_t{kOperations} * kSlot);
    DmaBuffer& remote = nodes_->Memory(1, size_t{kOperations} * kSlot);
    Fill(remote, TestSeed());
    const std::vector<std::byte> wanted(remote.data(),
                                        remote.data() + remote.bytes());
    const Region region = Register(1, remote);
    const auto bytes = [](uint32_t i) { return i * 811 % kSlot; };
    uint32_t posted = 0;
    uint32_t done = 0;
    std::vector<uint32_t> told;  // Lengths.
    ASSERT_TRUE(nodes_->StepUntil(
        100000000,
        [&] {
          if (posted < kOperations) {
            const uint64_t at = uint64_t{posted} * kSlot;
            if (nodes_->endpoint(0).tx().PushBuffer(
                    {.peer = 1, .flags = contract::kTxFlagCompletion},
                    Iova{ToInteger(local.iova()) + at}, bytes(posted))) {
              AsRma(contract::Opcode::kRead, region.key, at);
              ++posted;
            }
          }
          while (const auto completion = nodes_->endpoint(0).PollTx()) {
            EXPECT_EQ(completion->status, Status::kOk);
            ++done;
          }
          while (const auto completion = nodes_->endpoint(1).PollRx()) {
            EXPECT_EQ(completion->status, Status::kOk);
            EXPECT_EQ(completion->kind, contract::CompletionKind::kTarget);
            EXPECT_EQ(completion->opcode, contract::Opcode::kRead);
            EXPECT_EQ(completion->match_bits, region.key);
            EXPECT_EQ(completion->source_fa_lo, LockstepNodes::Address(0));
            for (uint32_t i = 0; i < kOperations; ++i) {
              if (bytes(i) == completion->length) {
                std::memset(remote.data() + size_t{i} * kSlot, 0x77, kSlot);
              }
            }
            told.push_back(completion->length);
          }
          return done == kOperations && told.size() == kOperations;
        }))
        << done << ' ' << told.size();
    std::vector<uint32_t> lengths;
    for (uint32_t i = 0; i < kOperations; ++i) {
      lengths.push_back(bytes(i));
      ASSERT_EQ(std::memcmp(local.data() + size_t{i} * kSlot,
                            wanted.data() + size_t{i} * kSlot, bytes(i)),
                0)
          << i << " loss " << loss;
    }
    std::sort(lengths.begin(), lengths.end());
    std::sort(told.begin(), told.end());
    EXPECT_EQ(told, lengths);
    const auto value = [&] {
      return LoadShared(&nodes_->endpoint(1).Cell(Counted::kRemoteRead).value);
    };
    ASSERT_TRUE(nodes_->StepUntil(kLimitCycles,
                                  [&] { return value() >= kOperations; }));
    nodes_->world().Step(20000);
    EXPECT_EQ(value(), kOperations);
    EXPECT_FALSE(nodes_->endpoint(1).PollRx().has_value());
  }
}

TEST_F(NicReadTest, ADestroyedTargetIsToldOfNothingMore) {
  for (uint32_t round = 0; round < 8; ++round) {
    Open(2, {}, [](size_t, BareEndpointOptions& shape) {
      shape.counters = shape.events = true;
    });
    DmaBuffer& target = nodes_->Memory(0, 200000);
    DmaBuffer& source = nodes_->Memory(1, 200000);
    const Region region = Register(1, source);
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(PushRead(target, 3000, region.key, 0));
    }
    nodes_->world().Step(700 + round * 211);
    ASSERT_TRUE(nodes_->admin(1).DestroyRx(0).ok());
    uint32_t told = 0;
    while (nodes_->endpoint(1).PollRx()) ++told;
    const auto counted = [&] {
      return LoadShared(&nodes_->endpoint(1).Cell(Counted::kRemoteRead).value);
    };
    nodes_->world().Step(5000);
    EXPECT_LE(told, 40U);
    EXPECT_EQ(counted(), told) << round;
    nodes_->world().Step(30000);
    EXPECT_FALSE(nodes_->endpoint(1).PollRx().has_value());
    EXPECT_EQ(counted(), told) << round;
  }
}

// fi_close(mr) with reads on their way, then munmap.
TEST_F(NicReadTest, NothingIsReadAfterDeregistration) {
  Open();
  DmaBuffer& target = nodes_->Memory(0, 200000);
  for (uint32_t round = 0; round < 12; ++round) {
    std::optional<DmaBuffer> source = Fresh(1, 200000);
    ASSERT_TRUE(source.has_value());
    std::memset(source->data(), 0x11, source->bytes());
    const Region region = Register(1, *source);
    uint32_t posted = 0;
    const bool large = round % 2 == 0;
    while (posted < (large ? 20 : 200) &&
           PushRead(target, large ? 200000 : 9000, region.key, 0)) {
      ++posted;
    }
    nodes_->world().Step(400 + round * 211);
    Deregister(1, region);
    // What leaves from here on must not be in any answer.
    std::memset(source->data(), 0x77, source->bytes());
    source.reset();
    EXPECT_GT(TakeRefusals(posted), 0U) << round;
    EXPECT_EQ(nodes_->world().memory(1).blocked_reads(), 0U);
    for (size_t i = 0; i < target.bytes(); ++i) {
      ASSERT_NE(target.data()[i], std::byte{0x77}) << i;
    }
  }
}

// fi_close(ep) with reads on their way, then munmap.
TEST_F(NicReadTest, ADestroyedContextsMemoryIsNotTouchedAgain) {
  for (uint32_t round = 0; round < 8; ++round) {
    Open();
    DmaBuffer& source = nodes_->Memory(1, 200000);
    Fill(source, 1);
    const Region region = Register(1, source);
    std::optional<DmaBuffer> target = Fresh(0, 200000);
    ASSERT_TRUE(target.has_value());
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(PushRead(*target, 200000, region.key, 0));
    }
    nodes_->world().Step(900 + round * 411);
    ASSERT_TRUE(nodes_->admin(0).DestroyTx(0).ok());
    std::memset(target->data(), 0x77, target->bytes());
    nodes_->world().Step(20000);
    ASSERT_NO_FATAL_FAILURE(ExpectUntouched(*target, std::byte{0x77}));
    target.reset();
    nodes_->world().Step(20000);
    EXPECT_EQ(nodes_->world().memory(0).blocked_writes(), 0U);
  }
}

// Whatever of them was asked for by then: nothing stays due, or their PDC would
// not become idle but end.
TEST_F(NicReadTest, ADestroyedContextsReadsEnd) {
  const uint32_t seed = TestSeed();
  for (uint32_t round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    sim::nic::LockstepOptions options;
    options.wire.faults.loss = round % 3 == 0 ? 0.05 : 0;
    options.seed = seed + round;
    options.dead_cycles = 4000000;
    options.pdc_idle_cycles = 20000;
    Open(2, options);
    DmaBuffer& source = nodes_->Memory(1, 100000);
    DmaBuffer& target = nodes_->Memory(0, 100000);
    const Region region = Register(1, source);
    for (const uint32_t bytes : {100000U, 5000U, 1U, 0U, 50000U}) {
      ASSERT_TRUE(PushRead(target, bytes, region.key, 0));
    }
    nodes_->world().Step(500 + round * 173);
    ASSERT_TRUE(nodes_->admin(0).DestroyTx(0).ok());
    const uint64_t end = nodes_->world().cycle() + kLimitCycles;
    while (Count(0, Statistic::kPdcCloses) < Count(0, Statistic::kTxPdcs) &&
           nodes_->world().cycle() < end) {
      nodes_->world().Step(1000);
    }
    EXPECT_EQ(Count(0, Statistic::kPdcCloses), 1U);
    EXPECT_EQ(Count(0, Statistic::kDeadPeers), 0U);
  }
}

TEST_F(NicReadTest, UnwritableMemoryEndsTheReadWithLocalAccess) {
  Open();
  DmaBuffer& source = nodes_->Memory(1, 20000);
  DmaBuffer& target = nodes_->Memory(0, 20000);
  Fill(source, 1);
  const Region region = Register(1, source);
  std::optional<DmaBuffer> hole = Fresh(0, 8192);
  ASSERT_TRUE(hole.has_value());
  ASSERT_TRUE(PushRead(*hole, 8192, region.key, 0, {.op_context = 1}));
  ASSERT_TRUE(PushRead(target, 20000, region.key, 0, {.op_context = 2}));
  hole.reset();
  for (int i = 0; i < 2; ++i) {
    const auto done = WaitTx();
    ASSERT_TRUE(done.has_value());
    EXPECT_EQ(done->status,
              done->op_context == 1 ? Status::kLocalAccess : Status::kOk);
  }
  EXPECT_EQ(std::memcmp(target.data(), source.data(), 20000), 0);
  EXPECT_EQ(nodes_->world().memory(0).blocked_writes(), 2U);
}

TEST_F(NicReadTest, UnreadableMemoryIsAnError) {
  Open();
  DmaBuffer& target = nodes_->Memory(0, 20000);
  std::optional<DmaBuffer> source = Fresh(1, 20000);
  ASSERT_TRUE(source.has_value());
  const Region region = Register(1, *source);
  source.reset();  // Before its region: what no sound program does.
  ExpectRemoteError(Read(target, 20000, region.key, 0),
                    ReturnCode::kHostUnsuccessCmpl);
  EXPECT_GT(nodes_->world().memory(1).blocked_reads(), 0U);
  DmaBuffer& other = nodes_->Memory(1, 5000);
  Fill(other, 3);
  EXPECT_EQ(Read(target, 5000, Register(1, other).key, 0).status, Status::kOk);
  EXPECT_EQ(std::memcmp(target.data(), other.data(), 5000), 0);
}

// With requests unanswered, and with all answered but the data.
TEST_F(NicReadTest, DeadPeerEndsTheReadAndItsMemoryIsLeftAlone) {
  for (uint32_t round = 0; round < 8; ++round) {
    sim::nic::LockstepOptions options;
    options.dead_cycles = 100000;
    Open(2, options);
    DmaBuffer& source = nodes_->Memory(1, 200000);
    DmaBuffer& target = nodes_->Memory(0, 200000);
    Fill(source, 1);
    const Region region = Register(1, source);
    ASSERT_TRUE(PushRead(target, 200000, region.key, 0, {.op_context = 1}));
    ASSERT_TRUE(PushRead(target, 5000, region.key, 0, {.op_context = 2}));
    nodes_->world().Step(1200 + round * 293);
    nodes_->world().SetLink(1, false);
    for (int i = 0; i < 2; ++i) {
      const auto done = WaitTx();
      ASSERT_TRUE(done.has_value()) << round;
      EXPECT_EQ(done->status, Status::kPeerUnreachable) << round;
    }
    std::memset(target.data(), 0x77, target.bytes());
    nodes_->world().SetLink(1, true);
    nodes_->world().Step(300000);
    ASSERT_NO_FATAL_FAILURE(ExpectUntouched(target, std::byte{0x77}));
    // The peer is back, and reached again.
    EXPECT_EQ(Read(target, 5000, region.key, 0).status, Status::kOk);
    EXPECT_EQ(std::memcmp(target.data(), source.data(), 5000), 0);
  }
}

}  // namespace
}  // namespace heddle
