// SPDX-License-Identifier: Apache-2.0
// Transmit ring, receive ring and the counts below them.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "driver/queue/doorbells.h"
#include "driver/queue/match_ring.h"
#include "driver/queue/push_window.h"
#include "driver/queue/recv_ring.h"
#include "driver/queue/ring_position.h"
#include "driver/queue/send_ring.h"
#include "gtest/gtest.h"
#include "tests/driver/fake_device.h"
#include "tests/seed.h"

namespace heddle {
namespace {

using contract::Opcode;
using contract::RxDesc;
using contract::TxDesc;

constexpr uint32_t kPage = contract::kDoorbellPageBytes;

class SendRingTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSlots = 8;

  static SendRing Bind(FakeDevice& device, std::span<TxDesc> slots,
                       const uint64_t* cell) {
    return SendRing::Create(slots, cell, TxTailDoorbell(device, 3)).value();
  }

  static std::vector<uint8_t> Pattern(size_t bytes) {
    std::vector<uint8_t> data(bytes);
    for (size_t i = 0; i < bytes; ++i) {
      data[i] = static_cast<uint8_t>(i * 7 + 1);
    }
    return data;
  }

  bool PushOne(uint64_t op_context = 1) {
    return ring_.PushBuffer({.op_context = op_context}, Iova{0x1000}, 100);
  }
  // Brings an empty ring to `position`.
  void AdvanceTo(uint16_t position) {
    while (ring_.tail() != position) {
      ASSERT_TRUE(PushOne());
      ring_.Publish();
      ASSERT_EQ(ring_.ReleaseTo(ring_.tail()), Release::kMoved);
    }
    device_.rung.clear();
  }

  FakeDevice device_;
  alignas(4096) std::array<TxDesc, kSlots> slots_{};
  alignas(8) uint64_t cell_ = 0;
  SendRing ring_ = Bind(device_, slots_, &cell_);
};

// The one push that also publishes writes what the two do.
// Objects beyond the pages of one bank are in the next ones.
TEST_F(SendRingTest, EveryObjectHasAPageOfItsOwn) {
  FakeDevice device;
  constexpr uint32_t kObjects = 1024;
  for (uint32_t i = 0; i < kObjects; ++i) {
    const uint32_t bank = i / 64 * contract::kBankBytes;
    EXPECT_EQ(TxTailDoorbell(device, i).bar2_offset, bank + i % 64 * kPage);
    EXPECT_EQ(RxTailDoorbell(device, i).bar2_offset,
              bank + (64 + i % 64) * kPage);
    EXPECT_EQ(CqConsumerDoorbell(device, i).bar2_offset,
              bank + (128 + i % 64) * kPage);
    EXPECT_EQ(CounterDoorbell(device, i, 8).bar2_offset,
              bank + (192 + i % 64) * kPage + 8);
  }
}

TEST_F(SendRingTest, SendInlineIsPushInlineAndPublish) {
  const std::vector<uint8_t> data = Pattern(contract::kInlineBytes);
  const SendFields fields = {.opcode = Opcode::kWrite,
                             .op_context = 77,
                             .header_data = 78,
                             .peer = 5,
                             .flags = contract::kTxFlagCompletion,
                             .match_bits = 79,
                             .remote_offset = 80};
  for (uint32_t bytes = SendRing::kSendInlineMin;
       bytes <= contract::kInlineBytes; ++bytes) {
    ring_.SendInline(fields, data.data(), bytes);
    const uint16_t first = ring_.head();
    TxDesc sent = slots_.at(first % kSlots);
    EXPECT_EQ(device_.rung.back().value, first + 1U);
    EXPECT_EQ(ring_.ReleaseTo(ring_.tail()), Release::kMoved);
    ASSERT_TRUE(ring_.PushInline(fields, data.data(), bytes));
    ring_.Publish();
    EXPECT_EQ(sent.position, first);
    sent.position = slots_.at((first + 1U) % kSlots).position;
    EXPECT_EQ(sent, slots_.at((first + 1U) % kSlots)) << bytes;
    EXPECT_EQ(ring_.ReleaseTo(ring_.tail()), Release::kMoved);
  }
}

TEST_F(SendRingTest, SendInlineExtIsPushInlineExtAndPublish) {
  const std::vector<uint8_t> data = Pattern(contract::kInjectBytes);
  const SendFields fields = {.opcode = Opcode::kWrite,
                             .op_context = 77,
                             .header_data = 78,
                             .peer = 5,
                             .flags = contract::kTxFlagCompletion,
                             .match_bits = 79,
                             .remote_offset = 80};
  for (uint32_t bytes = contract::kInlineBytes + 1;
       bytes <= contract::kInjectBytes; ++bytes) {
    std::array<std::array<TxDesc, kSlots>, 2> written;
    for (const bool at_once : {false, true}) {
      FakeDevice device;
      std::ranges::fill(slots_, TxDesc{});
      SendRing ring = Bind(device, slots_, &cell_);
      ASSERT_TRUE(ring.OpenForInlineExt());
      if (at_once) {
        ring.SendInlineExt(fields, data.data(), bytes);
      } else {
        ASSERT_TRUE(ring.PushInlineExt(fields, data.data(), bytes));
        ring.Publish();
      }
      EXPECT_EQ(ring.tail(), 1 + (bytes + 63) / 64);
      ASSERT_EQ(device.rung.size(), 1U);
      EXPECT_EQ(device.rung[0].value, ring.tail());
      written.at(at_once ? 1 : 0) = slots_;
    }
    ASSERT_EQ(written[0], written[1]) << bytes;
    ASSERT_EQ(std::memcmp(&written[1][1], data.data(), bytes), 0);
  }
}

// On a register of hardware, without a window.
TEST_F(SendRingTest, DirectSendsWriteWhatTheOthersDo) {
  const std::vector<uint8_t> data = Pattern(contract::kInjectBytes);
  const SendFields fields = {.op_context = 77, .peer = 5, .match_bits = 79};
  std::array<std::array<TxDesc, kSlots>, 2> written;
  for (const bool direct : {false, true}) {
    std::ranges::fill(slots_, TxDesc{});
    volatile uint64_t tail = 0;
    SendRing ring =
        SendRing::Create(slots_, &cell_, {.address = &tail}).value();
    ASSERT_TRUE(ring.direct());
    if (direct) {
      ring.SendInline<true>(fields, data.data(), 13);
      ring.SendInlineExt<true>(fields, data.data(), 100);
      ring.SendBuffer<true>(fields, Iova{0x1000}, 1000);
    } else {
      ASSERT_TRUE(ring.PushInline(fields, data.data(), 13));
      ASSERT_TRUE(ring.PushInlineExt(fields, data.data(), 100));
      ASSERT_TRUE(ring.PushBuffer(fields, Iova{0x1000}, 1000));
      ring.Publish();
    }
    EXPECT_EQ(tail, 5U);
    EXPECT_EQ(ring.free_slots(), 3U);
    EXPECT_EQ(ring.ReleaseTo(6), Release::kBogus);
    EXPECT_EQ(ring.ReleaseTo(5), Release::kMoved);
    written.at(direct ? 1 : 0) = slots_;
  }
  EXPECT_EQ(written[0], written[1]);
  EXPECT_FALSE(ring_.direct());
}

TEST_F(SendRingTest, IsNotOpenWhileItIsClosed) {
  EXPECT_TRUE(ring_.open());
  ring_.Close(true);
  EXPECT_FALSE(ring_.open());
  ASSERT_TRUE(PushOne());
  ring_.Publish();
  EXPECT_FALSE(ring_.open());
  ring_.Close(false);
  EXPECT_TRUE(ring_.open());
}

TEST_F(SendRingTest, OpenForInlineExtWhereNoPaddingIsNeeded) {
  for (uint16_t position = 0; position < 2 * kSlots; ++position) {
    AdvanceTo(position);
    EXPECT_EQ(ring_.OpenForInlineExt(), position % kSlots <= kSlots - 4)
        << position;
  }
  AdvanceTo(2 * kSlots);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(ring_.OpenForInlineExt());
    ASSERT_TRUE(PushOne());
    EXPECT_FALSE(ring_.open()) << "it waits for its doorbell";
    ring_.Publish();
  }
  ASSERT_EQ(ring_.ReleaseTo(2 * kSlots + 1), Release::kMoved);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(PushOne());
    ring_.Publish();
    EXPECT_FALSE(ring_.OpenForInlineExt()) << "one slot is free";
  }
}

TEST_F(SendRingTest, SendBufferIsPushBufferAndPublish) {
  const SendFields fields = {.op_context = 77, .peer = 5};
  ring_.SendBuffer(fields, Iova{0x1000}, 100);
  EXPECT_EQ(device_.rung.size(), 1U);
  ASSERT_TRUE(ring_.PushBuffer(fields, Iova{0x1000}, 100));
  TxDesc second = slots_[1];
  EXPECT_EQ(second.position, 1);
  second.position = 0;
  EXPECT_EQ(slots_[0], second);
}

TEST_F(SendRingTest, LimitBoundsTheSlotsInUse) {
  RingPositions positions(kSlots);
  positions.SetLimit(6);
  EXPECT_EQ(positions.free_slots(), 6U);
  positions.Append(6);
  positions.MarkPublished();
  EXPECT_TRUE(positions.full());
  ASSERT_TRUE(positions.TryReleaseTo(2));
  EXPECT_EQ(positions.free_slots(), 2U);
  positions.SetLimit(kSlots);
  EXPECT_EQ(positions.free_slots(), 4U);
  EXPECT_FALSE(positions.TryReleaseTo(1));
  EXPECT_FALSE(positions.TryReleaseTo(7));
  EXPECT_EQ(positions.head(), 2);
}

TEST_F(SendRingTest, CreateRefusesSizesAndAlignmentsOutsideTheContract) {
  alignas(4096) static std::array<TxDesc, 8192> many;
  const auto error = [&](size_t first, size_t count) {
    Result<SendRing> ring =
        SendRing::Create(std::span(many).subspan(first, count), nullptr, {});
    return ring.ok() ? 0 : static_cast<int>(ring.error());
  };
  EXPECT_EQ(error(0, 8), 0);
  EXPECT_EQ(error(0, 4096), 0);
  EXPECT_EQ(error(0, 4), EINVAL);
  EXPECT_EQ(error(0, 8192), EINVAL);
  EXPECT_EQ(error(0, 12), EINVAL);
  EXPECT_EQ(error(1, 8), EINVAL);
}

TEST_F(SendRingTest, DoorbellIsSilentUntilPublishThenRingsOncePerBatch) {
  ASSERT_TRUE(PushOne(7) && PushOne(8));
  EXPECT_TRUE(device_.rung.empty());
  ring_.Publish();
  EXPECT_EQ(device_.rung, (std::vector<FakeDevice::Rung>{{3 * kPage, 2}}));
  ring_.Publish();
  EXPECT_EQ(device_.rung.size(), 1U) << "nothing new to publish";
}

TEST_F(SendRingTest, BufferDescriptorIsAsTheContractSays) {
  ASSERT_TRUE(ring_.PushBuffer(
      {.op_context = 0xabc,
       .header_data = 0x55,
       .peer = 12,
       .rx_index = 4,
       .flags = contract::kTxFlagCompletion | contract::kTxFlagHeaderData},
      Iova{0x1234567890}, 70000));
  EXPECT_EQ(slots_[0], (TxDesc{.opcode = Opcode::kSend,
                               .flags = contract::kTxFlagCompletion |
                                        contract::kTxFlagHeaderData,
                               .position = 0,
                               .peer = 12,
                               .length = 70000,
                               .rx_index = 4,
                               .segments = 1,
                               .op_context = 0xabc,
                               .header_data = 0x55,
                               .local_iova = 0x1234567890,
                               .local_length = 70000}));
}

TEST_F(SendRingTest, EmptyMessageHasNoSegmentAndNoInlineFlag) {
  ASSERT_TRUE(ring_.PushBuffer({}, Iova{0x1000}, 0));
  ASSERT_TRUE(ring_.PushInline({}, nullptr, 0));
  for (const TxDesc& desc : {slots_[0], slots_[1]}) {
    EXPECT_EQ(desc.segments, 0);
    EXPECT_EQ(desc.flags, 0);
    EXPECT_EQ(desc.local_iova, 0U);
  }
}

TEST_F(SendRingTest, InlinePayloadIsInTheLastBytesOfTheDescriptor) {
  for (const uint32_t bytes : {1U, 15U, 16U}) {
    const auto data = Pattern(bytes);
    ASSERT_TRUE(ring_.PushInline({.op_context = 5}, data.data(), bytes));
    const TxDesc& desc = slots_[ring_.last_position() % kSlots];
    EXPECT_EQ(desc.flags, contract::kTxFlagInline);
    EXPECT_EQ(desc.length, bytes);
    EXPECT_EQ(desc.segments, 0);
    EXPECT_EQ(std::memcmp(reinterpret_cast<const uint8_t*>(&desc) +
                              contract::kInlineOffset,
                          data.data(), bytes),
              0);
    ring_.Publish();
    ASSERT_EQ(ring_.ReleaseTo(ring_.tail()), Release::kMoved);
  }
}

TEST_F(SendRingTest, ExtendedPayloadFollowsItsDescriptor) {
  for (const uint32_t bytes : {17U, 64U, 65U, 128U, 129U, 192U}) {
    const auto data = Pattern(bytes);
    const uint32_t ext_slots = (bytes + 63) / 64;
    ASSERT_TRUE(ring_.PushInlineExt({}, data.data(), bytes));
    const uint32_t slot = ring_.last_position() % kSlots;
    EXPECT_EQ(slots_[slot].flags, contract::kTxFlagInlineExt);
    EXPECT_EQ(slots_[slot].ext_slots, ext_slots);
    EXPECT_EQ(slots_[slot].position, ring_.last_position());
    ASSERT_LE(slot + 1 + ext_slots, kSlots) << "must be contiguous";
    EXPECT_EQ(std::memcmp(static_cast<const void*>(&slots_[slot + 1]),
                          data.data(), bytes),
              0);
    EXPECT_EQ(ring_.tail(), ring_.last_position() + 1 + ext_slots);
    ring_.Publish();
    ASSERT_EQ(ring_.ReleaseTo(ring_.tail()), Release::kMoved);
  }
}

TEST_F(SendRingTest, PiecesAreInTheExtensionSlot) {
  const std::array<LocalPiece, 3> pieces = {
      {{Iova{0x1000}, 10}, {Iova{0x2000}, 20}, {Iova{0x3000}, 30}}};
  ASSERT_TRUE(ring_.PushPieces(
      {.opcode = Opcode::kWrite, .match_bits = 0xabc, .remote_offset = 0x77},
      pieces, 60));
  EXPECT_EQ(slots_[0], (TxDesc{.opcode = Opcode::kWrite,
                               .length = 60,
                               .ext_slots = 1,
                               .segments = 3,
                               .match_bits = 0xabc,
                               .remote_offset = 0x77}));
  std::array<contract::TxSegment, 4> segments;
  std::memcpy(static_cast<void*>(segments.data()), &slots_[1],
              sizeof(segments));
  EXPECT_EQ(segments[0], (contract::TxSegment{.iova = 0x1000, .length = 10}));
  EXPECT_EQ(segments[2], (contract::TxSegment{.iova = 0x3000, .length = 30}));
  EXPECT_EQ(segments[3], contract::TxSegment{});
  EXPECT_EQ(ring_.tail(), 2);
  // One piece, or none, needs no extension.
  ASSERT_TRUE(ring_.PushPieces({}, {pieces.data(), 1}, 10));
  EXPECT_EQ(slots_[2].segments, 1);
  EXPECT_EQ(slots_[2].local_iova, 0x1000U);
  ASSERT_TRUE(ring_.PushPieces({}, {}, 0));
  EXPECT_EQ(slots_[3].segments, 0);
}

TEST_F(SendRingTest, EndOfTheRingIsPaddedWithNops) {
  AdvanceTo(6);
  const auto data = Pattern(192);
  ASSERT_TRUE(ring_.PushInlineExt({.op_context = 9}, data.data(), 192));
  EXPECT_EQ(slots_[6], (TxDesc{.opcode = Opcode::kNop, .position = 6}));
  EXPECT_EQ(slots_[7], (TxDesc{.opcode = Opcode::kNop, .position = 7}));
  EXPECT_EQ(slots_[0].position, 8);
  EXPECT_EQ(slots_[0].op_context, 9U);
  EXPECT_EQ(ring_.last_position(), 8);
  ring_.Publish();
  EXPECT_EQ(device_.rung, (std::vector<FakeDevice::Rung>{{3 * kPage, 12}}));
}

TEST_F(SendRingTest, ExactFitBeforeTheEndNeedsNoPadding) {
  AdvanceTo(4);
  const auto data = Pattern(192);
  ASSERT_TRUE(ring_.PushInlineExt({}, data.data(), 192));
  EXPECT_EQ(ring_.last_position(), 4);
  EXPECT_EQ(ring_.free_slots(), 4U);
}

TEST_F(SendRingTest, PushThatDoesNotFitWithItsPaddingChangesNothing) {
  AdvanceTo(6);
  const auto data = Pattern(192);
  ASSERT_TRUE(PushOne(1));  // One slot before the end, six more behind it.
  ASSERT_TRUE(ring_.PushInlineExt({}, data.data(), 64));  // Pads one.
  ASSERT_TRUE(PushOne(2));
  ASSERT_EQ(ring_.free_slots(), 3U);
  const auto before = slots_;
  EXPECT_FALSE(ring_.PushInlineExt({}, data.data(), 192));
  EXPECT_EQ(slots_, before);
  EXPECT_EQ(ring_.free_slots(), 3U);
}

TEST_F(SendRingTest, FullRingRefusesAndLeavesTheOldestDescriptorIntact) {
  for (uint64_t i = 0; i < kSlots; ++i) {
    ASSERT_TRUE(PushOne(i));
  }
  const auto before = slots_;
  EXPECT_FALSE(PushOne(99));
  EXPECT_FALSE(ring_.PushInline({}, "x", 1));
  EXPECT_FALSE(ring_.PushInlineExt({}, Pattern(17).data(), 17));
  EXPECT_EQ(slots_, before);
}

TEST_F(SendRingTest, ReleaseAcceptsOnlyForwardMovesWithinWhatWasPublished) {
  ASSERT_TRUE(PushOne() && PushOne());
  EXPECT_EQ(ring_.ReleaseTo(1), Release::kBogus) << "not yet published";
  ring_.Publish();
  ASSERT_TRUE(PushOne());
  EXPECT_EQ(ring_.ReleaseTo(3), Release::kBogus) << "pushed, not published";
  EXPECT_EQ(ring_.ReleaseTo(0), Release::kStale);
  EXPECT_EQ(ring_.ReleaseTo(2), Release::kMoved);
  EXPECT_EQ(ring_.ReleaseTo(1), Release::kStale);
  EXPECT_EQ(ring_.ReleaseTo(2), Release::kStale);
  EXPECT_EQ(ring_.ReleaseTo(1000), Release::kBogus);
  EXPECT_EQ(ring_.head(), 2);
  EXPECT_EQ(ring_.free_slots(), kSlots - 1);
}

TEST_F(SendRingTest, HeadCellReleasesOperationsWithoutACompletion) {
  for (uint64_t i = 0; i < kSlots; ++i) {
    ASSERT_TRUE(PushOne(i));
  }
  ring_.Publish();
  cell_ = 5;
  EXPECT_EQ(ring_.ReleaseFromCell(), Release::kMoved);
  EXPECT_EQ(ring_.free_slots(), 5U);
}

TEST_F(SendRingTest, HeadCellThatIsOlderThanTheWrapReleasesNothing) {
  for (uint64_t i = 0; i < 65536; ++i) {
    ASSERT_TRUE(PushOne(i));
    ring_.Publish();
    EXPECT_EQ(ring_.ReleaseFromCell(), Release::kStale);
    if (i < 65535) {
      ASSERT_EQ(ring_.ReleaseTo(static_cast<uint16_t>(i + 1)), Release::kMoved)
          << "as completions report";
    }
  }
  EXPECT_EQ(ring_.tail(), cell_) << "once around";
  EXPECT_EQ(ring_.free_slots(), kSlots - 1);
  cell_ = 65535;
  EXPECT_EQ(ring_.ReleaseFromCell(), Release::kStale) << "nothing new";
  cell_ = 0;
  EXPECT_EQ(ring_.ReleaseFromCell(), Release::kMoved);
  EXPECT_EQ(ring_.free_slots(), kSlots);
}

class PushTest : public SendRingTest {
 protected:
  static SendRing BindWithWindow(FakeDevice& device, std::span<TxDesc> slots,
                                 const uint64_t* cell, uint64_t capability) {
    device.capability |= capability;
    return SendRing::Create(slots, cell, TxTailDoorbell(device, 3),
                            TxPushTarget(device, 3))
        .value();
  }
  static uint32_t WindowOffset(uint32_t position) {
    return (contract::kTxPageFirst + 3) * kPage + contract::kPushWindowOffset +
           position % contract::kPushWindowSlots * contract::kDescBytes;
  }
  PushTest() {
    ring_ = BindWithWindow(device_, slots_, &cell_, contract::kCapabilityPush);
  }
};

TEST_F(PushTest, LoneSendOnAnIdleRingIsCopiedAheadOfItsDoorbell) {
  const std::vector<uint8_t> data = Pattern(8);
  for (uint16_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(ring_.PushInline({.op_context = i}, data.data(), 8));
    EXPECT_EQ(device_.pushed.size(), i) << "before Publish";
    ring_.Publish();
    ASSERT_EQ(device_.pushed.size(), i + 1U);
    EXPECT_EQ(device_.pushed[i].offset, WindowOffset(i));
    EXPECT_EQ(device_.pushed[i].slot, slots_[i % kSlots]);
    EXPECT_EQ(device_.pushed[i].slot.op_context, i);
    EXPECT_EQ(device_.pushed[i].rung_before, i);
    ring_.Publish();  // Nothing new.
    EXPECT_EQ(device_.rung.size(), i + 1U);
    ASSERT_EQ(ring_.ReleaseTo(ring_.tail()), Release::kMoved);
  }
  EXPECT_EQ(device_.pushed.size(), 100U);
}

TEST_F(PushTest, BatchAndBacklogAreLeftToBeFetched) {
  ASSERT_TRUE(PushOne() && PushOne());
  ring_.Publish();
  ASSERT_EQ(ring_.ReleaseTo(1), Release::kMoved);
  ASSERT_TRUE(PushOne());
  ring_.Publish();  // One before it is not done.
  EXPECT_TRUE(device_.pushed.empty());
  EXPECT_EQ(device_.rung.size(), 2U);
  ASSERT_EQ(ring_.ReleaseTo(3), Release::kMoved);
  ASSERT_TRUE(PushOne());
  ring_.Publish();
  EXPECT_EQ(device_.pushed.size(), 1U);
}

TEST_F(PushTest, HeadCellTellsThatTheRingIsIdle) {
  ASSERT_TRUE(PushOne());
  ring_.Publish();
  cell_ = 1;
  ASSERT_TRUE(PushOne());
  ring_.Publish();
  EXPECT_EQ(device_.pushed.size(), 2U);
  ASSERT_TRUE(PushOne());
  ring_.Publish();
  EXPECT_EQ(device_.pushed.size(), 2U);
}

TEST_F(PushTest, DescriptorGoesWithoutItsExtensionAndPaddingWithoutEither) {
  const std::vector<uint8_t> data = Pattern(192);
  ASSERT_TRUE(ring_.PushInlineExt({.op_context = 9}, data.data(), 192));
  ring_.Publish();
  ASSERT_EQ(device_.pushed.size(), 1U);
  EXPECT_EQ(device_.pushed[0].slot, slots_[0]);
  EXPECT_EQ(device_.pushed[0].slot.ext_slots, 3);
  ASSERT_EQ(ring_.ReleaseTo(4), Release::kMoved);
  ASSERT_TRUE(ring_.PushInlineExt({}, data.data(), 64));
  ring_.Publish();
  ASSERT_EQ(ring_.ReleaseTo(6), Release::kMoved);
  EXPECT_EQ(device_.pushed.size(), 2U);
  // Two slots before the end: padding, then the descriptor.
  ASSERT_TRUE(ring_.PushInlineExt({}, data.data(), 192));
  ring_.Publish();
  EXPECT_EQ(device_.pushed.size(), 2U);
}

class PushExtensionsTest : public PushTest {
 protected:
  PushExtensionsTest() {
    ring_ = BindWithWindow(
        device_, slots_, &cell_,
        contract::kCapabilityPush | contract::kCapabilityPushExtensions);
  }
  // Copies of the slots from `position` on, before the doorbell, and no others.
  void ExpectPushed(uint16_t position, uint32_t slots) {
    ASSERT_EQ(device_.pushed.size(), slots);
    for (uint32_t i = 0; i < slots; ++i) {
      EXPECT_EQ(device_.pushed[i].offset, WindowOffset(position + i));
      EXPECT_EQ(std::memcmp(&device_.pushed[i].slot,
                            &slots_[(position + i) % kSlots], sizeof(TxDesc)),
                0);
      EXPECT_EQ(device_.pushed[i].rung_before, device_.rung.size() - 1);
    }
    device_.pushed.clear();
  }
};

TEST_F(PushExtensionsTest, PayloadBehindTheDescriptorIsCopiedWithIt) {
  const std::vector<uint8_t> data = Pattern(192);
  uint16_t tail = 0;
  for (const uint32_t bytes : {17U, 64U, 65U, 128U, 129U, 192U, 64U, 192U}) {
    const uint32_t slots = 1 + (bytes + 63) / 64;
    ASSERT_TRUE(ring_.PushInlineExt({.op_context = 9}, data.data(), bytes));
    ring_.Publish();
    if (ring_.last_position() == tail) {
      ExpectPushed(tail, slots);
    } else {
      EXPECT_TRUE(device_.pushed.empty()) << "padding is in front of it";
    }
    tail = ring_.tail();
    ASSERT_EQ(ring_.ReleaseTo(tail), Release::kMoved);
  }
}

// An operation stays together in the ring, and wraps around in the window.
TEST_F(PushExtensionsTest, CopiesWrapAroundInTheWindow) {
  constexpr uint32_t kFirst = contract::kPushWindowSlots - 2;
  alignas(4096) std::array<TxDesc, 2 * contract::kPushWindowSlots> many{};
  ring_ = BindWithWindow(device_, many, &cell_, contract::kCapabilityPush);
  ring_.Pad(kFirst);
  ring_.Publish();
  ASSERT_EQ(ring_.ReleaseTo(kFirst), Release::kMoved);
  const std::vector<uint8_t> data = Pattern(192);
  ASSERT_TRUE(ring_.PushInlineExt({}, data.data(), 192));
  ring_.Publish();
  ASSERT_EQ(device_.pushed.size(), 4U);
  EXPECT_EQ(device_.pushed[1].offset, WindowOffset(kFirst) + 64);
  EXPECT_EQ(device_.pushed[2].offset, WindowOffset(0));
  EXPECT_EQ(device_.pushed[3].offset, WindowOffset(1));
}

TEST_F(PushExtensionsTest, SendAtOnceIsCopiedLikeAnyOther) {
  const std::vector<uint8_t> data = Pattern(128);
  ring_.SendInlineExt({.op_context = 9}, data.data(), 128);
  ExpectPushed(0, 3);
}

TEST_F(PushExtensionsTest, SegmentsAreLeftToBeFetched) {
  const std::array<LocalPiece, 2> pieces = {
      {{Iova{0x1000}, 10}, {Iova{0x2000}, 20}}};
  ASSERT_TRUE(ring_.PushPieces({}, pieces, 30));
  ring_.Publish();
  ExpectPushed(0, 1);
}

TEST_F(PushTest, DeviceThatDoesNotClaimPushesGetsNone) {
  FakeDevice device;
  EXPECT_EQ(TxPushTarget(device, 3).window.copy, nullptr);
  device.capability |= contract::kCapabilityPushExtensions;
  EXPECT_EQ(TxPushTarget(device, 3).window.copy, nullptr);
  device.capability |= contract::kCapabilityPush;
  EXPECT_NE(TxPushTarget(device, 3).window.copy, nullptr);
}

TEST(PushPortTest, MappingDecidesWhetherAndHowIsPushed) {
  constexpr size_t kWords =
      contract::kPushWindowSlots * contract::kDescBytes / sizeof(uint64_t);
  alignas(64) std::array<uint64_t, kWords> window{};
  EXPECT_FALSE(PushPort().open());
  EXPECT_FALSE(PushPort(PushTarget{}).open());
  EXPECT_EQ(PushPort({.window = {.address = window.data()}}).open(),
            PushPort::CpuHasDirectStore());
  const PushPort port({.window = {.address = window.data(), .gathers = true}});
  ASSERT_TRUE(port.open());
  std::array<TxDesc, 2> slots = {
      {{.opcode = Opcode::kSend, .position = 37, .op_context = 5},
       {.op_context = 6}}};
  slots[0].rsvd0 = 0x12345678;
  port.Copy(37, slots);
  constexpr size_t kAt = 37 % contract::kPushWindowSlots * 8;
  EXPECT_EQ(std::memcmp(&window[kAt], slots.data(), sizeof slots), 0);
  std::fill_n(&window[kAt], 16, 0);
  EXPECT_EQ(window, decltype(window){}) << "nothing beside the slot";
}

// What a device that follows the contract reads equals what was pushed, over
// many wraps of ring and counter.
TEST_F(SendRingTest, RandomSendsArriveInOrderAcrossAllWraps) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  struct Sent {
    uint64_t op_context;
    std::vector<uint8_t> inline_payload;
    uint16_t position;
  };
  std::deque<Sent> sent;
  uint16_t device_head = 0;
  uint64_t next = 0;
  uint32_t arrived = 0;
  while (arrived < 100'000) {
    if (random() % 2 == 0) {
      const auto bytes = static_cast<uint32_t>(random() % 193);
      const auto data = Pattern(bytes);
      const SendFields fields{.op_context = next};
      bool pushed = false;
      if (random() % 3 == 0) {
        pushed = ring_.PushBuffer(fields, Iova{next * 64}, 1000);
      } else if (bytes <= contract::kInlineBytes) {
        pushed = ring_.PushInline(fields, data.data(), bytes);
      } else {
        pushed = ring_.PushInlineExt(fields, data.data(), bytes);
      }
      if (pushed) {
        sent.push_back({next, data, ring_.last_position()});
        ++next;
      } else {
        ASSERT_LT(ring_.free_slots(), 7U);
      }
      continue;
    }
    ring_.Publish();
    if (device_.rung.empty()) {
      continue;
    }
    const auto tail = static_cast<uint16_t>(device_.rung.back().value);
    device_.rung.clear();
    while (device_head != tail) {
      const TxDesc& desc = slots_[device_head % kSlots];
      ASSERT_EQ(desc.position, device_head);
      if (desc.opcode == Opcode::kSend) {
        ASSERT_FALSE(sent.empty());
        ASSERT_EQ(desc.op_context, sent.front().op_context);
        ASSERT_EQ(device_head, sent.front().position);
        if ((desc.flags & contract::kTxFlagInlineExt) != 0) {
          ASSERT_EQ(
              std::memcmp(static_cast<const void*>(&desc + 1),
                          sent.front().inline_payload.data(), desc.length),
              0);
        }
        sent.pop_front();
        ++arrived;
      } else {
        ASSERT_EQ(desc.opcode, Opcode::kNop);
      }
      device_head = static_cast<uint16_t>(device_head + 1 + desc.ext_slots);
    }
    ASSERT_NE(ring_.ReleaseTo(device_head), Release::kBogus);
  }
}

class RecvRingTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSlots = 8;
  static constexpr uint32_t kPageOffset =
      (contract::kRxPageFirst + 2) * contract::kDoorbellPageBytes;

  static RecvRing Bind(FakeDevice& device, std::span<RxDesc> slots,
                       const uint64_t* cell) {
    return RecvRing::Create(slots, cell, RxTailDoorbell(device, 2),
                            RxOpDoorbell(device, 2))
        .value();
  }

  FakeDevice device_;
  alignas(4096) std::array<RxDesc, kSlots> slots_{};
  alignas(8) uint64_t cell_ = 0;
  RecvRing ring_ = Bind(device_, slots_, &cell_);
};

TEST_F(RecvRingTest, DescriptorIsAsTheContractSays) {
  ASSERT_TRUE(ring_.TryPush(0xabc, Iova{0x123456}, 4096));
  EXPECT_EQ(slots_[0], (RxDesc{.position = 0,
                               .length = 4096,
                               .op_context = 0xabc,
                               .local_iova = 0x123456}));
  ring_.Publish();
  EXPECT_EQ(device_.rung, (std::vector<FakeDevice::Rung>{{kPageOffset, 1}}));
}

TEST_F(RecvRingTest, FullRingRefusesAndLeavesTheOldestDescriptorIntact) {
  for (uint64_t i = 0; i < kSlots; ++i) {
    ASSERT_TRUE(ring_.TryPush(i, Iova{64 * i}, 64));
  }
  EXPECT_FALSE(ring_.TryPush(99, Iova{0}, 64));
  EXPECT_EQ(slots_[0].op_context, 0U);
}

TEST_F(RecvRingTest, FindsTheOldestPublishedSlotOfAContext) {
  for (const uint64_t op_context : {5U, 6U, 5U, 7U}) {
    ASSERT_TRUE(ring_.TryPush(op_context, Iova{0}, 64));
  }
  EXPECT_EQ(ring_.Find(5), std::nullopt) << "not yet published";
  ring_.Publish();
  ASSERT_TRUE(ring_.TryPush(8, Iova{0}, 64));
  EXPECT_EQ(ring_.Find(5), 0);
  EXPECT_EQ(ring_.Find(6), 1);
  EXPECT_EQ(ring_.Find(8), std::nullopt);
  EXPECT_EQ(ring_.Find(9), std::nullopt);
  ASSERT_EQ(ring_.ReleaseTo(2), Release::kMoved);
  EXPECT_EQ(ring_.Find(5), 2);
  EXPECT_EQ(ring_.Find(6), std::nullopt) << "released";
}

TEST_F(RecvRingTest, CancelNamesThePositionInItsDoorbell) {
  for (uint32_t i = 0; i < 0x10003; ++i) {
    ASSERT_TRUE(ring_.TryPush(i, Iova{0}, 64));
    ring_.Publish();
    ASSERT_EQ(ring_.ReleaseTo(ring_.tail()), Release::kMoved);
  }
  ASSERT_TRUE(ring_.TryPush(42, Iova{0}, 64));
  ring_.Publish();
  device_.rung.clear();
  const auto position = ring_.Find(42);
  ASSERT_EQ(position, 3) << "counts wrap at sixteen bits";
  EXPECT_EQ(ring_.op_context_at(*position), 42U);
  ring_.Cancel(*position);
  EXPECT_EQ(device_.rung, (std::vector<FakeDevice::Rung>{
                              {kPageOffset + 8, uint64_t{3} << 32 | 1}}));
}

TEST_F(RecvRingTest, HeadCellReleases) {
  ASSERT_TRUE(ring_.TryPush(1, Iova{0}, 64));
  ring_.Publish();
  cell_ = 1;
  EXPECT_EQ(ring_.ReleaseFromCell(), Release::kMoved);
  EXPECT_EQ(ring_.ReleaseFromCell(), Release::kStale);
  EXPECT_EQ(ring_.free_slots(), kSlots);
}

class MatchRingTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSlots = 8;
  static constexpr uint32_t kPageOffset =
      (contract::kRxPageFirst + 2) * contract::kDoorbellPageBytes;

  static MatchRing Bind(FakeDevice& device,
                        std::span<contract::MatchDesc> slots,
                        const uint64_t* cell) {
    return MatchRing::Create(slots, cell, RxTailDoorbell(device, 2),
                             RxOpDoorbell(device, 2))
        .value();
  }

  FakeDevice device_;
  alignas(4096) std::array<contract::MatchDesc, kSlots> slots_{};
  alignas(8) uint64_t cell_ = 0;
  MatchRing ring_ = Bind(device_, slots_, &cell_);
};

TEST_F(MatchRingTest, ADescriptorGetsItsPosition) {
  contract::MatchDesc descriptor = {.opcode = contract::MatchOp::kClaim,
                                    .op_context = 7,
                                    .match_bits = 8,
                                    .ignore_bits = 9};
  for (uint16_t i = 0; i < kSlots; ++i) {
    descriptor.position = 0xabcd;
    ring_.Push([&](contract::MatchDesc& slot) { slot = descriptor; });
    descriptor.position = i;
    EXPECT_EQ(slots_.at(i), descriptor);
  }
  EXPECT_TRUE(device_.rung.empty());
  ring_.Publish();
  EXPECT_EQ(device_.rung,
            (std::vector<FakeDevice::Rung>{{kPageOffset, kSlots}}));
}

TEST_F(MatchRingTest, TheHeadCellAloneReleasesSlots) {
  for (uint32_t i = 0; i < kSlots; ++i) {
    ring_.PushAndPublish(
        [i](contract::MatchDesc& slot) { slot = {.op_context = i}; });
  }
  EXPECT_FALSE(ring_.MakeRoom());
  cell_ = 40;
  EXPECT_FALSE(ring_.MakeRoom()) << "no such head";
  cell_ = 3;
  ASSERT_TRUE(ring_.MakeRoom());
  EXPECT_EQ(ring_.free_slots(), 3U);
  ring_.PushAndPublish(
      [](contract::MatchDesc& slot) { slot = {.op_context = 99}; });
  EXPECT_EQ(slots_[0].op_context, 99U);
  EXPECT_EQ(slots_[0].position, kSlots);
}

TEST_F(MatchRingTest, CancelHasTheNameInItsDoorbell) {
  ring_.Cancel(0x00030001);
  EXPECT_EQ(device_.rung,
            (std::vector<FakeDevice::Rung>{
                {kPageOffset + 8, uint64_t{0x00030001} << 32 | 1}}));
}

TEST(MappedDoorbellTest, RegisterIsWrittenWithoutNotify) {
  uint64_t mapped = 0;
  Ring(Doorbell{.address = &mapped}, 0x123456789abcdef0);
  EXPECT_EQ(mapped, 0x123456789abcdef0U);
}

}  // namespace
}  // namespace heddle
