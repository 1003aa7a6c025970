// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/source_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "tests/seed.h"

namespace heddle::nic {
namespace {

TEST(SourceMap, FindsExactlyWhatWasSet) {
  SourceMap map;
  EXPECT_EQ(map.Find(0, 0), SourceMap::kNone);
  map.Set(0, 0, 7);
  EXPECT_EQ(map.Find(0, 0), 7U);
  EXPECT_EQ(map.Find(0, 1), SourceMap::kNone);
  EXPECT_EQ(map.Find(1, 0), SourceMap::kNone);
  map.Set(0, 0, 8);
  EXPECT_EQ(map.Find(0, 0), 8U);
  EXPECT_EQ(map.size(), 1U);
  map.Erase(0, 0);
  map.Erase(0, 0);
  EXPECT_EQ(map.Find(0, 0), SourceMap::kNone);
  EXPECT_EQ(map.size(), 0U);
}

TEST(SourceMap, AgreesWithAMapUnderRandomChurn) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  SourceMap map;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> model;
  for (uint32_t step = 0; step < 100000; ++step) {
    const uint32_t ipv4 = 0x0a000000 + random() % 64;
    const uint32_t initiator = random() % 64;
    if (random() % 2 == 0) {
      map.Set(ipv4, initiator, step);
      model[{ipv4, initiator}] = step;
    } else {
      map.Erase(ipv4, initiator);
      model.erase({ipv4, initiator});
    }
  }
  EXPECT_EQ(map.size(), model.size());
  for (uint32_t ip = 0; ip < 64; ++ip) {
    for (uint32_t initiator = 0; initiator < 64; ++initiator) {
      const auto found = model.find({0x0a000000 + ip, initiator});
      EXPECT_EQ(map.Find(0x0a000000 + ip, initiator),
                found == model.end() ? SourceMap::kNone : found->second);
    }
  }
}

// Under ThreadSanitizer this also shows the absence of data races.
TEST(SourceMap, ReadersSeeStablePairsWhileAWriterGrowsAndErases) {
  SourceMap map;
  constexpr uint32_t kStable = 100;
  for (uint32_t i = 0; i < kStable; ++i) {
    map.Set(1, i, i);
  }
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> wrong{0};
  std::thread reader([&] {
    while (!stop.load()) {
      for (uint32_t i = 0; i < kStable; ++i) {
        wrong += map.Find(1, i) == i ? 0 : 1;
      }
    }
  });
  for (uint32_t round = 0; round < 20; ++round) {
    for (uint32_t i = 0; i < 2000; ++i) {
      map.Set(2, i, i);
    }
    for (uint32_t i = 0; i < 2000; ++i) {
      map.Erase(2, i);
    }
  }
  stop.store(true);
  reader.join();
  EXPECT_EQ(wrong.load(), 0U);
}

}  // namespace
}  // namespace heddle::nic
