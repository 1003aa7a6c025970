// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/rx_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "host/lib/nic/locking.h"
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
    ASSERT_EQ(
        queue.Post<Locked>({.context = i + 1, .report = true}, {&segment, 1}),
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

}  // namespace
}  // namespace heddle::nic
