// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/frame/route.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "gtest/gtest.h"
#include "tests/sim/frame/test_frames.h"

namespace heddle::sim::frame {
namespace {

namespace wire = contract::wire;
using contract::PdsType;

constexpr uint32_t kIp = 0x0a000001;

TEST(RouteTest, RequestThatOpensAPdcGoesToThePort) {
  for (const bool vlan : {false, true}) {
    const Route route = FindRoute(MakeSyn(kIp, 5 * 4096 + 77, 8, vlan));
    EXPECT_EQ(route.kind, Route::Kind::kPort);
    EXPECT_EQ(route.ip, WireAddress(kIp));
    EXPECT_EQ(route.port, 5 * 4096 + 77);
  }
}

TEST(RouteTest, ARelativeRequestGoesToThePortOfItsJob) {
  for (const uint32_t job : {1U, 0x123456U, 0xffffffU}) {
    const Route relative = FindRoute(MakeJobSyn(kIp, 4096 + 7, job, true));
    EXPECT_EQ(relative.kind, Route::Kind::kPort);
    EXPECT_EQ(relative.port, 4096 + 7);
    EXPECT_EQ(relative.space, firmware::JobSpace(job));
    const Route absolute = FindRoute(MakeJobSyn(kIp, 4096 + 7, job, false));
    EXPECT_EQ(absolute.port, 4096 + 7);
    EXPECT_EQ(absolute.space, firmware::kAddressSpace);
  }
  EXPECT_NE(firmware::JobSpace(0), firmware::kAddressSpace);
}

TEST(RouteTest, Ipv6IsRoutedByAllItsBytes) {
  const WireAddress ip(0xfe80000000000001, 0x0202030405060708);
  for (const bool vlan : {false, true}) {
    const Route route = FindRoute(MakeSyn6(ip, 5 * 4096 + 77, vlan));
    EXPECT_EQ(route.kind, Route::Kind::kPort);
    EXPECT_EQ(route.ip, ip);
    EXPECT_EQ(route.port, 5 * 4096 + 77);
  }
  EXPECT_NE(ip, WireAddress(0xfe80000000000001, 0x0202030405060709));
  EXPECT_NE(WireAddress(0, 1), WireAddress(1)) << "::1 is not 0.0.0.1";
}

TEST(RouteTest, AddressesAreReadAndWrittenAsText) {
  for (const char* text : {"10.1.2.3", "255.255.255.255", "fe80::1",
                           "2001:db8::1:0:0:1", "::ffff:10.0.0.1"}) {
    WireAddress address;
    ASSERT_TRUE(ParseWireAddress(text, &address)) << text;
    EXPECT_EQ(address.Text(), text);
  }
  WireAddress address;
  ASSERT_TRUE(ParseWireAddress("1:2:3:4:5:6:7:8", &address));
  EXPECT_EQ(address, WireAddress(0x0001000200030004, 0x0005000600070008));
  for (const char* text : {"", "0.0.0.0", "::", "10.0.0", "fe80::1%eth0"}) {
    EXPECT_FALSE(ParseWireAddress(text, &address)) << text;
  }
}

TEST(RouteTest, NeighbourFramesGoByMacAddress) {
  constexpr uint64_t kMac = 0x020000000042;
  constexpr uint64_t kGroup = 0x3333ff000001;
  for (const bool vlan : {false, true}) {
    EXPECT_EQ(FindRoute(MakeArp(0xffffffffffff, 0, vlan)).kind,
              Route::Kind::kAll);
    const Route route = FindRoute(MakeArp(kMac, 0, vlan));
    EXPECT_EQ(route.kind, Route::Kind::kMac);
    EXPECT_EQ(route.mac, kMac);
  }
  for (const uint8_t type : {uint8_t{135}, uint8_t{136}}) {
    EXPECT_EQ(FindRoute(MakeIcmp6(kGroup, type)).kind, Route::Kind::kAll);
    EXPECT_EQ(FindRoute(MakeIcmp6(kMac, type)).kind, Route::Kind::kMac);
  }
  EXPECT_EQ(FindRoute(MakeIcmp6(kGroup, 128)).kind, Route::Kind::kAddress);
  Frame cut = MakeIcmp6(kGroup, 135);
  cut.resize(77);
  EXPECT_EQ(FindRoute(cut).kind, Route::Kind::kAddress);
}

TEST(RouteTest, MacAddressesTellFunctionsApart) {
  EXPECT_EQ(PortMac(kIp, 5), 0x02050a000001u);
  EXPECT_NE(PortMac(kIp, 5), PortMac(kIp, 6));
  for (const uint32_t function : {0U, 5U, 255U, 256U, kMaxMacFunctions - 1}) {
    const uint64_t mac = PortMac(kIp, static_cast<uint16_t>(function));
    EXPECT_EQ(FunctionOfMac(mac), function);
    EXPECT_EQ(mac >> 40 & 3, 2U) << "locally administered, no group";
  }
  const WireAddress a(0xfe80000000000001, 1);
  const WireAddress b(0xfe80000000000002, 1);
  const WireAddress c(0xfe80000000000001, uint64_t{1} << 40);
  EXPECT_NE(PortMac(a, 0), PortMac(b, 0));
  EXPECT_NE(PortMac(a, 0), PortMac(c, 0));
}

TEST(RouteTest, DatagramGoesToThePort) {
  wire::PdsUud uud;
  uud.type = PdsType::kUudReq;
  uud.next_hdr = contract::NextHdr::kRequestStd;
  wire::SesStd ses;
  ses.pid_on_fep = 9;
  ses.resource_index = 3 * 256 + 255;
  Frame pds(wire::PdsUud::kBytes + wire::SesStd::kBytes);
  uud.Encode(pds.data());
  ses.Encode(pds.data() + wire::PdsUud::kBytes);
  const Route route = FindRoute(MakeFrame(kIp, pds));
  EXPECT_EQ(route.kind, Route::Kind::kPort);
  EXPECT_EQ(route.port, 3 * 4096 + 9);
}

TEST(RouteTest, CongestionStateBeforeTheSesHeaderIsSteppedOver) {
  wire::PdsRequest request;
  request.type = PdsType::kRodCcReq;
  request.syn = 1;
  wire::SesStd ses;
  ses.pid_on_fep = 300;
  ses.resource_index = 256;
  Frame pds(wire::PdsRequest::kBytes + wire::PdsCcState::kBytes +
            wire::SesStd::kBytes);
  request.Encode(pds.data());
  ses.Encode(pds.data() + wire::PdsRequest::kBytes + wire::PdsCcState::kBytes);
  EXPECT_EQ(FindRoute(MakeFrame(kIp, pds)).port, 4096 + 300);
}

TEST(RouteTest, EverythingElseGoesToTheBlockOfItsPdcid) {
  wire::PdsRequest request;
  request.type = PdsType::kRodReq;
  request.dpdcid = 2047 << 5 | 5;
  wire::PdsNack nack;
  nack.type = PdsType::kNack;
  nack.dpdcid = 17 << 5;
  wire::PdsCp control;
  control.type = PdsType::kCp;
  control.dpdcid = 1 << 5 | 31;
  Frame bytes(16);
  request.Encode(bytes.data());
  EXPECT_EQ(FindRoute(MakeFrame(kIp, bytes)).block, 2047);
  EXPECT_EQ(FindRoute(MakeFrame(kIp, bytes)).kind, Route::Kind::kBlock);
  nack.Encode(bytes.data());
  EXPECT_EQ(FindRoute(MakeFrame(kIp, bytes)).block, 17);
  control.Encode(bytes.data());
  EXPECT_EQ(FindRoute(MakeFrame(kIp, bytes)).block, 1);
  EXPECT_EQ(FindRoute(MakeAck(kIp, 40 << 5)).block, 40);
}

TEST(RouteTest, NoPrefixOfAFrameIsReadBeyondItsEnd) {
  for (const Frame& whole :
       {MakeSyn(kIp, 100, 0, true), MakeSyn6(WireAddress(1, 2), 100, true),
        AsNativeIp(MakeSyn(kIp, 100, 0, true)),
        AsNativeIp(MakeSyn6(WireAddress(1, 2), 100, true))}) {
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      // Exact allocations, for the address sanitizer.
      const Frame frame(whole.begin(),
                        whole.begin() + static_cast<std::ptrdiff_t>(bytes));
      const Route route = FindRoute(frame);
      if (route.kind == Route::Kind::kPort) {
        EXPECT_GE(bytes, 66u);
      }
      const Datagram datagram = FindDatagram(frame);
      EXPECT_LE(datagram.offset + datagram.bytes, bytes);
    }
  }
}

TEST(RouteTest, NativeIpGoesWhereItWouldGoOverUdp) {
  for (const bool vlan : {false, true}) {
    for (const Frame& udp :
         {MakeSyn(kIp, 5 * 4096 + 77, 8, vlan),
          MakeSyn6(WireAddress(1, 2), 5 * 4096 + 77, vlan)}) {
      const Frame native = AsNativeIp(udp);
      const Route route = FindRoute(native);
      EXPECT_EQ(route.kind, Route::Kind::kPort);
      EXPECT_EQ(route.port, 5 * 4096 + 77);
      EXPECT_EQ(route.ip, FindRoute(udp).ip);
      const Datagram over_udp = FindDatagram(udp);
      const Datagram datagram = FindDatagram(native);
      EXPECT_EQ(datagram.offset, over_udp.offset);
      EXPECT_EQ(datagram.bytes, over_udp.bytes - 4);
      EXPECT_EQ(datagram.layer4_bytes, 4u);
      EXPECT_TRUE(datagram.native);
      EXPECT_FALSE(over_udp.native);
      // Under another number.
      const Frame other = AsNativeIp(udp, 254);
      EXPECT_EQ(FindRoute(other).kind, Route::Kind::kAddress);
      EXPECT_EQ(FindRoute(other, 254).port, 5 * 4096 + 77);
      EXPECT_EQ(FindRoute(native, 254).kind, Route::Kind::kAddress);
      EXPECT_EQ(FindDatagram(other).bytes, 0u);
    }
  }
  EXPECT_EQ(FindRoute(AsNativeIp(MakeAck(kIp, 40 << 5))).block, 40);
}

TEST(RouteTest, OtherIpPacketsGoByAddressAndOtherFramesNowhere) {
  Frame tcp = MakeSyn(kIp, 100);
  tcp[14 + 9] = 6;
  const Frame whole = MakeSyn(kIp, 100);
  for (const Frame& frame :
       {tcp, MakeFrame(kIp, Frame(11)), Frame(whole.begin(), whole.end() - 56),
        Frame(whole.begin(), whole.begin() + 34)}) {
    const Route route = FindRoute(frame);
    EXPECT_EQ(route.kind, Route::Kind::kAddress);
    EXPECT_EQ(route.ip, WireAddress(kIp));
  }
  const WireAddress ip(1, 2);
  Frame other = MakeSyn6(ip, 100);
  other[14 + 6] = 59;
  EXPECT_EQ(FindRoute(other).kind, Route::Kind::kAddress);
  EXPECT_EQ(FindRoute(other).ip, ip);

  Frame frame = MakeSyn(kIp, 100);
  frame[12] = 0x86;  // IPv6.
  frame[13] = 0xdd;
  EXPECT_EQ(FindRoute(frame).kind, Route::Kind::kNone);
  EXPECT_EQ(FindRoute({}).kind, Route::Kind::kNone);
  EXPECT_EQ(FindRoute(Frame(60)).kind, Route::Kind::kNone);
}

TEST(RouteTest, SourceIsThatOfIpOrArp) {
  for (const bool vlan : {false, true}) {
    const std::ptrdiff_t at = vlan ? 18 : 14;
    Frame ipv4 = MakeSyn(kIp, 100, 0, vlan);
    const std::array<uint8_t, 4> source = {10, 9, 8, 7};
    std::copy(source.begin(), source.end(), ipv4.begin() + at + 12);
    EXPECT_EQ(FindSource(ipv4), WireAddress(0x0a090807));
    Frame arp = MakeArp(0xffffffffffff, 0, vlan);
    std::copy(source.begin(), source.end(), arp.begin() + at + 14);
    EXPECT_EQ(FindSource(arp), WireAddress(0x0a090807));
    Frame ipv6 = MakeSyn6(WireAddress(1, 2), 100, vlan);
    *(ipv6.begin() + at + 8) = 0xfd;
    *(ipv6.begin() + at + 23) = 9;
    EXPECT_EQ(FindSource(ipv6), WireAddress(0xfd00000000000000, 9));
    for (const Frame& whole : {ipv4, arp, ipv6}) {
      const Frame cut(whole.begin(), whole.begin() + at + 19);
      EXPECT_EQ(FindSource(cut), std::nullopt);
    }
  }
  EXPECT_EQ(FindSource({}), std::nullopt);
  EXPECT_EQ(FindSource(Frame(60)), std::nullopt);
}

}  // namespace
}  // namespace heddle::sim::frame
