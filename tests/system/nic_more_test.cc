// SPDX-License-Identifier: Apache-2.0
// Operations of several descriptors, and fences, between whole NICs.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Completion;
using contract::ReturnCode;
using contract::Status;

constexpr size_t kSlot = 6000;

class NicMoreTest : public NodesTest {
 protected:
  struct Piece {
    uint64_t key;
    uint32_t bytes;
    size_t slot;
  };
  struct Read {
    uint64_t op_context = 0;
    bool more = false;
  };
  static SendFields ReadOf(uint64_t key, const Read& read, uint64_t offset) {
    return {.opcode = contract::Opcode::kRead,
            .op_context = read.op_context,
            .peer = 1,
            .flags =
                read.more ? contract::kTxFlagMore : contract::kTxFlagCompletion,
            .match_bits = key,
            .remote_offset = offset};
  }
  // One operation from node 0: a write of each piece from its slot of `source`
  // to that of the region.
  bool Post(const DmaBuffer& source, const std::vector<Piece>& pieces,
            uint64_t op_context) {
    SendRing& tx = a().tx();
    if (tx.free_slots() < pieces.size()) return false;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      const bool last = i + 1 == pieces.size();
      const SendFields fields = {
          .opcode = contract::Opcode::kWrite,
          .op_context = last ? op_context : 0xdead,
          .peer = 1,
          .flags = static_cast<uint8_t>(contract::kTxFlagCompletion |
                                        contract::kTxFlagDeliveryComplete |
                                        (last ? 0 : contract::kTxFlagMore)),
          .match_bits = piece.key,
          .remote_offset = piece.slot * kSlot};
      EXPECT_TRUE(tx.PushBuffer(
          fields, Iova{ToInteger(source.iova()) + piece.slot * kSlot},
          piece.bytes));
    }
    tx.Publish();
    return true;
  }
};

TEST_F(NicMoreTest, OneCompletionWhenAllPiecesAreThereOnABadNetwork) {
  sim::nic::LockstepOptions options;
  options.wire.faults.loss = 0.02;
  options.wire.faults.reorder = 0.02;
  options.seed = TestSeed();
  Open(2, options);
  constexpr uint32_t kOperations = 150;
  constexpr size_t kMost = 6;
  DmaBuffer& source = nodes_->Memory(0, kOperations * kMost * kSlot);
  DmaBuffer& target = nodes_->Memory(1, kOperations * kMost * kSlot);
  const uint64_t key = Register(1, target).key;
  const uint64_t closed = Register(1, target, 0).key;
  std::mt19937 rng(TestSeed());
  Fill(source, TestSeed());
  struct Operation {
    std::vector<Piece> pieces;
    std::optional<ReturnCode> failure;
    bool done = false;
  };
  std::vector<Operation> operations;
  uint32_t done = 0;
  ASSERT_TRUE(nodes_->StepUntil(40000000, [&] {
    if (operations.size() < kOperations) {
      Operation operation;
      const size_t count = 1 + rng() % kMost;
      for (size_t i = 0; i < count; ++i) {
        Piece piece{key, static_cast<uint32_t>(rng() % kSlot),
                    operations.size() * kMost + i};
        if (rng() % 12 == 0) {
          const bool unknown = rng() % 2 == 0;
          piece.key = unknown ? key ^ 1 << 20 : closed;
          if (!operation.failure) {
            operation.failure =
                unknown ? ReturnCode::kBadMkey : ReturnCode::kPermViolation;
          }
        }
        operation.pieces.push_back(piece);
      }
      if (Post(source, operation.pieces, operations.size())) {
        operations.push_back(operation);
      }
    }
    while (const auto completion = a().PollTx()) {
      EXPECT_LT(completion->op_context, operations.size());
      Operation& operation = operations[completion->op_context];
      EXPECT_FALSE(operation.done);
      operation.done = true;
      ++done;
      EXPECT_EQ(completion->status,
                operation.failure ? Status::kRemoteError : Status::kOk);
      if (operation.failure) {
        EXPECT_EQ(completion->detail,
                  static_cast<uint16_t>(*operation.failure));
      }
      for (const Piece& piece : operation.pieces) {
        if (piece.key != key) continue;
        EXPECT_EQ(std::memcmp(target.data() + piece.slot * kSlot,
                              source.data() + piece.slot * kSlot, piece.bytes),
                  0)
            << "operation " << completion->op_context;
      }
    }
    return done == kOperations;
  })) << done;
  nodes_->world().Step(5000);
  EXPECT_FALSE(a().PollTx().has_value());
}

// Sends and writes from two to four places each.
TEST_F(NicMoreTest, LocalSegmentsArriveAsOneOnABadNetwork) {
  sim::nic::LockstepOptions options;
  options.wire.faults.loss = 0.02;
  options.seed = TestSeed();
  Open(2, options);
  constexpr uint32_t kOperations = 120;
  constexpr uint32_t kBytes = 20000;
  DmaBuffer& source = nodes_->Memory(0, 4 * kBytes);
  DmaBuffer& target = nodes_->Memory(1, size_t{kOperations} * kBytes);
  const uint64_t key = Register(1, target).key;
  std::mt19937 rng(TestSeed());
  Fill(source, TestSeed());
  std::vector<std::vector<std::byte>> expected(kOperations);
  uint32_t posted = 0, done = 0, received = 0, sends = 0;
  ASSERT_TRUE(nodes_->StepUntil(40000000, [&] {
    while (posted < kOperations && a().tx().free_slots() > 4 &&
           b().rx().free_slots() > 1) {
      std::vector<LocalPiece> pieces;
      std::vector<std::byte>& bytes = expected[posted];
      const uint32_t most = posted % 3 == 0 ? 80 : kBytes / 4;
      for (uint32_t left = 2 + static_cast<uint32_t>(rng() % 3); left != 0;
           --left) {
        const auto at = static_cast<uint32_t>(rng() % (3 * kBytes));
        const auto length = static_cast<uint32_t>(1 + rng() % most);
        pieces.push_back({Iova{ToInteger(source.iova()) + at}, length});
        bytes.insert(bytes.end(), source.data() + at,
                     source.data() + at + length);
      }
      const bool send = rng() % 2 == 0;
      if (send) {
        ++sends;
        EXPECT_TRUE(b().rx().TryPush(
            posted, Iova{ToInteger(target.iova()) + uint64_t{posted} * kBytes},
            kBytes));
        b().rx().Publish();
      }
      const SendFields fields = {
          .opcode = send ? contract::Opcode::kSend : contract::Opcode::kWrite,
          .op_context = posted,
          .peer = 1,
          .flags =
              contract::kTxFlagCompletion | contract::kTxFlagDeliveryComplete,
          .match_bits = send ? 0 : key,
          .remote_offset = send ? 0 : uint64_t{posted} * kBytes};
      EXPECT_TRUE(a().tx().PushPieces(fields, pieces,
                                      static_cast<uint32_t>(bytes.size())));
      a().tx().Publish();
      ++posted;
    }
    while (const auto completion = a().PollTx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      ++done;
    }
    while (const auto completion = b().PollRx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      ++received;
    }
    return done == kOperations && received == sends;
  })) << done;
  for (uint32_t i = 0; i < kOperations; ++i) {
    EXPECT_EQ(std::memcmp(target.data() + size_t{i} * kBytes,
                          expected[i].data(), expected[i].size()),
              0)
        << i;
  }
}

// Reads into two to four places each, which do not touch what lies between.
TEST_F(NicMoreTest, ReadsFillTheirLocalSegmentsOnABadNetwork) {
  sim::nic::LockstepOptions options;
  options.wire.faults.loss = 0.02;
  options.seed = TestSeed();
  Open(2, options);
  constexpr uint32_t kOperations = 120;
  constexpr uint32_t kBytes = 24000;
  DmaBuffer& local = nodes_->Memory(0, size_t{kOperations} * kBytes);
  DmaBuffer& remote = nodes_->Memory(1, kBytes);
  const uint64_t key = Register(1, remote, contract::kRegionFlagRemoteRead).key;
  std::mt19937 rng(TestSeed());
  Fill(remote, TestSeed());
  std::vector<std::byte> expected(local.bytes(), std::byte{0x5a});
  std::memset(local.data(), 0x5a, local.bytes());
  uint32_t posted = 0, done = 0;
  ASSERT_TRUE(nodes_->StepUntil(40000000, [&] {
    while (posted < kOperations && a().tx().free_slots() > 4) {
      std::vector<LocalPiece> pieces;
      const uint32_t most = posted % 3 == 0 ? 80 : kBytes / 4 - 70;
      size_t to = size_t{posted} * kBytes;
      uint32_t bytes = 0;
      for (uint32_t left = 2 + static_cast<uint32_t>(rng() % 3); left != 0;
           --left) {
        to += rng() % 70;
        const auto length = static_cast<uint32_t>(1 + rng() % most);
        pieces.push_back({Iova{ToInteger(local.iova()) + to}, length});
        std::copy_n(remote.data() + bytes, length,
                    expected.begin() + static_cast<ptrdiff_t>(to));
        to += length;
        bytes += length;
      }
      const SendFields fields = {.opcode = contract::Opcode::kRead,
                                 .op_context = posted,
                                 .peer = 1,
                                 .flags = contract::kTxFlagCompletion,
                                 .match_bits = key};
      EXPECT_TRUE(a().tx().PushPieces(fields, pieces, bytes));
      a().tx().Publish();
      ++posted;
    }
    while (const auto completion = a().PollTx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      ++done;
    }
    return done == kOperations;
  })) << done;
  EXPECT_EQ(std::memcmp(local.data(), expected.data(), expected.size()), 0);
}

TEST_F(NicMoreTest, PiecesReleaseTheirSlotsBeforeTheOperationEnds) {
  Open();
  DmaBuffer& source = nodes_->Memory(0, kSlot);
  DmaBuffer& target = nodes_->Memory(1, kSlot);
  const uint64_t key = Register(1, target).key;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(a().tx().PushBuffer({.opcode = contract::Opcode::kWrite,
                                     .peer = 1,
                                     .flags = contract::kTxFlagMore,
                                     .match_bits = key},
                                    source.iova(), 100));
    a().tx().Publish();
    nodes_->world().Step(3000);
    EXPECT_FALSE(a().PollTx().has_value());
  }
  ASSERT_TRUE(Post(source, {{key, 8, 0}}, 9));
  const auto done = WaitTx();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->op_context, 9U);
  EXPECT_EQ(done->queue_head, 4U);
}

TEST_F(NicMoreTest, AFencedSendLeavesWhenTheWriteBeforeItIsComplete) {
  // Farther than memory takes to place the WRITE, which the receive's
  // completion waits for.
  constexpr uint32_t kWire = 500;
  sim::nic::LockstepOptions options;
  options.wire.latency_cycles = kWire;
  Open(2, options);
  DmaBuffer& source = nodes_->Memory(0, 200000);
  DmaBuffer& target = nodes_->Memory(1, 200000);
  const uint64_t key = Register(1, target).key;
  std::array<uint64_t, 2> cycles{};
  // The first round opens the PDC. Memory answers after a random time: the
  // shortest round of each kind counts.
  cycles.fill(UINT64_MAX);
  for (const bool fenced : {false, false, true, false, true, false, true}) {
    ASSERT_TRUE(b().rx().TryPush(1, {}, 0));
    b().rx().Publish();
    ASSERT_TRUE(a().tx().PushBuffer({.opcode = contract::Opcode::kWrite,
                                     .op_context = 1,
                                     .peer = 1,
                                     .flags = contract::kTxFlagCompletion,
                                     .match_bits = key},
                                    source.iova(), 150000));
    ASSERT_TRUE(a().tx().PushBuffer(
        {.op_context = 2,
         .peer = 1,
         .flags = static_cast<uint8_t>(
             contract::kTxFlagCompletion |
             (fenced ? contract::kTxFlagFence : uint8_t{0}))},
        source.iova(), 0));
    a().tx().Publish();
    const uint64_t start = nodes_->world().cycle();
    ASSERT_TRUE(nodes_->StepUntil(kLimitCycles,
                                  [&] { return b().PollRx().has_value(); }));
    uint64_t& shortest = cycles[fenced ? 1 : 0];
    shortest = std::min(shortest, nodes_->world().cycle() - start);
    const auto write = fenced ? a().PollTx() : WaitTx();
    ASSERT_TRUE(write.has_value());
    EXPECT_EQ(write->op_context, 1U);
    const auto send = WaitTx();
    ASSERT_TRUE(send.has_value());
    EXPECT_EQ(send->op_context, 2U);
    EXPECT_EQ(send->status, Status::kOk);
  }
  // The acknowledgement's way back.
  EXPECT_GT(cycles[1], cycles[0] + kWire);
}

TEST_F(NicMoreTest, AFencedSendWaitsForAReadThatFails) {
  Open();
  DmaBuffer& local = nodes_->Memory(0, kSlot);
  DmaBuffer& remote = nodes_->Memory(1, kSlot);
  const uint64_t key = Register(1, remote).key;
  for (const uint32_t bytes : {8U, 5000U}) {
    SCOPED_TRACE(bytes);
    ASSERT_TRUE(b().rx().TryPush(1, {}, 0));
    b().rx().Publish();
    ASSERT_TRUE(
        a().tx().PushBuffer(ReadOf(key, {.op_context = 1}, remote.bytes() - 1),
                            local.iova(), bytes));
    ASSERT_TRUE(a().tx().PushBuffer(
        {.op_context = 2,
         .peer = 1,
         .flags = contract::kTxFlagCompletion | contract::kTxFlagFence},
        local.iova(), 0));
    a().tx().Publish();
    ASSERT_TRUE(nodes_->StepUntil(kLimitCycles,
                                  [&] { return b().PollRx().has_value(); }));
    const auto read = a().PollTx();
    ASSERT_TRUE(read.has_value()) << "the fence did not wait";
    EXPECT_EQ(read->op_context, 1U);
    EXPECT_EQ(read->status, Status::kRemoteError);
    const auto send = WaitTx();
    ASSERT_TRUE(send.has_value());
    EXPECT_EQ(send->op_context, 2U);
    EXPECT_EQ(send->status, Status::kOk);
  }
}

TEST_F(NicMoreTest, AReadThatFailsFailsItsOperationOnce) {
  Open();
  DmaBuffer& local = nodes_->Memory(0, kSlot);
  DmaBuffer& remote = nodes_->Memory(1, kSlot);
  const uint64_t key = Register(1, remote).key;
  const auto post = [&](uint32_t bytes, uint64_t op_context, uint64_t offset,
                        bool more) {
    return a().tx().PushBuffer(
        ReadOf(key, {.op_context = op_context, .more = more}, offset),
        local.iova(), bytes);
  };
  for (const uint32_t bytes : {8U, 5000U}) {
    for (uint64_t failing = 0; failing < 3; ++failing) {
      SCOPED_TRACE(failing);
      for (uint64_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(
            post(bytes, 10 + i, i == failing ? remote.bytes() : 0, i < 2));
      }
      a().tx().Publish();
      const auto done = WaitTx();
      ASSERT_TRUE(done.has_value());
      EXPECT_EQ(done->op_context, 12U);
      EXPECT_EQ(done->opcode, contract::Opcode::kRead);
      EXPECT_EQ(done->status, Status::kRemoteError);
      EXPECT_EQ(done->length, 0U);
      nodes_->world().Step(3000);
      EXPECT_FALSE(a().PollTx().has_value());
    }
  }
  ASSERT_TRUE(post(3000, 1, 0, false));
  a().tx().Publish();
  const auto done = WaitTx();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status, Status::kOk);
}

// The context is in error then: what is behind is flushed.
TEST_F(NicMoreTest, ABadPartBehindAReadFailsTheirOperationOnce) {
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails);
    Open();
    DmaBuffer& local = nodes_->Memory(0, kSlot);
    DmaBuffer& remote = nodes_->Memory(1, kSlot);
    const uint64_t key = Register(1, remote).key;
    for (uint64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(
          a().tx().PushBuffer(ReadOf(key, {.op_context = 1 + i, .more = i < 2},
                                     i == 0 && fails ? remote.bytes() : 0),
                              local.iova(), 3000));
      if (i == 1) a().LastTxDesc().segments = 0;
    }
    ASSERT_TRUE(
        a().tx().PushBuffer({.op_context = 9, .peer = 1}, local.iova(), 0));
    a().tx().Publish();
    std::array<std::optional<Completion>, 10> done;
    for (int i = 0; i < 2; ++i) {
      const auto completion = WaitTx();
      ASSERT_TRUE(completion.has_value());
      ASSERT_LT(completion->op_context, done.size());
      done[completion->op_context] = completion;
    }
    ASSERT_TRUE(done[3].has_value());
    EXPECT_EQ(done[3]->status,
              fails ? Status::kRemoteError : Status::kBadLength)
        << "that of the first part";
    ASSERT_TRUE(done[9].has_value());
    EXPECT_EQ(done[9]->status, Status::kFlushed);
    nodes_->world().Step(3000);
    EXPECT_FALSE(a().PollTx().has_value());
  }
}

}  // namespace
}  // namespace heddle
