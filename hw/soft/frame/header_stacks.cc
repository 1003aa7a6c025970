// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/frame/header_stacks.h"

#include <bit>
#include <cstring>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/frame/internet_checksum.h"
#include "hw/soft/frame/layout.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::frame {

using contract::wire::Ethernet;
using contract::wire::Ipv4;
using contract::wire::Ipv6;
using contract::wire::Udp;
using contract::wire::Vlan;

namespace {

void EncodeIpv4(const contract::PortCfg& port, const FrameHeader& header,
                uint8_t* out) {
  Ipv4 ip;
  ip.version = 4;
  ip.ihl = kIpv4Words;
  ip.dscp = header.dscp;
  ip.flags = kDontFragment;
  ip.ttl = kTtl;
  ip.protocol = IpProtocol(port);
  ip.source = static_cast<uint32_t>(port.local_fa_lo);
  ip.destination = static_cast<uint32_t>(header.destination.lo);
  ip.Encode(out);
}

void EncodeIpv6(const contract::PortCfg& port, const FrameHeader& header,
                uint8_t* out) {
  Ipv6 ip;
  ip.version = 6;
  ip.dscp = header.dscp;
  ip.next_header = IpProtocol(port);
  ip.hop_limit = kTtl;
  ip.source_hi = port.local_fa_hi;
  ip.source_lo = port.local_fa_lo;
  ip.destination_hi = header.destination.hi;
  ip.destination_lo = header.destination.lo;
  ip.Encode(out);
}

}  // namespace

void HeaderStacks::Fill(const contract::PortCfg& port,
                        const FrameHeader& header, Stack* stack) {
  const bool ipv6 = port.ipv6 != 0;
  const size_t tag = header.vlan != 0 ? Vlan::kBytes : 0;
  stack->image = {};
  const size_t layer4_bytes = wire::Layer4Bytes(port);
  uint8_t* const layer4 = stack->image.data() + kHeadroom - layer4_bytes;
  uint8_t* const ip = layer4 - IpBytes(ipv6);
  uint8_t* const ethernet = ip - tag - Ethernet::kBytes;
  const Ethernet layer2{.destination = header.destination_mac,
                        .source = port.mac,
                        .ethertype = ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4};
  layer2.Encode(ethernet);
  if (tag != 0) {
    // The tag takes the place of the type, which moves behind it.
    const Vlan vlan{.tpid = kEtherTypeVlan, .vid = header.vlan};
    vlan.Encode(ip - tag - kTypeBytes);
    Store16(ip - kTypeBytes, layer2.ethertype);
  }
  (ipv6 ? EncodeIpv6 : EncodeIpv4)(port, header, ip);
  if (port.ip_protocol == 0) {
    const Udp udp{.destination_port = port.udp_port};
    udp.Encode(layer4);
  }
  stack->bytes = static_cast<size_t>(layer4 + layer4_bytes - ethernet);
  stack->ip_sum = ChecksumPart({ip, Ipv4::kBytes});
  stack->destination = header.destination;
  stack->mac = header.destination_mac;
  stack->vlan = header.vlan;
  stack->dscp = header.dscp;
}

size_t HeaderStacks::Put(const contract::PortCfg& port,
                         const FrameHeader& header, uint16_t ip_payload,
                         std::span<uint8_t, kHeadroom> out) {
  constexpr uint64_t kMix = 0x9e3779b97f4a7c15;
  constexpr int kShift = 64 - std::countr_zero(kStacks);
  // Requests and answers to one function may have MAC addresses and classes of
  // their own.
  const uint64_t key =
      (header.destination.lo + header.dscp) * kMix + header.destination_mac;
  Stack& stack = stacks_[key * kMix >> kShift];
  if (stack.bytes == 0 || stack.mac != header.destination_mac ||
      stack.vlan != header.vlan || stack.dscp != header.dscp ||
      stack.destination != header.destination) {
    Fill(port, header, &stack);
  }
  const size_t unused = kHeadroom - stack.bytes;  // It may be others' memory.
  std::memcpy(&out[unused], &stack.image[unused], stack.bytes);
  uint8_t* const layer4 = out.data() + kHeadroom - wire::Layer4Bytes(port);
  Store16(layer4, header.entropy);
  if (port.ip_protocol == 0) {
    Store16(layer4 + kLengthInUdp, ip_payload);
  }
  if (port.ipv6 != 0) {
    Store16(layer4 - Ipv6::kBytes + kLengthInIpv6, ip_payload);
    return stack.bytes;
  }
  uint8_t* const ip = layer4 - Ipv4::kBytes;
  const auto total = static_cast<uint16_t>(Ipv4::kBytes + ip_payload);
  Store16(ip + kLengthInIpv4, total);
  const uint16_t sum = ChecksumFold(stack.ip_sum + ChecksumWord(total));
  Store16(ip + kChecksumInIpv4, static_cast<uint16_t>(~sum));
  return stack.bytes;
}

}  // namespace heddle::soft::frame
