// SPDX-License-Identifier: Apache-2.0
// What the target's host is told: completions and counters.
#include "hw/soft/engine/target.h"

namespace heddle::soft::engine {

using contract::Completion;
using contract::Opcode;
using contract::Statistic;
using contract::Status;
using semantics::kNone;

Target::Report Target::ReportTo(const Packet& packet,
                                uint32_t context) noexcept {
  Report report;
  report.context = context;
  report.generation = context == kNone ? 0 : rings_[context].generation;
  semantics::MessageNames& names = report.names;
  names.opcode = static_cast<Opcode>(packet.header.opcode);
  names.source = {packet.request.source.lo, packet.request.source.hi,
                  packet.header.initiator, packet.request.source.ipv6};
  names.tag = packet.header.match_bits;
  if (packet.header.som != 0 && packet.header.hd != 0) {
    names.header_data = packet.header.header_data;
  }
  return report;
}

bool Target::Stale(const Report& report) const noexcept {
  return report.context == kNone || !rings_[report.context].alive ||
         rings_[report.context].generation != report.generation;
}

void Target::EndReceive(const Report& report, const RxBuffer& buffer,
                        const semantics::Outcome& outcome) {
  if (Stale(report)) {
    parts_.queues->Release(report.ticket);
    return;
  }
  const RxContext& rx = rings_[report.context];
  parts_.statistics->Count(Statistic::kRxMessages);
  parts_.counters->Count(rx.counter_recv(), outcome.status);
  parts_.queues->Complete(
      report.ticket,
      semantics::RxCompletion(
          buffer.op_context, report.names, outcome,
          {static_cast<uint16_t>(report.context), buffer.position, rx.head}));
}

void Target::EndRma(const Report& report, uint32_t length) {
  parts_.statistics->Count(Statistic::kRxMessages);
  const bool read = report.names.opcode == Opcode::kRead;
  if (!read) {
    parts_.counters->Count(report.region_counter, Status::kOk);
  }
  if (Stale(report)) {
    parts_.queues->Release(report.ticket);
    return;
  }
  const RxContext& rx = rings_[report.context];
  parts_.counters->Count(
      read ? rx.counter_remote_read() : rx.counter_remote_write(), Status::kOk);
  if (!report.ticket.valid()) {
    return;
  }
  Completion entry = semantics::RxCompletion(
      0, report.names, {.length = length, .message_length = length},
      {static_cast<uint16_t>(report.context), 0, rx.head});
  entry.kind = contract::CompletionKind::kTarget;
  entry.match_bits = report.names.tag;  // The key.
  parts_.queues->Complete(report.ticket, entry);
}

}  // namespace heddle::soft::engine
