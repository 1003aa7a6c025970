// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/address_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "tests/host/nic/loopback_device.h"

namespace heddle::nic {
namespace {

struct AddressTableTest : ::testing::Test {
  void SetUp() override {
    auto created = AddressTable::Create(device, 0);
    ASSERT_TRUE(created.ok());
    table = std::move(created.value());
  }

  uint32_t Insert(uint32_t ipv4, uint16_t port) {
    return table->Insert({.ipv4 = ipv4, .port = port}).value();
  }

  // What the device reads.
  contract::AvEntry Entry(uint32_t index) {
    contract::AvEntry entry;
    std::memcpy(&entry,
                reinterpret_cast<const void*>(
                    static_cast<uint64_t>(table->iova()) -
                    test::LoopbackDevice::kIovaOffset + index * sizeof(entry)),
                sizeof(entry));
    return entry;
  }

  std::shared_ptr<test::LoopbackWire> wire =
      std::make_shared<test::LoopbackWire>();
  test::LoopbackDevice device{wire, {.own_thread = false}};
  std::unique_ptr<AddressTable> table;
};

TEST(PeerAddress, SplitsThePortAsTheContractSays) {
  const PeerAddress address = {.ipv4 = 0x0a000001, .port = 3 * 4096 + 17};
  EXPECT_EQ(address.pid_on_fep(), 17);
  EXPECT_EQ(address.first_ri(), 3 * 256);
  EXPECT_EQ(address.initiator(), 17U << 12 | 768U);
}

TEST_F(AddressTableTest, IndicesAreDenseInInsertionOrder) {
  for (uint16_t i = 0; i < 100; ++i) {
    EXPECT_EQ(Insert(0x0a000001, static_cast<uint16_t>(1000 + i)), i);
  }
  EXPECT_EQ(table->size(), 100U);
}

TEST_F(AddressTableTest, WritesEntriesAsTheDeviceReadsThem) {
  const uint32_t index = Insert(0x0a010203, 5 * 4096 + 9);
  const contract::AvEntry entry = Entry(index);
  EXPECT_EQ(entry.fa_lo, 0x0a010203U);
  EXPECT_EQ(entry.fa_hi, 0U);
  EXPECT_EQ(entry.pid_on_fep, 9);
  EXPECT_EQ(entry.resource_index, 5 * 256);
  EXPECT_EQ(entry.flags, contract::kAvFlagValid);
}

TEST_F(AddressTableTest, ReuseRaisesTheGenerationAndRingsEveryContext) {
  const Doorbell first = device.doorbell(8);
  const Doorbell second = device.doorbell(4096 + 8);
  table->Attach(first);
  table->Attach(second);
  const uint32_t index = Insert(1, 1);
  EXPECT_EQ(device.doorbells(), 0U);
  ASSERT_TRUE(table->Remove(index));
  EXPECT_EQ(Entry(index).flags, 0);
  EXPECT_EQ(Entry(index).generation, 1);
  EXPECT_EQ(device.doorbells(), 2U);
  EXPECT_EQ(Insert(2, 2), index);
  EXPECT_EQ(Entry(index).generation, 1);
  EXPECT_EQ(device.doorbells(), 4U);
  table->Detach(first);
  ASSERT_TRUE(table->Remove(index));
  EXPECT_EQ(device.doorbells(), 5U);
}

TEST_F(AddressTableTest, ContainsOnlyWhatIsInserted) {
  EXPECT_FALSE(table->Contains(0));
  const uint32_t index = Insert(1, 1);
  EXPECT_TRUE(table->Contains(index));
  EXPECT_FALSE(table->Contains(index + 1));
  EXPECT_FALSE(table->Contains(uint64_t{1} << 32U));
  EXPECT_FALSE(table->Contains(~uint64_t{0}));
  ASSERT_TRUE(table->Remove(index));
  EXPECT_FALSE(table->Contains(index));
  EXPECT_FALSE(table->Remove(index));
  EXPECT_FALSE(table->Remove(17));
  EXPECT_FALSE(table->LookupPeer(index).has_value());
}

TEST_F(AddressTableTest, FindsSendersAlsoWhenAnAddressIsThereSeveralTimes) {
  const PeerAddress address = {.ipv4 = 7, .port = 4097};
  const auto find = [&] {
    return table->FindSource(address.ipv4, address.initiator());
  };
  EXPECT_EQ(find(), AddressTable::kNoPeer);
  const uint32_t a = table->Insert(address).value();
  const uint32_t b = table->Insert(address).value();
  const uint32_t c = table->Insert(address).value();
  EXPECT_EQ(find(), a);
  EXPECT_TRUE(table->Remove(b));
  EXPECT_EQ(find(), a);
  EXPECT_TRUE(table->Remove(a));
  EXPECT_EQ(find(), c);
  EXPECT_TRUE(table->Remove(c));
  EXPECT_EQ(find(), AddressTable::kNoPeer);
}

TEST_F(AddressTableTest, HoldsAHundredThousandPeersAtOneBase) {
  constexpr uint32_t kPeers = 150000;
  const Iova base = table->iova();
  for (uint32_t i = 0; i < kPeers; ++i) {
    ASSERT_EQ(
        Insert(0x0a000000 + i / 1000, static_cast<uint16_t>(1 + i % 1000)), i);
  }
  EXPECT_EQ(table->iova(), base);
  for (uint32_t i = 0; i < kPeers; i += 997) {
    const PeerAddress address = table->LookupPeer(i).value();
    EXPECT_EQ(address.ipv4, 0x0a000000 + i / 1000);
    EXPECT_EQ(table->FindSource(address.ipv4, address.initiator()), i);
    EXPECT_EQ(Entry(i).pid_on_fep, 1 + i % 1000);
  }
}

}  // namespace
}  // namespace heddle::nic
