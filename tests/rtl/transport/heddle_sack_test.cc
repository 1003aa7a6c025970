// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "Vsack_probe.h"
#include "gtest/gtest.h"
#include "hw/soft/rules/loss.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

constexpr uint32_t kWindow = 64;

uint64_t Low(uint32_t n) {
  return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
}

class SackTest : public testing::Test {
 protected:
  SackTest() {
    dut_.reorder_i = 3;
    dut_.out_i = kWindow;
    dut_.rst_ni = 0;
    Clock();
    dut_.rst_ni = 1;
    Clock();
  }
  ~SackTest() override { dut_.final(); }

  void Clock() {
    dut_.clk_i = 0;
    dut_.eval();
    dut_.clk_i = 1;
    dut_.eval();
  }

  void Settle() {
    rtl::Drive(dut_.state_i, state_);
    dut_.eval();
  }
  void Take() {
    Settle();
    state_ = rtl::Sample<rtl::Sack>(dut_.state_o);
    Clock();
    dut_.ack_i = dut_.step_i = dut_.lose_i = dut_.trim_i = dut_.pass_i = 0;
  }
  // `base`, as `out_i` and `next_i` of the test, counts from the PSN that is
  // the oldest one after the advance.
  void Ack(uint32_t advance, int32_t base, uint64_t bitmap) {
    const uint8_t out = dut_.out_i;
    const uint8_t next = dut_.next_i;
    const auto moved = [advance](uint32_t position) {
      return static_cast<uint8_t>(std::min(position + advance, kWindow));
    };
    dut_.out_i = moved(out);
    dut_.next_i = moved(next);
    dut_.ack_i = dut_.sack_i = 1;
    dut_.advance_i = static_cast<uint8_t>(advance);
    dut_.base_i = static_cast<uint32_t>(base) + advance;
    dut_.bitmap_i = bitmap;
    dut_.una_i = una_;
    Settle();
    news_ = dut_.news_o;
    left_ = std::popcount(dut_.left_o);
    flight_ = left_;
    Take();
    dut_.out_i = out;
    dut_.next_i = next;
    dut_.advance_i = 0;
    una_ += advance;
    back_ = false;
    while (!dut_.idle_o && !dut_.passed_o) {
      Clock();
    }
    if (dut_.passed_o) {
      Pass(dut_.passed_psn_o - una_);
    }
  }
  // heddle_passed offers this.
  void Pass(uint32_t past) {
    dut_.pass_i = 1;
    dut_.past_i = static_cast<uint8_t>(past);
    dut_.passed_ready_i = 1;
    Settle();
    back_ = dut_.back_o;
    EXPECT_EQ(std::popcount(dut_.left_o), left_);
    flight_ = std::popcount(dut_.flight_o);
    Take();
    dut_.passed_ready_i = 0;
    EXPECT_TRUE(dut_.idle_o);
  }
  void Lose(bool anew) {
    dut_.lose_i = 1;
    dut_.anew_i = anew;
    Take();
  }
  // Returns how many packets this takes out of flight.
  uint32_t Trim(uint32_t at) {
    dut_.trim_i = 1;
    dut_.trim_at_i = static_cast<uint8_t>(at);
    Settle();
    const int lost = std::popcount(dut_.left_o) - std::popcount(dut_.flight_o);
    Take();
    return static_cast<uint32_t>(lost);
  }
  // Passes over all that is out; returns what it sends.
  uint64_t Pass() {
    uint64_t sent = 0;
    for (uint32_t next = 0; next < dut_.out_i; ++next) {
      dut_.next_i = static_cast<uint8_t>(next);
      dut_.step_i = 1;
      Settle();
      if (!dut_.skip_o) {
        sent |= uint64_t{1} << next;
      }
      Take();
    }
    dut_.next_i = dut_.out_i;
    return sent;
  }

  Vsack_probe dut_;
  rtl::Sack state_;
  bool back_ = false, news_ = false;
  int left_ = 0, flight_ = 0;
  uint32_t una_ = 0xffff'ff00;
};

TEST_F(SackTest, OneOf64IsSentAgainOnceAndNothingElse) {
  dut_.next_i = kWindow;
  for (uint32_t arrived = 1; arrived < kWindow; ++arrived) {
    Ack(0, 1, Low(arrived));
    EXPECT_EQ(back_, arrived == 3) << arrived << " arrived";
    if (back_) {
      EXPECT_EQ(Pass(), 1u);
    }
  }
  Ack(kWindow, 1, 0);
  EXPECT_EQ(state_, rtl::Sack());
}

TEST_F(SackTest, WhatWasSentAgainIsLostAnewWhenLaterOnesArrived) {
  dut_.out_i = 20;
  dut_.next_i = 20;
  Ack(0, 1, 0b111);
  ASSERT_TRUE(back_);
  EXPECT_EQ(Pass(), 1u);
  dut_.out_i = 30;
  dut_.next_i = 30;
  Ack(0, 1, Low(19) | Low(2) << 19);  // Two of the round trip.
  EXPECT_FALSE(back_);
  Ack(0, 1, Low(19) | Low(3) << 19);
  EXPECT_TRUE(back_);
  EXPECT_EQ(Pass(), 1u);
}

TEST_F(SackTest, LossesThatThePassHasNotReachedJoinIt) {
  dut_.out_i = 40;
  dut_.next_i = 2;
  state_ = {.held = 0b1110, .lost = 1, .again = 1, .round = 40};
  Ack(0, 1, 0b111 | uint64_t{0b111} << 29);
  EXPECT_FALSE(back_);
  EXPECT_EQ(state_.lost, 30u);
  EXPECT_EQ(Pass(), Low(30) & ~uint64_t{0b1111});
}

TEST_F(SackTest, TimeoutSendsAllThatDidNotArriveAndTheOldestInAnyCase) {
  dut_.out_i = 10;
  state_ = {.held = 0b101, .lost = 4, .again = 4, .round = 10};
  Lose(true);
  EXPECT_EQ(Pass(), Low(10) & ~uint64_t{0b100});
}

TEST_F(SackTest, TargetThatDroppedPacketsGetsThoseNotSentAgainYet) {
  dut_.out_i = 10;
  state_ = {.held = 0b10010, .lost = 2, .again = 2, .round = 10};
  Lose(false);
  EXPECT_EQ(Pass(), Low(10) & ~uint64_t{0b10011});
}

TEST_F(SackTest, TrimmedPacketAloneIsSentAgainEachTime) {
  dut_.out_i = 20;
  dut_.next_i = 20;
  for (const uint32_t at : {7u, 3u, 7u}) {
    EXPECT_EQ(Trim(at), 1u);
    EXPECT_EQ(Trim(at), 0u) << "it waits already";
    EXPECT_EQ(Pass(), 1u << at);
    EXPECT_EQ(Pass(), 0u);
  }
  state_.held = 1 << 5;
  EXPECT_EQ(Trim(5), 0u) << "it arrived";
  EXPECT_EQ(Pass(), 0u);
}

TEST_F(SackTest, TrimmedPacketSentAgainIsNotLostByWhatWasSentBefore) {
  dut_.out_i = 10;
  dut_.next_i = 10;
  Trim(2);
  EXPECT_EQ(Pass(), 1u << 2);
  dut_.out_i = 20;
  dut_.next_i = 20;
  Ack(2, 1, Low(7));  // All behind it of the first ten.
  EXPECT_FALSE(back_);
  EXPECT_EQ(Pass(), 0u);
  Ack(0, 1, Low(7) | Low(3) << 8);  // And three sent after it.
  EXPECT_TRUE(back_);
  EXPECT_EQ(Pass() & 1, 1u);
}

TEST_F(SackTest, TimeoutForgetsWhatWasTrimmed) {
  dut_.out_i = 10;
  dut_.next_i = 10;
  Trim(2);
  Pass();
  Trim(4);
  Lose(true);
  EXPECT_EQ(Pass(), Low(10));
}

// By another way: positions one by one, counted from scratch.
struct Reference {
  rtl::Sack state;
  bool news = false, back = false;
  int left = 0, flight = 0;
};

// The first `out` positions without those that arrived or wait for their
// retransmission.
int Flying(const rtl::Sack& state, uint64_t held, uint32_t out) {
  const uint64_t due =
      (Low(state.lost) & ~Low(state.again) & ~state.tried) | state.told;
  return std::popcount(Low(out) & ~held & ~due);
}

Reference ReferenceAck(const rtl::Sack& before, uint32_t advance, uint32_t out,
                       uint32_t next, uint32_t reorder, int64_t base,
                       uint64_t bitmap) {
  Reference r;
  const auto moved = [advance](uint32_t p) {
    return static_cast<uint8_t>(p > advance ? p - advance : 0);
  };
  r.state = {.lost = moved(before.lost),
             .again = moved(before.again),
             .round = moved(before.round)};
  uint64_t known = 0;
  for (uint32_t p = 0; p + advance < kWindow; ++p) {
    known |= (before.held >> (p + advance) & 1) << p;
  }
  r.state.held = known;
  for (uint32_t p = 0; p + advance < kWindow; ++p) {
    r.state.told |= (before.told >> (p + advance) & 1) << p;
    r.state.tried |= (before.tried >> (p + advance) & 1) << p;
  }
  for (uint32_t i = 0; i < kWindow; ++i) {
    const int64_t p = base + i;
    if ((bitmap >> i & 1) != 0 && p >= 0 && p < out) {
      r.state.held |= uint64_t{1} << p;
    }
  }
  r.news = r.state.held != known;
  r.left = Flying(r.state, r.state.held, out);
  r.state.told &= ~r.state.held;
  r.state.tried &= ~r.state.held;
  const auto lost = [&](uint32_t p) {
    return p + 1 < kWindow &&
           static_cast<uint32_t>(std::popcount(r.state.held >> (p + 1))) >=
               reorder;
  };
  if ((r.state.again != 0 || r.state.tried != 0) &&
      lost(std::max<uint32_t>(r.state.round, 1) - 1)) {
    r.state.again = 0;
    r.state.tried = 0;
    r.state.round = static_cast<uint8_t>(out);
  }
  bool any = false;
  uint8_t end = 0;
  for (uint32_t p = 0; p < kWindow; ++p) {
    if (!lost(p)) {
      continue;
    }
    end = static_cast<uint8_t>(p + 1);
    const uint64_t judged = r.state.held | r.state.told | r.state.tried;
    if ((judged >> p & 1) == 0 && p >= r.state.again) {
      any = true;
      r.back = r.back || p < next;
    }
  }
  if (any) {
    r.state.lost = std::max(r.state.lost, end);
  }
  r.flight = Flying(r.state, r.state.held, out);
  return r;
}

TEST_F(SackTest, AnyAckDoesWhatTheReferenceSays) {
  std::mt19937 rng(TestSeed());
  const auto below = [&rng](uint32_t n) {
    return static_cast<uint32_t>(rng() % n);
  };
  const auto position = [&below](uint32_t n) {
    return static_cast<uint8_t>(below(n));
  };
  for (int round = 0; round < 1'000'000; ++round) {
    const uint32_t top = below(kWindow + 1);
    const uint32_t advance = below(4) == 0 ? below(top + 1) : 0;
    const uint32_t out = top - advance;
    state_.held = (uint64_t{rng()} << 32 | rng()) & Low(top);
    if (below(2) == 0) {
      state_.held &= uint64_t{rng()} << 32 | rng();
    }
    state_.lost = position(top + 1);
    state_.again = below(2) == 0 ? uint8_t{0} : position(state_.lost + 1u);
    state_.round = position(top + 1);
    state_.told = state_.tried = 0;
    if (below(2) == 0) {
      const uint64_t some = uint64_t{rng()} << 32 | rng();
      const uint64_t told = uint64_t{rng()} << 32 | rng();
      state_.told = Low(top) & ~state_.held & some & told;
      state_.tried = Low(top) & ~state_.held & some & ~told;
    }
    dut_.out_i = static_cast<uint8_t>(out);
    dut_.next_i = static_cast<uint8_t>(below(out + 1));
    const uint32_t reorder = below(17);
    dut_.reorder_i = static_cast<uint8_t>(reorder);
    const int32_t base = static_cast<int32_t>(below(140)) - 70;
    const uint64_t bitmap =
        (uint64_t{rng()} << 32 | rng()) & (uint64_t{rng()} << 32 | rng());
    const Reference want =
        ReferenceAck(state_, advance, out, dut_.next_i,
                     std::clamp(reorder, 1u, 15u), base, bitmap);
    Ack(advance, base, bitmap);
    ASSERT_EQ(news_, want.news);
    ASSERT_EQ(back_, want.back);
    ASSERT_EQ(left_, want.left);
    ASSERT_EQ(flight_, want.flight);
    ASSERT_EQ(state_, want.state);
  }
}

// A reported loss leaves in flight what its record then names.
TEST_F(SackTest, FlightAfterAReportedLossIsThatOfTheRecord) {
  std::mt19937 rng(TestSeed());
  const auto below = [&rng](uint32_t n) {
    return static_cast<uint32_t>(rng() % n);
  };
  const auto position = [&below](uint32_t n) {
    return static_cast<uint8_t>(below(n));
  };
  const auto some = [&rng] { return uint64_t{rng()} << 32 | rng(); };
  for (int round = 0; round < 100'000; ++round) {
    const uint32_t out = below(kWindow) + 1;
    state_.held = some() & some() & Low(out);
    state_.lost = position(out + 1);
    state_.again = position(state_.lost + 1u);
    state_.round = position(out + 1);
    state_.told = Low(out) & ~state_.held & some() & some();
    state_.tried = Low(out) & ~state_.held & ~state_.told & some();
    dut_.out_i = dut_.next_i = static_cast<uint8_t>(out);
    if (below(2) == 0) {
      dut_.lose_i = 1;
      dut_.anew_i = below(2) == 0;
    } else {
      dut_.trim_i = 1;
      dut_.trim_at_i = position(out);
    }
    const int left = Flying(state_, state_.held, out);
    Settle();
    ASSERT_EQ(std::popcount(dut_.left_o), left);
    const int flight = std::popcount(dut_.flight_o);
    Take();
    ASSERT_EQ(flight, Flying(state_, state_.held, out));
  }
}

// Each of many PDCs, whatever is in the pipeline and the queue of the others.
TEST_F(SackTest, AcksOfManyPdcsArePassedInOrder) {
  std::mt19937 rng(TestSeed());
  struct Passed {
    uint8_t pdc;
    uint16_t spdcid;
    uint32_t psn;
    bool operator==(const Passed&) const = default;
  };
  std::vector<Passed> want, got;
  bool room = false;
  state_ = {};
  for (int cycle = 0; cycle < 20'000; ++cycle) {
    dut_.ack_i = room && rng() % 4 != 0;
    dut_.pdc_i = static_cast<uint8_t>(rng());
    dut_.spdcid_i = static_cast<uint16_t>(rng());
    dut_.una_i = static_cast<uint32_t>(rng());
    dut_.advance_i = static_cast<uint8_t>(rng() % 4);
    dut_.sack_i = 1;
    dut_.base_i = 0;
    dut_.bitmap_i = rng() % 2 == 0 ? 0 : uint64_t{rng()} << 32 | rng();
    dut_.always_i = rng() % 8 == 0;
    dut_.passed_ready_i = rng() % 3 == 0;
    Settle();
    if (dut_.ack_i) {
      const uint64_t passed = soft::rules::PassedBy(dut_.bitmap_i, 3);
      const auto end = static_cast<uint32_t>(std::bit_width(passed));
      if (dut_.always_i || end > dut_.advance_i) {
        want.push_back({dut_.pdc_i, dut_.spdcid_i, dut_.una_i + end});
      }
    }
    if (dut_.passed_o && dut_.passed_ready_i) {
      got.push_back(
          {dut_.passed_pdc_o, dut_.passed_spdcid_o, dut_.passed_psn_o});
    }
    room = dut_.room_o;
    Clock();
  }
  EXPECT_GT(got.size(), 3'000u);
  want.resize(got.size());  // The last ones are still there.
  EXPECT_EQ(got, want);
}

// Before any retransmission, an ACK_CC makes the same PSNs lost.
TEST_F(SackTest, FirstLossesAreThoseOfTheSoftDevice) {
  namespace rules = soft::rules;
  std::mt19937 rng(TestSeed());
  const auto below = [&rng](uint32_t n) {
    return static_cast<uint32_t>(rng() % n);
  };
  uint32_t losses = 0;
  for (int round = 0; round < 20'000; ++round) {
    const uint32_t out = below(kWindow + 1);
    const uint32_t una = static_cast<uint32_t>(rng());
    state_ = {};
    state_.held = (uint64_t{rng()} << 32 | rng()) & Low(out);
    if (below(2) == 0) state_.held &= uint64_t{rng()} << 32 | rng();
    const uint64_t before = state_.held;
    dut_.out_i = dut_.next_i = static_cast<uint8_t>(out);
    const uint32_t reorder = 1 + below(5);
    dut_.reorder_i = static_cast<uint8_t>(reorder);
    const int32_t base = static_cast<int32_t>(below(140)) - 70;
    const uint64_t bitmap = uint64_t{rng()} << 32 | rng();
    Ack(0, base, bitmap);
    const uint64_t held =
        before | rules::ArrivedBy(bitmap, una + static_cast<uint32_t>(base),
                                  una, rules::LowBits(out));
    ASSERT_EQ(state_.held, held);
    const uint64_t lost =
        rules::PassedBy(held, reorder) & ~held & rules::LowBits(out);
    ASSERT_EQ(back_, lost != 0);
    ASSERT_EQ(Pass(), lost);
    losses += lost != 0;
  }
  EXPECT_GT(losses, 1'000u);
}

}  // namespace
}  // namespace heddle::test
