// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/region_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/host/semantics/below.h"
#include "tests/seed.h"

namespace heddle::semantics {
namespace {

using Status = RegionTable::Status;
using Drain = RegionTable::Drain;

RegionSpec User(uint64_t key) {
  RegionSpec spec;
  spec.base = 0x1000;
  spec.length = 100;
  spec.key = key;
  return spec;
}

RegionSpec Provider() {
  RegionSpec spec = User(0);
  spec.provider_key = true;
  return spec;
}

TEST(RegionTable, UserKeyIsTheOneAskedFor) {
  RegionTable table(4, 1);
  const auto region = table.Register(User(42));
  ASSERT_EQ(region.status, Status::kOk);
  EXPECT_EQ(region.key, 42U);
  EXPECT_EQ(table.Find(42), region.region);
  EXPECT_EQ(table.spec(region.region).base, 0x1000U);
  EXPECT_EQ(table.Find(43), kNone);
  EXPECT_EQ(table.Find(42 | contract::kKeyProvider), kNone);
  EXPECT_EQ(table.Find(42 | contract::kKeyIdempotentSafe), kNone);
  EXPECT_EQ(table.Find(42 | uint64_t{1} << 60U), kNone);
}

TEST(RegionTable, UserKeysAreTakenOnceAndHaveTheirWidth) {
  RegionTable table(4, 1);
  ASSERT_EQ(table.Register(User(42)).status, Status::kOk);
  EXPECT_EQ(table.Register(User(42)).status, Status::kKeyInUse);
  RegionSpec safe = User(42);
  safe.idempotent_safe = true;
  EXPECT_EQ(table.Register(safe).status, Status::kKeyInUse);
  EXPECT_EQ(table.Register(User(uint64_t{1} << 48U)).status, Status::kBadKey);
  EXPECT_EQ(table.Register(User((uint64_t{1} << 48U) - 1)).status, Status::kOk);
  EXPECT_EQ(table.Register(User(0)).status, Status::kOk);
}

TEST(RegionTable, IdempotentSafeRegionSaysSoInItsKey) {
  RegionTable table(4, 1);
  RegionSpec spec = User(42);
  spec.idempotent_safe = true;
  const auto region = table.Register(spec);
  EXPECT_EQ(region.key, 42 | contract::kKeyIdempotentSafe);
  EXPECT_EQ(table.Find(region.key), region.region);
  EXPECT_EQ(table.Find(42), kNone);
  EXPECT_EQ(table.Deregister(region.region), Drain::kDone);
  EXPECT_EQ(table.Register(User(42)).status, Status::kOk);
}

TEST(RegionTable, FullTableAndRegionsThatWrapAreRefused) {
  RegionTable table(1, 1);
  RegionSpec wraps = User(1);
  wraps.base = ~uint64_t{0} - 50;
  EXPECT_EQ(table.Register(wraps).status, Status::kBadRange);
  RegionSpec all = User(1);
  all.base = 0;
  all.length = ~uint64_t{0};
  EXPECT_EQ(table.Register(all).status, Status::kOk);
  EXPECT_EQ(table.Register(User(2)).status, Status::kFull);
  EXPECT_EQ(table.Find(2), kNone);
  EXPECT_EQ(table.size(), 1U);
}

TEST(RegionTable, ProviderKeysOfOneSlotNeverComeBack) {
  RegionTable table(1, 99);
  std::set<uint64_t> keys;
  uint64_t last = 0;
  for (uint32_t i = 0; i < 20000; ++i) {
    const auto region = table.Register(Provider());
    ASSERT_EQ(region.status, Status::kOk);
    ASSERT_TRUE(keys.insert(region.key).second);
    ASSERT_EQ(table.Find(region.key), region.region);
    ASSERT_EQ(table.Find(last), kNone);
    // Within the bits that UET leaves to a provider.
    ASSERT_EQ(region.key >> contract::kKeyUserBits, 1U);
    ASSERT_EQ(table.Deregister(region.region), Drain::kDone);
    ASSERT_EQ(table.Find(region.key), kNone);
    last = region.key;
  }
}

TEST(KeyMaker, KeysLookLikeNoneBeforeOrOfAnotherSecret) {
  const contract::KeyMaker one(1);
  const contract::KeyMaker two(2);
  uint32_t bits = 0;
  uint32_t same = 0;
  for (uint32_t i = 0; i < 4096; ++i) {
    const uint64_t key = one.Make(7, i);
    EXPECT_EQ(contract::RegionOfKey(key), 7U);
    bits += static_cast<uint32_t>(
        std::popcount((key ^ one.Make(7, i + 1)) >> contract::kKeyIndexBits));
    same += key == two.Make(7, i) ? 1 : 0;
  }
  // Half of 28 bits change from key to key.
  EXPECT_NEAR(bits / 4096.0, 14.0, 0.5);
  EXPECT_LE(same, 1U);
}

TEST(RegionTable, DeregisteredRegionIsGoneWhenItsAccessesAre) {
  RegionTable table(2, 1);
  const auto region = table.Register(User(42));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(table.Acquire(region.region));
  }
  EXPECT_EQ(table.Release(region.region), Drain::kPending);
  EXPECT_EQ(table.Deregister(region.region), Drain::kPending);
  EXPECT_EQ(table.Deregister(region.region), Drain::kNotFound);
  EXPECT_EQ(table.Find(42), kNone);
  EXPECT_FALSE(table.Acquire(region.region)) << "no access begins any more";
  EXPECT_EQ(table.Register(User(42)).status, Status::kKeyInUse);
  EXPECT_EQ(table.Release(region.region), Drain::kPending);
  EXPECT_EQ(table.size(), 1U);
  EXPECT_EQ(table.Release(region.region), Drain::kDone);
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.Release(region.region), Drain::kNotFound);
  EXPECT_EQ(table.Register(User(42)).status, Status::kOk);
}

TEST(RegionTable, RegionOfNobodyIsNotFound) {
  RegionTable table(2, 1);
  for (const uint32_t region : {0U, 1U, 2U, kNone}) {
    EXPECT_FALSE(table.Acquire(region));
    EXPECT_EQ(table.Release(region), Drain::kNotFound);
    EXPECT_EQ(table.Deregister(region), Drain::kNotFound);
  }
  // A provider key whose slot is beyond the table.
  EXPECT_EQ(table.Find(contract::kKeyProvider | 0xfffff), kNone);
}

struct ModelRegion {
  uint64_t key;
  uint32_t accesses;
  bool live;
};

TEST(RegionTable, AgreesWithAMapUnderRandomChurn) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  RegionTable table(16, random());
  std::map<uint32_t, ModelRegion> model;  // By region.
  const auto taken = [&](uint64_t key) {
    for (const auto& [region, entry] : model) {
      if (entry.key == key) {
        return true;
      }
    }
    return false;
  };
  for (uint32_t step = 0; step < 40000; ++step) {
    const uint32_t choice = Below(random, 5);
    if (choice == 0) {
      const RegionSpec spec =
          random() % 2 == 0 ? Provider() : User(Below(random, 24));
      const auto answer = table.Register(spec);
      const Status expected = !spec.provider_key && taken(spec.key)
                                  ? Status::kKeyInUse
                              : model.size() == 16 ? Status::kFull
                                                   : Status::kOk;
      ASSERT_EQ(answer.status, expected);
      if (expected == Status::kOk) {
        ASSERT_FALSE(taken(answer.key));
        model[answer.region] = {answer.key, 0, true};
      }
      continue;
    }
    const auto region = Below(random, 16);
    const auto entry = model.find(region);
    const bool there = entry != model.end();
    const bool live = there && entry->second.live;
    if (choice == 1) {
      const Drain expected = !live                         ? Drain::kNotFound
                             : entry->second.accesses != 0 ? Drain::kPending
                                                           : Drain::kDone;
      ASSERT_EQ(table.Deregister(region), expected);
      if (expected == Drain::kDone) {
        model.erase(entry);
      } else if (expected == Drain::kPending) {
        entry->second.live = false;
      }
    } else if (choice == 2) {
      ASSERT_EQ(table.Acquire(region), live);
      if (live) {
        ++entry->second.accesses;
      }
    } else if (choice == 3) {
      const bool any = there && entry->second.accesses != 0;
      const bool last = any && entry->second.accesses == 1 && !live;
      ASSERT_EQ(table.Release(region), !any   ? Drain::kNotFound
                                       : last ? Drain::kDone
                                              : Drain::kPending);
      if (last) {
        model.erase(entry);
      } else if (any) {
        --entry->second.accesses;
      }
    } else {
      const uint64_t key = there ? entry->second.key : random() % 24;
      const uint32_t found = table.Find(key);
      if (there) {
        ASSERT_EQ(found, live ? region : kNone);
      }
    }
    ASSERT_EQ(table.size(), model.size());
  }
}

}  // namespace
}  // namespace heddle::semantics
