// SPDX-License-Identifier: Apache-2.0
// READs end when all that answers them has come. With PDCs and the walk: the
// tests of the initiator.
#include <gtest/gtest.h>

#include <optional>

#include "Vheddle_read_ends.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/clocked_model.h"
#include "tests/rtl/transport/packed.h"
#include "tests/rtl/transport/return_records.h"

namespace heddle::test {
namespace {

using contract::Status;

constexpr uint16_t kPdc = 3;

class ReadEndsTest : public testing::Test {
 protected:
  ReadEndsTest() {
    dut_->due_ready_i = 1;
    dut_->done_ready_i = 1;
    Cycle();
  }

  void Queue(uint16_t msg) {
    dut_->queue_i = 1;
    dut_->queue_msg_i = msg;
    Cycle();
    dut_->queue_i = 0;
  }
  // The requests of the READ were acknowledged.
  void End(uint16_t msg, uint32_t packets) {
    dut_->end_valid_i = 1;
    Drive(
        dut_->end_i,
        ReturnEnd{
            .read = 1, .pdc = kPdc, .packets = packets, .done = {.msg = msg}});
    for (int i = 0; i < 10; ++i) {
      dut_.Settle();
      const bool taken = dut_->end_ready_o != 0;
      Cycle();
      if (taken) break;
    }
    dut_->end_valid_i = 0;
  }
  void Settle(uint16_t msg) {
    dut_->settle_i = 1;
    Drive(dut_->settled_i, ReturnSettle{.pdc = kPdc, .msg = msg});
    Cycle();
    dut_->settle_i = 0;
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
  std::optional<TxDone> Next() {
    for (int i = 0; i < 20 && !done_; ++i) Cycle();
    return std::exchange(done_, std::nullopt);
  }

 private:
  void Cycle() {
    dut_.Settle();
    if (dut_->done_valid_o) done_ = Sample<TxDone>(dut_->done_o);
    dut_.Tick();
  }

  sim::ClockedModel<Vheddle_read_ends> dut_;
  std::optional<TxDone> done_;
};

TEST_F(ReadEndsTest, ReadEndsWithTheLastOfItsPackets) {
  Queue(5);
  Settle(5);
  End(5, 2);
  EXPECT_FALSE(Next());
  Settle(5);
  const std::optional<TxDone> done = Next();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->msg, 5);
  EXPECT_EQ(done->status, Status::kOk);
}

// 2^32 - 1 bytes in packets of 1 KiB are one packet more than its highest
// index can say.
TEST_F(ReadEndsTest, ReadOfTheMostPacketsWaitsForThem) {
  Queue(5);
  End(5, uint32_t{1} << 22);
  EXPECT_FALSE(Next());
  Settle(5);
  EXPECT_FALSE(Next());
}

TEST_F(ReadEndsTest, ReadsOfALostPdcEndWithItsStatus) {
  Queue(5);
  End(5, 4);
  Lose(kPdc + 1);
  EXPECT_FALSE(Next());
  Lose(kPdc);
  const std::optional<TxDone> done = Next();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->msg, 5);
  EXPECT_EQ(done->status, Status::kPeerUnreachable);
}

}  // namespace
}  // namespace heddle::test
