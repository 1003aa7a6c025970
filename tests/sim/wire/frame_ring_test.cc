// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire/frame_ring.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>

#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/base/stream_lines.h"

namespace heddle::sim::wire {
namespace {

using Sent = FrameRingProducer::Outcome;
using Got = FrameRingConsumer::Outcome;

// Counts up from `number`, so that a byte out of place shows.
frame::Frame Numbered(size_t bytes, uint8_t number) {
  frame::Frame frame(bytes);
  std::iota(frame.begin(), frame.end(), number);
  return frame;
}

class FrameRingStoresTest
    : public testing::TestWithParam<FrameRingProducer::Stores> {};

TEST_P(FrameRingStoresTest, FramesOfAllSizesComeOutInOrderOverManyWraps) {
  auto memory = std::make_unique<FrameRingMemory>();
  FrameRingProducer producer(memory.get(), 1, GetParam());
  FrameRingConsumer consumer(memory.get());
  base::Random random(1);
  std::deque<frame::Frame> expected;
  uint32_t number = 0;
  uint32_t full = 0;
  for (int step = 0; step < 20000; ++step) {
    if (random.Below(2) == 0) {
      const frame::Frame frame =
          Numbered(14 + random.Below(9203), static_cast<uint8_t>(number));
      const Sent outcome = producer.Push(frame);
      ASSERT_NE(outcome, Sent::kCorrupt);
      producer.Publish();
      if (outcome == Sent::kSent) {
        expected.push_back(frame);
        ++number;
      } else {
        ++full;
      }
    } else {
      frame::Frame frame;
      const Got outcome = consumer.Pop(&frame);
      ASSERT_EQ(outcome == Got::kFrame, !expected.empty());
      if (outcome == Got::kFrame) {
        ASSERT_EQ(frame, expected.front());
        expected.pop_front();
      }
    }
  }
  EXPECT_GT(full, 0u);
  EXPECT_GT(number, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Stores, FrameRingStoresTest,
                         testing::Values(FrameRingProducer::Stores::kCached,
                                         FrameRingProducer::Stores::kStreamed),
                         [](const auto& stores) {
                           return stores.param ==
                                          FrameRingProducer::Stores::kCached
                                      ? "Cached"
                                      : "Streamed";
                         });

class FrameRingStreamedTest : public testing::Test {
 protected:
  bool Pop(size_t bytes, uint8_t number) {
    frame::Frame frame;
    return consumer_.Pop(&frame) == Got::kFrame &&
           frame == Numbered(bytes, number);
  }
  bool IsEmpty() {
    frame::Frame frame;
    return consumer_.Pop(&frame) == Got::kEmpty;
  }

  static constexpr size_t kLong = 4200;
  const std::unique_ptr<FrameRingMemory> memory_ =
      std::make_unique<FrameRingMemory>();
  FrameRingProducer producer_{memory_.get(), 1,
                              FrameRingProducer::Stores::kStreamed};
  FrameRingConsumer consumer_{memory_.get()};
};

TEST_F(FrameRingStreamedTest, LongFramesWaitForPublish) {
  ASSERT_EQ(producer_.Push(Numbered(kLong, 1)), Sent::kSent);
  ASSERT_EQ(producer_.Push(Numbered(kLong, 2)), Sent::kSent);
  // Where nothing is streamed, all is visible at once.
  EXPECT_EQ(consumer_.empty(), base::kStreams);
  producer_.Publish();
  EXPECT_TRUE(Pop(kLong, 1));
  EXPECT_TRUE(Pop(kLong, 2));
  producer_.Publish();
  EXPECT_TRUE(IsEmpty());
}

TEST_F(FrameRingStreamedTest, AShortFramePublishesThoseAheadOfIt) {
  ASSERT_EQ(producer_.Push(Numbered(kLong, 1)), Sent::kSent);
  ASSERT_EQ(producer_.Push(Numbered(100, 2)), Sent::kSent);
  EXPECT_TRUE(Pop(kLong, 1));
  EXPECT_TRUE(Pop(100, 2));
}

TEST_F(FrameRingStreamedTest, AFullRingIsPublished) {
  uint8_t sent = 0;
  while (producer_.Push(Numbered(kLong, sent)) == Sent::kSent) {
    ++sent;
  }
  ASSERT_GT(sent, 50);
  for (uint8_t number = 0; number < sent; ++number) {
    ASSERT_TRUE(Pop(kLong, number)) << int{number};
  }
  EXPECT_TRUE(IsEmpty());
}

TEST(FrameRingTest, NewEndsGoOnWhereOldOnesStopped) {
  auto memory = std::make_unique<FrameRingMemory>();
  ASSERT_EQ(FrameRingProducer(memory.get(), 1).Push(Numbered(100, 1)),
            Sent::kSent);
  ASSERT_EQ(FrameRingProducer(memory.get(), 1).Push(Numbered(100, 2)),
            Sent::kSent);
  frame::Frame frame;
  ASSERT_EQ(FrameRingConsumer(memory.get()).Pop(&frame), Got::kFrame);
  EXPECT_EQ(frame[0], 1);
  ASSERT_EQ(FrameRingConsumer(memory.get()).Pop(&frame), Got::kFrame);
  EXPECT_EQ(frame[0], 2);
  FrameRingProducer(memory.get(), 1).Push(Numbered(100, 3));
  FrameRingConsumer::Discard(memory.get());
  EXPECT_EQ(FrameRingConsumer(memory.get()).Pop(&frame), Got::kEmpty);
}

TEST(FrameRingTest, NonsenseInTheRingIsRecognisedForGood) {
  const auto corrupt_with = [](auto damage) {
    auto memory = std::make_unique<FrameRingMemory>();
    FrameRingProducer producer(memory.get(), 1);
    FrameRingConsumer consumer(memory.get());
    frame::Frame frame;
    producer.Push(Numbered(100, 1));
    damage(*memory);
    EXPECT_EQ(consumer.Pop(&frame), Got::kCorrupt);
    EXPECT_EQ(consumer.Pop(&frame), Got::kCorrupt);
  };
  corrupt_with([](FrameRingMemory& m) { m.tail = kFrameRingBytes * 2; });
  corrupt_with([](FrameRingMemory& m) { m.tail = 8; });
  corrupt_with([](FrameRingMemory& m) { m.tail = UINT64_MAX; });
  corrupt_with([](FrameRingMemory& m) { m.data[3] = 0xff; });  // Length.
  corrupt_with([](FrameRingMemory& m) { m.data[0] = 1; });
  corrupt_with([](FrameRingMemory& m) { m.data[4] ^= 1; });  // Magic.
  corrupt_with([](FrameRingMemory& m) { m.data[8] ^= 1; });  // Position.
}

TEST(FrameRingTest, NonsenseOfAFormerProducerEndsWithIt) {
  for (const uint64_t tail : {uint64_t{8}, kFrameRingBytes * 2 + 7, uint64_t{0},
                              UINT64_MAX, UINT64_MAX - 32}) {
    for (const bool seen : {false, true}) {
      SCOPED_TRACE(testing::Message() << tail << " seen " << seen);
      auto memory = std::make_unique<FrameRingMemory>();
      FrameRingConsumer consumer(memory.get());
      frame::Frame frame;
      FrameRingProducer(memory.get(), 1).Push(Numbered(100, 1));
      ASSERT_EQ(consumer.Pop(&frame), Got::kFrame);
      FrameRingProducer(memory.get(), 1).Push(Numbered(100, 2));
      memory->data[128 + 4] ^= 1;
      memory->tail = tail;
      if (seen) {
        ASSERT_EQ(consumer.Pop(&frame), Got::kCorrupt);
      }
      FrameRingProducer producer(memory.get(), 2);
      // The consumer learns of the new producer, if not by a frame.
      const Sent first = producer.Push(Numbered(100, 3));
      if (first != Sent::kSent) {
        ASSERT_EQ(consumer.Pop(&frame), Got::kEmpty);
        ASSERT_EQ(producer.Push(Numbered(100, 3)), Sent::kSent);
      }
      ASSERT_EQ(consumer.Pop(&frame), Got::kFrame);
      EXPECT_EQ(frame, Numbered(100, 3));
      memory->tail = 8;
      ASSERT_EQ(consumer.Pop(&frame), Got::kCorrupt) << "its own nonsense";
      EXPECT_EQ(consumer.Pop(&frame), Got::kCorrupt);
    }
  }
}

TEST(FrameRingTest, MarksTravelWithTheirFrame) {
  auto memory = std::make_unique<FrameRingMemory>();
  FrameRingProducer producer(memory.get(), 1);
  FrameRingConsumer consumer(memory.get());
  for (uint8_t i = 0; i < 4; ++i) {
    const frame::FrameMarks marks = {.bad_fcs = i % 2 == 1,
                                     .unchecked = i / 2 == 1};
    ASSERT_EQ(producer.Push(Numbered(100, i), marks), Sent::kSent);
  }
  for (uint8_t i = 0; i < 4; ++i) {
    frame::Frame frame;
    frame::FrameMarks marks;
    ASSERT_EQ(consumer.Pop(&frame, &marks), Got::kFrame);
    EXPECT_EQ(frame[0], i);
    EXPECT_EQ(marks.bad_fcs, i % 2 == 1);
    EXPECT_EQ(marks.unchecked, i / 2 == 1);
  }
}

TEST(FrameRingTest, RandomBytesNeverReadOutOfTheRing) {
  auto memory = std::make_unique<FrameRingMemory>();
  base::Random random(3);
  for (int run = 0; run < 300; ++run) {
    for (uint32_t i = 0; i < 64; ++i) {
      memory->data[i] = static_cast<uint8_t>(random.Next());
    }
    memory->head = random.Below(2) == 0 ? 0 : random.Next();
    memory->tail = memory->head + random.Below(400000);
    FrameRingConsumer consumer(memory.get());
    frame::Frame frame;
    EXPECT_NE(consumer.Pop(&frame), Got::kFrame) << "run " << run;
  }
}

TEST(FrameRingTest, ConsumerThatWritesNonsenseStopsTheSender) {
  auto memory = std::make_unique<FrameRingMemory>();
  FrameRingProducer producer(memory.get(), 1);
  memory->head = 12345678;
  // At the latest when the ring would be full.
  Sent outcome = Sent::kSent;
  for (uint64_t bytes = 0; bytes <= kFrameRingBytes && outcome == Sent::kSent;
       bytes += 4000) {
    outcome = producer.Push(Numbered(4000, 1));
  }
  EXPECT_EQ(outcome, Sent::kCorrupt);
}

TEST(FrameRingTest, ProducerThatWaitsIsToldOnceThereIsRoomForSeveral) {
  auto memory = std::make_unique<FrameRingMemory>();
  FrameRingProducer producer(memory.get(), 1);
  FrameRingConsumer consumer(memory.get());
  uint32_t sent = 0;
  while (producer.Push(Numbered(4000, 1)) == Sent::kSent) {
    ++sent;
  }
  producer.Wait();
  uint32_t taken = 0;
  frame::Frame frame;
  while (!consumer.TakeProducerWait()) {
    ASSERT_EQ(consumer.Pop(&frame), Got::kFrame) << "never told";
    ++taken;
  }
  EXPECT_GE(taken, sent / 2 - 1);
  EXPECT_LT(taken, sent);
  EXPECT_FALSE(consumer.TakeProducerWait());
}

TEST(FrameRingTest, WhatIsTakenBeforeTheWaitIsSeenByTheNextPush) {
  auto memory = std::make_unique<FrameRingMemory>();
  FrameRingProducer producer(memory.get(), 1);
  FrameRingConsumer consumer(memory.get());
  while (producer.Push(Numbered(4000, 1)) == Sent::kSent) {
  }
  frame::Frame frame;
  ASSERT_EQ(consumer.Pop(&frame), Got::kFrame);
  ASSERT_FALSE(consumer.TakeProducerWait());
  producer.Wait();
  EXPECT_EQ(producer.Push(Numbered(4000, 1)), Sent::kSent);
}

}  // namespace
}  // namespace heddle::sim::wire
