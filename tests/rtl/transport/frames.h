// SPDX-License-Identifier: Apache-2.0
// Reference frames: built with the generated wire encoders.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/rtl/transport/records.h"

namespace heddle::test {

using Bytes = std::vector<uint8_t>;

template <typename Header>
void AppendHeader(Bytes& out, const Header& header) {
  out.resize(out.size() + Header::kBytes);
  header.Encode(out.data() + out.size() - Header::kBytes);
}

// Ones' complement sum of big-endian 16-bit words, an odd last byte padded.
inline uint16_t OnesSum(const uint8_t* data, size_t size, uint32_t sum = 0) {
  for (size_t i = 0; i < size; ++i) {
    sum += i % 2 == 0 ? uint32_t{data[i]} << 8 : data[i];
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>(sum);
}

struct Route {
  uint64_t source_mac = 0;
  uint64_t destination_mac = 0;
  uint32_t source = 0;
  uint32_t destination = 0;
  uint8_t dscp = 0;
  uint16_t entropy = 0;
};

// Ethernet, IPv4 and UDP around `datagram` (PDS header to end of payload).
inline Bytes Frame(const Route& route, const Bytes& datagram) {
  namespace wire = contract::wire;
  Bytes out;
  AppendHeader(out, wire::Ethernet{.destination = route.destination_mac,
                                   .source = route.source_mac,
                                   .ethertype = 0x0800});
  wire::Ipv4 ip = {};
  ip.version = 4;
  ip.ihl = 5;
  ip.dscp = route.dscp;
  ip.total_length = static_cast<uint16_t>(28 + datagram.size());
  ip.flags = 2;
  ip.ttl = 64;
  ip.protocol = 17;
  ip.source = route.source;
  ip.destination = route.destination;
  uint8_t encoded[wire::Ipv4::kBytes];
  ip.Encode(encoded);
  ip.checksum = static_cast<uint16_t>(~OnesSum(encoded, sizeof encoded));
  AppendHeader(out, ip);

  wire::Udp udp = {};
  udp.source_port = route.entropy;
  udp.destination_port = 4793;
  udp.length = static_cast<uint16_t>(8 + datagram.size());
  Bytes covered;
  for (uint32_t address : {route.source, route.destination}) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      covered.push_back(static_cast<uint8_t>(address >> shift));
    }
  }
  covered.insert(covered.end(), {0, 17, static_cast<uint8_t>(udp.length >> 8),
                                 static_cast<uint8_t>(udp.length)});
  AppendHeader(covered, udp);
  covered.insert(covered.end(), datagram.begin(), datagram.end());
  udp.checksum =
      static_cast<uint16_t>(~OnesSum(covered.data(), covered.size()));
  if (udp.checksum == 0) udp.checksum = 0xffff;
  AppendHeader(out, udp);
  out.insert(out.end(), datagram.begin(), datagram.end());
  return out;
}

// PDS and SES headers of an ACK or NACK.
inline Bytes ResponseDatagram(const Response& rsp) {
  namespace wire = contract::wire;
  Bytes out;
  if (rsp.kind == ResponseKind::kNack) {
    wire::PdsNack nack = {};
    nack.type = contract::PdsType::kNack;
    nack.next_hdr = contract::NextHdr::kNone;
    nack.m = rsp.m;
    nack.retx = rsp.retx;
    nack.nack_code = static_cast<contract::NackCode>(rsp.code);
    nack.vendor_code = rsp.vendor_code;
    nack.nack_psn = rsp.nack_psn;
    nack.spdcid = rsp.spdcid;
    nack.dpdcid = rsp.dpdcid;
    AppendHeader(out, nack);
    return out;
  }
  wire::PdsAck ack = {};
  ack.type = contract::PdsType::kAck;
  ack.m = rsp.m;
  ack.retx = rsp.retx;
  ack.ack_psn_offset = static_cast<int16_t>(rsp.ack_offset);
  ack.cack_psn = rsp.cack;
  ack.spdcid = rsp.spdcid;
  ack.dpdcid = rsp.dpdcid;
  if (rsp.kind == ResponseKind::kNone) {
    ack.next_hdr = contract::NextHdr::kNone;
    AppendHeader(out, ack);
    return out;
  }
  ack.next_hdr = contract::NextHdr::kResponse;
  const bool refused = rsp.return_code > 1;
  ack.req = refused ? contract::AckReq::kClear : contract::AckReq::kNone;
  AppendHeader(out, ack);
  wire::SesResponse ses = {};
  ses.opcode = static_cast<contract::SesResponse>(rsp.response);
  ses.return_code = static_cast<contract::ReturnCode>(rsp.return_code);
  ses.message_id = rsp.message_id;
  ses.job_id = rsp.job_id;
  ses.modified_length = rsp.modified_length;
  AppendHeader(out, ses);
  return out;
}

}  // namespace heddle::test
