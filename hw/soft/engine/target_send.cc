// SPDX-License-Identifier: Apache-2.0
// SEND at its target: the next buffer of the receive context.
#include <algorithm>

#include "hw/soft/engine/target.h"

namespace heddle::soft::engine {

using contract::NackCode;
using contract::ReturnCode;
using contract::Status;
using semantics::kNone;
using semantics::ReceiveMessage;
using transport::Verdict;

Verdict Target::Wait(const Packet& packet, NackCode code) {
  return packet.header.ie != 0 ? Deny(packet, {}) : Refuse(code);
}

Verdict Target::OnSend(const Packet& packet) {
  Verdict verdict;
  if (packet.single()) {
    const uint32_t context = AdmitSend(packet, &verdict);
    return context == kNone ? verdict : WholeSend(packet, context);
  }
  uint32_t handle =
      table_.Find(KeyOf(packet.request, packet.header.message_id));
  if (handle != kNone && open_[handle].refused) {
    return PartOfDenied(packet, handle);
  }
  if (handle == kNone) {
    const uint32_t context = AdmitSend(packet, &verdict);
    if (context != kNone) {
      handle = OpenSend(packet, context, &verdict);
    }
  }
  return handle == kNone ? verdict : PartOfSend(packet, handle);
}

uint32_t Target::AdmitSend(const Packet& packet, Verdict* verdict) {
  const RxName name = NameOf(packet.header);
  const uint32_t context = rings_.Find(name);
  if (context == kNone) {
    *verdict = Deny(packet, packet.header.ie != 0
                                ? Verdict{}
                                : Error(packet, rings_.WhyNone(name)));
    return kNone;
  }
  if (packet.header.ri_generation != 0) {
    *verdict = Deny(packet, Error(packet, ReturnCode::kBadGeneration));
    return kNone;
  }
  if (rings_[context].cfg.job_id != packet.header.job_id) {
    *verdict = Deny(packet, Error(packet, ReturnCode::kBadJobId));
    return kNone;
  }
  if (packet.header.dc != 0 && !packet.may_guarantee) {
    // The answer might be that memory refused the data.
    *verdict = Refuse(NackCode::kNoGtdDelAvail);
    return kNone;
  }
  return context;
}

Verdict Target::WholeSend(const Packet& packet, uint32_t context) {
  const uint32_t length = packet.header.request_length;
  const bool ie = packet.header.ie != 0;
  if (!ie && packet.payload.size() != length) {
    return Illegal(packet);
  }
  const RxBuffer* const head = rings_.Head(context);
  if (head == nullptr) {
    return Wait(packet, NackCode::kNoPktBuffer);
  }
  Report report = ReportTo(packet, context);
  report.ticket = parts_.queues->Reserve(rings_[context].cq());
  if (!report.ticket.valid()) {
    return Wait(packet, NackCode::kNoResource);
  }
  const RxBuffer buffer = *head;
  rings_.Take(context);
  semantics::Outcome outcome = {Status::kOk, 0, std::min(length, buffer.length),
                                length};
  if (ie) {
    outcome = {Status::kInitiatorError,
               static_cast<uint16_t>(ReturnCode::kInitiatorErr), 0, length};
  } else if (outcome.length != 0 &&
             !parts_.host->Write(buffer.iova,
                                 packet.payload.first(outcome.length))) {
    outcome = {Status::kLocalAccess, 0, 0, length};
  } else if (length > buffer.length) {
    outcome.status = Status::kTruncated;
  }
  EndReceive(report, buffer, outcome);
  if (outcome.status == Status::kLocalAccess && packet.header.dc != 0) {
    return Error(packet, ReturnCode::kHostUnsuccessCmpl);
  }
  return outcome.status == Status::kTruncated ? Cut(packet, outcome.length)
                                              : Verdict{};
}

uint32_t Target::OpenSend(const Packet& packet, uint32_t context,
                          Verdict* verdict) {
  if (packet.request.ordered && packet.header.som == 0) {
    *verdict = Illegal(packet);  // Its message is not open, so it has ended.
    return kNone;
  }
  const RxBuffer* const head = rings_.Head(context);
  if (head == nullptr) {
    *verdict = Wait(packet, NackCode::kNoPktBuffer);
    return kNone;
  }
  // A packet that contradicts itself takes nothing.
  ReceiveMessage trial(packet.header.request_length, head->length);
  if (trial.Accept(PieceOf(packet)).action !=
      ReceiveMessage::Action::kAccepted) {
    *verdict = Illegal(packet);
    return kNone;
  }
  const CqTicket ticket = parts_.queues->Reserve(rings_[context].cq());
  const uint32_t handle =
      ticket.valid() ? OpenMessage(packet, head->length) : kNone;
  if (handle == kNone) {
    parts_.queues->Release(ticket);
    *verdict = Wait(packet, ticket.valid() ? NackCode::kNoSesMsgAvail
                                           : NackCode::kNoResource);
    return kNone;
  }
  Open& open = open_[handle];
  open.report = ReportTo(packet, context);
  open.report.ticket = ticket;
  open.buffer = *head;
  rings_.Take(context);
  return handle;
}

Verdict Target::PartOfSend(const Packet& packet, uint32_t handle) {
  Open& open = open_[handle];
  const bool stale = Stale(open.report);
  // Whoever asks for delivery hears of the first packet that is not delivered.
  const bool told = stale && packet.header.dc != 0 && packet.header.ie == 0 &&
                    open.receive.code() == ReturnCode::kOk;
  const Verdict error = told ? Error(packet, ReturnCode::kBadIndex) : Verdict{};
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
