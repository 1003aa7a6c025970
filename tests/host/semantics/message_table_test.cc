// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/message_table.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "tests/host/semantics/below.h"
#include "tests/seed.h"

namespace heddle::semantics {
namespace {

TEST(MessageTable, EachPartOfTheKeyTellsMessagesApart) {
  MessageTable table(8, 1);
  const MessageKey base = {1, 2, 3, 4, true};
  std::vector<MessageKey> keys(6, base);
  keys[1].address_lo = 9;
  keys[2].address_hi = 9;
  keys[3].pdcid = 9;
  keys[4].message_id = 9;
  keys[5].ipv6 = false;
  std::vector<uint32_t> handles;
  for (const MessageKey& key : keys) {
    EXPECT_EQ(table.Find(key), kNone);
    handles.push_back(table.Open(key));
    ASSERT_NE(handles.back(), kNone);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(table.Find(keys[i]), handles[i]);
    EXPECT_EQ(table.key(handles[i]), keys[i]);
  }
}

TEST(MessageTable, OpenKeysAndFullTablesAreRefused) {
  MessageTable table(2, 1);
  const uint32_t first = table.Open({1, 0, 1, 1, false});
  EXPECT_EQ(table.Open({1, 0, 1, 1, false}), kNone);
  EXPECT_NE(table.Open({1, 0, 1, 2, false}), kNone);
  EXPECT_EQ(table.Open({1, 0, 1, 3, false}), kNone);
  EXPECT_TRUE(table.Close(first));
  EXPECT_FALSE(table.Close(first));
  EXPECT_FALSE(table.Close(2));
  EXPECT_EQ(table.Find({1, 0, 1, 1, false}), kNone);
  EXPECT_NE(table.Open({1, 0, 1, 3, false}), kNone);
}

TEST(MessageTable, AgreesWithAPlainListUnderRandomChurn) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  MessageTable table(24, seed);
  std::vector<std::pair<MessageKey, uint32_t>> model;
  for (uint32_t step = 0; step < 40000; ++step) {
    const MessageKey key = {Below(random, 2), 0,
                            static_cast<uint16_t>(random() % 4),
                            static_cast<uint16_t>(random() % 6), false};
    size_t at = 0;
    while (at < model.size() && model[at].first != key) {
      ++at;
    }
    const bool open = at < model.size();
    ASSERT_EQ(table.Find(key), open ? model[at].second : kNone);
    if (random() % 2 == 0) {
      const uint32_t handle = table.Open(key);
      ASSERT_EQ(handle == kNone, open || model.size() == 24);
      if (handle != kNone) {
        model.emplace_back(key, handle);
      }
    } else if (open) {
      ASSERT_TRUE(table.Close(model[at].second));
      model.erase(model.begin() + static_cast<ptrdiff_t>(at));
    }
    ASSERT_EQ(table.size(), model.size());
  }
  uint32_t at = table.oldest();
  for (const auto& [key, handle] : model) {
    ASSERT_EQ(at, handle);
    at = table.Next(at);
  }
  EXPECT_EQ(at, kNone);
}

}  // namespace
}  // namespace heddle::semantics
