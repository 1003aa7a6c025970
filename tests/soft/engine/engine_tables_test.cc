// SPDX-License-Identifier: Apache-2.0
// What an engine of many contexts is made of, and tables that fill with use.
#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/doorbell_page.h"
#include "hw/soft/engine/context_set.h"
#include "hw/soft/engine/lazy_table.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"

namespace heddle::soft::engine {
namespace {

TEST(LazyTableTest, EntriesComeWithTheirFirstUseAndStayWhereTheyAre) {
  LazyTable<int, 4> table(10);
  EXPECT_EQ(table.Find(9), nullptr);
  int& nine = table.Make(9);
  nine = 5;
  EXPECT_EQ(table.Find(9), &nine);
  EXPECT_EQ(*table.Find(8), 0) << "of the same chunk";
  EXPECT_EQ(table.Find(7), nullptr);
  EXPECT_EQ(table.Find(12), nullptr) << "beyond the table";
  EXPECT_EQ(&table.Make(9), &nine);
  table.Make(0) = 3;
  std::vector<std::pair<uint32_t, int>> seen;
  table.ForEach(
      [&](uint32_t index, int value) { seen.emplace_back(index, value); });
  ASSERT_EQ(seen.size(), 8U);
  EXPECT_EQ(seen.front(), (std::pair<uint32_t, int>{0, 3}));
  EXPECT_EQ(seen[5], (std::pair<uint32_t, int>{9, 5}));
}

TEST(ContextSetTest, DoesWhatASetOfNumbersDoes) {
  constexpr uint32_t kSize = ContextSet::kMost;
  std::minstd_rand engine(TestSeed());
  std::uniform_int_distribution<uint32_t> any;
  const auto random = [&] { return any(engine); };
  ContextSet set(kSize);
  ContextSet other(kSize);
  std::set<uint32_t> model;
  for (int round = 0; round < 20000; ++round) {
    const uint32_t context = random() % kSize;
    if (random() % 2 == 0) {
      set.Add(context);
      model.insert(context);
    } else {
      set.Remove(context);
      model.erase(context);
    }
    ASSERT_EQ(set.empty(), model.empty());
    if (!model.empty()) {
      const uint32_t from = random() % (kSize + 1);
      const auto next = model.lower_bound(from);
      ASSERT_EQ(set.NextFrom(from),
                next != model.end() ? *next : *model.begin());
    }
    if (random() % 1000 == 0) {
      other.Add(context);
      set.MoveTo(&other);
      ASSERT_TRUE(set.empty());
      model.insert(context);
      std::vector<uint32_t> moved;
      other.ForEach([&](uint32_t member) {
        moved.push_back(member);
        other.Remove(member);
      });
      ASSERT_TRUE(
          std::equal(moved.begin(), moved.end(), model.begin(), model.end()));
      ASSERT_TRUE(other.empty());
      model.clear();
    }
  }
}

// Half of the message table is shared out among those that live.
TEST(EngineRoomTest, ContextUsesWhatIsNoOthersPart) {
  FakeFabric fabric(TestSeed());
  EngineNode node(&fabric, {.limits = {.tx_contexts = 2,
                                       .rx_contexts = 2,
                                       .cqs = 4,
                                       .counters = 8,
                                       .regions = 64,
                                       .messages = 32,
                                       .open_messages = 64}});
  contract::TxCtxCfg other = {.ring_log2 = 6, .enable = 1};
  ASSERT_TRUE(node.Write(contract::Table::kTxCtx, 1, other));
  for (int i = 0; i < 50; ++i) {
    node.Put(node.Send(0, nullptr, 0));
  }
  node.Ring();
  const auto taken = [&] {
    while (node.engine().Progress(64)) {
    }
    return node.engine().statistic(contract::Statistic::kTxDescriptors);
  };
  EXPECT_EQ(taken(), 24U) << "8 are the other's";
  other.enable = 0;
  ASSERT_TRUE(node.Write(contract::Table::kTxCtx, 1, other));
  EXPECT_EQ(taken(), 32U);
}

struct EngineTablesTest : ::testing::Test {
  // All there is by default.
  EngineTablesTest() : node_(&fabric_, {.limits = {}}) {}

  FakeFabric fabric_{TestSeed()};
  EngineNode node_;
};

TEST_F(EngineTablesTest, EntryThatWasNeverWrittenReadsAsZero) {
  const EngineLimits limits;
  std::array<uint8_t, Engine::kEntryBytes> entry;
  entry.fill(0xee);
  EXPECT_TRUE(node_.engine().ReadTable(contract::Table::kRegion,
                                       limits.regions - 1, entry));
  EXPECT_TRUE(std::all_of(entry.begin(), entry.end(),
                          [](uint8_t byte) { return byte == 0; }));
  EXPECT_FALSE(node_.engine().ReadTable(contract::Table::kRegion,
                                        limits.regions, entry));
  EXPECT_EQ(node_.engine().Drain(contract::Table::kTxCtx, 1023),
            Engine::DrainState::kDone);
  EXPECT_EQ(node_.engine().Drain(contract::Table::kTxCtx, 1024),
            Engine::DrainState::kNoEntry);
}

// Every page of a BAR that is larger than any device's.
TEST_F(EngineTablesTest, DoorbellsOfWhatIsNotThereAreIgnored) {
  constexpr uint32_t kPages = 20 * contract::kBankPages;
  for (uint32_t page = 1; page < kPages; ++page) {
    if (contract::PageInBank(page) == contract::kRxPageFirst) {
      continue;
    }
    for (const uint32_t offset : {0U, 8U, 16U, 24U}) {
      node_.engine().Doorbell(page * contract::kDoorbellPageBytes + offset,
                              1 | uint64_t{1} << 63);
    }
  }
  Settle(fabric_, {&node_});
  EXPECT_TRUE(node_.engine().idle());
  EXPECT_EQ(node_.engine().statistic(contract::Statistic::kTxDescriptors), 0U);
}

TEST_F(EngineTablesTest, LastCounterHasThePageOfItsBank) {
  contract::CounterCell* const cell = node_.Counter(1023);
  const uint32_t page =
      contract::DoorbellPageOf(contract::kCounterPageFirst, 1023);
  EXPECT_EQ(page, 15 * 256 + 192 + 63U);
  node_.Doorbell(page, contract::kDoorbellCounterAddOffset, 41);
  EXPECT_EQ(cell->value, 41U);
  EXPECT_EQ(cell->echo, 1U);
}

}  // namespace
}  // namespace heddle::soft::engine
