// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "Vchoice_probe.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

constexpr uint32_t kPdcs = 256;
constexpr uint32_t kShare = 7;  // Urgent ones in a row.

class PdcChoiceTest : public testing::Test {
 protected:
  // The PDC is open and may send, unless it waits or is full.
  void Settle(uint32_t pdc, bool waits = false, bool full = false) {
    dut_->settled_i = 1;
    dut_->settled_pdc_i = static_cast<uint8_t>(pdc);
    dut_->waits_i = waits;
    dut_->full_i = full;
    Tick();
    dut_->settled_i = 0;
    Tick();
  }
  void Open(uint32_t pdc, bool urgent) {
    dut_->open_i = 1;
    dut_->open_pdc_i = static_cast<uint8_t>(pdc);
    dut_->open_urgent_i = urgent;
    Tick();
    dut_->open_i = 0;
    Settle(pdc);
  }
  void SetPending(uint32_t pdc, bool pending) {
    Set(dut_->pending_i, pdc, pending);
  }
  void SetClosed(uint32_t pdc, bool closed) {
    Set(dut_->closed_i, pdc, closed);
  }
  void SetGaps(uint32_t pdc, bool gaps) { Set(dut_->gaps_i, pdc, gaps); }
  void Enqueue(uint32_t pdc) {
    dut_->enq_i = 1;
    dut_->enq_pdc_i = static_cast<uint8_t>(pdc);
  }

  std::optional<uint32_t> Offer() {
    dut_.Settle();
    return dut_->valid_o != 0 ? std::optional(dut_->pdc_o) : std::nullopt;
  }
  // Takes what is offered, if anything. In the next cycle it is in stage 1,
  // where `more` is set if another packet follows.
  std::optional<uint32_t> Take() {
    const std::optional<uint32_t> offered = Offer();
    dut_->take_i = offered.has_value();
    Tick();
    dut_->take_i = 0;
    dut_->event_i = offered.has_value();
    dut_->event_pdc_i = static_cast<uint8_t>(offered.value_or(0));
    return offered;
  }
  void Tick() {
    dut_.Settle();
    dut_.Tick();
    dut_->enq_i = 0;
    dut_->opened_i = 0;
    dut_->ack_request_i = 0;
    dut_->control_sent_i = 0;
    dut_->event_i = 0;
    dut_->more_i = 0;
  }

  // Whether the PDC is full once the state at the inputs is its own.
  bool SettlesFull(uint32_t pdc) {
    Settle(pdc, dut_->waits_i != 0, dut_->full_i != 0);
    dut_.Settle();
    return Get(dut_->full_o, pdc);
  }
  bool IsStuck(uint32_t pdc) { return Get(dut_->stuck_o, pdc); }

  sim::model::ClockedModel<Vchoice_probe> dut_;

 private:
  template <typename Bits>
  static bool Get(const Bits& bits, uint32_t index) {
    return (bits[index / 32] >> index % 32 & 1) != 0;
  }
  template <typename Bits>
  static void Set(Bits& bits, uint32_t index, bool value) {
    const uint32_t mask = 1u << index % 32;
    if (value) {
      bits[index / 32] |= mask;
    } else {
      bits[index / 32] &= ~mask;
    }
  }
};

TEST_F(PdcChoiceTest, AMessageIsOfferedOneCycleAfterItIsAppended) {
  Open(9, false);
  EXPECT_EQ(Offer(), std::nullopt);
  Enqueue(9);
  Tick();
  SetPending(9, true);
  EXPECT_EQ(Take(), 9u);
  Tick();  // In stage 1; it was the only one.
  SetPending(9, false);
  for (int cycle = 0; cycle < 10; ++cycle) {
    EXPECT_EQ(Take(), std::nullopt);
  }
  EXPECT_TRUE(dut_->idle_o);
}

TEST_F(PdcChoiceTest, APdcWithMoreToSendIsOfferedEveryOtherCycle) {
  Open(9, false);
  Enqueue(9);
  Tick();
  SetPending(9, true);
  for (int packet = 0; packet < 20; ++packet) {
    ASSERT_EQ(Take(), 9u) << packet;
    dut_->more_i = 1;
    ASSERT_EQ(Take(), std::nullopt) << packet;
  }
}

// A PDC that was picked is in the queue once, although its next message is
// appended as it is taken and it then has more to send.
TEST_F(PdcChoiceTest, APdcThatJoinsAsItIsTakenIsQueuedOnce) {
  Open(9, false);
  SetPending(9, true);
  while (!Offer().has_value()) {
    Tick();
  }
  Enqueue(9);
  ASSERT_EQ(Take(), 9u);
  dut_->more_i = 1;
  ASSERT_EQ(Take(), 9u);
  Tick();  // In stage 1; it was the last one.
  SetPending(9, false);
  for (int cycle = 0; cycle < 10; ++cycle) {
    EXPECT_EQ(Take(), std::nullopt) << cycle;
  }
}

TEST_F(PdcChoiceTest, PdcsOfTheQueueTakeTurnsAndNoneIsOfferedInStage1) {
  for (const uint32_t pdc : {3u, 200u, 77u}) {
    Open(pdc, false);
    Enqueue(pdc);
    Tick();
    SetPending(pdc, true);
  }
  std::map<uint32_t, int> taken;
  std::optional<uint32_t> last;
  for (int cycle = 0; cycle < 300; ++cycle) {
    dut_->more_i = last.has_value();
    const std::optional<uint32_t> pdc = Take();
    ASSERT_TRUE(pdc.has_value()) << cycle;
    EXPECT_NE(pdc, last);
    ++taken[*pdc];
    last = pdc;
  }
  for (const auto& [pdc, times] : taken) {
    EXPECT_NEAR(times, 100, 2) << pdc;
  }
}

TEST_F(PdcChoiceTest, APdcWhoseWindowOpensIsFoundWithoutAMessage) {
  Open(100, false);
  SetPending(100, true);
  SetClosed(100, true);
  for (int cycle = 0; cycle < 10; ++cycle) {
    Tick();
    EXPECT_EQ(Offer(), std::nullopt);
  }
  SetClosed(100, false);
  for (int cycle = 0; cycle < 3; ++cycle) {
    Tick();
  }
  EXPECT_EQ(Take(), 100u);
  // The same by its ACK, in the cycle after.
  SetClosed(100, true);
  for (int cycle = 0; cycle < 10; ++cycle) {
    Take();
  }
  dut_->opened_i = 1;
  dut_->opened_pdc_i = 100;
  Tick();
  EXPECT_EQ(Take(), 100u);
}

TEST_F(PdcChoiceTest, PdcsThatWaitOrAreFullAreNotOffered) {
  Open(5, false);
  Open(6, false);
  Settle(5, true);
  Settle(6, false, true);
  SetPending(5, true);
  SetPending(6, true);
  for (int cycle = 0; cycle < 20; ++cycle) {
    Tick();
    EXPECT_EQ(Offer(), std::nullopt);
  }
  // A control packet leaves all the same.
  dut_->ack_request_i = 1;
  dut_->ack_request_pdc_i = 5;
  for (int cycle = 0; cycle < 4; ++cycle) {
    Tick();
  }
  ASSERT_EQ(Take(), 5u);
  dut_->control_sent_i = 1;
  for (int cycle = 0; cycle < 20; ++cycle) {
    Tick();
  }
  EXPECT_EQ(Offer(), std::nullopt);
}

// Operations without order then take another PDC of the peer.
TEST_F(PdcChoiceTest, APdcWithAClosedWindowIsFull) {
  constexpr uint8_t kWindow = 64;
  Open(70, false);
  EXPECT_FALSE(SettlesFull(70));
  dut_->in_flight_i = kWindow - 1;
  EXPECT_FALSE(SettlesFull(70));
  dut_->in_flight_i = kWindow;
  EXPECT_TRUE(SettlesFull(70));
  EXPECT_FALSE(IsStuck(70));
  dut_->in_flight_i = kWindow - 1;
  EXPECT_FALSE(SettlesFull(70)) << "an ACK opened it";
  Open(71, false);
  dut_->in_flight_i = kWindow;
  EXPECT_TRUE(SettlesFull(71));
}

TEST_F(PdcChoiceTest, APdcWithAllTheDataDueThatItMayHaveIsFull) {
  Open(7, false);
  dut_->full_i = 1;
  EXPECT_TRUE(SettlesFull(7));
  dut_->full_i = 0;
  dut_->owed_i = 1;
  EXPECT_FALSE(SettlesFull(7));
  SetGaps(7, true);
  EXPECT_TRUE(SettlesFull(7));
  SetGaps(7, false);
  EXPECT_FALSE(SettlesFull(7));
}

// Its peer would refuse on another PDC as well.
TEST_F(PdcChoiceTest, APdcThatIsRefusedOrSilentIsStuckAndNotFull) {
  Open(7, false);
  dut_->in_flight_i = 3;
  dut_->waits_i = 1;
  EXPECT_FALSE(SettlesFull(7));
  EXPECT_TRUE(IsStuck(7));
  dut_->waits_i = 0;
  dut_->probing_i = 1;
  EXPECT_FALSE(SettlesFull(7));
  EXPECT_TRUE(IsStuck(7));
  dut_->probing_i = 0;
  EXPECT_FALSE(SettlesFull(7));
  EXPECT_FALSE(IsStuck(7));
}

TEST_F(PdcChoiceTest, APdcThatClosesIsNotFull) {
  Open(7, false);
  dut_->closing_i = 1;
  dut_->in_flight_i = 1;
  EXPECT_FALSE(SettlesFull(7));
}

TEST_F(PdcChoiceTest, UrgentOnesGoFirstAndTheOthersHaveAShare) {
  for (uint32_t pdc = 0; pdc < 64; ++pdc) {
    Open(pdc, pdc % 2 == 0);
    SetPending(pdc, true);
  }
  uint32_t urgent = 0;
  uint32_t others = 0;
  for (int cycle = 0; cycle < 2000; ++cycle) {
    dut_->more_i = dut_->event_i;
    const std::optional<uint32_t> pdc = Take();
    if (pdc.has_value()) {
      ++(*pdc % 2 == 0 ? urgent : others);
    }
  }
  EXPECT_GT(urgent + others, 1800u);
  // They have a cycle, too, in which the urgent class fetches its next group.
  EXPECT_LE(others, (urgent + others) / 4);
  EXPECT_GE(others, (urgent + others) / (kShare + 1));
}

TEST_F(PdcChoiceTest, EachPdcThatMaySendIsOfferedInTime) {
  std::mt19937 rng(TestSeed());
  const auto below = [&rng](uint32_t limit) {
    return static_cast<uint32_t>(rng() % limit);
  };
  std::set<uint32_t> pdcs;
  while (pdcs.size() < 40) {
    const uint32_t pdc = below(kPdcs);
    if (pdcs.insert(pdc).second) {
      Open(pdc, below(4) == 0);
    }
  }
  const std::vector<uint32_t> all(pdcs.begin(), pdcs.end());
  std::map<uint32_t, int> queued;   // Messages.
  std::map<uint32_t, int> waiting;  // Cycles.
  std::optional<uint32_t> sender;
  for (int cycle = 0; cycle < 20'000; ++cycle) {
    dut_->more_i = sender.has_value() && queued[*sender] > 1;
    if (sender.has_value() && queued[*sender] > 0) {
      --queued[*sender];  // Known a cycle later, with `pending_i`.
    }
    const std::optional<uint32_t> left = sender;
    const uint32_t pdc = all[below(static_cast<uint32_t>(all.size()))];
    const bool enqueues = below(3) == 0 && pdc != left;
    if (enqueues) {
      Enqueue(pdc);
    }
    const std::optional<uint32_t> offered =
        below(5) == 0 ? (Tick(), std::nullopt) : Take();
    if (offered.has_value()) {
      waiting[*offered] = 0;
    }
    if (left.has_value()) {
      SetPending(*left, queued[*left] > 0);
    }
    if (enqueues) {
      ++queued[pdc];
      SetPending(pdc, true);
    }
    sender = offered;
    for (const auto& [id, messages] : queued) {
      waiting[id] = messages > 0 ? waiting[id] + 1 : 0;
      ASSERT_LT(waiting[id], 1000) << "PDC " << id << ", cycle " << cycle;
    }
  }
}

}  // namespace
}  // namespace heddle::test
