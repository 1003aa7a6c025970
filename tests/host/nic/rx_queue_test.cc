// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/rx_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "host/lib/backend/locking.h"
#include "tests/driver/fake_device.h"

namespace heddle::nic {
namespace {

constexpr uint32_t kReceives = 4;

TEST(RxQueueTest, LosesAReceiveWhoseSlotWasReleasedWithALaterOne) {
  FakeDevice device;
  auto created = RxQueue::Create(
      device, {.operations = kReceives, .copy_limit_bytes = 64});
  ASSERT_TRUE(created.ok());
  RxQueue& queue = *created.value();
  ASSERT_TRUE(queue.Bind(device, 0).ok());
  std::array<std::array<uint8_t, 8>, kReceives> buffers{};
  for (uint64_t i = 0; i < kReceives; ++i) {
    const Segment segment = {.address = buffers.at(i).data(), .bytes = 8};
    ASSERT_EQ(queue.PostSegments<backend::Locked>(
                  {.context = i + 1, .report = true}, {&segment, 1}),
              0);
  }
  // A long message is still coming for the first when a short one is all here
  // for the second.
  (void)queue.Retire(
      {.queue_head = 2, .position = 1, .kind = contract::CompletionKind::kRx});
  for (const uint64_t lost : {1, 3, 4}) {
    const auto entry = queue.FindLost();
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->status, contract::Status::kDeviceFault);
    EXPECT_EQ(queue.FindLost()->position, entry->position);
    EXPECT_EQ(queue.Retire(*entry).context, lost);
  }
  EXPECT_FALSE(queue.FindLost().has_value());
}

// A registered buffer of a queue that one thread uses.
class DirectRxQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = RxQueue::Create(
        device_, {.operations = kReceives, .copy_limit_bytes = 64});
    ASSERT_TRUE(created.ok());
    queue_ = std::move(created.value());
    ASSERT_TRUE(queue_->Bind(device_, 0).ok());
    auto region =
        MappedRegion::Create(device_, buffers_.data(), buffers_.size());
    ASSERT_TRUE(region.ok());
    region_ = std::move(region.value());
  }
  bool Post(uint64_t context, size_t bytes = 8) {
    return queue_->TryPostRegistered<backend::Unlocked>(
        context, {.address = buffers_.data(), .bytes = bytes},
        &region_.reach());
  }
  static contract::Completion Entry(uint16_t position, uint16_t head) {
    return {.op_context = position,
            .queue_head = head,
            .position = position,
            .kind = contract::CompletionKind::kRx};
  }

  FakeDevice device_;
  std::array<uint8_t, 64> buffers_{};
  MappedRegion region_;
  std::unique_ptr<RxQueue> queue_;
};

TEST_F(DirectRxQueueTest, LeavesWhatNeedsAnAnswerToThePathThatGivesIt) {
  EXPECT_FALSE(Post(0, buffers_.size() + 1));
  for (uint64_t i = 0; i < 1U << contract::kRingLog2Min; ++i) {
    EXPECT_TRUE(Post(i));
  }
  EXPECT_FALSE(Post(9));
  EXPECT_EQ(device_.rung.size(), size_t{1} << contract::kRingLog2Min);
  void* buffer = nullptr;
  // A head that is wrong, and one that is older than what is known.
  EXPECT_FALSE(queue_->TryRetire(Entry(0, 40), &buffer));
  ASSERT_TRUE(queue_->TryRetire(Entry(1, 2), &buffer));
  EXPECT_EQ(buffer, buffers_.data());
  EXPECT_FALSE(queue_->TryRetire(Entry(0, 1), &buffer));
  EXPECT_TRUE(queue_->Retire(Entry(0, 1)).known);
  // Nothing is posted there any more.
  EXPECT_FALSE(queue_->TryRetire(Entry(1, 2), &buffer));
  EXPECT_TRUE(Post(9));
}

TEST_F(DirectRxQueueTest, LeavesCopiesAndCancelledReceivesToTheOtherPath) {
  void* buffer = nullptr;
  const Segment segment = {.address = buffers_.data(), .bytes = 8};
  ASSERT_EQ(
      queue_->PostSegments<backend::Unlocked>({.context = 1}, {&segment, 1}),
      0);
  ASSERT_TRUE(Post(2));
  ASSERT_TRUE(queue_->Cancel<backend::Unlocked>(2));
  EXPECT_FALSE(queue_->TryRetire(Entry(0, 1), &buffer));
  EXPECT_FALSE(queue_->TryRetire(Entry(1, 2), &buffer));
  EXPECT_FALSE(queue_->Cancel<backend::Unlocked>(2));
}

// A queue of the smallest size and the device's side of it. A receive's context
// is its number.
class SmallRxQueue {
 public:
  static constexpr uint32_t kSlots = 1U << contract::kRingLog2Min;

  SmallRxQueue() {
    auto created = RxQueue::Create(
        device_, {.operations = kSlots, .copy_limit_bytes = 64});
    if (created.ok() && created.value()->Bind(device_, 0).ok()) {
      queue_ = std::move(created.value());
    }
  }

  RxQueue* operator->() { return queue_.get(); }
  int Post() {
    const Segment segment = {.address = buffer_.data(), .bytes = 8};
    const int error = queue_->PostSegments<backend::Locked>(
        {.context = posted_, .report = true}, {&segment, 1});
    posted_ += error == 0 ? 1 : 0;
    return error;
  }
  // The message for receive `number` is all here.
  Finished Complete(uint64_t number) {
    const auto position = static_cast<uint16_t>(number);
    return queue_->Retire({.queue_head = static_cast<uint16_t>(position + 1),
                           .position = position,
                           .kind = contract::CompletionKind::kRx});
  }
  // So are those for the next ones, each of which is posted again.
  void Circulate(uint64_t from, uint64_t to) {
    for (uint64_t number = from; number < to; ++number) {
      ASSERT_EQ(Complete(number).context, number);
      ASSERT_EQ(Post(), 0) << number;
    }
  }

 private:
  FakeDevice device_;
  std::array<uint8_t, 8> buffer_{};
  uint64_t posted_ = 0;
  std::unique_ptr<RxQueue> queue_;
};

TEST(RxQueueTest, TakesAsManyReceivesAsItHasSlotsBehindLongMessages) {
  SmallRxQueue queue;
  for (uint32_t i = 0; i < SmallRxQueue::kSlots; ++i) {
    ASSERT_EQ(queue.Post(), 0);
  }
  EXPECT_EQ(queue.Post(), EAGAIN);
  // The messages for receives 0 and 4 stay unfinished while others pass.
  ASSERT_NO_FATAL_FAILURE(queue.Circulate(1, 4));
  ASSERT_NO_FATAL_FAILURE(queue.Circulate(5, 50));
  EXPECT_EQ(queue.Post(), EAGAIN);
  for (const uint64_t number : {4, 0}) {
    const Finished finished = queue.Complete(number);
    EXPECT_TRUE(finished.known);
    EXPECT_TRUE(finished.report);
    EXPECT_EQ(finished.context, number);
    EXPECT_EQ(queue.Post(), 0);
    EXPECT_EQ(queue.Post(), EAGAIN);
  }
  ASSERT_NO_FATAL_FAILURE(queue.Circulate(50, 100));
}

TEST(RxQueueTest, KeepsReceivesApartWhosePositionsAreTheSame) {
  constexpr uint64_t kPositions = 1U << 16U;
  SmallRxQueue queue;
  for (uint32_t i = 0; i < SmallRxQueue::kSlots; ++i) {
    ASSERT_EQ(queue.Post(), 0);
  }
  constexpr uint64_t kLast = kPositions - SmallRxQueue::kSlots;
  ASSERT_NO_FATAL_FAILURE(queue.Circulate(1, kLast + 1));
  ASSERT_EQ(queue.Complete(kLast + 1).context, kLast + 1);
  EXPECT_EQ(queue.Post(), EAGAIN);
  EXPECT_EQ(queue.Complete(0).context, 0);
  EXPECT_EQ(queue.Post(), 0);
  ASSERT_NO_FATAL_FAILURE(queue.Circulate(kLast + 2, kPositions + 10));
}

TEST(RxQueueTest, LosesReceivesThatWereOvertakenFirst) {
  SmallRxQueue queue;
  for (uint32_t i = 0; i < SmallRxQueue::kSlots; ++i) {
    ASSERT_EQ(queue.Post(), 0);
  }
  ASSERT_NO_FATAL_FAILURE(queue.Circulate(2, 4));
  ASSERT_NO_FATAL_FAILURE(queue.Circulate(5, 20));
  for (const uint64_t lost : {0, 1, 4, 20, 21, 22, 23, 24}) {
    const auto entry = queue->FindLost();
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(queue->Retire(*entry).context, lost);
  }
  EXPECT_FALSE(queue->FindLost().has_value());
}

}  // namespace
}  // namespace heddle::nic
