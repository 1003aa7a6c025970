// SPDX-License-Identifier: Apache-2.0
// Frames that ask for neighbours and that answer, as a peer writes them.
#pragma once

#include <cstdint>
#include <vector>

#include "firmware/net/neighbour_packet.h"
#include "hw/contract/gen/heddle_wire.h"

namespace heddle::firmware {

namespace wire = contract::wire;
using Bytes = std::vector<uint8_t>;

inline constexpr uint64_t kOurMac = 0x020000000001;
inline constexpr uint64_t kPeerMac = 0x020000000042;
inline constexpr uint64_t kOtherMac = 0x020000000043;
inline constexpr uint64_t kBroadcast = 0xffffffffffff;
inline constexpr uint32_t kOurIp = 0x0a000001;
inline constexpr uint32_t kPeerIp = 0x0a000002;
inline constexpr uint64_t kPrefix = 0x20010db800000000;
inline constexpr FabricAddress kOurIp6 = FabricAddress::Ipv6(kPrefix, 1);
inline constexpr FabricAddress kPeerIp6 =
    FabricAddress::Ipv6(kPrefix, 0x0123456789abcdef);

template <typename Header>
Bytes Encoded(const Header& header) {
  Bytes bytes(Header::kBytes);
  header.Encode(bytes.data());
  return bytes;
}

// What ICMPv6 sums: an independent statement of it, from bytes.
uint16_t IcmpSum(const Bytes& ip, const Bytes& message);

wire::Arp ArpOf(contract::ArpOperation operation, uint32_t sender_ip,
                uint64_t sender_mac, uint32_t target_ip, uint64_t target_mac);
Bytes ArpFrame(const wire::Arp& arp, uint64_t destination);

// The peer's answer to our question.
Bytes Reply(uint32_t ip = kPeerIp, uint64_t mac = kPeerMac);
Bytes Request(uint32_t sender_ip, uint64_t sender_mac, uint32_t target_ip);

// A neighbor solicitation or advertisement, its fields free to spoil.
struct Discovery {
  wire::Ethernet ethernet{
      .destination = kOurMac, .source = kPeerMac, .ethertype = 0x86dd};
  wire::Ipv6 ip{.version = 6,
                .payload_length = 0,  // Added to the length that is right.
                .next_header = 58,
                .hop_limit = 255,
                .source_hi = kPeerIp6.hi,
                .source_lo = kPeerIp6.lo,
                .destination_hi = kOurIp6.hi,
                .destination_lo = kOurIp6.lo};
  wire::NeighborMessage message{
      .type = contract::Icmpv6Type::kNeighborAdvertisement,
      .solicited = 1,
      .replaces = 1,
      .target_hi = kPeerIp6.hi,
      .target_lo = kPeerIp6.lo};
  Bytes options = Encoded(wire::NeighborOption{
      .type = contract::NdOption::kTargetLink, .length = 1, .mac = kPeerMac});
  uint16_t sum_error = 0;

  Bytes Frame() const;
};

// The peer's question for our address.
Discovery Solicitation();

}  // namespace heddle::firmware
