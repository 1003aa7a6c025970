// SPDX-License-Identifier: Apache-2.0
// Memory regions, counters, and what message ordering asks of the NIC.
#include <bit>
#include <cstring>
#include <set>

#include "firmware/admin/order.h"
#include "hw/contract/memory_key.h"
#include "tests/firmware/control_program_fixture.h"

namespace heddle::firmware {
namespace {

using contract::AdminCreateCounter;
using contract::AdminRegisterRegion;
using contract::RegionCfg;
using contract::Table;

constexpr uint32_t kRegions = 16;

class RegionTest : public ControlProgramTest {
 protected:
  static AdminRegisterRegion UserRegion(uint64_t key) {
    return {.iova = 0x10000,
            .length = 0x2000,
            .address_base = 0x7000,
            .key = key,
            .job_id = 9,
            .flags = contract::kRegionFlagRemoteRead};
  }
  static AdminRegisterRegion ProviderRegion() {
    AdminRegisterRegion region = UserRegion(0);
    region.flags |= contract::kRegionFlagProviderKey;
    return region;
  }
  AdminAnswer Register(const AdminRegisterRegion& region) {
    return Execute(region, AdminOpcode::kRegisterRegion);
  }
  AdminAnswer Deregister(uint32_t region) {
    return Destroy(AdminOpcode::kDeregisterRegion, region);
  }
  RegionCfg Entry(uint32_t region) {
    return bus_.Table<RegionCfg>(Table::kRegion, region);
  }
  uint32_t MakeCounter() {
    const AdminAnswer answer = Execute(AdminCreateCounter{.cell = 0x9000},
                                       AdminOpcode::kCreateCounter);
    EXPECT_EQ(answer.status, AdminStatus::kOk);
    return answer.object;
  }
};

TEST_F(RegionTest, UserKeyIsInItsSetAsTheCommandSays) {
  const uint64_t key = 0xa1b2c3d4e5f6;
  const AdminAnswer answer = Register(UserRegion(key));
  ASSERT_EQ(answer.status, AdminStatus::kOk);
  EXPECT_EQ(answer.key, key);
  const uint32_t set = contract::RegionSetOfKey(key, kRegions);
  EXPECT_GE(answer.object, set);
  EXPECT_LT(answer.object, set + contract::kRegionWays);
  const RegionCfg entry = Entry(answer.object);
  EXPECT_EQ(entry.key, key);
  EXPECT_EQ(entry.iova, 0x10000U);
  EXPECT_EQ(entry.length, 0x2000U);
  EXPECT_EQ(entry.address_base, 0x7000U);
  EXPECT_EQ(entry.job_id, 9U);
  EXPECT_EQ(entry.flags, contract::kRegionFlagRemoteRead);
  EXPECT_EQ(entry.enable, 1);
  EXPECT_EQ(entry.counter, 0);
}

TEST_F(RegionTest, ProviderKeyNamesItsEntryAndNeverComesBack) {
  std::set<uint64_t> keys;
  for (int i = 0; i < 100; ++i) {
    const AdminAnswer answer = Register(ProviderRegion());
    ASSERT_EQ(answer.status, AdminStatus::kOk);
    EXPECT_TRUE(contract::IsProviderKey(answer.key));
    EXPECT_EQ(contract::RegionOfKey(answer.key), answer.object);
    EXPECT_EQ(Entry(answer.object).key, answer.key);
    EXPECT_TRUE(keys.insert(answer.key).second) << "key given twice";
    ASSERT_EQ(Deregister(answer.object).status, AdminStatus::kOk);
  }
}

TEST_F(RegionTest, BoardsSecretMakesTheKeys) {
  Board board = TestBoard();
  board.key_secret = 42;
  program_ =
      std::make_unique<ControlProgram>(bus_, switch_, object_memory_, board);
  program_->Start();
  const AdminAnswer answer = Register(ProviderRegion());
  EXPECT_EQ(answer.key, contract::KeyMaker(42).Make(answer.object, 0));
  EXPECT_NE(answer.key, contract::KeyMaker(43).Make(answer.object, 0));
}

TEST_F(RegionTest, KeyInUseIsRefusedUntilItsRegionHasDrained) {
  const uint32_t region = Register(UserRegion(5)).object;
  EXPECT_EQ(Register(UserRegion(5)).status, AdminStatus::kKeyInUse);
  EXPECT_EQ(Register(UserRegion(5 + kRegions)).status, AdminStatus::kOk);
  bus_.hold_drains = true;
  const uint16_t count = bus_.admin_tail;
  Publish(AdminCommand{.object = region}, AdminOpcode::kDeregisterRegion);
  Run();
  EXPECT_FALSE(IsAnswered(count)) << "answered before the drain";
  EXPECT_EQ(Entry(region).enable, 0);
  bus_.hold_drains = false;
  Run();
  EXPECT_EQ(AnswerAt(count).status, AdminStatus::kOk);
  EXPECT_EQ(Register(UserRegion(5)).status, AdminStatus::kOk);
}

TEST_F(RegionTest, DrainFollowsTheDisabledEntry) {
  const uint32_t region = Register(ProviderRegion()).object;
  bus_.events.clear();
  ASSERT_EQ(Deregister(region).status, AdminStatus::kOk);
  ASSERT_GE(bus_.events.size(), 2U);
  EXPECT_EQ(bus_.events[0], (BusEvent{.kind = BusEvent::Kind::kTableWrite,
                                      .table = Table::kRegion,
                                      .index = region}));
  EXPECT_EQ(bus_.events[1], (BusEvent{.kind = BusEvent::Kind::kDrain,
                                      .table = Table::kRegion,
                                      .index = region}));
}

TEST_F(RegionTest, FullTableAndFullSetAreNoResource) {
  for (uint32_t i = 0; i < contract::kRegionWays; ++i) {
    ASSERT_EQ(Register(UserRegion(uint64_t{i} << 8 | i)).status,
              AdminStatus::kOk);
  }
  EXPECT_EQ(Register(UserRegion(0x909)).status, AdminStatus::kNoResource);
  for (uint32_t i = contract::kRegionWays; i < kRegions; ++i) {
    ASSERT_EQ(Register(ProviderRegion()).status, AdminStatus::kOk);
  }
  EXPECT_EQ(Register(ProviderRegion()).status, AdminStatus::kNoResource);
}

TEST_F(RegionTest, EndpointIsUsedByItsRegions) {
  const uint32_t endpoint = MakeEndpoint(4096 * 3 + 77);
  AdminRegisterRegion bound = ProviderRegion();
  bound.endpoint = endpoint;
  bound.flags |= contract::kRegionFlagEndpoint;
  const AdminAnswer answer = Register(bound);
  ASSERT_EQ(answer.status, AdminStatus::kOk);
  EXPECT_EQ(Entry(answer.object).pid_on_fep, 77);
  EXPECT_EQ(Entry(answer.object).resource_index, 3 * contract::kRiBlock);
  const AdminAnswer busy = Destroy(AdminOpcode::kDestroyEndpoint, endpoint);
  EXPECT_EQ(busy.status, AdminStatus::kInUse);
  EXPECT_EQ(busy.detail, 1U);
  ASSERT_EQ(Deregister(answer.object).status, AdminStatus::kOk);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyEndpoint, endpoint).status,
            AdminStatus::kOk);
}

TEST_F(RegionTest, DeviceWithoutRegionsSaysSo) {
  bus_.region_limits = 0;
  program_ =
      std::make_unique<ControlProgram>(bus_, switch_, object_memory_, board_);
  bus_.admin_tail = 0;
  program_->Start();
  EXPECT_EQ(Register(ProviderRegion()).status, AdminStatus::kUnsupported);
  EXPECT_EQ(
      Execute(AdminCreateCounter{.cell = 0x9000}, AdminOpcode::kCreateCounter)
          .status,
      AdminStatus::kUnsupported);
}

TEST_F(RegionTest, BadFieldsAreNamedAndLeaveNoTrace) {
  struct Case {
    uint32_t offset;
    uint32_t bytes;
    uint64_t value;
    AdminStatus status = AdminStatus::kInvalid;
  };
  const Case cases[] = {
      {4, 4, 1},                           // Endpoint without its flag.
      {16, 8, ~uint64_t{0}},               // The range wraps.
      {24, 8, ~uint64_t{0}},               // The remote range wraps.
      {32, 8, uint64_t{1} << 48},          // A provider's bit.
      {32, 8, uint64_t{1} << 63},          // RUDI's.
      {40, 4, 1U << 24},                   // JobID of 25 bits.
      {44, 1, 0x10},                       // Unknown flag.
      {45, 1, 1},                          // Unknown interface.
      {46, 1, 4, AdminStatus::kNotFound},  // No such counter.
      {56, 8, 1},                          // Reserved.
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.offset);
    auto command = std::bit_cast<AdminCommand>(UserRegion(5));
    std::memcpy(reinterpret_cast<char*>(&command) + bad.offset, &bad.value,
                bad.bytes);
    bus_.events.clear();
    const AdminAnswer answer = Execute(command, AdminOpcode::kRegisterRegion);
    EXPECT_EQ(answer.status, bad.status);
    EXPECT_EQ(answer.detail & ~7U, bad.offset & ~7U);
    for (const BusEvent& event : bus_.events) {
      EXPECT_NE(event.kind, BusEvent::Kind::kTableWrite);
    }
  }
  AdminRegisterRegion keyed = ProviderRegion();
  keyed.key = 5;
  EXPECT_EQ(Register(keyed).detail, offsetof(AdminRegisterRegion, key));
  AdminRegisterRegion unbound = ProviderRegion();
  unbound.flags |= contract::kRegionFlagEndpoint;
  unbound.endpoint = 3;
  EXPECT_EQ(Register(unbound).status, AdminStatus::kNotFound);
}

TEST_F(RegionTest, CounterIsKeptWhileContextsAndRegionsUseIt) {
  MakeEndpoint();
  MakeCq();
  const uint32_t counter = MakeCounter();
  EXPECT_EQ(bus_.Table<contract::CounterCfg>(Table::kCounter, counter).cell,
            0x9000U);
  const auto plus_1 = static_cast<uint8_t>(counter + 1);
  AdminCreateTx tx = ValidTx();
  tx.counter_write = plus_1;
  AdminCreateRx rx = ValidRx();
  rx.counter_remote_write = plus_1;
  AdminRegisterRegion region = ProviderRegion();
  region.counter = plus_1;
  const uint32_t tx_context = Execute(tx, AdminOpcode::kCreateTx).object;
  const uint32_t rx_context = Execute(rx, AdminOpcode::kCreateRx).object;
  const uint32_t of_region = Register(region).object;
  EXPECT_EQ(
      bus_.Table<contract::TxCtxCfg>(Table::kTxCtx, tx_context).counter_write,
      plus_1);
  EXPECT_EQ(Entry(of_region).counter, plus_1);
  const auto users = [&] {
    return Destroy(AdminOpcode::kDestroyCounter, counter).detail;
  };
  EXPECT_EQ(users(), 3U);
  ASSERT_EQ(Destroy(AdminOpcode::kDestroyTx, tx_context).status,
            AdminStatus::kOk);
  EXPECT_EQ(users(), 2U);
  ASSERT_EQ(Deregister(of_region).status, AdminStatus::kOk);
  EXPECT_EQ(users(), 1U);
  ASSERT_EQ(Destroy(AdminOpcode::kDestroyRx, rx_context).status,
            AdminStatus::kOk);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyCounter, counter).status,
            AdminStatus::kOk);
  EXPECT_EQ(bus_.Table<contract::CounterCfg>(Table::kCounter, counter).enable,
            0);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyCounter, counter).status,
            AdminStatus::kNotFound);
}

TEST_F(RegionTest, ResetEndsRegionsAndCounters) {
  const uint32_t counter = MakeCounter();
  const uint32_t region = Register(ProviderRegion()).object;
  bus_.reset_requested = true;
  Run();
  EXPECT_FALSE(bus_.reset_requested);
  EXPECT_EQ(Entry(region).enable, 0);
  EXPECT_EQ(bus_.Table<contract::CounterCfg>(Table::kCounter, counter).enable,
            0);
}

TEST_F(RegionTest, TransportSettingsAreTheBoards) {
  Board board = TestBoard();
  board.pdc_safety_ns = 3'000'000;
  board.pdc_idle_ns = 5'000'000;
  board.reorder = 7;
  board.congestion = true;
  board.urgent_dscps = 0x8000000000000001;
  board.hash_key[0] = 0x11;
  board.hash_key[1] = 0x22;
  board.hash_key[2] = 0x33;
  ControlProgram program(bus_, switch_, object_memory_, board);
  program.Start();
  const auto entry = bus_.Table<contract::TransportCfg>(Table::kTransport, 0);
  EXPECT_EQ(entry.safety_ticks, 3000U);
  EXPECT_EQ(entry.idle_ticks, 5000U);
  EXPECT_EQ(entry.reorder, 7);
  EXPECT_EQ(entry.ack_every, 16);
  EXPECT_EQ(entry.urgent_dscps, board.urgent_dscps);
  EXPECT_EQ(entry.congestion, 1);
  EXPECT_EQ(entry.tick_ns, board.tick_ns);
  EXPECT_EQ(std::memcmp(entry.hash_key, board.hash_key, sizeof(entry.hash_key)),
            0);
}

TEST_F(RegionTest, IdlePdcsCloseBeforeTheirTargetsForgetThem) {
  const auto idle_ticks = [this](uint64_t idle_ns, uint64_t dead_ns) {
    Board board = TestBoard();
    board.pdc_idle_ns = idle_ns;
    board.dead_ns = dead_ns;
    ControlProgram program(bus_, switch_, object_memory_, board);
    program.Start();
    return bus_.Table<contract::TransportCfg>(Table::kTransport, 0).idle_ticks;
  };
  EXPECT_EQ(idle_ticks(0, 5'000'000), 5000U);
  EXPECT_EQ(idle_ticks(3'000'000, 5'000'000), 3000U);
  EXPECT_EQ(idle_ticks(9'000'000, 5'000'000), 5000U);
  EXPECT_EQ(idle_ticks(UINT64_MAX, 5'000'000), 5000U);
  EXPECT_EQ(idle_ticks(0, UINT64_MAX), uint32_t{INT32_MAX})
      << "what the NIC can measure";
}

TEST_F(RegionTest, NicWithoutTransportTableStartsNevertheless) {
  bus_.broken_table = Table::kTransport;
  ControlProgram program(bus_, switch_, object_memory_, board_);
  program.Start();
  EXPECT_NE(bus_.status & contract::kBar0DeviceStatusReadyMask, 0U);
}

TEST(OrderedClasses, AreThoseThatABitNames) {
  using contract::kOrderClassAtomic;
  using contract::kOrderClassRead;
  using contract::kOrderClassSend;
  using contract::kOrderClassWrite;
  constexpr uint64_t kSas = 1U << 8U;
  constexpr uint64_t kSaw = 1U << 7U;
  constexpr uint64_t kRmaWaw = uint64_t{1} << 35U;
  constexpr uint64_t kAtomicRar = uint64_t{1} << 36U;
  EXPECT_EQ(OrderedClasses(0), 0);
  EXPECT_EQ(OrderedClasses(kSas), kOrderClassSend);
  EXPECT_EQ(OrderedClasses(kSaw),
            kOrderClassSend | kOrderClassWrite | kOrderClassAtomic);
  EXPECT_EQ(OrderedClasses(kRmaWaw), kOrderClassWrite);
  EXPECT_EQ(OrderedClasses(kAtomicRar), kOrderClassAtomic);
  EXPECT_EQ(OrderedClasses(1), kOrderClassRead | kOrderClassAtomic);
}

}  // namespace
}  // namespace heddle::firmware
