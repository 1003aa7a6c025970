// SPDX-License-Identifier: Apache-2.0
// Who is told of a peer's READ, and when.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "Vheddle_read_reports.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/rtl/transport/generations.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

constexpr uint32_t kSlots = 64;

class ReadReportsTest : public testing::Test {
 protected:
  ReadReportsTest() {
    dut_->rx_alive_i = 0xffff;
    SetGens(3);
    for (size_t i = 0; i < rtl::kNumRx; ++i) {
      rtl::DriveElement(
          dut_->rx_counters_i, i,
          rtl::RxCounters{.remote_read = static_cast<uint8_t>(i + 100)});
    }
    Cycle();
  }

  // All contexts have generation 3, but for context 2.
  void SetGens(uint32_t second) {
    std::map<size_t, uint32_t> gens;
    for (size_t i = 0; i < rtl::kNumRx; ++i) gens[i] = i == 2 ? second : 3;
    DriveGens(dut_->rx_gen_i, gens);
  }

  static rtl::ReadWait Wait(uint32_t pdc, uint32_t psn, uint32_t number = 0) {
    return {.pdc = static_cast<uint8_t>(pdc),
            .psn = psn,
            .fa_hi = 5,
            .fa_lo = uint64_t{0x0a000000} + pdc,
            .read = {.ctx = static_cast<uint8_t>(number % 16),
                     .gen = 3,
                     .owner = 0x21,
                     .credit = 1,
                     .cq = 9,
                     .cq_gen = 6,
                     .queue_head = 77,
                     .initiator = 0x1234,
                     .key = 0xabcd,
                     .bytes = number}};
  }
  void Begin(const rtl::ReadWait& wait) {
    dut_->wait_i = 1;
    rtl::Drive(dut_->wait_info_i, wait);
    Cycle();
    dut_->wait_i = 0;
  }
  void End(const rtl::ReadOver& over) {
    dut_->over_i = 1;
    rtl::Drive(dut_->over_info_i, over);
    Cycle();
    dut_->over_i = 0;
  }
  void Acknowledge(uint32_t pdc, uint32_t psn) {
    End({.pdc = static_cast<uint8_t>(pdc), .psn = psn});
  }

  void Cycle() {
    dut_->ev_valid_i = placed.empty() ? 0 : 1;
    if (!placed.empty()) rtl::Drive(dut_->ev_i, placed.front());
    dut_->ev_ready_i = stalled ? 0 : 1;
    dut_.Settle();
    if (dut_->ev_valid_o && !stalled) {
      events.push_back(rtl::Sample<rtl::CqEvent>(dut_->ev_o));
    }
    if (dut_->ev_ready_o && !placed.empty()) placed.pop_front();
    dut_.Tick();
  }
  std::vector<rtl::CqEvent> Run(int cycles) {
    for (int i = 0; i < cycles; ++i) Cycle();
    return std::exchange(events, {});
  }
  bool HasRoom() {
    dut_.Settle();
    return dut_->room_o != 0;
  }
  bool Idle() {
    dut_.Settle();
    return dut_->idle_o != 0;
  }

  sim::model::ClockedModel<Vheddle_read_reports> dut_;
  bool stalled = false;
  std::deque<rtl::CqEvent> placed;  // By heddle_place.
  std::vector<rtl::CqEvent> events;
};

TEST_F(ReadReportsTest, OverWhenItsLastDataAreAcknowledged) {
  Begin(Wait(5, 100, 4000));
  EXPECT_TRUE(Run(10).empty());
  EXPECT_TRUE(Idle()) << "waits for an answer only";
  Acknowledge(5, 100);  // Those before it.
  Acknowledge(6, 200);
  EXPECT_TRUE(Run(10).empty());
  Acknowledge(5, 101);
  const auto told = Run(10);
  ASSERT_EQ(told.size(), 1U);
  const rtl::CqEvent& event = told[0];
  EXPECT_EQ(event.write, 1);
  EXPECT_EQ(event.credit, 1);
  EXPECT_EQ(event.owner, 0x21);
  EXPECT_EQ(event.cq, 9);
  EXPECT_EQ(event.cq_gen, 6);
  EXPECT_EQ(event.count.own, 100);
  EXPECT_EQ(event.count.region, 0);
  const contract::Completion wanted = {
      .length = 4000,
      .message_length = 4000,
      .match_bits = 0xabcd,
      .source_fa_lo = 0x0a000005,
      .source_fa_hi = 5,
      .peer = 0x1234,
      .queue_head = 77,
      .opcode = contract::Opcode::kRead,
      .kind = contract::CompletionKind::kTarget};
  EXPECT_EQ(event.entry, wanted);
  Acknowledge(5, 101);
  EXPECT_TRUE(Run(10).empty());
}

TEST_F(ReadReportsTest, PsnsWrap) {
  Begin(Wait(5, 0xffffffff));
  Begin(Wait(5, 3));
  Acknowledge(5, 0);
  EXPECT_EQ(Run(10).size(), 1U);
  Acknowledge(5, 4);
  EXPECT_EQ(Run(10).size(), 1U);
}

TEST_F(ReadReportsTest, CloseEndsAllOfAPdcAndLossReportsNothing) {
  for (const bool lost : {false, true}) {
    Begin(Wait(5, 100));
    Begin(Wait(5, 200));
    Begin(Wait(6, 100));
    End({.pdc = 5, .psn = 7, .gone = 1, .lost = lost});
    const auto told = Run(20);
    ASSERT_EQ(told.size(), 2U);
    for (const rtl::CqEvent& event : told) {
      EXPECT_EQ(event.write, lost ? 0 : 1);
      EXPECT_EQ(event.credit, 1);
      EXPECT_EQ(event.count.own, lost ? 0 : 100);
    }
    Acknowledge(6, 101);
    EXPECT_EQ(Run(10).size(), 1U);
  }
  // One that comes when its PDC is lost already.
  rtl::ReadWait wait = Wait(5, 100);
  wait.lost = 1;
  Begin(wait);
  const auto told = Run(10);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].write, 0);
  EXPECT_EQ(told[0].credit, 1);
}

TEST_F(ReadReportsTest, LivingContextsOnlyAreTold) {
  for (const bool disabled : {false, true}) {
    Begin(Wait(5, 100, 2));
    Begin(Wait(5, 101, 3));
    if (disabled) {
      dut_->rx_alive_i = 0xffff & ~(1U << 2);
    } else {
      SetGens(4);
    }
    Acknowledge(5, 102);
    const auto told = Run(10);
    ASSERT_EQ(told.size(), 2U);
    for (const rtl::CqEvent& event : told) {
      const bool living = event.entry.length == 3;
      EXPECT_EQ(event.write, living ? 1 : 0);
      EXPECT_EQ(event.count.own, living ? 103 : 0);
      EXPECT_EQ(event.credit, 1);
    }
    SetGens(3);
  }
}

// Also when it was disabled while its event was offered.
TEST_F(ReadReportsTest, LivingIsDecidedWhenTheEventLeaves) {
  stalled = true;
  Begin(Wait(5, 100, 2));
  Acknowledge(5, 101);
  EXPECT_TRUE(Run(10).empty());
  dut_->rx_alive_i = 0;
  stalled = false;
  const auto told = Run(10);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].write, 0);
  EXPECT_EQ(told[0].count.own, 0);
}

TEST_F(ReadReportsTest, WithoutCreditItOnlyCounts) {
  rtl::ReadWait wait = Wait(5, 100, 4);
  wait.read.credit = 0;
  Begin(wait);
  Acknowledge(5, 101);
  const auto told = Run(10);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].write, 0);
  EXPECT_EQ(told[0].credit, 0);
  EXPECT_EQ(told[0].count.own, 104);
}

TEST_F(ReadReportsTest, BesideWhatIsPlaced) {
  for (uint32_t i = 0; i < 16; ++i) Begin(Wait(5, i, 1000 + i));
  for (uint32_t i = 0; i < 40; ++i) {
    placed.push_back({.token = 1, .entry = {.length = i}});
  }
  Acknowledge(5, 16);
  const auto told = Run(60);
  ASSERT_EQ(told.size(), 56U);
  std::vector<uint32_t> order;
  for (size_t i = 0; i < told.size(); ++i) {
    if (told[i].token != 0) {
      order.push_back(told[i].entry.length);
    } else {
      EXPECT_TRUE(i == 0 || told[i - 1].token != 0) << i;
    }
  }
  EXPECT_EQ(order.size(), 40U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(ReadReportsTest, RoomEndsBeforeThePlacesDoAndComesBack) {
  uint32_t begun = 0;
  while (HasRoom() && begun < 2 * kSlots) Begin(Wait(5, begun++));
  EXPECT_LT(begun, kSlots);
  EXPECT_GE(begun, kSlots - 8);
  Acknowledge(5, 1);
  EXPECT_EQ(Run(10).size(), 1U);
  EXPECT_TRUE(HasRoom());
}

TEST_F(ReadReportsTest, RandomReadsAreToldOnceEach) {
  std::mt19937 engine(TestSeed());
  const auto random = [&] { return static_cast<uint32_t>(engine()); };
  std::map<uint32_t, uint32_t> begun;  // By PDC.
  std::map<uint32_t, uint32_t> over;
  uint32_t number = 0;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> where;  // Number to place.
  for (uint32_t step = 0; step < 20000 || !where.empty(); ++step) {
    ASSERT_LT(step, 40000U);
    const uint32_t pdc = random() % 6;
    stalled = random() % 3 == 0;
    if (step < 20000 && random() % 2 == 0 && HasRoom()) {
      where[number] = {pdc, begun[pdc]};
      Begin(Wait(pdc, begun[pdc]++, number++));
    } else if (random() % 2 == 0 && over[pdc] != begun[pdc]) {
      over[pdc] += 1 + random() % (begun[pdc] - over[pdc]);
      Acknowledge(pdc, over[pdc]);
    } else {
      Cycle();
    }
    for (const rtl::CqEvent& event : std::exchange(events, {})) {
      const auto at = where.find(event.entry.length);
      ASSERT_NE(at, where.end()) << event.entry.length;
      EXPECT_LT(at->second.second, over[at->second.first]);
      where.erase(at);
    }
  }
}

}  // namespace
}  // namespace heddle::test
