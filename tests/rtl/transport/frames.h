// SPDX-License-Identifier: Apache-2.0
// Reference frames: built with the generated wire encoders.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "rtl/records.h"
#include "tests/rtl/crc32c.h"

namespace heddle::test {

using Bytes = std::vector<uint8_t>;

constexpr uint8_t kFlagInline = 2;
constexpr uint8_t kFlagHeaderData = 8;
constexpr uint8_t kFlagDeliveryComplete = 32;
constexpr contract::Opcode kSend = contract::Opcode::kSend;
constexpr contract::Opcode kWrite = contract::Opcode::kWrite;

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
  uint64_t source = 0;  // Low half of an IPv6 address.
  uint64_t destination = 0;
  uint8_t dscp = 0;
  uint16_t entropy = 0;
  bool ipv6 = false;
  uint64_t source_hi = 0;
  uint64_t destination_hi = 0;
  uint16_t vlan = 0;  // 0: no tag.
  contract::CrcOrder crc = contract::CrcOrder::kNone;
  uint8_t ecn = 0;
  uint8_t ip_protocol = 0;  // Of native IP; 0: UDP.
};

// What frames are made of, a number each: IPv4 and IPv6, untagged and tagged,
// without and with CRC of either order, over UDP and as native IP.
inline constexpr int kStacks = 24;
inline Route StackRoute(int stack, uint16_t vlan) {
  Route route;
  route.ipv6 = (stack & 1) != 0;
  route.vlan = (stack & 2) != 0 ? vlan : 0;
  route.crc = static_cast<contract::CrcOrder>(stack / 4 % 3);
  route.ip_protocol = stack >= kStacks / 2 ? contract::kNativeIpProtocol : 0;
  return route;
}
inline std::string StackName(int stack) {
  constexpr const char* kCrcs[] = {"", "CrcLsbFirst", "CrcMsbFirst"};
  return std::string(stack & 1 ? "V6" : "V4") + (stack & 2 ? "Tagged" : "") +
         kCrcs[stack / 4 % 3] + (stack >= kStacks / 2 ? "Native" : "");
}

constexpr size_t kCrcBytes = 4;

// Bytes of a frame of the route before the PDS header.
inline size_t HeaderBytes(const Route& route) {
  return 14 + (route.vlan != 0 ? 4u : 0u) + (route.ipv6 ? 40u : 20u) +
         (route.ip_protocol != 0 ? 4u : 8u);
}

// Ethernet, IP and UDP or entropy header around `datagram` (PDS header to end
// of payload).
inline Bytes Frame(const Route& route, const Bytes& datagram) {
  namespace wire = contract::wire;
  const size_t trailer = route.crc != contract::CrcOrder::kNone ? kCrcBytes : 0;
  const bool native = route.ip_protocol != 0;
  const uint8_t protocol = native ? route.ip_protocol : 17;
  const auto length = static_cast<uint16_t>(
      (native ? wire::Entropy::kBytes : wire::Udp::kBytes) + datagram.size() +
      trailer);

  Bytes ip;
  if (route.ipv6) {
    AppendHeader(ip, wire::Ipv6{.version = 6,
                                .dscp = route.dscp,
                                .ecn = route.ecn,
                                .payload_length = length,
                                .next_header = protocol,
                                .hop_limit = 64,
                                .source_hi = route.source_hi,
                                .source_lo = route.source,
                                .destination_hi = route.destination_hi,
                                .destination_lo = route.destination});
  } else {
    wire::Ipv4 ip4 = {};
    ip4.version = 4;
    ip4.ihl = 5;
    ip4.dscp = route.dscp;
    ip4.ecn = route.ecn;
    ip4.total_length = static_cast<uint16_t>(wire::Ipv4::kBytes + length);
    ip4.flags = 2;
    ip4.ttl = 64;
    ip4.protocol = protocol;
    ip4.source = static_cast<uint32_t>(route.source);
    ip4.destination = static_cast<uint32_t>(route.destination);
    uint8_t encoded[wire::Ipv4::kBytes];
    ip4.Encode(encoded);
    ip4.checksum = static_cast<uint16_t>(~OnesSum(encoded, sizeof encoded));
    AppendHeader(ip, ip4);
  }

  Bytes covered(ip.end() - (route.ipv6 ? 32 : 8), ip.end());
  const size_t addresses = covered.size();
  if (native) {
    AppendHeader(covered, wire::Entropy{.entropy = route.entropy});
  } else {
    AppendHeader(covered, wire::Udp{.source_port = route.entropy,
                                    .destination_port = 4793,
                                    .length = length});
  }
  covered.insert(covered.end(), datagram.begin(), datagram.end());
  if (trailer != 0) {
    const uint32_t crc = Crc32c(covered);
    for (uint32_t i = 0; i < kCrcBytes; ++i) {
      covered.push_back(CrcByte(route.crc, crc, i));
    }
  }

  Bytes out;
  AppendHeader(out, wire::Ethernet{.destination = route.destination_mac,
                                   .source = route.source_mac,
                                   .ethertype = static_cast<uint16_t>(
                                       route.ipv6 ? 0x86dd : 0x0800)});
  if (route.vlan != 0) {
    out.insert(out.begin() + 12,
               {0x81, 0x00, static_cast<uint8_t>(route.vlan >> 8),
                static_cast<uint8_t>(route.vlan)});
  }
  out.insert(out.end(), ip.begin(), ip.end());
  out.insert(out.end(), covered.begin() + static_cast<ptrdiff_t>(addresses),
             covered.end());
  return out;
}

// The frame that a request packet must become. `payload` is what it carries.
inline Bytes RequestFrame(const rtl::TxPacket& pkt, const rtl::MsgPacket& msg,
                          const rtl::PdcPeer& peer, const Route& route,
                          uint16_t mtu, bool ie, const Bytes& payload) {
  namespace wire = contract::wire;
  wire::PdsRequest pds = {};
  pds.type = contract::PdsType::kRodReq;
  pds.next_hdr = contract::NextHdr::kRequestStd;
  pds.retx = pkt.retx;
  pds.ar = pkt.ar;
  pds.syn = pkt.syn;
  pds.clear_psn_offset = static_cast<int16_t>(pkt.clear_psn - pkt.psn);
  pds.psn = pkt.psn;
  pds.spdcid = peer.spdcid;
  if (pkt.syn) {
    pds.psn_offset = static_cast<uint16_t>(pkt.psn - peer.start_psn) & 0xfff;
  } else {
    pds.dpdcid = pkt.tpdcid;
  }
  wire::SesStd ses = {};
  ses.opcode = static_cast<contract::SesOpcode>(msg.opcode);
  ses.dc = (msg.flags & kFlagDeliveryComplete) != 0;
  ses.ie = ie;
  ses.hd = (msg.flags & kFlagHeaderData) != 0;
  ses.eom = pkt.last;
  ses.som = pkt.index == 0;
  ses.message_id = static_cast<uint16_t>(pkt.msg + 1);
  ses.rel = peer.rel;
  ses.job_id = msg.job_id;
  ses.pid_on_fep = peer.pid_on_fep;
  ses.resource_index = msg.resource_index;
  ses.initiator = uint32_t{msg.source_pid} << 12 | msg.source_ri;
  if (msg.opcode == kWrite) {
    ses.buffer_offset = msg.remote_offset;
    ses.match_bits = msg.match_bits;
  }
  ses.request_length = msg.length;
  if (ses.som) {
    ses.header_data = ses.hd ? msg.header_data : 0;
  } else {
    ses.payload_length = static_cast<uint16_t>(payload.size());
    ses.message_offset = pkt.index * mtu;
  }
  Bytes datagram;
  AppendHeader(datagram, pds);
  AppendHeader(datagram, ses);
  datagram.insert(datagram.end(), payload.begin(), payload.end());
  return Frame(route, datagram);
}

// The frame that a control packet must become.
inline Bytes ControlFrame(const rtl::TxPacket& pkt, const rtl::PdcPeer& peer,
                          const Route& route) {
  contract::wire::PdsCp cp = {};
  cp.type = contract::PdsType::kCp;
  cp.cp_type = pkt.cp_type;
  cp.retx = pkt.retx;
  cp.ar = pkt.ar;
  cp.psn = pkt.psn;
  cp.spdcid = peer.spdcid;
  cp.dpdcid = pkt.tpdcid;
  if (cp.cp_type == contract::CpType::kClearCommand) cp.payload = pkt.clear_psn;
  Bytes datagram;
  AppendHeader(datagram, cp);
  return Frame(route, datagram);
}

// PDS and SES headers of an ACK or NACK.
inline Bytes ResponseDatagram(const rtl::Response& rsp) {
  namespace wire = contract::wire;
  Bytes out;
  if (rsp.kind == rtl::ResponseKind::kNack) {
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
    nack.payload = nack.nack_code == contract::NackCode::kRodOoo ? rsp.cack : 0;
    AppendHeader(out, nack);
    return out;
  }
  wire::PdsAck ack = {};
  ack.type = rsp.cc ? contract::PdsType::kAckCc : contract::PdsType::kAck;
  ack.m = rsp.m;
  ack.retx = rsp.retx;
  ack.req = rsp.req;
  ack.ack_psn_offset = static_cast<int16_t>(rsp.ack_offset);
  ack.cack_psn = rsp.cack;
  ack.spdcid = rsp.spdcid;
  ack.dpdcid = rsp.dpdcid;
  ack.next_hdr = rsp.kind == rtl::ResponseKind::kNone
                     ? contract::NextHdr::kNone
                     : contract::NextHdr::kResponse;
  AppendHeader(out, ack);
  if (rsp.cc) {
    const auto ooo = static_cast<uint16_t>(
        rsp.service_time == 0 ? 0xffff : std::popcount(rsp.sack_bitmap));
    AppendHeader(
        out, wire::PdsAckCc{.mpr = static_cast<uint8_t>(rsp.rod != 0 ? 4 : 1),
                            .sack_psn_offset = 1,
                            .sack_bitmap = rsp.sack_bitmap,
                            .service_time = rsp.service_time,
                            .rcvd_bytes = rsp.rcvd_bytes,
                            .nscc_ooo_count = ooo});
  }
  if (rsp.kind == rtl::ResponseKind::kNone) return out;
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
