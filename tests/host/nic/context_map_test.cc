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
  EXPECT_EQ(map.Find(EntryOf(7)), nullptr);
  map.Attach(low);
  map.Attach(high);
  EXPECT_EQ(map.FindAlone(EntryOf(7)), &low);
  EXPECT_EQ(map.FindAlone(EntryOf(0x3ff)), &high);
  EXPECT_EQ(map.Find(EntryOf(8)), nullptr);
}

TEST(ContextMapTest, ThoseOfOneLowByteAreToldApart) {
  ContextMap<Queue> map;
  Queue queues[] = {Queue(5), Queue(0x105), Queue(0x205), Queue(0x305)};
  for (Queue& queue : queues) {
    map.Attach(queue);
  }
  for (Queue& queue : queues) {
    EXPECT_EQ(map.FindAlone(EntryOf(queue.context())), nullptr);
    EXPECT_EQ(map.Find(EntryOf(queue.context())), &queue);
  }
  EXPECT_EQ(map.Find(EntryOf(0x405)), nullptr);
  map.Detach(queues[1]);
  EXPECT_EQ(map.Find(EntryOf(0x105)), nullptr);
  EXPECT_EQ(map.Find(EntryOf(0x205)), &queues[2]);
  map.Remove(queues[1]);
  EXPECT_EQ(map.Find(EntryOf(0x305)), &queues[3]);
}

TEST(ContextMapTest, UnreadEntriesOfADetachedQueueAreNotTheNextOnes) {
  ContextMap<Queue> map;
  Queue gone(5);
  Queue next(0x105);
  map.Attach(gone);
  map.Detach(gone);
  map.Attach(next);
  EXPECT_EQ(map.FindAlone(EntryOf(5)), nullptr);
  EXPECT_EQ(map.Find(EntryOf(5)), nullptr);
  EXPECT_EQ(map.Find(EntryOf(0x105)), &next);
  map.Remove(gone);
  map.Detach(next);
  map.Remove(next);
  map.Attach(next);
  EXPECT_EQ(map.FindAlone(EntryOf(0x105)), &next);
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
