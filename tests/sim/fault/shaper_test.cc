// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/fault/shaper.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_wire.h"
#include "tests/sim/frame/test_frames.h"

namespace heddle::sim::fault {
namespace {

LineFrame Numbered(uint32_t number, size_t bytes) {
  frame::Frame frame = frame::MakeAck(0x0a000001, 0, number);
  EXPECT_LE(frame.size(), bytes);
  frame.resize(bytes);
  return {.bytes = std::move(frame), .route = {}, .bad_fcs = false};
}

constexpr size_t kRequestBytes = 160;

struct Arrival {
  uint64_t time;
  uint32_t number;
  bool marked;

  bool operator==(const Arrival&) const = default;
};

// Sends `frames` of 100 bytes, one each `period`, and looks each unit of time.
std::vector<Arrival> Pass(const FaultOptions& options, uint32_t frames,
                          uint64_t period) {
  Shaper shaper(options);
  std::vector<Arrival> arrivals;
  uint32_t sent = 0;
  for (uint64_t now = 0; sent < frames || shaper.next() != UINT64_MAX; ++now) {
    while (sent < frames && sent * period <= now) {
      shaper.Push(Numbered(sent++, 100), now);
    }
    std::vector<LineFrame> out;
    const bool due = shaper.next() <= now;
    shaper.Release(now, &out);
    EXPECT_EQ(!out.empty(), due);
    for (const LineFrame& frame : out) {
      const auto ip = contract::wire::Ipv4::Decode(
          frame.bytes.data() + contract::wire::Ethernet::kBytes);
      arrivals.push_back({now, frame::AckNumber(frame.bytes), ip.ecn == 3});
    }
  }
  return arrivals;
}

TEST(ShaperTest, DelayIsExact) {
  FaultOptions options;
  options.delay = 70;
  const auto arrivals = Pass(options, 50, 10);
  ASSERT_EQ(arrivals.size(), 50U);
  for (uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(arrivals[i], (Arrival{i * 10 + 70, i, false}));
  }
}

TEST(ShaperTest, JitterStaysWithinItsBoundInOrderAndIsTheSameBySeed) {
  FaultOptions options;
  options.delay = 70;
  options.jitter = 30;
  const auto arrivals = Pass(options, 1000, 50);
  ASSERT_EQ(arrivals.size(), 1000U);
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (uint32_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i].number, i);
    const uint64_t took = arrivals[i].time - i * 50;
    least = std::min(least, took);
    most = std::max(most, took);
  }
  EXPECT_EQ(least, 70U);
  EXPECT_EQ(most, 100U);
  EXPECT_EQ(Pass(options, 1000, 50), arrivals);
  options.seed = 9;
  EXPECT_NE(Pass(options, 1000, 50), arrivals);
  // Closer together than the jitter they still do not overtake.
  const auto dense = Pass(options, 1000, 1);
  ASSERT_EQ(dense.size(), 1000U);
  for (uint32_t i = 0; i < dense.size(); ++i) {
    EXPECT_EQ(dense[i].number, i);
  }
}

TEST(ShaperTest, RateIsExactAlsoWhereAFrameTakesAFractionOfTime) {
  FaultOptions options;
  options.queue_bytes = 1 << 20;
  options.rate = 80;  // 100 bytes in 10.
  const auto tens = Pass(options, 100, 0);
  ASSERT_EQ(tens.size(), 100U);
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(tens[i], (Arrival{(i + 1) * 10, i, false}));
  }
  options.rate = 3200;  // Four frames in one.
  const auto quarters = Pass(options, 4000, 0);
  ASSERT_EQ(quarters.size(), 4000U);
  EXPECT_EQ(quarters.back().time, 1000U);
  options.rate = 80;
  EXPECT_EQ(Pass(options, 100, 20).back().time, 99U * 20 + 10)
      << "slower than the rate, none waits for another";
}

TEST(ShaperTest, AFullQueueLosesWhatComesLast) {
  FaultOptions options;
  options.rate = 80;
  options.queue_bytes = 500;
  options.delay = 1000;  // What is under way is not in the queue.
  Shaper shaper(options);
  for (uint32_t i = 0; i < 20; ++i) {
    shaper.Push(Numbered(i, 100), 0);
  }
  EXPECT_EQ(shaper.overflowed(), 15U);
  shaper.Push(Numbered(20, 100), 9);
  EXPECT_EQ(shaper.overflowed(), 16U) << "the first is still on its way out";
  shaper.Push(Numbered(21, 100), 10);
  EXPECT_EQ(shaper.overflowed(), 16U);
  std::vector<LineFrame> out;
  shaper.Release(UINT64_MAX, &out);
  std::vector<uint32_t> numbers;
  for (const LineFrame& frame : out) {
    numbers.push_back(frame::AckNumber(frame.bytes));
  }
  EXPECT_EQ(numbers, (std::vector<uint32_t>{0, 1, 2, 3, 4, 21}));
}

// A write of 44 bytes, in 160 bytes of frame.
LineFrame Request(uint32_t psn) {
  contract::wire::PdsRequest pds;
  pds.type = contract::PdsType::kRudReq;
  pds.next_hdr = contract::NextHdr::kRequestStd;
  pds.psn = psn;
  pds.spdcid = pds.dpdcid = 1;
  std::vector<uint8_t> bytes(kRequestBytes - 42);
  pds.Encode(bytes.data());
  LineFrame frame;
  frame.bytes = frame::MakeFrame(0x0a000001, bytes);
  EXPECT_EQ(frame.bytes.size(), kRequestBytes);
  return frame;
}

TEST(ShaperTest, AQueueThatTrimsLetsHeadersGoFirst) {
  FaultOptions options;
  options.rate = 80;
  options.queue_bytes = 500;  // Three requests, and 125 of what is left.
  options.trim = true;
  options.trim_dscp = 3;
  Shaper shaper(options);
  std::vector<LineFrame> out;
  for (uint32_t psn = 0; psn < 6; ++psn) {
    shaper.Push(Request(psn), 0);
  }
  EXPECT_EQ(shaper.trimmed(), 2U) << "a third finds no room";
  EXPECT_EQ(shaper.overflowed(), 1U);
  shaper.Push(Numbered(7, 100), 0);
  EXPECT_EQ(shaper.overflowed(), 2U) << "an ACK is not trimmed";
  std::vector<std::pair<uint64_t, uint32_t>> arrivals;
  while (shaper.next() != UINT64_MAX) {
    const uint64_t now = shaper.next();
    shaper.Release(now, &out);
    for (const LineFrame& frame : out) {
      const uint8_t* const ip = frame.bytes.data() + 14;
      const auto pds = contract::wire::PdsRequest::Decode(ip + 28);
      arrivals.emplace_back(now, pds.psn);
      const bool cut = pds.psn == 3 || pds.psn == 4;
      EXPECT_EQ(frame.bytes.size(), cut ? 60U : kRequestBytes);
      EXPECT_EQ(contract::wire::Ipv4::Decode(ip).dscp, cut ? 3 : 0);
    }
    out.clear();
  }
  // The first was on its way when the queue was full.
  EXPECT_EQ(arrivals, (std::vector<std::pair<uint64_t, uint32_t>>{
                          {16, 0}, {22, 3}, {28, 4}, {44, 1}, {60, 2}}));
}

TEST(ShaperTest, AFrameLargerThanTheQueuePassesAlone) {
  FaultOptions options;
  options.rate = 80;
  options.queue_bytes = 50;
  const auto arrivals = Pass(options, 10, 10);
  EXPECT_EQ(arrivals.size(), 10U);
}

TEST(ShaperTest, FramesThatFindALongQueueAreMarked) {
  FaultOptions options;
  options.rate = 80;
  options.queue_bytes = 10000;
  options.ecn_bytes = 300;
  const auto arrivals = Pass(options, 20, 0);
  ASSERT_EQ(arrivals.size(), 20U);
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(arrivals[i].marked, i > 3) << i;
  }
}

TEST(ShaperTest, MarksByChanceDependOnTheSeedAlone) {
  FaultOptions options;
  options.ecn = 0.1;
  const auto arrivals = Pass(options, 10000, 1);
  const auto marks = [](const std::vector<Arrival>& all) {
    return std::count_if(all.begin(), all.end(),
                         [](const Arrival& one) { return one.marked; });
  };
  EXPECT_NEAR(static_cast<double>(marks(arrivals)), 1000, 120);
  EXPECT_EQ(Pass(options, 10000, 1), arrivals);
  options.jitter = 5;
  const auto later = Pass(options, 10000, 1);
  ASSERT_EQ(later.size(), arrivals.size());
  for (size_t i = 0; i < later.size(); ++i) {
    EXPECT_EQ(later[i].marked, arrivals[i].marked)
        << "jitter does not shift the marks";
  }
}

}  // namespace
}  // namespace heddle::sim::fault
