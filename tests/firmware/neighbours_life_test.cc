// SPDX-License-Identifier: Apache-2.0
// Neighbours that age, leave a full table, or meet drains, resets and faults.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/firmware/neighbours_fixture.h"

namespace heddle::firmware {
namespace {

TEST_F(NeighboursTest, AnOldPeerInUseIsConfirmedBehindItsUsersBacks) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  Wait(kReachableTicks - 1);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), hop);
  EXPECT_TRUE(Sent().empty());
  Wait(1);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), hop) << "at once";
  EXPECT_EQ(Sent().size(), 1U);
  Receive(Reply(kPeerIp, kOtherMac));
  EXPECT_EQ(Hop(hop).mac, kOtherMac);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), hop);
  EXPECT_TRUE(Sent().empty()) << "confirmed";
}

TEST_F(NeighboursTest, AnOldPeerInUseThatIsSilentKeepsItsAddress) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  Wait(kReachableTicks);
  ExpectAnswer(Resolve(kPeerIp));
  Wait(kTries * kRetryTicks);
  EXPECT_EQ(Sent().size(), kTries);
  EXPECT_EQ(bus_.timer(), 0U);
  EXPECT_EQ(Hop(hop).valid, 1);
  EXPECT_EQ(Hop(hop).mac, kPeerMac);
}

TEST_F(NeighboursTest, AnOldPeerThatNobodyUsesIsAskedBeforeItIsHandedOut) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  EXPECT_EQ(Release(hop), AdminStatus::kOk);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), hop) << "young enough";
  EXPECT_EQ(Release(hop), AdminStatus::kOk);
  Wait(kReachableTicks);
  const uint16_t id = Resolve(kPeerIp);
  ExpectNoAnswer();
  Wait(kTries * kRetryTicks);
  ExpectAnswer(id, AdminStatus::kNotFound);
  EXPECT_EQ(Hop(hop).valid, 0) << "gone";
}

TEST_F(NeighboursTest, AFullTableRefusesUntilAHopIsReleased) {
  const uint32_t places = contract::kNextHops - 1;
  std::vector<uint32_t> hops;
  board_.prefix_length = 0;
  Begin();
  for (uint32_t i = 0; i < places; ++i) {
    hops.push_back(Meet(0x0b000000 + i, kPeerMac + i));
  }
  std::vector<uint32_t> numbers = hops;
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
  EXPECT_GT(numbers.front(), 0U);
  EXPECT_LT(numbers.back(), contract::kNextHops);
  ExpectAnswer(Resolve(kPeerIp), AdminStatus::kNoResource);
  EXPECT_TRUE(Sent().empty());
  // The place of the peer released first is taken first; until its new owner
  // is known the hop is not valid.
  EXPECT_EQ(Release(hops[7]), AdminStatus::kOk);
  EXPECT_EQ(Release(hops[3]), AdminStatus::kOk);
  const uint16_t id = Resolve(kPeerIp);
  EXPECT_EQ(Hop(hops[7]).valid, 0);
  EXPECT_EQ(Hop(hops[3]).valid, 1);
  Receive(Reply());
  EXPECT_EQ(ExpectAnswer(id), hops[7]);
  EXPECT_EQ(Hop(hops[7]).mac, kPeerMac);
  EXPECT_EQ(ExpectAnswer(Resolve(0x0b000003)), hops[3]) << "kept meanwhile";
}

TEST_F(NeighboursTest, AHopLearntDuringADrainIsWrittenBehindIt) {
  const uint16_t endpoint = Publish(contract::AdminCreateEndpoint{.port = 4000},
                                    AdminOpcode::kCreateEndpoint);
  const uint16_t cq =
      Publish(contract::AdminCreateCq{.base = 0x10000, .log2 = 4},
              AdminOpcode::kCreateCq);
  const uint16_t rx = Publish(
      contract::AdminCreateRx{
          .ring_base = 0x20000, .head_cell = 0x30000, .ring_log2 = 4},
      AdminOpcode::kCreateRx);
  Run();
  ExpectAnswer(endpoint);
  ExpectAnswer(cq);
  const uint32_t context = ExpectAnswer(rx);
  const uint16_t id = Resolve(kPeerIp);
  bus_.hold_drains = true;
  const uint16_t destroy =
      Publish(AdminCommand{.object = context}, AdminOpcode::kDestroyRx);
  for (int i = 0; i < 10; ++i) {
    program_->Step();
  }
  bus_.slow_rx.push_back(Reply());
  for (int i = 0; i < 10; ++i) {
    program_->Step();
  }
  EXPECT_TRUE(bus_.slow_rx.empty()) << "frames are not held up";
  ExpectNoAnswer();
  bus_.hold_drains = false;
  Run();
  ExpectAnswer(destroy);
  EXPECT_EQ(Hop(ExpectAnswer(id)).mac, kPeerMac);
}

TEST_F(NeighboursTest, AResetForgetsNeighboursAndThoseWhoWait) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  Resolve(kPeerIp + 1);
  bus_.reset_requested = true;
  Run();
  answers_ = bus_.admin_tail;
  EXPECT_EQ(Hop(hop).valid, 0);
  EXPECT_EQ(bus_.timer(), 0U);
  Receive(Reply(kPeerIp + 1));
  ExpectNoAnswer();
  EXPECT_EQ(Release(hop), AdminStatus::kNotFound);
  Sent();
  Meet(kPeerIp, kPeerMac);
}

TEST_F(NeighboursTest, ARingTooLongForTheDeviceEndsTheWaitOfCommands) {
  Resolve(kPeerIp);
  bus_.admin_log2 = 9;
  Publish(AdminCommand{}, AdminOpcode::kNone);
  Run();
  bus_.admin_log2 = kLog2;
  answers_ = bus_.admin_tail;
  Receive(Reply());
  ExpectNoAnswer();
  const uint16_t id = Resolve(kPeerIp);
  ExpectAnswer(id);
}

TEST_F(NeighboursTest, AHaltedProgramTakesItsEventsBack) {
  Resolve(kPeerIp);
  bus_.stuck_mailbox = true;
  Publish(AdminCommand{}, AdminOpcode::kNone);
  program_->Step();
  ASSERT_NE(bus_.fatal_cause, 0U);
  bus_.stuck_mailbox = false;
  bus_.Tick(kRetryTicks);
  bus_.slow_rx.push_back(Reply());
  program_->Step();
  program_->Step();
  EXPECT_TRUE(bus_.slow_rx.empty());
  EXPECT_EQ(bus_.timer(), 0U);
  EXPECT_EQ(bus_.Read(contract::kMgmtEventsOffset),
            contract::kMgmtEventsAdminMask);
}

TEST_F(NeighboursTest, ATableThatRefusesAHopIsFatal) {
  Resolve(kPeerIp);
  bus_.broken_table = contract::Table::kNextHop;
  Receive(Reply());
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
  EXPECT_EQ(bus_.fatal_cause,
            Status(Module::kTablePort,
                   static_cast<uint8_t>(contract::Table::kNextHop),
                   StatusClass::kRefused)
                .value());
}

}  // namespace
}  // namespace heddle::firmware
