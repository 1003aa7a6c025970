// SPDX-License-Identifier: Apache-2.0
#include "firmware/control_program.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/firmware/control_program_fixture.h"
#include "tests/seed.h"

namespace heddle::firmware {
namespace {

// ------------------------------------------------------------------- start

TEST_F(ControlProgramTest, StartConfiguresPortAndNextHopThenReportsReady) {
  const auto port = bus_.Table<contract::PortCfg>(contract::Table::kPort, 0);
  EXPECT_EQ(port.local_fa_lo, board_.fa_lo);
  EXPECT_EQ(port.mac, board_.mac);
  EXPECT_EQ(port.rto_ticks, 20'000U);
  EXPECT_EQ(port.rto_max_ticks, 1'000'000U);
  EXPECT_EQ(port.backoff_ticks, 10U);
  EXPECT_EQ(port.backoff_max_ticks, 1000U);
  EXPECT_EQ(port.dead_ticks, 60'000'000U);
  EXPECT_EQ(port.ack_delay_ticks, 200U);
  EXPECT_EQ(port.payload_mtu, 4096);
  EXPECT_EQ(port.udp_port, contract::kUetUdpPort);
  EXPECT_EQ(port.slot, 5);
  EXPECT_EQ(port.enable, 1);
  EXPECT_EQ(port.write_errors, 1);
  EXPECT_EQ(port.crc, contract::CrcOrder::kMsbFirst);
  EXPECT_EQ(port.ip_protocol, board_.ip_protocol);
  EXPECT_EQ(port.pdc_seed, 0x1234U);
  const auto hop =
      bus_.Table<contract::NextHopCfg>(contract::Table::kNextHop, 0);
  EXPECT_EQ(hop.mac, board_.gateway_mac);
  EXPECT_EQ(hop.mtu, 4096);
  EXPECT_EQ(hop.valid, 1);
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusReadyMask |
                             contract::kBar0DeviceStatusLinkMask);
}

TEST_F(ControlProgramTest, StartHaltsOnHardwareOfAnotherContractVersion) {
  bus_.status = 0;
  bus_.version = (contract::kContractMajor + 1) << 16;
  ControlProgram program(bus_, switch_, object_memory_, board_);
  program.Start();
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
  EXPECT_EQ(bus_.fatal_cause,
            uint32_t{static_cast<uint16_t>(Module::kControlProgram)} << 16 |
                ControlProgram::kWrongContract << 8 |
                static_cast<uint8_t>(StatusClass::kMismatch));
}

// Its limits were never read: it must not be taken for one that serves.
TEST_F(ControlProgramTest, ResetDoesNotMakeHardwareOfAnotherContractReady) {
  bus_.version = (contract::kContractMajor + 1) << 16;
  ControlProgram program(bus_, switch_, object_memory_, board_);
  program.Start();
  bus_.reset_requested = true;
  program.Step();
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
}

TEST_F(ControlProgramTest, StartHaltsWhenTheDatapathCannotCarryTheBoardsMtu) {
  bus_.datapath = 2048U << 16 | 512;
  ControlProgram program(bus_, switch_, object_memory_, board_);
  program.Start();
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
}

TEST_F(ControlProgramTest, StartHaltsOnAnUnknownCrcOrder) {
  board_.crc = static_cast<contract::CrcOrder>(3);
  ControlProgram program(bus_, switch_, object_memory_, board_);
  program.Start();
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
}

TEST_F(ControlProgramTest, StartHaltsOnAProtocolThatIsNotNativeIps) {
  for (const unsigned protocol : {1U, 6U, 17U, 58U}) {
    board_.ip_protocol = static_cast<uint8_t>(protocol);
    bus_.status = 0;
    ControlProgram program(bus_, switch_, object_memory_, board_);
    program.Start();
    EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask) << protocol;
  }
}

TEST_F(ControlProgramTest, LinkIsToldToTheHostAndSurvivesAReset) {
  constexpr uint32_t kLink = contract::kBar0DeviceStatusLinkMask;
  constexpr uint32_t kReady = contract::kBar0DeviceStatusReadyMask;
  program_->SetLink(/*up=*/false);
  EXPECT_EQ(bus_.status, kReady);
  bus_.reset_requested = true;
  Run();
  EXPECT_EQ(bus_.status, kReady);
  program_->SetLink(/*up=*/true);
  EXPECT_EQ(bus_.status, kReady | kLink);
}

TEST_F(ControlProgramTest, LinkThatIsDownFromTheStartIsNotShownAsUp) {
  ControlProgram program(bus_, switch_, object_memory_, board_);
  bus_.status = 0;
  program.SetLink(/*up=*/false);
  EXPECT_EQ(bus_.status, 0U) << "not ready yet";
  program.Start();
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusReadyMask);
}

TEST_F(ControlProgramTest, ChangeOfTheLinkDoesNotHideAFatalError) {
  bus_.stuck_mailbox = true;
  ++bus_.admin_tail;
  program_->Step();
  program_->SetLink(/*up=*/false);
  program_->SetLink(/*up=*/true);
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
}

TEST_F(ControlProgramTest, StepWithoutEventsReadsTheBusOnce) {
  bus_.reads = 0;
  program_->Step();
  EXPECT_EQ(bus_.reads, 1U);
}

// --------------------------------------------------------------- endpoints

TEST_F(ControlProgramTest, EndpointIsAddressedByItsPort) {
  const AdminAnswer answer =
      Execute(AdminCreateEndpoint{.port = 5000, .job_id = 0xffffff},
              AdminOpcode::kCreateEndpoint);
  EXPECT_EQ(answer.status, AdminStatus::kOk);
  EXPECT_EQ(answer.port, 5000U);
  EXPECT_EQ(answer.pid_on_fep, 5000 % 4096);
  EXPECT_EQ(answer.resource_index, 5000 / 4096 * 256);
}

TEST_F(ControlProgramTest, HighestPortStaysWithinTheResourceIndexSpace) {
  const AdminAnswer answer =
      Execute(AdminCreateEndpoint{.port = 65535}, AdminOpcode::kCreateEndpoint);
  EXPECT_EQ(answer.pid_on_fep, 4095);
  EXPECT_EQ(answer.resource_index, 15 * 256);
}

TEST_F(ControlProgramTest, PortZeroTakesAFreePort) {
  const AdminAnswer answer =
      Execute(AdminCreateEndpoint{}, AdminOpcode::kCreateEndpoint);
  EXPECT_EQ(answer.status, AdminStatus::kOk);
  EXPECT_EQ(answer.port, 40000U);
  EXPECT_EQ(switch_.owner_of.count({40000, kAddressSpace}), 1U);
}

TEST_F(ControlProgramTest, ClaimedPortIsInUseAndNamesTheOwner) {
  switch_.owner_of[{6000, kAddressSpace}] = 4711;
  const AdminAnswer answer =
      Execute(AdminCreateEndpoint{.port = 6000}, AdminOpcode::kCreateEndpoint);
  EXPECT_EQ(answer.status, AdminStatus::kInUse);
  EXPECT_EQ(answer.detail, 4711U);
}

TEST_F(ControlProgramTest, EachJobHasItsPortsAndTheAddressItsOwn) {
  const auto claim = [&](uint32_t job, uint8_t flags) {
    return Execute(
        AdminCreateEndpoint{.port = 5000, .job_id = job, .flags = flags},
        AdminOpcode::kCreateEndpoint);
  };
  const uint8_t relative = contract::kEndpointFlagRelative;
  const AdminAnswer first = claim(7, relative);
  EXPECT_EQ(first.status, AdminStatus::kOk);
  EXPECT_EQ(first.pid_on_fep, 904) << "as without the flag";
  EXPECT_EQ(first.resource_index, 256);
  EXPECT_EQ(claim(8, relative).status, AdminStatus::kOk);
  EXPECT_EQ(claim(7, relative).status, AdminStatus::kInUse);
  EXPECT_EQ(claim(7, 0).status, AdminStatus::kOk);
  EXPECT_EQ(claim(8, 0).status, AdminStatus::kInUse) << "whatever the job";
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyEndpoint, first.object).status,
            AdminStatus::kOk);
  EXPECT_EQ(claim(8, relative).status, AdminStatus::kInUse);
  EXPECT_EQ(claim(7, relative).status, AdminStatus::kOk);
}

TEST_F(ControlProgramTest, ContextsAndRegionsAreRelativeAsTheirEndpointIs) {
  const uint32_t cq = MakeCq();
  for (const bool relative : {false, true}) {
    const uint32_t endpoint =
        Execute(
            AdminCreateEndpoint{.port = 5000,
                                .job_id = 7,
                                .flags = relative
                                             ? contract::kEndpointFlagRelative
                                             : uint8_t{0}},
            AdminOpcode::kCreateEndpoint)
            .object;
    AdminCreateTx tx = ValidTx();
    tx.endpoint = endpoint;
    tx.cq = static_cast<uint8_t>(cq);
    AdminCreateRx rx = ValidRx();
    rx.endpoint = endpoint;
    rx.cq = static_cast<uint8_t>(cq);
    rx.flags = contract::kRxCtxFlagRegionEvent;
    const AdminAnswer made_tx = Execute(tx, AdminOpcode::kCreateTx);
    const AdminAnswer made_rx = Execute(rx, AdminOpcode::kCreateRx);
    ASSERT_EQ(made_tx.status, AdminStatus::kOk);
    ASSERT_EQ(made_rx.status, AdminStatus::kOk);
    EXPECT_EQ(
        bus_.Table<contract::TxCtxCfg>(contract::Table::kTxCtx, made_tx.object)
            .flags,
        relative ? contract::kTxCtxFlagRelative : 0);
    EXPECT_EQ(
        bus_.Table<contract::RxCtxCfg>(contract::Table::kRxCtx, made_rx.object)
            .flags,
        contract::kRxCtxFlagRegionEvent |
            (relative ? contract::kRxCtxFlagRelative : 0));
    // It follows the endpoint: the host does not choose it here.
    rx.rx_index = 1;
    rx.flags = contract::kRxCtxFlagRelative;
    const AdminAnswer refused = Execute(rx, AdminOpcode::kCreateRx);
    EXPECT_EQ(refused.status, AdminStatus::kInvalid);
    EXPECT_EQ(refused.detail, offsetof(AdminCreateRx, flags));
  }
}

// A receive context that matches, in the space of tagged sends.
AdminCreateRx Matching(AdminCreateRx rx) {
  rx.flags = contract::kRxCtxFlagMatch | contract::kRxCtxFlagTagged;
  rx.unexpected_bytes = 0x4000;
  rx.unexpected_base = 0x80000;
  rx.unexpected_messages = 64;
  rx.copy_limit = 1024;
  rx.receives = 32;
  return rx;
}

constexpr uint32_t kMatchCapabilities =
    contract::kCapabilityMatch | contract::kCapabilityTagged;

TEST_F(ControlProgramTest, TaggedSendsAreASpaceOfTheirOwn) {
  bus_.capability = kMatchCapabilities;
  program_->Start();
  MakeEndpoint(5000);
  MakeCq();
  const AdminCreateRx tagged = Matching(ValidRx());
  const AdminAnswer made = Execute(tagged, AdminOpcode::kCreateRx);
  ASSERT_EQ(made.status, AdminStatus::kOk);
  const auto config =
      bus_.Table<contract::RxCtxCfg>(contract::Table::kRxCtx, made.object);
  EXPECT_EQ(config.flags, tagged.flags);
  EXPECT_EQ(config.unexpected_bytes, tagged.unexpected_bytes);
  EXPECT_EQ(config.unexpected_base, tagged.unexpected_base);
  EXPECT_EQ(config.unexpected_messages, tagged.unexpected_messages);
  EXPECT_EQ(config.copy_limit, tagged.copy_limit);
  EXPECT_EQ(config.receives, tagged.receives);
  EXPECT_EQ(Execute(tagged, AdminOpcode::kCreateRx).status,
            AdminStatus::kInUse);
  // The same RI, and not taken yet.
  EXPECT_EQ(Execute(ValidRx(), AdminOpcode::kCreateRx).status,
            AdminStatus::kOk);
}

TEST_F(ControlProgramTest, FieldsOfMatchingAreChecked) {
  bus_.capability = kMatchCapabilities;
  program_->Start();
  MakeEndpoint(5000);
  MakeCq();
  const auto refused_at = [&](auto change) {
    AdminCreateRx rx = Matching(ValidRx());
    change(rx);
    const AdminAnswer answer = Execute(rx, AdminOpcode::kCreateRx);
    EXPECT_EQ(answer.status, AdminStatus::kInvalid);
    return answer.detail;
  };
  using Rx = AdminCreateRx;
  EXPECT_EQ(refused_at([](Rx& rx) { rx.flags = contract::kRxCtxFlagTagged; }),
            offsetof(Rx, flags));
  EXPECT_EQ(refused_at([](Rx& rx) {
              // Ends after the address space.
              rx.ring_base = ~uint64_t{0xfff};
              rx.ring_log2 = 7;
            }),
            offsetof(Rx, ring_base));
  EXPECT_EQ(refused_at([](Rx& rx) { rx.unexpected_bytes = 0x4001; }),
            offsetof(Rx, unexpected_bytes));
  EXPECT_EQ(refused_at([](Rx& rx) { rx.unexpected_base = 0x80800; }),
            offsetof(Rx, unexpected_base));
  EXPECT_EQ(refused_at([](Rx& rx) { rx.unexpected_base = ~uint64_t{0xfff}; }),
            offsetof(Rx, unexpected_base));
  EXPECT_EQ(refused_at([](Rx& rx) { rx.unexpected_messages = 0; }),
            offsetof(Rx, unexpected_messages));
  EXPECT_EQ(refused_at([](Rx& rx) {
              rx.unexpected_messages = contract::kMatchEntriesMax + 1;
            }),
            offsetof(Rx, unexpected_messages));
  EXPECT_EQ(refused_at([](Rx& rx) { rx.receives = 0; }),
            offsetof(Rx, receives));
}

TEST_F(ControlProgramTest, SendsAreDeferrableWhereTheDeviceDefers) {
  bus_.capability = contract::kCapabilityDeferrable;
  program_->Start();
  MakeEndpoint(5000);
  MakeCq();
  AdminCreateTx tx = ValidTx();
  tx.flags = contract::kTxCtxFlagDeferrable;
  const AdminAnswer made = Execute(tx, AdminOpcode::kCreateTx);
  ASSERT_EQ(made.status, AdminStatus::kOk);
  EXPECT_EQ(bus_.Table<contract::TxCtxCfg>(contract::Table::kTxCtx, made.object)
                .flags,
            contract::kTxCtxFlagDeferrable);
}

TEST_F(ControlProgramTest, EarlyReleaseNeedsNoSpillArea) {
  MakeEndpoint(5000);
  MakeCq();
  AdminCreateTx tx = ValidTx();
  tx.spill_base = 0;
  tx.flags = contract::kTxCtxFlagEarlyRelease;
  const AdminAnswer made = Execute(tx, AdminOpcode::kCreateTx);
  ASSERT_EQ(made.status, AdminStatus::kOk);
  EXPECT_EQ(bus_.Table<contract::TxCtxCfg>(contract::Table::kTxCtx, made.object)
                .flags,
            contract::kTxCtxFlagEarlyRelease);
  // With a flag that the device lacks, and one that there is not.
  for (const uint32_t other : {uint32_t{contract::kTxCtxFlagDeferrable}, 8U}) {
    tx.flags = static_cast<uint8_t>(contract::kTxCtxFlagEarlyRelease | other);
    const AdminAnswer refused = Execute(tx, AdminOpcode::kCreateTx);
    EXPECT_EQ(refused.status, AdminStatus::kInvalid);
    EXPECT_EQ(refused.detail, offsetof(AdminCreateTx, flags));
  }
}

TEST_F(ControlProgramTest, ExhaustedPortsAreNoResource) {
  switch_.exhausted = true;
  const AdminAnswer answer =
      Execute(AdminCreateEndpoint{}, AdminOpcode::kCreateEndpoint);
  EXPECT_EQ(answer.status, AdminStatus::kNoResource);
}

TEST_F(ControlProgramTest, DestroyedEndpointsPortCanBeClaimedAgain) {
  const uint32_t endpoint = MakeEndpoint(5000);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyEndpoint, endpoint).status,
            AdminStatus::kOk);
  EXPECT_TRUE(switch_.owner_of.empty());
  EXPECT_EQ(MakeEndpoint(5000), endpoint);
}

// ---------------------------------------------------------------- contexts

TEST_F(ControlProgramTest, QueueEntryHoldsWhatTheCommandSaid) {
  const uint32_t cq = MakeCq();
  const auto config = bus_.Table<contract::CqCfg>(contract::Table::kCq, cq);
  EXPECT_EQ(config, (contract::CqCfg{.base = 0x10000,
                                     .log2 = 7,
                                     .vector = 3,
                                     .function = 0,
                                     .enable = 1}));
}

TEST_F(ControlProgramTest, TransmitEntryTakesItsIdentityFromTheEndpoint) {
  MakeEndpoint(5000);
  MakeCq();
  const uint32_t tx = MakeTx();
  const auto config =
      bus_.Table<contract::TxCtxCfg>(contract::Table::kTxCtx, tx);
  EXPECT_EQ(config, (contract::TxCtxCfg{.ring_base = 0x20000,
                                        .head_cell = 0x30008,
                                        .av_base = 0x40040,
                                        .av_entries = 100,
                                        .job_id = 9,
                                        .source_pid = 904,
                                        .source_ri = 256,
                                        .ring_log2 = 7,
                                        .cq = 0,
                                        .function = 0,
                                        .enable = 1,
                                        .traffic_class = 46,
                                        .ordered = 15}));
}

TEST_F(ControlProgramTest, ReceiveContextServesTheIndexBehindTheControlRi) {
  MakeEndpoint(5000);
  MakeCq();
  const uint32_t rx = MakeRx(254);
  const auto config =
      bus_.Table<contract::RxCtxCfg>(contract::Table::kRxCtx, rx);
  EXPECT_EQ(config, (contract::RxCtxCfg{.ring_base = 0x50000,
                                        .head_cell = 0x60010,
                                        .job_id = 9,
                                        .pid_on_fep = 904,
                                        .resource_index = 256 + 255,
                                        .ring_log2 = 7,
                                        .cq = 0,
                                        .function = 0,
                                        .enable = 1}));
}

TEST_F(ControlProgramTest, ReceiveIndexIsTakenOnceUntilDestroyed) {
  MakeEndpoint();
  MakeCq();
  const uint32_t rx = MakeRx(3);
  EXPECT_EQ(Execute(ValidRx(), AdminOpcode::kCreateRx).status,
            AdminStatus::kInUse);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyRx, rx).status, AdminStatus::kOk);
  MakeRx(3);
}

TEST_F(ControlProgramTest, LimitsOfTheHardwareAreNoResourceBeyondThem) {
  MakeEndpoint();
  for (int i = 0; i < 3; ++i) {
    MakeCq();
  }
  EXPECT_EQ(Execute(ValidCq(), AdminOpcode::kCreateCq).status,
            AdminStatus::kNoResource);
  MakeTx();
  MakeTx();
  EXPECT_EQ(Execute(ValidTx(), AdminOpcode::kCreateTx).status,
            AdminStatus::kNoResource);
  MakeRx(0);
  MakeRx(1);
  EXPECT_EQ(Execute(ValidRx(), AdminOpcode::kCreateRx).status,
            AdminStatus::kNoResource);
}

// ----------------------------------------------------------- field checks

// In the order of its initialisers.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct BadField {
  const char* name;
  AdminOpcode opcode;
  uint32_t offset;  // Where the bad value goes, and what `detail` says.
  uint32_t bytes;
  uint64_t value;
  AdminStatus status = AdminStatus::kInvalid;
};

void PrintTo(const BadField& field, std::ostream* out) {
  *out << field.name;
}

// Where a ring of 64 slots ends with the address space.
constexpr uint64_t kSpillEnd = ~uint64_t{0xfff};

constexpr BadField kBadFields[] = {
    {"PortAbove65535", AdminOpcode::kCreateEndpoint, 4, 4, 65536},
    {"JobIdOf25Bits", AdminOpcode::kCreateEndpoint, 8, 4, 1U << 24},
    {"EndpointFlagUnknown", AdminOpcode::kCreateEndpoint, 12, 1, 2},
    {"CqBaseUnaligned", AdminOpcode::kCreateCq, 8, 8, 0x10800},
    {"CqWraps", AdminOpcode::kCreateCq, 8, 8, 0xffff'ffff'ffff'f000},
    {"CqTooSmall", AdminOpcode::kCreateCq, 16, 1, 2},
    {"CqTooLarge", AdminOpcode::kCreateCq, 16, 1, 16},
    {"CqHugeLog2", AdminOpcode::kCreateCq, 16, 1, 255},
    {"NoSuchVector", AdminOpcode::kCreateCq, 17, 1, 4},
    {"TxNoEndpoint", AdminOpcode::kCreateTx, 4, 4, 1, AdminStatus::kNotFound},
    {"TxFarEndpoint", AdminOpcode::kCreateTx, 4, 4, 0xffffffff,
     AdminStatus::kNotFound},
    {"TxRingUnaligned", AdminOpcode::kCreateTx, 8, 8, 0x20040},
    {"TxRingWraps", AdminOpcode::kCreateTx, 8, 8, ~uint64_t{0xfff}},
    {"TxCellUnaligned", AdminOpcode::kCreateTx, 16, 8, 0x30004},
    {"AvUnaligned", AdminOpcode::kCreateTx, 24, 8, 0x40020},
    {"AvWraps", AdminOpcode::kCreateTx, 24, 8, 0xffff'ffff'ffff'ffc0},
    {"SpillUnaligned", AdminOpcode::kCreateTx, 32, 8, 0x70040},
    // Room for the slots, none for their marks.
    {"SpillMarksWrap", AdminOpcode::kCreateTx, 32, 8, kSpillEnd},
    {"TxNoCounter", AdminOpcode::kCreateTx, 57, 1, 1, AdminStatus::kNotFound},
    {"TxNoCq", AdminOpcode::kCreateTx, 44, 1, 1, AdminStatus::kNotFound},
    {"TxRingTooSmall", AdminOpcode::kCreateTx, 45, 1, 2},
    {"TxRingTooLarge", AdminOpcode::kCreateTx, 45, 1, 13},
    {"DscpOf7Bits", AdminOpcode::kCreateTx, 46, 1, 64},
    {"RxNoEndpoint", AdminOpcode::kCreateRx, 4, 4, 1, AdminStatus::kNotFound},
    {"RxRingUnaligned", AdminOpcode::kCreateRx, 8, 8, 0x50020},
    {"RxCellUnaligned", AdminOpcode::kCreateRx, 16, 8, 0x60001},
    {"RxNoCq", AdminOpcode::kCreateRx, 24, 1, 200, AdminStatus::kNotFound},
    {"RxRingTooSmall", AdminOpcode::kCreateRx, 25, 1, 0},
    {"RxRingTooLarge", AdminOpcode::kCreateRx, 25, 1, 13},
    {"RxIndexBeyondBlock", AdminOpcode::kCreateRx, 26, 2, 255},
    {"RxNoCounter", AdminOpcode::kCreateRx, 30, 1, 9, AdminStatus::kNotFound},
    {"RxUnknownFlag", AdminOpcode::kCreateRx, 31, 1, 2},
    // Without capability `match`, and fields that only it has.
    {"RxMatches", AdminOpcode::kCreateRx, 31, 1, 4},
    {"RxUnexpectedBytes", AdminOpcode::kCreateRx, 36, 4, 4096},
    {"RxUnexpectedBase", AdminOpcode::kCreateRx, 40, 8, 4096},
    {"RxUnexpectedMessages", AdminOpcode::kCreateRx, 48, 4, 1},
    {"RxCopyLimit", AdminOpcode::kCreateRx, 52, 4, 1},
    {"RxReceives", AdminOpcode::kCreateRx, 56, 4, 1},
    {"RxReserved", AdminOpcode::kCreateRx, 60, 4, 1},
    {"TxDeferrable", AdminOpcode::kCreateTx, 62, 1, 2},
    {"TxUnknownFlag", AdminOpcode::kCreateTx, 62, 1, 1},
    {"RtoTooLong", AdminOpcode::kSetTiming, 8, 8, uint64_t{1} << 43},
    {"DeadTooLong", AdminOpcode::kSetTiming, 16, 8, uint64_t{1} << 43},
};

class BadFieldTest : public ControlProgramTest,
                     public ::testing::WithParamInterface<BadField> {};

AdminCommand ValidCommand(AdminOpcode opcode, const AdminCreateCq& cq,
                          const AdminCreateTx& tx, const AdminCreateRx& rx) {
  switch (opcode) {
    case AdminOpcode::kCreateCq:
      return std::bit_cast<AdminCommand>(cq);
    case AdminOpcode::kCreateTx:
      return std::bit_cast<AdminCommand>(tx);
    case AdminOpcode::kCreateRx:
      return std::bit_cast<AdminCommand>(rx);
    case AdminOpcode::kSetTiming:
      return std::bit_cast<AdminCommand>(
          AdminSetTiming{.rto_ns = 1000, .dead_ns = 1000});
    default:
      return std::bit_cast<AdminCommand>(AdminCreateEndpoint{.port = 6000});
  }
}

TEST_P(BadFieldTest, IsNamedByItsOffsetAndChangesNothing) {
  const BadField field = GetParam();
  MakeEndpoint();
  MakeCq();
  bus_.events.clear();
  const auto ports = switch_.owner_of;
  AdminCommand command =
      ValidCommand(field.opcode, ValidCq(), ValidTx(), ValidRx());
  std::memcpy(reinterpret_cast<uint8_t*>(&command) + field.offset, &field.value,
              field.bytes);
  const AdminAnswer answer = Execute(command, field.opcode);
  EXPECT_EQ(answer.status, field.status);
  EXPECT_EQ(answer.detail, field.offset);
  EXPECT_EQ(bus_.events,
            std::vector<BusEvent>{{.kind = BusEvent::Kind::kHostWrite}})
      << "only the answer may be written";
  EXPECT_EQ(switch_.owner_of, ports);
}

std::string NameOf(const ::testing::TestParamInfo<BadField>& field) {
  return field.param.name;
}

INSTANTIATE_TEST_SUITE_P(All, BadFieldTest, ::testing::ValuesIn(kBadFields),
                         NameOf);

TEST_F(ControlProgramTest, ReservedBytesMustBeZero) {
  struct Reserved {
    AdminOpcode opcode;
    std::vector<std::pair<uint32_t, uint32_t>> ranges;  // First, past last.
  };
  const Reserved kReserved[] = {
      {AdminOpcode::kCreateEndpoint, {{1, 2}, {13, 64}}},
      {AdminOpcode::kCreateCq, {{1, 2}, {4, 8}, {18, 64}}},
      {AdminOpcode::kCreateTx, {{1, 2}, {62, 64}}},
      {AdminOpcode::kCreateRx, {{1, 2}, {36, 64}}},
      {AdminOpcode::kSetTiming, {{1, 2}, {4, 8}, {24, 64}}},
      {AdminOpcode::kDestroyTx, {{1, 2}, {8, 64}}},
      {AdminOpcode::kDestroyEndpoint, {{1, 2}, {8, 64}}},
      {AdminOpcode::kQueryPort, {{1, 2}, {4, 64}}},
      {AdminOpcode::kClosePdcs, {{1, 2}, {5, 64}}},
  };
  MakeEndpoint();
  MakeCq();
  for (const Reserved& reserved : kReserved) {
    for (const auto& [first, past] : reserved.ranges) {
      for (uint32_t byte = first; byte < past; ++byte) {
        AdminCommand command =
            ValidCommand(reserved.opcode, ValidCq(), ValidTx(), ValidRx());
        if (reserved.opcode == AdminOpcode::kDestroyTx ||
            reserved.opcode == AdminOpcode::kDestroyEndpoint ||
            reserved.opcode == AdminOpcode::kQueryPort ||
            reserved.opcode == AdminOpcode::kClosePdcs) {
          command = {};
        }
        reinterpret_cast<uint8_t*>(&command)[byte] = 0x80;
        const AdminAnswer answer = Execute(command, reserved.opcode);
        ASSERT_EQ(answer.status, AdminStatus::kInvalid)
            << "opcode " << static_cast<int>(reserved.opcode) << " byte "
            << byte;
        ASSERT_LE(answer.detail, byte);
        ASSERT_GE(answer.detail + 8, byte + 1);
      }
    }
  }
}

TEST_F(ControlProgramTest, PortIsWhatTheBoardSays) {
  const AdminAnswer answer = Execute(AdminCommand{}, AdminOpcode::kQueryPort);
  EXPECT_EQ(answer.status, AdminStatus::kOk);
  EXPECT_EQ(answer.fa_lo, board_.fa_lo);
  EXPECT_EQ(answer.fa_hi, board_.fa_hi);
  EXPECT_EQ(answer.payload_mtu, board_.payload_mtu);
  EXPECT_EQ(answer.ipv6, board_.ipv6 ? 1 : 0);
}

TEST_F(ControlProgramTest, ClosingPdcsChangesNothingElseAndCountsThoseOpen) {
  const auto before = bus_.Table<TransportCfg>(contract::Table::kTransport, 0);
  EXPECT_EQ(before.close, 0);
  bus_.open_pdcs = 3U << contract::kMgmtOpenPdcsTargetLsb |
                   2U << contract::kMgmtOpenPdcsInitiatorLsb;
  AdminAnswer answer = Execute(AdminCommand{}, AdminOpcode::kClosePdcs);
  EXPECT_EQ(answer.status, AdminStatus::kOk);
  EXPECT_EQ(answer.detail, 5U);
  auto after = bus_.Table<TransportCfg>(contract::Table::kTransport, 0);
  EXPECT_EQ(after.close, 1);
  after.close = 0;
  EXPECT_EQ(std::memcmp(&after, &before, sizeof(after)), 0);
  bus_.open_pdcs = 0;
  bus_.events.clear();
  answer = Execute(AdminCommand{.object = 1}, AdminOpcode::kClosePdcs);
  EXPECT_EQ(answer.status, AdminStatus::kOk);
  EXPECT_EQ(answer.detail, 0U);
  EXPECT_EQ(bus_.events,
            std::vector<BusEvent>{{.kind = BusEvent::Kind::kHostWrite}})
      << "it only counts";
  EXPECT_EQ(Execute(AdminCommand{.object = 2}, AdminOpcode::kClosePdcs).status,
            AdminStatus::kInvalid);
}

TEST_F(ControlProgramTest, UnknownOpcodesAreUnsupported) {
  for (const uint32_t opcode : {0U, 18U, 255U}) {
    const AdminAnswer answer =
        Execute(AdminCommand{}, static_cast<AdminOpcode>(opcode));
    EXPECT_EQ(answer.status, AdminStatus::kUnsupported) << opcode;
  }
}

TEST_F(ControlProgramTest, RandomCommandsAreAllAnsweredAndLeaveNoViolation) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 3000; ++i) {
    AdminCommand command{.object = static_cast<uint32_t>(random() % 4)};
    for (uint64_t& word : command.argument) {
      switch (random() % 4) {
        case 0:
          word = random();
          break;
        case 1:
          word = random() & 0xf000;
          break;
        default:
          word = 0;
      }
    }
    Execute(command, static_cast<AdminOpcode>(random() % 17));
    ASSERT_EQ(bus_.fatal_cause, 0U);
  }
}

// ------------------------------------------------------------- destruction

TEST_F(ControlProgramTest, ObjectsInUseAreKeptAndTheUserCountIsNamed) {
  const uint32_t endpoint = MakeEndpoint();
  const uint32_t cq = MakeCq();
  const uint32_t tx = MakeTx();
  const uint32_t rx = MakeRx(0);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyEndpoint, endpoint).status,
            AdminStatus::kInUse);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyCq, cq).detail, 2U);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyTx, tx).status, AdminStatus::kOk);
  const AdminAnswer still = Destroy(AdminOpcode::kDestroyCq, cq);
  EXPECT_EQ(still.status, AdminStatus::kInUse);
  EXPECT_EQ(still.detail, 1U);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyRx, rx).status, AdminStatus::kOk);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyCq, cq).status, AdminStatus::kOk);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyEndpoint, endpoint).status,
            AdminStatus::kOk);
  EXPECT_EQ(bus_.Table<contract::CqCfg>(contract::Table::kCq, cq).enable, 0);
}

TEST_F(ControlProgramTest, DestroyedObjectsAreNotFound) {
  MakeEndpoint();
  MakeCq();
  const uint32_t tx = MakeTx();
  Destroy(AdminOpcode::kDestroyTx, tx);
  for (const AdminOpcode opcode :
       {AdminOpcode::kDestroyTx, AdminOpcode::kDestroyRx}) {
    EXPECT_EQ(Destroy(opcode, tx).status, AdminStatus::kNotFound);
  }
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyCq, 2).status, AdminStatus::kNotFound);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyEndpoint, 0xffffffff).status,
            AdminStatus::kNotFound);
}

TEST_F(ControlProgramTest, DestructionIsAnsweredOnlyWhenTheTokenHasReturned) {
  MakeEndpoint();
  MakeCq();
  const uint32_t tx = MakeTx();
  bus_.events.clear();
  bus_.hold_drains = true;
  const uint16_t count = bus_.admin_tail;
  Publish(AdminCommand{.object = tx}, AdminOpcode::kDestroyTx);
  Run();
  EXPECT_FALSE(IsAnswered(count));
  const auto disabled =
      bus_.Table<contract::TxCtxCfg>(contract::Table::kTxCtx, tx);
  EXPECT_EQ(disabled.enable, 0);
  EXPECT_EQ(disabled.head_cell, ValidTx().head_cell)
      << "what is under way still needs the other fields";
  bus_.hold_drains = false;
  Run();
  EXPECT_TRUE(IsAnswered(count));
  EXPECT_EQ(bus_.events,
            (std::vector<BusEvent>{{.kind = BusEvent::Kind::kTableWrite,
                                    .table = contract::Table::kTxCtx,
                                    .index = tx},
                                   {.kind = BusEvent::Kind::kDrain,
                                    .table = contract::Table::kTxCtx,
                                    .index = tx},
                                   {.kind = BusEvent::Kind::kHostWrite}}));
}

TEST_F(ControlProgramTest, StepIsBoundedWhileATokenIsUnderWay) {
  MakeEndpoint();
  MakeCq();
  const uint32_t rx = MakeRx(0);
  bus_.hold_drains = true;
  Publish(AdminCommand{.object = rx}, AdminOpcode::kDestroyRx);
  Run();
  bus_.reads = 0;
  program_->Step();
  EXPECT_LE(bus_.reads, 2U);
  bus_.hold_drains = false;
  Run();
}

TEST(ExecutorTest, ObjectsOfAnotherFunctionAreNotFound) {
  TestMemory memory;
  FakeManagementBus bus(memory);
  FakeSwitch ports;
  const Board board = TestBoard();
  TablePort tables(bus);
  Port port(bus, tables, board);
  SlowPath slow_path(bus);
  Timer timer(bus);
  Neighbours neighbours(tables, slow_path, timer, board);
  TestObjectMemory object_memory;
  Executor executor({.tables = tables,
                     .port = port,
                     .neighbours = neighbours,
                     .ports = ports,
                     .memory = object_memory},
                    /*key_secret=*/0);
  executor.SetLimits(Limits::Read(bus));
  ASSERT_EQ(executor.Execute({.opcode = AdminOpcode::kCreateEndpoint}, 1),
            Executor::Progress::kAnswered);
  const uint32_t endpoint = executor.answer().object;
  const AdminCommand destroy{.opcode = AdminOpcode::kDestroyEndpoint,
                             .object = endpoint};
  ASSERT_EQ(executor.Execute(destroy, 2), Executor::Progress::kAnswered);
  EXPECT_EQ(executor.answer().status, AdminStatus::kNotFound);
  EXPECT_EQ(ports.owner_of.size(), 1U);
  ASSERT_EQ(executor.Execute(destroy, 1), Executor::Progress::kAnswered);
  EXPECT_EQ(executor.answer().status, AdminStatus::kOk);
}

// ------------------------------------------------------------------ timing

TEST_F(ControlProgramTest, TimesAreRoundedUpToWholeTicks) {
  EXPECT_EQ(Execute(AdminSetTiming{.rto_ns = 1001, .dead_ns = 5000},
                    AdminOpcode::kSetTiming)
                .status,
            AdminStatus::kOk);
  auto port = bus_.Table<contract::PortCfg>(contract::Table::kPort, 0);
  EXPECT_EQ(port.rto_ticks, 2U);
  EXPECT_EQ(port.dead_ticks, 5U);
  Execute(AdminSetTiming{.rto_ns = 1, .dead_ns = 0}, AdminOpcode::kSetTiming);
  port = bus_.Table<contract::PortCfg>(contract::Table::kPort, 0);
  EXPECT_EQ(port.rto_ticks, 1U);
  EXPECT_EQ(port.dead_ticks, 5U) << "0 keeps the present time";
  EXPECT_EQ(port.enable, 1);
}

TEST_F(ControlProgramTest, IdlePdcsCloseWithinTheDeadTimeThatTheHostSets) {
  const auto idle_ticks = [this] {
    return bus_.Table<contract::TransportCfg>(contract::Table::kTransport, 0)
        .idle_ticks;
  };
  EXPECT_EQ(idle_ticks(), 60'000'000U);
  Execute(AdminSetTiming{.dead_ns = 5000}, AdminOpcode::kSetTiming);
  EXPECT_EQ(idle_ticks(), 5U);
  Execute(AdminSetTiming{.dead_ns = 9000}, AdminOpcode::kSetTiming);
  EXPECT_EQ(idle_ticks(), 9U);
}

// Longer ones would look past: all times of the NIC are signed distances.
TEST_F(ControlProgramTest, TimesOfMoreTicksThanTheNicMeasuresAreRefused) {
  constexpr uint64_t kLongestNs = uint64_t{INT32_MAX} * 1000;
  EXPECT_EQ(Execute(AdminSetTiming{.rto_ns = kLongestNs, .dead_ns = kLongestNs},
                    AdminOpcode::kSetTiming)
                .status,
            AdminStatus::kOk);
  const auto port = bus_.Table<contract::PortCfg>(contract::Table::kPort, 0);
  EXPECT_EQ(port.dead_ticks, uint32_t{INT32_MAX});
  EXPECT_EQ(Execute(AdminSetTiming{.dead_ns = kLongestNs + 1},
                    AdminOpcode::kSetTiming)
                .status,
            AdminStatus::kInvalid);
  EXPECT_EQ(
      Execute(AdminSetTiming{.rto_ns = kLongestNs + 1}, AdminOpcode::kSetTiming)
          .status,
      AdminStatus::kInvalid);
}

TEST_F(ControlProgramTest, FirstTimeOutBeyondTheLongestRaisesTheLongest) {
  Execute(AdminSetTiming{.rto_ns = 2'000'000'000}, AdminOpcode::kSetTiming);
  const auto port = bus_.Table<contract::PortCfg>(contract::Table::kPort, 0);
  EXPECT_EQ(port.rto_ticks, 2'000'000U);
  EXPECT_EQ(port.rto_max_ticks, 2'000'000U);
}

// --------------------------------------------------------- ring and faults

TEST_F(ControlProgramTest, CommandsPublishedTogetherAreAnsweredInOrder) {
  for (uint32_t i = 0; i < 4; ++i) {
    Publish(AdminCreateEndpoint{.port = 7000 + i},
            AdminOpcode::kCreateEndpoint);
  }
  Run();
  for (uint16_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(IsAnswered(i));
    EXPECT_EQ(AnswerAt(i).port, 7000U + i);
  }
}

TEST_F(ControlProgramTest, CountsWrapAtSixteenBits) {
  for (uint32_t i = 0; i < 0x10010; ++i) {
    Execute(AdminCommand{.object = 1}, AdminOpcode::kDestroyCq);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(ControlProgramTest, UnreadableCommandIsAnsweredAsDmaError) {
  bus_.admin_command_base = 0x1000;
  ++bus_.admin_tail;
  Run();
  EXPECT_TRUE(IsAnswered(0));
  EXPECT_EQ(AnswerAt(0).status, AdminStatus::kDmaError);
  bus_.admin_command_base = kCommands;
  MakeEndpoint();
}

TEST_F(ControlProgramTest, UnwritableAnswerStopsTheFunctionUntilReset) {
  memory_.read_only = true;
  bus_.admin_answer_base = 0x1000;
  ++bus_.admin_tail;
  program_->Step();
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
  EXPECT_EQ(bus_.fatal_cause >> 16, static_cast<uint32_t>(Module::kMailbox));
  memory_.read_only = false;
  bus_.admin_answer_base = kAnswers;
  program_->Step();
  EXPECT_FALSE(IsAnswered(0)) << "nothing is served while halted";
  bus_.reset_requested = true;
  Run();
  EXPECT_FALSE(bus_.reset_requested);
  EXPECT_EQ(bus_.fatal_cause, 0U);
  EXPECT_NE(bus_.status & contract::kBar0DeviceStatusReadyMask, 0U);
  MakeEndpoint();
}

TEST_F(ControlProgramTest, TailBeyondTheRingIsDroppedWithoutAnAnswer) {
  bus_.admin_tail = 5;
  Run();
  EXPECT_FALSE(bus_.HasEvent());
  EXPECT_TRUE(bus_.events.empty());
  EXPECT_EQ(bus_.fatal_cause, 0U);
}

TEST_F(ControlProgramTest, StuckMailboxIsReportedAsFatal) {
  bus_.stuck_mailbox = true;
  ++bus_.admin_tail;
  program_->Step();
  EXPECT_EQ(bus_.fatal_cause,
            uint32_t{static_cast<uint16_t>(Module::kMailbox)} << 16 |
                Mailbox::kStuck << 8 |
                static_cast<uint8_t>(StatusClass::kTimeout));
}

TEST_F(ControlProgramTest, TableErrorIsFatalAndNamesTheTable) {
  bus_.broken_table = contract::Table::kCq;
  Publish(ValidCq(), AdminOpcode::kCreateCq);
  Run();
  EXPECT_EQ(bus_.fatal_cause,
            uint32_t{static_cast<uint16_t>(Module::kTablePort)} << 16 |
                static_cast<uint32_t>(contract::Table::kCq) << 8 |
                static_cast<uint8_t>(StatusClass::kRefused));
}

// ------------------------------------------------------------------- reset

TEST_F(ControlProgramTest, ResetDestroysEverythingAndRestoresTheTimes) {
  MakeEndpoint(5000);
  MakeCq();
  MakeTx();
  MakeRx(0);
  Execute(AdminSetTiming{.dead_ns = 5000}, AdminOpcode::kSetTiming);
  bus_.events.clear();
  bus_.reset_requested = true;
  Run();
  EXPECT_FALSE(bus_.reset_requested);
  EXPECT_TRUE(switch_.owner_of.empty());
  std::vector<contract::Table> drained;
  for (const BusEvent& event : bus_.events) {
    EXPECT_FALSE(event.enable);
    if (event.kind == BusEvent::Kind::kDrain) {
      drained.push_back(event.table);
    }
  }
  EXPECT_EQ(drained,
            (std::vector{contract::Table::kTxCtx, contract::Table::kRxCtx}));
  EXPECT_EQ(bus_.Table<contract::PortCfg>(contract::Table::kPort, 0).dead_ticks,
            60'000'000U);
  EXPECT_EQ(MakeEndpoint(5000), 0U);
}

// What is left of an early use of a context may wait for a silent peer, and the
// NIC tells the uses of one number apart by a counter, which may wrap.
TEST_F(ControlProgramTest, ContextsAndQueuesAreUsedInTurnAlsoAcrossAReset) {
  for (uint32_t i = 0; i < 3; ++i) {  // Queues of this bus.
    EXPECT_EQ(MakeCq(), i);
    bus_.reset_requested = true;
    Run();
  }
  EXPECT_EQ(MakeCq(), 0U);
  MakeEndpoint(5000);
  const uint32_t tx = MakeTx();
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyTx, tx).status, AdminStatus::kOk);
  EXPECT_EQ(MakeTx(), tx + 1);
  const uint32_t rx = MakeRx(0);
  EXPECT_EQ(Destroy(AdminOpcode::kDestroyRx, rx).status, AdminStatus::kOk);
  EXPECT_EQ(MakeRx(0), rx + 1);
}

TEST_F(ControlProgramTest, ResetWaitsForTheTokenOfACommandAndDropsItsAnswer) {
  MakeEndpoint();
  MakeCq();
  const uint32_t tx = MakeTx();
  bus_.hold_drains = true;
  const uint16_t count = bus_.admin_tail;
  Publish(AdminCommand{.object = tx}, AdminOpcode::kDestroyTx);
  Run();
  bus_.reset_requested = true;
  Run();
  EXPECT_TRUE(bus_.reset_requested);
  bus_.hold_drains = false;
  Run();
  EXPECT_FALSE(bus_.reset_requested);
  EXPECT_FALSE(IsAnswered(count));
  EXPECT_FALSE(bus_.HasEvent());
}

// An access that outlasted firmware's patience is still the NIC's: memory is
// given back when a reset has ended.
TEST_F(ControlProgramTest, ResetWaitsForAMailboxThatWasStuck) {
  bus_.stuck_mailbox = true;
  Publish(AdminCreateEndpoint{.port = 5000}, AdminOpcode::kCreateEndpoint);
  program_->Step();
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
  bus_.reset_requested = true;
  Run();
  EXPECT_TRUE(bus_.reset_requested);
  bus_.stuck_mailbox = false;
  Run();
  EXPECT_FALSE(bus_.reset_requested);
  EXPECT_EQ(MakeEndpoint(5000), 0U);
}

// Its writes would be ignored, and contexts stay enabled.
TEST_F(ControlProgramTest, ResetWaitsForATableThatWasStuck) {
  MakeEndpoint();
  MakeCq();
  const uint32_t tx = MakeTx();
  bus_.stuck_tables = true;
  Publish(ValidCq(), AdminOpcode::kCreateCq);
  program_->Step();
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
  bus_.reset_requested = true;
  Run();
  EXPECT_TRUE(bus_.reset_requested);
  bus_.stuck_tables = false;
  Run();
  EXPECT_FALSE(bus_.reset_requested);
  EXPECT_EQ(bus_.Table<contract::TxCtxCfg>(contract::Table::kTxCtx, tx).enable,
            0);
}

// A reset clears the registers of the admin queue at once, whatever firmware is
// reading of them: address 0 is nobody's.
TEST_F(ControlProgramTest, ResetAmidTheRegistersOfTheQueueReachesNoMemory) {
  for (const uint32_t offset :
       {contract::kMgmtAdminTailOffset, contract::kMgmtAdminCommandBaseOffset,
        contract::kMgmtAdminAnswerBaseOffset, contract::kMgmtAdminSizeOffset}) {
    SCOPED_TRACE(offset);
    SetUp();
    Publish(AdminCreateEndpoint{.port = 5000}, AdminOpcode::kCreateEndpoint);
    bus_.before_read = [&](uint32_t read) {
      if (read == offset) {
        bus_.admin_command_base = 0;
        bus_.admin_answer_base = 0;
        bus_.admin_log2 = 0;
        bus_.admin_tail = 0;
        bus_.reset_requested = true;
      }
    };
    memory_.accesses = 0;
    program_->Step();
    bus_.before_read = {};
    Run();
    EXPECT_EQ(memory_.accesses, 0U);
    EXPECT_FALSE(bus_.reset_requested);
  }
}

TEST(TicksTest, LastAtLeastTheTimeAskedFor) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t tick_ns = 1 + random() % 2000;
    const uint64_t ns = random() >> (random() % 64);
    uint32_t ticks = 0;
    if (TicksOf(ns, tick_ns, ticks)) {
      ASSERT_GE(ticks, 1U);
      ASSERT_GE(ticks * tick_ns, ns);
      ASSERT_TRUE(ticks == 1 || (ticks - 1) * tick_ns < ns);
    } else {
      ASSERT_GT(ns / tick_ns, kMaxTicks - uint64_t{1});
    }
  }
}

}  // namespace
}  // namespace heddle::firmware
