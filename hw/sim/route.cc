// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/route.h"

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"

namespace heddle::sim {
namespace {

namespace wire = contract::wire;
using contract::PdsType;

constexpr uint16_t kEtherTypeIpv4 = 0x0800;
constexpr uint16_t kEtherTypeVlan = 0x8100;
constexpr uint8_t kProtocolUdp = 17;
constexpr size_t kSesAddressBytes = 12;  // Common to all request headers.

// Reads headers front to back.
class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes) : rest_(bytes) {}

  bool Has(size_t bytes) const { return rest_.size() >= bytes; }
  const uint8_t* data() const { return rest_.data(); }
  void Skip(size_t bytes) { rest_ = rest_.subspan(bytes); }

 private:
  std::span<const uint8_t> rest_;
};

// Steps over Ethernet, VLAN, IPv4 and UDP; false if this is not UET.
bool SkipToPds(Cursor& cursor, uint32_t* ip) {
  if (!cursor.Has(wire::Ethernet::kBytes + wire::Vlan::kBytes)) {
    return false;
  }
  const auto ethernet = wire::Ethernet::Decode(cursor.data());
  uint16_t ethertype = ethernet.ethertype;
  cursor.Skip(wire::Ethernet::kBytes);
  if (ethertype == kEtherTypeVlan) {
    // Behind the tag's last 12 bits comes the EtherType proper.
    ethertype = static_cast<uint16_t>(cursor.data()[2] << 8 | cursor.data()[3]);
    cursor.Skip(wire::Vlan::kBytes);
  }
  if (ethertype != kEtherTypeIpv4 || !cursor.Has(wire::Ipv4::kBytes)) {
    return false;
  }
  const auto header = wire::Ipv4::Decode(cursor.data());
  constexpr size_t kWord = 4;
  const size_t header_bytes = header.ihl * kWord;
  if (header.version != 4 || header_bytes < wire::Ipv4::kBytes ||
      header.protocol != kProtocolUdp ||
      !cursor.Has(header_bytes + wire::Udp::kBytes)) {
    return false;
  }
  *ip = header.destination;
  cursor.Skip(header_bytes + wire::Udp::kBytes);
  return true;
}

Route RouteBySes(Cursor& cursor, uint32_t ip) {
  Route route;
  if (!cursor.Has(kSesAddressBytes)) {
    return route;
  }
  constexpr uint32_t kTwelveBits = 0xfff;
  const uint8_t* const ses = cursor.data();
  const uint32_t pid = (ses[8] << 8 | ses[9]) & kTwelveBits;
  const uint32_t ri = (ses[10] << 8 | ses[11]) & kTwelveBits;
  route.kind = Route::Kind::kPort;
  route.ip = ip;
  route.port = static_cast<uint16_t>(
      (ri / contract::kRiBlock) << contract::kPidBits | pid);
  return route;
}

}  // namespace

Route FindRoute(std::span<const uint8_t> frame) {
  Route route;
  Cursor cursor(frame);
  uint32_t ip = 0;
  if (!SkipToPds(cursor, &ip) || !cursor.Has(wire::PdsUud::kBytes)) {
    return route;
  }
  const auto type = wire::PdsPrologue::Decode(cursor.data()).type;
  if (type == PdsType::kUudReq) {
    cursor.Skip(wire::PdsUud::kBytes);
    return RouteBySes(cursor, ip);
  }
  // dpdcid is at the same place in requests, ACKs, NACKs and control packets.
  if (!cursor.Has(wire::PdsRequest::kBytes)) {
    return route;
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
        return route;
      }
      cursor.Skip(wire::PdsCcState::kBytes);
    }
    return RouteBySes(cursor, ip);
  }
  const uint8_t* const bytes = cursor.data();
  route.kind = Route::Kind::kSlot;
  route.ip = ip;
  route.slot = bytes[10] >> (8 - contract::kSlotBits);
  return route;
}

}  // namespace heddle::sim
