// SPDX-License-Identifier: Apache-2.0
// The walk over the queue of a PDC, what the initiator's tests cannot reach:
// messages of as many packets as there can be.
#include <gtest/gtest.h>

#include <optional>

#include "Vheddle_pdc_walk.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

class PdcWalkTest : public testing::Test {
 protected:
  static constexpr uint16_t kPdc = 3;
  static constexpr uint16_t kMessage = 9;

  PdcWalkTest() {
    dut_->done_ready_i = 1;
    dut_->back_ready_i = 1;
    for (uint32_t i = 0; i < rtl::kNumPdc + 10; ++i) Cycle();
  }

  void Queue(uint32_t last, bool read) {
    dut_->queue_held_i = 1;
    dut_->queue_msg_i = kMessage;
    dut_->queue_last_i = last;
    dut_->read_i = read;
  }
  void Tell(const rtl::PdcWalk& walk) {
    dut_->walk_valid_i = 1;
    rtl::Drive(dut_->walk_i, walk);
    for (int i = 0; i < 20; ++i) {
      dut_.Settle();
      const bool taken = dut_->walk_ready_o != 0;
      Cycle();
      if (taken) break;
    }
    dut_->walk_valid_i = 0;
    for (int i = 0; i < 20; ++i) Cycle();
  }

  std::optional<rtl::ReturnEnd> done_;

 private:
  void Cycle() {
    dut_.Settle();
    if (dut_->done_valid_o) done_ = rtl::Sample<rtl::ReturnEnd>(dut_->done_o);
    if (dut_->queue_pop_o) dut_->queue_held_i = 0;
    dut_.Tick();
  }

  sim::model::ClockedModel<Vheddle_pdc_walk> dut_;
};

TEST_F(PdcWalkTest, ReadOfTheMostPacketsIsAnsweredByAsMany) {
  constexpr uint32_t kPackets = uint32_t{1} << 22;
  Queue(kPackets - 1, /*read=*/true);
  Tell({.kind = rtl::WalkKind::kOpen, .pdc = kPdc, .psn = 0xffff0000});
  Tell({.kind = rtl::WalkKind::kAck,
        .pdc = kPdc,
        .psn = 0xffff0000 + kPackets - 1});
  EXPECT_FALSE(done_);
  Tell(
      {.kind = rtl::WalkKind::kAck, .pdc = kPdc, .psn = 0xffff0000 + kPackets});
  ASSERT_TRUE(done_);
  EXPECT_EQ(done_->done.msg, kMessage);
  EXPECT_EQ(done_->packets, kPackets);
  EXPECT_EQ(done_->refused, 0U);
}

}  // namespace
}  // namespace heddle::test
