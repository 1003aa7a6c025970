// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/completion.h"

#include "hw/contract/split_number.h"

namespace heddle::semantics {

using contract::Completion;

namespace {

Completion Common(contract::CompletionKind kind, const Outcome& outcome,
                  const RingPlace& place) noexcept {
  Completion entry;
  entry.kind = kind;
  entry.status = outcome.status;
  entry.detail = static_cast<uint8_t>(outcome.detail);
  entry.length = outcome.length;
  entry.message_length = outcome.message_length;
  entry.context = contract::LowByte(place.context);
  entry.context_high = contract::HighByte(place.context);
  entry.position = place.position;
  entry.queue_head = place.queue_head;
  return entry;
}

}  // namespace

Completion TxCompletion(const contract::TxDesc& descriptor,
                        const Outcome& outcome,
                        const RingPlace& place) noexcept {
  Completion entry = Common(contract::CompletionKind::kTx, outcome, place);
  entry.op_context = descriptor.op_context;
  entry.opcode = descriptor.opcode;
  entry.peer = descriptor.peer;
  return entry;
}

Completion RxCompletion(uint64_t op_context, const MessageNames& names,
                        const Outcome& outcome,
                        const RingPlace& place) noexcept {
  Completion entry = Common(contract::CompletionKind::kRx, outcome, place);
  const bool cancelled = outcome.status == contract::Status::kCancelled;
  entry.op_context = cancelled ? 0 : op_context;
  entry.opcode = names.opcode;
  if (cancelled) {
    return entry;
  }
  entry.source_fa_lo = names.source.address_lo;
  entry.source_fa_hi = names.source.address_hi;
  entry.peer = names.source.initiator;
  if (names.source.ipv6) {
    entry.flags |= contract::kCompletionFlagSourceIpv6;
  }
  if (names.header_data.has_value()) {
    entry.header_data = *names.header_data;
    entry.flags |= contract::kCompletionFlagHeaderData;
  }
  if (names.opcode == contract::Opcode::kTaggedSend) {
    entry.match_bits = names.tag;
    entry.flags |= contract::kCompletionFlagTagged;
  }
  return entry;
}

}  // namespace heddle::semantics
