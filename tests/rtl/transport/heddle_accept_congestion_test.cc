// SPDX-License-Identifier: Apache-2.0
// What ACKs say for congestion control.
#include "tests/rtl/transport/accept_fixture.h"

namespace heddle::test {
namespace {

class AcceptCongestionTest : public AcceptTest {
 protected:
  AcceptCongestionTest() {
    bench_.transport.congestion = 1;
    bench_.config.dead_ticks = 1000;
    bench_.SetConfig();
  }
  rtl::Response Asked(rtl::RxPacket packet) {
    packet.ar = 1;
    return bench_.Answer(packet);
  }
};

TEST_F(AcceptCongestionTest, AcksOfBothModesSayHowMuchCame) {
  for (const PdsType type : {PdsType::kRodReq, PdsType::kRudReq}) {
    type_ = type;
    if (type == PdsType::kRudReq) {
      tpdcid_ = 0;
    }
    bench_.AddBuffer(2, 8192, 0x1000, 100);
    rtl::RxPacket first = Syn(kStart, 8);
    first.spdcid = type == PdsType::kRodReq ? 0x11 : 0x12;
    const rtl::Response opened = bench_.Answer(first);
    EXPECT_EQ(opened.cc, 1);
    EXPECT_EQ(opened.service_time, 1);
    EXPECT_EQ(opened.rcvd_bytes, 1u);  // Of 256, and 108 of headers each.
    tpdcid_ = opened.spdcid;
    bench_.AddBuffer(2, 8192, 0x1000, 100);
    rtl::RxPacket second = Packet(kStart + 1, 4096);
    second.spdcid = first.spdcid;
    const rtl::Response rsp = Asked(second);
    EXPECT_EQ(rsp.cc, 1);
    EXPECT_EQ(rsp.cack, kStart + 1);
    EXPECT_EQ(rsp.rcvd_bytes, 17u);  // 4320 bytes.
    second.retx = 1;
    EXPECT_EQ(Asked(second).rcvd_bytes, 17u) << "a duplicate is not news";
  }
}

TEST_F(AcceptCongestionTest, LateAckSaysHowLongItsPacketWaited) {
  bench_.config.ack_delay_ticks = 8;
  bench_.SetConfig();
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 100);
  bench_->now_ns_i = 0xffff'fff0;
  bench_.Quiet(Packet(kStart + 1, 8));
  bench_->now_ns_i = 128 * 300;
  const size_t before = bench_.responses.size();
  for (int i = 0; i < 9 && bench_.responses.size() == before; ++i) {
    bench_->tick_i = 1;
    bench_.Cycle();
    bench_->tick_i = 0;
    for (int wait = 0; wait < 20; ++wait) bench_.Cycle();
  }
  ASSERT_EQ(bench_.responses.size(), before + 1);
  EXPECT_EQ(bench_.responses.back().cc, 1);
  EXPECT_EQ(bench_.responses.back().service_time, 301);
}

TEST_F(AcceptCongestionTest, MarkedPacketIsAnsweredAtOnceAndCounted) {
  Open();
  bench_.AddBuffer(2, 64, 0x1000, 100);
  rtl::RxPacket packet = Packet(kStart + 1, 8);
  packet.ce = 1;
  const rtl::Response rsp = bench_.Answer(packet);
  EXPECT_EQ(rsp.m, 1);
  EXPECT_EQ(rsp.cack, kStart + 1);
  EXPECT_EQ(Count(Statistic::kRxEcnMarked), 1);
}

TEST_F(AcceptCongestionTest, WithoutItAcksSayNothingOfIt) {
  bench_.transport.congestion = 0;
  bench_.SetConfig();
  Open();
  for (const bool opening : {true, false}) {
    SCOPED_TRACE(opening);
    rtl::RxPacket packet = Packet(kStart, 8);
    packet.ar = 1;
    const rtl::Response rsp =
        opening ? bench_.responses.back() : bench_.Answer(packet);
    // UET 2.14: what opens a PDC learns how far it may go.
    EXPECT_EQ(rsp.cc, opening ? 1 : 0);
    EXPECT_EQ(rsp.kind, rtl::ResponseKind::kAck);
    EXPECT_EQ(rsp.rod, 1);
    EXPECT_EQ(rsp.service_time, 0);
    EXPECT_EQ(rsp.rcvd_bytes, 0u);
  }
}

}  // namespace
}  // namespace heddle::test
