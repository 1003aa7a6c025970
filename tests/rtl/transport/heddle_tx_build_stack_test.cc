// SPDX-License-Identifier: Apache-2.0
// Packets of every stack of headers, byte for byte.
#include <gtest/gtest.h>

#include <string>

#include "tests/rtl/transport/tx_build_bench.h"

namespace heddle::test {
namespace {

Bytes Hex(const std::string& text) {
  Bytes out;
  std::string digits;
  for (char c : text) {
    if (c != ' ') digits.push_back(c);
  }
  for (size_t i = 0; i < digits.size(); i += 2) {
    out.push_back(
        static_cast<uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return out;
}

// Each stack of headers.
class TxBuildStackTest : public testing::TestWithParam<int> {
 protected:
  static constexpr uint64_t kAddress6Hi = 0xfd00'1234'5678'9abc;
  static constexpr uint64_t kPeer6Hi = 0xfd00'ffff'0000'0001;

  TxBuildStackTest() {
    route_ = StackRoute(GetParam(), 0xabc);
    route_.source_mac = kMac;
    route_.destination_mac = kPeerMac;
    route_.source = kAddress;
    route_.destination = 0x0a000002;
    route_.source_hi = route_.ipv6 ? kAddress6Hi : 0;
    route_.destination_hi = route_.ipv6 ? kPeer6Hi : 0;
    dut_.config().ipv6 = route_.ipv6;
    dut_.config().local_fa_hi = route_.source_hi;
    dut_.config().vlan = route_.vlan;
    dut_.config().crc = route_.crc;
    dut_.config().ip_protocol = route_.ip_protocol;
    dut_.SetConfig();
    dut_.WriteHop(1, kPeerMac, 1, route_.vlan);
  }
  rtl::PdcPeer Peer() const {
    rtl::PdcPeer peer = SomePeer();
    peer.ipv6 = route_.ipv6;
    peer.fa_hi = route_.destination_hi;
    return peer;
  }
  // The request of the worked packets, on PDC 3.
  void SendHello() {
    dut_.WriteMessage(0, InlineMessage("UETHELLO"));
    rtl::TxPacket pkt = {};
    pkt.pdc = 3;
    pkt.psn = 0x12345;
    pkt.last = 1;
    pkt.syn = 1;
    pkt.ar = 1;
    pkt.clear_psn = 0x12344;
    dut_.Push(pkt);
    dut_.RunUntil(1, 50);
  }
  // What leaves of it on a ROD PDC to `Peer`.
  Bytes HelloFrame() {
    route_.dscp = Peer().dscp;
    route_.entropy = Peer().entropy;
    return Frame(
        route_,
        Hex("198c ffff 0001 2345 0011 0000"
            "0503 0001 0000 0042 0003 0005 0000 0000 0000 0000 0000 0007"
            "0000 0000 0000 0000 0000 0000 0000 0000 0000 0008"
            "5545 5448 454c 4c4f"));
  }

  TxBuild dut_;
  Route route_;
};

INSTANTIATE_TEST_SUITE_P(Each, TxBuildStackTest, testing::Range(0, kStacks),
                         [](const auto& stack) {
                           return StackName(stack.param);
                         });

contract::wire::PdsRequest ReturnHeader(contract::NextHdr next_hdr) {
  contract::wire::PdsRequest header = {};
  header.type = contract::PdsType::kRodReq;
  header.next_hdr = next_hdr;
  header.retx = 1;
  header.ar = 1;
  header.clear_psn_offset = -2;
  header.psn = 0x1000;
  header.spdcid = 0x222;
  header.dpdcid = 0x111;
  return header;
}

Bytes DataDatagram() {
  contract::wire::SesResponseData ses = {};
  ses.opcode = contract::SesResponse::kResponseWData;
  ses.return_code = contract::ReturnCode::kOk;
  ses.response_message_id = 0xabc;
  ses.job_id = 0x42;
  ses.read_request_message_id = 0xabc;
  ses.payload_length = 1000;
  ses.modified_length = 9192;
  ses.message_offset = 8192;
  Bytes datagram;
  AppendHeader(datagram, ReturnHeader(contract::NextHdr::kResponseData));
  AppendHeader(datagram, ses);
  for (unsigned i = 0; i < 1000; ++i)
    datagram.push_back(MemoryByte(0x5003 + i));
  return datagram;
}

Bytes FailureDatagram(contract::ReturnCode code) {
  contract::wire::SesResponse ses = {};
  ses.opcode = contract::SesResponse::kResponse;
  ses.return_code = code;
  ses.message_id = 0xabc;
  ses.job_id = 0x42;
  Bytes datagram;
  AppendHeader(datagram, ReturnHeader(contract::NextHdr::kResponse));
  AppendHeader(datagram, ses);
  return datagram;
}

TEST_P(TxBuildStackTest, ReturnDataLeaveByteForByteOrSayWhyThereAreNone) {
  route_.dscp = 9;
  route_.entropy = 0xc123;
  dut_.Push(SomeReturn(route_));
  dut_.RunUntil(1, 200);
  ASSERT_EQ(dut_.reads().size(), 1u);
  EXPECT_EQ(dut_.reads()[0], (rtl::DmaReq{0x5003, 1000, 6}));
  EXPECT_EQ(dut_.sent()[0].bytes, Frame(route_, DataDatagram()));
  // Its region is gone: memory is not looked at.
  rtl::ReturnPacket dead = SomeReturn(route_);
  dead.dead = 1;
  dut_.Push(dead);
  dut_.RunUntil(2, 200);
  EXPECT_EQ(dut_.reads().size(), 1u);
  EXPECT_EQ(dut_.sent()[1].bytes,
            Frame(route_, FailureDatagram(contract::ReturnCode::kBadMkey)));
  // Memory refuses.
  dut_.refused_page = 5;
  dut_.Push(SomeReturn(route_));
  dut_.RunUntil(3, 200);
  EXPECT_EQ(
      dut_.sent()[2].bytes,
      Frame(route_, FailureDatagram(contract::ReturnCode::kHostUnsuccessCmpl)));
  EXPECT_TRUE(dut_.failures().empty());
  EXPECT_EQ(dut_->back_done_o, 3);
  EXPECT_EQ(dut_->seq_done_o, 0);
}

// Packet X1 of the worked packets, with absolute addressing as we send.
TEST_P(TxBuildStackTest, WorkedPacketX1LeavesByteForByte) {
  dut_.WritePdc(3, Peer());
  SendHello();
  EXPECT_EQ(dut_.sent().front().bytes, HelloFrame());
  EXPECT_TRUE(dut_.reads().empty());
}

TEST_P(TxBuildStackTest, RequestsOfARelativeEndpointHaveRelAndNothingElse) {
  rtl::PdcPeer peer = Peer();
  peer.rel = 1;
  dut_.WritePdc(3, peer);
  SendHello();
  const Bytes& sent = dut_.sent().front().bytes;
  const Bytes absolute = HelloFrame();
  ASSERT_EQ(sent.size(), absolute.size());
  // The second byte of the 44 of the SES header, before eight bytes of payload
  // and the end-to-end CRC, which differs too.
  const size_t flags =
      sent.size() - 8 - 43 - (route_.crc != contract::CrcOrder::kNone ? 4 : 0);
  EXPECT_EQ(absolute[flags], 0x03);
  EXPECT_EQ(sent[flags], 0x0b);
  for (size_t i = 0; i < flags + 43 + 8; ++i) {
    EXPECT_EQ(sent[i], absolute[i] | (i == flags ? 0x08 : 0)) << i;
  }
}

// A switch may mark a request, of which the ACK then tells; no ACK.
TEST_P(TxBuildStackTest, WithCongestionControlRequestsSayThatTheyMayBeMarked) {
  dut_->ect_i = 1;
  dut_.WritePdc(3, Peer());
  SendHello();
  route_.ecn = 2;
  EXPECT_EQ(dut_.sent().front().bytes, HelloFrame());
  rtl::Response ack = {};
  ack.kind = rtl::ResponseKind::kNone;
  ack.ipv6 = route_.ipv6;
  ack.fa_hi = route_.destination_hi;
  ack.fa_lo = route_.destination;
  ack.mac = kPeerMac;
  ack.cack = 0x54325;
  ack.spdcid = 0x41;
  ack.dpdcid = 0x31;
  dut_.Push(ack);
  dut_.RunUntil(2, 50);
  route_.dscp = 0;
  route_.entropy = 0;
  route_.ecn = 0;
  EXPECT_EQ(dut_.sent()[1].bytes,
            Frame(route_, Hex("3800 0000 0005 4325 0041 0031")));
}

TEST_P(TxBuildStackTest, PacketOfARudPdcHasItsTypeAndAPathThatFollowsThePsn) {
  rtl::PdcPeer peer = Peer();
  peer.rud = 1;
  dut_.WritePdc(3, peer);
  SendHello();
  route_.dscp = peer.dscp;
  route_.entropy = 0xe468;  // 0xc123 and the low 14 bits of the PSN.
  EXPECT_EQ(
      dut_.sent().front().bytes,
      Frame(route_, Hex("118c ffff 0001 2345 0011 0000"
                        "0503 0001 0000 0042 0003 0005 0000 0000 0000 0000 0000"
                        "0007 0000 0000 0000 0000 0000 0000 0000 0000 0000 0008"
                        "5545 5448 454c 4c4f")));
}

TEST_P(TxBuildStackTest, WorkedPacketsX2X3X12X13LeaveByteForByte) {
  rtl::Response x2 = {};
  x2.ipv6 = route_.ipv6;
  x2.fa_hi = route_.destination_hi;
  x2.fa_lo = route_.destination;
  x2.mac = kPeerMac;
  x2.entropy = 0xd000;
  x2.cack = 0x12345;
  x2.spdcid = 0x22;
  x2.dpdcid = 0x11;
  x2.message_id = 1;
  rtl::Response x3 = x2;
  x3.response = 1;
  x3.return_code = 1;
  x3.job_id = 0x42;
  x3.modified_length = 8;
  rtl::Response x12 = x2;
  x12.kind = rtl::ResponseKind::kNone;
  x12.cack = 0x54325;
  x12.spdcid = 0x41;
  x12.dpdcid = 0x31;
  rtl::Response x13 = x12;
  x13.kind = rtl::ResponseKind::kNack;
  x13.code = 7;
  x13.nack_psn = 0x54325;
  rtl::Response gap = x13;  // NACK ROD_OOO with the PSN expected.
  gap.code = 13;
  gap.cack = 0x54320;
  rtl::Response probe = x12;
  probe.probe = 1;
  probe.ack_offset = 0xbeef;
  rtl::Response offer = x13;  // With no feature on, to a ROD PDC.
  offer.kind = rtl::ResponseKind::kOffer;
  offer.rod = 1;
  for (const rtl::Response& rsp : {x2, x3, x12, x13, gap, probe, offer}) {
    dut_.Push(rsp);
  }
  dut_.RunUntil(7, 70);
  route_.entropy = 0xd000;
  const char* datagrams[] = {
      "3a00 0000 0001 2345 0022 0011 0000 0001 0000 0000 0000 0000",
      "3a00 0000 0001 2345 0022 0011 0101 0001 0000 0042 0000 0008",
      "3800 0000 0005 4325 0041 0031",
      "5000 0700 0005 4325 0041 0031 0000 0000",
      "5000 0d00 0005 4325 0041 0031 0005 4320",
      "3808 beef 0005 4325 0041 0031",
      "5ca0 0000 0005 4325 0041 0031 0102 0000 0000 0000"};
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(dut_.sent()[i].bytes, Frame(route_, Hex(datagrams[i]))) << i;
  }
  EXPECT_EQ(dut_.stats()[8], 4);  // tx_acks
  EXPECT_EQ(dut_.stats()[9], 2);  // tx_nacks
}

// X10 and X11; what the message table holds at `msg` says nothing about them.
TEST_P(TxBuildStackTest, ControlPacketsLeaveByteForByte) {
  rtl::PdcPeer peer = Peer();
  peer.spdcid = 0x31;
  dut_.WritePdc(3, peer);
  rtl::MsgPacket msg = {};
  msg.opcode = kSend;
  msg.length = 4096;
  dut_.WriteMessage(0, msg);
  dut_->alive_i = 0;
  rtl::TxPacket clear = {};
  clear.pdc = 3;
  clear.control = 1;
  clear.cp_type = contract::CpType::kClearCommand;
  clear.clear_psn = 0x54324;
  clear.tpdcid = 0x41;
  rtl::TxPacket close = clear;
  close.cp_type = contract::CpType::kCloseCommand;
  close.ar = 1;
  close.psn = 0x54325;
  dut_.Push(clear);
  dut_.Push(close);
  dut_.RunUntil(2, 50);
  route_.dscp = peer.dscp;
  route_.entropy = peer.entropy;
  const char* datagrams[] = {"5900 0000 0000 0000 0031 0041 0005 4324",
                             "5a08 0000 0005 4325 0031 0041 0000 0000"};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(dut_.sent()[i].bytes, Frame(route_, Hex(datagrams[i]))) << i;
  }
  EXPECT_TRUE(dut_.reads().empty());
  EXPECT_TRUE(dut_.failures().empty());
  EXPECT_EQ(dut_.stats()[6], 0);   // tx_requests
  EXPECT_EQ(dut_.stats()[48], 1);  // tx_clears
}

}  // namespace
}  // namespace heddle::test
