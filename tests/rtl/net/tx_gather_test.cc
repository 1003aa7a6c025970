// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "Vheddle_tx_gather.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/dma_models.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

constexpr size_t kBeat = sizeof(std::declval<Vheddle_tx_gather&>().out_data_o);

struct Request {
  bool segmented = false;
  uint32_t msg = 0;
  uint32_t offset = 0;
  uint64_t address = 0;
  uint32_t bytes = 0;
  std::optional<uint32_t> row = {};  // In the NIC.
};

struct Payload {
  std::vector<uint8_t> data;
  bool error = false;
};

class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed), reads(&*dut.operator->(), &memory) {
    Tick();
  }

  sim::model::ClockedModel<Vheddle_tx_gather> dut;
  Rng rng;
  Memory memory;
  DmaReadModel<Vheddle_tx_gather> reads;
  uint64_t cycle = 0;
  uint32_t stall_percent = 0;
  std::deque<Request> requests;
  std::vector<Payload> payloads;
  uint32_t nic_reads = 0;

  // Byte of the spill areas in the NIC.
  static uint8_t NicByte(uint32_t row, uint32_t at) {
    return uint8_t((row * 64 + at) * 2654435761U >> 13);
  }

  void Write(uint32_t msg, const rtl::Segments& segments) {
    dut->wr_valid_i = 1;
    dut->wr_msg_i = static_cast<uint16_t>(msg);
    rtl::Drive(dut->wr_data_i, segments);
    Tick();
    dut->wr_valid_i = 0;
  }

  void Tick() {
    reads.Drive(cycle, &rng);
    DriveNic();
    dut->out_ready_i = rng() % 100 >= stall_percent;
    dut->req_valid_i = !requests.empty();
    if (!requests.empty()) {
      const Request& r = requests.front();
      rtl::Drive(
          dut->req_i,
          rtl::GatherReq{.segmented = r.segmented,
                         .msg = static_cast<uint16_t>(r.msg),
                         .offset = r.offset,
                         .in_nic = r.row.has_value(),
                         .row = uint16_t(r.row.value_or(0)),
                         .read = {.addr = r.address,
                                  .bytes = static_cast<uint16_t>(r.bytes),
                                  .owner = 7}});
    }
    dut.Settle();
    reads.Sample(cycle);
    SampleNic();
    if (dut->req_valid_i && dut->req_ready_o) {
      requests.pop_front();
    }
    if (dut->out_valid_o && dut->out_ready_i) {
      const size_t at = open_.data.size();
      open_.data.resize(at + kBeat);
      std::memcpy(open_.data.data() + at, &dut->out_data_o, kBeat);
      if (dut->out_last_o) {
        open_.error = dut->out_error_o;
        payloads.push_back(open_);
        open_ = {};
      }
    }
    dut.Tick();
    ++cycle;
  }
  [[nodiscard]] bool RunUntil(size_t count, int limit = 200000) {
    for (int i = 0; i < limit && payloads.size() < count; ++i) {
      Tick();
    }
    return payloads.size() >= count;
  }

 private:
  // As heddle_spill_store: a request stays until its last beat.
  void DriveNic() {
    if (!offered_) offered_ = asked_ && rng() % 3 != 0;
    dut->nic_rsp_valid_i = offered_;
    std::vector<uint8_t> beat(kBeat);
    for (size_t i = 0; i < kBeat; ++i) {
      beat[i] = offered_ ? NicByte(nic_.row, given_ + uint32_t(i)) : 0xdd;
    }
    std::memcpy(&dut->nic_rsp_data_i, beat.data(), kBeat);
    dut->nic_rsp_last_i = offered_ && given_ + kBeat >= nic_.bytes;
  }
  void SampleNic() {
    if (offered_) {
      ASSERT_TRUE(dut->nic_valid_o);
      const auto now = rtl::Sample<rtl::SpillRead>(dut->nic_o);
      ASSERT_EQ(now.row, nic_.row);
      ASSERT_EQ(now.bytes, nic_.bytes);
      if (dut->nic_rsp_ready_o) {
        given_ += uint32_t(kBeat);
        offered_ = false;
        asked_ = !dut->nic_rsp_last_i;
        nic_reads += asked_ ? 0 : 1;
      }
    } else if (dut->nic_valid_o && !asked_) {
      nic_ = rtl::Sample<rtl::SpillRead>(dut->nic_o);
      given_ = 0;
      asked_ = true;
    }
  }

  Payload open_;
  bool asked_ = false, offered_ = false;
  rtl::SpillRead nic_;
  uint32_t given_ = 0;
};

TEST(TxGatherTest, OnePiecePassesInTheCycleItComes) {
  Bench b(1);
  b.reads.latency = 20;
  for (uint32_t i = 0; i < 40; ++i) {
    b.requests.push_back(
        {.address = 0x1000, .bytes = static_cast<uint32_t>(8 * kBeat)});
  }
  const uint64_t start = b.cycle;
  ASSERT_TRUE(b.RunUntil(40));
  EXPECT_LE(b.cycle - start, 40U * 8 + 20 + 2);
}

// Requests with segments and without, of every size and place, against the
// bytes they stand for.
TEST(TxGatherTest, OrderedPayloadIsThatOfItsSegmentsWithoutGaps) {
  for (uint32_t seed = Seed(31), end = seed + 30; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(seed);
    b.stall_percent = seed * 5 % 60;
    b.reads.stall_percent = seed * 3 % 40;
    b.reads.latency = 1 + seed % 40;
    b.reads.refuse_from = 0x70000;
    b.reads.refuse_to = 0x70800;
    for (uint64_t i = 0; i < 0x80000; i += 8) {
      const uint64_t word = (uint64_t{b.rng()} << 32) | b.rng();
      b.memory.Write(i, &word, sizeof word);
    }
    struct Expected {
      std::vector<uint8_t> data;
      bool error = false;
    };
    std::vector<Expected> expected;
    uint32_t in_nic = 0;
    for (uint32_t msg = 0; msg < 60; ++msg) {
      // Payload in the NIC keeps its turn among reads of host memory.
      if (b.rng() % 3 == 0) {
        Request r{.address = 0x70000, .bytes = 1 + b.rng() % 192};
        r.row = b.rng() % (1U << rtl::kSpillRowW);
        b.requests.push_back(r);
        Expected e;
        for (uint32_t i = 0; i < r.bytes; ++i) {
          e.data.push_back(Bench::NicByte(*r.row, i));
        }
        expected.push_back(e);
        ++in_nic;
      }
      const uint32_t mtu = 1024U << b.rng() % 4;
      const uint32_t most = b.rng() % 3 == 0 ? 3 * mtu : 3 * kBeat;
      rtl::Segments segments;
      std::vector<uint8_t> data;
      std::vector<bool> refused;
      const bool segmented = b.rng() % 4 != 0;
      for (size_t i = 0; i < (segmented ? contract::kLocalSegments : 1); ++i) {
        const uint64_t address = b.rng() % 0x78000;
        const uint32_t length = b.rng() % 5 == 0 ? 0 : b.rng() % most;
        segments.iova[i] = address;
        segments.length[i] = length;
        const size_t at = data.size();
        data.resize(at + length);
        b.memory.Read(address, data.data() + at, length);
        refused.resize(data.size());
      }
      // Which bytes a packet reads decides whether its reads are refused.
      if (data.empty()) continue;
      b.Write(segmented ? msg : 1000, segments);
      for (uint32_t offset = 0; offset < data.size(); offset += mtu) {
        Request r{.segmented = segmented, .msg = msg, .offset = offset};
        r.address = segments.iova[0] + offset;
        r.bytes = std::min<uint32_t>(mtu, uint32_t(data.size()) - offset);
        b.requests.push_back(r);
        Expected e;
        e.data.assign(data.begin() + offset, data.begin() + offset + r.bytes);
        uint32_t base = 0;
        for (size_t i = 0; i < contract::kLocalSegments; ++i) {
          const uint32_t low = std::max(base, offset);
          const uint32_t high =
              std::min(base + segments.length[i], offset + r.bytes);
          if (high > low) {
            const uint64_t first = segments.iova[i] + low - base;
            e.error =
                e.error || (first < 0x70800 && first + (high - low) > 0x70000);
          }
          base += segments.length[i];
        }
        expected.push_back(e);
      }
      while (b.requests.size() > 3) {
        b.Tick();
      }
      // A message's segments stay while its packets are read.
    }
    ASSERT_TRUE(b.RunUntil(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      const Payload& p = b.payloads[i];
      ASSERT_EQ(p.error, expected[i].error) << i;
      const size_t bytes = expected[i].data.size();
      ASSERT_EQ(p.data.size(), (bytes + kBeat - 1) / kBeat * kBeat) << i;
      if (!p.error) {
        ASSERT_EQ(std::memcmp(p.data.data(), expected[i].data.data(), bytes), 0)
            << i;
      }
    }
    b.Tick();
    EXPECT_TRUE(b.dut->idle_o);
    EXPECT_EQ(b.nic_reads, in_nic);
    for (const rtl::DmaReq& read : b.reads.requests) {
      EXPECT_EQ(read.owner, 7U);
    }
  }
}

}  // namespace
}  // namespace heddle::test
