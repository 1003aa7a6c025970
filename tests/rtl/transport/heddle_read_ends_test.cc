// SPDX-License-Identifier: Apache-2.0
// READs end when all that answers them has come. With PDCs and the walk: the
// tests of the initiator.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <utility>

#include "Vheddle_read_ends.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

using contract::Status;

constexpr uint16_t kPdc = 3;
constexpr uint16_t kOurs = 0x2500 | kPdc;
constexpr uint16_t kEarlier = 0x2400 | kPdc;  // The opening before.

class ReadEndsTest : public testing::Test {
 protected:
  ReadEndsTest() {
    dut_->due_ready_i = 1;
    dut_->done_ready_i = 1;
    for (int i = 0; i < 3000 && !dut_->idle_o; ++i) Cycle();
  }

  // Its first request leaves.
  void Begin(uint16_t msg, uint16_t spdcid = kOurs) {
    dut_->begin_i = 1;
    dut_->begin_msg_i = msg;
    dut_->begin_spdcid_i = spdcid;
    Cycle();
    dut_->begin_i = 0;
  }
  // The requests of the READ were acknowledged, or `refused` of them refused.
  void Offer(uint16_t msg, uint32_t packets, uint32_t refused = 0) {
    dut_->end_valid_i = 1;
    rtl::Drive(dut_->end_i, rtl::ReturnEnd{.read = 1,
                                           .pdc = kPdc,
                                           .packets = packets,
                                           .refused = refused,
                                           .done = {.msg = msg}});
  }
  bool Taken() {
    for (int i = 0; i < 10; ++i) {
      dut_.Settle();
      const bool taken = dut_->end_ready_o != 0;
      Cycle();
      if (taken) {
        dut_->end_valid_i = 0;
        return true;
      }
    }
    return false;
  }
  void End(uint16_t msg, uint32_t packets, uint32_t refused = 0) {
    Offer(msg, packets, refused);
    EXPECT_TRUE(Taken());
  }
  // heddle_return_rx decides on a packet, heddle_place is done with it.
  void Decide() { ++dut_->back_decided_i; }
  void Settle(uint16_t msg, uint16_t spdcid = kOurs) {
    dut_->settle_i = 1;
    rtl::Drive(dut_->settled_i,
               rtl::ReturnSettle{.spdcid = spdcid, .msg = msg});
    Cycle();
    dut_->settle_i = 0;
    ++dut_->back_done_i;
  }
  void Lose(uint16_t pdc) {
    dut_->lose_valid_i = 1;
    dut_->lose_pdc_i = static_cast<uint8_t>(pdc);
    dut_->lose_status_i = static_cast<uint8_t>(Status::kPeerUnreachable);
    for (int i = 0; i < 3000; ++i) {
      dut_.Settle();
      const bool taken = dut_->lose_ready_o != 0;
      Cycle();
      if (taken) break;
    }
    dut_->lose_valid_i = 0;
  }
  // The next READ that ends within some cycles.
  std::optional<rtl::TxDone> Next() {
    for (int i = 0; i < 20 && !done_; ++i) Cycle();
    return std::exchange(done_, std::nullopt);
  }

  std::map<uint16_t, uint32_t> due;  // Given back, by PDCID.
  // The last READ that has no more packets than these.
  std::optional<std::pair<uint16_t, uint32_t>> cut;

 private:
  void Cycle() {
    dut_.Settle();
    if (dut_->done_valid_o) done_ = rtl::Sample<rtl::TxDone>(dut_->done_o);
    if (dut_->due_valid_o) {
      const auto given = rtl::Sample<rtl::ReturnDue>(dut_->due_o);
      due[given.spdcid] += given.packets;
    }
    if (dut_->cut_o) cut = {dut_->cut_msg_o, dut_->cut_packets_o};
    dut_.Tick();
  }

  sim::model::ClockedModel<Vheddle_read_ends> dut_;
  std::optional<rtl::TxDone> done_;
};

TEST_F(ReadEndsTest, ReadEndsWithTheLastOfItsPackets) {
  Begin(5);
  Settle(5);
  End(5, 2);
  EXPECT_FALSE(Next());
  Settle(5);
  const std::optional<rtl::TxDone> done = Next();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->msg, 5);
  EXPECT_EQ(done->status, Status::kOk);
}

// 2^32 - 1 bytes in packets of 1 KiB are one packet more than its highest
// index can say.
TEST_F(ReadEndsTest, ReadOfTheMostPacketsWaitsForThem) {
  Begin(5);
  End(5, uint32_t{1} << 22);
  EXPECT_FALSE(Next());
  Settle(5);
  EXPECT_FALSE(Next());
}

TEST_F(ReadEndsTest, ReadsOfALostPdcEndWithItsStatus) {
  Begin(5);
  End(5, 4);
  Lose(kPdc + 1);
  EXPECT_FALSE(Next());
  Lose(kPdc);
  const std::optional<rtl::TxDone> done = Next();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->msg, 5);
  EXPECT_EQ(done->status, Status::kPeerUnreachable);
}

TEST_F(ReadEndsTest, RefusedReadGivesBackWhatWillNotBeAnswered) {
  Begin(5);
  Settle(5);
  End(5, 3, 4);
  EXPECT_EQ(cut, std::pair(uint16_t{5}, 3U));
  EXPECT_FALSE(Next());
  EXPECT_EQ(due[kOurs], 5U);
  Settle(5);
  EXPECT_FALSE(Next());
  Settle(5);
  EXPECT_TRUE(Next());
  EXPECT_EQ(due[kOurs], 7U);
}

// Due to others is not given back with it.
TEST_F(ReadEndsTest, RefusedReadOfWhichMoreCameGivesBackNoMoreThanWasAskedFor) {
  Begin(5);
  for (int i = 0; i < 6; ++i) Settle(5);
  End(5, 3, 4);
  EXPECT_TRUE(Next());
  EXPECT_EQ(due[kOurs], 7U);
  Begin(6);
  for (int i = 0; i < 4; ++i) Settle(6);
  End(6, 0, 4);
  EXPECT_TRUE(Next());
  EXPECT_EQ(due[kOurs], 11U);
}

// Else they would count as those of the entry's next READ.
TEST_F(ReadEndsTest, RefusedReadEndsWhenWhatWasTakenOfItIsSettled) {
  Begin(5);
  Decide();
  Decide();
  Offer(5, 1, 1);
  EXPECT_FALSE(Taken());
  EXPECT_EQ(cut, std::pair(uint16_t{5}, 1U));
  Decide();  // Not of this READ: it need not be waited for.
  Settle(5);
  EXPECT_FALSE(Taken());
  Settle(5);
  EXPECT_TRUE(Taken());
  EXPECT_TRUE(Next());
  EXPECT_EQ(due[kOurs], 2U);
}

TEST_F(ReadEndsTest, DataOfAnEarlierOpeningDoNotEndARead) {
  Begin(5, kEarlier);
  Settle(5, kEarlier);
  Begin(5, kOurs);
  Settle(5, kEarlier);
  EXPECT_FALSE(Next());
  End(5, 1);
  EXPECT_FALSE(Next());
  Settle(5);
  EXPECT_TRUE(Next());
  EXPECT_EQ(due[kOurs], 1U);
}

}  // namespace
}  // namespace heddle::test
