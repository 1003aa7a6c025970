// SPDX-License-Identifier: Apache-2.0
// Commands that create queues and contexts.
#include "firmware/admin/executor.h"
#include "firmware/admin/order.h"
#include "hw/contract/split_number.h"

namespace heddle::firmware {

using contract::JoinBytes;

namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kCacheLineBytes = 64;
constexpr uint64_t kCellBytes = 8;
constexpr uint32_t kMaxDscp = 63;

constexpr bool IsRingLog2(uint32_t log2) {
  return log2 >= contract::kRingLog2Min && log2 <= contract::kRingLog2Max;
}

// Length of a ring or queue, of 0 bytes when `log2` cannot be meant: that is
// refused as its own field.
constexpr uint64_t Bytes(uint32_t log2, uint64_t entry_bytes) {
  return log2 <= contract::kCqLog2Max ? entry_bytes << log2 : 0;
}

constexpr bool Matches(uint8_t rx_flags) {
  return (rx_flags & contract::kRxCtxFlagMatch) != 0;
}

constexpr bool IsTagged(uint8_t rx_flags) {
  return (rx_flags & contract::kRxCtxFlagTagged) != 0;
}

}  // namespace

Executor::Progress Executor::CreateCq(const contract::AdminCreateCq& command) {
  using Command = contract::AdminCreateCq;
  FieldCheck check;
  check.Require(command.rsvd1 == 0, offsetof(Command, rsvd1));
  check.Require(IsHostRange(command.base,
                            Bytes(command.log2, sizeof(contract::Completion)),
                            kPageBytes),
                offsetof(Command, base));
  check.Require(command.log2 >= contract::kRingLog2Min &&
                    command.log2 <= contract::kCqLog2Max,
                offsetof(Command, log2));
  check.Require(command.vector < vectors_, offsetof(Command, vector));
  check.Require(command.rsvd2 == 0, offsetof(Command, rsvd2));
  check.Require(command.rsvd3 == 0, offsetof(Command, rsvd3));
  check.RequireZero(command.rsvd4, offsetof(Command, rsvd4));
  if (!check.ok()) {
    return Refuse(check);
  }
  const uint32_t index = cqs_.FindTurn();
  if (index == cqs_.limit() || !cqs_.Prepare(index)) {
    return Answer(contract::AdminStatus::kNoResource, 0);
  }
  const contract::CqCfg config{.base = command.base,
                               .log2 = command.log2,
                               .vector = command.vector,
                               .function = function_,
                               .enable = 1};
  const Status status = tables_.Write(contract::Table::kCq, index, config);
  if (!status.ok()) {
    return Fail(status);
  }
  cqs_.Set(index, {.used = true, .function = function_});
  cqs_.Pass(index);
  return Created(index);
}

FieldCheck Executor::CheckTx(const contract::AdminCreateTx& command) {
  using Command = contract::AdminCreateTx;
  FieldCheck check;
  check.Require(endpoints_.Find(command.endpoint, function_) != nullptr,
                offsetof(Command, endpoint), contract::AdminStatus::kNotFound);
  check.Require(
      IsHostRange(command.ring_base,
                  Bytes(command.ring_log2, contract::kDescBytes), kPageBytes),
      offsetof(Command, ring_base));
  check.Require(IsHostRange(command.head_cell, kCellBytes, kCellBytes),
                offsetof(Command, head_cell));
  check.Require(
      IsHostRange(command.av_base,
                  uint64_t{command.av_entries} * sizeof(contract::AvEntry),
                  kCacheLineBytes),
      offsetof(Command, av_base));
  // A device without the capability does not use it.
  check.Require(
      IsHostRange(command.spill_base,
                  Bytes(command.ring_log2,
                        contract::kDescBytes + sizeof(contract::SpillMark)),
                  kPageBytes),
      offsetof(Command, spill_base));
  check.Require(
      cqs_.Find(JoinBytes(command.cq, command.cq_high), function_) != nullptr,
      offsetof(Command, cq), contract::AdminStatus::kNotFound);
  check.Require(IsRingLog2(command.ring_log2), offsetof(Command, ring_log2));
  check.Require(command.traffic_class <= kMaxDscp,
                offsetof(Command, traffic_class));
  check.Require(
      IsCounter(JoinBytes(command.counter_send, command.counter_send_high)),
      offsetof(Command, counter_send), contract::AdminStatus::kNotFound);
  check.Require(
      IsCounter(JoinBytes(command.counter_read, command.counter_read_high)),
      offsetof(Command, counter_read), contract::AdminStatus::kNotFound);
  check.Require(
      IsCounter(JoinBytes(command.counter_write, command.counter_write_high)),
      offsetof(Command, counter_write), contract::AdminStatus::kNotFound);
  // A device without the capability does not use `early_release`.
  const bool deferrable = (capability_ & contract::kCapabilityDeferrable) != 0;
  const uint32_t flags = contract::kTxCtxFlagEarlyRelease |
                         (deferrable ? contract::kTxCtxFlagDeferrable : 0U);
  check.Require((command.flags & ~flags) == 0, offsetof(Command, flags));
  check.Require(command.rsvd1 == 0, offsetof(Command, rsvd1));
  return check;
}

Executor::Progress Executor::CreateTx(const contract::AdminCreateTx& command) {
  const FieldCheck check = CheckTx(command);
  if (!check.ok()) {
    return Refuse(check);
  }
  const uint32_t index = tx_contexts_.FindTurn();
  if (index == tx_contexts_.limit() || !tx_contexts_.Prepare(index)) {
    return Answer(contract::AdminStatus::kNoResource, 0);
  }
  const Endpoint& endpoint = endpoints_.at(command.endpoint);
  const contract::TxCtxCfg config{
      .ring_base = command.ring_base,
      .head_cell = command.head_cell,
      .av_base = command.av_base,
      .av_entries = command.av_entries,
      .job_id = endpoint.job_id,
      .source_pid = endpoint.pid_on_fep(),
      .source_ri = endpoint.first_ri(),
      .ring_log2 = command.ring_log2,
      .cq = command.cq,
      .function = function_,
      .enable = 1,
      .traffic_class = command.traffic_class,
      .counter_send = command.counter_send,
      .counter_read = command.counter_read,
      .counter_write = command.counter_write,
      .ordered = OrderedClasses(command.msg_order),
      .cq_high = command.cq_high,
      .counter_send_high = command.counter_send_high,
      .counter_read_high = command.counter_read_high,
      .spill_base = command.spill_base,
      .counter_write_high = command.counter_write_high,
      .flags = static_cast<uint8_t>(
          command.flags |
          (endpoint.relative ? contract::kTxCtxFlagRelative : 0U))};
  const Status status = tables_.Write(contract::Table::kTxCtx, index, config);
  if (!status.ok()) {
    return Fail(status);
  }
  Adopt(tx_contexts_, index, command.endpoint, config);
  return Created(index);
}

bool Executor::IsIndexTaken(uint32_t endpoint, uint16_t resource_index,
                            bool tagged) const {
  for (uint32_t i = 0; i < rx_contexts_.limit(); ++i) {
    if (rx_contexts_.IsUsed(i) && rx_contexts_.at(i).endpoint == endpoint &&
        rx_contexts_.at(i).config.resource_index == resource_index &&
        IsTagged(rx_contexts_.at(i).config.flags) == tagged) {
      return true;
    }
  }
  return false;
}

FieldCheck Executor::CheckRx(const contract::AdminCreateRx& command) {
  using Command = contract::AdminCreateRx;
  FieldCheck check;
  check.Require(endpoints_.Find(command.endpoint, function_) != nullptr,
                offsetof(Command, endpoint), contract::AdminStatus::kNotFound);
  check.Require(
      IsHostRange(command.ring_base,
                  Bytes(command.ring_log2, Matches(command.flags)
                                               ? contract::kMatchDescBytes
                                               : contract::kRxDescBytes),
                  kPageBytes),
      offsetof(Command, ring_base));
  check.Require(IsHostRange(command.head_cell, kCellBytes, kCellBytes),
                offsetof(Command, head_cell));
  check.Require(
      cqs_.Find(JoinBytes(command.cq, command.cq_high), function_) != nullptr,
      offsetof(Command, cq), contract::AdminStatus::kNotFound);
  check.Require(IsRingLog2(command.ring_log2), offsetof(Command, ring_log2));
  // The control RI precedes the receive contexts in the endpoint's block.
  check.Require(command.rx_index < contract::kRiBlock - 1,
                offsetof(Command, rx_index));
  check.Require(
      IsCounter(JoinBytes(command.counter_recv, command.counter_recv_high)),
      offsetof(Command, counter_recv), contract::AdminStatus::kNotFound);
  check.Require(IsCounter(JoinBytes(command.counter_remote_read,
                                    command.counter_remote_read_high)),
                offsetof(Command, counter_remote_read),
                contract::AdminStatus::kNotFound);
  check.Require(IsCounter(JoinBytes(command.counter_remote_write,
                                    command.counter_remote_write_high)),
                offsetof(Command, counter_remote_write),
                contract::AdminStatus::kNotFound);
  check.Require((command.flags & ~RxFlags()) == 0 &&
                    (Matches(command.flags) || !IsTagged(command.flags)),
                offsetof(Command, flags));
  CheckMatching(command, &check);
  check.Require(command.rsvd1 == 0, offsetof(Command, rsvd1));
  return check;
}

void Executor::CheckMatching(const contract::AdminCreateRx& command,
                             FieldCheck* check) {
  using Command = contract::AdminCreateRx;
  const bool matches = Matches(command.flags);
  check->Require(matches ? command.unexpected_bytes % kPageBytes == 0
                         : command.unexpected_bytes == 0,
                 offsetof(Command, unexpected_bytes));
  check->Require(matches ? IsHostRange(command.unexpected_base,
                                       command.unexpected_bytes, kPageBytes)
                         : command.unexpected_base == 0,
                 offsetof(Command, unexpected_base));
  check->Require((command.unexpected_messages != 0) == matches &&
                     command.unexpected_messages <= contract::kMatchEntriesMax,
                 offsetof(Command, unexpected_messages));
  check->Require(matches || command.copy_limit == 0,
                 offsetof(Command, copy_limit));
  check->Require((command.receives != 0) == matches &&
                     command.receives <= contract::kMatchEntriesMax,
                 offsetof(Command, receives));
}

uint8_t Executor::RxFlags() const {
  const bool match = (capability_ & contract::kCapabilityMatch) != 0;
  const bool tagged = (capability_ & contract::kCapabilityTagged) != 0;
  return static_cast<uint8_t>(
      contract::kRxCtxFlagRegionEvent |
      (match ? contract::kRxCtxFlagMatch : 0U) |
      (match && tagged ? contract::kRxCtxFlagTagged : 0U));
}

Executor::Progress Executor::CreateRx(const contract::AdminCreateRx& command) {
  const FieldCheck check = CheckRx(command);
  if (!check.ok()) {
    return Refuse(check);
  }
  const Endpoint& endpoint = endpoints_.at(command.endpoint);
  const auto resource_index =
      static_cast<uint16_t>(endpoint.first_ri() + 1 + command.rx_index);
  if (IsIndexTaken(command.endpoint, resource_index, IsTagged(command.flags))) {
    return Answer(contract::AdminStatus::kInUse, 1);
  }
  const uint32_t index = rx_contexts_.FindTurn();
  if (index == rx_contexts_.limit() || !rx_contexts_.Prepare(index)) {
    return Answer(contract::AdminStatus::kNoResource, 0);
  }
  const contract::RxCtxCfg config{
      .ring_base = command.ring_base,
      .head_cell = command.head_cell,
      .job_id = endpoint.job_id,
      .pid_on_fep = endpoint.pid_on_fep(),
      .resource_index = resource_index,
      .ring_log2 = command.ring_log2,
      .cq = command.cq,
      .function = function_,
      .enable = 1,
      .counter_recv = command.counter_recv,
      .counter_remote_read = command.counter_remote_read,
      .counter_remote_write = command.counter_remote_write,
      .flags = static_cast<uint8_t>(
          command.flags |
          (endpoint.relative ? contract::kRxCtxFlagRelative : 0U)),
      .cq_high = command.cq_high,
      .counter_recv_high = command.counter_recv_high,
      .counter_remote_read_high = command.counter_remote_read_high,
      .counter_remote_write_high = command.counter_remote_write_high,
      .unexpected_bytes = command.unexpected_bytes,
      .unexpected_base = command.unexpected_base,
      .unexpected_messages = command.unexpected_messages,
      .copy_limit = command.copy_limit,
      .receives = command.receives};
  const Status status = tables_.Write(contract::Table::kRxCtx, index, config);
  if (!status.ok()) {
    return Fail(status);
  }
  Adopt(rx_contexts_, index, command.endpoint, config);
  return Created(index);
}

template <typename Table, typename Config>
void Executor::Adopt(Table& table, uint32_t index, uint32_t endpoint,
                     const Config& config) {
  const uint16_t cq = JoinBytes(config.cq, config.cq_high);
  table.Set(index, {.used = true,
                    .function = function_,
                    .cq = cq,
                    .endpoint = endpoint,
                    .config = config});
  table.Pass(index);
  ++endpoints_.at(endpoint).users;
  ++cqs_.at(cq).users;
  ForEachCounter(config, [this](uint16_t plus_1) { UseCounter(plus_1); });
}

}  // namespace heddle::firmware
