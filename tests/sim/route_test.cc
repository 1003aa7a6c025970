// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/route.h"

#include "gtest/gtest.h"
#include "tests/sim/test_frames.h"

namespace heddle::sim {
namespace {

namespace wire = contract::wire;
using contract::PdsType;

constexpr uint32_t kIp = 0x0a000001;

TEST(RouteTest, RequestThatOpensAPdcGoesToThePort) {
  for (const bool vlan : {false, true}) {
    const Route route = FindRoute(MakeSyn(kIp, 5 * 4096 + 77, 8, vlan));
    EXPECT_EQ(route.kind, Route::Kind::kPort);
    EXPECT_EQ(route.ip, kIp);
    EXPECT_EQ(route.port, 5 * 4096 + 77);
  }
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

TEST(RouteTest, EverythingElseGoesToTheSlotOfItsPdcid) {
  wire::PdsRequest request;
  request.type = PdsType::kRodReq;
  request.dpdcid = 63 << 10 | 5;
  wire::PdsNack nack;
  nack.type = PdsType::kNack;
  nack.dpdcid = 17 << 10;
  wire::PdsCp control;
  control.type = PdsType::kCp;
  control.dpdcid = 1 << 10 | 1023;
  Frame bytes(16);
  request.Encode(bytes.data());
  EXPECT_EQ(FindRoute(MakeFrame(kIp, bytes)).slot, 63);
  EXPECT_EQ(FindRoute(MakeFrame(kIp, bytes)).kind, Route::Kind::kSlot);
  nack.Encode(bytes.data());
  EXPECT_EQ(FindRoute(MakeFrame(kIp, bytes)).slot, 17);
  control.Encode(bytes.data());
  EXPECT_EQ(FindRoute(MakeFrame(kIp, bytes)).slot, 1);
  EXPECT_EQ(FindRoute(MakeAck(kIp, 40 << 10)).slot, 40);
}

TEST(RouteTest, NoPrefixOfAFrameIsReadBeyondItsEnd) {
  const Frame whole = MakeSyn(kIp, 100, 0, true);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    // Exact allocations, for the address sanitizer.
    const Frame frame(whole.begin(),
                      whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    const Route route = FindRoute(frame);
    if (route.kind == Route::Kind::kPort) {
      EXPECT_GE(bytes, 70u);
    }
  }
}

TEST(RouteTest, FramesThatAreNotUetHaveNoRoute) {
  Frame frame = MakeSyn(kIp, 100);
  frame[12] = 0x86;  // IPv6.
  frame[13] = 0xdd;
  EXPECT_EQ(FindRoute(frame).kind, Route::Kind::kNone);
  frame = MakeSyn(kIp, 100);
  frame[14 + 9] = 6;  // TCP.
  EXPECT_EQ(FindRoute(frame).kind, Route::Kind::kNone);
  EXPECT_EQ(FindRoute({}).kind, Route::Kind::kNone);
}

}  // namespace
}  // namespace heddle::sim
