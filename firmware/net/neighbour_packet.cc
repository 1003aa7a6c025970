// SPDX-License-Identifier: Apache-2.0
#include "firmware/net/neighbour_packet.h"

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"

namespace heddle::firmware {
namespace {

namespace wire = contract::wire;
using contract::ArpOperation;
using contract::Icmpv6Type;
using contract::NdOption;

constexpr uint16_t kEtherTypeIpv4 = 0x0800;
constexpr uint16_t kEtherTypeArp = 0x0806;
constexpr uint16_t kEtherTypeVlan = 0x8100;
constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
constexpr uint16_t kHardwareEthernet = 1;
constexpr uint8_t kMacBytes = 6;
constexpr uint8_t kIpv4Bytes = 4;
constexpr uint8_t kNextIcmp = 58;
constexpr uint8_t kHopLimit = 255;
constexpr uint32_t kOptionUnit = 8;
constexpr uint32_t kTypeOffset = 12;  // Of the EtherType in a frame.

constexpr uint64_t kBroadcastMac = 0xffffffffffff;
constexpr uint64_t kGroupBit = uint64_t{1} << 40;

// Addresses with a low half given by their users.
constexpr uint64_t kMulticastPrefix = 0xff02000000000000;  // ff02::
constexpr uint64_t kAllNodesLow = 1;                       // ff02::1
constexpr uint64_t kSolicitedLow = 0x00000001ff000000;     // ff02::1:ff00:0
constexpr uint64_t kSolicitedBits = 0xffffff;
constexpr uint64_t kMulticastMac = 0x333300000000;
constexpr uint64_t kMulticastMacBits = 0xffffffff;

constexpr bool IsMulticast(const FabricAddress& address) {
  return address.hi >> 56 == 0xff;
}

constexpr bool IsUnspecified(const FabricAddress& address) {
  return address.hi == 0 && address.lo == 0;
}

constexpr FabricAddress SolicitedNode(const FabricAddress& target) {
  return FabricAddress::Ipv6(kMulticastPrefix,
                             kSolicitedLow | (target.lo & kSolicitedBits));
}

// A sender's address that frames can be sent to.
constexpr bool IsStation(uint64_t mac) {
  return mac != 0 && (mac & kGroupBit) == 0;
}

constexpr FabricAddress SourceOf(const wire::Ipv6& header) {
  return FabricAddress::Ipv6(header.source_hi, header.source_lo);
}

constexpr FabricAddress DestinationOf(const wire::Ipv6& header) {
  return FabricAddress::Ipv6(header.destination_hi, header.destination_lo);
}

uint32_t Sum(uint64_t value) {
  uint32_t sum = 0;
  for (; value != 0; value >>= 16) {
    sum += static_cast<uint32_t>(value & 0xffff);
  }
  return sum;
}

// Ones' complement sum of an ICMPv6 message and its pseudo header: all ones
// when the checksum in it is right.
uint16_t IcmpSum(const wire::Ipv6& header, const uint8_t* message,
                 uint32_t bytes) {
  uint32_t sum = Sum(header.source_hi) + Sum(header.source_lo) +
                 Sum(header.destination_hi) + Sum(header.destination_lo) +
                 bytes + kNextIcmp;
  for (uint32_t i = 0; i < bytes; ++i) {
    sum += i % 2 == 0 ? static_cast<uint32_t>(message[i]) << 8 : message[i];
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>(sum);
}

bool ParseArp(const uint8_t* bytes, uint32_t count, const LinkIdentity& self,
              bool to_us, NeighbourPacket& packet) {
  if (count < wire::Arp::kBytes) {
    return false;
  }
  const auto arp = wire::Arp::Decode(bytes);
  const bool request = arp.operation == ArpOperation::kRequest;
  if (arp.hardware_type != kHardwareEthernet ||
      arp.protocol_type != kEtherTypeIpv4 || arp.hardware_length != kMacBytes ||
      arp.protocol_length != kIpv4Bytes ||
      (!request && arp.operation != ArpOperation::kReply) ||
      !IsStation(arp.sender_mac)) {
    return false;
  }
  packet.asks = request;
  packet.from_nobody = arp.sender_ip == 0;
  packet.tells = arp.sender_ip != 0;
  packet.replaces = true;
  packet.sender = FabricAddress::Ipv4(arp.sender_ip);
  packet.target = FabricAddress::Ipv4(arp.target_ip);
  packet.solicited = !request && to_us && packet.target == self.address;
  packet.mac = arp.sender_mac;
  packet.answer_mac = arp.sender_mac;
  return true;
}

// Walks the options behind a message; false when they are malformed.
bool ParseOptions(const uint8_t* bytes, uint32_t count, NdOption wanted,
                  uint64_t& mac) {
  while (count != 0) {
    if (count < kOptionUnit) {
      return false;
    }
    const auto option = wire::NeighborOption::Decode(bytes);
    const uint32_t length = option.length * kOptionUnit;
    if (length == 0 || length > count) {
      return false;
    }
    if (option.type == wanted && length == kOptionUnit) {
      mac = option.mac;
    }
    bytes += length;
    count -= length;
  }
  return true;
}

bool ParseSolicitation(const wire::Ipv6& header, uint64_t mac,
                       NeighbourPacket& packet) {
  packet.asks = true;
  packet.from_nobody = IsUnspecified(SourceOf(header));
  if (packet.from_nobody &&
      (mac != 0 || !(DestinationOf(header) == SolicitedNode(packet.target)))) {
    return false;
  }
  packet.sender = SourceOf(header);
  packet.tells = mac != 0;
  packet.answer_mac = mac != 0 ? mac : packet.answer_mac;
  packet.replaces = true;
  return true;
}

bool ParseAdvertisement(const wire::Ipv6& header,
                        const wire::NeighborMessage& message, uint64_t mac,
                        NeighbourPacket& packet) {
  packet.solicited = message.solicited != 0;
  if (packet.solicited && IsMulticast(DestinationOf(header))) {
    return false;
  }
  packet.sender = packet.target;
  packet.tells = mac != 0;
  packet.replaces = message.replaces != 0;
  return true;
}

bool ParseDiscovery(const uint8_t* bytes, uint32_t count,
                    NeighbourPacket& packet) {
  if (count < wire::Ipv6::kBytes + wire::NeighborMessage::kBytes) {
    return false;
  }
  const auto header = wire::Ipv6::Decode(bytes);
  const uint32_t length = header.payload_length;
  if (header.version != 6 || header.next_header != kNextIcmp ||
      header.hop_limit != kHopLimit || length < wire::NeighborMessage::kBytes ||
      length > count - wire::Ipv6::kBytes || IsMulticast(SourceOf(header))) {
    return false;
  }
  const uint8_t* const body = bytes + wire::Ipv6::kBytes;
  const auto message = wire::NeighborMessage::Decode(body);
  packet.target = FabricAddress::Ipv6(message.target_hi, message.target_lo);
  if (IcmpSum(header, body, length) != 0xffff || message.code != 0 ||
      IsMulticast(packet.target)) {
    return false;
  }
  const bool solicitation = message.type == Icmpv6Type::kNeighborSolicitation;
  if (!solicitation && message.type != Icmpv6Type::kNeighborAdvertisement) {
    return false;
  }
  if (!ParseOptions(
          body + wire::NeighborMessage::kBytes,
          length - static_cast<uint32_t>(wire::NeighborMessage::kBytes),
          solicitation ? NdOption::kSourceLink : NdOption::kTargetLink,
          packet.mac) ||
      (packet.mac != 0 && !IsStation(packet.mac))) {
    return false;
  }
  return solicitation ? ParseSolicitation(header, packet.mac, packet)
                      : ParseAdvertisement(header, message, packet.mac, packet);
}

// Writes the Ethernet header, with a tag where the link has one; returns its
// length.
uint32_t PutEthernet(const LinkIdentity& self, uint64_t destination,
                     uint16_t ethertype, SlowPath::Frame& frame) {
  constexpr auto kPlain = static_cast<uint32_t>(wire::Ethernet::kBytes);
  wire::Ethernet{
      .destination = destination, .source = self.mac, .ethertype = ethertype}
      .Encode(frame.byte);
  if (self.vlan == 0) {
    return kPlain;
  }
  wire::Vlan{.tpid = kEtherTypeVlan, .vid = self.vlan}.Encode(frame.byte +
                                                              kTypeOffset);
  constexpr uint32_t kInner = kTypeOffset + wire::Vlan::kBytes;
  frame.byte[kInner] = static_cast<uint8_t>(ethertype >> 8);
  frame.byte[kInner + 1] = static_cast<uint8_t>(ethertype & 0xff);
  return kPlain + static_cast<uint32_t>(wire::Vlan::kBytes);
}

void BuildArp(const LinkIdentity& self, ArpOperation operation,
              uint64_t destination, const FabricAddress& target,
              SlowPath::Frame& frame) {
  // A question does not know it.
  const uint64_t target_mac =
      operation == ArpOperation::kReply ? destination : 0;
  const uint32_t at = PutEthernet(self, destination, kEtherTypeArp, frame);
  wire::Arp{.hardware_type = kHardwareEthernet,
            .protocol_type = kEtherTypeIpv4,
            .hardware_length = kMacBytes,
            .protocol_length = kIpv4Bytes,
            .operation = operation,
            .sender_mac = self.mac,
            .sender_ip = static_cast<uint32_t>(self.address.lo),
            .target_mac = target_mac,
            .target_ip = static_cast<uint32_t>(target.lo)}
      .Encode(frame.byte + at);
  frame.bytes = at + static_cast<uint32_t>(wire::Arp::kBytes);
}

void BuildDiscovery(const LinkIdentity& self, uint64_t destination_mac,
                    const FabricAddress& destination,
                    const wire::NeighborMessage& message,
                    SlowPath::Frame& frame) {
  constexpr uint32_t kLength =
      wire::NeighborMessage::kBytes + wire::NeighborOption::kBytes;
  const uint32_t at = PutEthernet(self, destination_mac, kEtherTypeIpv6, frame);
  const wire::Ipv6 header{.version = 6,
                          .payload_length = kLength,
                          .next_header = kNextIcmp,
                          .hop_limit = kHopLimit,
                          .source_hi = self.address.hi,
                          .source_lo = self.address.lo,
                          .destination_hi = destination.hi,
                          .destination_lo = destination.lo};
  header.Encode(frame.byte + at);
  uint8_t* const body = frame.byte + at + wire::Ipv6::kBytes;
  const bool asks = message.type == Icmpv6Type::kNeighborSolicitation;
  wire::NeighborOption{
      .type = asks ? NdOption::kSourceLink : NdOption::kTargetLink,
      .length = 1,
      .mac = self.mac}
      .Encode(body + wire::NeighborMessage::kBytes);
  wire::NeighborMessage whole = message;
  whole.checksum = 0;
  whole.Encode(body);
  whole.checksum = static_cast<uint16_t>(~IcmpSum(header, body, kLength));
  whole.Encode(body);
  frame.bytes = at + static_cast<uint32_t>(wire::Ipv6::kBytes) + kLength;
}

}  // namespace

bool ParseNeighbourPacket(const SlowPath::Frame& frame,
                          const LinkIdentity& self, NeighbourPacket& packet) {
  constexpr uint32_t kTagged = wire::Ethernet::kBytes + wire::Vlan::kBytes;
  if (frame.bytes < kTagged) {
    return false;
  }
  const auto ethernet = wire::Ethernet::Decode(frame.byte);
  const bool to_us = ethernet.destination == self.mac;
  if ((!to_us && (ethernet.destination & kGroupBit) == 0) ||
      !IsStation(ethernet.source)) {
    return false;
  }
  uint32_t at = wire::Ethernet::kBytes;
  uint16_t ethertype = ethernet.ethertype;
  if (ethertype == kEtherTypeVlan) {
    // The NIC let only the port's VLAN pass.
    ethertype = static_cast<uint16_t>(frame.byte[kTagged - 2] << 8 |
                                      frame.byte[kTagged - 1]);
    at = kTagged;
  }
  packet = {};
  packet.answer_mac = ethernet.source;
  const uint8_t* const bytes = frame.byte + at;
  const uint32_t count = frame.bytes - at;
  if (self.address.ipv6) {
    return ethertype == kEtherTypeIpv6 && ParseDiscovery(bytes, count, packet);
  }
  return ethertype == kEtherTypeArp &&
         ParseArp(bytes, count, self, to_us, packet);
}

void BuildQuestion(const LinkIdentity& self, const FabricAddress& target,
                   SlowPath::Frame& frame) {
  if (!self.address.ipv6) {
    BuildArp(self, ArpOperation::kRequest, kBroadcastMac, target, frame);
    return;
  }
  const FabricAddress group = SolicitedNode(target);
  BuildDiscovery(self, kMulticastMac | (group.lo & kMulticastMacBits), group,
                 {.type = Icmpv6Type::kNeighborSolicitation,
                  .target_hi = target.hi,
                  .target_lo = target.lo},
                 frame);
}

void BuildAnswer(const LinkIdentity& self, const NeighbourPacket& question,
                 SlowPath::Frame& frame) {
  if (!self.address.ipv6) {
    BuildArp(self, ArpOperation::kReply, question.answer_mac, question.sender,
             frame);
    return;
  }
  const bool to_all = question.from_nobody;
  const FabricAddress all = FabricAddress::Ipv6(kMulticastPrefix, kAllNodesLow);
  BuildDiscovery(self,
                 to_all ? kMulticastMac | kAllNodesLow : question.answer_mac,
                 to_all ? all : question.sender,
                 {.type = Icmpv6Type::kNeighborAdvertisement,
                  .solicited = static_cast<uint8_t>(to_all ? 0 : 1),
                  .replaces = 1,
                  .target_hi = self.address.hi,
                  .target_lo = self.address.lo},
                 frame);
}

}  // namespace heddle::firmware
