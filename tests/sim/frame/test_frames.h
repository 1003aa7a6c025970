// SPDX-License-Identifier: Apache-2.0
// Frames that a switch can route, for tests.
#pragma once

#include <cstdint>
#include <cstring>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/frame/route.h"
#include "hw/sim/frame/wire_address.h"

namespace heddle::sim::frame {

// Ethernet, IPv4 and UDP headers to `ip`, then `pds` bytes.
inline Frame MakeFrame(uint32_t ip, const Frame& pds, bool vlan = false) {
  namespace wire = contract::wire;
  const size_t tag = vlan ? wire::Vlan::kBytes : 0;
  const size_t headers =
      wire::Ethernet::kBytes + tag + wire::Ipv4::kBytes + wire::Udp::kBytes;
  Frame frame(headers + pds.size());
  wire::Ethernet ethernet;
  ethernet.ethertype = vlan ? 0x8100 : 0x0800;
  ethernet.Encode(frame.data());
  if (vlan) {
    frame[16] = 0x08;  // EtherType behind the tag: IPv4.
    frame[17] = 0x00;
  }
  uint8_t* at = frame.data() + wire::Ethernet::kBytes + tag;
  wire::Ipv4 header;
  header.version = 4;
  header.ihl = 5;
  header.protocol = 17;
  header.total_length = static_cast<uint16_t>(frame.size() - 14 - tag);
  header.destination = ip;
  header.Encode(at);
  at += wire::Ipv4::kBytes;
  wire::Udp udp;
  udp.destination_port = contract::kUetUdpPort;
  udp.length = static_cast<uint16_t>(pds.size() + wire::Udp::kBytes);
  udp.Encode(at);
  std::memcpy(at + wire::Udp::kBytes, pds.data(), pds.size());
  return frame;
}

// The UET part of a request with syn=1 to libfabric port `port`.
inline Frame MakeSynPds(uint16_t port, size_t payload_bytes) {
  namespace wire = contract::wire;
  wire::PdsRequest request;
  request.type = contract::PdsType::kRodReq;
  request.next_hdr = contract::NextHdr::kRequestStd;
  request.syn = 1;
  request.psn_offset = 0xfff;  // Must not be taken for a dpdcid.
  wire::SesStd ses;
  ses.pid_on_fep = port % 4096;
  ses.resource_index =
      static_cast<uint16_t>(port / 4096 * contract::kRiBlock + 1);
  Frame pds(wire::PdsRequest::kBytes + wire::SesStd::kBytes + payload_bytes);
  request.Encode(pds.data());
  ses.Encode(pds.data() + wire::PdsRequest::kBytes);
  return pds;
}

inline Frame MakeSyn(uint32_t ip, uint16_t port, size_t payload_bytes = 8,
                     bool vlan = false) {
  return MakeFrame(ip, MakeSynPds(port, payload_bytes), vlan);
}

// The same with the JobID, to the endpoint of that port in the job (rel=1) or
// at the address.
inline Frame MakeJobSyn(uint32_t ip, uint16_t port, uint32_t job_id,
                        bool relative) {
  namespace wire = contract::wire;
  Frame pds = MakeSynPds(port, 8);
  uint8_t* const at = pds.data() + wire::PdsRequest::kBytes;
  wire::SesStd ses = wire::SesStd::Decode(at);
  ses.rel = relative ? 1 : 0;
  ses.job_id = job_id;
  ses.dc = ses.hd = ses.som = 1;  // Neighbours of `rel`.
  ses.Encode(at);
  return MakeFrame(ip, pds);
}

// The same over IPv6.
inline Frame MakeSyn6(const WireAddress& ip, uint16_t port, bool vlan = false) {
  namespace wire = contract::wire;
  const Frame pds = MakeSynPds(port, 8);
  const size_t at = wire::Ethernet::kBytes + (vlan ? wire::Vlan::kBytes : 0);
  const size_t udp_at = at + wire::Ipv6::kBytes;
  Frame frame(udp_at + wire::Udp::kBytes + pds.size());
  wire::Ethernet ethernet;
  ethernet.ethertype = vlan ? 0x8100 : 0x86dd;
  ethernet.Encode(frame.data());
  frame[at - 2] = 0x86;
  frame[at - 1] = 0xdd;
  wire::Ipv6 header;
  header.version = 6;
  header.next_header = 17;
  header.payload_length = static_cast<uint16_t>(frame.size() - udp_at);
  header.destination_hi = ip.hi;
  header.destination_lo = ip.lo;
  header.Encode(frame.data() + at);
  wire::Udp udp;
  udp.destination_port = contract::kUetUdpPort;
  udp.length = header.payload_length;
  udp.Encode(frame.data() + udp_at);
  std::memcpy(frame.data() + udp_at + wire::Udp::kBytes, pds.data(),
              pds.size());
  return frame;
}

// The same packet as native IP: the entropy header in place of UDP.
inline Frame AsNativeIp(const Frame& over_udp,
                        uint8_t ip_protocol = contract::kNativeIpProtocol) {
  namespace wire = contract::wire;
  constexpr size_t kSaved = wire::Udp::kBytes - wire::Entropy::kBytes;
  const size_t at = FindDatagram(over_udp).offset;
  const wire::Entropy entropy{
      .entropy = wire::Udp::Decode(over_udp.data() + at).source_port};
  Frame frame = over_udp;
  frame.erase(frame.begin() + static_cast<std::ptrdiff_t>(at),
              frame.begin() + static_cast<std::ptrdiff_t>(at + kSaved));
  entropy.Encode(frame.data() + at);
  uint8_t* const ip4 = frame.data() + at - wire::Ipv4::kBytes;
  if (ip4[0] == 0x45) {
    auto header = wire::Ipv4::Decode(ip4);
    header.protocol = ip_protocol;
    header.total_length = static_cast<uint16_t>(header.total_length - kSaved);
    header.Encode(ip4);
  } else {
    uint8_t* const ip6 = frame.data() + at - wire::Ipv6::kBytes;
    auto header = wire::Ipv6::Decode(ip6);
    header.next_header = ip_protocol;
    header.payload_length =
        static_cast<uint16_t>(header.payload_length - kSaved);
    header.Encode(ip6);
  }
  return frame;
}

// An ACK to PDCID `dpdcid`; `number` tells frames apart.
inline Frame MakeAck(uint32_t ip, uint16_t dpdcid, uint32_t number = 0,
                     size_t extra_bytes = 0) {
  namespace wire = contract::wire;
  wire::PdsAck ack;
  ack.type = contract::PdsType::kAck;
  ack.cack_psn = number;
  ack.dpdcid = dpdcid;
  Frame pds(wire::PdsAck::kBytes + extra_bytes);
  ack.Encode(pds.data());
  return MakeFrame(ip, pds);
}

// An ARP frame to `mac`; `number` tells frames apart.
inline Frame MakeArp(uint64_t mac, uint32_t number = 0, bool vlan = false) {
  namespace wire = contract::wire;
  Frame frame(60);
  wire::Ethernet ethernet;
  ethernet.destination = mac;
  ethernet.ethertype = vlan ? 0x8100 : 0x0806;
  ethernet.Encode(frame.data());
  const size_t at = wire::Ethernet::kBytes + (vlan ? wire::Vlan::kBytes : 0);
  frame[at - 2] = 0x08;
  frame[at - 1] = 0x06;
  wire::Arp arp;
  arp.target_ip = number;
  arp.Encode(frame.data() + at);
  return frame;
}

// An ICMPv6 message of `type` to `mac`.
inline Frame MakeIcmp6(uint64_t mac, uint8_t type) {
  namespace wire = contract::wire;
  Frame frame(86);
  wire::Ethernet ethernet;
  ethernet.destination = mac;
  ethernet.ethertype = 0x86dd;
  ethernet.Encode(frame.data());
  wire::Ipv6 header;
  header.version = 6;
  header.next_header = 58;
  header.payload_length = 32;
  header.Encode(frame.data() + wire::Ethernet::kBytes);
  frame[wire::Ethernet::kBytes + wire::Ipv6::kBytes] = type;
  return frame;
}

inline uint32_t AckNumber(const Frame& frame) {
  namespace wire = contract::wire;
  return wire::PdsAck::Decode(frame.data() + wire::Ethernet::kBytes +
                              wire::Ipv4::kBytes + wire::Udp::kBytes)
      .cack_psn;
}

}  // namespace heddle::sim::frame
