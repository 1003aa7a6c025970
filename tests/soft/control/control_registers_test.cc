// SPDX-License-Identifier: Apache-2.0
// BAR0 and management bus, with the real control program on them.
#include "hw/soft/control/control_registers.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "firmware/control_program.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/device/object_heap.h"
#include "hw/soft/dma_memory.h"

namespace heddle::soft::control {

using engine::Engine;

namespace {

using contract::AdminAnswer;
using contract::AdminCommand;
using contract::AdminOpcode;
using contract::AdminStatus;
using contract::Table;

constexpr uint64_t kTickNs = 10000;
constexpr uint32_t kLog2 = 3;
constexpr uint32_t kEntries = 1 << kLog2;

// Remembers what was written.
class FakeTables final : public Tables {
 public:
  bool Write(Table table, uint32_t index, Engine::ConstEntry entry) override {
    if (index >= 64) {
      return false;
    }
    auto& stored = entries[{table, index}];
    std::copy(entry.begin(), entry.end(), stored.begin());
    return true;
  }
  bool Read(Table table, uint32_t index, Engine::Entry entry) const override {
    const auto found = entries.find({table, index});
    if (found == entries.end()) {
      return false;
    }
    std::copy(found->second.begin(), found->second.end(), entry.begin());
    return true;
  }
  Engine::DrainState Drain(Table, uint32_t index) override {
    ++drains;
    return index >= 64         ? Engine::DrainState::kNoEntry
           : drains_left-- > 0 ? Engine::DrainState::kPending
                               : Engine::DrainState::kDone;
  }
  template <typename Cfg>
  Cfg As(Table table, uint32_t index) const {
    Cfg cfg;
    std::memcpy(&cfg, entries.at({table, index}).data(), sizeof(cfg));
    return cfg;
  }

  std::map<std::pair<Table, uint32_t>, std::array<uint8_t, 64>> entries;
  int drains_left = 0;
  int drains = 0;
};

// Grants every port; takes frames of the slow path.
class FakeWire final : public wire::DatagramWire {
 public:
  firmware::PortClaim ClaimPort(const firmware::PortName& name) override {
    return {.granted = true, .exhausted = false, .port = name.port, .owner = 0};
  }
  void ReleasePort(const firmware::PortName&) override {}
  std::span<uint8_t> Room() override { return {}; }
  SendOutcome Send(const wire::Path&, size_t) override {
    return SendOutcome::kSent;
  }
  bool Receive(wire::Datagram*) override { return false; }
  std::optional<uint16_t> TakePdcids() override { return std::nullopt; }
  void ReturnPdcids(uint16_t) override {}
  uint16_t function() const override { return 5; }
  bool link_up() const override { return true; }
  uint16_t max_bytes() const override { return 0; }
  uint32_t payload_mtu() const override { return 4096; }
  void Flush() override {}
  bool HasNews() const override { return false; }
  void Kick() override {}
  void Sleep(uint64_t) override {}
  void SendSlowPath(std::span<const uint8_t> frame) override {
    sent.emplace_back(frame.begin(), frame.end());
  }
  std::vector<std::vector<uint8_t>> sent;
};

class ControlRegistersTest : public testing::Test {
 protected:
  ControlRegistersTest()
      : slow_path_(kTickNs, [this] { return now_; }),
        registers_({.capability = 0x1234567890,
                    .context_limits = 0x20404040,
                    .transport_limits = 0x04001000,
                    .datapath = 8192U << 16 | 64,
                    .region_limits = 63U << 16 | 1024,
                    .context_counts = 0x03ff0400,
                    .queue_counts = 0x02000300,
                    .region_count = 65536},
                   kTickNs,
                   {.memory = &memory_,
                    .tables = &tables_,
                    .slow_path = &slow_path_,
                    .wire = &wire_,
                    .now_ns = [this] { return now_; },
                    .statistic =
                        [](contract::Statistic which) {
                          return uint64_t{1} << 40 |
                                 static_cast<uint64_t>(which);
                        },
                    .open_pdcs = [this] { return open_; },
                    .on_reset = [this] { ++resets_; }}) {
    firmware::Board board{};
    board.fa_lo = 0x0a000001;
    board.mac = 0x020000000001;
    board.tick_ns = kTickNs;
    board.rto_ns = 20000000;
    board.rto_max_ns = 640000000;
    board.dead_ns = 1000000000;
    board.payload_mtu = 4096;
    board.slot = 5;
    firmware_ = std::make_unique<firmware::ControlProgram>(registers_, wire_,
                                                           object_heap_, board);
  }

  uint32_t Bar32(uint32_t offset) const {
    return static_cast<uint32_t>(registers_.ReadBar(offset, 4));
  }
  // Puts the admin queue where the host does.
  void OpenAdminQueue() {
    ASSERT_TRUE(memory_.Map(Iova(commands_), sizeof(commands_)).ok());
    ASSERT_TRUE(memory_.Map(Iova(answers_), sizeof(answers_)).ok());
    registers_.WriteBar(contract::kBar0AdminCommandBaseOffset, Iova(commands_),
                        8);
    registers_.WriteBar(contract::kBar0AdminAnswerBaseOffset, Iova(answers_),
                        8);
    registers_.WriteBar(contract::kBar0AdminSizeOffset, kLog2, 4);
  }
  template <typename Array>
  static uint64_t Iova(const Array& array) {
    return reinterpret_cast<uint64_t>(&array);
  }
  template <typename Command>
  void Submit(const Command& command) {
    std::memcpy(static_cast<void*>(&commands_[tail_ % kEntries]), &command,
                sizeof(command));
    registers_.WriteBar(contract::kBar0AdminTailOffset, ++tail_, 4);
  }
  void RunFirmware() {
    for (int i = 0; i < 100 && registers_.event(); ++i) {
      firmware_->Step();
    }
  }

  uint64_t now_ = 1000000;
  transport::Transport::OpenPdcs open_;
  uint32_t resets_ = 0;
  DmaMemory memory_;
  FakeTables tables_;
  FakeWire wire_;
  SlowPathQueue slow_path_;
  ControlRegisters registers_;
  sim::device::ObjectHeap object_heap_;
  std::unique_ptr<firmware::ControlProgram> firmware_;
  alignas(64) std::array<AdminCommand, kEntries> commands_{};
  alignas(64) std::array<AdminAnswer, kEntries> answers_{};
  uint32_t tail_ = 0;
};

TEST_F(ControlRegistersTest, BarSaysWhatTheDeviceIs) {
  EXPECT_EQ(Bar32(contract::kBar0MagicOffset), contract::kBar0MagicReset);
  EXPECT_EQ(Bar32(contract::kBar0VersionOffset),
            contract::kContractMajor << 16 | contract::kContractMinor);
  EXPECT_EQ(registers_.ReadBar(contract::kBar0CapabilityOffset, 8),
            0x1234567890u);
  EXPECT_EQ(Bar32(contract::kBar0CapabilityOffset + 4), 0x12u);
  EXPECT_EQ(Bar32(contract::kBar0ContextLimitsOffset), 0x20404040u);
  EXPECT_EQ(Bar32(contract::kBar0RegionLimitsOffset), 63u << 16 | 1024);
  EXPECT_EQ(Bar32(contract::kBar0ContextCountsOffset), 0x03ff0400u);
  EXPECT_EQ(Bar32(contract::kBar0QueueCountsOffset), 0x02000300u);
  EXPECT_EQ(Bar32(contract::kBar0RegionCountOffset), 65536u);
  EXPECT_EQ(registers_.Read(contract::kMgmtContextCountsOffset), 0x03ff0400u);
  EXPECT_EQ(registers_.Read(contract::kMgmtQueueCountsOffset), 0x02000300u);
  EXPECT_EQ(registers_.Read(contract::kMgmtRegionCountOffset), 65536u);
  EXPECT_EQ(registers_.ReadBar(contract::kBar0StatisticsOffset + 8 * 27, 8),
            uint64_t{1} << 40 | 27);
  EXPECT_EQ(Bar32(contract::kBar0StatisticsOffset + 8 * 27 + 4), 256u);
  EXPECT_EQ(registers_.ReadBar(contract::kBar0Bytes + 8, 8), 0u);
  EXPECT_EQ(registers_.ReadBar(3, 4), 0u);
}

TEST_F(ControlRegistersTest, LongRegistersAreWrittenWhole) {
  registers_.WriteBar(contract::kBar0AdminCommandBaseOffset, 0x1234, 4);
  registers_.WriteBar(contract::kBar0AdminCommandBaseOffset + 4, 0x1234, 4);
  registers_.WriteBar(contract::kBar0AdminTailOffset, 1, 8);
  EXPECT_EQ(registers_.ReadBar(contract::kBar0AdminCommandBaseOffset, 8), 0u);
  EXPECT_EQ(Bar32(contract::kBar0AdminTailOffset), 0u);
  registers_.WriteBar(contract::kBar0MagicOffset, 1, 4);
  EXPECT_EQ(Bar32(contract::kBar0MagicOffset), contract::kBar0MagicReset);
}

TEST_F(ControlRegistersTest, FirmwareConfiguresThePortAndIsReady) {
  EXPECT_EQ(Bar32(contract::kBar0DeviceStatusOffset), 0u);
  firmware_->Start();
  EXPECT_EQ(Bar32(contract::kBar0DeviceStatusOffset),
            contract::kBar0DeviceStatusReadyMask |
                contract::kBar0DeviceStatusLinkMask);
  const auto port = tables_.As<contract::PortCfg>(Table::kPort, 0);
  EXPECT_EQ(port.local_fa_lo, 0x0a000001u);
  EXPECT_EQ(port.rto_ticks, 20000000 / kTickNs);
  EXPECT_EQ(port.slot, 5);
  EXPECT_EQ(port.enable, 1);
}

TEST_F(ControlRegistersTest, CommandsAreAnswered) {
  firmware_->Start();
  OpenAdminQueue();
  contract::AdminCreateCq create;
  create.opcode = AdminOpcode::kCreateCq;
  create.id = 77;
  create.base = 0x10000;
  create.log2 = 4;
  Submit(create);
  EXPECT_TRUE(registers_.event());
  RunFirmware();
  EXPECT_FALSE(registers_.event());
  EXPECT_EQ(answers_[0].id, 77);
  EXPECT_EQ(answers_[0].status, AdminStatus::kOk);
  EXPECT_EQ(answers_[0].phase, 1);
  const auto cq = tables_.As<contract::CqCfg>(Table::kCq, answers_[0].object);
  EXPECT_EQ(cq.base, 0x10000u);
  EXPECT_EQ(cq.enable, 1);
}

TEST_F(ControlRegistersTest, ADrainThatTakesLongKeepsTheEventUp) {
  firmware_->Start();
  OpenAdminQueue();
  contract::AdminCreateCounter create;
  create.opcode = AdminOpcode::kCreateCounter;
  create.cell = 0x10000;
  Submit(create);
  RunFirmware();
  ASSERT_EQ(answers_[0].status, AdminStatus::kOk);
  AdminCommand destroy;
  destroy.opcode = AdminOpcode::kDestroyCounter;
  destroy.object = answers_[0].object;
  tables_.drains_left = 5;
  Submit(destroy);
  while (tables_.drains_left > 0) {
    ASSERT_TRUE(registers_.event());
    EXPECT_EQ(answers_[1].phase, 0) << "answered before its drain";
    const int before = tables_.drains;
    firmware_->Step();
    ASSERT_GT(tables_.drains, before);
  }
  RunFirmware();
  EXPECT_EQ(answers_[1].phase, 1);
  EXPECT_EQ(answers_[1].status, AdminStatus::kOk);
}

TEST_F(ControlRegistersTest, AnUnmappedQueueTouchesNothing) {
  firmware_->Start();
  OpenAdminQueue();
  memory_.Unmap(Iova(commands_), sizeof(commands_));
  AdminCommand command;
  command.opcode = AdminOpcode::kCreateCq;
  Submit(command);
  RunFirmware();
  EXPECT_EQ(answers_[0].status, AdminStatus::kDmaError);
  EXPECT_EQ(memory_.blocked_reads(), 1u);
}

TEST_F(ControlRegistersTest, ResetClearsTheAdminQueueAtOnceAndEndsByFirmware) {
  firmware_->Start();
  OpenAdminQueue();
  registers_.WriteBar(contract::kBar0DeviceControlOffset, 0, 4);
  EXPECT_EQ(resets_, 0u);
  registers_.WriteBar(contract::kBar0DeviceControlOffset,
                      contract::kBar0DeviceControlResetMask, 4);
  EXPECT_EQ(resets_, 1u);
  EXPECT_EQ(registers_.ReadBar(contract::kBar0AdminCommandBaseOffset, 8), 0u);
  EXPECT_EQ(registers_.ReadBar(contract::kBar0AdminAnswerBaseOffset, 8), 0u);
  EXPECT_EQ(Bar32(contract::kBar0AdminSizeOffset), 0u);
  EXPECT_EQ(Bar32(contract::kBar0DeviceControlOffset), 1u);
  RunFirmware();
  EXPECT_EQ(Bar32(contract::kBar0DeviceControlOffset), 0u);
  EXPECT_NE(Bar32(contract::kBar0DeviceStatusOffset) &
                contract::kBar0DeviceStatusReadyMask,
            0u);
}

TEST_F(ControlRegistersTest, TheTimerComesWithItsTicks) {
  EXPECT_EQ(registers_.deadline_ns(), UINT64_MAX);
  registers_.Write(contract::kMgmtTimerOffset, 3);
  EXPECT_EQ(registers_.deadline_ns(), now_ + 3 * kTickNs);
  now_ += 3 * kTickNs - 1;
  EXPECT_FALSE(registers_.event());
  EXPECT_EQ(registers_.Read(contract::kMgmtTimerOffset), 1u);
  now_ += 1;
  EXPECT_EQ(registers_.Read(contract::kMgmtEventsOffset),
            contract::kMgmtEventsTimerMask);
  EXPECT_EQ(registers_.Read(contract::kMgmtTicksOffset), 3u);
  registers_.Write(contract::kMgmtTimerOffset, 0);
  EXPECT_FALSE(registers_.event());
  EXPECT_EQ(registers_.deadline_ns(), UINT64_MAX);
}

TEST_F(ControlRegistersTest, ClosingPdcsAnswersHowManyAreOpen) {
  firmware_->Start();
  OpenAdminQueue();
  open_ = {.initiator = 0x123, .target = 0x456};
  EXPECT_EQ(registers_.Read(contract::kMgmtOpenPdcsOffset), 0x04560123u);
  AdminCommand close{};
  close.opcode = AdminOpcode::kClosePdcs;
  Submit(close);
  RunFirmware();
  EXPECT_EQ(answers_[0].status, AdminStatus::kOk);
  EXPECT_EQ(answers_[0].detail, 0x123u + 0x456u);
  EXPECT_EQ(tables_.As<contract::TransportCfg>(Table::kTransport, 0).close, 1);
}

TEST_F(ControlRegistersTest, AnAccessToNoEntryIsAnError) {
  const auto access = [&](uint32_t table, uint32_t index, uint32_t op) {
    registers_.Write(contract::kMgmtTableControlOffset,
                     index << contract::kMgmtTableControlIndexLsb |
                         table << contract::kMgmtTableControlTableLsb |
                         op << contract::kMgmtTableControlOpLsb |
                         contract::kMgmtTableControlGoMask);
    const uint32_t control = registers_.Read(contract::kMgmtTableControlOffset);
    EXPECT_EQ(control & contract::kMgmtTableControlGoMask, 0u);
    return (control & contract::kMgmtTableControlErrorMask) != 0;
  };
  for (uint32_t i = 0; i < 16; ++i) {
    registers_.Write(contract::kMgmtTableDataOffset + 4 * i, 0x1000 + i);
  }
  EXPECT_FALSE(access(4, 7, 1));
  EXPECT_TRUE(access(4, 64, 1));
  EXPECT_TRUE(access(4, 8, 0)) << "never written";
  EXPECT_TRUE(access(4, 64, 2));
  EXPECT_TRUE(access(4, 7, 3)) << "no such operation";
  registers_.Write(contract::kMgmtTableDataOffset + 60, 0);
  EXPECT_FALSE(access(4, 7, 0));
  EXPECT_EQ(registers_.Read(contract::kMgmtTableDataOffset + 60), 0x100fu);
}

TEST_F(ControlRegistersTest, MailboxLengthsAreChecked) {
  alignas(64) std::array<uint8_t, 256> host{};
  ASSERT_TRUE(memory_.Map(Iova(host), host.size()).ok());
  registers_.Write(contract::kMgmtMailboxAddressOffset,
                   static_cast<uint32_t>(Iova(host)));
  registers_.Write(contract::kMgmtMailboxAddressOffset + 4,
                   static_cast<uint32_t>(Iova(host) >> 32));
  for (uint32_t i = 0; i < 64; ++i) {
    registers_.Write(contract::kMgmtMailboxDataOffset + 4 * i, ~0u);
  }
  const auto run = [&](uint32_t bytes) {
    registers_.Write(contract::kMgmtMailboxControlOffset,
                     contract::kMgmtMailboxControlGoMask |
                         contract::kMgmtMailboxControlToHostMask | bytes);
    return (registers_.Read(contract::kMgmtMailboxControlOffset) &
            contract::kMgmtMailboxControlErrorMask) == 0;
  };
  EXPECT_FALSE(run(0));
  EXPECT_FALSE(run(12));
  EXPECT_FALSE(run(264));
  EXPECT_EQ(host, (std::array<uint8_t, 256>{}));
  EXPECT_TRUE(run(64));
  EXPECT_EQ(host[63], 0xff);
  EXPECT_EQ(host[64], 0);
  EXPECT_TRUE(run(256));
  EXPECT_EQ(host[255], 0xff);
}

TEST_F(ControlRegistersTest, SlowPathFramesPassBothWays) {
  std::vector<uint8_t> frame(61);
  for (size_t i = 0; i < frame.size(); ++i) {
    frame[i] = static_cast<uint8_t>(i + 1);
  }
  slow_path_.Accept(frame);
  EXPECT_EQ(registers_.Read(contract::kMgmtEventsOffset),
            contract::kMgmtEventsSlowPathRxMask);
  EXPECT_EQ(registers_.Read(contract::kMgmtSlowPathRxStatusOffset), 61u);
  EXPECT_EQ(registers_.Read(contract::kMgmtSlowPathRxDataOffset + 4),
            0x08070605u);
  EXPECT_EQ(registers_.Read(contract::kMgmtSlowPathRxDataOffset + 60), 61u);
  EXPECT_EQ(registers_.Read(contract::kMgmtSlowPathRxDataOffset + 64), 0u);
  registers_.Write(contract::kMgmtSlowPathRxStatusOffset,
                   contract::kMgmtSlowPathRxStatusPopMask);
  EXPECT_FALSE(registers_.event());
  registers_.Write(contract::kMgmtSlowPathTxDataOffset, 0x04030201);
  registers_.Write(contract::kMgmtSlowPathTxControlOffset,
                   contract::kMgmtSlowPathTxControlGoMask | 3);
  registers_.Write(contract::kMgmtSlowPathTxControlOffset,
                   contract::kMgmtSlowPathTxControlGoMask | 200);
  ASSERT_EQ(wire_.sent.size(), 2u);
  EXPECT_EQ(wire_.sent[0], (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(wire_.sent[1].size(), contract::kSlowPathTxBytes);
}

TEST_F(ControlRegistersTest, TheSlowPathIsNarrow) {
  const std::vector<uint8_t> longest(contract::kSlowPathRxBytes);
  const std::vector<uint8_t> too_long(contract::kSlowPathRxBytes + 1);
  slow_path_.Accept(too_long);
  EXPECT_EQ(slow_path_.dropped(), 1u);
  for (uint32_t i = 0; i < contract::kSlowPathFrames + 1; ++i) {
    slow_path_.Accept(longest);
  }
  EXPECT_EQ(slow_path_.accepted(), contract::kSlowPathFrames);
  EXPECT_EQ(slow_path_.dropped(), 2u);
  // The window began with the first frame that was taken.
  while (slow_path_.accepted() < contract::kSlowPathRate) {
    slow_path_.Pop();
    slow_path_.Accept(longest);
  }
  slow_path_.Pop();
  now_ += contract::kSlowPathWindowTicks * kTickNs - 1;
  slow_path_.Accept(longest);
  EXPECT_EQ(slow_path_.accepted(), contract::kSlowPathRate);
  now_ += 1;
  slow_path_.Accept(longest);
  EXPECT_EQ(slow_path_.accepted(), contract::kSlowPathRate + 1);
}

}  // namespace
}  // namespace heddle::soft::control
