// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/udp_frame.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/frame/crc32c.h"
#include "hw/soft/frame/internet_checksum.h"

namespace heddle::soft::udp {

using contract::wire::Ethernet;
using contract::wire::Ipv4;
using contract::wire::Ipv6;
using contract::wire::Udp;
using frame::ChecksumFold;
using frame::ChecksumPart;
using frame::ChecksumWord;
using frame::Crc32cState;

namespace {

constexpr uint16_t kEtherTypeIpv4 = 0x0800;
constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
constexpr uint8_t kProtocolUdp = 17;
constexpr uint8_t kTtl = 64;
constexpr uint8_t kDontFragment = 2;
constexpr size_t kIpAt = Ethernet::kBytes;
// In their headers. CRC and pseudo header start with the source address.
constexpr size_t kSourceInIpv4 = 12;
constexpr size_t kSourceInIpv6 = 8;
constexpr size_t kChecksumInIpv4 = 10;
constexpr size_t kChecksumInUdp = 6;

size_t HeaderBytes(bool ipv6) {
  return ipv6 ? Ipv6::kBytes : Ipv4::kBytes;
}

void Store16(uint8_t* bytes, uint16_t value) {
  bytes[0] = static_cast<uint8_t>(value >> 8);
  bytes[1] = static_cast<uint8_t>(value);
}

// `bytes` of payload, CRC included.
void EncodeIp(const UdpFlow& flow, size_t bytes, uint8_t* out) {
  const size_t udp_bytes = Udp::kBytes + bytes;
  if (flow.source.ipv6) {
    Ipv6 header;
    header.version = 6;
    header.dscp = flow.tos >> kDscpShift;
    header.ecn = flow.tos & kEcnMask;
    header.payload_length = static_cast<uint16_t>(udp_bytes);
    header.next_header = kProtocolUdp;
    header.hop_limit = kTtl;
    header.source_hi = flow.source.hi;
    header.source_lo = flow.source.lo;
    header.destination_hi = flow.destination.hi;
    header.destination_lo = flow.destination.lo;
    header.Encode(out);
    return;
  }
  Ipv4 header;
  header.version = 4;
  header.ihl = Ipv4::kBytes / 4;
  header.dscp = flow.tos >> kDscpShift;
  header.ecn = flow.tos & kEcnMask;
  header.total_length = static_cast<uint16_t>(Ipv4::kBytes + udp_bytes);
  header.flags = kDontFragment;
  header.ttl = kTtl;
  header.protocol = kProtocolUdp;
  header.source = static_cast<uint32_t>(flow.source.lo);
  header.destination = static_cast<uint32_t>(flow.destination.lo);
  header.Encode(out);
}

void EncodeUdp(const UdpFlow& flow, size_t bytes, uint8_t* out) {
  Udp header;
  header.source_port = flow.source_port;
  header.destination_port = flow.destination_port;
  header.length = static_cast<uint16_t>(Udp::kBytes + bytes);
  header.Encode(out);
}

bool IsIpv6(const sim::frame::Frame& frame) {
  return frame[kIpAt - 1] == (kEtherTypeIpv6 & 0xff);
}

size_t SourceInIp(bool ipv6) {
  return ipv6 ? kSourceInIpv6 : kSourceInIpv4;
}

}  // namespace

uint32_t DatagramCrc(const UdpFlow& flow, std::span<const uint8_t> payload) {
  std::array<uint8_t, Ipv6::kBytes + Udp::kBytes> headers{};
  const size_t bytes = payload.size() + contract::kCrcBytes;
  const size_t ip_bytes = HeaderBytes(flow.source.ipv6);
  EncodeIp(flow, bytes, headers.data());
  EncodeUdp(flow, bytes, headers.data() + ip_bytes);
  const auto covered = std::span<const uint8_t>(headers)
                           .first(ip_bytes + Udp::kBytes)
                           .subspan(SourceInIp(flow.source.ipv6));
  return ~Crc32cState(Crc32cState(~uint32_t{0}, covered), payload);
}

void BuildUdpFrame(const UdpFlow& flow, std::span<const uint8_t> payload,
                   sim::frame::Frame* frame) {
  const bool ipv6 = flow.source.ipv6;
  const size_t udp_at = kIpAt + HeaderBytes(ipv6);
  const size_t udp_bytes = Udp::kBytes + payload.size();
  frame->resize(udp_at + udp_bytes);
  uint8_t* const bytes = frame->data();
  Ethernet ethernet;
  ethernet.destination = sim::frame::PortMac(flow.destination, 0);
  ethernet.source = sim::frame::PortMac(flow.source, 0);
  ethernet.ethertype = ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4;
  ethernet.Encode(bytes);
  EncodeIp(flow, payload.size(), bytes + kIpAt);
  EncodeUdp(flow, payload.size(), bytes + udp_at);
  std::copy(payload.begin(), payload.end(), bytes + udp_at + Udp::kBytes);
  const std::span<const uint8_t> all(*frame);
  if (!ipv6) {
    const auto sum =
        ChecksumFold(ChecksumPart(all.subspan(kIpAt, Ipv4::kBytes)));
    Store16(bytes + kIpAt + kChecksumInIpv4, static_cast<uint16_t>(~sum));
  }
  const uint64_t sum = ChecksumPart(all.subspan(kIpAt + SourceInIp(ipv6))) +
                       ChecksumWord(static_cast<uint16_t>(udp_bytes)) +
                       ChecksumWord(kProtocolUdp);
  const auto checksum = static_cast<uint16_t>(~ChecksumFold(sum));
  Store16(bytes + udp_at + kChecksumInUdp, checksum == 0 ? 0xffff : checksum);
}

UdpFlow UdpFrameFlow(const sim::frame::Frame& frame) {
  const uint8_t* const ip = frame.data() + kIpAt;
  const bool ipv6 = IsIpv6(frame);
  const auto udp = Udp::Decode(ip + HeaderBytes(ipv6));
  UdpFlow flow{.source = {},
               .destination = {},
               .source_port = udp.source_port,
               .destination_port = udp.destination_port,
               .tos = 0};
  if (ipv6) {
    const auto header = Ipv6::Decode(ip);
    flow.source = {header.source_hi, header.source_lo};
    flow.destination = {header.destination_hi, header.destination_lo};
    flow.tos = static_cast<uint8_t>(header.dscp << kDscpShift | header.ecn);
  } else {
    const auto header = Ipv4::Decode(ip);
    flow.source = header.source;
    flow.destination = header.destination;
    flow.tos = static_cast<uint8_t>(header.dscp << kDscpShift | header.ecn);
  }
  return flow;
}

std::span<const uint8_t> UdpFramePayload(const sim::frame::Frame& frame) {
  return std::span(frame).subspan(kIpAt + HeaderBytes(IsIpv6(frame)) +
                                  Udp::kBytes);
}

}  // namespace heddle::soft::udp
