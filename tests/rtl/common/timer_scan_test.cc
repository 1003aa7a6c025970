// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <iostream>
#include <optional>

#include "Vheddle_timer_scan.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle::test {
namespace {

constexpr uint32_t kTimers = 32;
constexpr uint32_t kBanks = 4;
constexpr uint32_t kPass = kTimers / kBanks;

class TimerScanTest : public testing::Test {
 protected:
  struct Timer {
    bool on = false;
    uint32_t at = 0;
  };

  TimerScanTest() {
    uint32_t cycles = 0;
    while (!dut_->ready_o && cycles++ < 2 * kTimers) dut_.Tick();
    EXPECT_TRUE(dut_->ready_o);
    dut_->now_i = now_;
  }

  // Sets a timer in this cycle.
  void Set(uint32_t index, bool on, uint32_t at) {
    dut_->set_i = 1;
    dut_->set_idx_i = static_cast<uint8_t>(index);
    dut_->set_on_i = on;
    dut_->set_at_i = at;
    timers_[index] = {on, at};
  }

  void Tick() {
    dut_.Tick();
    dut_->set_i = 0;
    dut_->take_i = 0;
  }

  // The distance of the first deadline from `now_`.
  std::optional<int32_t> Nearest() const {
    std::optional<int32_t> nearest;
    for (const Timer& timer : timers_) {
      const auto distance = static_cast<int32_t>(timer.at - now_);
      if (timer.on && distance < nearest.value_or(INT32_MAX))
        nearest = distance;
    }
    return nearest;
  }

  void ExpectDeadline() {
    const std::optional<int32_t> nearest = Nearest();
    ASSERT_EQ(dut_->deadline_valid_o, nearest.has_value());
    if (nearest) {
      ASSERT_EQ(static_cast<int32_t>(dut_->deadline_o - now_), *nearest);
    }
  }

  sim::model::ClockedModel<Vheddle_timer_scan> dut_;
  std::array<Timer, kTimers> timers_{};
  uint32_t now_ = 0xfffffff0;  // Times pass zero.
};

TEST_F(TimerScanTest, DeadlineIsThatOfTheTimersWhileClean) {
  constexpr uint64_t kSeed = 3;
  std::cout << "seed " << kSeed << "\n";
  sim::base::Random rng(kSeed);
  uint32_t clean = 0;
  uint32_t idle = 0;
  for (int cycle = 0; cycle < 200000; ++cycle) {
    if (idle == 0) {
      Set(rng.Below(kTimers), rng.Chance(0.3), now_ + 1000 + rng.Below(200));
      idle = rng.Chance(0.3) ? 0 : rng.Below(4 * kPass);
    } else {
      --idle;
    }
    dut_->take_i = 1;
    Tick();
    dut_->now_i = ++now_;
    dut_.Settle();
    if (dut_->clean_o) {
      ++clean;
      ExpectDeadline();
    }
  }
  EXPECT_GT(clean, 10000u);
}

TEST_F(TimerScanTest, CleanAfterTwoPassesWithoutAChange) {
  for (uint32_t phase = 0; phase < kPass; ++phase) {
    for (uint32_t index = 0; index < kTimers; ++index) {
      for (uint32_t i = 0; i < phase; ++i) Tick();
      Set(index, true, now_ + 5000 - index);
      Tick();
      EXPECT_FALSE(dut_->clean_o);
      uint32_t cycles = 0;
      while (!dut_->clean_o && cycles < 10 * kPass) {
        Tick();
        ++cycles;
      }
      EXPECT_LE(cycles, 2 * kPass + 2);
      ExpectDeadline();
      Set(index, false, 0);
      Tick();
    }
  }
}

TEST_F(TimerScanTest, OffersATimerWithinAPassAfterItRanOut) {
  for (uint32_t index = 0; index < kTimers; ++index) {
    Set(index, true, now_ + 3 * kPass);
    for (uint32_t i = 0; i < 3 * kPass; ++i) {
      EXPECT_FALSE(dut_->due_o) << "timer " << index;
      Tick();
      dut_->now_i = ++now_;
    }
    uint32_t cycles = 0;
    while (!dut_->due_o && cycles < 10 * kPass) {
      Tick();
      ++cycles;
    }
    EXPECT_LE(cycles, kPass + 1) << "timer " << index;
    EXPECT_EQ(dut_->due_idx_o, index);
    dut_->get_idx_i = static_cast<uint8_t>(index);
    Set(index, false, 0);
    dut_->take_i = 1;
    Tick();
    EXPECT_FALSE(dut_->get_on_o);  // The write of the same cycle.
  }
}

}  // namespace
}  // namespace heddle::test
