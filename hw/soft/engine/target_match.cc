// SPDX-License-Identifier: Apache-2.0
// SEND and TAGGED_SEND at a target whose context matches.
#include <memory>

#include "hw/soft/engine/target.h"

namespace heddle::soft::engine {

using contract::NackCode;
using contract::ReturnCode;
using contract::SesOpcode;
using contract::Status;
using semantics::kNone;
using transport::Verdict;

Verdict Target::OnTaggedSend(const Packet& packet) {
  return packet.single()
             ? WholeMatch(packet, rings_.Find(SendNameOf(packet.header)))
             : OnPartOfSend(packet);
}

rules::Answer Target::BeginMatch(const Packet& packet, bool legal,
                                 uint32_t context) const {
  rules::Part part = PartOf(packet);
  part.opcode = SesOpcode::kSend;  // Both are judged alike.
  part.legal = legal;
  // Whether there is a buffer and an entry depends on what matches.
  rules::Aim aim = AimOf(packet, context);
  aim.answer = !part.dc || packet.may_guarantee;
  return rules::AnswerToFirst(part, aim);
}

Verdict Target::WholeMatch(const Packet& packet, uint32_t context) {
  const uint32_t length = packet.header.request_length;
  const bool ie = packet.header.ie != 0;
  const rules::Answer begun =
      BeginMatch(packet, ie || packet.payload.size() == length, context);
  if (begun.kind != rules::Answer::Kind::kBegins) {
    return NotBegun(packet, begun);
  }
  const Report report = ReportTo(packet, context);
  Landing landing;
  const auto refusal = matching_.Begin(
      context,
      {.names = report.names, .length = length, .open = kNone, .given_up = ie},
      &landing);
  if (refusal) {
    return ie ? Verdict{} : Refuse(*refusal);
  }
  semantics::Outcome outcome = {Status::kOk, 0, std::min(length, landing.room),
                                length};
  if (ie) {
    outcome = {Status::kInitiatorError,
               static_cast<uint16_t>(ReturnCode::kInitiatorErr), 0, length};
  } else if (outcome.length != 0 &&
             !parts_.host->Write(landing.address,
                                 packet.payload.first(outcome.length))) {
    outcome = {Status::kLocalAccess, 0, 0, length};
  }
  matching_.End(context, landing, report.names, outcome);
  if (outcome.status == Status::kLocalAccess && packet.header.dc != 0) {
    return Error(packet, ReturnCode::kHostUnsuccessCmpl);
  }
  return outcome.status == Status::kOk && outcome.length < length
             ? Cut(packet, outcome.length)
             : Verdict{};
}

uint32_t Target::OpenMatch(const Packet& packet, bool legal, uint32_t context,
                           Verdict* verdict) {
  const rules::Answer begun = BeginMatch(packet, legal, context);
  if (begun.kind != rules::Answer::Kind::kBegins) {
    *verdict = NotBegun(packet, begun);
    return kNone;
  }
  const bool ie = packet.header.ie != 0;
  const uint32_t length = packet.header.request_length;
  const uint32_t handle = OpenMessage(packet, length);
  if (handle == kNone) {
    *verdict = ie ? Verdict{} : Refuse(NackCode::kNoSesMsgAvail);
    return kNone;
  }
  Open& open = open_[handle];
  open.report = ReportTo(packet, context);
  const auto refusal = matching_.Begin(context,
                                       {.names = open.report.names,
                                        .length = length,
                                        .open = handle,
                                        .given_up = ie},
                                       &open.landing);
  if (refusal || open.landing.kind == Landing::Kind::kNowhere) {
    Close(handle);
    *verdict = ie ? Deny(packet, {}) : Refuse(*refusal);
    return kNone;
  }
  std::construct_at(&open.receive, length, open.landing.room);
  open.buffer = {.iova = open.landing.address, .length = open.landing.room};
  return handle;
}

void Target::EndMatch(Open& open) {
  if (Stale(open.report)) {
    // Its place has gone with the context.
    parts_.queues->Release(open.landing.ticket);
    return;
  }
  matching_.End(open.report.context, open.landing, open.report.names,
                open.receive.outcome());
}

void Target::OnTaken(uint32_t open, const Landing& landing) {
  open_[open].landing = landing;
}

void Target::OnDiscarded(uint32_t open) {
  open_[open].landing.kind = Landing::Kind::kNowhere;
  open_[open].receive.Discard();
}

}  // namespace heddle::soft::engine
