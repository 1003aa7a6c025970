// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "Vheddle_rr_pick.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/queue/rng.h"

namespace heddle::test {
namespace {

constexpr uint32_t kSources = HEDDLE_SOURCES;
using Requests = std::remove_cvref_t<
    decltype(std::declval<sim::model::ClockedModel<Vheddle_rr_pick>&>()
                 ->valid_i)>;
constexpr uint64_t kAll = ~uint64_t{0} >> (64 - kSources);

// The next after `last` in turn, of `valid`, which is not 0.
uint32_t Next(uint64_t valid, uint32_t last) {
  do {
    last = (last + 1) % kSources;
  } while ((valid >> last & 1) == 0);
  return last;
}

TEST(RrPickTest, ChoosesTheNextInTurn) {
  sim::model::ClockedModel<Vheddle_rr_pick> dut;
  Rng rng(Seed(1));
  uint32_t last = kSources - 1;
  for (int cycle = 0; cycle < 100000; ++cycle) {
    // From all to none.
    uint64_t valid = kAll;
    for (uint32_t i = rng() % 8; i > 0; --i) {
      valid &= uint64_t{rng()} << 32 | rng();
    }
    dut->valid_i = static_cast<Requests>(valid);
    dut->take_i = rng() % 2;
    dut.Settle();
    ASSERT_EQ(dut->valid_o, valid != 0);
    if (valid != 0) {
      const uint32_t next = Next(valid, last);
      ASSERT_EQ(dut->idx_o, next) << "last " << last << ", valid " << valid;
      if (dut->take_i) last = next;
    }
    dut.Tick();
  }
}

TEST(RrPickTest, FairToRequestsThatStayThoughOthersComeAndGo) {
  sim::model::ClockedModel<Vheddle_rr_pick> dut;
  Rng rng(Seed(1));
  std::array<uint32_t, kSources> waited{};
  uint64_t staying = 0;
  for (int cycle = 0; cycle < 100000; ++cycle) {
    if (rng() % 8 == 0) {
      staying |= uint64_t{1} << rng() % kSources;
    }
    const uint64_t valid =
        staying | (uint64_t{rng()} << 32 & uint64_t{rng()} << 32 & kAll) |
        (rng() & rng() & kAll);
    dut->valid_i = static_cast<Requests>(valid);
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
        staying &= ~(uint64_t{1} << winner);
      }
    }
    dut.Tick();
  }
}

}  // namespace
}  // namespace heddle::test
