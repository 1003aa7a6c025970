// SPDX-License-Identifier: Apache-2.0
// WRITE and READ at their target.
#include <algorithm>
#include <array>

#include "hw/soft/engine/target.h"

namespace heddle::soft::engine {

using contract::NackCode;
using contract::NextHdr;
using contract::ReturnCode;
using contract::Statistic;
using contract::Status;
using contract::wire::SesResponse;
using contract::wire::SesResponseData;
using contract::wire::SesStd;
using semantics::kNone;
using semantics::ReceiveMessage;
using transport::ReturnData;
using transport::Verdict;

Regions::Answer Target::Check(const Packet& packet, uint32_t length) const {
  const SesStd& header = packet.header;
  const RxName name = NameOf(header);
  const rules::Aim aim = AimOf(packet, rings_.Find(name));
  const ReturnCode code = rules::RefusalOf(PartOf(packet), aim);
  if (code != ReturnCode::kNull) {
    return {code, kNone, 0};
  }
  return regions_.Check({
      .opcode = header.opcode,
      .key = header.match_bits,
      .buffer_offset = header.buffer_offset,
      .request_length = header.request_length,
      .message_offset = packet.offset(),
      .length = length,
      .job_id = header.job_id,
      .endpoint = Regions::Endpoint(header.pid_on_fep, header.resource_index,
                                    name.relative),
  });
}

bool Target::Prepare(const Packet& packet, uint32_t region, Report* report,
                     Verdict* verdict) {
  const SesStd& header = packet.header;
  // There is one, or `Check` had said so.
  const uint32_t context = rings_.Find(NameOf(header));
  *report = ReportTo(packet, context);
  report->region_counter = regions_.counter(region);
  if (header.hd == 0 &&
      (rings_[context].cfg.flags & contract::kRxCtxFlagRegionEvent) == 0) {
    return true;
  }
  report->ticket = parts_.queues->Reserve(rings_[context].cq());
  if (!report->ticket.valid()) {
    *verdict = Refuse(NackCode::kNoResource);
    return false;
  }
  return true;
}

// -- WRITE

Verdict Target::OnWrite(const Packet& packet) {
  const bool ie = packet.header.ie != 0;
  const auto bytes = ie ? 0 : static_cast<uint32_t>(packet.payload.size());
  const Regions::Answer access = Check(packet, bytes);
  if (packet.single()) {
    if (access.code != ReturnCode::kOk) {
      return Error(packet, access.code);
    }
    return !ie && bytes != packet.header.request_length
               ? Illegal(packet)
               : WholeWrite(packet, access);
  }
  uint32_t handle =
      table_.Find(KeyOf(packet.request, packet.header.message_id));
  if (handle != kNone && open_[handle].refused) {
    return PartOfDenied(packet, handle);
  }
  if (handle == kNone) {
    if (access.code != ReturnCode::kOk) {
      return Deny(packet, Error(packet, access.code));
    }
    if (packet.request.ordered && packet.header.som == 0) {
      return Illegal(packet);
    }
    Report report;
    Verdict verdict;
    if (!Prepare(packet, access.region, &report, &verdict)) {
      return verdict;
    }
    handle = OpenMessage(packet, packet.header.request_length);
    if (handle == kNone) {
      parts_.queues->Release(report.ticket);
      return Refuse(NackCode::kNoSesMsgAvail);
    }
    open_[handle].report = report;
  }
  return PartOfWrite(packet, handle, access);
}

Verdict Target::WholeWrite(const Packet& packet,
                           const Regions::Answer& access) {
  parts_.statistics->Count(Statistic::kRxRma);
  if (packet.header.ie != 0) {
    return {};
  }
  Report report;
  Verdict verdict;
  if (!Prepare(packet, access.region, &report, &verdict)) {
    return verdict;
  }
  if (!packet.payload.empty() &&
      !parts_.host->Write(access.address, packet.payload)) {
    parts_.queues->Release(report.ticket);
    return Error(packet, ReturnCode::kHostUnsuccessCmpl);
  }
  EndRma(report, packet.header.request_length);
  return {};
}

Verdict Target::PartOfWrite(const Packet& packet, uint32_t handle,
                            const Regions::Answer& access) {
  Open& open = open_[handle];
  Verdict refused;
  if (access.code != ReturnCode::kOk) {
    refused = Error(packet, access.code);
    if (refused.kind != Verdict::Kind::kAccepted) {
      return refused;
    }
    open.receive.Fail(Status::kRemoteError, static_cast<uint16_t>(access.code));
  }
  if (packet.header.hd != 0 && !open.ended && !open.report.ticket.valid()) {
    // Its first packet to come did not say so.
    Report report;
    if (access.region != kNone &&
        !Prepare(packet, access.region, &report, &refused)) {
      return refused;
    }
    open.report.ticket = report.ticket;
  }
  const Verdict verdict =
      AccountAndWrite(packet, handle, access.address, /*told=*/true);
  if (verdict.kind == Verdict::Kind::kRefused) {
    return verdict;
  }
  parts_.statistics->Count(Statistic::kRxRma);
  CloseIfOver(packet, handle);
  return access.code != ReturnCode::kOk ? refused : verdict;
}

// -- READ

uint32_t Target::AskedBytes(const Packet& packet) const noexcept {
  const SesStd& header = packet.header;
  if (header.ie != 0) {
    return 0;
  }
  if (header.som == 0) {
    return header.payload_length;
  }
  return header.eom != 0 ? header.request_length
                         : std::min(mtu_, header.request_length);
}

Verdict Target::OnRead(const Packet& packet) {
  const uint32_t bytes = AskedBytes(packet);
  const uint32_t total = packet.header.request_length;
  uint32_t handle =
      packet.single()
          ? kNone
          : table_.Find(KeyOf(packet.request, packet.header.message_id));
  if (handle != kNone &&
      (open_[handle].ended || open_[handle].opcode != packet.header.opcode)) {
    // No read has that name, or none any more: it has no place.
    const Verdict illegal = Illegal(packet);
    if (illegal.kind == Verdict::Kind::kAccepted) {
      CloseIfOver(packet, handle);
    }
    return illegal;
  }
  const Regions::Answer access = Check(packet, bytes);
  if (access.code != ReturnCode::kOk) {
    return DenyRead(packet, handle, access.code);
  }
  if (total <= contract::kReturnDataInAck && packet.single()) {
    return SmallRead(packet, access);
  }
  uint32_t read = kNone;
  Verdict verdict;
  if (!Follow(packet, access, &handle, &read, &verdict)) {
    return verdict;
  }
  ReturnData data = {
      .region = access.region,
      .address = access.address,
      .length = bytes,
      .offset = packet.offset(),
      .total = total,
      .job_id = packet.header.job_id,
      .message_id = packet.header.message_id,
      .region_generation = regions_.generation(access.region),
      .open_message = read,
      .open_generation = read == kNone ? 0 : reads_[read].generation,
  };
  if (packet.header.ie == 0 &&
      !transport_->PostReturn(packet.request.pdc, data)) {
    if (packet.single() && read != kNone) {
      reads_[read].asked = reads_[read].failed = true;
      EndReadIfOver(read);
    }
    return Refuse(NackCode::kNoResource);
  }
  parts_.statistics->Count(Statistic::kRxRma);
  return Asked(packet, handle, read);
}

Verdict Target::DenyRead(const Packet& packet, uint32_t handle,
                         ReturnCode code) {
  const Verdict verdict = Error(packet, code);
  if (packet.single() || verdict.kind != Verdict::Kind::kAccepted) {
    return verdict;
  }
  if (packet.request.ordered) {
    if (handle != kNone) {
      open_[handle].receive.Fail(Status::kRemoteError, 0);
      End(open_[handle]);
      Close(handle);
    }
    return verdict;
  }
  // Others of its packets may come to a region that has appeared since.
  if (handle == kNone) {
    handle = OpenMessage(packet, 0);
    if (handle == kNone) {
      return Refuse(NackCode::kNoSesMsgAvail);
    }
    open_[handle].refused = true;
  }
  open_[handle].receive.Fail(Status::kRemoteError, 0);
  ReceiveMessage::Verdict place;
  const Verdict counted = Account(packet, handle, &place);
  CloseIfOver(packet, handle);
  return counted.kind == Verdict::Kind::kAccepted ? verdict : counted;
}

Verdict Target::SmallRead(const Packet& packet, const Regions::Answer& access) {
  const uint32_t bytes = packet.header.request_length;
  if (packet.header.ie != 0) {
    return {};
  }
  if (bytes != 0 && !packet.may_guarantee) {
    return Refuse(NackCode::kNoGtdDelAvail);
  }
  Report report;
  Verdict verdict;
  if (!Prepare(packet, access.region, &report, &verdict)) {
    return verdict;
  }
  const std::span<uint8_t> data = std::span<uint8_t>(small_).first(bytes);
  if (bytes != 0 && !parts_.host->Read(access.address, data)) {
    parts_.queues->Release(report.ticket);
    return Error(packet, ReturnCode::kHostUnsuccessCmpl);
  }
  parts_.statistics->Count(Statistic::kRxRma);
  EndRma(report, bytes);
  if (bytes != 0) {
    // Kept until the initiator has it: memory may change meanwhile.
    verdict.respond = true;
    verdict.guaranteed = true;
    verdict.response.opcode = contract::SesResponse::kResponseWData;
    verdict.response.return_code = ReturnCode::kOk;
    verdict.response.message_id = packet.header.message_id;
    verdict.response.job_id = packet.header.job_id;
    verdict.response.modified_length = bytes;
    verdict.data = data;
  }
  return verdict;
}

bool Target::Follow(const Packet& packet, const Regions::Answer& access,
                    uint32_t* handle, uint32_t* read, Verdict* verdict) {
  if (*handle != kNone) {
    *read = open_[*handle].read;
    return true;
  }
  const uint32_t context = rings_.Find(NameOf(packet.header));
  const RxContext& rx = rings_[context];
  const bool told = rx.counter_remote_read() != 0 ||
                    (rx.cfg.flags & contract::kRxCtxFlagRegionEvent) != 0;
  if (!told || (packet.request.ordered && packet.header.som == 0)) {
    return true;
  }
  Report report;
  if (!Prepare(packet, access.region, &report, verdict)) {
    return false;
  }
  const uint32_t at = free_reads_.Pop(reads_);
  const uint32_t opened =
      at == kNone || packet.single()
          ? kNone
          : OpenMessage(packet, packet.header.request_length);
  if (at == kNone || (opened == kNone && !packet.single())) {
    parts_.queues->Release(report.ticket);
    if (at != kNone) {
      free_reads_.Push(reads_, at);
    }
    *verdict = Refuse(NackCode::kNoSesMsgAvail);
    return false;
  }
  const uint32_t generation = reads_[at].generation + 1;
  reads_[at] = {.report = report,
                .length = packet.header.request_length,
                .generation = generation};
  if (opened != kNone) {
    open_[opened].read = at;
  }
  *handle = opened;
  *read = at;
  return true;
}

Verdict Target::Asked(const Packet& packet, uint32_t handle, uint32_t at) {
  const uint32_t records = packet.header.ie == 0 ? 1 : 0;
  if (handle == kNone) {
    if (at != kNone) {
      reads_[at].records = records;
      reads_[at].asked = true;
      reads_[at].failed = records == 0;
      EndReadIfOver(at);
    }
    return {};
  }
  ReceiveMessage::Verdict place;
  const Verdict verdict = Account(packet, handle, &place);
  if (verdict.kind != Verdict::Kind::kAccepted || open_[handle].ended) {
    return verdict;
  }
  if (at != kNone) {
    reads_[at].records += records;
  }
  CloseIfOver(packet, handle);
  return verdict;
}

void Target::EndReadIfOver(uint32_t at) {
  Read& read = reads_[at];
  if (!read.asked || read.records != 0) {
    return;
  }
  if (read.failed) {
    parts_.queues->Release(read.report.ticket);
  } else {
    EndRma(read.report, read.length);
  }
  read.asked = false;
  ++read.generation;
  free_reads_.Push(reads_, at);
}

transport::TransportClient::Built Target::BuildReturn(const ReturnData& data,
                                                      std::span<uint8_t> out) {
  ReturnCode code = ReturnCode::kBadMkey;
  if (out.size() < SesResponseData::kBytes) {
    return {};
  }
  if (regions_.Alive(data.region, data.region_generation)) {
    code = ReturnCode::kHostUnsuccessCmpl;
    if (out.size() - SesResponseData::kBytes >= data.length &&
        parts_.host->Read(data.address,
                          out.subspan(SesResponseData::kBytes, data.length))) {
      SesResponseData header;
      header.opcode = contract::SesResponse::kResponseWData;
      header.return_code = ReturnCode::kOk;
      header.response_message_id = data.message_id;
      header.job_id = data.job_id;
      header.read_request_message_id = data.message_id;
      header.payload_length = static_cast<uint16_t>(data.length);
      header.modified_length = data.total;
      header.message_offset = data.offset;
      header.Encode(out.data());
      return {NextHdr::kResponseData, SesResponseData::kBytes + data.length,
              false};
    }
  }
  SesResponse response;
  response.opcode = contract::SesResponse::kResponse;
  response.return_code = code;
  response.message_id = data.message_id;
  response.job_id = data.job_id;
  response.Encode(out.data());
  return {NextHdr::kResponse, SesResponse::kBytes, false};
}

void Target::OnReturnRetired(const ReturnData& data) {
  if (data.open_message >= reads_.size()) {
    return;
  }
  Read& read = reads_[data.open_message];
  if (read.generation == data.open_generation && read.records != 0) {
    --read.records;
    EndReadIfOver(data.open_message);
  }
}

}  // namespace heddle::soft::engine
