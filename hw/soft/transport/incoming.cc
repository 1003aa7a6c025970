// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/incoming.h"

#include <algorithm>

#include "hw/soft/transport/control_packets.h"

namespace heddle::soft::transport {

using contract::NextHdr;
using contract::PdsType;
using contract::wire::PdsAck;
using contract::wire::PdsAckCc;
using contract::wire::PdsRequest;
using contract::wire::SesResponse;
using contract::wire::SesResponseData;
using contract::wire::SesStd;

namespace {

// What ACK_CCX adds to ACK_CC, and NACK_CCX to NACK.
constexpr size_t kAckCcxBytes = 8;
constexpr size_t kNackCcxBytes = 16;

// Length of headers; whether a payload may follow.
struct Form {
  size_t bytes;
  bool payload = false;
};

// Empty for a type or next header that is none of the profile's.
std::optional<Form> FormOfSes(NextHdr next, bool request) {
  switch (next) {
    case NextHdr::kNone:
      return request ? std::nullopt : std::optional<Form>({.bytes = 0});
    case NextHdr::kRequestStd:
      return request ? std::optional<Form>({SesStd::kBytes, true})
                     : std::nullopt;
    case NextHdr::kResponse:
      return Form{.bytes = SesResponse::kBytes};
    case NextHdr::kResponseData:
      return Form{SesResponseData::kBytes, true};
    default:
      return std::nullopt;
  }
}

std::optional<Form> FormOf(const contract::wire::PdsPrologue& prologue) {
  constexpr uint8_t kNackOfRudi = 8;
  size_t pds = 0;
  bool request = false;
  switch (prologue.type) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
      request = true;
      pds = PdsRequest::kBytes;
      break;
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq:
      request = true;
      pds = PdsRequest::kBytes + contract::wire::PdsCcState::kBytes;
      break;
    case PdsType::kAck:
      pds = PdsAck::kBytes;
      break;
    case PdsType::kAckCc:
      pds = PdsAck::kBytes + PdsAckCc::kBytes;
      break;
    case PdsType::kAckCcx:
      pds = PdsAck::kBytes + PdsAckCc::kBytes + kAckCcxBytes;
      break;
    case PdsType::kNack:
    case PdsType::kNackCcx:
      if (prologue.next_hdr != NextHdr::kNone ||
          (prologue.flags & kNackOfRudi) != 0) {
        return std::nullopt;
      }
      return Form{contract::wire::PdsNack::kBytes +
                  (prologue.type == PdsType::kNack ? 0 : kNackCcxBytes)};
    case PdsType::kCp:
      return Form{BytesOf(static_cast<contract::CpType>(prologue.next_hdr))};
    default:
      return std::nullopt;
  }
  std::optional<Form> form = FormOfSes(prologue.next_hdr, request);
  if (form) {
    form->bytes += pds;
  }
  return form;
}

}  // namespace

std::optional<contract::Statistic> FindFault(
    const contract::wire::PdsPrologue& prologue, size_t bytes) {
  using contract::Statistic;
  const std::optional<Form> form = FormOf(prologue);
  if (!form) {
    return Statistic::kDropPdsType;
  }
  if (bytes < form->bytes) {
    return Statistic::kDropTruncated;
  }
  if (bytes > form->bytes && !form->payload) {
    return Statistic::kDropSes;
  }
  return std::nullopt;
}

bool ReadAck(std::span<const uint8_t> bytes, IncomingAck* ack, bool* probe) {
  if (bytes.size() < PdsAck::kBytes) {
    return false;
  }
  const PdsAck header = PdsAck::Decode(bytes.data());
  size_t length = PdsAck::kBytes;
  AckFacts& facts = ack->facts;
  if (header.type != PdsType::kAck) {
    length += PdsAckCc::kBytes;
    length += header.type == PdsType::kAckCcx ? kAckCcxBytes : 0;
    if (bytes.size() < length) {
      return false;
    }
    const PdsAckCc cc = PdsAckCc::Decode(bytes.data() + PdsAck::kBytes);
    facts.selective = true;
    facts.sack_base =
        header.cack_psn + static_cast<uint32_t>(int32_t{cc.sack_psn_offset});
    facts.sack = cc.sack_bitmap;
    facts.service_ns = cc.cc_type == 0 ? cc.service_time * uint64_t{128} : 0;
  }
  facts.cack = header.cack_psn;
  facts.psn =
      header.cack_psn + static_cast<uint32_t>(int32_t{header.ack_psn_offset});
  facts.marked = header.m != 0;
  facts.retx = header.retx != 0;
  ack->spdcid = header.spdcid;
  ack->dpdcid = header.dpdcid;
  ack->req = header.req;
  ack->next_hdr = header.next_hdr;
  ack->ses = bytes.subspan(length);
  *probe = header.p != 0;
  return true;
}

bool ReadRequest(const wire::Datagram& datagram, IncomingRequest* request) {
  const std::span<const uint8_t> bytes = datagram.bytes;
  if (bytes.size() < PdsRequest::kBytes) {
    return false;
  }
  const PdsRequest header = PdsRequest::Decode(bytes.data());
  size_t length = PdsRequest::kBytes;
  if (header.type == PdsType::kRudCcReq || header.type == PdsType::kRodCcReq) {
    length += contract::wire::PdsCcState::kBytes;
  }
  if (bytes.size() < length) {
    return false;
  }
  request->header = header;
  const bool ordered =
      header.type == PdsType::kRodReq || header.type == PdsType::kRodCcReq;
  request->ses = bytes.subspan(length);
  request->datagram = &datagram;
  const auto clear = static_cast<uint32_t>(int32_t{header.clear_psn_offset});
  request->arrival = {.packet = {.trim = datagram.trim,
                                 .psn = header.psn,
                                 .clear_psn = header.psn + clear,
                                 .ordered = ordered,
                                 .syn = header.syn != 0,
                                 .retx = header.retx != 0,
                                 .ar = header.ar != 0,
                                 .marked = datagram.congestion},
                      .bytes = static_cast<uint32_t>(bytes.size())};
  if (header.next_hdr == NextHdr::kRequestStd &&
      request->ses.size() >= SesStd::kBytes) {
    const SesStd ses = SesStd::Decode(request->ses.data());
    request->arrival.message_id = ses.message_id;
    request->arrival.whole = ses.ie == 0;
    request->arrival.job_id = ses.job_id;
    request->arrival.request_length = ses.request_length;
  }
  return true;
}

rules::Packet PacketOf(const contract::wire::PdsCp& cp,
                       const wire::Datagram& datagram) {
  return {.kind = KindOf(cp.cp_type),
          .psn = cp.psn,
          .clear_psn = cp.payload,
          .retx = cp.retx != 0,
          .ar = true,
          .marked = datagram.congestion};
}

bool ReadResponse(const IncomingAck& ack, SesResponse* response,
                  std::span<const uint8_t>* data, uint32_t* data_offset) {
  *data = {};
  *data_offset = 0;
  if (ack.next_hdr == NextHdr::kResponse) {
    if (ack.ses.size() < SesResponse::kBytes) {
      return false;
    }
    *response = SesResponse::Decode(ack.ses.data());
    return response->opcode == contract::SesResponse::kResponse;
  }
  if (ack.next_hdr != NextHdr::kResponseData ||
      ack.ses.size() < SesResponseData::kBytes) {
    return false;
  }
  const SesResponseData header = SesResponseData::Decode(ack.ses.data());
  if (header.opcode != contract::SesResponse::kResponseWData ||
      header.payload_length > ack.ses.size() - SesResponseData::kBytes) {
    return false;
  }
  response->list = header.list;
  response->opcode = header.opcode;
  response->return_code = header.return_code;
  response->message_id = header.read_request_message_id;
  response->job_id = header.job_id;
  response->modified_length = header.modified_length;
  *data = ack.ses.subspan(SesResponseData::kBytes, header.payload_length);
  *data_offset = header.message_offset;
  return true;
}

}  // namespace heddle::soft::transport
