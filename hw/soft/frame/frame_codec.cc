// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/frame/frame_codec.h"

#include <array>
#include <cstring>

#include "hw/soft/frame/crc32c.h"
#include "hw/soft/frame/internet_checksum.h"
#include "hw/soft/frame/layout.h"

namespace heddle::soft::frame {

using contract::wire::Ethernet;
using contract::wire::Ipv4;
using contract::wire::Ipv6;
using contract::wire::Udp;
using contract::wire::Vlan;

namespace {

using contract::CrcOrder;
using contract::Statistic;

bool IsNeighborMessage(uint8_t type) {
  using contract::Icmpv6Type;
  return type == static_cast<uint8_t>(Icmpv6Type::kNeighborSolicitation) ||
         type == static_cast<uint8_t>(Icmpv6Type::kNeighborAdvertisement);
}

// Takes a frame apart as far as it goes. Members answer false once the frame's
// fate is known.
class Reader {
 public:
  Reader(const contract::PortCfg& port, const contract::TransportCfg& transport,
         std::span<const uint8_t> frame, bool unchecked)
      : port_(port),
        transport_(transport),
        frame_(frame),
        unchecked_(unchecked),
        layer4_bytes_(wire::Layer4Bytes(port)) {}

  // `result` is as new.
  void Read(ParsedFrame* result) {
    result_ = result;
    const bool layers =
        ReadPlain() || (ReadEthernet() && (ipv6_ ? ReadIpv6() : ReadIpv4()));
    if (layers && ReadLayer4() && CheckCrc()) {
      result->kind = ParsedFrame::Kind::kDatagram;
    }
  }

 private:
  bool Drop(Statistic reason) {
    result_->kind = ParsedFrame::Kind::kDropped;
    result_->reason = reason;
    return false;
  }
  bool SlowPath() {
    result_->kind = ParsedFrame::Kind::kSlowPath;
    return false;
  }

  // A good datagram over IPv4 without a tag, as nearly all are. False: it is
  // for the other members to say what this is; nothing was noted.
  bool ReadPlain() {
    constexpr size_t kLayer3 = Ethernet::kBytes;
    constexpr size_t kLayer4 = kLayer3 + Ipv4::kBytes;
    constexpr uint8_t kVersionAndLength = 4 << 4 | kIpv4Words;
    constexpr uint16_t kFragment = (kMoreFragments << 13) | 0x1fff;
    const uint8_t* const ip = frame_.data() + kLayer3;
    if (port_.ipv6 != 0 || (port_.vlan & kVlanMask) != 0 ||
        frame_.size() < kLayer4 + layer4_bytes_ ||
        Load16(ip - kTypeBytes) != kEtherTypeIpv4 ||
        ip[0] != kVersionAndLength || (Load16(ip + 6) & kFragment) != 0 ||
        ip[9] != IpProtocol(port_) ||
        Load32(ip + 16) != static_cast<uint32_t>(port_.local_fa_lo) ||
        ChecksumFold(ChecksumPart({ip, Ipv4::kBytes})) != kSumOfGood) {
      return false;
    }
    l3_ = kLayer3;
    layer4_ = kLayer4;
    end_ = kLayer3 + Load16(ip + kLengthInIpv4);
    covered_ = kLayer3 + kSourceInIpv4;
    trim_ = wire::TrimOf(transport_, ip[1] >> 2);
    if (!IsWhole(true)) {
      return false;
    }
    result_->source_mac =
        uint64_t{Load16(frame_.data() + 6)} << 32 | Load32(frame_.data() + 8);
    TakeIp({.lo = Load32(ip + kSourceInIpv4)}, ip[1] >> 2, ip[1] & 3);
    return true;
  }

  bool ReadEthernet() {
    constexpr size_t kType = Ethernet::kBytes - kTypeBytes;
    l3_ = Ethernet::kBytes;
    if (frame_.size() < l3_) {
      return Drop(Statistic::kDropTruncated);
    }
    const auto ethernet = Ethernet::Decode(frame_.data());
    result_->source_mac = ethernet.source;
    uint16_t type = ethernet.ethertype;
    uint16_t vlan = 0;
    if (type == kEtherTypeVlan) {
      l3_ += Vlan::kBytes;
      if (frame_.size() < l3_) {
        return Drop(Statistic::kDropTruncated);
      }
      vlan = Vlan::Decode(frame_.data() + kType).vid;
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
    layer4_ = l3_ + IpBytes(ipv6_);
    return frame_.size() >= layer4_ || Drop(Statistic::kDropTruncated);
  }

  bool ReadIpv4() {
    const uint8_t* const bytes = frame_.data() + l3_;
    const auto ip = Ipv4::Decode(bytes);
    const bool good = ip.version == 4 && ip.ihl == kIpv4Words &&
                      (ip.flags & kMoreFragments) == 0 &&
                      ip.fragment_offset == 0 &&
                      ip.protocol == IpProtocol(port_);
    end_ = l3_ + ip.total_length;
    trim_ = wire::TrimOf(transport_, ip.dscp);
    if (!IsWhole(good)) {
      return Drop(Statistic::kDropTruncated);
    }
    if (!good) {
      return Drop(Statistic::kDropIpHeader);
    }
    if (ChecksumFold(ChecksumPart({bytes, Ipv4::kBytes})) != kSumOfGood) {
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
    const auto ip = Ipv6::Decode(frame_.data() + l3_);
    const bool good = ip.version == 6 && ip.next_header == IpProtocol(port_);
    end_ = layer4_ + ip.payload_length;
    trim_ = wire::TrimOf(transport_, ip.dscp);
    if (!IsWhole(good)) {
      return Drop(Statistic::kDropTruncated);
    }
    if (ip.version == 6 && ip.next_header == kNextIcmpv6 && end_ > layer4_ &&
        IsNeighborMessage(frame_[layer4_])) {
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

  // The frame holds the IP datagram; UDP, if a good one has it, says the same
  // length, unless it was trimmed, and it is that of a datagram of ours.
  bool IsWhole(bool good) const {
    const size_t least =
        layer4_bytes_ + contract::wire::PdsPrologue::kBytes +
        (port_.crc != CrcOrder::kNone ? contract::kCrcBytes : 0);
    if (end_ > frame_.size() || !good) {
      return end_ <= frame_.size();
    }
    if (trim_ != wire::Trim::kNone) {
      return end_ >= layer4_ + layer4_bytes_ + wire::kTrimmedBytes;
    }
    return end_ >= layer4_ + least &&
           (port_.ip_protocol != 0 ||
            Load16(frame_.data() + layer4_ + kLengthInUdp) == end_ - layer4_);
  }

  void TakeIp(const wire::FabricAddress& source, uint8_t dscp, uint8_t ecn) {
    result_->datagram.source = source;
    result_->datagram.dscp = dscp;
    result_->datagram.congestion = ecn == kCongestionExperienced;
    result_->datagram.trim = trim_;
  }

  bool ReadLayer4() {
    const uint8_t* const layer4 = frame_.data() + layer4_;
    result_->datagram.source_udp_port = Load16(layer4);
    return port_.ip_protocol != 0 ||
           Load16(layer4 + kPortInUdp) == port_.udp_port ||
           Drop(Statistic::kDropUdpPort);
  }

  bool CheckCrc() {
    const size_t trailer =
        port_.crc != CrcOrder::kNone && trim_ == wire::Trim::kNone
            ? contract::kCrcBytes
            : 0;
    const size_t first = layer4_ + layer4_bytes_;
    result_->datagram.bytes = frame_.subspan(first, end_ - trailer - first);
    if (trailer == 0 || unchecked_) {
      return true;
    }
    // Behind the addresses; the UDP checksum counts as zero.
    std::array<uint8_t, kMostCovered> stack{};
    const size_t ahead = first - covered_;
    const size_t left_out = port_.ip_protocol == 0 ? kChecksumBytes : 0;
    std::memcpy(stack.data(), frame_.data() + covered_, ahead - left_out);
    const uint32_t state =
        Crc32cState(Crc32cState(~uint32_t{0}, {stack.data(), ahead}),
                    result_->datagram.bytes);
    return LoadCrc(port_.crc, frame_.data() + end_ - trailer) == ~state ||
           Drop(Statistic::kDropCrc);
  }

  // Addresses and UDP header, the longest.
  static constexpr size_t kMostCovered =
      Ipv6::kBytes - kSourceInIpv6 + Udp::kBytes;

  const contract::PortCfg& port_;
  const contract::TransportCfg& transport_;
  const std::span<const uint8_t> frame_;
  const bool unchecked_;
  const size_t layer4_bytes_;
  ParsedFrame* result_ = nullptr;
  bool ipv6_ = false;
  wire::Trim trim_ = wire::Trim::kNone;
  // Bytes of the frame where things start.
  size_t l3_ = 0;
  size_t covered_ = 0;
  size_t layer4_ = 0;  // UDP or entropy header.
  size_t end_ = 0;     // Of the IP datagram.
};

}  // namespace

std::span<const uint8_t> FrameCodec::Build(const FrameHeader& header,
                                           std::span<uint8_t> buffer,
                                           size_t bytes, bool unchecked) {
  const bool ipv6 = port_.ipv6 != 0;
  const size_t trailer = port_.crc != CrcOrder::kNone ? contract::kCrcBytes : 0;
  const size_t layer4_bytes = wire::Layer4Bytes(port_);
  const auto ip_payload = static_cast<uint16_t>(layer4_bytes + bytes + trailer);
  uint8_t* const datagram = buffer.data() + kHeadroom;
  const size_t stack =
      stacks_.Put(port_, header, ip_payload, buffer.first<kHeadroom>());

  const uint8_t* const covered = datagram - layer4_bytes - IpBytes(ipv6) +
                                 (ipv6 ? kSourceInIpv6 : kSourceInIpv4);
  uint8_t* end = datagram + bytes;
  if (trailer != 0) {
    const uint32_t crc =
        unchecked ? 0 : Crc32c({covered, static_cast<size_t>(end - covered)});
    StoreCrc(port_.crc, crc, end);
    end += trailer;
  }
  uint8_t* const frame = datagram - stack;
  auto length = static_cast<size_t>(end - frame);
  if (length < kShortestFrame) {
    std::memset(end, 0, kShortestFrame - length);
    length = kShortestFrame;
  }
  return {frame, length};
}

ParsedFrame FrameCodec::Parse(std::span<const uint8_t> frame,
                              sim::frame::FrameMarks marks) const {
  ParsedFrame result;
  if (port_.enable == 0) {
    return result;
  }
  if (marks.bad_fcs) {
    result.kind = ParsedFrame::Kind::kDropped;
    result.reason = Statistic::kDropMacError;
    return result;
  }
  Reader(port_, transport_, frame, marks.unchecked).Read(&result);
  return result;
}

}  // namespace heddle::soft::frame
