// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "Vheddle_rx_scatter.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/dma_models.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

constexpr size_t kBeat = sizeof(std::declval<Vheddle_rx_scatter&>().data_i);

struct Request {
  bool segmented = false;
  uint32_t msg = 0;
  uint64_t address = 0;  // Or the offset.
  std::vector<uint8_t> data;
};

class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed), writes(&*dut.operator->(), &memory) {
    Tick();
  }

  sim::model::ClockedModel<Vheddle_rx_scatter> dut;
  Rng rng;
  Memory memory;
  DmaWriteModel<Vheddle_rx_scatter> writes;
  uint64_t cycle = 0;
  uint32_t stall_percent = 0;
  std::deque<Request> requests;
  std::vector<bool> answers;  // Whether in error.

  void Write(uint32_t msg, const rtl::Segments& segments) {
    dut->seg_wr_i = 1;
    dut->seg_msg_i = static_cast<uint16_t>(msg);
    rtl::Drive(dut->seg_data_i, segments);
    Tick();
    dut->seg_wr_i = 0;
  }

  void Tick() {
    writes.Drive(cycle, &rng);
    dut->req_valid_i = !requests.empty();
    if (!requests.empty()) {
      const Request& r = requests.front();
      dut->req_segmented_i = r.segmented;
      dut->req_msg_i = static_cast<uint16_t>(r.msg);
      rtl::Drive(dut->req_i,
                 rtl::DmaReq{.addr = r.address,
                             .bytes = static_cast<uint16_t>(r.data.size()),
                             .owner = 7});
    }
    dut->data_valid_i = !beats_.empty() && rng() % 100 >= stall_percent;
    if (!beats_.empty()) {
      std::memcpy(&dut->data_i, beats_.front().data(), kBeat);
    }
    dut.Settle();
    writes.Sample(cycle);
    if (dut->data_valid_i && dut->data_ready_o) {
      beats_.pop_front();
    }
    if (dut->rsp_valid_o) {
      answers.push_back(dut->rsp_error_o);
    }
    if (dut->req_valid_i && dut->req_ready_o) {
      const std::vector<uint8_t>& data = requests.front().data;
      for (size_t at = 0; at < data.size(); at += kBeat) {
        std::vector<uint8_t> beat(kBeat, 0xee);
        std::copy_n(data.begin() + static_cast<ptrdiff_t>(at),
                    std::min(kBeat, data.size() - at), beat.begin());
        beats_.push_back(std::move(beat));
      }
      requests.pop_front();
    }
    dut.Tick();
    ++cycle;
  }
  [[nodiscard]] bool RunUntil(size_t count, int limit = 200000) {
    for (int i = 0; i < limit && answers.size() < count; ++i) {
      Tick();
    }
    return answers.size() >= count;
  }

 private:
  std::deque<std::vector<uint8_t>> beats_;  // Of requests taken.
};

std::vector<uint8_t> RandomBytes(Rng* rng, size_t count) {
  std::vector<uint8_t> bytes(count);
  std::generate(bytes.begin(), bytes.end(),
                [&] { return static_cast<uint8_t>((*rng)()); });
  return bytes;
}

TEST(RxScatterTest, OnePlacePassesABeatEachCycle) {
  Bench b(1);
  b.writes.latency = 20;
  for (uint32_t i = 0; i < 40; ++i) {
    b.requests.push_back(
        {.address = 0x1000, .data = RandomBytes(&b.rng, 8 * kBeat)});
  }
  const uint64_t start = b.cycle;
  ASSERT_TRUE(b.RunUntil(40));
  EXPECT_LE(b.cycle - start, 40U * 8 + 20 + 3);
}

// Requests with segments and without, of every size and place, against the
// memory that they should leave.
TEST(RxScatterTest, OrderedDataGoToTheirSegmentsAndNowhereElse) {
  for (uint32_t seed = Seed(37), end = seed + 30; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(seed);
    b.stall_percent = seed * 5 % 60;
    b.writes.stall_percent = seed * 3 % 40;
    b.writes.latency = 1 + seed % 40;
    b.writes.ahead = 1 + seed % 5;
    constexpr uint64_t kSpace = 0x200000;
    constexpr uint64_t kRefused = 0x100000;  // And 64 KiB behind it.
    b.writes.refuse_from = kRefused;
    b.writes.refuse_to = kRefused + 0x10000;
    std::vector<uint8_t> expected(kSpace, 0xa5);  // As `Memory` is.
    std::vector<bool> errors;
    uint64_t next = 0;  // Places do not overlap.
    for (uint32_t msg = 0; msg < 60; ++msg) {
      const uint32_t mtu = 1024U << b.rng() % 4;
      const uint32_t most = b.rng() % 3 == 0 ? 3 * mtu : 3 * kBeat;
      const bool segmented = b.rng() % 4 != 0;
      rtl::Segments segments;
      uint32_t bytes = 0;
      for (size_t i = 0; i < (segmented ? contract::kLocalSegments : 1); ++i) {
        const uint32_t length = b.rng() % 5 == 0 ? 0 : b.rng() % most;
        next += b.rng() % 70;
        if (b.rng() % 30 == 0) next = std::max(next, kRefused - 100);
        if (next + length > kSpace) break;
        segments.iova[i] = next;
        segments.length[i] = length;
        next += length;
        bytes += length;
      }
      if (bytes == 0) continue;
      if (segmented) b.Write(msg, segments);
      for (uint32_t offset = 0; offset < bytes; offset += mtu) {
        const uint32_t count = std::min(mtu, bytes - offset);
        Request r{.segmented = segmented,
                  .msg = msg,
                  .address = (segmented ? 0 : segments.iova[0]) + offset,
                  .data = RandomBytes(&b.rng, count)};
        bool error = false;
        uint32_t base = 0;
        for (size_t i = 0; i < contract::kLocalSegments; ++i) {
          const uint32_t low = std::max(base, offset);
          const uint32_t high =
              std::min(base + segments.length[i], offset + count);
          if (high > low) {
            const uint64_t at = segments.iova[i] + low - base;
            const bool refused =
                at < kRefused + 0x10000 && at + (high - low) > kRefused;
            error = error || refused;
            if (!refused) {
              std::copy_n(r.data.begin() + (low - offset), high - low,
                          expected.begin() + static_cast<ptrdiff_t>(at));
            }
          }
          base += segments.length[i];
        }
        errors.push_back(error);
        b.requests.push_back(std::move(r));
      }
      while (b.requests.size() > 3) {
        b.Tick();
      }
    }
    ASSERT_TRUE(b.RunUntil(errors.size()));
    EXPECT_EQ(b.answers, errors);
    std::vector<uint8_t> memory(kSpace);
    b.memory.Read(0, memory.data(), memory.size());
    ASSERT_TRUE(memory == expected);
    b.Tick();
    EXPECT_TRUE(b.dut->idle_o);
    for (const auto& write : b.writes.writes) {
      EXPECT_EQ(write.request.owner, 7U);
    }
  }
}

}  // namespace
}  // namespace heddle::test
