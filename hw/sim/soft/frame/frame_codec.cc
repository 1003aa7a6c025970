// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/soft/frame/frame_codec.h"

#include <array>
#include <bit>
#include <cstring>

#include "hw/sim/soft/frame/crc32c.h"
#include "hw/sim/soft/frame/internet_checksum.h"

namespace heddle::sim::soft {
namespace {

namespace wire = contract::wire;
using contract::Statistic;

constexpr uint16_t kEtherTypeIpv4 = 0x0800;
constexpr uint16_t kEtherTypeArp = 0x0806;
constexpr uint16_t kEtherTypeVlan = 0x8100;
constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
constexpr uint8_t kProtocolUdp = 17;
constexpr uint8_t kNextIcmpv6 = 58;
constexpr uint8_t kTtl = 64;
constexpr uint8_t kDontFragment = 2;
constexpr uint8_t kMoreFragments = 1;
constexpr uint8_t kIpv4Words = wire::Ipv4::kBytes / 4;
constexpr uint8_t kCongestionExperienced = 3;
constexpr uint16_t kSumOfGood = 0xffff;
constexpr uint16_t kVlanMask = 0xfff;
// In their headers. What CRC and UDP checksum cover starts with the source
// address.
constexpr size_t kSourceInIpv4 = 12;
constexpr size_t kSourceInIpv6 = 8;
constexpr size_t kChecksumInIpv4 = 10;
constexpr size_t kChecksumInUdp = 6;
constexpr size_t kChecksumBytes = 2;
constexpr size_t kTypeBytes = 2;

static_assert(std::endian::native == std::endian::little);

uint16_t Load16(const uint8_t* bytes) {
  return static_cast<uint16_t>(bytes[0] << 8 | bytes[1]);
}

void Store16(uint8_t* bytes, uint16_t value) {
  bytes[0] = static_cast<uint8_t>(value >> 8);
  bytes[1] = static_cast<uint8_t>(value);
}

// What a UDP checksum covers, with lengths and protocol of the pseudo header;
// `covered` starts with the source address.
uint64_t DatagramSum(std::span<const uint8_t> covered, uint16_t udp_bytes) {
  return ChecksumPart(covered) + ChecksumWord(udp_bytes) +
         ChecksumWord(kProtocolUdp);
}

size_t IpBytes(bool ipv6) {
  return ipv6 ? wire::Ipv6::kBytes : wire::Ipv4::kBytes;
}

void EncodeIpv4(const contract::PortCfg& port, const FrameHeader& header,
                uint16_t udp_bytes, uint8_t* out) {
  wire::Ipv4 ip;
  ip.version = 4;
  ip.ihl = kIpv4Words;
  ip.dscp = header.dscp;
  ip.total_length = static_cast<uint16_t>(wire::Ipv4::kBytes + udp_bytes);
  ip.flags = kDontFragment;
  ip.ttl = kTtl;
  ip.protocol = kProtocolUdp;
  ip.source = static_cast<uint32_t>(port.local_fa_lo);
  ip.destination = static_cast<uint32_t>(header.destination.lo);
  ip.Encode(out);
  const uint16_t sum = ChecksumFold(ChecksumPart({out, wire::Ipv4::kBytes}));
  Store16(out + kChecksumInIpv4, static_cast<uint16_t>(~sum));
}

void EncodeIpv6(const contract::PortCfg& port, const FrameHeader& header,
                uint16_t udp_bytes, uint8_t* out) {
  wire::Ipv6 ip;
  ip.version = 6;
  ip.dscp = header.dscp;
  ip.payload_length = udp_bytes;
  ip.next_header = kProtocolUdp;
  ip.hop_limit = kTtl;
  ip.source_hi = port.local_fa_hi;
  ip.source_lo = port.local_fa_lo;
  ip.destination_hi = header.destination.hi;
  ip.destination_lo = header.destination.lo;
  ip.Encode(out);
}

bool IsNeighborMessage(uint8_t type) {
  using contract::Icmpv6Type;
  return type == static_cast<uint8_t>(Icmpv6Type::kNeighborSolicitation) ||
         type == static_cast<uint8_t>(Icmpv6Type::kNeighborAdvertisement);
}

// Takes a frame apart as far as it goes. Members answer false once the frame's
// fate is known.
class Reader {
 public:
  Reader(const contract::PortCfg& port, std::span<const uint8_t> frame)
      : port_(port), frame_(frame) {}

  ParsedFrame Read() {
    if (ReadEthernet() && (ipv6_ ? ReadIpv6() : ReadIpv4()) && ReadUdp() &&
        CheckCrc()) {
      result_.kind = ParsedFrame::Kind::kDatagram;
    }
    return result_;
  }

 private:
  bool Drop(Statistic reason) {
    result_.kind = ParsedFrame::Kind::kDropped;
    result_.reason = reason;
    return false;
  }
  bool SlowPath() {
    result_.kind = ParsedFrame::Kind::kSlowPath;
    return false;
  }

  bool ReadEthernet() {
    constexpr size_t kType = wire::Ethernet::kBytes - kTypeBytes;
    l3_ = wire::Ethernet::kBytes;
    if (frame_.size() < l3_) {
      return Drop(Statistic::kDropTruncated);
    }
    const auto ethernet = wire::Ethernet::Decode(frame_.data());
    result_.source_mac = ethernet.source;
    uint16_t type = ethernet.ethertype;
    uint16_t vlan = 0;
    if (type == kEtherTypeVlan) {
      l3_ += wire::Vlan::kBytes;
      if (frame_.size() < l3_) {
        return Drop(Statistic::kDropTruncated);
      }
      vlan = wire::Vlan::Decode(frame_.data() + kType).vid;
      type = Load16(frame_.data() + l3_ - kTypeBytes);
    }
    if (vlan != (port_.vlan & kVlanMask)) {
      return Drop(Statistic::kDropVlan);
    }
    if (type == kEtherTypeArp) {
      return SlowPath();
    }
    ipv6_ = type == kEtherTypeIpv6;
    if (!ipv6_ && type != kEtherTypeIpv4) {
      return Drop(Statistic::kDropEthertype);
    }
    udp_ = l3_ + IpBytes(ipv6_);
    return frame_.size() >= udp_ || Drop(Statistic::kDropTruncated);
  }

  bool ReadIpv4() {
    const uint8_t* const bytes = frame_.data() + l3_;
    const auto ip = wire::Ipv4::Decode(bytes);
    const bool good = ip.version == 4 && ip.ihl == kIpv4Words &&
                      (ip.flags & kMoreFragments) == 0 &&
                      ip.fragment_offset == 0 && ip.protocol == kProtocolUdp;
    end_ = l3_ + ip.total_length;
    if (!IsWhole(good)) {
      return Drop(Statistic::kDropTruncated);
    }
    if (!good) {
      return Drop(Statistic::kDropIpHeader);
    }
    if (ChecksumFold(ChecksumPart({bytes, wire::Ipv4::kBytes})) != kSumOfGood) {
      return Drop(Statistic::kDropIpChecksum);
    }
    if (port_.ipv6 != 0 ||
        ip.destination != static_cast<uint32_t>(port_.local_fa_lo)) {
      return Drop(Statistic::kDropIpAddress);
    }
    covered_ = l3_ + kSourceInIpv4;
    TakeIp({.lo = ip.source}, ip.dscp, ip.ecn);
    return true;
  }

  bool ReadIpv6() {
    const auto ip = wire::Ipv6::Decode(frame_.data() + l3_);
    const bool good = ip.version == 6 && ip.next_header == kProtocolUdp;
    end_ = udp_ + ip.payload_length;
    if (!IsWhole(good)) {
      return Drop(Statistic::kDropTruncated);
    }
    if (ip.version == 6 && ip.next_header == kNextIcmpv6 && end_ > udp_ &&
        IsNeighborMessage(frame_[udp_])) {
      return SlowPath();
    }
    if (!good) {
      return Drop(Statistic::kDropIpHeader);
    }
    if (port_.ipv6 == 0 || ip.destination_hi != port_.local_fa_hi ||
        ip.destination_lo != port_.local_fa_lo) {
      return Drop(Statistic::kDropIpAddress);
    }
    covered_ = l3_ + kSourceInIpv6;
    TakeIp({.lo = ip.source_lo, .hi = ip.source_hi, .ipv6 = true}, ip.dscp,
           ip.ecn);
    return true;
  }

  // The frame holds the IP datagram; UDP, in a good one, says the same length,
  // and it is that of a datagram of ours.
  bool IsWhole(bool good) const {
    const size_t least = wire::Udp::kBytes + wire::PdsPrologue::kBytes +
                         (port_.crc != 0 ? contract::kCrcBytes : 0);
    return end_ <= frame_.size() &&
           (!good ||
            (end_ >= udp_ + least &&
             wire::Udp::Decode(frame_.data() + udp_).length == end_ - udp_));
  }

  void TakeIp(const FabricAddress& source, uint8_t dscp, uint8_t ecn) {
    result_.datagram.source = source;
    result_.datagram.dscp = dscp;
    result_.datagram.congestion = ecn == kCongestionExperienced;
  }

  bool ReadUdp() {
    const auto udp = wire::Udp::Decode(frame_.data() + udp_);
    result_.datagram.source_udp_port = udp.source_port;
    if (udp.destination_port != port_.udp_port) {
      return Drop(Statistic::kDropUdpPort);
    }
    // On IPv4 a sender may leave the checksum out.
    if (udp.checksum == 0) {
      return !ipv6_ || Drop(Statistic::kDropUdpChecksum);
    }
    const auto covered = frame_.subspan(covered_, end_ - covered_);
    return ChecksumFold(DatagramSum(covered, udp.length)) == kSumOfGood ||
           Drop(Statistic::kDropUdpChecksum);
  }

  bool CheckCrc() {
    const size_t trailer = port_.crc != 0 ? contract::kCrcBytes : 0;
    const size_t first = udp_ + wire::Udp::kBytes;
    result_.datagram.bytes = frame_.subspan(first, end_ - trailer - first);
    if (trailer == 0) {
      return true;
    }
    constexpr std::array<uint8_t, kChecksumBytes> kNone{};
    const size_t checksum = udp_ + kChecksumInUdp;
    uint32_t state = Crc32cState(~uint32_t{0},
                                 frame_.subspan(covered_, checksum - covered_));
    state = Crc32cState(Crc32cState(state, kNone), result_.datagram.bytes);
    uint32_t sent = 0;  // Least significant byte first.
    std::memcpy(&sent, frame_.data() + end_ - trailer, sizeof(sent));
    return sent == ~state || Drop(Statistic::kDropCrc);
  }

  const contract::PortCfg& port_;
  const std::span<const uint8_t> frame_;
  ParsedFrame result_;
  bool ipv6_ = false;
  // Bytes of the frame where things start.
  size_t l3_ = 0;
  size_t covered_ = 0;
  size_t udp_ = 0;
  size_t end_ = 0;  // Of the IP datagram.
};

}  // namespace

std::span<const uint8_t> FrameCodec::Build(const FrameHeader& header,
                                           std::span<uint8_t> buffer,
                                           size_t bytes) const {
  const bool ipv6 = port_.ipv6 != 0;
  const size_t trailer = port_.crc != 0 ? contract::kCrcBytes : 0;
  const auto udp_bytes =
      static_cast<uint16_t>(wire::Udp::kBytes + bytes + trailer);
  const size_t tag = header.vlan != 0 ? wire::Vlan::kBytes : 0;
  uint8_t* const datagram = buffer.data() + kHeadroom;
  uint8_t* const udp = datagram - wire::Udp::kBytes;
  uint8_t* const ip = udp - IpBytes(ipv6);
  uint8_t* const ethernet = ip - tag - wire::Ethernet::kBytes;

  const wire::Ethernet layer2{
      .destination = header.destination_mac,
      .source = port_.mac,
      .ethertype = ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4};
  layer2.Encode(ethernet);
  if (tag != 0) {
    // The tag takes the place of the type, which moves behind it.
    const wire::Vlan vlan{.tpid = kEtherTypeVlan, .vid = header.vlan};
    vlan.Encode(ip - tag - kTypeBytes);
    Store16(ip - kTypeBytes, layer2.ethertype);
  }
  (ipv6 ? EncodeIpv6 : EncodeIpv4)(port_, header, udp_bytes, ip);
  const wire::Udp layer4{.source_port = header.source_port,
                         .destination_port = port_.udp_port,
                         .length = udp_bytes};
  layer4.Encode(udp);

  const uint8_t* const covered = ip + (ipv6 ? kSourceInIpv6 : kSourceInIpv4);
  uint8_t* end = datagram + bytes;
  if (trailer != 0) {
    const uint32_t crc = Crc32c({covered, static_cast<size_t>(end - covered)});
    std::memcpy(end, &crc, sizeof(crc));  // Least significant byte first.
    end += trailer;
  }
  const auto checksum = static_cast<uint16_t>(~ChecksumFold(
      DatagramSum({covered, static_cast<size_t>(end - covered)}, udp_bytes)));
  Store16(udp + kChecksumInUdp, checksum == 0 ? kSumOfGood : checksum);

  auto length = static_cast<size_t>(end - ethernet);
  if (length < kShortestFrame) {
    std::memset(end, 0, kShortestFrame - length);
    length = kShortestFrame;
  }
  return {ethernet, length};
}

ParsedFrame FrameCodec::Parse(std::span<const uint8_t> frame,
                              bool bad_fcs) const {
  ParsedFrame result;
  if (port_.enable == 0) {
    return result;
  }
  if (bad_fcs) {
    result.kind = ParsedFrame::Kind::kDropped;
    result.reason = Statistic::kDropMacError;
    return result;
  }
  return Reader(port_, frame).Read();
}

}  // namespace heddle::sim::soft
