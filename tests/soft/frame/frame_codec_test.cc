// SPDX-License-Identifier: Apache-2.0
// Against frames put together by the RTL's own tests, and reference frames.
#include "hw/soft/frame/frame_codec.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/fault/faults.h"
#include "tests/frames/worked.h"
#include "tests/frames/worked_headers.h"
#include "tests/rtl/transport/frames.h"

namespace heddle::soft::frame {
namespace {

using contract::CrcOrder;
using contract::Statistic;
using test::Bytes;
using Kind = ParsedFrame::Kind;

constexpr uint64_t kLocalMac = 0x020000000001;
constexpr uint64_t kPeerMac = 0x020000000002;
constexpr uint64_t kLocalLo = 0x0a000001;
constexpr uint64_t kPeerLo = 0x0a000002;
constexpr uint64_t kLocalHi = 0xfd00000000000000;
constexpr uint64_t kPeerHi = 0xfd00000000000001;

// Of each kind of encapsulation.
struct Form {
  bool ipv6;
  uint16_t vlan;
  CrcOrder crc;
  bool native = false;  // No UDP.

  size_t l3() const { return vlan != 0 ? 18 : 14; }
  size_t l4() const { return l3() + (ipv6 ? 40 : 20); }
  size_t pds() const { return l4() + (native ? 4 : 8); }
  uint8_t ip_protocol() const {
    return native ? contract::kNativeIpProtocol : 0;
  }
};

contract::PortCfg Port(const Form& form) {
  contract::PortCfg port;
  port.local_fa_lo = kLocalLo;
  port.local_fa_hi = form.ipv6 ? kLocalHi : 0;
  port.mac = kLocalMac;
  port.payload_mtu = 4096;
  port.udp_port = contract::kUetUdpPort;
  port.enable = 1;
  port.crc = form.crc;
  port.vlan = form.vlan;
  port.ipv6 = form.ipv6 ? 1 : 0;
  port.ip_protocol = form.ip_protocol();
  return port;
}

wire::FabricAddress Peer(const Form& form) {
  return {.lo = kPeerLo, .hi = form.ipv6 ? kPeerHi : 0, .ipv6 = form.ipv6};
}

// As `test::Frame` takes it; towards the peer, or back.
test::Route MakeRoute(const Form& form, bool to_peer) {
  test::Route route;
  route.source_mac = to_peer ? kLocalMac : kPeerMac;
  route.destination_mac = to_peer ? kPeerMac : kLocalMac;
  route.source = to_peer ? kLocalLo : kPeerLo;
  route.destination = to_peer ? kPeerLo : kLocalLo;
  route.source_hi = to_peer ? kLocalHi : kPeerHi;
  route.destination_hi = to_peer ? kPeerHi : kLocalHi;
  route.dscp = 46;
  route.entropy = 0xc123;
  route.ipv6 = form.ipv6;
  route.vlan = form.vlan;
  route.crc = form.crc;
  route.ip_protocol = form.ip_protocol();
  return route;
}

Bytes Hex(std::string_view text) {
  Bytes bytes;
  std::string digits;
  for (const char c : text) {
    if (c != ' ') digits += c;
  }
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(
        static_cast<uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// The worked packets X1, X2, X4, X7, X13, X14 of tests/contract, payload
// included.
std::vector<Bytes> WorkedPackets() {
  return {
      Hex("198c ffff 0001 2345 0011 0000 050b 0001 0000 0042 0003 0005 0000 "
          "0000 0000 0000 0000 0007 0000 0000 0000 0000 0000 0000 0000 0000 "
          "0000 0008 5545 5448 454c 4c4f"),
      Hex("3a00 0000 0001 2345 0022 0011 0000 0001 0000 0000 0000 0000"),
      Hex("1188 ffff 0005 4322 0031 0041 012b 0002 0000 0042 0003 0000 0000 "
          "0000 0000 0100 0000 0000 0000 0000 0000 1234 0000 0000 0000 0000 "
          "0000 0010 0001 0203 0405 0607 0809 0a0b 0c0d 0e0f"),
      Hex("1288 ffff 0005 4321 0041 0031 0201 0000 0000 0042 0003 0040 0000 "
          "0040 0000 0000 0001 0203 0405 0607"),
      Hex("5000 0700 0005 4325 0041 0031 0000 0000"),
      Hex("4200 0003 0005 4330 0041 0031 0008 0001 0000 0000 0000 0006 000a "
          "0000 0004 0002 0000 0000 0000 0000 0000 0000"),
  };
}

class FrameCodecTest : public testing::TestWithParam<Form> {
 protected:
  FrameCodecTest() { codec_.Configure(Port(GetParam())); }

  Bytes Build(const Bytes& datagram, uint16_t vlan) {
    std::vector<uint8_t> buffer(
        FrameCodec::kHeadroom + datagram.size() + FrameCodec::kTailroom, 0xa5);
    std::copy(datagram.begin(), datagram.end(),
              buffer.begin() + FrameCodec::kHeadroom);
    const auto frame = codec_.Build({.destination = Peer(GetParam()),
                                     .destination_mac = kPeerMac,
                                     .vlan = vlan,
                                     .entropy = 0xc123,
                                     .dscp = 46},
                                    buffer, datagram.size());
    return {frame.begin(), frame.end()};
  }
  // The frame that leaves with `datagram`; the reference does not pad.
  static Bytes Leaving(const Bytes& datagram) {
    Bytes frame =
        test::Frame(MakeRoute(GetParam(), /*to_peer=*/true), datagram);
    frame.resize(std::max(frame.size(), FrameCodec::kShortestFrame), 0);
    return frame;
  }
  // A frame that arrives here.
  static Bytes Arriving(const Bytes& datagram) {
    return test::Frame(MakeRoute(GetParam(), /*to_peer=*/false), datagram);
  }
  void ExpectDropped(const Bytes& frame, Statistic reason) {
    const ParsedFrame parsed = codec_.Parse(frame);
    ASSERT_EQ(parsed.kind, Kind::kDropped);
    EXPECT_EQ(static_cast<int>(parsed.reason), static_cast<int>(reason));
  }
  // Mends what stands in front of the check in question.
  static void FixIpv4Checksum(Bytes& frame) {
    if (GetParam().ipv6) return;
    uint8_t* const ip = frame.data() + GetParam().l3();
    ip[10] = ip[11] = 0;
    const auto sum = static_cast<uint16_t>(~test::OnesSum(ip, 20));
    ip[10] = static_cast<uint8_t>(sum >> 8);
    ip[11] = static_cast<uint8_t>(sum);
  }

  FrameCodec codec_;
  const Bytes datagram_ = WorkedPackets()[0];
};

TEST_P(FrameCodecTest, WorkedPacketsAreBuiltByteForByte) {
  for (const Bytes& packet : WorkedPackets()) {
    EXPECT_EQ(Build(packet, GetParam().vlan), Leaving(packet));
  }
}

TEST_P(FrameCodecTest, WorkedPacketsArriveAsTheyAre) {
  for (const Bytes& packet : WorkedPackets()) {
    const Bytes frame = Arriving(packet);
    const ParsedFrame parsed = codec_.Parse(frame);
    ASSERT_EQ(parsed.kind, Kind::kDatagram);
    EXPECT_EQ(Bytes(parsed.datagram.bytes.begin(), parsed.datagram.bytes.end()),
              packet);
    EXPECT_EQ(parsed.datagram.source, Peer(GetParam()));
    EXPECT_EQ(parsed.datagram.source_udp_port, 0xc123);
    EXPECT_EQ(parsed.datagram.dscp, 46);
    EXPECT_FALSE(parsed.datagram.congestion);
    EXPECT_EQ(parsed.source_mac, kPeerMac);
  }
}

// By the DSCP alone, whatever the lengths say; the setting is of each kind.
TEST_P(FrameCodecTest, TrimmedFramesArriveAsFarAsTheyGo) {
  constexpr uint8_t kPath = 3;
  constexpr uint8_t kLasthop = 44;
  contract::TransportCfg transport{};
  transport.dscp_trimmed = kPath;
  transport.dscp_trimmed_lasthop = kLasthop;
  for (const uint8_t dscp : {kPath, kLasthop}) {
    Bytes frame = Arriving(datagram_);
    ASSERT_TRUE(sim::fault::TrimRequest(dscp, &frame));
    codec_.SetTransport({});
    if (!GetParam().native) {  // By the UDP length.
      ExpectDropped(frame, Statistic::kDropTruncated);
    } else if (GetParam().crc != CrcOrder::kNone) {
      ExpectDropped(frame, Statistic::kDropCrc);
    }
    codec_.SetTransport(transport);
    const ParsedFrame parsed = codec_.Parse(frame);
    ASSERT_EQ(parsed.kind, Kind::kDatagram);
    EXPECT_EQ(Bytes(parsed.datagram.bytes.begin(), parsed.datagram.bytes.end()),
              Bytes(datagram_.begin(), datagram_.begin() + 16));
    EXPECT_EQ(parsed.datagram.trim,
              dscp == kPath ? wire::Trim::kPath : wire::Trim::kLasthop);
    EXPECT_EQ(parsed.datagram.source_udp_port, 0xc123);
    const size_t l3 = GetParam().l3();
    Bytes cut = frame;
    --cut[l3 + (GetParam().ipv6 ? 5 : 3)];  // 15 bytes of the PDS header.
    FixIpv4Checksum(cut);
    ExpectDropped(cut, Statistic::kDropTruncated);
    cut = frame;
    cut.resize(GetParam().pds() + 15);
    ExpectDropped(cut, Statistic::kDropTruncated);
    if (!GetParam().ipv6) {
      cut = frame;
      cut[l3 + 10] ^= 1;
      ExpectDropped(cut, Statistic::kDropIpChecksum);
    }
    const ParsedFrame whole = codec_.Parse(Arriving(datagram_));
    ASSERT_EQ(whole.kind, Kind::kDatagram);
    EXPECT_EQ(whole.datagram.trim, wire::Trim::kNone);
  }
}

// All lengths and any bytes, built here and taken apart at the peer.
TEST_P(FrameCodecTest, RandomDatagramsComeBack) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE(kSeed);
  sim::base::Random random(kSeed);
  contract::PortCfg port = Port(GetParam());
  port.local_fa_lo = kPeerLo;
  port.local_fa_hi = GetParam().ipv6 ? kPeerHi : 0;
  FrameCodec peer;
  peer.Configure(port);
  for (int i = 0; i < 2000; ++i) {
    Bytes datagram(2 + random.Below(i % 50 == 0 ? 8300 : 300));
    for (uint8_t& byte : datagram) byte = static_cast<uint8_t>(random.Next());
    const Bytes frame = Build(datagram, GetParam().vlan);
    ASSERT_EQ(frame, Leaving(datagram));
    const ParsedFrame parsed = peer.Parse(frame);
    ASSERT_EQ(parsed.kind, Kind::kDatagram);
    ASSERT_EQ(Bytes(parsed.datagram.bytes.begin(), parsed.datagram.bytes.end()),
              datagram);
  }
}

// What is kept of one destination is never another's, nor outlives the port.
TEST_P(FrameCodecTest, HeadersAreThoseOfTheDestination) {
  constexpr uint64_t kSeed = 9;
  SCOPED_TRACE(kSeed);
  sim::base::Random random(kSeed);
  const Form form = GetParam();
  contract::PortCfg port = Port(form);
  for (int i = 0; i < 3000; ++i) {
    test::Route route = MakeRoute(form, /*to_peer=*/true);
    if (random.Below(100) == 0) {
      port.mac = kLocalMac + random.Below(3);
      codec_.Configure(port);
    }
    route.source_mac = port.mac;
    route.destination_mac += random.Below(50);
    route.destination += random.Below(50);
    route.dscp = static_cast<uint8_t>(46 + random.Below(2));
    route.entropy = static_cast<uint16_t>(random.Next());
    const Bytes packet = WorkedPackets()[random.Below(2)];
    std::vector<uint8_t> buffer(
        FrameCodec::kHeadroom + packet.size() + FrameCodec::kTailroom, 0xa5);
    std::copy(packet.begin(), packet.end(),
              buffer.begin() + FrameCodec::kHeadroom);
    const auto frame =
        codec_.Build({.destination = {.lo = route.destination,
                                      .hi = form.ipv6 ? kPeerHi : 0,
                                      .ipv6 = form.ipv6},
                      .destination_mac = route.destination_mac,
                      .vlan = form.vlan,
                      .entropy = route.entropy,
                      .dscp = route.dscp},
                     buffer, packet.size());
    Bytes expected = test::Frame(route, packet);
    expected.resize(std::max(expected.size(), FrameCodec::kShortestFrame), 0);
    ASSERT_EQ(Bytes(frame.begin(), frame.end()), expected) << i;
  }
}

TEST_P(FrameCodecTest, EachReasonToDropIsFound) {
  const Form form = GetParam();
  const Bytes good = Arriving(datagram_);
  const size_t ip = form.l3();
  const size_t udp = form.l4();
  const auto with = [&](size_t at, uint8_t value) {
    Bytes frame = good;
    frame[at] = value;
    return frame;
  };
  EXPECT_EQ(codec_.Parse(good, {.bad_fcs = true}).reason,
            Statistic::kDropMacError);
  ExpectDropped(Bytes(good.begin(), good.begin() + 13),
                Statistic::kDropTruncated);
  ExpectDropped(Bytes(good.begin(), good.end() - 1), Statistic::kDropTruncated);
  if (!form.native) {
    ExpectDropped(with(udp + 5, good[udp + 5] + 1), Statistic::kDropTruncated);
  }
  ExpectDropped(with(ip - 2, 0x07), Statistic::kDropEthertype);
  ExpectDropped(with(ip, good[ip] ^ 0x10), Statistic::kDropIpHeader);
  ExpectDropped(with(ip + (form.ipv6 ? 6 : 9), 6), Statistic::kDropIpHeader);
  if (!form.ipv6) {
    ExpectDropped(with(ip, 0x46), Statistic::kDropIpHeader);
    ExpectDropped(with(ip + 6, 0x20), Statistic::kDropIpHeader);
    ExpectDropped(with(ip + 7, 0x01), Statistic::kDropIpHeader);
    ExpectDropped(with(ip + 8, 63), Statistic::kDropIpChecksum);
  }
  Bytes other = with(ip + (form.ipv6 ? 39 : 19), 77);
  FixIpv4Checksum(other);
  ExpectDropped(other, Statistic::kDropIpAddress);
  if (!form.native) {
    ExpectDropped(with(udp + 3, 0), Statistic::kDropUdpPort);
  }
  if (form.crc != CrcOrder::kNone) {
    const size_t pds = form.pds();
    ExpectDropped(with(pds, good[pds] ^ 1), Statistic::kDropCrc);
    // The whole of what follows the IP header but a UDP checksum.
    ExpectDropped(with(udp, good[udp] ^ 1), Statistic::kDropCrc);
    if (form.native) {
      ExpectDropped(with(udp + 3, 1), Statistic::kDropCrc);
    }
    for (size_t i = 1; i <= contract::kCrcBytes; ++i) {
      const size_t at = good.size() - i;
      ExpectDropped(with(at, good[at] ^ 0x80), Statistic::kDropCrc);
    }
  }
}

TEST_P(FrameCodecTest, ADatagramWithoutRoomForItsTypeIsTruncated) {
  ExpectDropped(Arriving(Bytes(1, 0)), Statistic::kDropTruncated);
  const Bytes frame = Arriving(Bytes(2, 0));
  EXPECT_EQ(codec_.Parse(frame).kind, Kind::kDatagram);
}

TEST_P(FrameCodecTest, AnyUdpChecksumIsAccepted) {
  const Form form = GetParam();
  if (form.native) {
    return;
  }
  const size_t source = form.l3() + (form.ipv6 ? 8 : 12);
  for (const Bytes& packet : WorkedPackets()) {
    Bytes frame = Arriving(packet);
    const auto bytes = static_cast<uint32_t>(frame.size() - form.l4());
    const auto right = static_cast<uint16_t>(~test::OnesSum(
        frame.data() + source, frame.size() - source, 17 + bytes));
    for (const int sum : {0, int{right}, right ^ 1, 0xffff}) {
      frame[form.l4() + 6] = static_cast<uint8_t>(sum >> 8);
      frame[form.l4() + 7] = static_cast<uint8_t>(sum);
      EXPECT_EQ(codec_.Parse(frame).kind, Kind::kDatagram) << sum;
    }
  }
}

TEST_P(FrameCodecTest, ACrcOfTheOtherByteOrderIsWrong) {
  contract::PortCfg port = Port(GetParam());
  if (port.crc == CrcOrder::kNone) {
    return;
  }
  port.crc = port.crc == CrcOrder::kMsbFirst ? CrcOrder::kLsbFirst
                                             : CrcOrder::kMsbFirst;
  codec_.Configure(port);
  for (const Bytes& packet : WorkedPackets()) {
    ExpectDropped(Arriving(packet), Statistic::kDropCrc);
  }
}

// Of those that the codec gives; the transport judges what is behind UDP.
bool IsOfTheCodec(Statistic reason) {
  return reason != Statistic::kRxFrames && reason <= Statistic::kDropCrc;
}

TEST(FrameCodecReferenceTest, EachWorkedFrameIsJudgedAndReadAsStated) {
  for (const test::WorkedFrame& frame : test::kWorkedFrames) {
    SCOPED_TRACE(testing::Message() << frame.name << ", " << frame.title);
    FrameCodec codec;
    codec.Configure(test::WorkedPort(frame));
    const Bytes bytes = test::WorkedBytes(frame);
    const ParsedFrame parsed = codec.Parse(bytes);
    if (IsOfTheCodec(frame.received)) {
      ASSERT_EQ(parsed.kind, Kind::kDropped);
      EXPECT_EQ(parsed.reason, frame.received);
      continue;
    }
    ASSERT_EQ(parsed.kind, Kind::kDatagram);
    const contract::PortCfg sender = test::WorkedPort(frame, /*sender=*/true);
    const wire::FabricAddress source{
        .lo = sender.local_fa_lo, .hi = sender.local_fa_hi, .ipv6 = frame.ipv6};
    EXPECT_EQ(parsed.datagram.source, source);
    EXPECT_EQ(parsed.source_mac, sender.mac);
    EXPECT_EQ(parsed.datagram.source_udp_port, frame.entropy);
    EXPECT_EQ(parsed.datagram.dscp, frame.dscp);
    EXPECT_FALSE(parsed.datagram.congestion);
    const Bytes packet(parsed.datagram.bytes.begin(),
                       parsed.datagram.bytes.end());
    EXPECT_EQ(packet, test::WorkedPacket(frame));
    test::ExpectStatedValues(frame, packet);
  }
}

TEST(FrameCodecReferenceTest,
     FramesOfTheReferenceProviderArriveWithAnyPadding) {
  for (const test::WorkedFrame& reference : test::kWorkedFrames) {
    if (IsOfTheCodec(reference.received)) {
      continue;
    }
    SCOPED_TRACE(reference.name);
    FrameCodec codec;
    codec.Configure(test::WorkedPort(reference));
    const Bytes frame = test::WorkedBytes(reference);
    for (size_t padding = 0; padding < 70; ++padding) {
      Bytes padded = frame;
      padded.resize(frame.size() + padding,
                    static_cast<uint8_t>(0x5a + padding));
      const ParsedFrame parsed = codec.Parse(padded);
      ASSERT_EQ(parsed.kind, Kind::kDatagram) << padding;
      EXPECT_EQ(parsed.datagram.bytes.size(), frame.size() - reference.pds - 4);
    }
    for (size_t bit = 0; bit < 32; ++bit) {
      Bytes damaged = frame;
      damaged[frame.size() - 4 + bit / 8] ^=
          static_cast<uint8_t>(1u << bit % 8);
      EXPECT_EQ(codec.Parse(damaged).reason, Statistic::kDropCrc);
    }
  }
}

// From the values of their fields, those that a device sends.
TEST(FrameCodecReferenceTest, DatagramsLeaveAsTheReferenceProviderSendsThem) {
  size_t sent = 0;
  for (const test::WorkedFrame& reference : test::kWorkedFrames) {
    if (!reference.sent) {
      continue;
    }
    ++sent;
    SCOPED_TRACE(testing::Message()
                 << reference.name << ", " << reference.title);
    const contract::PortCfg peer = test::WorkedPort(reference);
    FrameCodec codec;
    codec.Configure(test::WorkedPort(reference, /*sender=*/true));
    const Bytes packet = test::EncodeStatedValues(reference);
    Bytes buffer(FrameCodec::kHeadroom + packet.size() + FrameCodec::kTailroom,
                 0xa5);
    std::copy(packet.begin(), packet.end(),
              buffer.begin() + FrameCodec::kHeadroom);
    const auto frame = codec.Build({.destination = {.lo = peer.local_fa_lo,
                                                    .hi = peer.local_fa_hi,
                                                    .ipv6 = reference.ipv6},
                                    .destination_mac = peer.mac,
                                    .entropy = reference.entropy,
                                    .dscp = reference.dscp},
                                   buffer, packet.size());
    Bytes expected = test::WorkedBytes(reference);
    expected.resize(std::max(expected.size(), FrameCodec::kShortestFrame), 0);
    EXPECT_EQ(Bytes(frame.begin(), frame.end()), expected);
  }
  EXPECT_GE(sent, 16u);
}

TEST_P(FrameCodecTest, FramesOfOtherVlansAndFamiliesAreDropped) {
  const Form form = GetParam();
  contract::PortCfg port = Port(form);
  port.vlan = form.vlan + 1;
  codec_.Configure(port);
  ExpectDropped(Arriving(datagram_), Statistic::kDropVlan);
  port.vlan = form.vlan;
  port.ipv6 = form.ipv6 ? 0 : 1;
  codec_.Configure(port);
  ExpectDropped(Arriving(datagram_), Statistic::kDropIpAddress);
}

TEST_P(FrameCodecTest, AnotherEncapsulationIsDroppedByTheIpHeader) {
  contract::PortCfg port = Port(GetParam());
  for (const unsigned protocol : {0U, contract::kNativeIpProtocol, 252U}) {
    if (protocol == GetParam().ip_protocol()) {
      continue;
    }
    port.ip_protocol = static_cast<uint8_t>(protocol);
    codec_.Configure(port);
    ExpectDropped(Arriving(datagram_), Statistic::kDropIpHeader);
  }
}

TEST_P(FrameCodecTest, CongestionMarksArrive) {
  Bytes frame = Arriving(datagram_);
  uint8_t* const ip = frame.data() + GetParam().l3();
  ip[1] = static_cast<uint8_t>(ip[1] | (GetParam().ipv6 ? 0x30 : 0x03));
  FixIpv4Checksum(frame);
  const ParsedFrame parsed = codec_.Parse(frame);
  ASSERT_EQ(parsed.kind, Kind::kDatagram);
  EXPECT_TRUE(parsed.datagram.congestion);
  EXPECT_EQ(parsed.datagram.dscp, 46);
}

TEST_P(FrameCodecTest, ADisabledPortIgnoresAll) {
  contract::PortCfg port = Port(GetParam());
  port.enable = 0;
  codec_.Configure(port);
  EXPECT_EQ(codec_.Parse(Arriving(datagram_), {.bad_fcs = true}).kind,
            Kind::kIgnored);
}

TEST_P(FrameCodecTest, NeighbourFramesAreTheSlowPaths) {
  const Form form = GetParam();
  Bytes arp = Arriving(datagram_);
  arp[form.l3() - 2] = 0x08;
  arp[form.l3() - 1] = 0x06;
  EXPECT_EQ(codec_.Parse(arp).kind, Kind::kSlowPath);
  if (form.ipv6) {
    for (const int type : {134, 135, 136, 137}) {
      Bytes neighbour = Arriving(datagram_);
      neighbour[form.l3() + 6] = 58;
      neighbour[form.l4()] = static_cast<uint8_t>(type);
      const bool ours = type == 135 || type == 136;
      EXPECT_EQ(codec_.Parse(neighbour).kind,
                ours ? Kind::kSlowPath : Kind::kDropped)
          << type;
    }
  }
}

// Whatever a frame says of its lengths, nothing behind it is read (seen by
// sanitizers: each copy has a buffer of its own) and no damaged datagram passes
// the CRC.
TEST_P(FrameCodecTest, RandomDamageIsNeverTakenForADatagram) {
  constexpr uint64_t kSeed = 6;
  SCOPED_TRACE(kSeed);
  sim::base::Random random(kSeed);
  const Bytes good = Arriving(datagram_);
  const size_t covered = GetParam().l3() + (GetParam().ipv6 ? 8 : 12);
  for (int i = 0; i < 20000; ++i) {
    Bytes frame = good;
    const uint32_t hits = 1 + random.Below(4);
    for (uint32_t hit = 0; hit < hits; ++hit) {
      frame[random.Below(static_cast<uint32_t>(frame.size()))] =
          static_cast<uint8_t>(random.Next());
    }
    if (random.Below(4) == 0) {
      frame.resize(random.Below(static_cast<uint32_t>(frame.size() + 1)));
    }
    const ParsedFrame parsed = codec_.Parse(frame);
    if (parsed.kind != Kind::kDatagram || GetParam().crc == CrcOrder::kNone) {
      continue;
    }
    // All that the CRC covers is as it was, but for the UDP checksum.
    Bytes expected(good.begin() + covered, good.end());
    Bytes got(frame.begin() + covered, frame.end());
    got.resize(expected.size());
    const size_t checksum = GetParam().l4() + 6 - covered;
    for (size_t at : {checksum, checksum + 1}) {
      got[at] = GetParam().native ? got[at] : expected[at];
    }
    ASSERT_EQ(got, expected) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FrameCodecTest,
    testing::Values(
        Form{false, 0, CrcOrder::kMsbFirst},
        Form{false, 0, CrcOrder::kLsbFirst}, Form{false, 0, CrcOrder::kNone},
        Form{false, 5, CrcOrder::kMsbFirst}, Form{true, 0, CrcOrder::kMsbFirst},
        Form{true, 0, CrcOrder::kLsbFirst}, Form{true, 0, CrcOrder::kNone},
        Form{true, 4095, CrcOrder::kMsbFirst},
        Form{false, 0, CrcOrder::kMsbFirst,
             /*native=*/true},
        Form{false, 5, CrcOrder::kNone, true},
        Form{true, 0, CrcOrder::kMsbFirst, true},
        Form{true, 4095, CrcOrder::kLsbFirst, true}),
    [](const auto& instance) {
      const Form form = instance.param;
      return std::string(form.ipv6 ? "Ipv6" : "Ipv4") +
             (form.vlan != 0 ? "Tagged" : "") +
             (form.crc == CrcOrder::kNone       ? "NoCrc"
              : form.crc == CrcOrder::kLsbFirst ? "LsbFirst"
                                                : "") +
             (form.native ? "Native" : "");
    });

}  // namespace
}  // namespace heddle::soft::frame
