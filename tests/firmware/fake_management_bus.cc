// SPDX-License-Identifier: Apache-2.0
#include "tests/firmware/fake_management_bus.h"

namespace heddle::firmware {

using namespace contract;  // NOLINT: register names by the dozen.

uint32_t FakeManagementBus::Read(uint32_t offset) {
  ++reads;
  if (before_read) {
    before_read(offset);
  }
  if (In(offset, kMgmtMailboxDataOffset, kMgmtMailboxDataCount)) {
    return mailbox_[(offset - kMgmtMailboxDataOffset) / 4];
  }
  if (In(offset, kMgmtTableDataOffset, kMgmtTableDataCount)) {
    return table_data_[(offset - kMgmtTableDataOffset) / 4];
  }
  if (offset == kMgmtSlowPathRxStatusOffset ||
      offset == kMgmtSlowPathTxControlOffset ||
      In(offset, kMgmtSlowPathRxDataOffset, kMgmtSlowPathRxDataCount)) {
    return ReadSlowPath(offset);
  }
  switch (offset) {
    case kMgmtTicksOffset:
      return ticks;
    case kMgmtTimerOffset:
      return timer_;
    case kMgmtEventsOffset:
      return Events();
    case kMgmtStatusOffset:
      return status;
    case kMgmtFatalCauseOffset:
      return fatal_cause;
    case kMgmtAdminCommandBaseOffset:
      return static_cast<uint32_t>(admin_command_base);
    case kMgmtAdminCommandBaseOffset + 4:
      return static_cast<uint32_t>(admin_command_base >> 32);
    case kMgmtAdminAnswerBaseOffset:
      return static_cast<uint32_t>(admin_answer_base);
    case kMgmtAdminAnswerBaseOffset + 4:
      return static_cast<uint32_t>(admin_answer_base >> 32);
    case kMgmtAdminSizeOffset:
      return admin_log2;
    case kMgmtAdminTailOffset:
      return admin_tail;
    case kMgmtAdminHeadOffset:
      return admin_head_;
    case kMgmtVersionOffset:
      return version;
    case kMgmtOpenPdcsOffset:
      return open_pdcs;
    case kMgmtContextLimitsOffset:
      return context_limits;
    case kMgmtTransportLimitsOffset:
      return transport_limits;
    case kMgmtDatapathOffset:
      return datapath;
    case kMgmtRegionLimitsOffset:
      return region_limits;
    case kMgmtContextCountsOffset:
      return context_counts;
    case kMgmtQueueCountsOffset:
      return queue_counts;
    case kMgmtRegionCountOffset:
      return region_count;
    case kMgmtCapabilityOffset:
      return capability;
    case kMgmtMailboxControlOffset:
      return ReadMailboxControl();
    case kMgmtTableControlOffset:
      return ReadTableControl();
    default:
      ++violations;
      return 0;
  }
}

uint32_t FakeManagementBus::ReadSlowPath(uint32_t offset) {
  if (offset == kMgmtSlowPathTxControlOffset) {
    const bool busy = slow_busy_ != 0;
    slow_busy_ -= busy ? 1 : 0;
    return busy ? kMgmtSlowPathTxControlGoMask : 0;
  }
  if (offset == kMgmtSlowPathRxStatusOffset) {
    return slow_rx.empty() ? 0 : static_cast<uint32_t>(slow_rx.front().size());
  }
  // Bytes behind the frame's end are noise.
  uint32_t word = 0xdeadbeef;
  for (uint32_t i = 0; i < sizeof(word) && !slow_rx.empty(); ++i) {
    const uint32_t at = offset - kMgmtSlowPathRxDataOffset + i;
    if (at < slow_rx.front().size()) {
      word &= ~(0xffU << (8 * i));
      word |= uint32_t{slow_rx.front()[at]} << (8 * i);
    }
  }
  return word;
}

void FakeManagementBus::WriteSlowPath(uint32_t offset, uint32_t value) {
  if (offset == kMgmtSlowPathRxStatusOffset) {
    if ((value & kMgmtSlowPathRxStatusPopMask) != 0 && !slow_rx.empty()) {
      slow_rx.pop_front();
    }
    return;
  }
  if (slow_busy_ != 0) {
    ++violations;
    return;
  }
  if (offset != kMgmtSlowPathTxControlOffset) {
    slow_window_[(offset - kMgmtSlowPathTxDataOffset) / 4] = value;
    return;
  }
  const uint32_t bytes = value & kMgmtSlowPathTxControlBytesMask;
  if ((value & kMgmtSlowPathTxControlGoMask) == 0 || bytes == 0 ||
      bytes > kSlowPathTxBytes) {
    ++violations;
    return;
  }
  std::vector<uint8_t>& frame = slow_tx.emplace_back();
  for (uint32_t i = 0; i < bytes; ++i) {
    frame.push_back(static_cast<uint8_t>(slow_window_[i / 4] >> (8 * (i % 4))));
  }
  slow_busy_ = slow_tx_busy_reads;
}

uint32_t FakeManagementBus::ReadMailboxControl() {
  if ((mailbox_control_ & kMgmtMailboxControlGoMask) != 0 && !stuck_mailbox &&
      mailbox_busy_-- == 0) {
    mailbox_control_ &= ~kMgmtMailboxControlGoMask;
  }
  return mailbox_control_;
}

uint32_t FakeManagementBus::ReadTableControl() {
  const bool drains = (table_control_ & kMgmtTableControlOpMask) ==
                      uint32_t{static_cast<uint8_t>(TableOp::kDrain)}
                          << kMgmtTableControlOpLsb;
  if ((table_control_ & kMgmtTableControlGoMask) != 0 && !stuck_tables &&
      !(drains && hold_drains) && table_busy_-- == 0) {
    table_control_ &= ~kMgmtTableControlGoMask;
  }
  return table_control_;
}

void FakeManagementBus::Write(uint32_t offset, uint32_t value) {
  const bool mailbox_runs = (mailbox_control_ & kMgmtMailboxControlGoMask) != 0;
  const bool table_runs = (table_control_ & kMgmtTableControlGoMask) != 0;
  const bool to_mailbox =
      In(offset, kMgmtMailboxDataOffset, kMgmtMailboxDataCount) ||
      In(offset, kMgmtMailboxAddressOffset, 3);
  const bool to_table = In(offset, kMgmtTableDataOffset, kMgmtTableDataCount) ||
                        offset == kMgmtTableControlOffset;
  if ((mailbox_runs && to_mailbox) || (table_runs && to_table)) {
    ++violations;
    return;
  }
  if (In(offset, kMgmtMailboxDataOffset, kMgmtMailboxDataCount)) {
    mailbox_[(offset - kMgmtMailboxDataOffset) / 4] = value;
    return;
  }
  if (In(offset, kMgmtTableDataOffset, kMgmtTableDataCount)) {
    table_data_[(offset - kMgmtTableDataOffset) / 4] = value;
    return;
  }
  if (offset == kMgmtSlowPathRxStatusOffset ||
      offset == kMgmtSlowPathTxControlOffset ||
      In(offset, kMgmtSlowPathTxDataOffset, kMgmtSlowPathTxDataCount)) {
    WriteSlowPath(offset, value);
    return;
  }
  switch (offset) {
    case kMgmtTimerOffset:
      timer_ = value;
      timer_fired_ = false;
      return;
    case kMgmtStatusOffset:
      status = value;
      return;
    case kMgmtFatalCauseOffset:
      fatal_cause = value;
      return;
    case kMgmtResetDoneOffset:
      reset_requested = false;
      return;
    case kMgmtAdminHeadOffset:
      admin_head_ = static_cast<uint16_t>(value);
      return;
    case kMgmtMailboxAddressOffset:
      mailbox_address_ = (mailbox_address_ >> 32 << 32) | value;
      return;
    case kMgmtMailboxAddressOffset + 4:
      mailbox_address_ =
          uint64_t{value} << 32 | static_cast<uint32_t>(mailbox_address_);
      return;
    case kMgmtMailboxControlOffset:
      StartMailbox(value);
      return;
    case kMgmtTableControlOffset:
      StartTable(value);
      return;
    default:
      ++violations;
  }
}

void FakeManagementBus::StartMailbox(uint32_t control) {
  const uint32_t bytes =
      (control & kMgmtMailboxControlBytesMask) >> kMgmtMailboxControlBytesLsb;
  if ((control & kMgmtMailboxControlGoMask) == 0 || bytes % 8 != 0 ||
      bytes > kMailboxBytes) {
    ++violations;
    return;
  }
  bool done = false;
  if ((control & kMgmtMailboxControlToHostMask) != 0) {
    done = host_.Write(mailbox_address_, mailbox_.data(), bytes);
    events.push_back({.kind = BusEvent::Kind::kHostWrite});
  } else {
    done = host_.Read(mailbox_address_, mailbox_.data(), bytes);
  }
  mailbox_control_ = control & ~kMgmtMailboxControlErrorMask;
  if (!done) {
    mailbox_control_ |= kMgmtMailboxControlErrorMask;
  }
  mailbox_busy_ = busy_reads;
}

void FakeManagementBus::StartTable(uint32_t control) {
  const auto table = static_cast<contract::Table>(
      (control & kMgmtTableControlTableMask) >> kMgmtTableControlTableLsb);
  const uint32_t index =
      (control & kMgmtTableControlIndexMask) >> kMgmtTableControlIndexLsb;
  const auto op = static_cast<TableOp>((control & kMgmtTableControlOpMask) >>
                                       kMgmtTableControlOpLsb);
  if ((control & kMgmtTableControlGoMask) == 0) {
    ++violations;
    return;
  }
  table_control_ = control & ~kMgmtTableControlErrorMask;
  table_busy_ = busy_reads;
  if (table == broken_table) {
    table_control_ |= kMgmtTableControlErrorMask;
    return;
  }
  BusEvent event{
      .kind = BusEvent::Kind::kDrain, .table = table, .index = index};
  if (op == TableOp::kWrite) {
    event.kind = BusEvent::Kind::kTableWrite;
    tables_[{table, index}] = table_data_;
    event.enable = (table == contract::Table::kTxCtx &&
                    Table<TxCtxCfg>(table, index).enable != 0) ||
                   (table == contract::Table::kRxCtx &&
                    Table<RxCtxCfg>(table, index).enable != 0) ||
                   (table == contract::Table::kCq &&
                    Table<CqCfg>(table, index).enable != 0);
  } else if (op == TableOp::kRead) {
    table_data_ = tables_[{table, index}];
    return;
  }
  events.push_back(event);
}

}  // namespace heddle::firmware
