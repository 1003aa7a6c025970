// SPDX-License-Identifier: Apache-2.0
// Frames that a switch can route, for tests.
#pragma once

#include <cstdint>
#include <cstring>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/faults.h"

namespace heddle::sim {

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

// A request with syn=1 to libfabric port `port`.
inline Frame MakeSyn(uint32_t ip, uint16_t port, size_t payload_bytes = 8,
                     bool vlan = false) {
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
  return MakeFrame(ip, pds, vlan);
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

inline uint32_t AckNumber(const Frame& frame) {
  namespace wire = contract::wire;
  return wire::PdsAck::Decode(frame.data() + wire::Ethernet::kBytes +
                              wire::Ipv4::kBytes + wire::Udp::kBytes)
      .cack_psn;
}

}  // namespace heddle::sim
