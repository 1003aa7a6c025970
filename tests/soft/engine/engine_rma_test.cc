// SPDX-License-Identifier: Apache-2.0
// WRITE and READ between two engines, regions, deregistration.
#include <algorithm>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_wire.h"
#include "tests/soft/engine/engine_pair.h"

namespace heddle::soft::engine {
namespace {

using contract::CompletionKind;
using contract::Opcode;
using contract::RegionCfg;
using contract::ReturnCode;
using contract::Status;
using contract::Table;
using contract::TxDesc;

constexpr uint8_t kRead = contract::kRegionFlagRemoteRead;
constexpr uint8_t kWrite = contract::kRegionFlagRemoteWrite;

class EngineRmaTest : public EnginePairTest {
 protected:
  contract::Completion Only() {
    Run();
    const auto entry = a_.Poll(0);
    EXPECT_TRUE(entry.has_value());
    EXPECT_FALSE(a_.Poll(0).has_value());
    return entry.value_or(contract::Completion{});
  }
  void Disable() {
    RegionCfg off = region_;
    off.enable = 0;
    ASSERT_TRUE(b_.Write(Table::kRegion, kRegion, off));
    ASSERT_EQ(b_.engine().Drain(Table::kRegion, kRegion),
              Engine::DrainState::kDone);
  }
};

TEST_P(EngineRmaTest, WritesOfEachLengthArriveWhereTheyShould) {
  for (const uint32_t length : {0U, 1U, 1024U, 1025U, 10000U, kBytes}) {
    SCOPED_TRACE(length);
    std::fill_n(remote_, kBytes, uint8_t{0});
    const uint64_t offset = (kBytes - length) / 2;
    a_.Post(Op(Opcode::kWrite, offset, length));
    const auto entry = Only();
    EXPECT_EQ(entry.status, Status::kOk);
    EXPECT_EQ(entry.opcode, Opcode::kWrite);
    EXPECT_EQ(entry.length, length);
    EXPECT_TRUE(std::equal(local_, local_ + length, remote_ + offset));
    EXPECT_EQ(std::count(remote_, remote_ + offset, 0),
              static_cast<ptrdiff_t>(offset));
    EXPECT_FALSE(b_.Poll(1).has_value()) << "nobody asked for it";
  }
  EXPECT_EQ(before_[63], 0);
  EXPECT_EQ(after_[0], 0);
}

TEST_P(EngineRmaTest, ReadsOfEachLengthFetchWhatIsThere) {
  std::iota(remote_, remote_ + kBytes, uint8_t{99});
  for (const uint32_t length :
       {0U, 1U, 16U, 17U, 1024U, 1025U, 10000U, kBytes}) {
    SCOPED_TRACE(length);
    std::fill_n(local_, kBytes, uint8_t{0});
    const uint64_t offset = (kBytes - length) / 2;
    a_.Post(Op(Opcode::kRead, offset, length));
    const auto entry = Only();
    EXPECT_EQ(entry.status, Status::kOk);
    EXPECT_EQ(entry.length, length);
    EXPECT_TRUE(std::equal(local_, local_ + length, remote_ + offset));
    EXPECT_EQ(std::count(local_ + length, local_ + kBytes, 0), kBytes - length);
    EXPECT_TRUE(a_.engine().idle());
    EXPECT_TRUE(a_.carrier().known.empty()) << "finished";
  }
}

TEST_P(EngineRmaTest, ReadsAreScattered) {
  std::iota(remote_, remote_ + kBytes, uint8_t{3});
  std::fill_n(local_, kBytes, uint8_t{0});
  std::array<contract::TxSegment, 4> segments = {};
  const std::array<uint32_t, 3> lengths = {1000, 3000, 41};
  for (uint32_t i = 0; i < 3; ++i) {
    segments[i] = {EngineNode::Iova(local_ + 20000 - 5000 * i), lengths[i], 0};
  }
  TxDesc read = Op(Opcode::kRead, 5, 0);
  read.length = 4041;
  read.segments = 3;
  read.ext_slots = 1;
  a_.Post(read, {reinterpret_cast<uint8_t*>(segments.data()), 64});
  EXPECT_EQ(Only().status, Status::kOk);
  uint32_t at = 5;
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::equal(remote_ + at, remote_ + at + lengths[i],
                           local_ + 20000 - 5000 * i))
        << i;
    at += lengths[i];
  }
  EXPECT_EQ(std::count(local_, local_ + kBytes, 0) > kBytes - 4100, true);
}

TEST_P(EngineRmaTest, HeaderDataMakesACompletionAtTheTarget) {
  for (const uint32_t length : {0U, 8U, 5000U}) {
    TxDesc write = Op(Opcode::kWrite, 7, length);
    write.flags |= contract::kTxFlagHeaderData;
    write.header_data = 0xfeedfacecafef00d;
    a_.Post(write);
    EXPECT_EQ(Only().status, Status::kOk);
    const auto entry = b_.Poll(1);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->kind, CompletionKind::kTarget);
    EXPECT_EQ(entry->opcode, Opcode::kWrite);
    EXPECT_EQ(entry->header_data, 0xfeedfacecafef00d);
    EXPECT_EQ(entry->flags & contract::kCompletionFlagHeaderData,
              contract::kCompletionFlagHeaderData);
    EXPECT_EQ(entry->length, length);
    EXPECT_EQ(entry->match_bits, region_.key);
    EXPECT_EQ(entry->op_context, 0u);
    EXPECT_EQ(entry->peer, uint32_t{EngineNode::kPid} << 12U);
    EXPECT_TRUE(std::equal(local_, local_ + length, remote_ + 7));
    EXPECT_FALSE(b_.Poll(1).has_value());
  }
}

TEST_P(EngineRmaTest, RegionEventsReportEachOperationOnce) {
  b_.rx.flags = contract::kRxCtxFlagRegionEvent;
  b_.rx.counter_remote_read = 2;
  b_.rx.counter_remote_write = 3;
  const auto* const reads = b_.Counter(1);
  const auto* const writes = b_.Counter(2);
  b_.Write(Table::kRxCtx, 0, b_.rx);
  uint64_t count = 0;
  for (const uint32_t length : {0U, 16U, 17U, 1024U, 9000U}) {
    ++count;
    for (const Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
      SCOPED_TRACE(length);
      a_.Post(Op(opcode, 0, length));
      EXPECT_EQ(Only().status, Status::kOk);
      const auto entry = b_.Poll(1);
      ASSERT_TRUE(entry.has_value());
      EXPECT_EQ(entry->kind, CompletionKind::kTarget);
      EXPECT_EQ(entry->opcode, opcode);
      EXPECT_EQ(entry->length, length);
      EXPECT_FALSE(b_.Poll(1).has_value());
    }
    EXPECT_EQ(reads->value, count);
    EXPECT_EQ(writes->value, count);
  }
}

TEST_P(EngineRmaTest, AReadIsReportedWhenItsDataAreAcknowledged) {
  b_.rx.flags = contract::kRxCtxFlagRegionEvent;
  b_.Write(Table::kRxCtx, 0, b_.rx);
  fabric_.hold_returns = true;
  a_.Post(Op(Opcode::kRead, 0, 9000));
  Run();
  EXPECT_FALSE(b_.Poll(1).has_value()) << "memory is still needed";
  EXPECT_FALSE(a_.Poll(0).has_value());
  fabric_.hold_returns = false;
  Run();
  EXPECT_TRUE(b_.Poll(1).has_value());
  EXPECT_TRUE(a_.Poll(0).has_value());
}

TEST_P(EngineRmaTest, AFailedReadIsNotReportedToTheTarget) {
  b_.rx.flags = contract::kRxCtxFlagRegionEvent;
  b_.Write(Table::kRxCtx, 0, b_.rx);
  for (const uint32_t length : {8U, 9000U}) {
    a_.Post(Op(Opcode::kRead, kBytes - 1, length));
    EXPECT_EQ(Only().status, Status::kRemoteError);
  }
  EXPECT_FALSE(b_.Poll(1).has_value());
}

// The data of the other packets may come or not: the index of the message is
// kept until the PDC ends, which does not wait for them.
TEST_P(EngineRmaTest, AReadThatIsRefusedOnceIsNotWaitedFor) {
  fabric_.refuses_once = true;
  // An early refusal would end the message before its other packets are sent.
  fabric_.hold_answers = true;
  a_.Post(Op(Opcode::kRead, kBytes - 1, 9000));
  Run();
  fabric_.hold_answers = false;
  EXPECT_EQ(Only().status, Status::kRemoteError);
  ASSERT_EQ(a_.carrier().known.size(), 1u);
  EXPECT_TRUE(a_.carrier().known.begin()->second.failed);
  fabric_.Abandon(0, Status::kRemoteError, 0);
  EXPECT_TRUE(a_.carrier().known.empty());
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_FALSE(a_.Poll(0).has_value()) << "it ended before";
}

struct Wrong {
  const char* what;
  ReturnCode code;
  void (*spoil)(RegionCfg&, TxDesc&);
};

const Wrong kWrong[] = {
    {"another key", ReturnCode::kBadMkey,
     [](RegionCfg&, TxDesc& d) { d.match_bits ^= uint64_t{1} << 30U; }},
    {"another entry", ReturnCode::kBadMkey,
     [](RegionCfg&, TxDesc& d) { d.match_bits ^= 1; }},
    {"entry far outside", ReturnCode::kBadMkey,
     [](RegionCfg&, TxDesc& d) { d.match_bits |= 0xfffff; }},
    {"as a user key", ReturnCode::kBadMkey,
     [](RegionCfg&, TxDesc& d) { d.match_bits &= ~contract::kKeyProvider; }},
    {"another job", ReturnCode::kBadMkey,
     [](RegionCfg& r, TxDesc&) { ++r.job_id; }},
    {"off", ReturnCode::kBadMkey, [](RegionCfg& r, TxDesc&) { r.enable = 0; }},
    {"another endpoint's", ReturnCode::kBadMkey,
     [](RegionCfg& r, TxDesc&) {
       r.flags |= contract::kRegionFlagEndpoint;
       r.pid_on_fep = EngineNode::kPid;
       r.resource_index = 256;
     }},
    {"no context", ReturnCode::kBadIndex,
     [](RegionCfg&, TxDesc& d) { d.rx_index = 3; }},
    {"no right", ReturnCode::kPermViolation,
     [](RegionCfg& r, TxDesc&) { r.flags &= ~(kRead | kWrite); }},
    {"one byte too far", ReturnCode::kBadAddr,
     [](RegionCfg& r, TxDesc& d) {
       d.remote_offset = r.length - d.length + 1;
     }},
    {"longer than the region", ReturnCode::kUnsupportedSize,
     [](RegionCfg& r, TxDesc& d) { r.length = d.length - 1; }},
    {"far outside", ReturnCode::kBadAddr,
     [](RegionCfg&, TxDesc& d) { d.remote_offset = uint64_t{1} << 40U; }},
    {"wraps", ReturnCode::kBadAddr,
     [](RegionCfg&, TxDesc& d) { d.remote_offset = ~uint64_t{0} - 3; }},
    {"below the base", ReturnCode::kBadAddr,
     [](RegionCfg& r, TxDesc& d) {
       r.address_base = 0x10000;
       d.remote_offset = 0xffff;
     }},
};

TEST_P(EngineRmaTest, WhatIsNotAllowedIsAnsweredAndTouchesNothing) {
  std::fill_n(remote_, kBytes, uint8_t{0x55});
  for (const Wrong& wrong : kWrong) {
    for (const Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
      for (const uint32_t length : {8U, 5000U}) {
        SCOPED_TRACE(wrong.what);
        SCOPED_TRACE(length);
        RegionCfg region = region_;
        TxDesc descriptor = Op(opcode, 0, length);
        wrong.spoil(region, descriptor);
        ASSERT_TRUE(b_.Write(Table::kRegion, kRegion, region));
        const std::vector<uint8_t> before(local_, local_ + kBytes);
        a_.Post(descriptor);
        const auto entry = Only();
        EXPECT_EQ(entry.status, Status::kRemoteError);
        EXPECT_EQ(entry.detail, static_cast<uint16_t>(wrong.code));
        EXPECT_EQ(std::count(remote_, remote_ + kBytes, 0x55), kBytes);
        EXPECT_TRUE(std::equal(before.begin(), before.end(), local_));
        EXPECT_TRUE(a_.engine().idle());
      }
    }
  }
  EXPECT_EQ(b_.dma().blocked_reads() + b_.dma().blocked_writes(), 0u);
  EXPECT_EQ(b_.engine().statistic(contract::Statistic::kRxRma), 0u);
}

TEST_P(EngineRmaTest, AnErrorEndsTheRestOfALongMessage) {
  a_.Post(Op(Opcode::kWrite, 1, kBytes));
  Run();
  EXPECT_EQ(a_.Poll(0)->status, Status::kRemoteError);
  EXPECT_LT(fabric_.errors, 40u) << "of 64 packets";
  EXPECT_EQ(std::count(remote_, remote_ + kBytes, 0), kBytes);
}

TEST_P(EngineRmaTest, UserKeysLiveInTheirSet) {
  const uint64_t key = 0x112233445566;
  uint64_t set = 0;
  for (unsigned bit = 0; bit < 48; bit += 8) {
    set ^= key >> bit & 0xffU;
  }
  const auto first = static_cast<uint32_t>(set % (64 / 4) * 4);
  region_.key = key;
  region_.flags &= static_cast<uint8_t>(~contract::kRegionFlagProviderKey);
  region_.address_base = 0x7f0000000000;
  for (uint32_t way = 0; way < 5; ++way) {
    ASSERT_TRUE(b_.Write(Table::kRegion, (first + way) % 64, region_));
    a_.Post(Op(Opcode::kWrite, 0x7f0000000000 + way, 8));
    const auto entry = Only();
    EXPECT_EQ(entry.status, way < 4 ? Status::kOk : Status::kRemoteError);
    RegionCfg off = region_;
    off.enable = 0;
    ASSERT_TRUE(b_.Write(Table::kRegion, (first + way) % 64, off));
  }
  EXPECT_TRUE(std::equal(local_, local_ + 8, remote_ + 3));
}

TEST_P(EngineRmaTest, ARegionThatWrapsIsNone) {
  region_.address_base = ~uint64_t{0} - 100;
  b_.Write(Table::kRegion, kRegion, region_);
  a_.Post(Op(Opcode::kWrite, region_.address_base, 8));
  EXPECT_EQ(Only().detail, static_cast<uint16_t>(ReturnCode::kBadMkey));
  region_.address_base = 0;
  region_.iova = ~uint64_t{0} - 100;
  b_.Write(Table::kRegion, kRegion, region_);
  a_.Post(Op(Opcode::kWrite, 0, 8));
  EXPECT_EQ(Only().detail, static_cast<uint16_t>(ReturnCode::kBadMkey));
}

TEST_P(EngineRmaTest, AnEndpointsRegionServesIt) {
  region_.flags |= contract::kRegionFlagEndpoint;
  region_.pid_on_fep = EngineNode::kPid;
  region_.resource_index = 0;
  b_.Write(Table::kRegion, kRegion, region_);
  a_.Post(Op(Opcode::kWrite, 0, 8));
  EXPECT_EQ(Only().status, Status::kOk);
}

TEST_P(EngineRmaTest, MemoryThatRefusesIsAnErrorAtTheInitiator) {
  region_.iova = b_.Unmapped() - 2000;
  b_.Write(Table::kRegion, kRegion, region_);
  for (const Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
    for (const auto& [offset, length] :
         {std::pair{2000U, 8U}, std::pair{0U, 5000U}}) {
      a_.Post(Op(opcode, offset, length));
      const auto entry = Only();
      EXPECT_EQ(entry.status, Status::kRemoteError);
      EXPECT_EQ(entry.detail,
                static_cast<uint16_t>(ReturnCode::kHostUnsuccessCmpl));
      EXPECT_TRUE(a_.engine().idle());
      EXPECT_TRUE(a_.carrier().known.empty());
    }
  }
}

TEST_P(EngineRmaTest, RefusedMemoryIsToldWhenThereIsRoomForTheAnswer) {
  region_.iova = b_.Unmapped() - 2000;
  b_.Write(Table::kRegion, kRegion, region_);
  fabric_.guarantees = false;
  for (const auto& [offset, length] :
       {std::pair{2000U, 8U}, std::pair{0U, 5000U}}) {
    fabric_.refusals.clear();
    a_.Post(Op(Opcode::kWrite, offset, length));
    Run();
    EXPECT_FALSE(a_.Poll(0, /*consume=*/false).has_value());
    EXPECT_GT(fabric_.refusals[contract::NackCode::kNoGtdDelAvail], 0u);
    fabric_.guarantees = true;
    const auto entry = Only();
    EXPECT_EQ(entry.status, Status::kRemoteError);
    EXPECT_EQ(entry.detail,
              static_cast<uint16_t>(ReturnCode::kHostUnsuccessCmpl));
    EXPECT_TRUE(a_.engine().idle());
    fabric_.guarantees = false;
  }
}

TEST_P(EngineRmaTest, AReadIntoMemoryOutsideFails) {
  for (const uint32_t length : {8U, 5000U}) {
    TxDesc read = Op(Opcode::kRead, 0, length);
    read.local_iova = a_.Unmapped() - 4;
    a_.Post(read);
    const auto entry = Only();
    EXPECT_EQ(entry.status, Status::kLocalAccess);
    EXPECT_TRUE(a_.engine().idle());
    EXPECT_TRUE(a_.carrier().known.empty());
  }
}

TEST_P(EngineRmaTest, WithoutRoomForAnAnswerThatMustNotBeLostItWaits) {
  fabric_.guarantees = false;
  a_.Post(Op(Opcode::kRead, 0, 8));
  Run();
  EXPECT_GT(fabric_.refusals[contract::NackCode::kNoGtdDelAvail], 0u);
  fabric_.guarantees = true;
  EXPECT_EQ(Only().status, Status::kOk);
}

TEST_P(EngineRmaTest, WithoutRoomForReturnDataItWaits) {
  b_.carrier().return_records = 2;
  std::iota(remote_, remote_ + kBytes, uint8_t{42});
  b_.rx.flags = contract::kRxCtxFlagRegionEvent;
  b_.Write(Table::kRxCtx, 0, b_.rx);
  for (const uint32_t length : {1000U, kBytes}) {
    a_.Post(Op(Opcode::kRead, 0, length));
    a_.Post(Op(Opcode::kRead, 0, length));
    Run();
    EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
    EXPECT_EQ(a_.Poll(0)->status, Status::kOk);
    EXPECT_TRUE(std::equal(local_, local_ + length, remote_));
    EXPECT_TRUE(b_.Poll(1).has_value());
    EXPECT_TRUE(b_.Poll(1).has_value());
  }
}

TEST_P(EngineRmaTest, AReadThatIsAnsweredTooOftenWaitsForAllOfItsData) {
  std::iota(remote_, remote_ + kBytes, uint8_t{7});
  for (const uint32_t again : {1U, 3U, 20U}) {
    SCOPED_TRACE(again);
    fabric_.returns_again = again;
    for (const uint32_t length : {1000U, 9000U, kBytes}) {
      std::fill_n(local_, kBytes, uint8_t{0});
      a_.Post(Op(Opcode::kRead, 0, length));
      const auto entry = Only();
      EXPECT_EQ(entry.status, Status::kOk);
      EXPECT_EQ(entry.length, length);
      EXPECT_TRUE(std::equal(local_, local_ + length, remote_));
      EXPECT_TRUE(a_.engine().idle());
      EXPECT_TRUE(a_.carrier().known.empty()) << "finished";
    }
  }
}

// It would stand for the packet, and the rest would never come.
TEST_P(EngineRmaTest, AReadThatIsAnsweredWithLessThanAPacketFails) {
  for (const uint32_t missing : {1U, 234U, 999U}) {
    for (const uint32_t length : {1000U, 9000U, kBytes}) {
      SCOPED_TRACE(testing::Message() << length << " without " << missing);
      fabric_.returns_short = missing;
      a_.Post(Op(Opcode::kRead, 0, length));
      const auto entry = Only();
      EXPECT_EQ(entry.status, Status::kRemoteError);
      EXPECT_EQ(entry.detail, static_cast<uint16_t>(ReturnCode::kUncor));
      EXPECT_TRUE(a_.engine().idle());
      EXPECT_TRUE(a_.carrier().known.empty()) << "finished";
      fabric_.returns_short = 0;
      a_.Post(Op(Opcode::kRead, 0, length));
      EXPECT_EQ(Only().status, Status::kOk);
    }
  }
}

// -- deregistration under traffic

TEST_P(EngineRmaTest, AfterTheDrainNothingIsReadNotEvenAgain) {
  fabric_.hold_returns = true;
  a_.Post(Op(Opcode::kRead, 0, 9000));
  Run();
  Disable();
  b_.dma().Unmap(b_.Arena(), EngineNode::kArenaMapped);
  fabric_.hold_returns = false;
  Run();
  EXPECT_EQ(b_.dma().blocked_reads(), 0u);
  // Its own ring must not be needed for that.
  const auto entry = a_.Poll(0);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->status, Status::kRemoteError);
  EXPECT_EQ(entry->detail, static_cast<uint16_t>(ReturnCode::kBadMkey));
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_TRUE(a_.carrier().known.empty());
}

TEST_P(EngineRmaTest, AnEntryUsedAnewDoesNotServeOldReads) {
  fabric_.hold_returns = true;
  std::fill_n(remote_, kBytes, uint8_t{0xee});
  std::fill_n(local_, kBytes, uint8_t{0});
  a_.Post(Op(Opcode::kRead, 0, 9000));
  Run();
  Disable();
  ASSERT_TRUE(b_.Write(Table::kRegion, kRegion, region_));
  fabric_.hold_returns = false;
  EXPECT_EQ(Only().status, Status::kRemoteError);
  EXPECT_EQ(std::count(local_, local_ + kBytes, 0), kBytes);
}

TEST_P(EngineRmaTest, WhatIsLeftOfARefusedWriteIsNotWritten) {
  contract::RxCtxCfg rx = b_.rx;
  rx.flags = contract::kRxCtxFlagRegionEvent;
  ASSERT_TRUE(b_.Write(Table::kRxCtx, 0, rx));
  Disable();
  fabric_.hold_answers = true;
  a_.Post(Op(Opcode::kWrite, 0, 5000));
  a_.engine().Progress(16);
  while (fabric_.errors == 0) {
    ASSERT_TRUE(fabric_.Step());
  }
  ASSERT_TRUE(b_.Write(Table::kRegion, kRegion, region_));
  Run();
  fabric_.hold_answers = false;
  EXPECT_EQ(Only().status, Status::kRemoteError);
  EXPECT_FALSE(b_.Poll(1).has_value());
  EXPECT_EQ(std::count(remote_, remote_ + 5000, 0), 5000);
  // It holds none of the queue's entries.
  for (uint32_t i = 0; i < 1U << EngineNode::Options{}.cq_log2; ++i) {
    a_.Post(Op(Opcode::kWrite, 0, 8));
    ASSERT_EQ(Only().status, Status::kOk);
    ASSERT_TRUE(b_.Poll(1, /*consume=*/false).has_value()) << i;
  }
}

TEST_P(EngineRmaTest, AfterTheDrainNothingIsWritten) {
  a_.Post(Op(Opcode::kWrite, 0, kBytes));
  a_.engine().Progress(1);
  while (std::count(remote_, remote_ + kBytes, 0) == kBytes) {
    fabric_.Step();
  }
  Disable();
  std::fill_n(remote_, kBytes, uint8_t{0});
  EXPECT_EQ(Only().status, Status::kRemoteError);
  EXPECT_EQ(std::count(remote_, remote_ + kBytes, 0), kBytes);
  EXPECT_FALSE(b_.Poll(1).has_value());
}

TEST_P(EngineRmaTest, TheInitiatorsMemoryIsLeftAloneAfterItsContext) {
  std::fill_n(local_, kBytes, uint8_t{0});
  fabric_.hold_returns = true;
  a_.Post(Op(Opcode::kRead, 0, 9000));
  Run();
  DisableTxContext();
  ASSERT_EQ(a_.engine().Drain(Table::kTxCtx, 0), Engine::DrainState::kDone);
  a_.dma().Unmap(a_.Arena(), EngineNode::kArenaMapped);
  fabric_.hold_returns = false;
  Run();
  EXPECT_EQ(a_.dma().blocked_writes(), 0u);
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_TRUE(a_.carrier().known.empty());
}

TEST_P(EngineRmaTest, AReadThatWasNotAllAskedForEndsWithItsContext) {
  for (int steps = 0; steps < 40; ++steps) {
    SCOPED_TRACE(steps);
    a_.Post(Op(Opcode::kRead, 0, 9000));
    a_.engine().Progress(1);
    for (int i = 0; i < steps; ++i) {
      fabric_.Step();
    }
    DisableTxContext();
    Run();
    EXPECT_TRUE(a_.engine().idle());
    EXPECT_TRUE(a_.carrier().known.empty());
    a_.Restart();
    while (a_.Poll(0).has_value()) {
    }
  }
}

// Its target answers only packets that ask, and each once.
TEST_P(EngineRmaTest, AReadThatIsAskedForAgainAfterItsContextStillAsks) {
  a_.Post(Op(Opcode::kRead, 0, 9000));
  a_.engine().Progress(1);
  fabric_.hold_returns = true;
  Run();
  DisableTxContext();
  std::vector<uint8_t> packet(size_t{2} * EngineNode::kMtu);
  a_.engine().BuildRequest(a_.carrier().posted.back().message, 1, packet);
  EXPECT_EQ(contract::wire::SesStd::Decode(packet.data()).ie, 0);
  fabric_.hold_returns = false;
  Run();
  EXPECT_TRUE(a_.engine().idle());
}

TEST_P(EngineRmaTest, AReadToADeadPeerEndsOnce) {
  fabric_.hold_returns = true;
  a_.Post(Op(Opcode::kRead, 0, 9000));
  Run();
  fabric_.Abandon(0, Status::kPeerUnreachable, 0);
  EXPECT_EQ(Only().status, Status::kPeerUnreachable);
  EXPECT_TRUE(a_.engine().idle());
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineRmaTest, testing::Bool(),
                         [](const auto& mode) {
                           return mode.param ? "Ordered" : "Unordered";
                         });

}  // namespace
}  // namespace heddle::soft::engine
