// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/tx_queue.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/host/nic/played_queue.h"

namespace heddle::nic {
namespace {

using contract::Status;

constexpr uint32_t kPeer = 1;
constexpr size_t kMapped = 5000;

class TxQueueTest : public testing::Test {
 protected:
  ContextModel::Operation* Oldest() { return queue_.model().UnderWay().at(0); }

  // Sends of which nobody hears, each done before the next.
  void SendSilently(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(queue_.Post(kPeer, 8, /*asked=*/false), 0) << i;
      ASSERT_NO_FATAL_FAILURE(queue_.End(Oldest()));
    }
  }

  PlayedQueue queue_{/*spill=*/false};
  const uint32_t slots_ = 1U << queue_->ring_log2();
};

TEST_F(TxQueueTest, FailureThatNobodyAskedForMayBeReadAnyNumberOfSlotsLater) {
  for (uint32_t later = 0; later < 5 * slots_; later += slots_ / 4) {
    SCOPED_TRACE(later);
    ASSERT_EQ(queue_.Post(kPeer, 8, /*asked=*/false), 0);
    ASSERT_NO_FATAL_FAILURE(queue_.End(Oldest(), Status::kPeerUnreachable));
    ASSERT_NO_FATAL_FAILURE(SendSilently(later));
    ASSERT_EQ(queue_.model().completions.size(), 1U);
    ASSERT_NO_FATAL_FAILURE(queue_.PollAll());
    EXPECT_EQ(queue_.outstanding(), 0U);
  }
  EXPECT_EQ(queue_.Post(kPeer, 8, /*asked=*/false), 0);
}

TEST_F(TxQueueTest, FailureThatIsReadLateFreesNothingOfItsSlotsNextUser) {
  ASSERT_EQ(queue_.Post(kPeer, kMapped, /*asked=*/false), 0);
  ASSERT_NO_FATAL_FAILURE(queue_.End(Oldest(), Status::kPeerUnreachable));
  ASSERT_NO_FATAL_FAILURE(SendSilently(slots_ - 1));
  ASSERT_EQ(queue_.Post(kPeer, kMapped, /*asked=*/true), 0);
  const uint64_t iova = Oldest()->descriptor.local_iova;
  ASSERT_NO_FATAL_FAILURE(queue_.PollAll());
  EXPECT_TRUE(queue_.IsMapped(iova));
  ASSERT_NO_FATAL_FAILURE(queue_.End(Oldest()));
  ASSERT_NO_FATAL_FAILURE(queue_.PollAll());
  EXPECT_FALSE(queue_.IsMapped(iova));
  EXPECT_EQ(queue_.outstanding(), 0U);
}

// The device tells the head by completions alone.
TEST_F(TxQueueTest, RingOfFailuresThatNobodyAskedForIsFreeOnceTheyAreRead) {
  for (uint32_t round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    for (uint32_t i = 0; i < slots_; ++i) {
      ASSERT_EQ(queue_.Post(kPeer, 8, /*asked=*/false), 0) << i;
    }
    EXPECT_EQ(queue_.Post(kPeer, 8, /*asked=*/false), EAGAIN);
    for (uint32_t i = 0; i < slots_; ++i) {
      ASSERT_NO_FATAL_FAILURE(queue_.End(Oldest(), Status::kPeerUnreachable));
    }
    ASSERT_NO_FATAL_FAILURE(queue_.PollAll());
    EXPECT_EQ(queue_.outstanding(), 0U);
  }
}

}  // namespace
}  // namespace heddle::nic
