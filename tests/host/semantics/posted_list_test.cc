// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/posted_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/host/semantics/match_world.h"
#include "tests/seed.h"

namespace heddle::semantics {
namespace {

MatchRule Exact(uint64_t tag) {
  return {tag, 0, true, {}};
}
MatchRule Wild(uint64_t tag, uint64_t ignore) {
  return {tag, ignore, true, {}};
}
MatchRule From(uint64_t tag, const Source& source) {
  return {tag, 0, false, source};
}

TEST(PostedList, SameRulesMatchInTheOrderOfPosting) {
  PostedList list(8, 1);
  const uint32_t first = list.Post(Exact(5), 100);
  const uint32_t second = list.Post(Exact(5), 101);
  const Envelope message = {5, {}};
  EXPECT_EQ(list.Find(message), first);
  EXPECT_EQ(list.Find(message), first) << "a search takes nothing out";
  EXPECT_EQ(list.cookie(first), 100U);
  EXPECT_TRUE(list.Remove(first));
  EXPECT_EQ(list.Find(message), second);
  EXPECT_TRUE(list.Remove(second));
  EXPECT_EQ(list.Find(message), kNone);
}

TEST(PostedList, WildcardPostedEarlierGoesBeforeAnExactRule) {
  PostedList list(8, 1);
  const uint32_t wild = list.Post(Wild(0, ~uint64_t{0}), 0);
  const uint32_t exact = list.Post(Exact(5), 1);
  EXPECT_EQ(list.Find({5, {}}), wild);
  EXPECT_TRUE(list.Remove(wild));
  const uint32_t later = list.Post(Wild(0, ~uint64_t{0}), 2);
  EXPECT_EQ(list.Find({5, {}}), exact);
  EXPECT_EQ(list.Find({6, {}}), later);
}

TEST(PostedList, IgnoredBitsDoNotCountAndOthersDo) {
  PostedList list(8, 1);
  const uint32_t rule = list.Post(Wild(0xab00, 0xff), 0);
  EXPECT_EQ(list.Find({0xabcd, {}}), rule);
  EXPECT_EQ(list.Find({0xab00, {}}), rule);
  EXPECT_EQ(list.Find({0xaccd, {}}), kNone);
  EXPECT_EQ(list.Find({0x1'0000'abcd, {}}), kNone);
  // Bits of the rule's own tag that it ignores.
  EXPECT_TRUE(list.Remove(rule));
  const uint32_t odd = list.Post(Wild(0xabff, 0xff), 0);
  EXPECT_EQ(list.Find({0xab01, {}}), odd);
}

TEST(PostedList, DirectedRuleTakesMessagesOfItsSourceOnly) {
  PostedList list(8, 1);
  const uint32_t directed = list.Post(From(5, SomeSource(1)), 0);
  const uint32_t open = list.Post(Exact(5), 1);
  EXPECT_EQ(list.Find({5, SomeSource(1)}), directed);
  for (const uint32_t other : {0U, 2U, 3U}) {
    EXPECT_EQ(list.Find({5, SomeSource(other)}), open);
  }
  // An open rule posted first goes first, also for that source.
  const uint32_t again = list.Post(From(5, SomeSource(1)), 2);
  EXPECT_TRUE(list.Remove(directed));
  EXPECT_EQ(list.Find({5, SomeSource(1)}), open);
  EXPECT_TRUE(list.Remove(open));
  EXPECT_EQ(list.Find({5, SomeSource(1)}), again);
}

TEST(PostedList, FullListRefusesAndKeepsWhatItHas) {
  PostedList list(2, 1);
  const uint32_t first = list.Post(Exact(1), 0);
  EXPECT_NE(list.Post(Exact(2), 1), kNone);
  EXPECT_EQ(list.Post(Exact(3), 2), kNone);
  EXPECT_EQ(list.size(), 2U);
  EXPECT_EQ(list.Find({1, {}}), first);
  EXPECT_EQ(list.Find({3, {}}), kNone);
  EXPECT_TRUE(list.Remove(first));
  EXPECT_NE(list.Post(Exact(3), 2), kNone);
  PostedList none(0, 1);
  EXPECT_EQ(none.Post(Exact(1), 0), kNone);
  EXPECT_EQ(none.Find({1, {}}), kNone);
}

TEST(PostedList, HandleOfNobodyIsNotRemoved) {
  PostedList list(2, 1);
  const uint32_t handle = list.Post(Exact(1), 0);
  EXPECT_FALSE(list.Remove(handle + 1));
  EXPECT_FALSE(list.Remove(kNone));
  EXPECT_TRUE(list.Remove(handle));
  EXPECT_FALSE(list.Remove(handle));
  EXPECT_EQ(list.size(), 0U);
}

TEST(PostedList, ExactRulesAreFoundWithoutAWalkOverTheOthers) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr uint32_t kRules = 4096;
  PostedList list(kRules, seed);
  for (uint32_t i = 0; i < kRules; ++i) {
    ASSERT_NE(list.Post(i % 2 == 0 ? Exact(i) : From(i, SomeSource(i)), i),
              kNone);
  }
  for (uint32_t i = 0; i < kRules; ++i) {
    ASSERT_NE(list.Find({i, SomeSource(i)}), kNone);
  }
  // Two chains of half a rule each on average, and the rule itself.
  EXPECT_LT(list.compared(), uint64_t{kRules} * 4);
}

TEST(PostedList, WildcardsBehindTheExactRuleAreNotLookedAt) {
  PostedList list(1024, 1);
  ASSERT_NE(list.Post(Exact(1), 0), kNone);
  for (uint32_t i = 1; i < 1024; ++i) {
    ASSERT_NE(list.Post(Wild(2, 0x100), i), kNone);
  }
  EXPECT_NE(list.Find({1, {}}), kNone);
  EXPECT_LE(list.compared(), 2U);
}

struct ModelEntry {
  uint32_t handle;
  MatchRule rule;
  uint64_t cookie;
};

void AgreeWithModel(uint32_t seed, uint32_t wild) {
  std::mt19937 random(seed);
  PostedList list(32, random());
  std::vector<ModelEntry> model;  // In the order of posting.
  const auto find = [&](const Envelope& message) {
    return std::find_if(model.begin(), model.end(), [&](const ModelEntry& e) {
      return (e.rule.tag & ~e.rule.ignore) == (message.tag & ~e.rule.ignore) &&
             (e.rule.any_source || e.rule.source == message.source);
    });
  };
  for (uint32_t step = 0; step < 20000; ++step) {
    const uint32_t choice = random() % 8;
    if (choice < 4) {
      const MatchRule rule = RandomRule(random, wild);
      const uint32_t handle = list.Post(rule, step);
      ASSERT_EQ(handle == kNone, model.size() == 32);
      if (handle != kNone) {
        model.push_back({handle, rule, step});
      }
    } else if (choice < 7) {
      const Envelope message = RandomMessage(random);
      const auto expected = find(message);
      const uint32_t found = list.Find(message);
      ASSERT_EQ(found, expected == model.end() ? kNone : expected->handle)
          << "step " << step;
      if (found != kNone) {
        ASSERT_EQ(list.cookie(found), expected->cookie);
        ASSERT_TRUE(list.Remove(found));
        model.erase(expected);
      }
    } else if (!model.empty()) {
      const auto gone =
          model.begin() + static_cast<ptrdiff_t>(random() % model.size());
      ASSERT_TRUE(list.Remove(gone->handle));
      model.erase(gone);
    }
    ASSERT_EQ(list.size(), model.size());
  }
  uint32_t at = list.oldest();
  for (const ModelEntry& entry : model) {
    ASSERT_EQ(at, entry.handle);
    at = list.Next(at);
  }
  EXPECT_EQ(at, kNone);
}

TEST(PostedList, AgreesWithAPlainListUnderRandomChurn) {
  const uint32_t seed = TestSeed();
  for (const uint32_t wild : {0U, 2U, 8U}) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", wild " +
                 std::to_string(wild));
    AgreeWithModel(seed + wild, wild);
  }
}

}  // namespace
}  // namespace heddle::semantics
