// SPDX-License-Identifier: Apache-2.0
// Congestion windows against those of the soft device.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "Vheddle_nscc.h"
#include "hw/sim/model/clocked_model.h"
#include "hw/soft/transport/congestion.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/rtl/transport/port.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

using soft::transport::Congestion;

struct Window {
  uint32_t pdc = 0, packets = 0, bytes = 0;
  bool operator==(const Window&) const = default;
};

class NsccTest : public testing::Test {
 protected:
  NsccTest() {
    Configure(4096, 100'000, 8000);
    Run(300);  // The memory initialises itself.
  }

  void Configure(uint16_t mtu, uint32_t cwnd_bytes, uint32_t base_rtt_ns,
                 bool trimming = false) {
    rules_.dscp_trimmed_lasthop = trimming ? 5 : 0;
    settings_.trimming = trimming;
    port_.payload_mtu = mtu;
    rules_.congestion = 1;
    rules_.cwnd_bytes = cwnd_bytes;
    rules_.base_rtt_ns = base_rtt_ns;
    rtl::Drive(dut_->port_i, port_);
    rtl::Drive(dut_->transport_i, rules_);
    settings_.mtu = mtu;
    settings_.cwnd_bytes = cwnd_bytes;
    settings_.base_rtt_ns = base_rtt_ns;
    settings_.congestion = true;
    packet_ = soft::transport::NominalBytes({}, mtu + 56u);
    windows_.fill({});
    Run(8);
  }

  void Cycle() {
    dut_->window_ready_i = Below(2) != 0;
    dut_.Settle();
    // One at a time, as the soft device takes them, or all at once.
    const bool give = !events_.empty() && (together_ || dut_->idle_o);
    dut_->event_valid_i = give;
    if (give) {
      rtl::Drive(dut_->event_i, events_.front());
      events_.pop_front();
    }
    dut_.Settle();
    if (dut_->window_valid_o && dut_->window_ready_i) {
      got_.push_back(
          {dut_->window_pdc_o, dut_->window_o, dut_->window_bytes_o});
    }
    dut_.Tick();
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) Cycle();
  }
  void Drain() {
    for (int i = 0; i < 300'000 && (!events_.empty() || !dut_->idle_o); ++i) {
      Cycle();
    }
    EXPECT_TRUE(dut_->idle_o);
  }

  // Gives the event to both.
  void Give(const rtl::NsccEvent& event) {
    Expect(event);
    events_.push_back(event);
  }
  // Notes the window that the soft device has after the event.
  void Expect(const rtl::NsccEvent& event) {
    auto& [soft, packets] = windows_.at(event.pdc);
    if (event.open) {
      soft.Open(settings_);
      packets.reset();
    }
    if (event.timeout) {
      soft.OnTimeout();
    }
    if (event.ack) {
      soft.OnAck(event.packets * packet_, event.rtt, event.marked, event.now);
    }
    if (event.lost != 0 && event.trim) {
      soft.OnTrim(event.lost * packet_, event.now);
    } else if (event.lost != 0) {
      soft.OnLoss(event.lost * packet_, event.now);
    }
    const auto bytes = static_cast<uint32_t>(soft.cwnd_bytes());
    if (packets != bytes / packet_) {
      packets = bytes / packet_;
      wanted_.push_back({event.pdc, *packets, bytes});
    }
  }
  // The event of a PDC when `event` follows `waiting`.
  static rtl::NsccEvent Merged(const rtl::NsccEvent& waiting,
                               const rtl::NsccEvent& event) {
    if (event.open) {
      return event;
    }
    const auto sum = [](uint8_t a, uint8_t b) {
      return static_cast<uint8_t>(std::min(a + b, 64));
    };
    rtl::NsccEvent both = event;
    both.open = waiting.open;
    both.timeout |= waiting.timeout;
    both.ack |= waiting.ack;
    both.packets = sum(waiting.packets, event.packets);
    both.rtt = event.rtt != 0 ? event.rtt : waiting.rtt;
    both.marked |= waiting.marked;
    both.lost = sum(waiting.lost, event.lost);
    both.trim |= waiting.trim;
    return both;
  }
  rtl::NsccEvent AnyEvent(uint32_t pdc, uint32_t now, uint32_t least,
                          uint32_t marks, uint32_t losses) {
    rtl::NsccEvent event{.pdc = static_cast<uint8_t>(pdc), .now = now};
    if (Below(300) == 0) {
      event.timeout = 1;
    } else if (Below(1000) == 0) {
      event.open = 1;
    } else {
      event.ack = Below(20) != 0;
      if (event.ack) {
        event.packets = static_cast<uint8_t>(Below(Below(4) == 0 ? 65 : 4));
        event.rtt = AnyRtt(least);
        event.marked = Below(100) < marks;
      }
      event.lost = static_cast<uint8_t>(Below(100) < losses ? Below(65) : 0);
      event.trim = !event.ack && Below(2) != 0;
    }
    return event;
  }
  // `count` ACKs of PDC 1, one each 1,000 ns; returns the window after them.
  uint32_t Acks(int count, uint32_t rtt, bool marked) {
    for (int i = 0; i < count; ++i) {
      Give({.pdc = 1,
            .ack = 1,
            .packets = 4,
            .rtt = rtt,
            .marked = marked,
            .now = now_ += 1000});
    }
    Drain();
    return got_.back().packets;
  }
  void ExpectTheWantedWindows(int round) {
    ASSERT_EQ(got_.size(), wanted_.size()) << "round " << round;
    for (size_t i = 0; i < got_.size(); ++i) {
      ASSERT_EQ(got_[i].pdc, wanted_[i].pdc) << "window " << i;
      ASSERT_EQ(got_[i].packets, wanted_[i].packets) << "window " << i;
      ASSERT_EQ(got_[i].bytes, wanted_[i].bytes) << "window " << i;
    }
    windows_seen_ += got_.size();
    got_.clear();
    wanted_.clear();
  }

  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(rng_() % n); }
  // Round trips of an empty path, of a loaded one, or of any.
  uint32_t AnyRtt(uint32_t base) {
    uint32_t rtt = 0;
    switch (Below(5)) {
      case 0:
        break;
      case 1:
        rtt = base;
        break;
      case 2:
        rtt = base + Below(base + 1);
        break;
      case 3:
        rtt = base + Below(8 * base + 1);
        break;
      default:
        rtt = Below(0x1000000);
    }
    return std::min(rtt, 0xffffffu);
  }

  contract::PortCfg port_ = StandardPort();
  contract::TransportCfg rules_;
  soft::transport::Settings settings_;
  uint32_t packet_ = 0;
  std::array<std::pair<Congestion, std::optional<uint32_t>>, 256> windows_;
  std::deque<rtl::NsccEvent> events_;
  std::vector<Window> got_, wanted_;
  size_t windows_seen_ = 0;
  bool together_ = false;   // Events come one in each cycle.
  uint32_t now_ = 100'000;  // The time of the last of `Acks`.
  sim::model::ClockedModel<Vheddle_nscc> dut_;
  std::mt19937 rng_{TestSeed()};
};

TEST_F(NsccTest, FirstWindowIsTheConfiguredOneWithinOneAnd64Packets) {
  for (const uint32_t bytes : {1u, 4203u, 4204u, 100'000u, 269'056u, ~0u}) {
    Configure(4096, bytes, 8000);
    got_.clear();
    Give({.pdc = 3, .open = 1});
    Drain();
    ASSERT_EQ(got_.size(), 1u);
    EXPECT_EQ(got_[0].packets, std::clamp(bytes / 4204, 1u, 64u));
  }
}

TEST_F(NsccTest, MarksWithDelayCloseItAndAnEmptyPathOpensIt) {
  Configure(1024, 72'448, 4000);
  Give({.pdc = 1, .open = 1});
  Acks(2, 2000, false);
  const uint32_t closed = Acks(400, 12'000, true);
  EXPECT_LT(closed, 8u);
  EXPECT_GT(Acks(4000, 2000, false), 2 * closed);
  EXPECT_EQ(got_, wanted_);
}

// A sample that is too short makes each later round trip look delayed, until
// the next period measures the base anew: at most that of the settings.
TEST_F(NsccTest, ABaseThatIsTooShortEndsWithItsPeriod) {
  Configure(1024, 72'448, 8000);
  Give({.pdc = 1, .open = 1});
  Acks(1, 10, false);
  EXPECT_EQ(Acks(400, 12'000, true), 1u);
  now_ += 1u << contract::kNsccBaseShift;
  const uint32_t opened = Acks(400, 12'000, false);
  EXPECT_GT(opened, 8u);
  EXPECT_GE(Acks(400, 12'000, true), opened) << "its delay is below the target";
  EXPECT_EQ(got_, wanted_);
}

// UET 3.1: a trim is a sample of the average delay, takes its packet from the
// window, and once a period makes the window what was delivered.
TEST_F(NsccTest, TrimsMakeTheWindowWhatWasDelivered) {
  Configure(1024, 72'448, 4000, true);
  Give({.pdc = 1, .open = 1});
  uint32_t now = 100'000;
  const auto trim = [&] {
    Give({.pdc = 1, .lost = 1, .trim = 1, .now = now += 10});
    Drain();
    return got_.back().packets;
  };
  EXPECT_EQ(trim(), 63u);
  EXPECT_EQ(trim(), 62u);
  for (int i = 0; i < 3; ++i) {
    Give({.pdc = 1, .ack = 1, .packets = 2, .rtt = 2000, .now = now += 100});
  }
  now += 8000;
  EXPECT_EQ(trim(), 6u);
  EXPECT_EQ(trim(), 5u);
  EXPECT_EQ(got_, wanted_);
}

TEST_F(NsccTest, AnySequenceOfEventsLeavesTheWindowsOfTheSoftDevice) {
  for (int round = 0; round < 60; ++round) {
    const uint32_t base =
        Below(3) == 0 ? 1 + Below(0x2000000) : 500 + Below(50'000);
    Configure(static_cast<uint16_t>(1024u << Below(4)),
              Below(4) == 0 ? 1 + Below(~0u) : 1 + Below(400'000), base,
              Below(2) != 0);
    const uint32_t pdcs = 1 + Below(4);
    for (uint32_t i = 0; i < pdcs; ++i) {
      Give({.pdc = static_cast<uint8_t>(63 * i), .open = 1});
    }
    const uint32_t marks = Below(100), losses = Below(8);
    const uint32_t least = std::min(base, 0x7fffffu) / (1 + Below(3)) + 1;
    uint32_t now = Below(~0u);
    for (int i = 0; i < 2000; ++i) {
      now += Below(least / 4 + 2);
      if (Below(200) == 0) {
        now += Below(4u << (contract::kNsccBaseShift - 1));
      }
      Give(AnyEvent(63 * Below(pdcs), now, least, marks, losses));
    }
    Drain();
    ASSERT_NO_FATAL_FAILURE(ExpectTheWantedWindows(round));
  }
  EXPECT_GT(windows_seen_, 5000u);
}

// The unit is busy with one PDC; an event for another comes in each cycle. PDCs
// take turns in the order in which they came first.
TEST_F(NsccTest, WhatComesWhileAPdcWaitsIsOneEventOfIt) {
  constexpr uint32_t kPdcs = 4;
  constexpr int kAtOnce = 8;  // They come before the first is done.
  constexpr uint32_t kMinimum = 4000;
  Configure(1024, 72'448, kMinimum);
  together_ = true;
  for (uint32_t pdc = 0; pdc <= kPdcs; ++pdc) {
    Give({.pdc = static_cast<uint8_t>(pdc), .open = 1});
  }
  Drain();
  ASSERT_NO_FATAL_FAILURE(ExpectTheWantedWindows(-1));
  uint32_t now = 0;
  for (int round = 0; round < 3000; ++round) {
    Give({.pdc = 0, .timeout = 1, .now = now});
    std::vector<rtl::NsccEvent> waiting;
    for (int i = 0; i < kAtOnce; ++i) {
      now += Below(kMinimum / 4);
      const rtl::NsccEvent event =
          AnyEvent(1 + Below(kPdcs), now, kMinimum, 30, 10);
      events_.push_back(event);
      const auto same =
          std::find_if(waiting.begin(), waiting.end(),
                       [&](const auto& w) { return w.pdc == event.pdc; });
      if (same == waiting.end()) {
        waiting.push_back(event);
      } else {
        *same = Merged(*same, event);
      }
    }
    for (const rtl::NsccEvent& event : waiting) {
      Expect(event);
    }
    Drain();
    ASSERT_NO_FATAL_FAILURE(ExpectTheWantedWindows(round));
  }
  EXPECT_GT(windows_seen_, 3000u);
}

}  // namespace
}  // namespace heddle::test
