// SPDX-License-Identifier: Apache-2.0
// Devices of more than one bank: numbers of two bytes, and memory that follows
// what is in use.
#include <cstddef>
#include <utility>
#include <vector>

#include "hw/contract/memory_key.h"
#include "hw/contract/split_number.h"
#include "tests/firmware/control_program_fixture.h"

namespace heddle::firmware {
namespace {

using contract::AdminCreateCounter;
using contract::AdminRegisterRegion;
using contract::HighByte;
using contract::LowByte;
using contract::Table;

constexpr uint32_t kObjects = 600;
constexpr uint32_t kRegions = 65536;

class ManyObjectsTest : public ControlProgramTest {
 protected:
  void SetUp() override {
    bus_.context_counts = kObjects << 16 | kObjects;
    bus_.queue_counts = kObjects << 16 | kObjects;
    bus_.region_count = kRegions;
    ControlProgramTest::SetUp();
  }

  uint32_t MakeCounter() {
    const AdminAnswer answer = Execute(AdminCreateCounter{.cell = 0x9000},
                                       AdminOpcode::kCreateCounter);
    EXPECT_EQ(answer.status, AdminStatus::kOk);
    return answer.object;
  }
  // Makes objects up to this number.
  void MakeCqsAndCounters(uint32_t last) {
    for (uint32_t i = 0; i <= last; ++i) {
      ASSERT_EQ(MakeCq(), i);
      ASSERT_EQ(MakeCounter(), i);
    }
  }
  static AdminRegisterRegion RegionOf(uint64_t key) {
    const uint8_t provider =
        key == 0 ? contract::kRegionFlagProviderKey : uint8_t{0};
    return {.iova = 0x10000,
            .length = 0x2000,
            .key = key,
            .job_id = 9,
            .flags = static_cast<uint8_t>(contract::kRegionFlagRemoteRead |
                                          provider)};
  }
};

TEST_F(ManyObjectsTest, ContextsNameQueuesAndCountersInTwoBytes) {
  MakeEndpoint();
  ASSERT_NO_FATAL_FAILURE(MakeCqsAndCounters(300));
  AdminCreateTx tx = ValidTx();
  tx.cq = LowByte(300);
  tx.cq_high = HighByte(300);
  tx.counter_send = LowByte(301);  // Plus 1.
  tx.counter_send_high = HighByte(301);
  tx.counter_read = LowByte(257);
  tx.counter_read_high = HighByte(257);
  tx.counter_write = LowByte(256);
  tx.counter_write_high = HighByte(256);
  const AdminAnswer made = Execute(tx, AdminOpcode::kCreateTx);
  ASSERT_EQ(made.status, AdminStatus::kOk);
  const auto entry = bus_.Table<contract::TxCtxCfg>(Table::kTxCtx, made.object);
  EXPECT_EQ(contract::JoinBytes(entry.cq, entry.cq_high), 300);
  EXPECT_EQ(contract::JoinBytes(entry.counter_send, entry.counter_send_high),
            301);
  EXPECT_EQ(contract::JoinBytes(entry.counter_read, entry.counter_read_high),
            257);
  EXPECT_EQ(contract::JoinBytes(entry.counter_write, entry.counter_write_high),
            256);
  AdminCreateRx rx = ValidRx();
  rx.cq = LowByte(299);
  rx.cq_high = HighByte(299);
  rx.counter_remote_write = LowByte(300);
  rx.counter_remote_write_high = HighByte(300);
  const AdminAnswer received = Execute(rx, AdminOpcode::kCreateRx);
  ASSERT_EQ(received.status, AdminStatus::kOk);
  const auto place =
      bus_.Table<contract::RxCtxCfg>(Table::kRxCtx, received.object);
  EXPECT_EQ(contract::JoinBytes(place.cq, place.cq_high), 299);
  EXPECT_EQ(contract::JoinBytes(place.counter_remote_write,
                                place.counter_remote_write_high),
            300);
  AdminRegisterRegion region = RegionOf(0);
  region.counter = LowByte(299);
  region.counter_high = HighByte(299);
  ASSERT_EQ(Execute(region, AdminOpcode::kRegisterRegion).status,
            AdminStatus::kOk);

  // They are in use, those of the low bytes alone are not.
  for (const uint32_t cq : {299U, 300U}) {
    EXPECT_EQ(Destroy(AdminOpcode::kDestroyCq, cq).status, AdminStatus::kInUse);
    EXPECT_EQ(Destroy(AdminOpcode::kDestroyCq, LowByte(cq)).status,
              AdminStatus::kOk);
  }
  for (const uint32_t counter : {298U, 299U, 300U, 256U, 255U}) {
    EXPECT_EQ(Destroy(AdminOpcode::kDestroyCounter, counter).status,
              AdminStatus::kInUse)
        << counter;
  }
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyCounter, LowByte(300)).status,
            AdminStatus::kOk);
  ASSERT_EQ(Destroy(AdminOpcode::kDestroyTx, made.object).status,
            AdminStatus::kOk);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyCq, 300).status, AdminStatus::kOk);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyCounter, 300).status,
            AdminStatus::kOk);
}

TEST_F(ManyObjectsTest, HighBytesOfNoObjectAreRefused) {
  MakeEndpoint();
  MakeCq();
  const auto refused = [this](auto command, AdminOpcode opcode, auto high_byte,
                              size_t offset) {
    command.*high_byte = 1;
    const AdminAnswer answer = Execute(command, opcode);
    EXPECT_EQ(answer.status, AdminStatus::kNotFound) << offset;
    EXPECT_EQ(answer.detail, offset);
  };
  using Tx = AdminCreateTx;
  using Rx = AdminCreateRx;
  for (const auto& [high_byte, offset] :
       {std::pair(&Tx::cq_high, offsetof(Tx, cq)),
        std::pair(&Tx::counter_send_high, offsetof(Tx, counter_send)),
        std::pair(&Tx::counter_read_high, offsetof(Tx, counter_read)),
        std::pair(&Tx::counter_write_high, offsetof(Tx, counter_write))}) {
    refused(ValidTx(), AdminOpcode::kCreateTx, high_byte, offset);
  }
  for (const auto& [high_byte, offset] :
       {std::pair(&Rx::cq_high, offsetof(Rx, cq)),
        std::pair(&Rx::counter_recv_high, offsetof(Rx, counter_recv)),
        std::pair(&Rx::counter_remote_read_high,
                  offsetof(Rx, counter_remote_read)),
        std::pair(&Rx::counter_remote_write_high,
                  offsetof(Rx, counter_remote_write))}) {
    refused(ValidRx(), AdminOpcode::kCreateRx, high_byte, offset);
  }
  refused(RegionOf(0), AdminOpcode::kRegisterRegion,
          &AdminRegisterRegion::counter_high,
          offsetof(AdminRegisterRegion, counter));
}

TEST_F(ManyObjectsTest, AsManyQueuesAsTheRegisterSays) {
  for (uint32_t i = 0; i < kObjects; ++i) {
    ASSERT_EQ(MakeCq(), i);
  }
  EXPECT_EQ(Execute(ValidCq(), AdminOpcode::kCreateCq).status,
            AdminStatus::kNoResource);
  ASSERT_EQ(Destroy(AdminOpcode::kDestroyCq, 17).status, AdminStatus::kOk);
  EXPECT_EQ(MakeCq(), 17U);
}

TEST_F(ManyObjectsTest, ConsecutiveUserKeysFillALargeTable) {
  for (uint64_t key = 1; key <= 5000; ++key) {
    ASSERT_EQ(Execute(RegionOf(key), AdminOpcode::kRegisterRegion).status,
              AdminStatus::kOk)
        << key;
  }
}

TEST_F(ManyObjectsTest, MemoryFollowsWhatIsInUseAtATime) {
  EXPECT_EQ(object_memory_.taken_bytes, 0U) << "of an idle device";
  const auto use_one = [this] {
    const AdminAnswer region =
        Execute(RegionOf(0), AdminOpcode::kRegisterRegion);
    ASSERT_EQ(region.status, AdminStatus::kOk);
    ASSERT_EQ(Destroy(AdminOpcode::kDeregisterRegion, region.object).status,
              AdminStatus::kOk);
  };
  use_one();
  const size_t after_one = object_memory_.taken_bytes;
  EXPECT_LT(after_one, 8192U);
  for (int i = 0; i < 1000; ++i) {
    use_one();
  }
  EXPECT_EQ(object_memory_.taken_bytes, after_one);
}

TEST_F(ManyObjectsTest, WithoutMemoryThereIsNoObjectAndTheOthersStay) {
  const uint32_t endpoint = MakeEndpoint();
  const uint32_t cq = MakeCq();
  object_memory_.limit_bytes = object_memory_.taken_bytes;
  EXPECT_EQ(
      Execute(AdminCreateCounter{.cell = 0x9000}, AdminOpcode::kCreateCounter)
          .status,
      AdminStatus::kNoResource);
  EXPECT_EQ(Execute(ValidTx(), AdminOpcode::kCreateTx).status,
            AdminStatus::kNoResource);
  EXPECT_EQ(Execute(ValidRx(), AdminOpcode::kCreateRx).status,
            AdminStatus::kNoResource);
  EXPECT_EQ(Execute(RegionOf(0), AdminOpcode::kRegisterRegion).status,
            AdminStatus::kNoResource);
  EXPECT_EQ(MakeCq(), cq + 1) << "there is memory for it";
  object_memory_.limit_bytes = SIZE_MAX;
  MakeTx();
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyEndpoint, endpoint).status,
            AdminStatus::kInUse);
}

TEST_F(ManyObjectsTest, ResetEndsObjectsOfAllBanks) {
  MakeEndpoint();
  ASSERT_NO_FATAL_FAILURE(MakeCqsAndCounters(70));
  std::vector<uint32_t> contexts;
  for (int i = 0; i < 70; ++i) {
    contexts.push_back(MakeTx());
  }
  EXPECT_EQ(contexts.back(), 69U);
  bus_.reset_requested = true;
  for (uint32_t i = 0; i < 10000 && bus_.reset_requested; ++i) {
    program_->Step();
  }
  ASSERT_FALSE(bus_.reset_requested);
  const auto entry = bus_.Table<contract::TxCtxCfg>(Table::kTxCtx, 69);
  EXPECT_EQ(entry.enable, 0);
  EXPECT_EQ(bus_.Table<contract::CqCfg>(Table::kCq, 70).enable, 0);
  EXPECT_EQ(bus_.Table<contract::CounterCfg>(Table::kCounter, 70).enable, 0);
  EXPECT_TRUE(switch_.owner_of.empty());
}

TEST_F(ManyObjectsTest, ImpossibleRegionTableStopsTheProgram) {
  for (const uint32_t regions : {3U, 65536U * 2, 1000U}) {
    bus_.region_count = regions;
    ControlProgram program(bus_, switch_, object_memory_, board_);
    program.Start();
    EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
    EXPECT_EQ(bus_.fatal_cause,
              uint32_t{static_cast<uint16_t>(Module::kControlProgram)} << 16 |
                  ControlProgram::kWrongLimits << 8 |
                  static_cast<uint8_t>(StatusClass::kMismatch));
  }
}

// The folding that devices of up to 1024 regions have, and that of larger ones.
TEST(UserKeySets, ArePartOfTheContract) {
  constexpr uint64_t kKey = 0xa1b2c3d4e5f6;
  constexpr uint32_t kBytes = 0xa1 ^ 0xb2 ^ 0xc3 ^ 0xd4 ^ 0xe5 ^ 0xf6;
  constexpr uint32_t kWords = 0xa1b2 ^ 0xc3d4 ^ 0xe5f6;
  EXPECT_EQ(contract::RegionSetOfKey(kKey, 1024), kBytes * 4);
  EXPECT_EQ(contract::RegionSetOfKey(kKey, 64), kBytes % 16 * 4);
  EXPECT_EQ(contract::RegionSetOfKey(kKey, 2048), kWords % 512 * 4);
  EXPECT_EQ(contract::RegionSetOfKey(kKey, 65536), kWords % 16384 * 4);
}

}  // namespace
}  // namespace heddle::firmware
