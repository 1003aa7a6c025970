// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/device/progress_thread.h"

#include <atomic>
#include <cstdint>
#include <semaphore>

#include "gtest/gtest.h"

namespace heddle::sim::device {
namespace {

// One that slept when work came up was woken again and again until it ran: each
// wake was news to the poller that had asked for it.
TEST(ProgressThreadTest, WorkWakesASleeperOnce) {
  std::atomic<int> wakes = 0;
  std::counting_semaphore<> asleep{0};
  std::counting_semaphore<> go_on{0};
  ProgressThread thread("test",
                        {.due = [] { return UINT64_MAX; },
                         .step = [] {},
                         .wakes = [&] { return static_cast<uint32_t>(wakes); },
                         .sleep =
                             [&](uint32_t, uint64_t) {
                               asleep.release();
                               go_on.acquire();
                             },
                         .wake = [&] { ++wakes; }});
  thread.Start();
  asleep.acquire();
  thread.NoteWork(1000);
  thread.NoteWork(1000);
  thread.NoteWork(2000);
  EXPECT_EQ(wakes, 1);
  thread.NoteWork(500);
  EXPECT_EQ(wakes, 2) << "earlier than it was told";
  thread.NoteWork(0);
  thread.NoteWork(0);
  EXPECT_EQ(wakes, 3);
  go_on.release();
  // The next sleep is another.
  asleep.acquire();
  thread.NoteWork(0);
  EXPECT_EQ(wakes, 4);
  go_on.release(1000);
  thread.Stop();
}

// Whoever polls may see the wake before the thread sleeps.
TEST(ProgressThreadTest, WakeBehindTheLastLookAtWorkEndsTheSleep) {
  std::atomic<uint32_t> wakes = 0;
  std::atomic<uint64_t> due = UINT64_MAX;
  std::counting_semaphore<> stepped{0};
  ProgressThread* shared = nullptr;
  bool first = true;
  ProgressThread thread(
      "test", {.due =
                   [&] {
                     const uint64_t before = due;
                     // Work comes up right behind the second look, the last
                     // one.
                     if (!first && before == UINT64_MAX && wakes == 0) {
                       due = 0;
                       shared->NoteWork(0);
                     }
                     first = false;
                     return before;
                   },
               .step =
                   [&] {
                     due = UINT64_MAX;
                     stepped.release();
                   },
               .wakes = [&] { return wakes.load(); },
               .sleep = [&](uint32_t seen, uint64_t) { wakes.wait(seen); },
               .wake =
                   [&] {
                     ++wakes;
                     wakes.notify_all();
                   }});
  shared = &thread;
  thread.Start();
  stepped.acquire();
  thread.Stop();
  EXPECT_GE(wakes, 1U);
}

}  // namespace
}  // namespace heddle::sim::device
