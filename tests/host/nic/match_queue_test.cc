// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/match_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "host/lib/backend/locking.h"
#include "tests/driver/fake_device.h"

namespace heddle::nic {
namespace {

using backend::MatchOp;

// A queue whose device the test plays.
class MatchQueueTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSlots = 8;
  static constexpr uint32_t kCopyLimit = 64;

  void SetUp() override {
    auto peers = AddressTable::Create(device_, 4);
    ASSERT_TRUE(peers.ok());
    peers_ = std::move(peers.value());
    ASSERT_NO_FATAL_FAILURE(Open({.operations = kSlots,
                                  .copy_limit_bytes = kCopyLimit,
                                  .directory = peers_.get(),
                                  .tagged = true}));
    auto region = MappedRegion::Create(device_, buffer_.data(), buffer_.size());
    ASSERT_TRUE(region.ok());
    region_ = std::move(region.value());
  }
  void Open(const RxOptions& options) {
    auto created = MatchQueue::Create(device_, options);
    ASSERT_TRUE(created.ok());
    queue_ = std::move(created.value());
    ASSERT_TRUE(queue_->Bind(device_, 3).ok());
    device_.rung.clear();
    taken_ = 0;
  }

  int Post(const MatchOperation& operation, size_t bytes, bool registered) {
    const Segment segment = {.address = buffer_.data(),
                             .bytes = bytes,
                             .region = registered ? &region_ : nullptr};
    return queue_->PostSegments<backend::Locked>(operation, {&segment, 1});
  }
  int Look(const MatchOperation& operation) {
    return queue_->PostSegments<backend::Locked>(operation, {});
  }

  template <typename T>
  static T* At(uint64_t iova) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<T*>(iova - FakeDevice::kIovaOffset);
  }
  // The descriptor that was posted last.
  contract::MatchDesc Posted(uint16_t position) const {
    return At<contract::MatchDesc>(
        ToInteger(queue_->ring_iova()))[position % kSlots];
  }
  // All that was published; their slots are released.
  std::vector<contract::MatchDesc> Take() {
    std::vector<contract::MatchDesc> taken;
    for (const FakeDevice::Rung& rung : device_.rung) {
      if (rung.offset % contract::kDoorbellPageBytes !=
          contract::kDoorbellTailOffset) {
        continue;
      }
      for (const auto tail = static_cast<uint16_t>(rung.value); taken_ != tail;
           ++taken_) {
        taken.push_back(Posted(taken_));
        EXPECT_EQ(taken.back().position, taken_);
      }
    }
    device_.rung.clear();
    *At<uint64_t>(ToInteger(queue_->head_cell_iova())) = taken_;
    return taken;
  }
  static contract::Completion Done(const contract::MatchDesc& descriptor,
                                   uint32_t length = 0) {
    return {.op_context = descriptor.op_context,
            .length = length,
            .message_length = length,
            .match_bits = descriptor.match_bits,
            .flags = contract::kCompletionFlagTagged,
            .kind = contract::CompletionKind::kRx};
  }
  static contract::Completion WithStatus(contract::Completion entry,
                                         contract::Status status) {
    entry.status = status;
    return entry;
  }
  // Names that the device was requested to withdraw.
  std::vector<uint32_t> Withdrawn() {
    std::vector<uint32_t> names;
    for (const FakeDevice::Rung& rung : device_.rung) {
      if (rung.offset % contract::kDoorbellPageBytes ==
          contract::kDoorbellOpOffset) {
        EXPECT_EQ(static_cast<uint32_t>(rung.value),
                  static_cast<uint32_t>(contract::DoorbellOp::kCancel));
        names.push_back(static_cast<uint32_t>(rung.value >> 32));
      }
    }
    return names;
  }

  FakeDevice device_;
  std::array<uint8_t, 4096> buffer_{};
  MappedRegion region_;
  std::unique_ptr<AddressTable> peers_;
  std::unique_ptr<MatchQueue> queue_;
  uint16_t taken_ = 0;
};

TEST_F(MatchQueueTest, ADescriptorHasTheRuleAndAHandleForTheContext) {
  ASSERT_EQ(
      Post({.context = 0xdeadbeefcafe, .tag = 0x11, .ignore = 0xf0}, 96, true),
      0);
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0],
            (contract::MatchDesc{
                .opcode = contract::MatchOp::kReceive,
                .flags = contract::kMatchFlagAnySource,
                .length = 96,
                .op_context = taken[0].op_context,
                .local_iova = ToInteger(region_.iova_of(buffer_.data())),
                .match_bits = 0x11,
                .ignore_bits = 0xf0}));
  EXPECT_LE(taken[0].op_context, UINT32_MAX);
  const Finished done = queue_->Retire(Done(taken[0], 90));
  EXPECT_TRUE(done.known && done.report);
  EXPECT_EQ(done.context, 0xdeadbeefcafeU);
  EXPECT_EQ(done.buffer, buffer_.data());
  EXPECT_EQ(done.length, 90U);
  EXPECT_EQ(done.flags, FI_TAGGED | FI_RECV);
}

TEST_F(MatchQueueTest, ASourceIsThatOfTheAddressTable) {
  const PeerAddress four = {.ipv4 = 0x0a000001, .port = 0x3042};
  const PeerAddress six = {
      .port = 7, .is_ipv6 = true, .ipv6_hi = 0xfd00, .ipv6_lo = 9};
  ASSERT_EQ(peers_->Insert(four).value(), 0U);
  ASSERT_EQ(peers_->Insert(six).value(), 1U);
  ASSERT_EQ(Post({.source = 0}, 8, true), 0);
  ASSERT_EQ(Post({.source = 1}, 8, true), 0);
  EXPECT_EQ(Post({.source = 2}, 8, true), EINVAL);
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].flags, 0);
  EXPECT_EQ(taken[0].source_fa_lo, 0x0a000001U);
  EXPECT_EQ(taken[0].source_fa_hi, 0U);
  EXPECT_EQ(taken[0].initiator, four.initiator());
  EXPECT_EQ(taken[1].flags, contract::kMatchFlagSourceIpv6);
  EXPECT_EQ(taken[1].source_fa_lo, 9U);
  EXPECT_EQ(taken[1].source_fa_hi, 0xfd00U);
  EXPECT_EQ(taken[1].initiator, six.initiator());
}

TEST_F(MatchQueueTest, SlotsAreFreeWhenTheDeviceHasTakenThem) {
  for (uint32_t i = 0; i < kSlots; ++i) {
    ASSERT_EQ(Post({.context = i}, 8, true), 0);
  }
  EXPECT_EQ(Post({}, 8, true), EAGAIN);
  ASSERT_EQ(Take().size(), kSlots);
  // None has completed.
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < kSlots; ++i) {
      ASSERT_EQ(Post({.context = i}, 8, true), 0);
    }
    ASSERT_EQ(Take().size(), kSlots);
  }
}

TEST_F(MatchQueueTest, HandlesLimitReceivesAndAreReused) {
  std::vector<contract::MatchDesc> held;
  const uint32_t receives = queue_->receives();
  ASSERT_EQ(receives, MatchQueue::kMinReceives);
  for (uint32_t i = 0; i < receives; ++i) {
    ASSERT_EQ(Post({.context = i}, 8, true), 0) << i;
    held.push_back(Take().at(0));
  }
  std::set<uint64_t> names;
  for (const contract::MatchDesc& descriptor : held) {
    names.insert(descriptor.op_context);
  }
  EXPECT_EQ(names.size(), receives) << "one name for two receives";
  EXPECT_EQ(Post({}, 8, true), EAGAIN);
  EXPECT_EQ(queue_->Retire(Done(held[17])).context, 17U);
  ASSERT_EQ(Post({.context = 1}, 8, true), 0);
  const auto reused = Take().at(0);
  EXPECT_FALSE(names.contains(reused.op_context)) << "the name of another one";
  EXPECT_EQ(Post({}, 8, true), EAGAIN);
  // The former name means nothing.
  EXPECT_FALSE(queue_->Retire(Done(held[17])).known);
}

TEST_F(MatchQueueTest, ACopiedReceiveIsMovedWhenItsCompletionIsRead) {
  ASSERT_EQ(Post({.context = 5}, 16, false), 0);
  const auto descriptor = Take().at(0);
  ASSERT_NE(descriptor.local_iova, ToInteger(region_.iova_of(buffer_.data())));
  std::memset(At<uint8_t>(descriptor.local_iova), 0xa5, 16);
  EXPECT_EQ(buffer_[0], 0);
  EXPECT_EQ(queue_->Retire(Done(descriptor, 12)).buffer, buffer_.data());
  EXPECT_EQ(buffer_[11], 0xa5);
  EXPECT_EQ(buffer_[12], 0);
}

TEST_F(MatchQueueTest, ABufferOfManyMessagesIsHeldUntilItIsReleased) {
  // As short as it is, it is not copied.
  ASSERT_EQ(Post({.context = 9, .many = true, .min_free = 16}, 32, false), 0);
  const auto descriptor = Take().at(0);
  EXPECT_EQ(descriptor.flags,
            contract::kMatchFlagAnySource | contract::kMatchFlagMultiRecv);
  EXPECT_EQ(descriptor.min_free, 16U);
  ASSERT_TRUE(device_.IsMapped(descriptor.local_iova, 32));
  EXPECT_EQ(At<uint8_t>(descriptor.local_iova), buffer_.data());
  auto entry = Done(descriptor, 8);
  entry.flags |= contract::kCompletionFlagBufferOffset;
  Finished done = queue_->Retire(entry);
  EXPECT_EQ(done.context, 9U);
  EXPECT_EQ(done.buffer, buffer_.data());
  EXPECT_EQ(done.flags, FI_TAGGED | FI_RECV);
  entry.queue_head = 8;  // The offset's low half.
  entry.flags |= contract::kCompletionFlagBufferReleased;
  done = queue_->Retire(entry);
  EXPECT_EQ(done.buffer, &buffer_[8]);
  EXPECT_EQ(done.flags, FI_TAGGED | FI_RECV | FI_MULTI_RECV);
  EXPECT_FALSE(queue_->Retire(entry).known);
}

TEST_F(MatchQueueTest, OffsetsHaveTwoHalves) {
  std::vector<uint8_t> large(0x20010);
  const Segment segment = {.address = large.data(), .bytes = large.size()};
  ASSERT_EQ(
      queue_->PostSegments<backend::Unlocked>({.many = true}, {&segment, 1}),
      0);
  auto entry = Done(Take().at(0), 4);
  entry.flags |= contract::kCompletionFlagBufferOffset |
                 contract::kCompletionFlagBufferReleased;
  entry.queue_head = 0x000c;
  entry.position = 0x0002;
  EXPECT_EQ(queue_->Retire(entry).buffer, &large[0x2000c]);
}

TEST_F(MatchQueueTest, AReleaseWithoutAMessageHasNoOtherFlag) {
  ASSERT_EQ(Post({.context = 9, .report = false, .many = true}, 32, true), 0);
  auto entry = Done(Take().at(0));
  entry.flags |= contract::kCompletionFlagBufferReleased;
  const Finished done = queue_->Retire(entry);
  EXPECT_EQ(done.flags, FI_MULTI_RECV);
  EXPECT_TRUE(done.report);
  EXPECT_FALSE(queue_->Retire(entry).known);
}

TEST_F(MatchQueueTest, ABufferOfManyMessagesHasOnePieceAndAByte) {
  EXPECT_EQ(Post({.many = true}, 0, true), EINVAL);
  const std::array<Segment, 2> two = {{{.address = buffer_.data(), .bytes = 8},
                                       {.address = &buffer_[64], .bytes = 8}}};
  EXPECT_EQ(queue_->PostSegments<backend::Locked>({.many = true}, two),
            EOPNOTSUPP);
  EXPECT_EQ(queue_->PostSegments<backend::Locked>({}, two), 0);
}

TEST_F(MatchQueueTest, APeekReportsTheLengthOfAMessageThatStays) {
  ASSERT_EQ(Look({.context = 4, .match = MatchOp::kPeek, .tag = 1}), 0);
  const auto descriptor = Take().at(0);
  EXPECT_EQ(descriptor.opcode, contract::MatchOp::kPeek);
  EXPECT_EQ(descriptor.length, 0U);
  auto entry = Done(descriptor, 0);
  entry.message_length = 777;
  entry.flags |= contract::kCompletionFlagHeaderData;
  const Finished done = queue_->Retire(entry);
  EXPECT_EQ(done.length, 777U);
  EXPECT_EQ(done.buffer, nullptr);
  EXPECT_EQ(done.flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
  EXPECT_FALSE(queue_->Retire(entry).known);
}

TEST_F(MatchQueueTest, AClaimIsReceivedOnceByItsContext) {
  ASSERT_EQ(Look({.context = 4, .match = MatchOp::kClaim}), 0);
  const auto claim = Take().at(0);
  const MatchOperation receive = {.context = 4,
                                  .match = MatchOp::kReceiveClaimed};
  EXPECT_EQ(Post(receive, 8, true), ENOMSG) << "it is not claimed yet";
  (void)queue_->Retire(Done(claim));
  EXPECT_EQ(Post({.context = 5, .match = MatchOp::kReceiveClaimed}, 8, true),
            ENOMSG);
  ASSERT_EQ(Post(receive, 8, true), 0);
  const auto descriptor = Take().at(0);
  EXPECT_EQ(descriptor.opcode, contract::MatchOp::kReceiveClaimed);
  EXPECT_EQ(descriptor.op_context, claim.op_context);
  EXPECT_EQ(Post(receive, 8, true), ENOMSG) << "a second time";
  EXPECT_EQ(queue_->Retire(Done(descriptor, 8)).context, 4U);
  EXPECT_EQ(Post(receive, 8, true), ENOMSG);
}

TEST_F(MatchQueueTest, AClaimThatFoundNothingIsNone) {
  ASSERT_EQ(Look({.context = 4, .match = MatchOp::kClaim}), 0);
  (void)queue_->Retire(
      WithStatus(Done(Take().at(0)), contract::Status::kNoMessage));
  EXPECT_EQ(Look({.context = 4, .match = MatchOp::kDiscardClaimed}), ENOMSG);
}

TEST_F(MatchQueueTest, CancelNamesTheOldestReceiveOfTheContext) {
  for (const uint64_t context : {5, 6, 5}) {
    ASSERT_EQ(Post({.context = context}, 8, true), 0);
  }
  ASSERT_EQ(Look({.context = 7, .match = MatchOp::kPeek}), 0);
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 4U);
  // The handle of the oldest is now that of a younger one.
  (void)queue_->Retire(Done(taken[0]));
  ASSERT_EQ(Post({.context = 5}, 8, true), 0);
  const auto younger = Take().at(0);
  EXPECT_FALSE(queue_->Cancel<backend::Locked>(7)) << "it ends at once";
  EXPECT_FALSE(queue_->Cancel<backend::Locked>(8));
  ASSERT_TRUE(queue_->Cancel<backend::Locked>(5));
  ASSERT_TRUE(queue_->Cancel<backend::Locked>(5));
  EXPECT_FALSE(queue_->Cancel<backend::Locked>(5)) << "requested already";
  EXPECT_EQ(Withdrawn(),
            (std::vector<uint32_t>{static_cast<uint32_t>(taken[2].op_context),
                                   static_cast<uint32_t>(younger.op_context)}));
  const Finished done =
      queue_->Retire(WithStatus(Done(taken[2]), contract::Status::kCancelled));
  EXPECT_EQ(done.context, 5U);
  EXPECT_TRUE(done.known);
}

TEST_F(MatchQueueTest, CancelPublishesWhatWaitsForItsDoorbell) {
  ASSERT_EQ(Post({.context = 5, .more = true}, 8, true), 0);
  EXPECT_TRUE(device_.rung.empty());
  ASSERT_TRUE(queue_->Cancel<backend::Unlocked>(5));
  ASSERT_EQ(device_.rung.size(), 2U);
  EXPECT_EQ(device_.rung[0].value, 1U);
}

TEST_F(MatchQueueTest, ACancelledBufferOfManyMessagesIsReleased) {
  ASSERT_EQ(Post({.context = 5, .many = true}, 32, true), 0);
  const auto entry =
      WithStatus(Done(Take().at(0)), contract::Status::kCancelled);
  EXPECT_EQ(queue_->Retire(entry).flags, FI_TAGGED | FI_RECV | FI_MULTI_RECV);
  EXPECT_FALSE(queue_->Retire(entry).known);
}

TEST_F(MatchQueueTest, AFailedDeviceOwesReceivesAndNoClaims) {
  ASSERT_EQ(Look({.context = 1, .match = MatchOp::kClaim}), 0);
  (void)queue_->Retire(Done(Take().at(0)));
  ASSERT_EQ(Post({.context = 2}, 8, false), 0);
  ASSERT_EQ(Post({.context = 3, .many = true}, 32, true), 0);
  ASSERT_EQ(Look({.context = 4, .match = MatchOp::kPeek}), 0);
  std::set<uint64_t> lost;
  while (const auto entry = queue_->FindLost()) {
    ASSERT_EQ(entry->status, contract::Status::kDeviceFault);
    ASSERT_TRUE(lost.insert(queue_->Retire(*entry).context).second);
  }
  EXPECT_EQ(lost, (std::set<uint64_t>{2, 3, 4}));
  EXPECT_EQ(Post({}, 8, true), EIO);
}

TEST_F(MatchQueueTest, AbandonFreesBuffersOfReceivesThatDoNotComplete) {
  std::vector<uint8_t> large(2 * kCopyLimit);
  const Segment segment = {.address = large.data(), .bytes = large.size()};
  ASSERT_EQ(queue_->PostSegments<backend::Locked>({}, {&segment, 1}), 0);
  const uint64_t iova = Take().at(0).local_iova;
  ASSERT_TRUE(device_.IsMapped(iova, large.size()));
  queue_->Abandon();
  EXPECT_FALSE(device_.IsMapped(iova, 1));
}

TEST_F(MatchQueueTest, ABogusNameFailsTheQueueAndFreesNothing) {
  ASSERT_EQ(Post({.context = 2}, 8, true), 0);
  auto entry = Done(Take().at(0));
  entry.op_context += 1;
  EXPECT_FALSE(queue_->Retire(entry).known);
  EXPECT_EQ(Post({}, 8, true), EIO);
}

// The shortest ways.
TEST_F(MatchQueueTest, TheShortestPathLeavesOtherReceivesToTheOther) {
  uint64_t context = 0;
  void* buffer = nullptr;
  ASSERT_EQ(Post({.context = 1}, 8, false), 0);
  ASSERT_EQ(Post({.context = 2, .report = false}, 8, true), 0);
  ASSERT_EQ(Post({.context = 3, .many = true}, 32, true), 0);
  ASSERT_EQ(Look({.context = 4, .match = MatchOp::kPeek}), 0);
  ASSERT_EQ(Post({.context = 5}, 8, true), 0);
  const auto taken = Take();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(queue_->TryRetire(Done(taken.at(i)), &context, &buffer)) << i;
  }
  ASSERT_TRUE(queue_->TryRetire(Done(taken.at(4)), &context, &buffer));
  EXPECT_EQ(context, 5U);
  EXPECT_EQ(buffer, buffer_.data());
  EXPECT_FALSE(queue_->TryRetire(Done(taken.at(4)), &context, &buffer));
}

TEST_F(MatchQueueTest, TheUntaggedSpaceReportsMessages) {
  ASSERT_NO_FATAL_FAILURE(
      Open({.operations = kSlots, .directory = peers_.get()}));
  ASSERT_EQ(Post({.context = 1}, 8, true), 0);
  EXPECT_EQ(queue_->Retire(Done(Take().at(0))).flags, FI_MSG | FI_RECV);
}

}  // namespace
}  // namespace heddle::nic
