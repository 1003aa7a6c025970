// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <cstdint>

#include "Vheddle_class_group_pick.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/queue/rng.h"

namespace heddle::test {
namespace {

constexpr uint32_t kSources = 16;  // In groups of four.
constexpr uint32_t kShare = 3;

class ClassGroupPickTest : public testing::Test {
 protected:
  // Settles with these requests; the source offered, or kSources.
  uint32_t Choose(uint16_t valid, uint16_t urgent) {
    dut_->valid_i = valid;
    dut_->urgent_i = urgent;
    dut_.Settle();
    return dut_->valid_o != 0 ? dut_->idx_o : kSources;
  }
  void Tick(bool take) {
    dut_->take_i = take;
    dut_.Settle();
    dut_.Tick();
  }

  sim::model::ClockedModel<Vheddle_class_group_pick> dut_;
};

TEST_F(ClassGroupPickTest, UrgentOnesComeFirstAndTheOthersHaveAShare) {
  constexpr uint16_t kUrgent = 0x0ff0;
  std::array<uint32_t, kSources> taken = {};
  for (uint32_t takes = 0; takes < 1000 * (kShare + 1);) {
    // A class that fetches its next group offers none for a cycle.
    Choose(0xffff, kUrgent);
    Tick(false);
    const uint32_t chosen = Choose(0xffff, kUrgent);
    if (chosen != kSources) {
      ++taken[chosen];
      ++takes;
    }
    Tick(chosen != kSources);
  }
  for (uint32_t source = 0; source < kSources; ++source) {
    const bool urgent = (kUrgent >> source & 1) != 0;
    EXPECT_NEAR(taken[source], urgent ? 1000.0 * kShare / 8 : 1000.0 / 8, 5)
        << source;
  }
}

TEST_F(ClassGroupPickTest, TheOtherClassFillsTheCycleOfAFetch) {
  constexpr uint16_t kUrgent = 0x0ff0;
  for (int cycle = 0; cycle < 10; ++cycle) {
    Choose(0xffff, kUrgent);
    Tick(false);
  }
  for (int cycle = 0; cycle < 1000; ++cycle) {
    ASSERT_NE(Choose(0xffff, kUrgent), kSources) << "cycle " << cycle;
    Tick(true);
  }
}

TEST_F(ClassGroupPickTest, OneSourceAloneIsOfferedEveryOtherCycle) {
  for (const uint16_t urgent : {uint16_t{0}, uint16_t{0xffff}}) {
    uint32_t takes = 0;
    for (int cycle = 0; cycle < 100; ++cycle) {
      const uint32_t chosen = Choose(0x0800, urgent);
      EXPECT_TRUE(chosen == 11 || chosen == kSources) << chosen;
      takes += chosen == 11 ? 1 : 0;
      Tick(chosen != kSources);
    }
    EXPECT_GE(takes, 49U);
    for (int cycle = 0; cycle < 4; ++cycle) {
      Tick(Choose(0, urgent) != kSources);
    }
  }
}

// Whatever comes and goes: only what requested lately is offered, urgent ones
// wait for few others, and others for no more than their share allows.
TEST_F(ClassGroupPickTest, RequestsThatStayAreChosenInTime) {
  Rng rng(Seed(1));
  std::array<uint32_t, kSources> waited = {};
  std::array<uint16_t, kSources + 4> history = {};  // Requests, newest first.
  uint16_t staying = 0;
  uint16_t urgent = 0;
  uint32_t idle = 0;  // Cycles in a row without an offer, with some that stay.
  for (int cycle = 0; cycle < 200000; ++cycle) {
    if (cycle % 1000 == 0) {
      // The classes change when all has left.
      for (int i = 0; i < 8; ++i) {
        while (Choose(0, urgent) != kSources) Tick(true);
        Tick(false);
      }
      urgent = static_cast<uint16_t>(rng() & rng());
      staying = 0;
      waited = {};
      idle = 0;
      history = {};
    }
    if (rng() % 4 == 0) {
      staying |= static_cast<uint16_t>(1U << rng() % kSources);
    }
    const auto valid = static_cast<uint16_t>(staying | (rng() & rng() & rng()));
    for (size_t i = history.size() - 1; i > 0; --i) history[i] = history[i - 1];
    history[0] = valid;
    const bool take = rng() % 4 != 0;
    const uint32_t chosen = Choose(valid, urgent);
    if (chosen == kSources) {
      idle = staying == 0 ? 0 : idle + 1;
      ASSERT_LE(idle, 6U) << "cycle " << cycle;
      Tick(false);
      continue;
    }
    idle = 0;
    if (take) {
      for (uint32_t source = 0; source < kSources; ++source) {
        const bool waits = source != chosen && (staying >> source & 1) != 0;
        waited[source] = waits ? waited[source] + 1 : 0;
        const auto urgents = static_cast<uint32_t>(std::popcount(urgent));
        const uint32_t limit = (urgent >> source & 1) != 0
                                   ? 2 * (urgents + urgents / kShare + 2)
                                   : 2 * (kShare + 1) * kSources;
        ASSERT_LE(waited[source], limit) << "source " << source;
      }
      staying &= static_cast<uint16_t>(~(1U << chosen));
    }
    Tick(take);
  }
}

}  // namespace
}  // namespace heddle::test
