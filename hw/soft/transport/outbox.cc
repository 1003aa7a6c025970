// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/outbox.h"

#include <algorithm>
#include <cstring>

#include "hw/soft/transport/control_packets.h"

namespace heddle::soft::transport {

using contract::NextHdr;
using contract::PdsType;
using contract::Statistic;
using contract::wire::PdsAck;
using contract::wire::PdsAckCc;
using contract::wire::PdsCp;
using contract::wire::PdsNack;
using contract::wire::SesResponse;
using contract::wire::SesResponseData;
using wire::DatagramWire;
using wire::Path;

namespace {

// UET 2.14: the destination tracks rules::kWindow PSNs of an unordered PDC; the
// field's smallest value but 0 is 128 of them.
constexpr uint8_t kUnorderedRange = 1;

void EncodeCc(const Core& core, const Pdc& pdc, uint8_t* out) {
  const ReceiveHalf& receive = pdc.receive;
  PdsAckCc cc;
  cc.mpr = pdc.ordered ? uint8_t{contract::kOrderedRange} : kUnorderedRange;
  cc.sack_psn_offset = 1;
  cc.sack_bitmap = rules::SackBitmap(receive.window);
  cc.service_time = rules::ServiceField(core.now_ns - receive.received_at);
  cc.rcvd_bytes = rules::ReceivedField(receive.received_bytes);
  cc.nscc_ooo_count = static_cast<uint16_t>(std::popcount(cc.sack_bitmap));
  cc.Encode(out);
}

// Writes the SES part of an ACK; returns its length.
size_t EncodeResponse(const AckOut& ack, const LastSuccess& success,
                      NextHdr* next_hdr, uint8_t* out) {
  if (ack.plain) {
    *next_hdr = NextHdr::kNone;
    return 0;
  }
  if (ack.response == nullptr || !ack.response->with_data) {
    SesResponse header;
    header.message_id = ack.message_id;
    // Without a code it says no more than the acknowledgement.
    if (success.any && success.psn == ack.psn) {
      header.return_code = contract::ReturnCode::kOk;
      header.message_id = success.message_id;
      header.job_id = success.job_id;
      header.modified_length = success.length;
    }
    *next_hdr = NextHdr::kResponse;
    (ack.response != nullptr ? ack.response->header : header).Encode(out);
    return SesResponse::kBytes;
  }
  const Response& response = *ack.response;
  SesResponseData header;
  header.list = response.header.list;
  header.opcode = contract::SesResponse::kResponseWData;
  header.return_code = response.header.return_code;
  header.response_message_id = response.header.message_id;
  header.job_id = response.header.job_id;
  header.read_request_message_id = response.header.message_id;
  header.payload_length = response.data_bytes;
  header.modified_length = response.header.modified_length;
  header.message_offset = response.data_offset;
  header.Encode(out);
  std::memcpy(out + SesResponseData::kBytes, response.data.data(),
              response.data_bytes);
  *next_hdr = NextHdr::kResponseData;
  return SesResponseData::kBytes + response.data_bytes;
}

}  // namespace

Path PathBack(const wire::Datagram& datagram) {
  return {.destination = datagram.source,
          .port = 0,
          .recorded_port = datagram.source_udp_port,
          .next_hop = 0,
          .link = datagram.link,
          .entropy = datagram.source_udp_port,
          .dscp = datagram.dscp,
          .source_port = datagram.destination_port};
}

StoredResponse* FindStored(Pdc* pdc, uint32_t psn) {
  if (pdc->receive.kept == 0) {
    return nullptr;
  }
  for (StoredResponse& stored : pdc->receive.stored) {
    if (stored.used && stored.psn == psn) {
      return &stored;
    }
  }
  return nullptr;
}

bool SendAck(Core* core, Pdc* pdc, AckOut ack) {
  const rules::AckSays says =
      rules::AckOf(pdc->receive.window, ack.what, ack.psn, kAnswerRules);
  ack.psn = says.psn;
  if (says.stored && ack.response == nullptr) {
    const StoredResponse* const stored = FindStored(pdc, says.psn);
    ack.response = stored == nullptr ? nullptr : &stored->response;
  }
  const bool extended = !pdc->ordered || ack.syn || core->settings.congestion;
  uint8_t* out = core->wire->Room().data();
  size_t bytes = PdsAck::kBytes;
  if (extended) {
    EncodeCc(*core, *pdc, out + bytes);
    bytes += PdsAckCc::kBytes;
  }
  PdsAck header;
  bytes +=
      EncodeResponse(ack, pdc->receive.success, &header.next_hdr, out + bytes);
  header.type = extended ? PdsType::kAckCc : PdsType::kAck;
  header.m = ack.marked ? 1 : 0;
  header.retx = ack.retx ? 1 : 0;
  header.req = ack.close     ? contract::AckReq::kClose
               : says.stored ? contract::AckReq::kClear
                             : contract::AckReq::kNone;
  header.cack_psn = says.cack;
  header.ack_psn_offset = static_cast<int16_t>(says.psn - says.cack);
  header.spdcid = pdc->id;
  header.dpdcid = pdc->peer_id;
  header.Encode(out);
  if (core->wire->Send(pdc->path, bytes) ==
      DatagramWire::SendOutcome::kBlocked) {
    return false;
  }
  core->Count(Statistic::kTxAcks);
  return true;
}

bool SendNack(Core* core, const Path& path, const NackOut& nack) {
  PdsNack header;
  header.type = PdsType::kNack;
  header.m = nack.marked ? 1 : 0;
  header.retx = nack.retx ? 1 : 0;
  header.nack_code = nack.code;
  header.nack_psn = nack.psn;
  header.spdcid = nack.spdcid;
  header.dpdcid = nack.dpdcid;
  header.payload = nack.code == contract::NackCode::kRodOoo ? nack.expected : 0;
  header.Encode(core->wire->Room().data());
  if (core->wire->Send(path, PdsNack::kBytes) ==
      DatagramWire::SendOutcome::kBlocked) {
    return false;
  }
  core->Count(Statistic::kTxNacks);
  return true;
}

void AnswerStranger(Core* core, const wire::Datagram& datagram,
                    const rules::Judgement& judgement, uint32_t psn,
                    uint16_t dpdcid) {
  if (judgement.counted) {
    core->Count(*judgement.counted);
  }
  if (judgement.outcome == rules::Outcome::kStrange) {
    SendNack(core, PathBack(datagram),
             {.code = judgement.code,
              .psn = psn,
              .marked = datagram.congestion,
              .dpdcid = dpdcid});
  }
}

bool SendCp(Core* core, const Pdc& pdc, const CpOut& cp) {
  PdsCp header;
  header.type = PdsType::kCp;
  header.cp_type = cp.type;
  header.ar = cp.ar ? 1 : 0;
  header.retx = cp.retx ? 1 : 0;
  header.psn = cp.psn;
  header.spdcid = pdc.id;
  header.dpdcid = pdc.peer_id;
  header.payload = cp.payload;
  header.Encode(core->wire->Room().data());
  return core->wire->Send(pdc.path, PdsCp::kBytes) ==
         DatagramWire::SendOutcome::kSent;
}

uint64_t FunctionBehind(Core* core, const Pdc& pdc) {
  PdsAck header;
  header.type = PdsType::kAck;
  header.spdcid = pdc.id;
  header.dpdcid = pdc.peer_id;
  header.Encode(core->wire->Room().data());
  return core->wire->ReceiverOf(pdc.path, PdsAck::kBytes);
}

void SendOffer(Core* core, const Pdc& pdc, uint32_t psn) {
  constexpr size_t kBytes = BytesOf(contract::CpType::kNegotiation);
  PdsCp header;
  header.type = PdsType::kCp;
  header.cp_type = contract::CpType::kNegotiation;
  header.isrod = pdc.ordered ? 1 : 0;
  header.psn = psn;
  header.spdcid = pdc.id;
  header.dpdcid = pdc.peer_id;
  contract::wire::PdsNegotiation features;
  features.neg_type = 1;
  features.length = 2;
  uint8_t* out = core->wire->Room().data();
  header.Encode(out);
  features.Encode(out + kNegotiationAt);
  // Lost or not sent: the peer asks again.
  static_cast<void>(core->wire->Send(pdc.path, kBytes));
}

void SendProbeAnswer(Core* core, const Pdc& pdc, uint16_t opaque) {
  PdsAck header;
  header.type = PdsType::kAck;
  header.p = 1;
  header.probe_opaque = opaque;
  header.cack_psn = pdc.receive.window.cack();
  header.spdcid = pdc.id;
  header.dpdcid = pdc.peer_id;
  header.Encode(core->wire->Room().data());
  if (core->wire->Send(pdc.path, PdsAck::kBytes) ==
      DatagramWire::SendOutcome::kSent) {
    core->Count(Statistic::kTxAcks);
  }
}

}  // namespace heddle::soft::transport
