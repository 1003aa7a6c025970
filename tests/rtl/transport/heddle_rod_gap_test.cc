// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "Vheddle_rod_gap.h"
#include "hw/sim/base/random.h"
#include "hw/soft/rules/rod_gap.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

using soft::rules::Trim;

// The block beside the soft device's rule: the same answer to every packet.
class RodGapTest : public testing::Test {
 protected:
  // The packet that came `ahead` of the expected one is reported.
  bool Reported(uint32_t ahead, bool retx, Trim trim = Trim::kNone) {
    dut_.gap_i = gap_;
    dut_.ahead_i = static_cast<uint16_t>(ahead);
    dut_.retx_i = retx;
    dut_.trim_i = static_cast<uint8_t>(trim);
    dut_.psn_i = (expected_ + ahead) & 1023;
    dut_.eval();
    gap_ = dut_.gap_o;
    const bool reported = dut_.report_o;
    EXPECT_EQ(reported, soft_.Pass(ahead, retx, expected_ + ahead, trim));
    return reported;
  }
  // So many of the packets `from` to `to` ahead are.
  int Reports(uint32_t from, uint32_t to, bool retx) {
    int reports = 0;
    for (uint32_t ahead = from; ahead <= to; ++ahead) {
      reports += Reported(ahead, retx);
    }
    return reports;
  }
  // The expected packet; how the next one was trimmed, if that is reported.
  Trim Accept() {
    dut_.gap_i = gap_;
    dut_.psn_i = expected_ & 1023;
    dut_.eval();
    gap_ = dut_.closed_o;
    const auto lost = static_cast<Trim>(dut_.lost_o);
    EXPECT_EQ(lost, soft_.Accept(++expected_));
    if (lost != Trim::kNone) soft_.Open();
    return lost;
  }
  void Refuse() {
    // `open`, `refused`, `turned`, 10 bits of `last`, `lost`, 10 of its PSN.
    gap_ = 3 << 23;
    soft_.Refuse();
  }

 private:
  Vheddle_rod_gap dut_;
  soft::rules::RodGap soft_;
  uint32_t gap_ = 0;
  uint32_t expected_ = 0xffffffc0;
};

TEST_F(RodGapTest, EachPassThatLostTheExpectedPacketIsReportedOnce) {
  EXPECT_TRUE(Reported(1, false));
  EXPECT_EQ(Reports(2, 62, false), 0);
  for (int pass = 0; pass < 4; ++pass) {
    EXPECT_EQ(Reports(1, 20, true), 1) << pass;
  }
  EXPECT_EQ(Reports(30, 63, true), 0) << "the same pass, others lost";
  EXPECT_EQ(Reports(64, 127, false), 0) << "packets that are new";
  EXPECT_EQ(Reports(5, 63, true), 1);
  Accept();
  EXPECT_EQ(Reports(1, 63, true), 1) << "the next gap of this pass";
  EXPECT_EQ(Reports(1, 63, true), 1);
}

TEST_F(RodGapTest, PeerThatSendsAgainWhatIsNamedIsToldOnce) {
  EXPECT_TRUE(Reported(1, false));
  EXPECT_EQ(Reports(2, 62, false), 0);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Reported(1, true)) << i;
  EXPECT_EQ(Reports(64, 70, false), 0);
  EXPECT_FALSE(Reported(1, true));
}

// The sender's window is full, and it has not gone back.
TEST_F(RodGapTest, LostNackIsRepeatedAtTheEndOfTheWindow) {
  EXPECT_TRUE(Reported(1, false));
  EXPECT_EQ(Reports(2, 62, false), 0);
  EXPECT_TRUE(Reported(63, false));
  EXPECT_EQ(Reports(1, 8, true), 1) << "a pass";
  EXPECT_EQ(Reports(9, 62, false), 0);
  EXPECT_TRUE(Reported(63, false));
}

TEST_F(RodGapTest, NothingBehindARefusedPacketIsReported) {
  Refuse();
  EXPECT_EQ(Reports(1, 63, false), 0);
  Refuse();
  EXPECT_EQ(Reports(1, 63, true), 0);
}

// The window lets out three retransmissions, of which the last overtakes.
TEST_F(RodGapTest, TrimmedTailOfAPassIsReportedWhenItIsExpected) {
  for (const Trim trim : {Trim::kPath, Trim::kLasthop}) {
    EXPECT_TRUE(Reported(1, false));
    EXPECT_EQ(Reports(2, 30, false), 0);
    EXPECT_FALSE(Reported(2, true, trim));
    EXPECT_EQ(Accept(), Trim::kNone);
    EXPECT_EQ(Accept(), trim);
    EXPECT_EQ(Reports(1, 20, false), 0) << "it is reported already";
    EXPECT_EQ(Accept(), Trim::kNone);
    EXPECT_EQ(Accept(), Trim::kNone) << "once";
  }
}

TEST_F(RodGapTest, TrimmedPacketThatTheSenderHasGoneBackForIsForgotten) {
  EXPECT_TRUE(Reported(1, false));
  EXPECT_FALSE(Reported(4, false, Trim::kPath)) << "of the pass reported";
  EXPECT_EQ(Reports(5, 30, false), 0);
  EXPECT_FALSE(Reported(3, true, Trim::kPath));
  EXPECT_FALSE(Reported(1, true)) << "another pass";
  EXPECT_TRUE(Reported(2, true)) << "the expected one was lost again";
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Accept(), Trim::kNone) << i;
}

// The sender has not sent it again, and ignores the NACK.
TEST_F(RodGapTest, NackOfAPacketBehindItLeavesTheTrimmedOne) {
  EXPECT_TRUE(Reported(7, true, Trim::kLasthop));
  EXPECT_FALSE(Reported(1, true, Trim::kLasthop));
  EXPECT_TRUE(Reported(9, true, Trim::kLasthop));
  EXPECT_EQ(Accept(), Trim::kLasthop);
}

TEST_F(RodGapTest, AgreesWithTheSoftDevice) {
  sim::base::Random random(TestSeed());
  int reports = 0;
  int lost = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (random.Chance(0.1)) lost += Accept() != Trim::kNone;
    if (random.Chance(0.01)) Refuse();
    const auto trim = static_cast<Trim>(random.Below(3));
    const uint32_t ahead = 1 + random.Below(random.Chance(0.5) ? 4 : 511);
    reports += Reported(ahead, random.Chance(0.7), trim);
  }
  EXPECT_GT(reports, 1000);
  EXPECT_GT(lost, 100);
}

}  // namespace
}  // namespace heddle::test
