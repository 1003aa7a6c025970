// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <cstdint>

#include "Vheddle_class_pick.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/queue/rng.h"

namespace heddle::test {
namespace {

constexpr uint32_t kSources = 16;
constexpr uint32_t kShare = 3;

class ClassPickTest : public testing::Test {
 protected:
  // Settles with these requests; the source chosen, or kSources.
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

  sim::model::ClockedModel<Vheddle_class_pick> dut_;
};

TEST_F(ClassPickTest, UrgentOnesComeFirstAndTheOthersHaveAShare) {
  constexpr uint16_t kUrgent = 0x00f0;
  EXPECT_NE(Choose(0xffff, kUrgent), kSources);
  Tick(false);
  std::array<uint32_t, kSources> taken = {};
  for (uint32_t i = 0; i < 1000 * (kShare + 1); ++i) {
    const uint32_t chosen = Choose(0xffff, kUrgent);
    ASSERT_NE(chosen, kSources);
    ++taken[chosen];
    Tick(true);
  }
  for (uint32_t source = 0; source < kSources; ++source) {
    const bool urgent = (kUrgent >> source & 1) != 0;
    EXPECT_NEAR(taken[source], urgent ? 1000.0 * kShare / 4 : 1000.0 / 12, 2)
        << source;
  }
}

TEST_F(ClassPickTest, OneClassAloneIsChosenEveryCycle) {
  for (const uint16_t urgent : {uint16_t{0}, uint16_t{0xffff}}) {
    (void)Choose(0x0810, urgent);
    Tick(false);
    for (int i = 0; i < 100; ++i) {
      EXPECT_NE(Choose(0x0810, urgent), kSources) << urgent;
      Tick(true);
    }
    // Requests that fall for the cycle after each choice.
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(Choose(0x0010, urgent), 4U) << urgent;
      Tick(true);
      EXPECT_EQ(Choose(0, urgent), kSources);
      Tick(false);
    }
  }
}

// Whatever comes and goes: only requests are chosen, urgent ones wait for few
// others, and others wait for no more than their share allows.
TEST_F(ClassPickTest, RequestsThatStayAreChosenInTime) {
  Rng rng(Seed(1));
  std::array<uint32_t, kSources> waited = {};
  uint16_t staying = 0;
  uint16_t urgent = 0;
  uint32_t idle =
      0;  // Cycles in a row without a choice, with requests that stay.
  for (int cycle = 0; cycle < 200000; ++cycle) {
    if (cycle % 1000 == 0) {
      urgent = static_cast<uint16_t>(rng() & rng());
      staying = 0;
      waited = {};
    }
    if (rng() % 4 == 0) {
      staying |= static_cast<uint16_t>(1U << rng() % kSources);
    }
    const auto valid = static_cast<uint16_t>(staying | (rng() & rng() & rng()));
    const bool take = rng() % 4 != 0;
    const uint32_t chosen = Choose(valid, urgent);
    if (chosen == kSources) {
      idle = staying == 0 ? 0 : idle + 1;
      ASSERT_LE(idle, 3U) << "cycle " << cycle;
      Tick(false);
      continue;
    }
    idle = 0;
    ASSERT_NE(valid >> chosen & 1, 0) << "chose a source without a request";
    if (take) {
      for (uint32_t source = 0; source < kSources; ++source) {
        const bool waits = source != chosen && (staying >> source & 1) != 0;
        waited[source] = waits ? waited[source] + 1 : 0;
        const auto urgents = static_cast<uint32_t>(std::popcount(urgent));
        const uint32_t limit = (urgent >> source & 1) != 0
                                   ? urgents + urgents / kShare + 2
                                   : (kShare + 1) * kSources;
        ASSERT_LE(waited[source], limit) << "source " << source;
      }
      staying &= static_cast<uint16_t>(~(1U << chosen));
    }
    Tick(take);
  }
}

}  // namespace
}  // namespace heddle::test
