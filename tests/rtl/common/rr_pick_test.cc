// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>

#include "Vheddle_rr_pick.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/queue/rng.h"

namespace heddle::test {
namespace {

constexpr uint32_t kSources = 16;

TEST(RrPickTest, FairToRequestsThatStayThoughOthersComeAndGo) {
  sim::model::ClockedModel<Vheddle_rr_pick> dut;
  Rng rng(Seed(1));
  std::array<uint32_t, kSources> waited{};
  uint32_t staying = 0;
  for (int cycle = 0; cycle < 100000; ++cycle) {
    if (rng() % 8 == 0) {
      staying |= 1u << rng() % kSources;
    }
    const uint32_t valid = staying | (rng() & rng() & 0xffff);
    dut->valid_i = static_cast<uint16_t>(valid);
    dut->take_i = rng() % 2;
    dut.Settle();
    ASSERT_EQ(dut->valid_o, valid != 0);
    if (valid != 0) {
      const uint32_t winner = dut->idx_o;
      ASSERT_TRUE(valid >> winner & 1) << "chose what nobody asked";
      if (dut->take_i) {
        for (uint32_t s = 0; s < kSources; ++s) {
          const bool waiting = s != winner && (staying >> s & 1);
          waited[s] = waiting ? waited[s] + 1 : 0;
          ASSERT_LT(waited[s], kSources) << "source " << s;
        }
        staying &= ~(1u << winner);
      }
    }
    dut.Tick();
  }
}

}  // namespace
}  // namespace heddle::test
