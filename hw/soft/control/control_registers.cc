// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/control/control_registers.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace heddle::soft::control {

using engine::Engine;

namespace {

constexpr uint32_t kWord = sizeof(uint32_t);
constexpr uint32_t kLong = sizeof(uint64_t);
constexpr uint32_t kHalfBits = 32;

constexpr uint32_t kVersion = contract::kContractMajor
                                  << contract::kBar0VersionMajorLsb |
                              contract::kContractMinor;

uint32_t Field(uint32_t value, uint32_t mask, uint32_t lsb) {
  return (value & mask) >> lsb;
}

// Half of a register of 64 bits at `base`, low word first.
uint32_t Half(uint64_t value, uint32_t offset, uint32_t base) {
  return static_cast<uint32_t>(offset == base ? value : value >> kHalfBits);
}

void SetHalf(uint64_t& target, uint32_t offset, uint32_t base, uint32_t value) {
  const uint32_t shift = offset == base ? 0 : kHalfBits;
  target = (target & ~(uint64_t{UINT32_MAX} << shift)) | uint64_t{value}
                                                             << shift;
}

// Index in an array of words; empty if the offset is another register's.
std::optional<uint32_t> Index(uint32_t offset, uint32_t base, uint32_t count) {
  if (offset < base || offset >= base + count * kWord) {
    return std::nullopt;
  }
  return (offset - base) / kWord;
}

}  // namespace

ControlRegisters::ControlRegisters(const DeviceShape& shape, uint64_t tick_ns,
                                   Parts parts)
    : shape_(shape),
      tick_ns_(tick_ns),
      start_ns_(parts.now_ns()),
      parts_(std::move(parts)) {}

// --------------------------------------------------------------------- BAR0

uint64_t ControlRegisters::ReadBar(uint32_t offset, uint32_t bytes) const {
  if (offset % bytes != 0) {
    return 0;
  }
  const uint64_t low = ReadBar32(offset);
  return bytes == kWord
             ? low
             : low | uint64_t{ReadBar32(offset + kWord)} << kHalfBits;
}

uint32_t ControlRegisters::ReadIdentity(const DeviceShape& shape,
                                        uint32_t offset) {
  switch (offset) {
    case contract::kBar0MagicOffset:
      return contract::kBar0MagicReset;
    case contract::kBar0VersionOffset:
      return kVersion;
    case contract::kBar0CapabilityOffset:
    case contract::kBar0CapabilityOffset + kWord:
      return Half(shape.capability, offset, contract::kBar0CapabilityOffset);
    case contract::kBar0ContextLimitsOffset:
      return shape.context_limits;
    case contract::kBar0TransportLimitsOffset:
      return shape.transport_limits;
    case contract::kBar0DatapathOffset:
      return shape.datapath;
    case contract::kBar0RegionLimitsOffset:
      return shape.region_limits;
    case contract::kBar0ContextCountsOffset:
      return shape.context_counts;
    case contract::kBar0QueueCountsOffset:
      return shape.queue_counts;
    case contract::kBar0RegionCountOffset:
      return shape.region_count;
    default:
      return 0;
  }
}

uint32_t ControlRegisters::ReadBar32(uint32_t offset) const {
  constexpr uint32_t kStatistics = contract::kBar0StatisticsOffset;
  constexpr uint32_t kStatisticsBytes =
      contract::kBar0StatisticsCount * contract::kBar0StatisticsStride;
  if (offset >= kStatistics && offset < kStatistics + kStatisticsBytes) {
    return Half(Statistic(offset - offset % kLong), offset,
                offset - offset % kLong);
  }
  switch (offset) {
    case contract::kBar0DeviceStatusOffset:
      return status_;
    case contract::kBar0FatalCauseOffset:
      return fatal_cause_;
    case contract::kBar0DeviceControlOffset:
      return reset_ ? contract::kBar0DeviceControlResetMask : 0;
    case contract::kBar0AdminCommandBaseOffset:
    case contract::kBar0AdminCommandBaseOffset + kWord:
      return Half(admin_command_base_, offset,
                  contract::kBar0AdminCommandBaseOffset);
    case contract::kBar0AdminAnswerBaseOffset:
    case contract::kBar0AdminAnswerBaseOffset + kWord:
      return Half(admin_answer_base_, offset,
                  contract::kBar0AdminAnswerBaseOffset);
    case contract::kBar0AdminSizeOffset:
      return admin_size_;
    case contract::kBar0AdminTailOffset:
      return admin_tail_;
    default:
      return ReadIdentity(shape_, offset);
  }
}

uint64_t ControlRegisters::Statistic(uint32_t offset) const {
  return parts_.statistic(static_cast<contract::Statistic>(
      (offset - contract::kBar0StatisticsOffset) /
      contract::kBar0StatisticsStride));
}

void ControlRegisters::WriteBar(uint32_t offset, uint64_t value,
                                uint32_t bytes) {
  if (bytes == kWord) {
    WriteBar32(offset, static_cast<uint32_t>(value));
  } else if (offset == contract::kBar0AdminCommandBaseOffset) {
    admin_command_base_ = value;
  } else if (offset == contract::kBar0AdminAnswerBaseOffset) {
    admin_answer_base_ = value;
  }
}

void ControlRegisters::WriteBar32(uint32_t offset, uint32_t value) {
  switch (offset) {
    case contract::kBar0DeviceControlOffset:
      if ((value & contract::kBar0DeviceControlResetMask) != 0) {
        // The admin queue is gone at once; firmware takes down the rest.
        reset_ = true;
        admin_command_base_ = 0;
        admin_answer_base_ = 0;
        admin_size_ = 0;
        admin_tail_ = 0;
        parts_.on_reset();
      }
      return;
    case contract::kBar0AdminSizeOffset:
      admin_size_ = value & contract::kBar0AdminSizeLog2Mask;
      return;
    case contract::kBar0AdminTailOffset:
      admin_tail_ = value & contract::kBar0AdminTailCountMask;
      return;
    default:
      return;
  }
}

// ----------------------------------------------------------- management bus

uint32_t ControlRegisters::Events() const {
  uint32_t events = 0;
  events |= admin_tail_ != admin_head_ ? contract::kMgmtEventsAdminMask : 0;
  events |= reset_ ? contract::kMgmtEventsResetMask : 0;
  events |= parts_.slow_path->waits() ? contract::kMgmtEventsSlowPathRxMask : 0;
  events |= TimerIsUp() ? contract::kMgmtEventsTimerMask : 0;
  return events;
}

uint32_t ControlRegisters::ReadMirror(uint32_t offset) const {
  switch (offset) {
    case contract::kMgmtAdminCommandBaseOffset:
    case contract::kMgmtAdminCommandBaseOffset + kWord:
      return Half(admin_command_base_, offset,
                  contract::kMgmtAdminCommandBaseOffset);
    case contract::kMgmtAdminAnswerBaseOffset:
    case contract::kMgmtAdminAnswerBaseOffset + kWord:
      return Half(admin_answer_base_, offset,
                  contract::kMgmtAdminAnswerBaseOffset);
    case contract::kMgmtAdminSizeOffset:
      return admin_size_;
    case contract::kMgmtAdminTailOffset:
      return admin_tail_;
    case contract::kMgmtVersionOffset:
      return kVersion;
    case contract::kMgmtContextLimitsOffset:
      return shape_.context_limits;
    case contract::kMgmtTransportLimitsOffset:
      return shape_.transport_limits;
    case contract::kMgmtDatapathOffset:
      return shape_.datapath;
    case contract::kMgmtRegionLimitsOffset:
      return shape_.region_limits;
    case contract::kMgmtContextCountsOffset:
      return shape_.context_counts;
    case contract::kMgmtQueueCountsOffset:
      return shape_.queue_counts;
    case contract::kMgmtCapabilityOffset:
      return static_cast<uint32_t>(shape_.capability);
    case contract::kMgmtRegionCountOffset:
      return shape_.region_count;
    default:
      return 0;
  }
}

uint32_t ControlRegisters::ReadSlowPathWord(uint32_t index) const {
  const auto frame = parts_.slow_path->front();
  const size_t at = size_t{index} * kWord;
  uint32_t word = 0;
  if (at < frame.size()) {
    const auto rest = frame.subspan(at);
    std::memcpy(&word, rest.data(), std::min<size_t>(rest.size(), kWord));
  }
  return word;
}

uint32_t ControlRegisters::Read(uint32_t offset) {
  if (const auto word = Index(offset, contract::kMgmtTableDataOffset,
                              contract::kMgmtTableDataCount)) {
    return table_data_[*word];
  }
  if (const auto word = Index(offset, contract::kMgmtMailboxDataOffset,
                              contract::kMgmtMailboxDataCount)) {
    return mailbox_[*word];
  }
  if (const auto word = Index(offset, contract::kMgmtSlowPathRxDataOffset,
                              contract::kMgmtSlowPathRxDataCount)) {
    return ReadSlowPathWord(*word);
  }
  if (const auto word = Index(offset, contract::kMgmtSlowPathTxDataOffset,
                              contract::kMgmtSlowPathTxDataCount)) {
    return slow_path_tx_[*word];
  }
  switch (offset) {
    case contract::kMgmtEventsOffset:
      return Events();
    case contract::kMgmtStatusOffset:
      return status_;
    case contract::kMgmtFatalCauseOffset:
      return fatal_cause_;
    case contract::kMgmtAdminHeadOffset:
      return admin_head_;
    case contract::kMgmtMailboxAddressOffset:
    case contract::kMgmtMailboxAddressOffset + kWord:
      return Half(mailbox_address_, offset,
                  contract::kMgmtMailboxAddressOffset);
    case contract::kMgmtMailboxControlOffset:
      return mailbox_control_;
    case contract::kMgmtTableControlOffset:
      PollDrain();
      return table_control_;
    case contract::kMgmtTicksOffset:
      return static_cast<uint32_t>((parts_.now_ns() - start_ns_) / tick_ns_);
    case contract::kMgmtTimerOffset: {
      const uint64_t now = parts_.now_ns();
      return timer_at_ns_ == UINT64_MAX || now >= timer_at_ns_
                 ? 0
                 : static_cast<uint32_t>((timer_at_ns_ - now) / tick_ns_ + 1);
    }
    case contract::kMgmtOpenPdcsOffset: {
      const transport::Transport::OpenPdcs open = parts_.open_pdcs();
      return uint32_t{open.initiator} << contract::kMgmtOpenPdcsInitiatorLsb |
             uint32_t{open.target} << contract::kMgmtOpenPdcsTargetLsb;
    }
    case contract::kMgmtSlowPathRxStatusOffset:
      return static_cast<uint32_t>(parts_.slow_path->front().size());
    default:
      return ReadMirror(offset);
  }
}

void ControlRegisters::Write(uint32_t offset, uint32_t value) {
  if (const auto word = Index(offset, contract::kMgmtTableDataOffset,
                              contract::kMgmtTableDataCount)) {
    table_data_[*word] = value;
    return;
  }
  if (const auto word = Index(offset, contract::kMgmtMailboxDataOffset,
                              contract::kMgmtMailboxDataCount)) {
    mailbox_[*word] = value;
    return;
  }
  if (const auto word = Index(offset, contract::kMgmtSlowPathTxDataOffset,
                              contract::kMgmtSlowPathTxDataCount)) {
    slow_path_tx_[*word] = value;
    return;
  }
  switch (offset) {
    case contract::kMgmtStatusOffset:
      status_ = value;
      return;
    case contract::kMgmtFatalCauseOffset:
      fatal_cause_ = value;
      return;
    case contract::kMgmtResetDoneOffset:
      reset_ = false;
      return;
    case contract::kMgmtAdminHeadOffset:
      admin_head_ = value & contract::kBar0AdminTailCountMask;
      return;
    case contract::kMgmtMailboxAddressOffset:
    case contract::kMgmtMailboxAddressOffset + kWord:
      SetHalf(mailbox_address_, offset, contract::kMgmtMailboxAddressOffset,
              value);
      return;
    case contract::kMgmtMailboxControlOffset:
      RunMailbox(value);
      return;
    case contract::kMgmtTableControlOffset:
      StartTableAccess(value);
      return;
    case contract::kMgmtTimerOffset:
      timer_at_ns_ =
          value == 0 ? UINT64_MAX : parts_.now_ns() + value * tick_ns_;
      return;
    case contract::kMgmtSlowPathRxStatusOffset:
      if ((value & contract::kMgmtSlowPathRxStatusPopMask) != 0) {
        parts_.slow_path->Pop();
      }
      return;
    case contract::kMgmtSlowPathTxControlOffset:
      SendSlowPath(value);
      return;
    default:
      return;
  }
}

void ControlRegisters::SendSlowPath(uint32_t control) {
  if ((control & contract::kMgmtSlowPathTxControlGoMask) == 0) {
    return;
  }
  const uint32_t bytes =
      Field(control, contract::kMgmtSlowPathTxControlBytesMask,
            contract::kMgmtSlowPathTxControlBytesLsb);
  std::array<uint8_t, sizeof(slow_path_tx_)> frame{};
  std::memcpy(frame.data(), slow_path_tx_.data(), sizeof(slow_path_tx_));
  parts_.wire->SendSlowPath(
      std::span(frame).first(std::min(bytes, contract::kSlowPathTxBytes)));
  ++slow_path_sent_;
}

void ControlRegisters::RunMailbox(uint32_t control) {
  mailbox_control_ = control & (contract::kMgmtMailboxControlBytesMask |
                                contract::kMgmtMailboxControlToHostMask);
  if ((control & contract::kMgmtMailboxControlGoMask) == 0) {
    return;
  }
  const uint32_t bytes = Field(control, contract::kMgmtMailboxControlBytesMask,
                               contract::kMgmtMailboxControlBytesLsb);
  std::array<uint8_t, contract::kMailboxBytes> buffer{};
  const bool legal = bytes != 0 && bytes % kLong == 0 && bytes <= buffer.size();
  bool done = false;
  if (legal && (control & contract::kMgmtMailboxControlToHostMask) != 0) {
    std::memcpy(buffer.data(), mailbox_.data(), buffer.size());
    // The size of an answer: its phase is seen last.
    constexpr size_t kEntry = sizeof(contract::AdminAnswer);
    done = bytes == kEntry
               ? parts_.memory->Publish(mailbox_address_,
                                        std::span(buffer).first<kEntry>())
               : parts_.memory->Write(mailbox_address_,
                                      std::span(buffer).first(bytes));
  } else if (legal) {
    done =
        parts_.memory->Read(mailbox_address_, std::span(buffer).first(bytes));
    if (done) {
      std::memcpy(mailbox_.data(), buffer.data(), bytes);
    }
  }
  mailbox_control_ |= done ? 0 : contract::kMgmtMailboxControlErrorMask;
}

void ControlRegisters::StartTableAccess(uint32_t control) {
  constexpr uint32_t kGo = contract::kMgmtTableControlGoMask;
  if ((control & kGo) == 0) {
    return;
  }
  table_control_ = control & ~contract::kMgmtTableControlErrorMask;
  const auto table = static_cast<contract::Table>(
      Field(control, contract::kMgmtTableControlTableMask,
            contract::kMgmtTableControlTableLsb));
  const uint32_t index = Field(control, contract::kMgmtTableControlIndexMask,
                               contract::kMgmtTableControlIndexLsb);
  std::array<uint8_t, Engine::kEntryBytes> entry{};
  static_assert(sizeof(table_data_) == Engine::kEntryBytes);
  bool known = false;
  switch (static_cast<contract::TableOp>(
      Field(control, contract::kMgmtTableControlOpMask,
            contract::kMgmtTableControlOpLsb))) {
    case contract::TableOp::kRead:
      known = parts_.tables->Read(table, index, entry);
      if (known) {
        std::memcpy(table_data_.data(), entry.data(), entry.size());
      }
      break;
    case contract::TableOp::kWrite:
      std::memcpy(entry.data(), table_data_.data(), entry.size());
      known = parts_.tables->Write(table, index, entry);
      break;
    case contract::TableOp::kDrain:
      PollDrain();
      return;
  }
  table_control_ &= ~kGo;
  table_control_ |= known ? 0 : contract::kMgmtTableControlErrorMask;
}

// Reads and writes end when they are started: what still runs is a drain.
void ControlRegisters::PollDrain() {
  if ((table_control_ & contract::kMgmtTableControlGoMask) == 0) {
    return;
  }
  const auto table = static_cast<contract::Table>(
      Field(table_control_, contract::kMgmtTableControlTableMask,
            contract::kMgmtTableControlTableLsb));
  const uint32_t index =
      Field(table_control_, contract::kMgmtTableControlIndexMask,
            contract::kMgmtTableControlIndexLsb);
  switch (parts_.tables->Drain(table, index)) {
    case Engine::DrainState::kPending:
      return;
    case Engine::DrainState::kNoEntry:
      table_control_ |= contract::kMgmtTableControlErrorMask;
      break;
    case Engine::DrainState::kDone:
      break;
  }
  table_control_ &= ~contract::kMgmtTableControlGoMask;
}

}  // namespace heddle::soft::control
