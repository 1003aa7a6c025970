// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <random>

#include "Vheddle_flight.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

constexpr uint32_t kWindow = 64;

class FlightTest : public testing::Test {
 protected:
  FlightTest() {
    for (int i = 0; i < 300 && !dut_->ready_o; ++i) {
      dut_.Tick();
    }
    dut_->limited_i = 1;
  }

  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(rng_() % n); }
  bool Closed(uint32_t pdc) const {
    return (dut_->closed_o[pdc / 32] >> pdc % 32 & 1) != 0;
  }

  mutable sim::model::ClockedModel<Vheddle_flight> dut_;
  std::mt19937 rng_{TestSeed()};
};

// Events of any kind in a row, of few PDCs, against numbers kept one by one.
TEST_F(FlightTest, AnyEventsAreCountedAndReported) {
  constexpr uint32_t kPdcs = 5;
  std::array<uint32_t, kPdcs> flight = {};
  std::array<bool, kPdcs> closed = {};
  struct Report {
    bool rule = false;
    bool event = false;
    uint32_t pdc = 0, packets = 0, lost = 0;
    bool closes = false;
  };
  Report last, later;  // Two cycles ago; one cycle ago.
  uint32_t looked = 0;
  std::array<uint32_t, kPdcs> seen = {};  // Without the event in the pipeline.
  uint32_t closures = 0;
  for (int cycle = 0; cycle < 200'000; ++cycle) {
    // The event of two cycles before has these consequences.
    dut_.Settle();
    ASSERT_EQ(dut_->event_o, last.event);
    ASSERT_EQ(dut_->rule_o, last.rule);
    if (last.rule) {
      const auto rule = rtl::Sample<rtl::NsccEvent>(dut_->rule_event_o);
      ASSERT_EQ(rule.pdc, last.pdc);
      ASSERT_EQ(rule.packets, last.packets);
      ASSERT_EQ(rule.lost, last.lost);
    }
    if (last.event) {
      ASSERT_EQ(dut_->pdc_o, last.pdc);
      ASSERT_EQ(dut_->closes_o, last.closes);
    }
    ASSERT_EQ(dut_->flight_o, seen[looked]) << "of PDC " << looked;
    for (uint32_t pdc = 0; pdc < kPdcs; ++pdc) {
      if (!last.event || pdc != last.pdc) {
        ASSERT_EQ(Closed(pdc), closed[pdc]);
      }
    }
    if (last.event) {
      closures += last.closes && !closed[last.pdc];
      closed[last.pdc] = last.closes;
    }
    seen = flight;

    Report report;
    rtl::NsccEvent rule;
    const uint32_t pdc = Below(kPdcs);
    const uint32_t before = flight[pdc];
    const uint32_t allowed = 1 + Below(kWindow);
    uint32_t after = before;
    const bool sent = before < kWindow && Below(2) == 0;
    const bool fixed = Below(4) == 0;
    const bool counted = !sent && Below(3) == 0;
    const bool limited = Below(8) != 0;
    const uint64_t some = uint64_t{rng_()} << 32 | rng_();
    const uint64_t left = before == 0
                              ? 0
                              : some & (uint64_t{rng_()} << 32 | rng_()) &
                                    (~uint64_t{0} >> (kWindow - before));
    const uint64_t now = left & (Below(4) == 0 ? left : some << 1);
    const auto out =
        static_cast<uint32_t>(static_cast<int32_t>(Below(180)) - 20);
    report.event = Below(4) != 0;
    report.pdc = pdc;
    if (sent) after = before + 1;
    if (counted) after = static_cast<uint32_t>(std::popcount(now));
    if (fixed) {
      after = static_cast<uint32_t>(std::clamp(static_cast<int32_t>(out), 0,
                                               static_cast<int32_t>(kWindow)));
    }
    const bool keep = Below(8) == 0 && closed[pdc];
    report.closes = limited && (keep || (after != 0 && after >= allowed));
    const bool one = Below(4) == 0;
    const bool all = !one && Below(4) == 0;
    rule.pdc = static_cast<uint8_t>(pdc);
    rule.timeout = Below(4) == 0;
    // An ACK does not add to what is in flight.
    rule.ack =
        !rule.timeout && !sent && Below(2) == 0 && (counted || after <= before);
    report.rule = report.event && Below(2) == 0;
    if (rule.ack) {
      report.packets =
          before -
          (counted ? static_cast<uint32_t>(std::popcount(left)) : after);
    }
    if (rule.timeout) {
      report.lost = 0;
    } else if (counted) {
      report.lost =
          static_cast<uint32_t>(std::popcount(left) - std::popcount(now));
    } else {
      report.lost = one ? 1 : all ? before : 0;
    }
    dut_->event_i = report.event;
    dut_->pdc_i = static_cast<uint8_t>(pdc);
    dut_->limited_i = limited;
    dut_->allowed_i = static_cast<uint8_t>(allowed);
    dut_->sent_i = sent;
    dut_->counted_i = counted;
    dut_->left_i = left;
    dut_->flight_i = now;
    dut_->keep_i = keep;
    dut_->fixed_i = fixed;
    dut_->out_i = out;
    dut_->rule_i = report.rule;
    rtl::Drive(dut_->rule_event_i, rule);
    dut_->lost_one_i = one;
    dut_->lost_all_i = all;
    looked = Below(kPdcs);
    dut_->look_pdc_i = static_cast<uint8_t>(looked);
    if (report.event) {
      flight[pdc] = after;
    }
    last = later;
    later = report;
    dut_.Tick();
  }
  EXPECT_GT(closures, 1000u);
}

}  // namespace
}  // namespace heddle::test
