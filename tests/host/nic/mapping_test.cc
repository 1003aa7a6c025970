// SPDX-License-Identifier: Apache-2.0
// Long unregistered buffers: no lock is held while they are mapped or unmapped.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "host/lib/nic/rx_queue.h"
#include "host/lib/nic/tx_queue.h"
#include "tests/driver/fake_device.h"

namespace heddle::nic {
namespace {

using backend::Locked;

constexpr size_t kMapped = 5000;

template <typename Queue>
class MappingTest : public testing::Test {
 protected:
  static constexpr uint32_t kSlots = 1U << contract::kRingLog2Min;

  void SetUp() override {
    if constexpr (std::is_same_v<Queue, TxQueue>) {
      auto made = TxQueue::Create(
          device_, {.operations = kSlots / 2, .copy_limit_bytes = 64},
          &credit_);
      ASSERT_TRUE(made.ok());
      queue_ = std::move(made.value());
    } else {
      auto made = RxQueue::Create(
          device_, {.operations = kSlots, .copy_limit_bytes = 64});
      ASSERT_TRUE(made.ok());
      queue_ = std::move(made.value());
    }
    ASSERT_TRUE(queue_->Bind(device_, 0).ok());
    mapped_before_ = device_.mappings.size();
  }
  int Post(size_t bytes) {
    const Segment segment = {.address = buffer_.data(), .bytes = bytes};
    return queue_->template PostSegments<Locked>({.context = 1}, {&segment, 1});
  }

  FakeDevice device_;
  CqCredit credit_{64};
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(kMapped);
  std::unique_ptr<Queue> queue_;
  size_t mapped_before_ = 0;
};

using Queues = testing::Types<TxQueue, RxQueue>;
TYPED_TEST_SUITE(MappingTest, Queues);

TYPED_TEST(MappingTest, TheLockIsFreeDuringTheSystemCall) {
  int calls = 0;
  this->device_.on_map = [&] {
    ++calls;
    ASSERT_TRUE(this->queue_->lock().try_lock());
    this->queue_->lock().unlock();
  };
  EXPECT_EQ(this->Post(kMapped), 0);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(this->queue_->lock().try_lock()) << "free after the post";
  this->queue_->lock().unlock();
}

// By a post that finds its slot taken after the system call.
TYPED_TEST(MappingTest, TheLockIsFreeWhenAMappingEnds) {
  int calls = 0;
  this->device_.on_map = [&] {
    while (this->Post(8) == 0) {
    }
  };
  this->device_.on_unmap = [&] {
    ++calls;
    ASSERT_TRUE(this->queue_->lock().try_lock());
    this->queue_->lock().unlock();
  };
  EXPECT_EQ(this->Post(kMapped), EAGAIN);
  EXPECT_EQ(calls, 1);
  this->device_.on_map = this->device_.on_unmap = nullptr;
}

// Another thread takes the last slot, or the device fails.
TYPED_TEST(MappingTest, WhatHappensDuringTheSystemCallCounts) {
  this->device_.on_map = [&] {
    if (!this->queue_->lock().try_lock()) {
      FAIL() << "the post holds the lock";
    }
    this->queue_->lock().unlock();
    while (this->Post(8) == 0) {
    }
  };
  EXPECT_EQ(this->Post(kMapped), EAGAIN);
  EXPECT_EQ(this->device_.mappings.size(), this->mapped_before_);
  this->device_.on_map = nullptr;
  (void)this->queue_->FindLost();
  EXPECT_EQ(this->Post(kMapped), EIO);
}

TYPED_TEST(MappingTest, AFailureDuringTheSystemCallEndsThePost) {
  this->device_.on_map = [&] { (void)this->queue_->FindLost(); };
  EXPECT_EQ(this->Post(kMapped), EIO);
  EXPECT_EQ(this->device_.mappings.size(), this->mapped_before_);
}

}  // namespace
}  // namespace heddle::nic
