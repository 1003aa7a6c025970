// SPDX-License-Identifier: Apache-2.0
#include "driver/queue/completion_queue.h"

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "driver/queue/doorbells.h"
#include "gtest/gtest.h"
#include "tests/driver/fake_device.h"
#include "tests/seed.h"

namespace heddle {
namespace {

using contract::Completion;

constexpr uint32_t kOffset =
    (contract::kCqPageFirst + 1) * contract::kDoorbellPageBytes;
constexpr uint64_t kArm = uint64_t{1} << 63;

class CompletionQueueTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kEntries = 16;

  CompletionQueueTest()
      : queue_(CompletionQueue::Create(entries_, CqConsumerDoorbell(device_, 1))
                   .value()) {}

  // As the device: the rest of the entry first, its last eight bytes in one.
  void Produce(uint64_t op_context) {
    Completion& entry = entries_[produced_ % kEntries];
    Completion written{.op_context = op_context};
    written.phase = static_cast<uint8_t>((produced_ / kEntries + 1) % 2);
    const auto words = std::bit_cast<std::array<uint64_t, 8>>(written);
    auto* to = reinterpret_cast<uint64_t*>(&entry);
    for (int i = 0; i < 7; ++i) {
      to[i] = words[i];
    }
    __atomic_store_n(&to[7], words[7], __ATOMIC_RELEASE);
    ++produced_;
  }

  FakeDevice device_;
  alignas(4096) std::array<Completion, kEntries> entries_{};
  CompletionQueue queue_;
  uint32_t produced_ = 0;
};

TEST_F(CompletionQueueTest, CreateRefusesSizesAndAlignmentsOutsideTheContract) {
  alignas(4096) static std::array<Completion, 65536> many;
  const auto error = [&](size_t first, size_t count) {
    Result<CompletionQueue> queue =
        CompletionQueue::Create(std::span(many).subspan(first, count), {});
    return queue.ok() ? 0 : static_cast<int>(queue.error());
  };
  EXPECT_EQ(error(0, 8), 0);
  EXPECT_EQ(error(0, 32768), 0);
  EXPECT_EQ(error(0, 4), EINVAL);
  EXPECT_EQ(error(0, 65536), EINVAL);
  EXPECT_EQ(error(0, 24), EINVAL);
  EXPECT_EQ(error(1, 8), EINVAL);
}

TEST_F(CompletionQueueTest, EmptyQueueShowsNothing) {
  EXPECT_EQ(queue_.Peek(), nullptr);
}

TEST_F(CompletionQueueTest, EntryIsShownUntilItIsPopped) {
  Produce(7);
  ASSERT_NE(queue_.Peek(), nullptr);
  EXPECT_EQ(queue_.Peek()->op_context, 7U);
  queue_.Pop();
  EXPECT_EQ(queue_.Peek(), nullptr);
}

TEST_F(CompletionQueueTest, OldEntriesAreNotTakenForNewOnesInLaterPasses) {
  for (uint64_t i = 0; i < uint64_t{10} * kEntries; ++i) {
    ASSERT_EQ(queue_.Peek(), nullptr) << i;
    Produce(i);
    ASSERT_NE(queue_.Peek(), nullptr) << i;
    ASSERT_EQ(queue_.Peek()->op_context, i);
    queue_.Pop();
  }
}

TEST_F(CompletionQueueTest, EntryBehindOneNotYetWrittenIsNotShown) {
  ++produced_;
  Produce(8);
  EXPECT_EQ(queue_.Peek(), nullptr);
}

TEST_F(CompletionQueueTest, CreditsReturnInBatchesOfAQuarter) {
  for (uint64_t i = 0; i < kEntries; ++i) {
    Produce(i);
    queue_.Pop();
  }
  EXPECT_EQ(device_.rung,
            (std::vector<FakeDevice::Rung>{
                {kOffset, 4}, {kOffset, 8}, {kOffset, 12}, {kOffset, 16}}));
}

TEST_F(CompletionQueueTest, RemainingCreditsReturnOnRequestAndOnce) {
  Produce(1);
  queue_.Pop();
  queue_.ReturnCredits();
  queue_.ReturnCredits();
  EXPECT_EQ(device_.rung, (std::vector<FakeDevice::Rung>{{kOffset, 1}}));
}

TEST_F(CompletionQueueTest, ArmCarriesTheCountAndReturnsCredits) {
  Produce(1);
  queue_.Pop();
  queue_.Arm();
  queue_.Arm();
  queue_.ReturnCredits();
  EXPECT_EQ(device_.rung, (std::vector<FakeDevice::Rung>{{kOffset, kArm | 1},
                                                         {kOffset, kArm | 1}}));
}

TEST_F(CompletionQueueTest, PollShowsTheNextEntryAlwaysAfterAnAlert) {
  const auto pass = [&](const Completion* when_empty) {
    for (uint64_t i = 0; i < uint64_t{2} * kEntries; ++i) {
      const Completion* next = &entries_[produced_ % kEntries];
      ASSERT_EQ(queue_.Poll().entry, when_empty == nullptr ? nullptr : next);
      Produce(i);
      ASSERT_EQ(queue_.Poll().entry, next);
      queue_.Pop();
    }
  };
  pass(nullptr);
  queue_.Alert();
  pass(entries_.data());
  EXPECT_EQ(queue_.Peek(), nullptr);
}

// A poller that turns the queue over stores what an alert stores as well.
TEST_F(CompletionQueueTest, AlertOfAnotherThreadIsNotLost) {
  for (int i = 0; i < 50; ++i) {
    SCOPED_TRACE(i);
    CompletionQueue queue =
        CompletionQueue::Create(entries_, CqConsumerDoorbell(device_, 1))
            .value();
    entries_.fill({});
    produced_ = 0;
    std::atomic<bool> alerted = false;
    std::thread other([&] {
      queue.Alert();
      alerted.store(true, std::memory_order_release);
    });
    while (!alerted.load(std::memory_order_acquire)) {
      Produce(0);
      queue.Pop();
    }
    other.join();
    ASSERT_NE(queue.Poll().entry, nullptr);
    ASSERT_EQ(queue.Peek(), nullptr);
  }
}

TEST_F(CompletionQueueTest, UsualEntriesAreThoseOfThisPassOnly) {
  using Usual = CompletionQueue::Usual;
  Produce(1);
  for (const auto kind : {Usual::kFirst, Usual::kSecond}) {
    const auto other = kind == Usual::kFirst ? Usual::kSecond : Usual::kFirst;
    EXPECT_FALSE(queue_.IsUsual(queue_.Poll(), kind));
    queue_.SetUsual(*queue_.Peek(), kind);
    EXPECT_TRUE(queue_.IsUsual(queue_.Poll(), kind));
    EXPECT_FALSE(queue_.IsUsual(queue_.Poll(), other));
    queue_.ClearUsual();
    EXPECT_FALSE(queue_.IsUsual(queue_.Poll(), kind));
  }
  queue_.Alert();
  for (uint64_t i = 0; i < uint64_t{4} * kEntries; ++i) {
    const auto kind = i % 2 == 0 ? Usual::kFirst : Usual::kSecond;
    queue_.SetUsual(*queue_.Peek(), kind);
    EXPECT_TRUE(queue_.IsUsual(queue_.Poll(), kind));
    queue_.Pop();
    EXPECT_FALSE(queue_.IsUsual(queue_.Poll(), kind)) << "not written yet";
    Produce(i);
  }
}

// Run under ThreadSanitizer this also shows that the phase orders the entry.
TEST_F(CompletionQueueTest, EntriesWrittenAreCountedReadOrNot) {
  std::mt19937 random(TestSeed());
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(queue_.CountWritten(), produced_);
    if (random() % 2 == 0 && produced_ - queue_.credits_returned() < kEntries) {
      Produce(produced_);
    } else if (queue_.Peek() != nullptr) {
      queue_.Pop();
    }
    if (random() % 16 == 0) {
      queue_.ReturnCredits();
    }
  }
  EXPECT_GT(produced_, 10 * kEntries);
}

TEST_F(CompletionQueueTest, ConcurrentProducerIsFollowedWithoutLossOrTear) {
  constexpr uint64_t kTotal = 20'000;
  std::atomic<uint32_t> consumed = 0;
  std::thread producer([&] {
    for (uint64_t i = 0; i < kTotal; ++i) {
      while (produced_ - consumed.load(std::memory_order_acquire) >= kEntries) {
        std::this_thread::yield();
      }
      Produce(i * 0x0101010101);
    }
  });
  for (uint64_t i = 0; i < kTotal; ++i) {
    const Completion* entry = queue_.Peek();
    while (entry == nullptr) {
      std::this_thread::yield();
      entry = queue_.Peek();
    }
    EXPECT_EQ(entry->op_context, i * 0x0101010101);
    queue_.Pop();
    consumed.store(queue_.credits_returned(), std::memory_order_release);
  }
  producer.join();
}

}  // namespace
}  // namespace heddle
