// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "Vheddle_rod_gap.h"
#include "hw/sim/random.h"
#include "hw/sim/soft/transport/rod_gap.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

// The block beside the soft device's rule: the same answer to every packet.
class RodGapTest : public testing::Test {
 protected:
  // The packet that came `ahead` of the expected one is reported.
  bool Reported(uint32_t ahead, bool retx) {
    dut_.gap_i = gap_;
    dut_.ahead_i = static_cast<uint8_t>(ahead);
    dut_.retx_i = retx;
    dut_.eval();
    gap_ = dut_.gap_o;
    const bool reported = dut_.report_o;
    EXPECT_EQ(reported, soft_.Pass(ahead, retx));
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
  void Accept() {
    gap_ = 0;
    soft_.Close();
  }
  void Refuse() {
    gap_ = 3 << 8;  // `open`, `refused`, `turned`, 7 bits of `last`.
    soft_.Refuse();
  }

 private:
  Vheddle_rod_gap dut_;
  sim::soft::transport::RodGap soft_;
  uint16_t gap_ = 0;
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

TEST_F(RodGapTest, AgreesWithTheSoftDevice) {
  sim::Random random(TestSeed());
  int reports = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (random.Chance(0.02)) Accept();
    if (random.Chance(0.01)) Refuse();
    reports += Reported(1 + random.Below(127), random.Chance(0.7));
  }
  EXPECT_GT(reports, 1000);
}

}  // namespace
}  // namespace heddle::test
