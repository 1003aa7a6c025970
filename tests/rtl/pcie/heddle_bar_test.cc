// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "Vheddle_bar.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/bench.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

constexpr uint32_t kBar2 = 0x100000;
constexpr uint32_t kOkay = 0;
constexpr uint32_t kSlvErr = 2;
constexpr int kLimit = 200;  // Cycles.
constexpr uint32_t kPushEnd = contract::kPushWindowOffset +
                              contract::kPushWindowSlots * contract::kDescBytes;

// A doorbell, or words of a slot of a push window.
struct Left {
  uint32_t page;
  uint32_t offset;  // A push has that of its slot.
  uint32_t words = 0;
  std::array<uint64_t, 8> data{};  // Zero where no word was written.
  bool operator==(const Left&) const = default;
};

class Bench {
 public:
  sim::model::ClockedModel<Vheddle_bar> dut;
  std::vector<Left> doorbells;
  Rng rng{1};
  uint32_t db_stall_percent = 0;

  void Tick(const std::function<void()>& sample = {}) {
    dut->db_ready_i = rng() % 100 >= db_stall_percent;
    dut.Settle();
    // The statistics unit answers in the same cycle.
    dut->stat_value_i = 0x1000000000000 + dut->stat_index_o;
    dut.Settle();
    if (dut->db_valid_o && dut->db_ready_i) {
      const auto db = rtl::Sample<rtl::Doorbell>(dut->db_o);
      Left left{.page = db.page, .offset = db.offset};
      if (db.page < contract::kRxPageFirst &&
          db.offset >= contract::kPushWindowOffset) {
        const auto push = rtl::Sample<rtl::Push>(dut->push_o);
        left.offset -= left.offset % contract::kDescBytes;
        left.words = push.words;
        const auto data = push.data.To<std::array<uint64_t, 8>>();
        for (uint32_t i = 0; i < 8; ++i) {
          if ((push.words >> i & 1) != 0) left.data[i] = data[i];
        }
      } else {
        left.data[0] = db.data;
      }
      doorbells.push_back(left);
    }
    if (sample) {
      sample();
    }
    dut.Tick();
  }
  // Runs until `done` after a sample; false when that takes too long.
  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < kLimit; ++i) {
      bool end = false;
      Tick([&] { end = done(); });
      if (end) {
        return true;
      }
    }
    return false;
  }

  // `data` in the lane of the address.
  uint32_t Write(uint32_t address, uint64_t data, uint32_t strobes = 0xff,
                 uint32_t beats = 1) {
    std::array<uint64_t, 8> lanes{};
    lanes[address / 8 % 8] = data;
    return WriteLanes(address, lanes, uint64_t{strobes} << address / 8 % 8 * 8,
                      beats);
  }
  uint32_t WriteLanes(uint32_t address, const std::array<uint64_t, 8>& lanes,
                      uint64_t strobes, uint32_t beats = 1) {
    dut->s_axi_awvalid_i = 1;
    dut->s_axi_awaddr_i = address;
    dut->s_axi_awlen_i = uint8_t(beats - 1);
    EXPECT_TRUE(Until([&] { return dut->s_axi_awready_o; }));
    dut->s_axi_awvalid_i = 0;
    for (uint32_t i = 0; i < beats; ++i) {
      PutData(lanes, strobes);
      dut->s_axi_wlast_i = i + 1 == beats;
      EXPECT_TRUE(Until([&] { return dut->s_axi_wready_o; }));
    }
    dut->s_axi_wvalid_i = 0;
    uint32_t response = 99;
    dut->s_axi_bready_i = 1;
    EXPECT_TRUE(Until([&] {
      response = dut->s_axi_bresp_o;
      return dut->s_axi_bvalid_o;
    }));
    dut->s_axi_bready_i = 0;
    return response;
  }
  void PutData(const std::array<uint64_t, 8>& lanes, uint64_t strobes) {
    dut->s_axi_wvalid_i = 1;
    std::memcpy(&dut->s_axi_wdata_i, lanes.data(), sizeof(lanes));
    dut->s_axi_wstrb_i = strobes;
  }
  uint32_t Write32(uint32_t address, uint32_t data) {
    const bool high = address & 4;
    return Write(address, uint64_t{data} << (high ? 32 : 0),
                 high ? 0xf0 : 0x0f);
  }
  // {response, data of the last beat, beats}
  std::tuple<uint32_t, uint64_t, int> ReadBurst(uint32_t address,
                                                uint32_t beats) {
    dut->s_axi_arvalid_i = 1;
    dut->s_axi_araddr_i = address;
    dut->s_axi_arlen_i = uint8_t(beats - 1);
    EXPECT_TRUE(Until([&] { return dut->s_axi_arready_o; }));
    dut->s_axi_arvalid_i = 0;
    uint32_t response = 99;
    uint64_t data = 0;
    int count = 0;
    dut->s_axi_rready_i = 1;
    EXPECT_TRUE(Until([&] {
      if (!dut->s_axi_rvalid_o) {
        return false;
      }
      response = dut->s_axi_rresp_o;
      std::memcpy(&data, &dut->s_axi_rdata_o[address / 8 % 8 * 2], 8);
      ++count;
      return bool(dut->s_axi_rlast_o);
    }));
    dut->s_axi_rready_i = 0;
    return {response, data, count};
  }
  uint64_t Read(uint32_t address) {
    const auto [response, data, beats] = ReadBurst(address, 1);
    EXPECT_EQ(response, kOkay);
    EXPECT_EQ(beats, 1);
    return data;
  }
  uint32_t Read32(uint32_t address) {
    return uint32_t(Read(address) >> (address & 4 ? 32 : 0));
  }
};

TEST(BarTest, ReadsShowIdentityLimitsAndHealth) {
  Bench b;
  b.dut->version_i = 0x00010000;
  b.dut->capability_i = 0x1122334455667788;
  b.dut->context_limits_i = 0x20201010;
  b.dut->transport_limits_i = 0x00400400;
  b.dut->datapath_i = 0x20000200;
  b.dut->region_limits_i = 0x00100400;
  b.dut->device_status_i = 5;
  b.dut->fatal_cause_i = 0xdead;
  EXPECT_EQ(b.Read32(contract::kBar0MagicOffset), contract::kBar0MagicReset);
  EXPECT_EQ(b.Read32(contract::kBar0VersionOffset), 0x00010000u);
  EXPECT_EQ(b.Read(contract::kBar0CapabilityOffset), 0x1122334455667788u);
  EXPECT_EQ(b.Read32(contract::kBar0CapabilityOffset + 4), 0x11223344u);
  EXPECT_EQ(b.Read32(contract::kBar0ContextLimitsOffset), 0x20201010u);
  EXPECT_EQ(b.Read32(contract::kBar0TransportLimitsOffset), 0x00400400u);
  EXPECT_EQ(b.Read32(contract::kBar0DatapathOffset), 0x20000200u);
  EXPECT_EQ(b.Read32(contract::kBar0RegionLimitsOffset), 0x00100400u);
  EXPECT_EQ(b.Read32(contract::kBar0DeviceStatusOffset), 5u);
  EXPECT_EQ(b.Read32(contract::kBar0FatalCauseOffset), 0xdeadu);
  EXPECT_EQ(b.Read(contract::kBar0StatisticsOffset + 8 * 37),
            0x1000000000000u + 37);
  EXPECT_EQ(b.Read(contract::kBar0StatisticsOffset + 8 * 64), 0u);
  EXPECT_EQ(b.Read(0x40), 0u);
  EXPECT_EQ(b.Read(kBar2), 0u);
}

TEST(BarTest, AdminRegistersKeepWhatIsWrittenWhole) {
  Bench b;
  EXPECT_EQ(b.Write(contract::kBar0AdminCommandBaseOffset, 0x123456789abcdef0),
            kOkay);
  EXPECT_EQ(b.Write(contract::kBar0AdminAnswerBaseOffset, 0xfedcba9876543210),
            kOkay);
  EXPECT_EQ(b.Write32(contract::kBar0AdminSizeOffset, 7), kOkay);
  EXPECT_EQ(b.Write32(contract::kBar0AdminTailOffset, 0x54321), kOkay);
  EXPECT_EQ(b.dut->admin_command_base_o, 0x123456789abcdef0u);
  EXPECT_EQ(b.dut->admin_answer_base_o, 0xfedcba9876543210u);
  EXPECT_EQ(b.dut->admin_log2_o, 7);
  EXPECT_EQ(b.dut->admin_tail_o, 0x4321);
  EXPECT_EQ(b.Read(contract::kBar0AdminCommandBaseOffset), 0x123456789abcdef0u);
  EXPECT_EQ(b.Read32(contract::kBar0AdminSizeOffset), 7u);
  EXPECT_EQ(b.Read32(contract::kBar0AdminTailOffset), 0x4321u);
}

TEST(BarTest, PartialWritesAndBurstsAreRefusedWithoutEffect) {
  Bench b;
  const uint32_t base = contract::kBar0AdminCommandBaseOffset;
  for (uint32_t strobes : {0x0fu, 0xf0u, 0x01u, 0x7fu, 0x3cu, 0x00u}) {
    EXPECT_EQ(b.Write(base, ~0ull, strobes), kSlvErr) << strobes;
  }
  EXPECT_EQ(b.Write(base, ~0ull, 0xff, 3), kSlvErr);
  EXPECT_EQ(b.Read(base), 0u);
  EXPECT_EQ(b.Write(contract::kBar0AdminTailOffset, ~0ull, 0x30), kSlvErr);
  EXPECT_EQ(b.Read32(contract::kBar0AdminTailOffset), 0u);
  const uint32_t tail = kBar2 + contract::kDoorbellTailOffset;
  EXPECT_EQ(b.Write(tail, 1, 0x0f), kSlvErr);
  EXPECT_EQ(b.Write(tail, 1, 0xff, 2), kSlvErr);
  for (int i = 0; i < 20; ++i) {
    b.Tick();
  }
  EXPECT_TRUE(b.doorbells.empty());
  const auto [response, data, beats] = b.ReadBurst(base, 4);
  EXPECT_EQ(response, kSlvErr);
  EXPECT_EQ(data, 0u);
  EXPECT_EQ(beats, 4);
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(BarTest, UnmappedWritesDoNothing) {
  Bench b;
  EXPECT_EQ(b.Write(0x40, ~0ull), kOkay);
  EXPECT_EQ(b.Write(contract::kBar0MagicOffset, ~0ull), kOkay);
  EXPECT_EQ(b.Write(0x20000 + contract::kBar0AdminCommandBaseOffset, ~0ull),
            kOkay);
  EXPECT_EQ(b.Read(contract::kBar0AdminCommandBaseOffset), 0u);
  // Pages between the queues, and offsets that are no doorbell.
  for (uint32_t page : {16u, 63u, 80u, 127u, 160u, 191u}) {
    EXPECT_EQ(b.Write(kBar2 + page * 4096, 1), kOkay);
  }
  EXPECT_EQ(b.Write(kBar2 + 16, 1), kOkay);
  // A receive page has no push window, and a window has an end.
  EXPECT_EQ(b.Write(kBar2 + contract::kRxPageFirst * 4096 +
                        contract::kPushWindowOffset,
                    1),
            kOkay);
  EXPECT_EQ(b.Write(kBar2 + contract::kPushWindowOffset - 8, 1), kOkay);
  EXPECT_EQ(b.Write(kBar2 + kPushEnd, 1), kOkay);
  EXPECT_EQ(b.Write(kBar2 + 128 * 4096 + 8, 1), kOkay);
  EXPECT_EQ(b.Write(kBar2 + 192 * 4096 + 32, 1), kOkay);
  for (int i = 0; i < 20; ++i) {
    b.Tick();
  }
  EXPECT_TRUE(b.doorbells.empty());
}

// Strobes of the words `words` of a beat.
uint64_t Strobes(uint32_t words) {
  uint64_t strobes = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    if ((words >> i & 1) != 0) strobes |= uint64_t{0xff} << 8 * i;
  }
  return strobes;
}

// A random doorbell or push.
Left Next(Rng& rng) {
  const auto word = [&] { return uint64_t{rng()} << 32 | rng(); };
  const uint32_t kind = rng() % 5;
  Left left{};
  if (kind == 3) {
    left.page = contract::kTxPageFirst + rng() % 16;
    left.offset = contract::kPushWindowOffset + rng() % 16 * 64;
    left.words = 1 + rng() % 255;
    for (uint32_t w = 0; w < 8; ++w) {
      if ((left.words >> w & 1) != 0) left.data[w] = word();
    }
    return left;
  }
  left.page = kind == 0   ? contract::kTxPageFirst + rng() % 16
              : kind == 1 ? contract::kRxPageFirst + rng() % 16
              : kind == 2 ? contract::kCqPageFirst + rng() % 32
                          : contract::kCounterPageFirst + rng() % 64;
  left.offset = kind == 2 ? 0 : rng() % (kind == 4 ? 4 : 2) * 8;
  left.data[0] = word();
  return left;
}

// As it is on the bus.
std::pair<std::array<uint64_t, 8>, uint64_t> BeatOf(const Left& left) {
  if (left.words != 0) return {left.data, Strobes(left.words)};
  const uint32_t lane = left.offset / 8 % 8;
  std::array<uint64_t, 8> lanes{};
  lanes[lane] = left.data[0];
  return {lanes, uint64_t{0xff} << 8 * lane};
}

TEST(BarTest, OrderedDoorbellsLeaveInBusOrderUnderBackPressure) {
  Bench b;
  b.rng = Rng(Seed(4));
  b.db_stall_percent = 90;
  std::vector<Left> expected;
  for (int i = 0; i < 500; ++i) {
    const Left left = Next(b.rng);
    const auto [lanes, strobes] = BeatOf(left);
    ASSERT_EQ(
        b.WriteLanes(kBar2 + left.page * 4096 + left.offset, lanes, strobes),
        kOkay);
    expected.push_back(left);
  }
  for (int i = 0; i < 1000; ++i) {
    b.Tick();
  }
  EXPECT_EQ(b.doorbells, expected);
  EXPECT_TRUE(b.dut->idle_o);
}

// Also pushes of 64 bytes: one beat each.
TEST(BarTest, ADoorbellLeavesInEachCycle) {
  constexpr uint32_t kWrites = 300;
  Bench b;
  b.rng = Rng(Seed(5));
  std::vector<Left> expected;
  for (uint32_t i = 0; i < kWrites; ++i) expected.push_back(Next(b.rng));
  uint32_t addresses = 0, beats = 0, answers = 0, cycles = 0;
  b.dut->s_axi_bready_i = 1;
  b.dut->s_axi_wlast_i = 1;
  b.dut->s_axi_awlen_i = 0;
  for (; answers < kWrites && cycles < 2 * kWrites; ++cycles) {
    b.dut->s_axi_awvalid_i = addresses < kWrites;
    if (addresses < kWrites) {
      b.dut->s_axi_awaddr_i =
          kBar2 + expected[addresses].page * 4096 + expected[addresses].offset;
    }
    b.dut->s_axi_wvalid_i = 0;
    if (beats < kWrites) {
      const auto [lanes, strobes] = BeatOf(expected[beats]);
      b.PutData(lanes, strobes);
    }
    b.Tick([&] {
      addresses += b.dut->s_axi_awvalid_i && b.dut->s_axi_awready_o;
      beats += b.dut->s_axi_wvalid_i && b.dut->s_axi_wready_o;
      answers += b.dut->s_axi_bvalid_o;
    });
  }
  EXPECT_EQ(cycles, kWrites + 2);
  EXPECT_EQ(b.doorbells, expected);
}

TEST(BarTest, PushOutsideItsWindowAndBurstsAreRefusedWhole) {
  Bench b;
  const uint32_t slot = kBar2 + 3 * 4096 + contract::kPushWindowOffset + 64;
  EXPECT_EQ(b.Write(slot, 1, 0xff, 8), kSlvErr);
  EXPECT_EQ(b.WriteLanes(slot, {}, 0), kSlvErr) << "no word";
  // Several words where each is a register, or none.
  EXPECT_EQ(b.WriteLanes(kBar2 + 3 * 4096 + kPushEnd, {}, Strobes(3)), kSlvErr);
  EXPECT_EQ(b.WriteLanes(kBar2 + 3 * 4096 + contract::kPushWindowOffset - 64,
                         {}, Strobes(0xff)),
            kSlvErr);
  EXPECT_EQ(b.WriteLanes(kBar2 + contract::kRxPageFirst * 4096 +
                             contract::kPushWindowOffset,
                         {}, Strobes(0xff)),
            kSlvErr);
  EXPECT_EQ(b.WriteLanes(kBar2 + contract::kDoorbellTailOffset, {}, Strobes(3)),
            kSlvErr);
  for (int i = 0; i < 20; ++i) {
    b.Tick();
  }
  EXPECT_TRUE(b.doorbells.empty());
  EXPECT_EQ(b.WriteLanes(slot, {}, Strobes(0xff)), kOkay);
  for (int i = 0; i < 20; ++i) {
    b.Tick();
  }
  EXPECT_EQ(b.doorbells.size(), 1u);
}

TEST(BarTest, PartialWordOfAPushIsLeftOutAndAnswered) {
  Bench b;
  const uint32_t slot = kBar2 + contract::kPushWindowOffset;
  EXPECT_EQ(b.Write(slot, 1, 0x0f), kSlvErr);
  EXPECT_EQ(b.WriteLanes(slot, {1, 2, 3, 4}, 0xff7ff0ff), kSlvErr);
  // The answer is of this write alone.
  EXPECT_EQ(b.WriteLanes(slot + 8, {0, 5, 6}, Strobes(6)), kOkay);
  for (int i = 0; i < 20; ++i) {
    b.Tick();
  }
  const uint32_t offset = contract::kPushWindowOffset;
  EXPECT_EQ(b.doorbells, (std::vector<Left>{{0, offset, 9, {1, 0, 0, 4}},
                                            {0, offset, 6, {0, 5, 6}}}));
}

TEST(BarTest, ResetRequestStaysUntilDoneAndClearsTheAdminQueue) {
  Bench b;
  b.Write(contract::kBar0AdminCommandBaseOffset, 0x1000);
  b.Write32(contract::kBar0AdminTailOffset, 3);
  EXPECT_EQ(b.Write32(contract::kBar0DeviceControlOffset, 0), kOkay);
  EXPECT_EQ(b.dut->reset_o, 0);
  EXPECT_EQ(b.Write32(contract::kBar0DeviceControlOffset, 1), kOkay);
  EXPECT_EQ(b.Read32(contract::kBar0DeviceControlOffset), 1u);
  EXPECT_EQ(b.Read32(contract::kBar0AdminTailOffset), 0u);
  EXPECT_EQ(b.Read(contract::kBar0AdminCommandBaseOffset), 0u);
  b.dut->reset_done_i = 1;
  b.Tick();
  b.dut->reset_done_i = 0;
  EXPECT_EQ(b.Read32(contract::kBar0DeviceControlOffset), 0u);
}

}  // namespace
}  // namespace heddle::test
