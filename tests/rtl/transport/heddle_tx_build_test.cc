// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "Vheddle_tx_build.h"
#include "hw/sim/clocked_model.h"
#include "hw/sim/random.h"
#include "tests/rtl/transport/frames.h"
#include "tests/rtl/transport/generations.h"
#include "tests/rtl/transport/packed.h"
#include "tests/rtl/transport/records.h"
#include "tests/rtl/transport/return_records.h"

namespace heddle::test {
namespace {

constexpr uint64_t kMac = 0x02'00'00'00'00'01;
constexpr uint64_t kGatewayMac = 0x02'00'00'00'00'fe;
constexpr uint64_t kPeerMac = 0x02'00'00'00'00'02;
constexpr uint32_t kAddress = 0x0a000001;

// What host memory holds, by address.
uint8_t MemoryByte(uint64_t address) {
  return static_cast<uint8_t>((address * 0x9e3779b97f4a7c15) >> 56);
}

struct SentFrame {
  Bytes bytes;  // Headers, payload and trailer.
  size_t header = 0;
};

// The block with the payload buffer, framer and host memory around it.
class TxBuild {
 public:
  TxBuild() {
    cfg_.mac = kMac;
    cfg_.fa_lo = kAddress;
    SetConfig();
    dut_->alive_i = 0xffff;
    dut_->head_ready_i = 1;
    dut_->rd_ready_i = 1;
    dut_->len_ready_i = 1;
    for (int i = 0; i < 1100; ++i) Cycle();
  }

  PortCfg& config() { return cfg_; }
  void SetConfig() { Drive(dut_->port_i, cfg_); }
  Vheddle_tx_build* operator->() { return dut_.operator->(); }

  void WriteHop(uint16_t index, uint64_t mac, uint8_t valid,
                uint16_t vlan = 0) {
    TableReq req = {};
    req.op = 1;
    req.sel = 5;
    req.index = index;
    req.data[0] = mac;
    req.data[1] = uint64_t{valid} << 32 | uint64_t{4096} << 16 | vlan;
    EXPECT_EQ(TableAccess(req).error, 0);
  }
  TableRsp TableAccess(const TableReq& req) {
    Drive(dut_->tbl_req_i, req);
    dut_->tbl_valid_i = 1;
    TableRsp rsp = {};
    for (int i = 0; i < 10 && !rsp.done; ++i) {
      dut_->eval();
      rsp = Sample<TableRsp>(dut_->tbl_rsp_o);
      Cycle();
    }
    EXPECT_EQ(rsp.done, 1);
    dut_->tbl_valid_i = 0;
    return rsp;
  }
  void WriteMessage(uint16_t index, const MsgPacket& msg) {
    dut_->msg_valid_i = 1;
    dut_->msg_index_i = index;
    Drive(dut_->msg_data_i, msg);
    Cycle();
    dut_->msg_valid_i = 0;
  }
  void WritePdc(uint8_t index, const PdcPeer& peer) {
    dut_->pdc_valid_i = 1;
    dut_->pdc_index_i = index;
    Drive(dut_->pdc_data_i, peer);
    Cycle();
    dut_->pdc_valid_i = 0;
  }
  void Push(const TxPacket& packet) { packets_.push_back(packet); }
  void Push(const Response& rsp) { responses_.push_back(rsp); }
  void Push(const ReturnPacket& packet) { returns_.push_back(packet); }

  // Runs until `frames` frames left or the limit is reached.
  void RunUntil(size_t frames, int limit) {
    for (int i = 0; i < limit && sent_.size() < frames; ++i) Cycle();
    ASSERT_GE(sent_.size(), frames);
  }
  void Cycle();

  std::deque<SentFrame>& sent() { return sent_; }
  std::vector<DmaReq>& reads() { return reads_; }
  struct Failure {
    uint16_t msg;
    uint8_t ctx;
    uint32_t gen;
  };
  std::vector<Failure>& failures() { return failures_; }
  uint64_t cycle() const { return cycle_; }
  std::array<int, 64>& stats() { return stats_; }

  int latency = 20;
  double stall = 0;               // Of each ready signal of the surroundings.
  double packet_chance = 1;       // That a queued packet is offered in a cycle.
  sim::Random* random = nullptr;  // Needed for the two above.
  std::optional<uint64_t> refused_page;  // Reads of this 4 KiB page fail.

 private:
  struct Read {
    DmaReq req;
    uint64_t ready;
    bool error;
  };
  bool Stalls() { return stall > 0 && random->Chance(stall); }

  sim::ClockedModel<Vheddle_tx_build> dut_;
  PortCfg cfg_;
  std::deque<TxPacket> packets_;
  std::deque<Response> responses_;
  std::deque<ReturnPacket> returns_;
  std::deque<Read> in_flight_;  // Requested, record not taken.
  std::deque<DmaReq> stored_;   // Record taken without error, payload not sent.
  std::deque<uint16_t> lengths_;
  std::vector<DmaReq> reads_;
  std::deque<SentFrame> sent_;
  std::vector<Failure> failures_;
  std::array<int, 64> stats_ = {};
  uint64_t cycle_ = 0;
};

void TxBuild::Cycle() {
  ++cycle_;
  if (!dut_->pkt_valid_i && !packets_.empty() &&
      (packet_chance >= 1 || random->Chance(packet_chance))) {
    dut_->pkt_valid_i = 1;
    Drive(dut_->pkt_i, packets_.front());
  }
  if (!dut_->rsp_valid_i && !responses_.empty()) {
    dut_->rsp_valid_i = 1;
    Drive(dut_->rsp_i, responses_.front());
  }
  if (!dut_->back_valid_i && !returns_.empty()) {
    dut_->back_valid_i = 1;
    Drive(dut_->back_i, returns_.front());
  }
  dut_->rd_ready_i = !Stalls();
  dut_->len_ready_i = !Stalls();
  dut_->head_ready_i = !Stalls();
  const bool record = !in_flight_.empty() && in_flight_.front().ready <= cycle_;
  dut_->rec_valid_i = record;
  if (record) {
    const Read& read = in_flight_.front();
    Bytes data;
    for (unsigned i = 0; i < read.req.bytes; ++i) {
      data.push_back(MemoryByte(read.req.addr + i));
    }
    dut_->rec_error_i = read.error;
    dut_->rec_sum_i = OnesSum(data.data(), data.size());
    dut_->rec_crc_i = Crc32cState(0, data);
  }
  dut_.Settle();

  if (dut_->fail_o) {
    failures_.push_back({dut_->fail_msg_o, dut_->fail_ctx_o, dut_->fail_gen_o});
  }
  for (size_t i = 0; i < stats_.size(); ++i) {
    stats_[i] += static_cast<int>((dut_->stat_o >> i) & 1);
  }
  if (dut_->head_valid_o && dut_->head_ready_i) {
    const auto head = Sample<FrameHead>(dut_->head_o);
    SentFrame frame;
    frame.header = head.length;
    frame.bytes.assign(head.bytes, head.bytes + head.length);
    for (int i = head.length; i < FrameHead::kSpace; ++i) {
      EXPECT_EQ(head.bytes[i], 0) << "behind the headers";
    }
    if (head.payload_bytes != 0) {
      EXPECT_FALSE(stored_.empty());
      if (!stored_.empty()) {
        EXPECT_EQ(stored_.front().bytes, head.payload_bytes);
        for (unsigned i = 0; i < head.payload_bytes; ++i) {
          frame.bytes.push_back(MemoryByte(stored_.front().addr + i));
        }
        stored_.pop_front();
      }
    }
    EXPECT_EQ(head.trailer, cfg_.crc);
    for (size_t i = 0; i < kCrcBytes && head.trailer; ++i) {
      frame.bytes.push_back(static_cast<uint8_t>(head.crc >> (8 * i)));
    }
    sent_.push_back(frame);
  }
  const bool record_taken = dut_->rec_ready_o;
  EXPECT_TRUE(!record_taken || record);
  if (dut_->rd_valid_o && dut_->rd_ready_i) {
    const auto req = Sample<DmaReq>(dut_->rd_req_o);
    EXPECT_GT(req.bytes, 0);
    reads_.push_back(req);
    const bool error = refused_page && req.addr >> 12 == *refused_page;
    in_flight_.push_back({req, cycle_ + static_cast<uint64_t>(latency), error});
  }
  if (dut_->len_valid_o && dut_->len_ready_i) {
    lengths_.push_back(dut_->len_bytes_o);
  }
  const bool pkt_taken = dut_->pkt_valid_i && dut_->pkt_ready_o;
  const bool rsp_taken = dut_->rsp_valid_i && dut_->rsp_ready_o;
  const bool back_taken = dut_->back_valid_i && dut_->back_ready_o;
  dut_.Tick();
  if (record_taken && record) {
    if (!in_flight_.front().error) stored_.push_back(in_flight_.front().req);
    EXPECT_FALSE(lengths_.empty());
    if (!lengths_.empty()) {
      EXPECT_EQ(lengths_.front(), in_flight_.front().req.bytes);
      lengths_.pop_front();
    }
    in_flight_.pop_front();
  }
  if (pkt_taken) {
    packets_.pop_front();
    dut_->pkt_valid_i = 0;
  }
  if (back_taken) {
    returns_.pop_front();
    dut_->back_valid_i = 0;
  }
  if (rsp_taken) {
    responses_.pop_front();
    dut_->rsp_valid_i = 0;
  }
}

PdcPeer SomePeer() {
  PdcPeer peer = {};
  peer.fa_lo = 0x0a000002;
  peer.hop = 1;
  peer.dscp = 9;
  peer.spdcid = 0x11;
  peer.start_psn = 0x12345;
  peer.entropy = 0xc123;
  peer.job_id = 0x42;
  peer.pid_on_fep = 3;
  peer.source_pid = 0;
  peer.source_ri = 7;
  return peer;
}

Route RouteTo(const PdcPeer& peer, uint64_t mac) {
  return {kMac, mac, kAddress, peer.fa_lo, peer.dscp, peer.entropy};
}

MsgPacket InlineMessage(const std::string& payload) {
  MsgPacket msg = {};
  msg.opcode = kSend;
  msg.flags = kFlagInline;
  msg.resource_index = 5;
  msg.length = static_cast<uint32_t>(payload.size());
  for (size_t i = 0; i < payload.size(); ++i) {
    (i < 8 ? msg.inline_lo : msg.inline_hi) |=
        uint64_t{static_cast<uint8_t>(payload[i])} << (8 * (i % 8));
  }
  return msg;
}

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

class TxBuildTest : public testing::Test {
 protected:
  TxBuildTest() {
    dut_.WriteHop(0, kGatewayMac, 1);
    dut_.WriteHop(1, kPeerMac, 1);
  }
  TxBuild dut_;
};

// Each of IPv4 and IPv6, untagged and tagged, without and with CRC.
class TxBuildStackTest : public testing::TestWithParam<int> {
 protected:
  static constexpr uint64_t kAddress6Hi = 0xfd00'1234'5678'9abc;
  static constexpr uint64_t kPeer6Hi = 0xfd00'ffff'0000'0001;

  TxBuildStackTest() {
    route_.ipv6 = (GetParam() & 1) != 0;
    route_.vlan = (GetParam() & 2) != 0 ? 0xabc : 0;
    route_.crc = (GetParam() & 4) != 0;
    route_.source_mac = kMac;
    route_.destination_mac = kPeerMac;
    route_.source = kAddress;
    route_.destination = 0x0a000002;
    route_.source_hi = route_.ipv6 ? kAddress6Hi : 0;
    route_.destination_hi = route_.ipv6 ? kPeer6Hi : 0;
    dut_.config().ipv6 = route_.ipv6;
    dut_.config().fa_hi = route_.source_hi;
    dut_.config().vlan = route_.vlan;
    dut_.config().crc = route_.crc;
    dut_.SetConfig();
    dut_.WriteHop(1, kPeerMac, 1, route_.vlan);
  }
  PdcPeer Peer() const {
    PdcPeer peer = SomePeer();
    peer.ipv6 = route_.ipv6;
    peer.fa_hi = route_.destination_hi;
    return peer;
  }
  // The request of the worked packets, on PDC 3.
  void SendHello() {
    dut_.WriteMessage(0, InlineMessage("UETHELLO"));
    TxPacket pkt = {};
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

INSTANTIATE_TEST_SUITE_P(Each, TxBuildStackTest, testing::Range(0, 8),
                         [](const auto& stack) {
                           return std::string(stack.param & 1 ? "V6" : "V4") +
                                  (stack.param & 2 ? "Tagged" : "") +
                                  (stack.param & 4 ? "Crc" : "");
                         });

ReturnPacket SomeReturn(const Route& route) {
  ReturnPacket pkt = {};
  pkt.pdc = 7;
  pkt.psn = 0x1000;
  pkt.ar = 1;
  pkt.retx = 1;
  pkt.clear_psn = 0x0ffe;
  pkt.route = {.ipv6 = route.ipv6,
               .fa_hi = route.destination_hi,
               .fa_lo = route.destination,
               .mac = route.destination_mac,
               .dscp = route.dscp,
               .entropy = route.entropy,
               .spdcid = 0x222,
               .dpdcid = 0x111};
  pkt.data = {.iova = 0x5003,
              .bytes = 1000,
              .owner = 6,
              .message_id = 0xabc,
              .message_offset = 8192,
              .message_bytes = 9192,
              .job_id = 0x42};
  return pkt;
}

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
  EXPECT_EQ(dut_.reads()[0], (DmaReq{0x5003, 1000, 6}));
  EXPECT_EQ(dut_.sent()[0].bytes, Frame(route_, DataDatagram()));
  // Its region is gone: memory is not looked at.
  ReturnPacket dead = SomeReturn(route_);
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

TEST_F(TxBuildTest, RequestsAndReturnDataTakeTurns) {
  dut_.WritePdc(3, SomePeer());
  dut_.WriteMessage(4, InlineMessage("x"));
  const Route route = RouteTo(SomePeer(), kPeerMac);
  for (int i = 0; i < 8; ++i) {
    dut_.Push(SomeReturn(route));
    TxPacket pkt = {};
    pkt.pdc = 3;
    pkt.msg = 4;
    pkt.last = 1;
    dut_.Push(pkt);
  }
  dut_.RunUntil(16, 1000);
  for (size_t i = 1; i < 16; ++i) {
    EXPECT_NE(dut_.sent()[i].bytes.size(), dut_.sent()[i - 1].bytes.size());
  }
}

TEST_F(TxBuildTest, ReadAsksForItsBytesAndCarriesNone) {
  const PdcPeer peer = SomePeer();
  dut_.WritePdc(3, peer);
  MsgPacket msg = {};
  msg.opcode = 2;
  msg.resource_index = 5;
  msg.length = 5000;
  msg.iova = 0x5000;
  dut_.WriteMessage(4, msg);
  TxPacket pkt = {};
  pkt.pdc = 3;
  pkt.msg = 4;
  pkt.index = 1;
  pkt.last = 1;
  pkt.tpdcid = 0x22;
  dut_.Push(pkt);
  dut_.RunUntil(1, 200);
  EXPECT_TRUE(dut_.reads().empty());
  const size_t headers = HeaderBytes(RouteTo(peer, kPeerMac)) + 12;
  ASSERT_EQ(dut_.sent()[0].bytes.size(), headers + 44);
  auto ses =
      contract::wire::SesStd::Decode(dut_.sent()[0].bytes.data() + headers);
  EXPECT_EQ(ses.ie, 0);
  EXPECT_EQ(ses.payload_length, 5000 - 4096);
  EXPECT_EQ(ses.message_offset, 4096u);
  // Its context is gone: that is told, and the packet asks all the same.
  dut_->alive_i = 0;
  dut_.Push(pkt);
  dut_.RunUntil(2, 200);
  EXPECT_EQ(dut_.failures().size(), 1u);
  dut_.Push(pkt);
  pkt.failed = 1;
  dut_.Push(pkt);
  dut_.RunUntil(4, 200);
  for (const size_t i : {1u, 2u, 3u}) {
    ses = contract::wire::SesStd::Decode(dut_.sent()[i].bytes.data() + headers);
    EXPECT_EQ(ses.ie, i == 3 ? 1 : 0) << i;
  }
}

// Packet X1 of the worked packets, with absolute addressing as we send.
TEST_P(TxBuildStackTest, WorkedPacketX1LeavesByteForByte) {
  dut_.WritePdc(3, Peer());
  SendHello();
  EXPECT_EQ(dut_.sent().front().bytes, HelloFrame());
  EXPECT_TRUE(dut_.reads().empty());
}

// A switch may mark a request, of which the ACK then tells; no ACK.
TEST_P(TxBuildStackTest, WithCongestionControlRequestsSayThatTheyMayBeMarked) {
  dut_->ect_i = 1;
  dut_.WritePdc(3, Peer());
  SendHello();
  route_.ecn = 2;
  EXPECT_EQ(dut_.sent().front().bytes, HelloFrame());
  Response ack = {};
  ack.kind = ResponseKind::kNone;
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
  PdcPeer peer = Peer();
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
  Response x2 = {};
  x2.ipv6 = route_.ipv6;
  x2.fa_hi = route_.destination_hi;
  x2.fa_lo = route_.destination;
  x2.mac = kPeerMac;
  x2.entropy = 0xd000;
  x2.cack = 0x12345;
  x2.spdcid = 0x22;
  x2.dpdcid = 0x11;
  x2.message_id = 1;
  Response x3 = x2;
  x3.response = 1;
  x3.return_code = 1;
  x3.job_id = 0x42;
  x3.modified_length = 8;
  Response x12 = x2;
  x12.kind = ResponseKind::kNone;
  x12.cack = 0x54325;
  x12.spdcid = 0x41;
  x12.dpdcid = 0x31;
  Response x13 = x12;
  x13.kind = ResponseKind::kNack;
  x13.code = 7;
  x13.nack_psn = 0x54325;
  for (const Response& rsp : {x2, x3, x12, x13}) dut_.Push(rsp);
  dut_.RunUntil(4, 50);
  route_.entropy = 0xd000;
  const char* datagrams[] = {
      "3a00 0000 0001 2345 0022 0011 0000 0001 0000 0000 0000 0000",
      "3a00 0000 0001 2345 0022 0011 0101 0001 0000 0042 0000 0008",
      "3800 0000 0005 4325 0041 0031",
      "5000 0700 0005 4325 0041 0031 0000 0000"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(dut_.sent()[i].bytes, Frame(route_, Hex(datagrams[i]))) << i;
  }
  EXPECT_EQ(dut_.stats()[8], 3);  // tx_acks
  EXPECT_EQ(dut_.stats()[9], 1);  // tx_nacks
}

// X10 and X11; what the message table holds at `msg` says nothing about them.
TEST_P(TxBuildStackTest, ControlPacketsLeaveByteForByte) {
  PdcPeer peer = Peer();
  peer.spdcid = 0x31;
  dut_.WritePdc(3, peer);
  MsgPacket msg = {};
  msg.opcode = kSend;
  msg.length = 4096;
  dut_.WriteMessage(0, msg);
  dut_->alive_i = 0;
  TxPacket clear = {};
  clear.pdc = 3;
  clear.control = 1;
  clear.cp_type = static_cast<uint8_t>(contract::CpType::kClearCommand);
  clear.clear_psn = 0x54324;
  clear.tpdcid = 0x41;
  TxPacket close = clear;
  close.cp_type = static_cast<uint8_t>(contract::CpType::kCloseCommand);
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

TEST_F(TxBuildTest, UdpChecksumOfZeroIsSentAsAllOnes) {
  // The two bytes that follow are chosen so that the sum comes out as 0xffff.
  dut_.WritePdc(3, SomePeer());
  TxPacket pkt = {};
  pkt.pdc = 3;
  pkt.last = 1;
  MsgPacket msg = InlineMessage(std::string(2, '\0'));
  Bytes frame = RequestFrame(
      pkt, msg, SomePeer(), RouteTo(SomePeer(), kPeerMac), 4096, false, {0, 0});
  const uint16_t needed = static_cast<uint16_t>(frame[40] << 8 | frame[41]);
  msg.inline_lo = uint64_t{needed} >> 8 | uint64_t{needed & 0xffu} << 8;
  dut_.WriteMessage(0, msg);
  dut_.Push(pkt);
  dut_.RunUntil(1, 50);
  EXPECT_EQ(dut_.sent()[0].bytes[40], 0xff);
  EXPECT_EQ(dut_.sent()[0].bytes[41], 0xff);
}

TEST_F(TxBuildTest, EightByteMessagesSustainOnePacketEveryTwoCycles) {
  dut_.WritePdc(0, SomePeer());
  dut_.WriteMessage(0, InlineMessage("12345678"));
  for (uint32_t i = 0; i < 200; ++i) {
    TxPacket pkt = {};
    pkt.psn = i;
    pkt.last = 1;
    dut_.Push(pkt);
  }
  const uint64_t start = dut_.cycle();
  dut_.RunUntil(200, 500);
  EXPECT_LE(dut_.cycle() - start, 200u * 2 + 20);
}

TEST_F(TxBuildTest, ReadLatencyIsHiddenForOnePacketEveryTwoCycles) {
  dut_.latency = 120;
  dut_.WritePdc(0, SomePeer());
  MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 64;
  dut_.WriteMessage(0, msg);
  for (uint32_t i = 0; i < 400; ++i) {
    TxPacket pkt = {};
    pkt.psn = i;
    pkt.last = 1;
    dut_.Push(pkt);
  }
  const uint64_t start = dut_.cycle();
  dut_.RunUntil(400, 2000);
  EXPECT_LE(dut_.cycle() - start, 400u * 2 + 150);
}

TEST_F(TxBuildTest, ResponsesOvertakeRequests) {
  dut_.WritePdc(0, SomePeer());
  MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 64;
  dut_.WriteMessage(0, msg);
  dut_.latency = 100;
  TxPacket pkt = {};
  pkt.last = 1;
  dut_.Push(pkt);
  for (int i = 0; i < 10; ++i) dut_.Cycle();
  Response rsp = {};
  rsp.kind = ResponseKind::kNone;
  for (int i = 0; i < 3; ++i) dut_.Push(rsp);
  dut_.RunUntil(4, 300);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(dut_.sent()[static_cast<size_t>(i)].bytes[42] >> 3, 7) << i;
  }
  EXPECT_EQ(dut_.sent()[3].bytes[42] >> 3, 3);
}

TEST_F(TxBuildTest, SequenceWaitsForThePayloadOfAPacket) {
  dut_.WritePdc(0, SomePeer());
  MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 64;
  dut_.WriteMessage(0, msg);
  dut_.latency = 60;
  TxPacket pkt = {};
  pkt.last = 1;
  dut_.Push(pkt);
  for (int i = 0; i < 50; ++i) {
    dut_.Cycle();
    EXPECT_EQ(dut_->seq_done_o, 0);
    EXPECT_EQ(dut_->idle_o, 0);
  }
  dut_.RunUntil(1, 100);
  EXPECT_EQ(dut_->seq_done_o, 1);
  dut_.Cycle();
  EXPECT_EQ(dut_->idle_o, 1);
}

TEST_F(TxBuildTest, RefusedReadFailsTheMessageOnceAndAllItsLaterPackets) {
  dut_.WritePdc(0, SomePeer());
  MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 3 * 4096;
  msg.iova = 0x10000;
  msg.ctx = 4;
  msg.gen = 9;
  SetPort(dut_->gen_i, Gens({{4, 9}}));
  dut_.WriteMessage(2, msg);
  dut_.refused_page = 0x11;
  for (uint32_t i = 0; i < 3; ++i) {
    TxPacket pkt = {};
    pkt.msg = 2;
    pkt.psn = i;
    pkt.index = i;
    pkt.last = i == 2;
    dut_.Push(pkt);
  }
  dut_.RunUntil(3, 300);
  EXPECT_EQ(dut_.sent()[0].bytes[55] & 0x10, 0);
  EXPECT_EQ(dut_.sent()[1].bytes[55] & 0x10, 0x10);
  EXPECT_EQ(dut_.sent()[1].bytes.size(), dut_.sent()[1].header);
  EXPECT_EQ(dut_.sent()[2].bytes[55] & 0x10, 0x10);
  ASSERT_EQ(dut_.failures().size(), 1u);
  EXPECT_EQ(dut_.failures()[0].msg, 2);
  EXPECT_EQ(dut_.failures()[0].ctx, 4);
  EXPECT_EQ(dut_.failures()[0].gen, 9);

  // Sent again, nothing of it is read any more; the entry's next message is.
  const size_t reads = dut_.reads().size();
  TxPacket again = {};
  again.msg = 2;
  again.index = 1;
  again.retx = 1;
  dut_.Push(again);
  dut_.RunUntil(4, 100);
  EXPECT_EQ(dut_.reads().size(), reads);
  EXPECT_EQ(dut_.sent()[3].bytes[55] & 0x10, 0x10);
  msg.iova = 0x20000;
  dut_.WriteMessage(2, msg);
  again.retx = 0;
  dut_.Push(again);
  dut_.RunUntil(5, 100);
  EXPECT_EQ(dut_.sent()[4].bytes.size(), dut_.sent()[4].header + 4096);
  EXPECT_EQ(dut_.stats()[6], 4);  // tx_requests
  EXPECT_EQ(dut_.stats()[7], 1);  // tx_retransmissions
}

TEST_F(TxBuildTest,
       NothingIsReadForAContextThatIsDisabledOrOfAnotherGeneration) {
  dut_.WritePdc(0, SomePeer());
  MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 100;
  dut_.WriteMessage(0, msg);
  dut_.WriteMessage(1, msg);
  TxPacket pkt = {};
  pkt.last = 1;
  dut_->alive_i = 0xfffe;
  dut_.Push(pkt);
  dut_.RunUntil(1, 50);
  dut_->alive_i = 0xffff;
  SetPort(dut_->gen_i, Gens({{0, 1}}));
  pkt.msg = 1;
  dut_.Push(pkt);
  dut_.RunUntil(2, 50);
  EXPECT_TRUE(dut_.reads().empty());
  for (int i = 0; i < 2; ++i) {
    const Bytes& frame = dut_.sent()[static_cast<size_t>(i)].bytes;
    EXPECT_EQ(frame.size(), 98u);
    EXPECT_EQ(frame[55] & 0x10, 0x10);
    EXPECT_EQ(frame[97], 100);  // request_length is kept
  }
}

TEST_F(TxBuildTest, PayloadIsReadWhereItWasMovedTo) {
  dut_.WritePdc(0, SomePeer());
  MsgPacket msg = InlineMessage("");
  msg.flags = contract::kTxFlagInlineExt;
  msg.length = 100;
  msg.iova = 0x7040;
  for (const uint16_t index : {uint16_t{4}, uint16_t{5}}) {
    dut_.WriteMessage(index, msg);
  }
  dut_->spill_base_i[2 * msg.ctx] = 0x90000;
  TxPacket pkt = {};
  pkt.last = 1;
  const auto send = [&](uint16_t index) {
    pkt.msg = index;
    dut_.Push(pkt);
    dut_.RunUntil(dut_.sent().size() + 1, 100);
    return dut_.reads().back().addr;
  };
  EXPECT_EQ(send(4), 0x7040U);
  dut_->move_i = 1;
  dut_->move_msg_i = 4;
  dut_->move_slot_i = 3;
  dut_.Cycle();
  dut_->move_i = 0;
  EXPECT_EQ(send(4), 0x900c0U);
  EXPECT_EQ(send(5), 0x7040U);
  // The next message in its place has not moved.
  dut_.WriteMessage(4, msg);
  EXPECT_EQ(send(4), 0x7040U);
}

TEST_F(TxBuildTest, APacketForAHopThatIsNotValidIsCountedAndNotSent) {
  PdcPeer peer = SomePeer();
  peer.hop = 255;
  dut_.WritePdc(0, peer);
  dut_.WriteMessage(0, InlineMessage("x"));
  TxPacket pkt = {};
  pkt.last = 1;
  dut_.Push(pkt);
  for (int i = 0; i < 20; ++i) dut_.Cycle();
  EXPECT_EQ(dut_.stats()[42], 1);  // drop_no_hop
  EXPECT_TRUE(dut_.sent().empty());
  EXPECT_EQ(dut_->seq_done_o, 1);
  EXPECT_EQ(dut_->idle_o, 1);
  // The same packet again, as a retransmission would be, once the hop is known.
  dut_.WriteHop(255, 0x02'00'00'00'00'77, 1);
  dut_.Push(pkt);
  dut_.RunUntil(1, 50);
  EXPECT_EQ(dut_.sent()[0].bytes[5], 0x77);
}

TEST_F(TxBuildTest, ATableReadDoesNotGoIntoAPacketsAddress) {
  PdcPeer peer = SomePeer();
  peer.hop = 3;
  dut_.WriteHop(3, 0x02'00'00'00'00'33, 1);
  dut_.WritePdc(0, peer);
  dut_.WriteMessage(0, InlineMessage("x"));
  TxPacket pkt = {};
  pkt.last = 1;
  TableReq req = {};
  req.sel = 5;
  size_t expected = 0;
  for (int delay = 0; delay < 6; ++delay) {
    for (int i = 0; i < 8; ++i, ++expected) dut_.Push(pkt);
    for (int i = 0; i < delay; ++i) dut_.Cycle();
    for (int i = 0; i < 4; ++i) dut_.TableAccess(req);
    dut_.RunUntil(expected, 100);
  }
  for (const SentFrame& frame : dut_.sent()) {
    EXPECT_EQ(frame.bytes[5], 0x33);
  }
}

TEST_F(TxBuildTest, NextHopsReadBackAndOthersAreErrors) {
  dut_.WriteHop(1, kPeerMac, 1, 7);
  TableReq req = {};
  req.sel = 5;
  req.index = 1;
  const TableRsp rsp = dut_.TableAccess(req);
  EXPECT_EQ(rsp.error, 0);
  EXPECT_EQ(rsp.data[0], 0x02'00'00'00'00'02u);
  EXPECT_EQ(rsp.data[1], uint64_t{1} << 32 | 4096u << 16 | 7);
  req.index = 256;
  EXPECT_EQ(dut_.TableAccess(req).error, 1);
}

TEST_F(TxBuildTest, NothingLeavesWhileThePortIsDisabled) {
  dut_.WritePdc(0, SomePeer());
  dut_.WriteMessage(0, InlineMessage("x"));
  dut_.config().enable = 0;
  dut_.SetConfig();
  TxPacket pkt = {};
  pkt.last = 1;
  dut_.Push(pkt);
  dut_.Push(Response{});
  for (int i = 0; i < 30; ++i) dut_.Cycle();
  EXPECT_TRUE(dut_.sent().empty());
  EXPECT_EQ(dut_->seq_done_o, 1);
}

// Random messages, PDCs, stalls and responses against the reference encoder.
TEST(TxBuildRandomTest, EveryPacketLeavesInOrderAsTheReferenceEncodesIt) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    std::printf("seed %lu\n", static_cast<unsigned long>(seed));
    SCOPED_TRACE(seed);
    sim::Random random(seed);
    TxBuild dut;
    dut.random = &random;
    dut.stall = 0.1 * static_cast<double>(random.Below(6));
    dut.packet_chance = 0.3 + 0.1 * static_cast<double>(random.Below(8));
    dut.latency = static_cast<int>(1 + random.Below(150));
    const uint16_t mtu = static_cast<uint16_t>(1024u << random.Below(4));
    PortCfg& config = dut.config();
    config.payload_mtu = mtu;
    config.crc = seed & 1;
    config.ipv6 = seed >> 1 & 1;
    config.vlan = random.Chance(0.5) ? random.Below(4096) & 0xfff : 0;
    config.fa_hi = random.Next();
    config.fa_lo = random.Next();
    dut.SetConfig();
    std::vector<uint64_t> macs;
    std::vector<uint16_t> vlans;
    for (uint16_t hop = 0; hop < 256; ++hop) {
      macs.push_back(random.Next() >> 16);
      vlans.push_back(random.Chance(0.5) ? random.Below(4096) & 0xfff : 0);
      dut.WriteHop(hop, macs.back(), 1, vlans.back());
    }
    const auto route = [&config](uint64_t fa_hi, uint64_t fa_lo) {
      Route to;
      to.source_mac = kMac;
      to.source = config.fa_lo;
      to.destination = fa_lo;
      to.ipv6 = config.ipv6 != 0;
      to.source_hi = config.fa_hi;
      to.destination_hi = fa_hi;
      to.crc = config.crc != 0;
      return to;
    };
    std::vector<PdcPeer> peers;
    for (uint8_t i = 0; i < 8; ++i) {
      PdcPeer peer = SomePeer();
      peer.ipv6 = config.ipv6;
      peer.fa_hi = random.Next();
      peer.fa_lo = random.Next();
      peer.hop = static_cast<uint8_t>(random.Below(256));
      peer.dscp = static_cast<uint8_t>(random.Below(64));
      peer.spdcid = static_cast<uint16_t>(random.Next());
      peer.start_psn = static_cast<uint32_t>(random.Next());
      peer.entropy = static_cast<uint16_t>(random.Next());
      peer.job_id = random.Below(1 << 24);
      peer.pid_on_fep = static_cast<uint16_t>(random.Below(4096));
      peer.source_pid = static_cast<uint16_t>(random.Below(4096));
      peer.source_ri = static_cast<uint16_t>(random.Below(4096));
      dut.WritePdc(i, peer);
      peers.push_back(peer);
    }
    std::vector<MsgPacket> messages;
    for (uint16_t i = 0; i < 32; ++i) {
      MsgPacket msg = {};
      msg.opcode = random.Chance(0.5) ? kSend : kWrite;
      msg.flags = random.Chance(0.5) ? kFlagHeaderData : 0;
      if (random.Chance(0.5)) msg.flags |= kFlagDeliveryComplete;
      msg.resource_index = static_cast<uint16_t>(random.Below(4096));
      msg.header_data = random.Next();
      msg.match_bits = random.Next();
      msg.remote_offset = random.Next();
      msg.iova = random.Next() >> 8;
      msg.length = random.Below(40000);
      if (random.Chance(0.5)) {
        msg.flags |= kFlagInline;
        msg.length = random.Below(17);
        msg.inline_hi = random.Next();
        msg.inline_lo = random.Next();
      }
      dut.WriteMessage(static_cast<uint16_t>(i * 31), msg);
      messages.push_back(msg);
    }

    std::deque<Bytes> requests, responses;
    for (int i = 0; i < 300; ++i) {
      const uint32_t m = random.Below(32);
      const MsgPacket& msg = messages[m];
      TxPacket pkt = {};
      pkt.pdc = static_cast<uint8_t>(random.Below(8));
      pkt.msg = static_cast<uint16_t>(m * 31);
      const uint32_t packets = std::max(1u, (msg.length + mtu - 1) / mtu);
      pkt.index = random.Below(packets);
      pkt.last = pkt.index == packets - 1;
      pkt.syn = random.Chance(0.3);
      pkt.psn = peers[pkt.pdc].start_psn + random.Below(4096);
      pkt.clear_psn = pkt.psn - random.Below(200);
      pkt.retx = random.Chance(0.3);
      pkt.ar = random.Chance(0.5);
      pkt.tpdcid = static_cast<uint16_t>(random.Next());
      pkt.failed = random.Chance(0.1);
      pkt.control = random.Chance(0.1);
      Bytes payload;
      if (!pkt.failed) {
        const uint32_t offset = pkt.index * mtu;
        const uint32_t bytes = std::min<uint32_t>(mtu, msg.length - offset);
        for (uint32_t b = 0; b < bytes; ++b) {
          payload.push_back((msg.flags & kFlagInline) == 0
                                ? MemoryByte(msg.iova + offset + b)
                                : static_cast<uint8_t>(
                                      (b < 8 ? msg.inline_lo : msg.inline_hi) >>
                                      (8 * (b % 8))));
        }
      }
      const PdcPeer& peer = peers[pkt.pdc];
      Route to = route(peer.fa_hi, peer.fa_lo);
      to.destination_mac = macs[peer.hop];
      to.dscp = peer.dscp;
      to.entropy = peer.entropy;
      to.vlan = vlans[peer.hop];
      if (pkt.control) {
        pkt.syn = 0;
        pkt.cp_type = static_cast<uint8_t>(random.Below(10));
        requests.push_back(ControlFrame(pkt, peer, to));
      } else {
        requests.push_back(
            RequestFrame(pkt, msg, peer, to, mtu, pkt.failed, payload));
      }
      dut.Push(pkt);
    }
    for (int i = 0; i < 60; ++i) {
      Response rsp = {};
      rsp.kind = static_cast<ResponseKind>(random.Below(3));
      rsp.ipv6 = config.ipv6;
      rsp.fa_hi = random.Next();
      rsp.fa_lo = random.Next();
      rsp.mac = random.Next() >> 16;
      rsp.entropy = static_cast<uint16_t>(random.Next());
      rsp.dscp = static_cast<uint8_t>(random.Below(64));
      rsp.m = random.Chance(0.5);
      rsp.retx = random.Chance(0.5);
      rsp.req = static_cast<uint8_t>(random.Below(3));
      rsp.cc = random.Chance(0.5);
      rsp.sack_bitmap = random.Next();
      rsp.service_time = static_cast<uint16_t>(random.Below(3) * 1000);
      rsp.rcvd_bytes = static_cast<uint32_t>(random.Next()) & 0xffffff;
      rsp.spdcid = static_cast<uint16_t>(random.Next());
      rsp.dpdcid = static_cast<uint16_t>(random.Next());
      rsp.cack = static_cast<uint32_t>(random.Next());
      rsp.ack_offset = static_cast<uint16_t>(random.Next());
      rsp.nack_psn = static_cast<uint32_t>(random.Next());
      rsp.code = static_cast<uint8_t>(random.Next());
      rsp.vendor_code = static_cast<uint8_t>(random.Next());
      rsp.response = static_cast<uint8_t>(random.Below(4));
      rsp.return_code = static_cast<uint8_t>(random.Below(36));
      rsp.message_id = static_cast<uint16_t>(random.Next());
      rsp.job_id = random.Below(1 << 24);
      rsp.modified_length = static_cast<uint32_t>(random.Next());
      Route to = route(rsp.fa_hi, rsp.fa_lo);
      to.destination_mac = rsp.mac;
      to.dscp = rsp.dscp;
      to.entropy = rsp.entropy;
      to.vlan = config.vlan;
      responses.push_back(Frame(to, ResponseDatagram(rsp)));
      for (uint32_t c = random.Below(10); c > 0; --c) dut.Cycle();
      dut.Push(rsp);
    }
    dut.RunUntil(360, 30000);
    for (const SentFrame& frame : dut.sent()) {
      const size_t tag = frame.bytes[12] == 0x81 ? 4 : 0;
      const size_t pds = tag + (config.ipv6 ? 62 : 42);
      const auto type = static_cast<contract::PdsType>(frame.bytes[pds] >> 3);
      const bool sent =
          type == contract::PdsType::kRodReq || type == contract::PdsType::kCp;
      auto& expected = sent ? requests : responses;
      ASSERT_FALSE(expected.empty());
      ASSERT_EQ(frame.bytes, expected.front());
      expected.pop_front();
    }
    EXPECT_EQ(dut->seq_done_o, 300);
    EXPECT_TRUE(dut.failures().empty());
  }
}

}  // namespace
}  // namespace heddle::test
