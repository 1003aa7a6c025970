// SPDX-License-Identifier: Apache-2.0
#include "tests/firmware/neighbour_frames.h"

#include <algorithm>

namespace heddle::firmware {

using contract::ArpOperation;
using contract::Icmpv6Type;

namespace {

uint16_t OnesSum(const Bytes& bytes, uint32_t sum) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    sum += i % 2 == 0 ? uint32_t{bytes[i]} << 8 : bytes[i];
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>(sum);
}

Bytes Padded(Bytes frame) {
  frame.resize(std::max<size_t>(frame.size(), 60));
  return frame;
}

void Append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

uint16_t IcmpSum(const Bytes& ip, const Bytes& message) {
  Bytes pseudo(ip.begin() + 8, ip.begin() + 40);
  const auto length = static_cast<uint32_t>(message.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    pseudo.push_back(static_cast<uint8_t>(length >> shift));
  }
  pseudo.insert(pseudo.end(), {0, 0, 0, 58});
  return OnesSum(message, OnesSum(pseudo, 0));
}

wire::Arp ArpOf(ArpOperation operation, uint32_t sender_ip, uint64_t sender_mac,
                uint32_t target_ip, uint64_t target_mac) {
  return {.hardware_type = 1,
          .protocol_type = 0x0800,
          .hardware_length = 6,
          .protocol_length = 4,
          .operation = operation,
          .sender_mac = sender_mac,
          .sender_ip = sender_ip,
          .target_mac = target_mac,
          .target_ip = target_ip};
}

Bytes ArpFrame(const wire::Arp& arp, uint64_t destination) {
  Bytes frame = Encoded(wire::Ethernet{.destination = destination,
                                       .source = arp.sender_mac,
                                       .ethertype = 0x0806});
  Append(frame, Encoded(arp));
  return Padded(frame);
}

Bytes Reply(uint32_t ip, uint64_t mac) {
  return ArpFrame(ArpOf(ArpOperation::kReply, ip, mac, kOurIp, kOurMac),
                  kOurMac);
}

Bytes Request(uint32_t sender_ip, uint64_t sender_mac, uint32_t target_ip) {
  return ArpFrame(
      ArpOf(ArpOperation::kRequest, sender_ip, sender_mac, target_ip, 0),
      kBroadcast);
}

Bytes Discovery::Frame() const {
  wire::Ipv6 header = ip;
  header.payload_length =
      static_cast<uint16_t>(24 + options.size() + ip.payload_length);
  Bytes body = Encoded(message);
  Append(body, options);
  const auto sum = static_cast<uint16_t>(~IcmpSum(Encoded(header), body));
  body[2] = static_cast<uint8_t>((sum + sum_error) >> 8);
  body[3] = static_cast<uint8_t>(sum + sum_error);
  Bytes frame = Encoded(ethernet);
  Append(frame, Encoded(header));
  Append(frame, body);
  return Padded(frame);
}

Discovery Solicitation() {
  Discovery packet;
  packet.ethernet.destination = 0x3333ff000001;
  packet.ip.destination_hi = 0xff02000000000000;
  packet.ip.destination_lo = 0x00000001ff000001;
  packet.message = {.type = Icmpv6Type::kNeighborSolicitation,
                    .target_hi = kOurIp6.hi,
                    .target_lo = kOurIp6.lo};
  packet.options[0] = 1;
  return packet;
}

}  // namespace heddle::firmware
