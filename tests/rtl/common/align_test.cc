// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iostream>
#include <vector>

#include "Vheddle_align.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/pins.h"

namespace heddle::test {
namespace {

constexpr uint32_t kStrobe = HEDDLE_DATA_W / 8;

struct Packet {
  uint32_t lane = 0;
  std::vector<uint8_t> bytes;
};

uint32_t InBeats(const Packet& packet) {
  return static_cast<uint32_t>(
      (packet.lane + packet.bytes.size() + kStrobe - 1) / kStrobe);
}

uint32_t OutBeats(const Packet& packet) {
  return static_cast<uint32_t>((packet.bytes.size() + kStrobe - 1) / kStrobe);
}

struct Result {
  uint64_t cycles = 0;
  uint64_t beats = 0;  // Input beats.
  uint64_t waits = 0;  // Packets that must wait for the tail of another.
};

// Sends `count` packets of up to `most` bytes.
Result Send(uint64_t seed, uint32_t count, uint32_t most, double give,
            double take) {
  std::cout << "seed " << seed << ", " << HEDDLE_DATA_W << " bits\n";
  sim::model::ClockedModel<Vheddle_align> dut;
  sim::base::Random rng(seed);
  std::deque<Packet> todo, due;
  Result result;
  for (uint32_t i = 0; i < count; ++i) {
    Packet packet;
    packet.lane = rng.Below(4) == 0 ? 0 : rng.Below(kStrobe);
    packet.bytes.resize(1 + rng.Below(most));
    for (uint8_t& byte : packet.bytes) byte = static_cast<uint8_t>(rng.Next());
    result.beats += InBeats(packet);
    if (!due.empty()) {
      const Packet& before = due.back();
      const bool tail = before.lane != 0 && InBeats(before) > 1 &&
                        InBeats(before) == OutBeats(before);
      result.waits += tail && (packet.lane == 0 || InBeats(packet) == 1);
    }
    todo.push_back(packet);
    due.push_back(packet);
  }
  uint32_t in_beat = 0, out_beat = 0;
  while (!due.empty() && result.cycles < 1000000) {
    if (!dut->in_valid_i && !todo.empty() && rng.Chance(give)) {
      const Packet& packet = todo.front();
      uint8_t* data = PinBytes(dut->in_data_i);
      for (uint32_t i = 0; i < kStrobe; ++i) {
        const int64_t at = int64_t{in_beat} * kStrobe + i - packet.lane;
        const bool inside =
            at >= 0 && at < static_cast<int64_t>(packet.bytes.size());
        data[i] = inside ? packet.bytes[static_cast<size_t>(at)]
                         : static_cast<uint8_t>(rng.Next());
      }
      dut->in_valid_i = 1;
      dut->in_first_i = in_beat == 0;
      dut->in_last_i = in_beat + 1 == InBeats(packet);
      dut->in_shift_i = static_cast<uint8_t>(packet.lane);
      dut->in_tail_i = InBeats(packet) == OutBeats(packet);
      dut->in_user_i = packet.bytes[0] & 1;
    }
    dut->out_ready_i = rng.Chance(take);
    dut.Settle();
    if (dut->out_valid_o && dut->out_ready_i) {
      const Packet& packet = due.front();
      const uint8_t* data = PinBytes(dut->out_data_o);
      const size_t start = size_t{out_beat} * kStrobe;
      const size_t size =
          std::min<size_t>(kStrobe, packet.bytes.size() - start);
      EXPECT_EQ(std::memcmp(data, packet.bytes.data() + start, size), 0)
          << "lane " << packet.lane << ", " << packet.bytes.size()
          << " bytes, beat " << out_beat;
      ++out_beat;
      EXPECT_EQ(dut->out_last_o, out_beat == OutBeats(packet));
      if (out_beat == OutBeats(packet)) {
        EXPECT_EQ(dut->out_user_o, packet.bytes[0] & 1);
        out_beat = 0;
        due.pop_front();
      }
      if (testing::Test::HasFailure()) return result;
    }
    const bool taken = dut->in_valid_i && dut->in_ready_o;
    dut.Tick();
    ++result.cycles;
    if (taken) {
      dut->in_valid_i = 0;
      if (++in_beat == InBeats(todo.front())) {
        in_beat = 0;
        todo.pop_front();
      }
    }
  }
  EXPECT_TRUE(due.empty());
  return result;
}

TEST(AlignTest, PacketsOfAnyLaneAndLengthAreAligned) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Send(seed, 3000, 4 * kStrobe, seed % 2 ? 1 : 0.6, seed < 3 ? 1 : 0.6);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(AlignTest, LongPacketsPassAtFullRate) {
  const Result result = Send(11, 50, 200 * kStrobe, 1, 1);
  EXPECT_LE(result.cycles, result.beats + result.waits + 3);
  EXPECT_LT(result.waits, 15u);
}

}  // namespace
}  // namespace heddle::test
