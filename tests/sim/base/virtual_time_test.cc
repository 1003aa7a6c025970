// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/virtual_time.h"

#include <gtest/gtest.h>

#include <vector>

namespace heddle::sim::base {
namespace {

// Does one thing at a time, each when it is due.
class Worker final : public VirtualTime::Worker {
 public:
  Worker(VirtualTime* time, std::vector<uint64_t> due)
      : time_(time), due_(std::move(due)) {
    time_->Join(this);
  }
  ~Worker() { time_->Leave(this); }

  uint64_t due_ns() const override {
    return worked_.size() < due_.size() ? due_[worked_.size()] : UINT64_MAX;
  }
  void Work() override { worked_.push_back(time_->now_ns()); }

  const std::vector<uint64_t>& worked() const { return worked_; }

 private:
  VirtualTime* const time_;
  const std::vector<uint64_t> due_;
  std::vector<uint64_t> worked_;
};

constexpr uint64_t kStart = VirtualTime::kStartNs;
constexpr uint64_t kTurn = VirtualTime::kTurnNs;

TEST(VirtualTimeTest, JumpsToWhatIsDueFirst) {
  VirtualTime time;
  const TimeSource source = time.source();
  Worker late(&time, {kStart + 7'000'000'000});
  Worker early(&time, {kStart + 5'000});
  EXPECT_EQ(time.RunNext(UINT64_MAX), &early);
  EXPECT_EQ(source.now_ns(), kStart + 5'000 + kTurn);
  EXPECT_EQ(time.RunNext(UINT64_MAX), &late);
  EXPECT_EQ(late.worked(), std::vector{kStart + 7'000'000'000});
}

TEST(VirtualTimeTest, GoesNoFurtherThanAsked) {
  VirtualTime time;
  Worker worker(&time, {kStart + 5'000});
  EXPECT_EQ(time.RunNext(kStart + 4'999), nullptr);
  EXPECT_EQ(time.now_ns(), kStart + 4'999);
  EXPECT_TRUE(worker.worked().empty());
  EXPECT_EQ(time.RunNext(kStart), nullptr) << "what has passed";
  EXPECT_EQ(time.now_ns(), kStart + 4'999);
}

TEST(VirtualTimeTest, WorkersThatAreDueTakeTurnsAndTimePasses) {
  VirtualTime time;
  Worker one(&time, {0, 0, 0});
  Worker other(&time, {0, 0, 0});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(time.RunNext(UINT64_MAX - 1), &one);
    EXPECT_EQ(time.RunNext(UINT64_MAX - 1), &other);
  }
  EXPECT_EQ(one.worked(),
            (std::vector{kStart, kStart + 2 * kTurn, kStart + 4 * kTurn}));
}

TEST(VirtualTimeTest, PauseEndsWithTheWorkOfTheWorkerNamed) {
  VirtualTime time;
  Worker other(&time, {kStart + 10});
  Worker own(&time, {kStart + 1'000});
  time.Pause(&own, kStart + 9'000);
  EXPECT_EQ(time.now_ns(), kStart + 1'000 + kTurn);
  EXPECT_EQ(other.worked().size(), 1U);
  time.Pause(&own, kStart + 9'000);
  EXPECT_EQ(time.now_ns(), kStart + 9'000);
}

TEST(VirtualTimeTest, APauserTakesTheCall) {
  VirtualTime time;
  Worker worker(&time, {0});
  uint64_t asked_ns = 0;
  time.set_pauser([&](const VirtualTime::Worker* whose, uint64_t until_ns) {
    EXPECT_EQ(whose, &worker);
    asked_ns = until_ns;
  });
  time.Pause(&worker, 77);
  EXPECT_EQ(asked_ns, 77U);
  EXPECT_TRUE(worker.worked().empty());
}

}  // namespace
}  // namespace heddle::sim::base
