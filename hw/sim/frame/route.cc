// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/frame/route.h"

#include <algorithm>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"

namespace heddle::sim::frame {
namespace {

namespace wire = contract::wire;
using contract::PdsType;

constexpr uint16_t kEtherTypeIpv4 = 0x0800;
constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
constexpr uint16_t kEtherTypeVlan = 0x8100;
constexpr uint16_t kEtherTypeArp = 0x0806;
constexpr uint8_t kProtocolUdp = 17;
constexpr uint8_t kNextIcmp = 58;
constexpr uint64_t kGroupBit = uint64_t{1} << 40;
constexpr size_t kSesAddressBytes = 12;  // Common to all request headers.

// Reads headers front to back.
class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes) : rest_(bytes) {}

  bool Has(size_t bytes) const { return rest_.size() >= bytes; }
  size_t size() const { return rest_.size(); }
  const uint8_t* data() const { return rest_.data(); }
  void Skip(size_t bytes) { rest_ = rest_.subspan(bytes); }

 private:
  std::span<const uint8_t> rest_;
};

// The EtherType behind at most one VLAN tag; 0 if the frame is too short.
uint16_t SkipEthernet(Cursor& cursor) {
  if (!cursor.Has(wire::Ethernet::kBytes + wire::Vlan::kBytes)) {
    return 0;
  }
  const uint16_t ethertype = wire::Ethernet::Decode(cursor.data()).ethertype;
  cursor.Skip(wire::Ethernet::kBytes);
  if (ethertype != kEtherTypeVlan) {
    return ethertype;
  }
  // Behind the tag's last 12 bits comes the EtherType proper.
  const uint8_t* const tag = cursor.data();
  cursor.Skip(wire::Vlan::kBytes);
  return static_cast<uint16_t>(tag[2] << 8 | tag[3]);
}

struct IpHeader {
  WireAddress source;
  WireAddress destination;
  uint8_t protocol = 0;
  size_t payload_bytes = 0;  // By its length field.
};

// Steps behind the IP header; empty if there is none.
std::optional<IpHeader> SkipIp(Cursor& cursor) {
  const uint16_t ethertype = SkipEthernet(cursor);
  if (ethertype == kEtherTypeIpv6 && cursor.Has(wire::Ipv6::kBytes)) {
    const auto header = wire::Ipv6::Decode(cursor.data());
    cursor.Skip(wire::Ipv6::kBytes);
    if (header.version != 6) {
      return std::nullopt;
    }
    // Extension headers are none of the profile.
    return IpHeader{WireAddress(header.source_hi, header.source_lo),
                    WireAddress(header.destination_hi, header.destination_lo),
                    header.next_header, header.payload_length};
  }
  if (ethertype != kEtherTypeIpv4 || !cursor.Has(wire::Ipv4::kBytes)) {
    return std::nullopt;
  }
  const auto header = wire::Ipv4::Decode(cursor.data());
  constexpr size_t kIhlUnit = 4;
  const size_t header_bytes = header.ihl * kIhlUnit;
  if (header.version != 4 || header_bytes < wire::Ipv4::kBytes ||
      !cursor.Has(header_bytes)) {
    return std::nullopt;
  }
  cursor.Skip(header_bytes);
  return IpHeader{WireAddress(header.source), WireAddress(header.destination),
                  header.protocol,
                  header.total_length -
                      std::min<size_t>(header.total_length, header_bytes)};
}

// Bytes of the UDP or entropy header behind the IP header, where the cursor is;
// 0 if there is none.
size_t Layer4Bytes(const IpHeader& ip, uint8_t native, const Cursor& cursor) {
  const size_t bytes = ip.protocol == kProtocolUdp ? wire::Udp::kBytes
                       : ip.protocol == native     ? wire::Entropy::kBytes
                                                   : 0;
  return cursor.Has(bytes) ? bytes : 0;
}

bool IsNeighbourFrame(std::span<const uint8_t> frame) {
  Cursor cursor(frame);
  const uint16_t ethertype = SkipEthernet(cursor);
  if (ethertype != kEtherTypeIpv6) {
    return ethertype == kEtherTypeArp;
  }
  if (!cursor.Has(wire::Ipv6::kBytes + wire::NeighborMessage::kBytes) ||
      wire::Ipv6::Decode(cursor.data()).next_header != kNextIcmp) {
    return false;
  }
  cursor.Skip(wire::Ipv6::kBytes);
  const auto type = wire::NeighborMessage::Decode(cursor.data()).type;
  return type == contract::Icmpv6Type::kNeighborSolicitation ||
         type == contract::Icmpv6Type::kNeighborAdvertisement;
}

Route RouteByMac(std::span<const uint8_t> frame) {
  Route route;
  route.mac = wire::Ethernet::Decode(frame.data()).destination;
  route.kind =
      (route.mac & kGroupBit) != 0 ? Route::Kind::kAll : Route::Kind::kMac;
  return route;
}

Route RouteByAddress(const WireAddress& ip) {
  Route route;
  route.kind = Route::Kind::kAddress;
  route.ip = ip;
  return route;
}

Route RouteBySes(Cursor& cursor, const WireAddress& ip) {
  Route route;
  if (!cursor.Has(kSesAddressBytes)) {
    return RouteByAddress(ip);
  }
  constexpr uint32_t kTwelveBits = 0xfff;
  const uint8_t* const ses = cursor.data();
  const uint32_t pid = (uint32_t{ses[8]} << 8 | ses[9]) & kTwelveBits;
  const uint32_t ri = (uint32_t{ses[10]} << 8 | ses[11]) & kTwelveBits;
  route.kind = Route::Kind::kPort;
  route.ip = ip;
  route.port = static_cast<uint16_t>(
      (ri / contract::kRiBlock) << contract::kPidBits | pid);
  constexpr uint8_t kRel = 0x08;
  if ((ses[1] & kRel) != 0) {
    route.space = firmware::JobSpace(uint32_t{ses[5]} << 16 |
                                     uint32_t{ses[6]} << 8 | ses[7]);
  }
  return route;
}

}  // namespace

Route FindRoute(std::span<const uint8_t> frame, uint8_t ip_protocol) {
  Cursor cursor(frame);
  const std::optional<IpHeader> ip = SkipIp(cursor);
  const size_t layer4 = ip ? Layer4Bytes(*ip, ip_protocol, cursor) : 0;
  if (layer4 != 0) {
    cursor.Skip(layer4);
    return FindDatagramRoute(ip->destination, {cursor.data(), cursor.size()});
  }
  if (IsNeighbourFrame(frame)) {
    return RouteByMac(frame);
  }
  return ip ? RouteByAddress(ip->destination) : Route();
}

Route FindDatagramRoute(const WireAddress& ip,
                        std::span<const uint8_t> datagram) {
  Cursor cursor(datagram);
  if (!cursor.Has(wire::PdsUud::kBytes)) {
    return RouteByAddress(ip);
  }
  const auto type = wire::PdsPrologue::Decode(cursor.data()).type;
  if (type == PdsType::kUudReq) {
    cursor.Skip(wire::PdsUud::kBytes);
    return RouteBySes(cursor, ip);
  }
  // dpdcid is at the same place in requests, ACKs, NACKs and control packets.
  if (!cursor.Has(wire::PdsRequest::kBytes)) {
    return RouteByAddress(ip);
  }
  const bool congestion =
      type == PdsType::kRudCcReq || type == PdsType::kRodCcReq;
  const bool request =
      congestion || type == PdsType::kRudReq || type == PdsType::kRodReq;
  const auto pds = wire::PdsRequest::Decode(cursor.data());
  if (request && pds.syn == 1) {
    cursor.Skip(wire::PdsRequest::kBytes);
    if (congestion) {
      if (!cursor.Has(wire::PdsCcState::kBytes)) {
        return RouteByAddress(ip);
      }
      cursor.Skip(wire::PdsCcState::kBytes);
    }
    return RouteBySes(cursor, ip);
  }
  const uint8_t* const bytes = cursor.data();
  Route route;
  route.kind = Route::Kind::kBlock;
  route.ip = ip;
  const auto dpdcid = static_cast<uint16_t>(bytes[10] << 8 | bytes[11]);
  route.block = dpdcid / contract::kPdcidBlock;
  return route;
}

std::optional<WireAddress> FindSource(std::span<const uint8_t> frame) {
  Cursor at_arp(frame);
  if (SkipEthernet(at_arp) == kEtherTypeArp && at_arp.Has(wire::Arp::kBytes)) {
    return WireAddress(wire::Arp::Decode(at_arp.data()).sender_ip);
  }
  Cursor cursor(frame);
  const std::optional<IpHeader> ip = SkipIp(cursor);
  return ip ? std::optional(ip->source) : std::nullopt;
}

Datagram FindDatagram(std::span<const uint8_t> frame, uint8_t ip_protocol) {
  Cursor cursor(frame);
  const std::optional<IpHeader> ip = SkipIp(cursor);
  const size_t layer4 = ip ? Layer4Bytes(*ip, ip_protocol, cursor) : 0;
  if (layer4 == 0) {
    return {};
  }
  const bool native = ip->protocol != kProtocolUdp;
  const size_t length =
      native ? ip->payload_bytes : wire::Udp::Decode(cursor.data()).length;
  return {.offset = frame.size() - cursor.size(),
          .bytes = std::min(length, cursor.size()),
          .layer4_bytes = layer4,
          .native = native};
}

}  // namespace heddle::sim::frame
