// SPDX-License-Identifier: Apache-2.0
// What fi_getinfo says of open objects, and the statistics of a device.
#include <rdma/fi_ext_heddle.h>

#include <set>
#include <string>
#include <thread>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

class StatisticsTest : public PairTest {
 protected:
  static fi_heddle_ops_statistics* OpenTable(struct fid* object) {
    void* table = nullptr;
    EXPECT_EQ(fi_open_ops(object, FI_HEDDLE_STATISTICS, 0, &table, nullptr), 0);
    return static_cast<fi_heddle_ops_statistics*>(table);
  }

  static size_t IndexOf(struct fid* object, const std::string& name) {
    fi_heddle_ops_statistics* table = OpenTable(object);
    for (size_t index = 0; index < table->count(object); ++index) {
      if (name == table->name(object, index)) {
        return index;
      }
    }
    ADD_FAILURE() << "no statistic " << name;
    return 0;
  }

  static uint64_t Value(struct fid* object, const std::string& name) {
    fi_heddle_ops_statistics* table = OpenTable(object);
    std::vector<uint64_t> values(table->count(object), UINT64_MAX);
    EXPECT_EQ(table->read(object, values.data(), values.size()),
              static_cast<ssize_t>(values.size()));
    return values[IndexOf(object, name)];
  }
};

TEST_F(StatisticsTest, EachHasANameOfItsOwnAndASentence) {
  Open();
  struct fid* object = &a->domain->fid;
  fi_heddle_ops_statistics* table = OpenTable(object);
  EXPECT_EQ(table->size, sizeof(*table));
  const size_t count = table->count(object);
  ASSERT_GE(count, 43U);
  std::set<std::string> names;
  for (size_t index = 0; index < count; ++index) {
    ASSERT_NE(table->name(object, index), nullptr);
    names.insert(table->name(object, index));
    ASSERT_NE(table->help(object, index), nullptr);
    EXPECT_EQ(std::string(table->help(object, index)).back(), '.');
  }
  EXPECT_EQ(names.size(), count);
  EXPECT_EQ(table->name(object, count), nullptr);
  EXPECT_EQ(table->help(object, count), nullptr);
  // Programs may keep the numbers: they are never changed.
  EXPECT_EQ(IndexOf(object, "tx_messages"), 4U);
  EXPECT_EQ(IndexOf(object, "tx_retransmissions"), 7U);
  EXPECT_EQ(IndexOf(object, "drop_crc"), 27U);
}

TEST_F(StatisticsTest, DomainCountsItsOwnMessages) {
  Open();
  const uint64_t sent = Value(&a->domain->fid, "tx_messages");
  const uint64_t received = Value(&b->domain->fid, "rx_messages");
  const uint64_t others = Value(&b->domain->fid, "tx_messages");
  std::vector<uint8_t> buffer(100);
  for (int round = 0; round < 3; ++round) {
    Exchange(Pattern(100), buffer);
  }
  EXPECT_EQ(Value(&a->domain->fid, "tx_messages"), sent + 3);
  EXPECT_EQ(Value(&b->domain->fid, "rx_messages"), received + 3);
  EXPECT_EQ(Value(&b->domain->fid, "tx_messages"), others);
}

TEST_F(StatisticsTest, FabricSumsOverItsDomains) {
  Open();
  fid_domain* second = nullptr;
  ASSERT_EQ(fi_domain(a->fabric, a->info.get(), &second, nullptr), 0);
  std::vector<uint8_t> buffer(100);
  Exchange(Pattern(100), buffer);
  const uint64_t sum = Value(&a->domain->fid, "tx_messages") +
                       Value(&second->fid, "tx_messages");
  EXPECT_GE(sum, 1U);
  EXPECT_EQ(Value(&a->fabric->fid, "tx_messages"), sum);
  EXPECT_EQ(fi_close(&second->fid), 0);
  EXPECT_EQ(Value(&a->fabric->fid, "tx_messages"),
            Value(&a->domain->fid, "tx_messages"));
}

TEST_F(StatisticsTest, NoMoreIsWrittenThanThereIsRoomFor) {
  Open();
  for (struct fid* object : {&a->domain->fid, &a->fabric->fid}) {
    fi_heddle_ops_statistics* table = OpenTable(object);
    uint64_t values[3] = {7, 7, 7};
    EXPECT_EQ(table->read(object, values, 2), 2);
    EXPECT_EQ(values[2], 7U);
    EXPECT_EQ(table->read(object, values, 0), 0);
    EXPECT_EQ(table->read(object, nullptr, 2), -FI_EINVAL);
  }
}

TEST_F(StatisticsTest, OtherNamesAndFlagsAreRefused) {
  Open();
  for (struct fid* object : {&a->domain->fid, &a->fabric->fid}) {
    void* table = nullptr;
    EXPECT_EQ(fi_open_ops(object, "heddle_none", 0, &table, nullptr),
              -FI_ENOSYS);
    EXPECT_EQ(fi_open_ops(object, FI_HEDDLE_STATISTICS, 1, &table, nullptr),
              -FI_EBADFLAGS);
    EXPECT_EQ(fi_open_ops(object, FI_HEDDLE_STATISTICS, 0, nullptr, nullptr),
              -FI_EINVAL);
    EXPECT_EQ(table, nullptr);
  }
  void* table = nullptr;
  EXPECT_EQ(fi_open_ops(&a->ep->fid, FI_HEDDLE_STATISTICS, 0, &table, nullptr),
            -FI_ENOSYS);
}

TEST_F(StatisticsTest, FabricIsReadWhileDomainsComeAndGo) {
  Open();
  fi_heddle_ops_statistics* table = OpenTable(&a->fabric->fid);
  std::thread reader([&] {
    std::vector<uint64_t> values(table->count(&a->fabric->fid));
    for (int round = 0; round < 200; ++round) {
      EXPECT_GT(table->read(&a->fabric->fid, values.data(), values.size()), 0);
    }
  });
  for (int round = 0; round < 3; ++round) {
    fid_domain* domain = nullptr;
    EXPECT_EQ(fi_domain(a->fabric, a->info.get(), &domain, nullptr), 0);
    EXPECT_EQ(fi_close(&domain->fid), 0);
  }
  reader.join();
}

using OpenObjectsTest = PairTest;

TEST_F(OpenObjectsTest, InfoNamesTheFirstOpenDomainAndItsFabric) {
  EXPECT_EQ(GetInfo({})->domain_attr->domain, nullptr);
  Open();
  const InfoPointer info = GetInfo({});
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->domain, a->domain);
  EXPECT_EQ(info->fabric_attr->fabric, a->fabric);
  b.reset();
  a.reset();
  EXPECT_EQ(GetInfo({})->domain_attr->domain, nullptr);
}

TEST_F(OpenObjectsTest, HintOfAnOpenDomainRestrictsTheAnswerToIt) {
  Open();
  const InfoPointer hints(fi_allocinfo());
  hints->domain_attr->domain = b->domain;
  fi_info* info = nullptr;
  ASSERT_EQ(
      fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &info),
      0);
  EXPECT_EQ(info->domain_attr->domain, b->domain);
  EXPECT_EQ(info->fabric_attr->fabric, b->fabric);
  EXPECT_EQ(info->next, nullptr);
  fi_freeinfo(info);
}

}  // namespace
}  // namespace heddle::test
