// SPDX-License-Identifier: Apache-2.0
// SEND at its target: the next buffer of the receive context.
#include <algorithm>

#include "hw/soft/engine/target.h"

namespace heddle::soft::engine {

using contract::NackCode;
using contract::ReturnCode;
using contract::SesOpcode;
using contract::Status;
using semantics::kNone;
using semantics::ReceiveMessage;
using transport::Verdict;

Verdict Target::OnSend(const Packet& packet) {
  return packet.single() ? WholeSend(packet) : OnPartOfSend(packet);
}

Verdict Target::OnPartOfSend(const Packet& packet) {
  uint32_t handle =
      table_.Find(KeyOf(packet.request, packet.header.message_id));
  if (handle != kNone && open_[handle].refused) {
    return PartOfDenied(packet, handle);
  }
  Verdict verdict;
  if (handle == kNone) {
    handle = OpenSend(packet, &verdict);
  }
  return handle == kNone ? verdict : PartOfSend(packet, handle);
}

Verdict Target::NotBegun(const Packet& packet, const rules::Answer& answer) {
  if (answer.kind == rules::Answer::Kind::kWait) {
    return Refuse(answer.nack);
  }
  if (answer.violation) {
    return Illegal(packet);
  }
  return Deny(packet, answer.kind == rules::Answer::Kind::kError
                          ? Error(packet, answer.code)
                          : Verdict{});
}

inline rules::Answer Target::BeginSend(const Packet& packet, bool legal,
                                       Start* start) {
  rules::Part part = PartOf(packet);
  part.legal = legal;
  rules::Aim aim = AimOf(packet, start->context);
  // The answer might be that memory refused the data.
  aim.answer = !part.dc || packet.may_guarantee;
  if (aim.context && aim.same_job) {
    start->head = rings_.Head(start->context);
  }
  aim.buffer = start->head != nullptr;
  if (aim.buffer) {
    start->ticket = parts_.queues->Reserve(rings_[start->context].cq());
  }
  aim.entry = start->ticket.valid();
  const rules::Answer answer = rules::AnswerToFirst(part, aim);
  if (answer.kind != rules::Answer::Kind::kBegins) [[unlikely]] {
    parts_.queues->Release(start->ticket);
  }
  return answer;
}

Verdict Target::WholeSend(const Packet& packet) {
  const bool legal = packet.header.ie != 0 ||
                     packet.payload.size() == packet.header.request_length;
  Start start{.context = rings_.Find(NameOf(packet.header))};
  const rules::Answer begun = BeginSend(packet, legal, &start);
  if (begun.kind != rules::Answer::Kind::kBegins) {
    return Matches(start.context) ? WholeMatch(packet, start.context)
                                  : NotBegun(packet, begun);
  }
  Report report = ReportTo(packet, start.context);
  report.ticket = start.ticket;
  const RxBuffer buffer = *start.head;
  rings_.Take(start.context);
  return PlaceWhole(packet, buffer.iova, buffer.length,
                    [&](const semantics::Outcome& outcome) {
                      EndReceive(report, buffer, outcome);
                    });
}

uint32_t Target::OpenSend(const Packet& packet, Verdict* verdict) {
  if (packet.request.ordered && packet.header.som == 0) {
    // Its message is not open: it has ended, or was refused.
    const uint32_t context = rings_.Find(SendNameOf(packet.header));
    *verdict = NotBegun(
        packet, rules::AnswerToOther(PartOf(packet), AimOf(packet, context),
                                     {.remembered = false}));
    return kNone;
  }
  // A packet that contradicts itself takes nothing.
  ReceiveMessage trial(packet.header.request_length, 0);
  const bool legal =
      trial.Accept(PieceOf(packet)).action == ReceiveMessage::Action::kAccepted;
  Start start{.context = rings_.Find(SendNameOf(packet.header))};
  if (Matches(start.context) ||
      packet.header.opcode == SesOpcode::kTaggedSend) {
    return OpenMatch(packet, legal, start.context, verdict);
  }
  const rules::Answer begun = BeginSend(packet, legal, &start);
  // It begins only with a buffer.
  if (begun.kind != rules::Answer::Kind::kBegins || start.head == nullptr) {
    *verdict = NotBegun(packet, begun);
    return kNone;
  }
  const uint32_t handle = OpenMessage(packet, start.head->length);
  if (handle == kNone) {
    parts_.queues->Release(start.ticket);
    *verdict = packet.header.ie != 0 ? Deny(packet, {})
                                     : Refuse(NackCode::kNoSesMsgAvail);
    return kNone;
  }
  Open& open = open_[handle];
  open.report = ReportTo(packet, start.context);
  open.report.ticket = start.ticket;
  open.buffer = *start.head;
  rings_.Take(start.context);
  return handle;
}

Verdict Target::PartOfSend(const Packet& packet, uint32_t handle) {
  Open& open = open_[handle];
  const bool stale = Stale(open.report);
  rules::Answer answer;
  if (stale) {
    rules::Part part = PartOf(packet);
    part.dc = part.dc && open.receive.code() == ReturnCode::kOk;
    answer = rules::AnswerToOther(
        part, {}, {.progress = rules::Open::Progress::kOpen, .stale = true});
  }
  const bool told = answer.kind == rules::Answer::Kind::kError;
  const Verdict error = told ? Error(packet, answer.code) : Verdict{};
  if (error.kind == Verdict::Kind::kRefused) {
    return error;
  }
  if (stale) {
    open.receive.Discard();
  }
  const Verdict verdict =
      AccountAndWrite(packet, handle, open.buffer.iova + packet.offset(),
                      packet.header.dc != 0);
  if (verdict.kind == Verdict::Kind::kRefused) {
    return verdict;
  }
  if (told) {
    open.receive.Fail(Status::kRemoteError,
                      static_cast<uint16_t>(ReturnCode::kBadIndex));
  }
  // Each packet says how much of the message is taken.
  const bool cut = !verdict.respond && !stale && packet.header.ie == 0 &&
                   open.receive.code() == ReturnCode::kOk &&
                   open.buffer.length < packet.header.request_length;
  const uint32_t taken = open.buffer.length;
  CloseIfOver(packet, handle);
  return told ? error : cut ? Cut(packet, taken) : verdict;
}

}  // namespace heddle::soft::engine
