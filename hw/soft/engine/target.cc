// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/target.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

namespace heddle::soft::engine {

using contract::NackCode;
using contract::NextHdr;
using contract::ReturnCode;
using contract::SesOpcode;
using contract::Statistic;
using contract::Status;
using contract::wire::SesStd;
using semantics::kNone;
using semantics::ReceiveMessage;
using transport::Request;
using transport::Verdict;

Target::Target(const EngineLimits& limits, const EngineParts& parts,
               uint64_t seed)
    : parts_(parts),
      rings_(limits.rx_contexts, parts.host, parts.queues),
      matching_(limits.rx_contexts, parts, &rings_, this, seed),
      regions_(std::max(limits.regions, contract::kRegionWays)),
      table_(limits.open_messages, seed),
      free_reads_(&reads_, limits.open_messages) {
  open_.reserve(limits.open_messages);
}

void Target::SetPort(const contract::PortCfg& port) {
  if (std::has_single_bit(port.payload_mtu)) {
    mtu_ = port.payload_mtu;
  }
}

bool Target::WriteContext(uint32_t context, const contract::RxCtxCfg& cfg) {
  if (!rings_.Write(context, cfg)) {
    return false;
  }
  matching_.Write(context);
  return true;
}

semantics::MessageKey Target::KeyOf(const Request& request,
                                    uint16_t message_id) noexcept {
  return {request.source.lo, request.source.hi, request.spdcid, message_id,
          request.source.ipv6};
}

RxName Target::NameOf(const SesStd& header) noexcept {
  return {.pid = header.pid_on_fep,
          .resource_index = header.resource_index,
          .relative = header.rel != 0,
          .job_id = header.job_id};
}

RxName Target::SendNameOf(const SesStd& header) noexcept {
  RxName name = NameOf(header);
  name.tagged = header.opcode == SesOpcode::kTaggedSend;
  return name;
}

semantics::MessagePacket Target::PieceOf(const Packet& packet) const noexcept {
  const SesStd& header = packet.header;
  semantics::MessagePacket piece = {
      .request_length = header.request_length,
      .offset = packet.offset(),
      .length = header.opcode == SesOpcode::kRead
                    ? AskedBytes(packet)
                    : static_cast<uint32_t>(packet.payload.size()),
      .som = header.som != 0,
      .eom = header.eom != 0,
      .ie = header.ie != 0,
  };
  if (piece.ie) {
    // It carries none of the bytes that it stands for.
    piece.length = piece.eom || piece.offset > header.request_length
                       ? 0
                       : std::min(mtu_, header.request_length - piece.offset);
  }
  return piece;
}

Verdict Target::Refuse(NackCode code) noexcept {
  return {.kind = Verdict::Kind::kRefused, .nack = code};
}

Verdict Target::Error(const Packet& packet, ReturnCode code) {
  if (!packet.may_guarantee) {
    return Refuse(NackCode::kNoGtdDelAvail);
  }
  if (semantics::AccessOf(packet.header.opcode) != 0) {
    parts_.statistics->Count(Statistic::kRxRmaRefused);
  }
  Verdict verdict;
  verdict.respond = true;
  verdict.guaranteed = true;
  verdict.response.opcode = contract::SesResponse::kResponse;
  verdict.response.return_code = code;
  verdict.response.message_id = packet.header.message_id;
  verdict.response.job_id = packet.header.job_id;
  return verdict;
}

Verdict Target::Illegal(const Packet& packet) {
  const Verdict verdict = Error(packet, rules::Violation(PartOf(packet)).code);
  if (verdict.kind == Verdict::Kind::kAccepted) {
    parts_.statistics->Count(Statistic::kDropSes);
  }
  return verdict;
}

Verdict Target::Rest(const Packet& packet, ReturnCode code) {
  Verdict verdict;
  if (code != ReturnCode::kNull) {
    verdict.respond = true;
    verdict.response.opcode = contract::SesResponse::kResponse;
    verdict.response.return_code = code;
    verdict.response.message_id = packet.header.message_id;
    verdict.response.job_id = packet.header.job_id;
  }
  return verdict;
}

Verdict Target::Cut(const Packet& packet, uint32_t bytes) {
  Verdict verdict;
  verdict.respond = true;
  verdict.response.message_id = packet.header.message_id;
  // OK with a short length would put a deferrable send off.
  if (!packet.deferrable) {
    verdict.response.opcode = contract::SesResponse::kResponse;
    verdict.response.return_code = ReturnCode::kOk;
    verdict.response.job_id = packet.header.job_id;
    verdict.response.modified_length = bytes;
  }
  return verdict;
}

bool Target::Contradicts(const Packet& packet) const noexcept {
  const SesStd& header = packet.header;
  if (header.ie != 0) {
    return false;
  }
  const bool read = header.opcode == SesOpcode::kRead;
  const uint64_t bytes = read ? AskedBytes(packet) : packet.payload.size();
  const uint64_t reach = packet.offset() + bytes;
  return (read && !packet.payload.empty()) || bytes > mtu_ ||
         (!read && header.som == 0 && bytes != header.payload_length) ||
         (bytes == 0 && header.request_length != 0) ||
         reach > header.request_length ||
         (header.eom != 0) != (reach == header.request_length);
}

Verdict Target::OnContradiction(const Packet& packet) {
  if (!packet.may_guarantee) {
    return Refuse(NackCode::kNoGtdDelAvail);
  }
  const uint32_t handle =
      packet.single()
          ? kNone
          : table_.Find(KeyOf(packet.request, packet.header.message_id));
  if (handle == kNone) {
    return Deny(packet, Illegal(packet));
  }
  Open& open = open_[handle];
  if (!open.ended) {
    open.receive.Fail(Status::kInitiatorError,
                      static_cast<uint16_t>(ReturnCode::kInitiatorErr));
    open.code = rules::Violation(PartOf(packet)).code;
    End(open);
  }
  CloseIfOver(packet, handle);
  return Illegal(packet);
}

Verdict Target::OnNoOp(const Packet& packet) {
  const rules::Answer answer = rules::AnswerToNoOp(PartOf(packet));
  return answer.kind != rules::Answer::Kind::kError ? Verdict{}
         : answer.violation                         ? Illegal(packet)
                            : Error(packet, answer.code);
}

Verdict Target::OnRequest(const Request& request, bool may_guarantee) {
  if (request.next_hdr != NextHdr::kRequestStd) {
    parts_.statistics->Count(Statistic::kDropPdsType);
    return {.kind = Verdict::Kind::kDropped};
  }
  if (request.ses.size() < SesStd::kBytes) {
    parts_.statistics->Count(Statistic::kDropSes);
    return {.kind = Verdict::Kind::kDropped};
  }
  Packet packet = {request, SesStd::Decode(request.ses.data()),
                   request.ses.subspan(SesStd::kBytes), may_guarantee};
  SesStd& header = packet.header;
  if (header.ver != 0) {
    return OnContradiction(packet);
  }
  if (header.opcode == SesOpcode::kNoOp) {
    return OnNoOp(packet);
  }
  if (header.opcode == SesOpcode::kDeferrableSend) {
    // Executed as a send; its offset is two tokens (UET 4.14).
    header.opcode = SesOpcode::kSend;
    packet.deferrable = true;
  } else if (header.opcode == SesOpcode::kDeferrableTsend) {
    header.opcode = SesOpcode::kTaggedSend;
    packet.deferrable = true;
  } else if (header.opcode == SesOpcode::kDeferrableRtr) {
    return OnReady(packet);
  } else if (header.opcode == SesOpcode::kRead && header.ie == 0) {
    // The last packet follows from the length: a peer may leave eom out.
    const uint64_t asked = header.som != 0
                               ? std::min(mtu_, header.request_length)
                               : header.payload_length;
    if (packet.offset() + asked == header.request_length) {
      header.eom = 1;
    }
  }
  if (packet.deferrable && header.som == 0 && header.eom != 0 &&
      packet.payload.empty() && header.payload_length == 0) {
    header.ie = 1;  // Its initiator ends a message that was deferred.
  }
  const bool offered = packet.header.opcode == SesOpcode::kSend ||
                       packet.header.opcode == SesOpcode::kWrite ||
                       packet.header.opcode == SesOpcode::kRead ||
                       packet.header.opcode == SesOpcode::kTaggedSend;
  if (!offered) {
    return Error(packet, rules::AnswerToFirst(PartOf(packet), {}).code);
  }
  if (Contradicts(packet)) {
    return OnContradiction(packet);
  }
  return packet.header.opcode == SesOpcode::kSend    ? OnSend(packet)
         : packet.header.opcode == SesOpcode::kWrite ? OnWrite(packet)
         : packet.header.opcode == SesOpcode::kRead  ? OnRead(packet)
                                                     : OnTaggedSend(packet);
}

uint32_t Target::OpenMessage(const Packet& packet, uint64_t room) {
  const uint32_t handle =
      table_.Open(KeyOf(packet.request, packet.header.message_id));
  if (handle != kNone) {
    if (handle >= open_.size()) {
      open_.resize(handle + 1);
    }
    Open& open = open_[handle];
    open.opcode = packet.header.opcode;
    open.job_id = packet.header.job_id;
    std::construct_at(&open.receive, packet.header.request_length, room);
    open.report = {};
    open.landing.kind = Landing::Kind::kPlain;
    open.read = kNone;
    open.refused = open.ended = false;
    open.code = ReturnCode::kNull;
  }
  return handle;
}

Verdict Target::Account(const Packet& packet, uint32_t handle,
                        ReceiveMessage::Verdict* place) {
  Open& open = open_[handle];
  *place = {};
  if (open.ended) {
    return Rest(packet, open.code);
  }
  const bool same = open.opcode == packet.header.opcode &&
                    open.job_id == packet.header.job_id;
  if (same) {
    *place = open.receive.Accept(PieceOf(packet));
  }
  switch (place->action) {
    case ReceiveMessage::Action::kAccepted:
      if (packet.header.som != 0 && packet.header.hd != 0) {
        open.report.names.header_data = packet.header.header_data;
      }
      return {};
    case ReceiveMessage::Action::kDuplicate:
      return {};
    case ReceiveMessage::Action::kFull:
      return Refuse(NackCode::kNoResource);
    case ReceiveMessage::Action::kMalformed:
      break;
  }
  if (!packet.may_guarantee) {
    return Refuse(NackCode::kNoGtdDelAvail);
  }
  open.receive.Fail(Status::kInitiatorError,
                    static_cast<uint16_t>(ReturnCode::kInitiatorErr));
  open.code = ReturnCode::kOpViolation;
  End(open);
  return Illegal(packet);
}

Verdict Target::AccountAndWrite(const Packet& packet, uint32_t handle,
                                uint64_t address, bool told) {
  ReceiveMessage& receive = open_[handle].receive;
  std::optional<ReceiveMessage> before;
  if (told && !packet.may_guarantee) {
    before = receive;
  }
  ReceiveMessage::Verdict place;
  const Verdict verdict = Account(packet, handle, &place);
  if (place.place_bytes == 0 ||
      parts_.host->Write(address, packet.payload.first(place.place_bytes))) {
    return verdict;
  }
  if (before) {
    receive = *before;
    return Refuse(NackCode::kNoGtdDelAvail);
  }
  receive.Fail(Status::kLocalAccess, 0);
  return told ? Error(packet, ReturnCode::kHostUnsuccessCmpl) : verdict;
}

Verdict Target::Deny(const Packet& packet, const Verdict& verdict) {
  if (packet.request.ordered || packet.single() ||
      verdict.kind != Verdict::Kind::kAccepted) {
    return verdict;
  }
  const uint32_t handle = OpenMessage(packet, 0);
  if (handle == kNone) {
    return Refuse(NackCode::kNoSesMsgAvail);
  }
  open_[handle].refused = true;
  open_[handle].code = verdict.response.return_code;
  PartOfDenied(packet, handle);
  return verdict;
}

Verdict Target::PartOfDenied(const Packet& packet, uint32_t handle) {
  ReceiveMessage::Verdict place;
  const ReturnCode code = open_[handle].code;
  const Verdict verdict = Account(packet, handle, &place);
  CloseIfOver(packet, handle);
  return verdict.kind == Verdict::Kind::kAccepted ? Rest(packet, code)
                                                  : verdict;
}

void Target::End(Open& open) {
  if (open.ended) {
    return;
  }
  open.ended = true;
  if (open.refused) {
    return;
  }
  if (open.landing.kind != Landing::Kind::kPlain) {
    EndMatch(open);
    return;
  }
  const semantics::Outcome outcome = open.receive.outcome();
  if (open.opcode == SesOpcode::kSend) {
    EndReceive(open.report, open.buffer, outcome);
  } else if (open.read != kNone) {
    reads_[open.read].asked = true;
    reads_[open.read].failed |= outcome.status != Status::kOk;
    EndReadIfOver(open.read);
  } else if (outcome.status == Status::kOk) {
    EndRma(open.report, outcome.message_length);
  } else {
    parts_.queues->Release(open.report.ticket);
  }
}

void Target::CloseIfOver(const Packet& packet, uint32_t handle) {
  Open& open = open_[handle];
  if (open.receive.complete()) {
    End(open);
    Close(handle);
  } else if (open.ended && packet.request.ordered && packet.header.eom != 0) {
    Close(handle);
  }
}

void Target::Close(uint32_t handle) {
  table_.Close(handle);
}

void Target::OnTargetClosed(const wire::FabricAddress& source, uint16_t spdcid,
                            bool in_error) {
  if (in_error) {
    matching_.OnSenderLost(source, spdcid);
  }
  for (uint32_t at = table_.oldest(); at != kNone;) {
    const uint32_t handle = at;
    at = table_.Next(at);
    const semantics::MessageKey& key = table_.key(handle);
    if (key.pdcid == spdcid && key.address_lo == source.lo &&
        key.address_hi == source.hi && key.ipv6 == source.ipv6) {
      open_[handle].receive.Fail(
          Status::kInitiatorError,
          static_cast<uint16_t>(ReturnCode::kInitiatorErr));
      End(open_[handle]);
      Close(handle);
    }
  }
}

}  // namespace heddle::soft::engine
