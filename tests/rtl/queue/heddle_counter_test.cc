// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>

#include "Vheddle_counter.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/bench.h"
#include "tests/rtl/queue/dma_models.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

using contract::CounterCell;
using contract::CounterCfg;
using contract::TableOp;

constexpr uint32_t kCounters = rtl::kNumCounter;

struct Doorbell {
  uint32_t index, offset;
  uint64_t data;
};

class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed), writes(&*dut.operator->(), &memory) {
    for (int i = 0; i < 70; ++i) {
      Tick();
    }
  }

  sim::model::ClockedModel<Vheddle_counter> dut;
  Rng rng;
  Memory memory;
  DmaWriteModel<Vheddle_counter> writes;
  uint64_t cycle = 0;
  std::deque<rtl::Count> counts;
  std::deque<Doorbell> doorbells;
  uint32_t updates = 0;
  std::array<uint64_t, kCounters> started{};  // Generations of the cells.

  static uint64_t CellOf(uint32_t index) { return 0x40000 + index * 0x20; }

  void Tick(const std::function<void()>& sample = {}) {
    writes.Drive(cycle, &rng);
    dut->count_valid_i = !counts.empty();
    if (!counts.empty()) {
      rtl::Drive(dut->count_i, counts.front());
    }
    dut->db_valid_i = !doorbells.empty();
    if (!doorbells.empty()) {
      const Doorbell& d = doorbells.front();
      PutDoorbell(&dut->db_i, contract::kCounterPageFirst + d.index, d.offset,
                  d.data);
    }
    dut.Settle();
    writes.Sample(cycle);
    if (dut->count_valid_i && dut->count_ready_o) {
      counts.pop_front();
    }
    if (dut->db_valid_i && dut->db_ready_o) {
      doorbells.pop_front();
    }
    updates += uint32_t(GetBits(
        dut->stat_o, uint32_t(contract::Statistic::kCounterUpdates), 1));
    if (sample) {
      sample();
    }
    dut.Tick();
    ++cycle;
  }
  [[nodiscard]] bool RunUntilIdle(int limit = 100000) {
    for (int i = 0; i < limit; ++i) {
      Tick();
      if (dut->idle_o) {
        return true;
      }
    }
    return false;
  }

  std::pair<bool, CounterCfg> Table(TableOp op, uint32_t index,
                                    const CounterCfg& entry = {}) {
    auto answer =
        RunTable(&*dut.operator->(), op, contract::Table::kCounter, index,
                 entry, 2000, [this](auto sample) { Tick(sample); });
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(std::pair(true, CounterCfg{}));
  }
  void Start(uint32_t index) {
    const CounterCell zero = {};
    memory.Write(CellOf(index), &zero, sizeof zero);
    CounterCfg cfg;
    cfg.cell = CellOf(index);
    cfg.function = uint8_t(index + 7);
    cfg.enable = 1;
    EXPECT_FALSE(Table(TableOp::kWrite, index, cfg).first);
  }
  CounterCell Cell(uint32_t index) {
    return memory.Get<CounterCell>(CellOf(index));
  }
};

TEST(CounterTest, CountsSuccessAndFailureOfContextAndRegion) {
  Bench b(1);
  for (uint32_t i : {0u, 5u, 63u}) {
    b.Start(i);
  }
  b.counts = {{false, 1, 0},   {false, 1, 6}, {true, 0, 64},
              {false, 64, 64}, {true, 6, 1},  {false, 0, 0}};
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.Cell(0).value, 2u);
  EXPECT_EQ(b.Cell(0).errors, 1u);
  EXPECT_EQ(b.Cell(5).value, 1u);
  EXPECT_EQ(b.Cell(5).errors, 1u);
  EXPECT_EQ(b.Cell(63).value, 2u);
  EXPECT_EQ(b.Cell(63).errors, 1u);
  EXPECT_EQ(b.Cell(0).echo, 0u);
  EXPECT_EQ(b.updates, b.writes.writes.size());
  for (const auto& write : b.writes.writes) {
    EXPECT_EQ(write.request.bytes, 8u);
    EXPECT_EQ(write.request.owner,
              (write.request.addr - Bench::CellOf(0)) / 0x20 + 7);
  }
}

TEST(CounterTest, DoorbellsAreEchoedAfterWhatTheyChanged) {
  Bench b(2);
  b.Start(3);
  b.doorbells = {{3, contract::kDoorbellCounterSetOffset, 100},
                 {3, contract::kDoorbellCounterAddOffset, 11},
                 {3, contract::kDoorbellCounterAddErrorsOffset, 3},
                 {3, contract::kDoorbellCounterSetErrorsOffset, 9},
                 {3, contract::kDoorbellCounterAddErrorsOffset, 1},
                 {3, 0x20, 77},  // Nothing there.
                 {4, contract::kDoorbellCounterAddOffset, 5}};  // Off.
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.Cell(3).value, 111u);
  EXPECT_EQ(b.Cell(3).errors, 10u);
  EXPECT_EQ(b.Cell(3).echo, 5u);
  for (const auto& write : b.writes.writes) {
    EXPECT_EQ(write.request.addr / 0x20, Bench::CellOf(3) / 0x20);
  }
}

TEST(CounterTest, MergedWritesHoldNobodyUp) {
  Bench b(3);
  b.Start(0);
  b.writes.latency = 150;
  for (int i = 0; i < 1000; ++i) {
    b.counts.push_back({false, 1, 0});
  }
  const uint64_t start = b.cycle;
  for (int i = 0; i < 2000 && !b.counts.empty(); ++i) {
    b.Tick();
  }
  EXPECT_LE(b.cycle - start, 1000u + 20) << "one each cycle";
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.Cell(0).value, 1000u);
  EXPECT_LE(b.writes.writes.size(), 1000u / 150 + 3);
}

TEST(CounterTest, StartedAnewAtZeroAndSilentWhenOff) {
  Bench b(4);
  b.Start(9);
  b.counts = {{false, 10, 0}};
  b.doorbells = {{9, contract::kDoorbellCounterAddOffset, 4}};
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.Cell(9).value, 5u);
  const auto [error, cfg] = b.Table(TableOp::kRead, 9);
  EXPECT_FALSE(error);
  EXPECT_EQ(cfg.cell, Bench::CellOf(9));
  EXPECT_EQ(cfg.function, 16u);
  EXPECT_EQ(cfg.enable, 1u);
  EXPECT_FALSE(b.Table(TableOp::kWrite, 9).first);
  b.counts = {{false, 10, 0}, {false, 65, 0}, {false, 0, 255}};
  b.doorbells = {{9, contract::kDoorbellCounterSetOffset, 4}};
  const size_t before = b.writes.writes.size();
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.writes.writes.size(), before);
  b.Start(9);
  b.counts = {{true, 10, 0}};
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.Cell(9).value, 0u);
  EXPECT_EQ(b.Cell(9).errors, 1u);
  EXPECT_EQ(b.Cell(9).echo, 0u);
  EXPECT_TRUE(b.Table(TableOp::kWrite, 64).first) << "no such counter";
}

TEST(CounterTest, DrainIsAnsweredAfterTheLastWrite) {
  Bench b(5);
  b.Start(1);
  b.writes.latency = 300;
  b.counts = {{false, 2, 0}};
  while (b.writes.writes.empty()) {
    b.Tick();
  }
  b.counts = {{false, 2, 0}};
  EXPECT_FALSE(b.Table(TableOp::kWrite, 1).first);
  EXPECT_FALSE(b.Table(TableOp::kDrain, 1).first);
  EXPECT_EQ(b.writes.answered, b.writes.writes.size());
  const size_t before = b.writes.writes.size();
  ASSERT_TRUE(b.RunUntilIdle());
  EXPECT_EQ(b.writes.writes.size(), before);
}

// Counts, doorbells and cells in random order against plain arithmetic. At
// every write of an echo the cell shows what the doorbells so far came to.
TEST(CounterTest, EchoNeverRunsAheadUnderRandomTraffic) {
  for (uint32_t seed = Seed(11), end = seed + 30; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(seed);
    b.writes.latency = 5 + seed % 90;
    b.writes.stall_percent = seed * 7 % 60;
    constexpr uint32_t kUsed = 4;
    struct Sum {
      uint64_t value = 0, errors = 0;
    };
    std::array<Sum, kUsed> sums{};
    // Errors are changed by doorbells alone, so an echo tells what they are.
    std::array<std::deque<uint64_t>, kUsed> errors_at;
    for (uint32_t i = 0; i < kUsed; ++i) {
      b.Start(i);
      errors_at[i].push_back(0);
    }
    size_t seen = b.writes.writes.size();
    for (int i = 0; i < 4000; ++i) {
      const uint32_t at = b.rng() % kUsed;
      if (b.rng() % 2 == 0 && b.counts.size() < 4) {
        const uint32_t also = b.rng() % (kUsed + 1);
        b.counts.push_back({false, uint8_t(at + 1), uint8_t(also)});
        ++sums[at].value;
        if (also != 0) {
          ++sums[also - 1].value;
        }
      }
      if (b.rng() % 4 == 0 && b.doorbells.size() < 4) {
        const uint64_t data = b.rng();
        const bool set = b.rng() % 2 == 0;
        b.doorbells.push_back({at,
                               set ? contract::kDoorbellCounterSetErrorsOffset
                                   : contract::kDoorbellCounterAddErrorsOffset,
                               data});
        sums[at].errors = set ? data : sums[at].errors + data;
        errors_at[at].push_back(sums[at].errors);
      }
      b.Tick();
      for (; seen < b.writes.writes.size(); ++seen) {
        const uint64_t address = b.writes.writes[seen].request.addr;
        if (address % 0x20 != offsetof(CounterCell, echo)) {
          continue;
        }
        const auto of = uint32_t((address - Bench::CellOf(0)) / 0x20);
        const CounterCell cell = b.Cell(of);
        ASSERT_LT(cell.echo, errors_at[of].size());
        ASSERT_EQ(cell.errors, errors_at[of][cell.echo]);
      }
    }
    ASSERT_TRUE(b.RunUntilIdle());
    for (uint32_t i = 0; i < kUsed; ++i) {
      EXPECT_EQ(b.Cell(i).value, sums[i].value);
      EXPECT_EQ(b.Cell(i).errors, sums[i].errors);
      EXPECT_EQ(b.Cell(i).echo, errors_at[i].size() - 1);
    }
  }
}

}  // namespace
}  // namespace heddle::test
