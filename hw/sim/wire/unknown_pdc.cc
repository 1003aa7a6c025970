// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire/unknown_pdc.h"

#include <array>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/frame/route.h"
#include "hw/soft/frame/frame_codec.h"
#include "hw/soft/frame/layout.h"
#include "hw/soft/transport/control_packets.h"

namespace heddle::sim::wire {
namespace {

namespace wire = contract::wire;
using contract::PdsType;

// What a packet that a NACK may answer says of itself.
struct Named {
  uint32_t psn = 0;
  uint16_t spdcid = 0;
};

std::optional<Named> ReadRequest(std::span<const uint8_t> bytes) {
  if (bytes.size() < wire::PdsRequest::kBytes) {
    return std::nullopt;
  }
  const auto header = wire::PdsRequest::Decode(bytes.data());
  return header.syn != 0 ? std::nullopt
                         : std::optional(Named{header.psn, header.spdcid});
}

std::optional<Named> ReadControl(std::span<const uint8_t> bytes) {
  if (bytes.size() < wire::PdsCp::kBytes) {
    return std::nullopt;
  }
  const auto header = wire::PdsCp::Decode(bytes.data());
  return header.syn != 0 || !soft::transport::IsRefused(header.cp_type)
             ? std::nullopt
             : std::optional(Named{header.psn, header.spdcid});
}

std::optional<Named> ReadNamed(std::span<const uint8_t> bytes) {
  switch (wire::PdsPrologue::Decode(bytes.data()).type) {
    case PdsType::kRodReq:
    case PdsType::kRudReq:
    case PdsType::kRodCcReq:
    case PdsType::kRudCcReq:
      return ReadRequest(bytes);
    case PdsType::kCp:
      return ReadControl(bytes);
    default:
      return std::nullopt;
  }
}

// The port that the frame was for.
contract::PortCfg PortOf(std::span<const uint8_t> frame,
                         const frame::WireAddress& address,
                         contract::CrcOrder crc, uint8_t ip_protocol) {
  contract::PortCfg port{};
  port.enable = 1;
  port.crc = crc;
  port.local_fa_lo = address.lo;
  port.local_fa_hi = address.hi;
  port.ipv6 = address.ipv6 ? 1 : 0;
  port.udp_port = contract::kUetUdpPort;
  port.ip_protocol =
      frame::FindDatagram(frame, ip_protocol).native ? ip_protocol : 0;
  const auto ethernet = wire::Ethernet::Decode(frame.data());
  port.mac = ethernet.destination;
  if (ethernet.ethertype == soft::frame::kEtherTypeVlan) {
    const uint8_t* const tag =
        frame.data() + wire::Ethernet::kBytes - soft::frame::kTypeBytes;
    port.vlan = wire::Vlan::Decode(tag).vid;
  }
  return port;
}

}  // namespace

std::optional<frame::Frame> RefuseUnknownPdc(std::span<const uint8_t> frame,
                                             const frame::WireAddress& address,
                                             contract::CrcOrder crc,
                                             uint8_t ip_protocol) {
  using soft::frame::FrameCodec;
  if (frame.size() < wire::Ethernet::kBytes + wire::Vlan::kBytes) {
    return std::nullopt;
  }
  FrameCodec codec;
  codec.Configure(PortOf(frame, address, crc, ip_protocol));
  const soft::frame::ParsedFrame parsed = codec.Parse(frame);
  const soft::wire::Datagram& datagram = parsed.datagram;
  if (parsed.kind != soft::frame::ParsedFrame::Kind::kDatagram) {
    return std::nullopt;
  }
  const std::optional<Named> named = ReadNamed(datagram.bytes);
  if (!named) {
    return std::nullopt;
  }
  wire::PdsNack nack;
  nack.type = PdsType::kNack;
  nack.nack_code = contract::NackCode::kInvDpdcid;
  nack.nack_psn = named->psn;
  nack.dpdcid = named->spdcid;
  std::array<uint8_t, FrameCodec::kHeadroom + wire::PdsNack::kBytes +
                          FrameCodec::kTailroom>
      room{};
  nack.Encode(&room[FrameCodec::kHeadroom]);
  const auto built = codec.Build({.destination = datagram.source,
                                  .destination_mac = parsed.source_mac,
                                  .vlan = codec.port().vlan,
                                  .entropy = datagram.source_udp_port,
                                  .dscp = datagram.dscp},
                                 room, wire::PdsNack::kBytes);
  return frame::Frame(built.begin(), built.end());
}

}  // namespace heddle::sim::wire
