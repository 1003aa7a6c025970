// SPDX-License-Identifier: Apache-2.0
// Peers that begin anew, and PDCs that are closed by order.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rtl/records.h"
#include "tests/rtl/initiator/initiator_bench.h"
#include "tests/seed.h"

namespace heddle {
namespace {

using contract::ReturnCode;
using contract::Status;

constexpr uint32_t kPacket = 1024;
constexpr uint32_t kDue = rtl::kReturnDue;
constexpr uint32_t kPeer = 7;
constexpr uint16_t kBadMkey = static_cast<uint16_t>(ReturnCode::kBadMkey);

// The PDC to the peer is open.
class RestartTest : public testing::Test {
 protected:
  explicit RestartTest(bool rud) : bench_(1) {
    bench_.rud = rud;
    bench_.Post(kPeer, 8);
    EXPECT_TRUE(bench_.Run(2000));
  }
  void TearDown() override {
    for (const std::string& error : bench_.errors) {
      ADD_FAILURE() << error;
    }
  }
  void PostWrite(uint32_t length) {
    bench_.Post(kPeer, length);
    bench_.messages.back().write = true;
  }
  void Pass(uint64_t cycles) {
    for (uint64_t i = 0; i < cycles; ++i) {
      bench_.Cycle();
    }
  }
  void CloseAll() {
    bench_->close_i = 1;
    bench_.Cycle();
    bench_->close_i = 0;
  }
  void ExpectStatus(size_t message, Status status, uint16_t detail = 0) {
    const PostedMessage& m = bench_.messages[message];
    EXPECT_EQ(m.completions, 1) << "message " << message;
    EXPECT_EQ(m.status, status) << "message " << message;
    EXPECT_EQ(m.detail, detail) << "message " << message;
  }

  InitiatorBench bench_;
};

class InitiatorRestartTest : public RestartTest,
                             public testing::WithParamInterface<bool> {
 protected:
  InitiatorRestartTest() : RestartTest(/*rud=*/GetParam()) {}
};

class InitiatorRestartRudTest : public RestartTest {
 protected:
  InitiatorRestartRudTest() : RestartTest(/*rud=*/true) {}
};

INSTANTIATE_TEST_SUITE_P(, InitiatorRestartTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& mode) {
                           return mode.param ? "Rud" : "Rod";
                         });

// Whatever the former target had of them, and whatever was sent twice.
TEST_P(InitiatorRestartTest, SendsGoAgainWhole) {
  uint32_t opened = 1;
  for (uint32_t known = 1; known < 50; ++known) {
    SCOPED_TRACE(known);
    const size_t first = bench_.messages.size();
    if (known % 2 == 0) {
      bench_.lose = {bench_.packets_seen + 5, bench_.packets_seen + 20};
    }
    bench_.Post(kPeer, 50 * kPacket);
    bench_.Post(kPeer, 8);
    bench_.Post(kPeer, 3 * kPacket);
    while (bench_.messages[first].delivered() < known) {
      bench_.Cycle();
    }
    bench_.Restart(kPeer);
    ASSERT_TRUE(bench_.Run(20000));
    for (size_t i = first; i < bench_.messages.size(); ++i) {
      ExpectStatus(i, Status::kOk);
      EXPECT_TRUE(bench_.messages[i].delivered() ==
                      bench_.messages[i].packets ||
                  bench_.messages[i].had_whole);
    }
    EXPECT_EQ(bench_.opened, ++opened);
    EXPECT_EQ(bench_.restarts_seen, known);
  }
}

// Whenever it comes, also between the SYNs of one window: refusals of those
// that are late are not about the PDC that an ACK opened.
TEST_P(InitiatorRestartTest, SendsGoAgainWholeWhenTheTargetIsReset) {
  for (uint32_t after = 0; after < 200; ++after) {
    SCOPED_TRACE(after);
    InitiatorBench bench(after);
    bench.rud = GetParam();
    for (int i = 0; i < 30; ++i) {
      bench.Post(kPeer, i % 3 == 0 ? 3 * kPacket : 8);
    }
    for (uint32_t i = 0; i < after; ++i) {
      bench.Cycle();
    }
    bench.Reset(kPeer);
    ASSERT_TRUE(bench.Run(20000));
    for (const PostedMessage& m : bench.messages) {
      EXPECT_EQ(m.completions, 1);
      EXPECT_EQ(m.status, Status::kOk);
    }
    for (const std::string& error : bench.errors) {
      ADD_FAILURE() << error;
    }
  }
}

TEST_P(InitiatorRestartTest, PdcOpensAgainWhileItBacksOffOrTimesOut) {
  uint32_t opened = 1;
  for (const bool silent : {false, true}) {
    const size_t first = bench_.messages.size();
    bench_.targets[kPeer].refuses = !silent;
    bench_.targets[kPeer].silent = silent;
    for (int i = 0; i < 5; ++i) {
      bench_.Post(kPeer, 3 * kPacket);
    }
    Pass(16 * 45);
    bench_.Restart(kPeer);
    bench_.targets[kPeer] = {};
    ASSERT_TRUE(bench_.Run(20000));
    for (size_t i = first; i < bench_.messages.size(); ++i) {
      ExpectStatus(i, Status::kOk);
    }
    EXPECT_EQ(bench_.opened, ++opened);
  }
}

TEST_P(InitiatorRestartTest, WriteOfWhichNothingWasAcknowledgedGoesAgain) {
  bench_.targets[kPeer].mute = true;
  PostWrite(50 * kPacket);
  PostWrite(kPacket);
  Pass(300);
  EXPECT_EQ(bench_.messages[1].delivered(), 50U);
  bench_.Restart(kPeer);
  bench_.targets[kPeer] = {};
  ASSERT_TRUE(bench_.Run(20000));
  ExpectStatus(1, Status::kOk);
  ExpectStatus(2, Status::kOk);
  EXPECT_EQ(bench_.messages[1].delivered(), 50U);
}

TEST_P(InitiatorRestartTest, WriteOfWhichAnythingWasAcknowledgedEnds) {
  for (uint32_t known = 1; known < 40; ++known) {
    SCOPED_TRACE(known);
    const size_t write = bench_.messages.size();
    PostWrite(500 * kPacket);
    bench_.Post(kPeer, 3 * kPacket);
    PostWrite(kPacket);
    while (bench_.messages[write].delivered() < 100 + known) {
      bench_.Cycle();
    }
    bench_.Restart(kPeer);
    ASSERT_TRUE(bench_.Run(20000));
    ExpectStatus(write, Status::kRemoteError, kBadMkey);
    EXPECT_EQ(bench_.messages[write].delivered(), 0U);
    ExpectStatus(write + 1, Status::kOk);
    ExpectStatus(write + 2, Status::kOk);
  }
}

// The error of the former target stands; what it cut short is not sent again.
TEST_P(InitiatorRestartTest, MessageThatWasRefusedEndsWithItsError) {
  for (uint32_t after = 0; after < 60; ++after) {
    SCOPED_TRACE(after);
    const size_t first = bench_.messages.size();
    bench_.Post(kPeer, 200 * kPacket);
    bench_.messages.back().error = ReturnCode::kBadJobId;
    bench_.messages.back().error_at = 10;
    bench_.Post(kPeer, 3 * kPacket);
    while (bench_.messages[first].delivered() < 10) {
      bench_.Cycle();
    }
    Pass(after);
    bench_.Restart(kPeer);
    bench_.messages[first].error_at = 0;
    ASSERT_TRUE(bench_.Run(20000));
    ExpectStatus(first, Status::kRemoteError,
                 static_cast<uint16_t>(ReturnCode::kBadJobId));
    ExpectStatus(first + 1, Status::kOk);
  }
}

// Behind a SEND that goes again. Of each operation the target had something, or
// nothing.
TEST_F(InitiatorRestartRudTest, OperationsThatArrivedAheadEnd) {
  int lost = 0;
  for (uint32_t ahead = 0; ahead < 30; ++ahead) {
    SCOPED_TRACE(ahead);
    const size_t first = bench_.messages.size();
    bench_.targets[kPeer].refuses_message = first;
    bench_.lose.clear();
    for (uint32_t i = ahead; i < 100; ++i) {
      bench_.lose.insert(bench_.packets_seen + i);
    }
    bench_.Post(kPeer, 2 * kPacket);
    PostWrite(4 * kPacket);
    bench_.Post(kPeer, 4 * kPacket);
    bench_.Post(kPeer, 0, /*read=*/true);
    PostWrite(4 * kPacket);
    bench_.Post(kPeer, 3 * kPacket, /*read=*/true);
    PostWrite(100 * kPacket);
    bench_.targets[kPeer].withholds_data = ahead % 2 == 0;
    Pass(150);
    bench_.lose.clear();
    std::vector<bool> had;
    for (size_t i = first; i < bench_.messages.size(); ++i) {
      had.push_back(bench_.messages[i].delivered() != 0);
    }
    bench_.Restart(kPeer);
    bench_.targets[kPeer] = {};
    ASSERT_TRUE(bench_.Run(40000));
    for (size_t i = 0; i < had.size(); ++i) {
      const PostedMessage& m = bench_.messages[first + i];
      const bool ends = had[i] && (m.read || m.write);
      lost += ends;
      ExpectStatus(first + i, ends ? Status::kRemoteError : Status::kOk,
                   ends ? kBadMkey : 0);
    }
  }
  EXPECT_GT(lost, 30);
}

// A position for each packet of the window, and none beyond it.
TEST_F(InitiatorRestartRudTest, LastPacketOfTheWindowCountsForItsMessageAlone) {
  const size_t first = bench_.messages.size();
  bench_.network.delay_cycles =
      140;  // All of them leave before an answer comes.
  bench_.targets[kPeer].refuses_message = first;
  for (uint32_t i = 1; i < 63; ++i) {
    bench_.lose.insert(bench_.packets_seen + i);
  }
  bench_.Post(kPeer, 8);
  PostWrite(61 * kPacket);
  PostWrite(kPacket);  // Lost.
  PostWrite(kPacket);
  PostWrite(kPacket);  // Beyond the window.
  Pass(420);
  EXPECT_EQ(bench_.messages[first + 3].delivered(), 1U);
  bench_.Restart(kPeer);
  bench_.targets[kPeer] = {};
  bench_.lose.clear();
  ASSERT_TRUE(bench_.Run(20000));
  for (const size_t i : {0U, 1U, 2U, 4U}) {
    ExpectStatus(first + i, Status::kOk);
  }
  ExpectStatus(first + 3, Status::kRemoteError, kBadMkey);
}

TEST_P(InitiatorRestartTest, ReadThatWaitsForItsDataEnds) {
  bench_.targets[kPeer].withholds_data = true;
  bench_.Post(kPeer, 3 * kPacket, /*read=*/true);
  Pass(500);
  EXPECT_EQ(bench_.messages[1].delivered(), 3U);
  bench_.Restart(kPeer);
  bench_.targets[kPeer] = {};
  bench_.Post(kPeer, 3 * kPacket);
  bench_.Post(kPeer, 3 * kPacket, /*read=*/true);
  ASSERT_TRUE(bench_.Run(20000));
  ExpectStatus(1, Status::kRemoteError, kBadMkey);
  ExpectStatus(2, Status::kOk);
  ExpectStatus(3, Status::kOk);
}

// As much is due as may be, nothing is outstanding, and no request leaves that
// the next target could refuse: an ACK Request finds out.
TEST_P(InitiatorRestartTest, ReadsThatWaitEndThoughNothingMoreMayBeSent) {
  for (const bool more : {false, true}) {
    SCOPED_TRACE(more);
    const size_t first = bench_.messages.size();
    const uint64_t restarts = bench_.restarts_seen;
    bench_.targets[kPeer].withholds_data = true;
    bench_.Post(kPeer, kDue * kPacket, /*read=*/true);
    if (more) {
      bench_.Post(kPeer, 3 * kPacket, /*read=*/true);
      bench_.Post(kPeer, 8);
    }
    Pass(300);
    EXPECT_EQ(bench_.messages[first].delivered(), kDue);
    bench_.Restart(kPeer);
    bench_.targets[kPeer] = {};
    // The target is down for half an RTO.
    ASSERT_TRUE(bench_.Run(uint64_t{3 * 20} * bench_.tick_cycles));
    ExpectStatus(first, Status::kRemoteError, kBadMkey);
    if (more) {
      ExpectStatus(first + 1, Status::kOk);
      ExpectStatus(first + 2, Status::kOk);
    }
    EXPECT_EQ(bench_.restarts_seen, restarts + 1);
    Pass(500);
    EXPECT_EQ(bench_->open_pdcs_o, more ? 1 : 0);
    bench_.Post(kPeer, 3 * kPacket, /*read=*/true);
    ASSERT_TRUE(bench_.Run(2000));
    ExpectStatus(bench_.messages.size() - 1, Status::kOk);
  }
}

// It has ended the PDC, but nothing else: messages that never left move.
TEST_P(InitiatorRestartTest, TargetThatForgotIsFoundOutWhileReadsWait) {
  bench_.targets[kPeer].withholds_data = true;
  bench_.Post(kPeer, kDue * kPacket, /*read=*/true);
  bench_.Post(kPeer, 3 * kPacket, /*read=*/true);
  Pass(300);
  bench_.ForgetPdcs();
  bench_.targets[kPeer] = {};
  ASSERT_TRUE(bench_.Run(uint64_t{3 * 20} * bench_.tick_cycles));
  ExpectStatus(1, Status::kPeerRejected,
               static_cast<uint16_t>(contract::NackCode::kClosing));
  ExpectStatus(2, Status::kOk);
  EXPECT_EQ(bench_.restarts_seen, 0U);
}

// Whatever is lost: the target is asked again, ever more rarely.
TEST_P(InitiatorRestartTest, TargetIsAskedAgainWhileNoDataCome) {
  bench_.targets[kPeer].withholds_data = true;
  bench_.Post(kPeer, kDue * kPacket, /*read=*/true);
  Pass(300);
  // 20 ticks, twice as many, up to 200; dead_ticks are 1000.
  Pass(uint64_t{700} * bench_.tick_cycles);
  EXPECT_GE(bench_.asks_seen, 5U);
  EXPECT_LE(bench_.asks_seen, 8U);
  EXPECT_EQ(bench_.messages[1].completions, 0);
  bench_.network.loss = 1;
  bench_.Restart(kPeer);
  Pass(uint64_t{100} * bench_.tick_cycles);
  bench_.network.loss = 0;
  ASSERT_TRUE(bench_.Run(uint64_t{210} * bench_.tick_cycles));
  ExpectStatus(1, Status::kRemoteError, kBadMkey);
  EXPECT_EQ(bench_.timeouts_seen, 0U);
}

// Data are news, however long the rest takes.
TEST_P(InitiatorRestartTest, TargetIsNotAskedWhileDataCome) {
  bench_.data_delay_cycles = 250;  // An RTO is 320.
  for (int i = 0; i < 40; ++i) {
    bench_.Post(kPeer, 30 * kPacket, /*read=*/true);
  }
  ASSERT_TRUE(bench_.Run(40000));
  EXPECT_EQ(bench_.asks_seen, 0U);
  for (int i = 0; i < 40; ++i) {
    ExpectStatus(1 + i, Status::kOk);
  }
}

// The target's data come, early or late, but no ACK of it. A READ ends if it
// has any of them when the PDC ends, and starts anew if not: none of those that
// are later are its.
TEST_P(InitiatorRestartTest, ReadWithDataAndNoAcknowledgementEnds) {
  int ended = 0, whole = 0;
  for (uint32_t delay = 40; delay < 480; delay += 2) {
    SCOPED_TRACE(delay);
    const size_t first = bench_.messages.size();
    bench_.data_delay_cycles = delay;
    bench_.targets[kPeer].mute = true;
    bench_.Post(kPeer, 2 * kPacket, /*read=*/true);
    bench_.Post(kPeer, 12 * kPacket, /*read=*/true);
    bench_.Post(kPeer, 8);
    Pass(100);
    bench_.Restart(kPeer);
    bench_.targets[kPeer] = {};
    ASSERT_TRUE(bench_.Run(20000));
    for (size_t i = first; i < first + 2; ++i) {
      const bool lost = bench_.messages[i].status == Status::kRemoteError;
      ExpectStatus(i, lost ? Status::kRemoteError : Status::kOk,
                   lost ? kBadMkey : 0);
      ended += lost;
      whole += !lost;
    }
    ExpectStatus(first + 2, Status::kOk);
  }
  EXPECT_GT(ended, 20);
  EXPECT_GT(whole, 20);
}

// Of the operations that a restart meets each ends once: a SEND whole, an RMA
// operation whole or with the status of a region that is gone.
TEST_P(InitiatorRestartTest, RandomOperationsEndOnceWhenTargetsRestart) {
  const uint32_t seed = TestSeed();
  std::mt19937 rng(seed);
  const auto below = [&rng](uint32_t limit) {
    return static_cast<uint32_t>(rng() % limit);
  };
  bench_.idle_ticks = 3000;
  bench_.Post(kPeer, 8);     // Its PDC would stay, else.
  bench_.loses_pdcs = true;  // SYNs that come late.
  bench_.network = {.loss = 0.01, .duplicate = 0.01, .reorder = 0.02};
  constexpr uint32_t kPeers = 4;
  for (int round = 0; round < 150; ++round) {
    for (uint32_t i = below(30); i > 0; --i) {
      bench_.Post(1 + below(kPeers), below(4) == 0 ? below(60000) : below(3000),
                  below(3) == 0);
      PostedMessage& m = bench_.messages.back();
      m.write = below(2) == 0;
      if (below(8) == 0) {
        m.error = ReturnCode::kBadAddr;
        m.error_at = below(m.packets);
      }
    }
    bench_.data_delay_cycles = 20 + below(300);
    Pass(below(500));
    bench_.Restart(1 + below(kPeers));
  }
  ASSERT_TRUE(bench_.Run(4000000)) << "seed " << seed;
  int lost = 0;
  for (size_t i = 0; i < bench_.messages.size(); ++i) {
    const PostedMessage& m = bench_.messages[i];
    EXPECT_EQ(m.completions, 1) << i << ", seed " << seed;
    if (m.status == Status::kOk) {
      EXPECT_TRUE(m.delivered() == m.packets || m.had_whole);
      continue;
    }
    EXPECT_EQ(m.status, Status::kRemoteError) << i << ", seed " << seed;
    const bool rma = m.read || m.write;
    if (m.detail == kBadMkey) {
      EXPECT_TRUE(rma) << i << ", seed " << seed;
      ++lost;
    } else {
      EXPECT_TRUE(m.error) << i << ", seed " << seed;
    }
  }
  EXPECT_GT(lost, 0);
  Pass(uint64_t{20000} * bench_.tick_cycles);
  EXPECT_EQ(bench_->open_pdcs_o, 0) << "seed " << seed;
}

// Nor a Close Command that the next target refuses.
TEST_P(InitiatorRestartTest, OrderlyCloseIsNotCountedAsARestart) {
  CloseAll();
  Pass(300);
  EXPECT_EQ(bench_.closes, 1U);
  bench_.Post(kPeer, 8);
  ASSERT_TRUE(bench_.Run(2000));
  bench_.Restart(kPeer);
  Pass(InitiatorBench::kDownCycles);
  CloseAll();
  Pass(300);
  EXPECT_EQ(bench_->open_pdcs_o, 0);
  EXPECT_EQ(bench_.opened, 2U);
  EXPECT_EQ(bench_.restarts_seen, 0U);
}

TEST_P(InitiatorRestartTest, OrderClosesIdlePdcsAndBusyOnesWhenTheyAreIdle) {
  bench_.targets[2].refuses = true;
  bench_.targets[3].withholds_data = true;
  bench_.Post(1, 8);
  bench_.Post(2, 8);
  bench_.Post(3, 8, /*read=*/true);
  Pass(300);
  EXPECT_EQ(bench_->open_pdcs_o, 4);
  CloseAll();
  Pass(300);
  EXPECT_EQ(bench_.closes, 2U);
  EXPECT_EQ(bench_->open_pdcs_o, 2);
  bench_.targets[2].refuses = false;
  Pass(600);
  EXPECT_EQ(bench_.closes, 3U);
  // Of the READ nothing comes any more.
  Pass(uint64_t{1100} * bench_.tick_cycles);
  EXPECT_EQ(bench_->open_pdcs_o, 0);
  ExpectStatus(2, Status::kOk);
}

TEST_P(InitiatorRestartTest, EachOrderActsOnThePdcsThatAreOpen) {
  CloseAll();
  Pass(300);
  EXPECT_EQ(bench_->open_pdcs_o, 0);
  for (uint32_t peer = 1; peer <= 20; ++peer) {
    bench_.Post(peer, 8);
  }
  ASSERT_TRUE(bench_.Run(2000));
  Pass(1000);
  EXPECT_EQ(bench_->open_pdcs_o, 20);
  EXPECT_EQ(bench_.closes, 1U);
  CloseAll();
  CloseAll();
  Pass(2000);
  EXPECT_EQ(bench_.closes, 21U);
  EXPECT_EQ(bench_->open_pdcs_o, 0);
}

// Also when the PDC opens again, or a message comes as it is about to close.
TEST_P(InitiatorRestartTest, OrderStandsUntilThePdcIsClosed) {
  bench_.targets[kPeer].refuses = true;
  bench_.Post(kPeer, 3 * kPacket);
  Pass(100);
  CloseAll();
  bench_.Restart(kPeer);
  bench_.targets[kPeer] = {};
  ASSERT_TRUE(bench_.Run(2000));
  EXPECT_EQ(bench_.opened, 2U);
  Pass(300);
  EXPECT_EQ(bench_->open_pdcs_o, 0);
  for (uint32_t early = 0; early < 20; ++early) {
    SCOPED_TRACE(early);
    bench_.Post(kPeer, 8);
    ASSERT_TRUE(bench_.Run(2000));
    CloseAll();
    Pass(early);
    bench_.Post(kPeer, 8);
    ASSERT_TRUE(bench_.Run(2000));
    Pass(300);
    // The message went by the old PDC, or had to open another.
    if (bench_->open_pdcs_o != 0) {
      CloseAll();
      Pass(300);
    }
    EXPECT_EQ(bench_->open_pdcs_o, 0);
  }
}

TEST_P(InitiatorRestartTest, PdcCountsUntilItsCloseIsAnsweredOrGivenUp) {
  bench_.targets[kPeer].loses_closes = true;
  CloseAll();
  Pass(300);
  EXPECT_EQ(bench_->open_pdcs_o, 1);
  bench_.targets[kPeer] = {};
  Pass(16 * 50);
  EXPECT_EQ(bench_->open_pdcs_o, 0);
  bench_.targets[kPeer].silent = true;
  bench_.Post(kPeer, 8);
  Pass(100);
  EXPECT_EQ(bench_->open_pdcs_o, 1) << "while it opens";
  ASSERT_TRUE(bench_.Run(16 * 1100));
  Pass(50);
  EXPECT_EQ(bench_->open_pdcs_o, 0);
}

}  // namespace
}  // namespace heddle
