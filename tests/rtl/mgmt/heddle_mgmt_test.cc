// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "Vheddle_mgmt.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/bench.h"
#include "tests/rtl/queue/dma_models.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

using contract::PortCfg;
using contract::Table;
using contract::TableOp;

class Bench {
 public:
  Bench()
      : reads(&*dut.operator->(), &memory),
        writes(&*dut.operator->(), &memory) {}

  sim::model::ClockedModel<Vheddle_mgmt> dut;
  Rng rng{1};
  Memory memory;
  DmaReadModel<Vheddle_mgmt> reads;
  DmaWriteModel<Vheddle_mgmt> writes;
  uint64_t cycle = 0;
  // Answers of the other units' tables.
  int table_wait = 5;
  uint32_t table_seen = 0;  // `tbl_valid_o` of the last access.
  rtl::TableReq table_request;
  uint32_t answer_word = 0;
  bool answer_error = false;
  std::function<void()> sample;  // In each cycle.

  void Tick(const std::function<void()>& sample_once = {}) {
    reads.Drive(cycle, &rng);
    writes.Drive(cycle, &rng);
    rtl::TableRsp answer;
    const bool done = dut->tbl_valid_o != 0 && ++waited_ > table_wait;
    answer.done = done;
    answer.error = done && answer_error;
    for (uint32_t i = 0; done && i < 16; ++i) {
      answer.data[i / 2] |= uint64_t{answer_word + i} << 32 * (i % 2);
    }
    rtl::Drive(dut->tbl_rsp_i, answer);
    dut.Settle();
    if (dut->tbl_valid_o) {
      table_seen = dut->tbl_valid_o;
      table_request = rtl::Sample<rtl::TableReq>(dut->tbl_req_o);
    }
    reads.Sample(cycle);
    writes.Sample(cycle);
    if (sample_once) {
      sample_once();
    }
    if (sample) {
      sample();
    }
    dut.Tick();
    if (done) {
      waited_ = 0;
    }
    ++cycle;
  }
  uint32_t Access(bool write, uint32_t address, uint32_t data) {
    dut->mgmt_valid_i = 1;
    dut->mgmt_write_i = write;
    dut->mgmt_addr_i = uint16_t(address);
    dut->mgmt_wdata_i = data;
    uint32_t value = 0;
    bool ready = false;
    for (int i = 0; i < 10 && !ready; ++i) {
      Tick([&] {
        ready = dut->mgmt_ready_o;
        value = dut->mgmt_rdata_o;
      });
    }
    EXPECT_TRUE(ready);
    dut->mgmt_valid_i = 0;
    Tick();
    return value;
  }
  void Write(uint32_t address, uint32_t data) { Access(true, address, data); }
  uint32_t Read(uint32_t address) { return Access(false, address, 0); }

  uint32_t WaitWhile(uint32_t address, uint32_t mask, int limit = 500) {
    uint32_t value = Read(address);
    for (int i = 0; i < limit && (value & mask); ++i) {
      value = Read(address);
    }
    EXPECT_EQ(value & mask, 0u);
    return value;
  }
  uint32_t Mailbox(uint64_t address, uint32_t bytes, bool to_host) {
    Write(contract::kMgmtMailboxAddressOffset, uint32_t(address));
    Write(contract::kMgmtMailboxAddressOffset + 4, uint32_t(address >> 32));
    Write(contract::kMgmtMailboxControlOffset,
          bytes | uint32_t{to_host} << contract::kMgmtMailboxControlToHostLsb |
              contract::kMgmtMailboxControlGoMask);
    return WaitWhile(contract::kMgmtMailboxControlOffset,
                     contract::kMgmtMailboxControlGoMask);
  }
  uint32_t RunTableAccess(TableOp op, Table table, uint32_t index) {
    Write(contract::kMgmtTableControlOffset,
          index | uint32_t(table) << contract::kMgmtTableControlTableLsb |
              uint32_t(op) << contract::kMgmtTableControlOpLsb |
              contract::kMgmtTableControlGoMask);
    return WaitWhile(contract::kMgmtTableControlOffset,
                     contract::kMgmtTableControlGoMask);
  }

 private:
  int waited_ = 0;
};

TEST(MgmtTest, RegistersMirrorTheHostsAndKeepTheFirmwares) {
  Bench b;
  b.dut->admin_command_base_i = 0x1122334455667788;
  b.dut->admin_answer_base_i = 0x99aabbccddeeff00;
  b.dut->admin_log2_i = 6;
  b.dut->admin_tail_i = 9;
  b.dut->version_i = 1;
  b.dut->context_limits_i = 2;
  b.dut->transport_limits_i = 3;
  b.dut->datapath_i = 4;
  b.dut->region_limits_i = 5;
  EXPECT_EQ(b.Read(contract::kMgmtAdminCommandBaseOffset), 0x55667788u);
  EXPECT_EQ(b.Read(contract::kMgmtAdminCommandBaseOffset + 4), 0x11223344u);
  EXPECT_EQ(b.Read(contract::kMgmtAdminAnswerBaseOffset), 0xddeeff00u);
  EXPECT_EQ(b.Read(contract::kMgmtAdminAnswerBaseOffset + 4), 0x99aabbccu);
  EXPECT_EQ(b.Read(contract::kMgmtAdminSizeOffset), 6u);
  EXPECT_EQ(b.Read(contract::kMgmtAdminTailOffset), 9u);
  EXPECT_EQ(b.Read(contract::kMgmtVersionOffset), 1u);
  EXPECT_EQ(b.Read(contract::kMgmtContextLimitsOffset), 2u);
  EXPECT_EQ(b.Read(contract::kMgmtTransportLimitsOffset), 3u);
  EXPECT_EQ(b.Read(contract::kMgmtDatapathOffset), 4u);
  EXPECT_EQ(b.Read(contract::kMgmtRegionLimitsOffset), 5u);
  b.Write(contract::kMgmtStatusOffset, 0x12345);
  b.Write(contract::kMgmtFatalCauseOffset, 0x6789);
  EXPECT_EQ(b.dut->device_status_o, 0x12345u);
  EXPECT_EQ(b.dut->fatal_cause_o, 0x6789u);
  EXPECT_EQ(b.Read(contract::kMgmtStatusOffset), 0x12345u);
  EXPECT_EQ(b.Read(contract::kMgmtSlowPathRxStatusOffset), 0u);
  EXPECT_EQ(b.Read(0x1ffc), 0u);
}

TEST(MgmtTest, EventsFollowTailAndReset) {
  Bench b;
  b.Tick();
  EXPECT_EQ(b.dut->mgmt_event_o, 0);
  b.dut->admin_tail_i = 2;
  EXPECT_EQ(b.Read(contract::kMgmtEventsOffset),
            contract::kMgmtEventsAdminMask);
  EXPECT_EQ(b.dut->mgmt_event_o, 1);
  b.Write(contract::kMgmtAdminHeadOffset, 2);
  EXPECT_EQ(b.Read(contract::kMgmtEventsOffset), 0u);
  b.dut->reset_i = 1;
  EXPECT_EQ(b.Read(contract::kMgmtEventsOffset),
            contract::kMgmtEventsResetMask);
  bool done = false;
  b.dut->mgmt_valid_i = 1;
  b.dut->mgmt_write_i = 1;
  b.dut->mgmt_addr_i = contract::kMgmtResetDoneOffset;
  b.Tick([&] { done = b.dut->reset_done_o; });
  EXPECT_TRUE(done);
  b.Tick([&] { done = b.dut->reset_done_o; });
  EXPECT_FALSE(done);
}

TEST(MgmtTest, MailboxMovesWhatIsAskedBothWays) {
  Bench b;
  b.reads.latency = 40;
  b.writes.latency = 40;
  b.reads.stall_percent = b.writes.stall_percent = 30;
  for (uint32_t bytes : {8u, 24u, 64u, 72u, 136u, 256u}) {
    std::vector<uint8_t> data(256);
    std::iota(data.begin(), data.end(), uint8_t(bytes));
    const uint64_t from = 0x123456000 + bytes * 1000;
    const uint64_t to = 0x999000000 + bytes * 1000;
    b.memory.Write(from, data.data(), data.size());
    for (uint32_t w = 0; w < 64; ++w) {
      b.Write(contract::kMgmtMailboxDataOffset + 4 * w, 0xcafe0000 + w);
    }
    EXPECT_EQ(
        b.Mailbox(from, bytes, false) & contract::kMgmtMailboxControlErrorMask,
        0u);
    for (uint32_t w = 0; w < 64; ++w) {
      uint32_t expected = 0xcafe0000 + w;
      if (4 * w < bytes) {
        std::memcpy(&expected, data.data() + 4 * w, 4);
      }
      ASSERT_EQ(b.Read(contract::kMgmtMailboxDataOffset + 4 * w), expected);
    }
    EXPECT_EQ(
        b.Mailbox(to, bytes, true) & contract::kMgmtMailboxControlErrorMask,
        0u);
    std::vector<uint8_t> written(bytes);
    b.memory.Read(to, written.data(), bytes);
    EXPECT_TRUE(std::equal(written.begin(), written.end(), data.begin()));
    EXPECT_EQ(b.memory.Get<uint8_t>(to + bytes), 0xa5);
  }
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(MgmtTest, MailboxReportsRefusalsAndIllegalLengths) {
  Bench b;
  b.reads.refuse_from = b.writes.refuse_from = 0x8000;
  b.reads.refuse_to = b.writes.refuse_to = 0x9000;
  EXPECT_TRUE(b.Mailbox(0x8000, 64, false) &
              contract::kMgmtMailboxControlErrorMask);
  EXPECT_FALSE(b.Mailbox(0x4000, 64, false) &
               contract::kMgmtMailboxControlErrorMask);
  EXPECT_TRUE(b.Mailbox(0x8000, 64, true) &
              contract::kMgmtMailboxControlErrorMask);
  const size_t before = b.reads.requests.size() + b.writes.writes.size();
  for (uint32_t bytes : {0u, 4u, 12u, 264u, 511u}) {
    EXPECT_TRUE(b.Mailbox(0x4000, bytes, false) &
                contract::kMgmtMailboxControlErrorMask);
  }
  EXPECT_EQ(b.reads.requests.size() + b.writes.writes.size(), before);
}

TEST(MgmtTest, WritesWhileAnOperationRunsAreIgnored) {
  Bench b;
  b.reads.latency = 100;
  b.Write(contract::kMgmtMailboxDataOffset, 1);
  b.Write(contract::kMgmtMailboxAddressOffset, 0x4000);
  b.Write(contract::kMgmtMailboxControlOffset,
          64 | contract::kMgmtMailboxControlGoMask);
  EXPECT_FALSE(b.dut->idle_o);
  b.Write(contract::kMgmtMailboxDataOffset, 2);
  b.Write(contract::kMgmtMailboxAddressOffset, 0x5000);
  b.Write(contract::kMgmtMailboxControlOffset,
          8 | contract::kMgmtMailboxControlGoMask);
  EXPECT_EQ(b.Read(contract::kMgmtMailboxDataOffset), 1u);
  EXPECT_EQ(b.Read(contract::kMgmtMailboxAddressOffset), 0x4000u);
  b.WaitWhile(contract::kMgmtMailboxControlOffset,
              contract::kMgmtMailboxControlGoMask);
  EXPECT_EQ(b.reads.requests.size(), 1u);

  b.table_wait = 100;
  b.Write(contract::kMgmtTableDataOffset, 7);
  b.Write(contract::kMgmtTableControlOffset,
          uint32_t(Table::kCq) << contract::kMgmtTableControlTableLsb |
              uint32_t(TableOp::kWrite) << contract::kMgmtTableControlOpLsb |
              contract::kMgmtTableControlGoMask);
  b.Write(contract::kMgmtTableDataOffset, 8);
  EXPECT_EQ(b.Read(contract::kMgmtTableDataOffset), 7u);
  EXPECT_FALSE(b.dut->idle_o);
  b.WaitWhile(contract::kMgmtTableControlOffset,
              contract::kMgmtTableControlGoMask);
  EXPECT_EQ(uint32_t(b.table_request.data[0]), 7u);
}

TEST(MgmtTest, PortTableIsOwnedHere) {
  Bench b;
  for (uint32_t w = 0; w < 16; ++w) {
    b.Write(contract::kMgmtTableDataOffset + 4 * w, 0x1000 + w);
  }
  EXPECT_EQ(b.RunTableAccess(TableOp::kWrite, Table::kPort, 0) &
                contract::kMgmtTableControlErrorMask,
            0u);
  EXPECT_EQ(b.dut->port_o[5], 0x1005u);
  EXPECT_EQ(b.table_seen, 0u);
  for (uint32_t w = 0; w < 16; ++w) {
    b.Write(contract::kMgmtTableDataOffset + 4 * w, 0);
  }
  EXPECT_NE(b.RunTableAccess(TableOp::kWrite, Table::kPort, 1) &
                contract::kMgmtTableControlErrorMask,
            0u);
  EXPECT_EQ(b.RunTableAccess(TableOp::kRead, Table::kPort, 0) &
                contract::kMgmtTableControlErrorMask,
            0u);
  for (uint32_t w = 0; w < 16; ++w) {
    EXPECT_EQ(b.Read(contract::kMgmtTableDataOffset + 4 * w), 0x1000 + w);
  }
}

TEST(MgmtTest, TransportTableIsItsOwnAndApartFromThePort) {
  Bench b;
  b.table_seen = 0;
  const auto write = [&](Table table, uint32_t value) {
    b.Write(contract::kMgmtTableDataOffset, value);
    EXPECT_EQ(b.RunTableAccess(TableOp::kWrite, table, 0) &
                  contract::kMgmtTableControlErrorMask,
              0u);
  };
  write(Table::kTransport, 0x1234);
  write(Table::kPort, 0x5678);
  EXPECT_EQ(b.dut->transport_o[0], 0x1234u);
  for (const auto& [table, value] :
       {std::pair(Table::kTransport, 0x1234u), {Table::kPort, 0x5678u}}) {
    EXPECT_EQ(b.RunTableAccess(TableOp::kRead, table, 0) &
                  contract::kMgmtTableControlErrorMask,
              0u);
    EXPECT_EQ(b.Read(contract::kMgmtTableDataOffset), value);
  }
  EXPECT_NE(b.RunTableAccess(TableOp::kRead, Table::kTransport, 1) &
                contract::kMgmtTableControlErrorMask,
            0u);
  EXPECT_EQ(b.table_seen, 0u);
}

// The level in the table does not matter: it is what was written last.
TEST(MgmtTest, EachWriteOfCloseIsOneStrobe) {
  Bench b;
  int strobes = 0;
  const auto access = [&](TableOp op, Table table, uint32_t index, bool close) {
    constexpr uint32_t kClose = offsetof(contract::TransportCfg, close);
    b.Write(contract::kMgmtTableDataOffset + kClose / 4 * 4,
            uint32_t{close} << 8 * (kClose % 4));
    b.RunTableAccess(op, table, index);
  };
  b.sample = [&] { strobes += b.dut->close_o; };
  access(TableOp::kWrite, Table::kTransport, 0, true);
  EXPECT_EQ(strobes, 1);
  access(TableOp::kWrite, Table::kTransport, 0, true);
  EXPECT_EQ(strobes, 2);
  access(TableOp::kRead, Table::kTransport, 0, true);
  access(TableOp::kWrite, Table::kTransport, 1, true);
  access(TableOp::kWrite, Table::kPort, 0, true);
  access(TableOp::kWrite, Table::kTransport, 0, false);
  EXPECT_EQ(strobes, 2);
}

TEST(MgmtTest, OpenPdcsAreReadAsTheyAre) {
  Bench b;
  b.dut->open_pdcs_i = 0x01000003;
  EXPECT_EQ(b.Read(contract::kMgmtOpenPdcsOffset), 0x01000003u);
  b.Write(contract::kMgmtOpenPdcsOffset, 7);
  EXPECT_EQ(b.Read(contract::kMgmtOpenPdcsOffset), 0x01000003u);
}

TEST(MgmtTest, OtherTablesAreAddressedByTheirBit) {
  Bench b;
  b.answer_word = 0x500;
  for (Table table : {Table::kTxCtx, Table::kRxCtx, Table::kCq, Table::kNextHop,
                      Table::kRegion, Table::kCounter}) {
    b.table_seen = 0;
    EXPECT_EQ(b.RunTableAccess(TableOp::kRead, table, 0x123) &
                  contract::kMgmtTableControlErrorMask,
              0u);
    EXPECT_EQ(b.table_seen, 1u << uint32_t(table));
    for (uint32_t w = 0; w < 16; ++w) {
      EXPECT_EQ(b.Read(contract::kMgmtTableDataOffset + 4 * w), 0x500 + w);
    }
  }
  b.answer_error = true;
  EXPECT_NE(b.RunTableAccess(TableOp::kDrain, Table::kTxCtx, 99) &
                contract::kMgmtTableControlErrorMask,
            0u);
  b.table_seen = 0;
  for (uint32_t table : {0u, 9u, 255u}) {
    EXPECT_NE(b.RunTableAccess(TableOp::kRead, Table(table), 0) &
                  contract::kMgmtTableControlErrorMask,
              0u)
        << table;
  }
  EXPECT_EQ(b.table_seen, 0u);
}

TEST(MgmtTest, TimerRaisesItsEventOnceAndIsADeadlineUntilThen) {
  Bench b;
  const auto ticks = [&](int count) {
    for (int i = 0; i < count; ++i) {
      b.dut->tick_i = 1;
      b.Tick();
      b.dut->tick_i = 0;
      b.Tick();
    }
  };
  EXPECT_EQ(b.dut->deadline_valid_o, 0);
  ticks(2);
  b.Write(contract::kMgmtTimerOffset, 3);
  EXPECT_EQ(b.dut->deadline_valid_o, 1);
  EXPECT_EQ(b.dut->deadline_o, 3u);
  ticks(2);
  EXPECT_EQ(b.Read(contract::kMgmtTimerOffset), 1u);
  EXPECT_EQ(b.Read(contract::kMgmtEventsOffset), 0u);
  EXPECT_EQ(b.dut->mgmt_event_o, 0);
  ticks(1);
  EXPECT_EQ(b.dut->deadline_valid_o, 0);
  EXPECT_EQ(b.dut->mgmt_event_o, 1);
  EXPECT_EQ(b.Read(contract::kMgmtEventsOffset),
            contract::kMgmtEventsTimerMask);
  ticks(4);
  EXPECT_EQ(b.dut->mgmt_event_o, 1);
  EXPECT_EQ(b.Read(contract::kMgmtTicksOffset), 9u);
  b.Write(contract::kMgmtTimerOffset, 1);
  EXPECT_EQ(b.dut->mgmt_event_o, 0);
  ticks(1);
  EXPECT_EQ(b.dut->mgmt_event_o, 1);
  b.Write(contract::kMgmtTimerOffset, 0);
  EXPECT_EQ(b.dut->mgmt_event_o, 0);
  b.Write(contract::kMgmtTimerOffset, 5);
  b.Write(contract::kMgmtTimerOffset, 0);
  EXPECT_EQ(b.dut->deadline_valid_o, 0);
  ticks(6);
  EXPECT_EQ(b.dut->mgmt_event_o, 0);
  EXPECT_EQ(b.dut->idle_o, 1);
}

TEST(MgmtTest, SlowPathRegistersReachTheSlowPath) {
  Bench b;
  EXPECT_EQ(b.Read(contract::kMgmtSlowPathRxStatusOffset), 0u);
  b.dut->slow_rx_bytes_i = 60;
  b.Tick();
  EXPECT_EQ(b.dut->mgmt_event_o, 1);
  EXPECT_EQ(b.Read(contract::kMgmtEventsOffset),
            contract::kMgmtEventsSlowPathRxMask);
  EXPECT_EQ(b.Read(contract::kMgmtSlowPathRxStatusOffset), 60u);

  // The frame is in a memory that answers a cycle later.
  for (const uint32_t word : {0u, 14u, 63u}) {
    b.dut->mgmt_valid_i = 1;
    b.dut->mgmt_write_i = 0;
    b.dut->mgmt_addr_i =
        uint16_t(contract::kMgmtSlowPathRxDataOffset + 4 * word);
    b.Tick([&] {
      EXPECT_EQ(b.dut->slow_rx_word_o, word);
      EXPECT_EQ(b.dut->mgmt_ready_o, 0);
    });
    b.dut->slow_rx_data_i = 0xabc00000 + word;
    b.Tick([&] {
      EXPECT_EQ(b.dut->mgmt_ready_o, 1);
      EXPECT_EQ(b.dut->mgmt_rdata_o, 0xabc00000 + word);
    });
    b.dut->mgmt_valid_i = 0;
    b.Tick();
  }

  int pops = 0, goes = 0, writes = 0;
  const auto write = [&](uint32_t address, uint32_t data) {
    b.dut->mgmt_valid_i = 1;
    b.dut->mgmt_write_i = 1;
    b.dut->mgmt_addr_i = uint16_t(address);
    b.dut->mgmt_wdata_i = data;
    for (int i = 0; i < 2; ++i) {
      b.Tick([&] {
        pops += b.dut->slow_rx_pop_o;
        goes += b.dut->slow_tx_go_o;
        writes += b.dut->slow_tx_wen_o;
        if (b.dut->slow_tx_wen_o) {
          EXPECT_EQ(b.dut->slow_tx_word_o, 35);
          EXPECT_EQ(b.dut->slow_tx_data_o, data);
        }
        if (b.dut->slow_tx_go_o) {
          EXPECT_EQ(b.dut->slow_tx_bytes_o, 90);
        }
      });
    }
    b.dut->mgmt_valid_i = 0;
    b.Tick();
  };
  write(contract::kMgmtSlowPathRxStatusOffset, 0);
  EXPECT_EQ(pops, 0);
  write(contract::kMgmtSlowPathRxStatusOffset,
        contract::kMgmtSlowPathRxStatusPopMask);
  EXPECT_EQ(pops, 1);
  write(contract::kMgmtSlowPathTxDataOffset + 4 * 35, 0x12345678);
  EXPECT_EQ(writes, 1);
  write(contract::kMgmtSlowPathTxControlOffset, 90);
  EXPECT_EQ(goes, 0);
  write(contract::kMgmtSlowPathTxControlOffset,
        90 | contract::kMgmtSlowPathTxControlGoMask);
  EXPECT_EQ(goes, 1);
  EXPECT_EQ(pops, 1);
  b.dut->slow_tx_bytes_i = 90;
  b.dut->slow_tx_busy_i = 1;
  EXPECT_EQ(b.Read(contract::kMgmtSlowPathTxControlOffset),
            90 | contract::kMgmtSlowPathTxControlGoMask);
  b.dut->slow_tx_data_i = 0x87654321;
  EXPECT_EQ(b.Read(contract::kMgmtSlowPathTxDataOffset), 0x87654321u);
}

}  // namespace
}  // namespace heddle::test
