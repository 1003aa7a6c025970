// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/unexpected_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/host/semantics/match_world.h"
#include "tests/seed.h"

namespace heddle::semantics {
namespace {

constexpr uint64_t kMuch = uint64_t{1} << 40U;

MatchRule Exact(uint64_t tag) {
  return {tag, 0, true, {}};
}

TEST(UnexpectedList, OldestMatchIsFoundByEachKindOfRule) {
  UnexpectedList list(8, kMuch, 1);
  const uint32_t other = list.Add({4, SomeSource(0)}, 0, 0);
  const uint32_t first = list.Add({5, SomeSource(0)}, 1, 0);
  const uint32_t second = list.Add({5, SomeSource(1)}, 2, 0);
  EXPECT_EQ(list.Find(Exact(5)), first);
  EXPECT_EQ(list.Find({5, 0, false, SomeSource(1)}), second);
  EXPECT_EQ(list.Find({0, ~uint64_t{0}, true, {}}), other);
  EXPECT_EQ(list.Find({0, ~uint64_t{0}, false, SomeSource(1)}), second);
  EXPECT_EQ(list.Find({7, 2, true, {}}), first);
  EXPECT_EQ(list.Find(Exact(6)), kNone);
}

TEST(UnexpectedList, FullListAndFullBudgetRefuse) {
  UnexpectedList list(2, 100, 1);
  const uint32_t first = list.Add({1, {}}, 0, 60);
  ASSERT_NE(first, kNone);
  EXPECT_EQ(list.Add({2, {}}, 1, 41), kNone) << "budget";
  ASSERT_NE(list.Add({2, {}}, 1, 40), kNone);
  EXPECT_EQ(list.Add({3, {}}, 2, 0), kNone) << "places";
  EXPECT_EQ(list.size(), 2U);
  EXPECT_EQ(list.bytes(), 100U);
  EXPECT_TRUE(list.Remove(first));
  EXPECT_EQ(list.bytes(), 40U);
  EXPECT_EQ(list.Add({3, {}}, 2, ~uint64_t{0}), kNone);
  EXPECT_NE(list.Add({3, {}}, 2, 60), kNone);
}

TEST(UnexpectedList, ClaimedMessageIsHiddenAndKeepsItsPlace) {
  UnexpectedList list(2, 10, 1);
  const uint32_t first = list.Add({5, {}}, 10, 4);
  const uint32_t second = list.Add({5, {}}, 11, 4);
  EXPECT_TRUE(list.Claim(first, 77));
  EXPECT_FALSE(list.Claim(first, 78)) << "claimed already";
  EXPECT_EQ(list.Find(Exact(5)), second);
  EXPECT_EQ(list.Find({0, ~uint64_t{0}, true, {}}), second);
  EXPECT_EQ(list.size(), 2U);
  EXPECT_EQ(list.bytes(), 8U);
  EXPECT_EQ(list.FindClaimed(78), kNone);
  EXPECT_EQ(list.FindClaimed(77), first);
  EXPECT_EQ(list.cookie(first), 10U);
  EXPECT_TRUE(list.Remove(first));
  EXPECT_FALSE(list.Remove(first));
  EXPECT_EQ(list.FindClaimed(77), kNone);
  EXPECT_EQ(list.bytes(), 4U);
}

TEST(UnexpectedList, ExactRuleFindsItsMessageWithoutAWalkOverTheOthers) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr uint32_t kMessages = 4096;
  UnexpectedList list(kMessages, kMuch, seed);
  for (uint32_t i = 0; i < kMessages; ++i) {
    // Of one tag, each from another sender.
    ASSERT_NE(list.Add({1, {0, 0, i, false}}, i, 0), kNone);
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_NE(list.Find({1, 0, false, {0, 0, i, false}}), kNone);
  }
  EXPECT_LT(list.compared(), uint64_t{kMessages} * 4);
}

TEST(UnexpectedList, RuleOfAnySourceWalksOverItsTagOnly) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr uint32_t kMessages = 4096;
  UnexpectedList list(kMessages, kMuch, seed);
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_NE(list.Add({i, SomeSource(i)}, i, 0), kNone);
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_NE(list.Find(Exact(i)), kNone);
  }
  EXPECT_LT(list.compared(), uint64_t{kMessages} * 4);
}

struct ModelEntry {
  uint32_t handle;
  Envelope message;
  uint64_t bytes;
};

TEST(UnexpectedList, AgreesWithAPlainListUnderRandomChurn) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  UnexpectedList list(24, 1000, random());
  std::vector<ModelEntry> model;
  std::vector<ModelEntry> claimed;
  uint64_t bytes = 0;
  for (uint32_t step = 0; step < 40000; ++step) {
    if (random() % 2 == 0) {
      const Envelope message = RandomMessage(random);
      const uint64_t size = random() % 100;
      const uint32_t handle = list.Add(message, step, size);
      ASSERT_EQ(handle == kNone,
                model.size() + claimed.size() == 24 || bytes + size > 1000);
      if (handle != kNone) {
        model.push_back({handle, message, size});
        bytes += size;
      }
    } else if (random() % 8 != 0 || claimed.empty()) {
      const MatchRule rule = RandomRule(random, 4);
      const auto expected =
          std::find_if(model.begin(), model.end(), [&](const ModelEntry& e) {
            return (rule.tag & ~rule.ignore) ==
                       (e.message.tag & ~rule.ignore) &&
                   (rule.any_source || rule.source == e.message.source);
          });
      const uint32_t found = list.Find(rule);
      ASSERT_EQ(found, expected == model.end() ? kNone : expected->handle)
          << "step " << step;
      if (found != kNone && random() % 8 == 0) {
        ASSERT_TRUE(list.Claim(found, 7));
        claimed.push_back(*expected);
        model.erase(expected);
      } else if (found != kNone) {
        ASSERT_TRUE(list.Remove(found));
        bytes -= expected->bytes;
        model.erase(expected);
      }
    } else {
      ASSERT_EQ(list.FindClaimed(7), claimed.front().handle);
      ASSERT_TRUE(list.Remove(claimed.front().handle));
      bytes -= claimed.front().bytes;
      claimed.erase(claimed.begin());
    }
    ASSERT_EQ(list.bytes(), bytes);
  }
}

}  // namespace
}  // namespace heddle::semantics
