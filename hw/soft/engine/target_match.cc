// SPDX-License-Identifier: Apache-2.0
// SEND and TAGGED_SEND at a target whose context matches.
#include <memory>

#include "hw/soft/engine/target.h"

namespace heddle::soft::engine {

using contract::NackCode;
using contract::ReturnCode;
using contract::SesOpcode;
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
  aim.answer = (!part.dc && !packet.deferrable) || packet.may_guarantee;
  return rules::AnswerToFirst(part, aim);
}

bool Target::Land(const Packet& packet, uint32_t context,
                  const MatchContexts::Message& message, Landing* landing,
                  Verdict* verdict) {
  MatchContexts::Message known = message;
  Deferral deferral;
  if (packet.deferrable) {
    // The offset is two tokens (UET 4.3).
    const uint64_t tokens = packet.header.buffer_offset;
    deferral = {.source = packet.request.source,
                .spdcid = packet.request.spdcid,
                .path = transport_->ReturnPath(packet.request.pdc),
                .job_id = packet.header.job_id,
                .initiator = packet.header.initiator,
                .token = static_cast<uint32_t>(tokens >> 32U),
                .relative = packet.header.rel != 0};
    if (static_cast<uint32_t>(tokens) != 0) {
      const bool restarts = matching_.Restart(static_cast<uint32_t>(tokens),
                                              deferral, message, landing);
      if (!restarts) {
        *verdict = Illegal(packet);
      }
      return restarts;
    }
    known.deferral = &deferral;
  }
  const auto refusal = matching_.Begin(context, known, landing);
  if (refusal) {
    *verdict = message.given_up ? Verdict{} : Refuse(*refusal);
  }
  return !refusal;
}

Verdict Target::Defer(const Packet& packet) {
  Verdict verdict;
  verdict.respond = true;
  verdict.guaranteed = true;
  verdict.response.list = 1;  // Overflow: the header is kept.
  verdict.response.opcode = contract::SesResponse::kResponse;
  verdict.response.return_code = ReturnCode::kOk;
  verdict.response.message_id = packet.header.message_id;
  verdict.response.job_id = packet.header.job_id;
  return verdict;
}

Verdict Target::OnReady(const Packet& packet) {
  if (!packet.may_guarantee) {
    return Refuse(NackCode::kNoGtdDelAvail);
  }
  const uint64_t tokens = packet.header.match_bits;
  const auto first = static_cast<uint32_t>(tokens >> 32U);
  const auto second = static_cast<uint32_t>(tokens);
  const wire::FabricAddress& source = packet.request.source;
  // Peers differ in the order of the tokens (UET 4.3).
  const bool known = packet.single() && packet.payload.empty() &&
                     packet.header.request_length == 0 &&
                     packet.header.buffer_offset == 0 &&
                     (initiator_->OnReady(source, first, second) ||
                      initiator_->OnReady(source, second, first));
  return known ? Verdict{} : Illegal(packet);
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
  Verdict refusal;
  if (!Land(packet, context,
            {.names = report.names,
             .length = length,
             .open = kNone,
             .given_up = ie,
             .deferral = nullptr},
            &landing, &refusal)) {
    return refusal;
  }
  if (landing.kind == Landing::Kind::kDeferred) {
    return Defer(packet);
  }
  if (landing.kind == Landing::Kind::kNowhere) {
    return {};
  }
  return PlaceWhole(packet, landing.address, landing.room,
                    [&](const semantics::Outcome& outcome) {
                      matching_.End(context, landing, report.names, outcome);
                    });
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
  Verdict refusal;
  const bool landed = Land(packet, context,
                           {.names = open.report.names,
                            .length = length,
                            .open = handle,
                            .given_up = ie,
                            .deferral = nullptr,
                            .headless = packet.header.som == 0},
                           &open.landing, &refusal);
  const Landing::Kind kind = open.landing.kind;
  if (!landed || (ie && kind == Landing::Kind::kNowhere)) {
    Close(handle);
    *verdict = ie ? Deny(packet, {}) : refusal;
    return kNone;
  }
  std::construct_at(&open.receive, length, open.landing.room);
  open.buffer = {.iova = open.landing.address, .length = open.landing.room};
  if (kind == Landing::Kind::kDeferred || kind == Landing::Kind::kNowhere) {
    open.receive.Discard();
  }
  if (kind != Landing::Kind::kDeferred) {
    return handle;
  }
  // The rest of it is taken for nothing.
  *verdict = PartOfSend(packet, handle);
  if (verdict->kind == Verdict::Kind::kAccepted) {
    *verdict = Defer(packet);
  }
  return kNone;
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
