// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/context_map.h"

#include <vector>

#include "gtest/gtest.h"

namespace heddle::nic {
namespace {

class Queue {
 public:
  explicit Queue(uint32_t context) : context_(context) {}
  uint32_t context() const { return context_; }
  ContextLink<Queue>& link() { return link_; }

 private:
  uint32_t context_;
  ContextLink<Queue> link_;
};

contract::Completion EntryOf(uint32_t context) {
  return {.context = contract::LowByte(context),
          .context_high = contract::HighByte(context)};
}

TEST(ContextMapTest, OneAloneIsFoundAtOnce) {
  ContextMap<Queue> map;
  Queue low(7);
  Queue high(0x3ff);
  EXPECT_EQ(map.Find(EntryOf(7), 0), nullptr);
  map.Attach(low);
  map.Attach(high);
  EXPECT_EQ(map.FindAlone(EntryOf(7)), &low);
  EXPECT_EQ(map.FindAlone(EntryOf(0x3ff)), &high);
  EXPECT_EQ(map.Find(EntryOf(8), 0), nullptr);
}

TEST(ContextMapTest, ThoseOfOneLowByteAreToldApart) {
  ContextMap<Queue> map;
  Queue queues[] = {Queue(5), Queue(0x105), Queue(0x205), Queue(0x305)};
  for (Queue& queue : queues) {
    map.Attach(queue);
  }
  for (Queue& queue : queues) {
    EXPECT_EQ(map.FindAlone(EntryOf(queue.context())), nullptr);
    EXPECT_EQ(map.Find(EntryOf(queue.context()), 0), &queue);
  }
  EXPECT_EQ(map.Find(EntryOf(0x405), 0), nullptr);
  map.Detach(queues[1]);
  EXPECT_EQ(map.Find(EntryOf(0x105), 0), nullptr);
  EXPECT_EQ(map.Find(EntryOf(0x205), 0), &queues[2]);
  map.Remove(queues[1], 0);
  EXPECT_EQ(map.Find(EntryOf(0x305), 0), &queues[3]);
}

TEST(ContextMapTest, UnreadEntriesOfADetachedQueueAreNotTheNextOnes) {
  ContextMap<Queue> map;
  Queue gone(5);
  Queue next(0x105);
  map.Attach(gone);
  map.Detach(gone);
  map.Attach(next);
  EXPECT_EQ(map.FindAlone(EntryOf(5)), nullptr);
  EXPECT_EQ(map.Find(EntryOf(5), 0), nullptr);
  EXPECT_EQ(map.Find(EntryOf(0x105), 0), &next);
  map.Remove(gone, 0);
  map.Detach(next);
  map.Remove(next, 0);
  map.Attach(next);
  EXPECT_EQ(map.Find(EntryOf(0x105), 0), &next);
  EXPECT_EQ(map.FindAlone(EntryOf(0x105)), &next);
}

TEST(ContextMapTest, UnreadEntriesOfAFormerQueueAreNotThoseOfItsNumbersNext) {
  ContextMap<Queue> map;
  Queue former(5);
  Queue next(5);
  Queue other(0x105);
  map.Attach(former);
  map.Detach(former);
  map.Remove(former, 40);
  map.Attach(next);
  EXPECT_EQ(map.FindAlone(EntryOf(5)), nullptr);
  EXPECT_EQ(map.Find(EntryOf(5), 39), nullptr);
  EXPECT_EQ(map.FindAlone(EntryOf(5)), nullptr);
  // The first of its own: none of the former's is left.
  EXPECT_EQ(map.Find(EntryOf(5), 40), &next);
  EXPECT_EQ(map.FindAlone(EntryOf(5)), &next);
  map.Detach(next);
  map.Remove(next, 60);
  map.Attach(other);
  EXPECT_EQ(map.Find(EntryOf(0x105), 50), &other);
  EXPECT_EQ(map.FindAlone(EntryOf(0x105)), nullptr);
}

TEST(ContextMapTest, OneMayAskNotToBeFoundAtOnce) {
  ContextMap<Queue> map;
  Queue queue(5);
  map.Attach(queue, /*at_once=*/false);
  EXPECT_EQ(map.FindAlone(EntryOf(5)), nullptr);
  EXPECT_EQ(map.Find(EntryOf(5), 0), &queue);
}

TEST(ContextMapTest, VisitEndsWithTheFirstThatSaysSo) {
  ContextMap<Queue> map;
  Queue queues[] = {Queue(1), Queue(0x101), Queue(2)};
  for (Queue& queue : queues) {
    map.Attach(queue);
  }
  map.Detach(queues[0]);
  std::vector<uint32_t> seen;
  map.VisitUntil([&](const Queue& queue) {
    seen.push_back(queue.context());
    return false;
  });
  EXPECT_EQ(seen, (std::vector<uint32_t>{0x101, 2}));
  seen.clear();
  map.VisitUntil([&](const Queue& queue) {
    seen.push_back(queue.context());
    return true;
  });
  EXPECT_EQ(seen, std::vector<uint32_t>{0x101});
}

}  // namespace
}  // namespace heddle::nic
