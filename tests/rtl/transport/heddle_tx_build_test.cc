// SPDX-License-Identifier: Apache-2.0
// Order, rates, and what cannot be sent.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "tests/frames/worked.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/transport/tx_build_bench.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

TEST_F(TxBuildTest, RequestsAndReturnDataTakeTurns) {
  dut_.WritePdc(3, SomePeer());
  dut_.WriteMessage(4, InlineMessage("x"));
  const Route route = RouteTo(SomePeer(), kPeerMac);
  for (int i = 0; i < 8; ++i) {
    dut_.Push(SomeReturn(route));
    rtl::TxPacket pkt = {};
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

// Retransmissions leave after what was read, so that is no more than reads of
// the host need.
TEST_F(TxBuildTest, PausesWhileMuchPayloadIsAwaited) {
  constexpr size_t kSmall = 20;
  constexpr uint32_t kMtu = 4096;
  constexpr uint32_t kPackets = 6;
  dut_.WritePdc(3, SomePeer());
  dut_.WriteMessage(4, InlineMessage("x"));
  rtl::MsgPacket msg = {};
  msg.opcode = contract::Opcode::kWrite;
  msg.length = kPackets * kMtu;
  msg.iova = 0x5000;
  dut_.WriteMessage(5, msg);
  const auto push = [&](uint16_t message, uint32_t index) {
    rtl::TxPacket pkt = {};
    pkt.pdc = 3;
    pkt.msg = message;
    pkt.index = index;
    pkt.last = message == 4 || index == kPackets - 1;
    dut_.Push(pkt);
  };
  const auto run = [&](int cycles) {
    for (int i = 0; i < cycles; ++i) dut_.Cycle();
  };
  // Reads that fail do not count for ever.
  dut_.refused_page = msg.iova;
  push(5, 0);
  run(50);
  dut_.refused_page = {};
  dut_.sent().clear();
  dut_.WriteMessage(5, msg);

  dut_.latency = 200;
  for (uint32_t i = 0; i < kPackets - 1; ++i) push(5, i);
  for (size_t i = 0; i < kSmall; ++i) push(4, 0);
  run(100);
  EXPECT_EQ(dut_.sent().size(), 0U);
  EXPECT_EQ(dut_->pause_o, 0) << "small ones need no read";
  push(5, kPackets - 1);
  run(20);
  EXPECT_EQ(dut_->pause_o, 1);
  dut_.RunUntil(1, 300);
  run(2);
  EXPECT_EQ(dut_->pause_o, 0) << "one left";
  // Return data count as well.
  dut_.RunUntil(kPackets + kSmall, 1000);
  const Route route = RouteTo(SomePeer(), kPeerMac);
  for (int i = 0; i < 40; ++i) dut_.Push(SomeReturn(route));
  run(150);
  EXPECT_EQ(dut_->pause_o, 1);
  dut_.RunUntil(kPackets + kSmall + 40, 3000);
  run(2);
  EXPECT_EQ(dut_->pause_o, 0);
}

TEST_F(TxBuildTest, ReadAsksForItsBytesAndCarriesNone) {
  const rtl::PdcPeer peer = SomePeer();
  dut_.WritePdc(3, peer);
  rtl::MsgPacket msg = {};
  msg.opcode = contract::Opcode::kRead;
  msg.resource_index = 5;
  msg.length = 5000;
  msg.iova = 0x5000;
  dut_.WriteMessage(4, msg);
  rtl::TxPacket pkt = {};
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

// The ACK or NACK of a worked frame, by its values.
rtl::Response WorkedResponse(const WorkedFrame& frame,
                             const contract::PortCfg& to) {
  const auto value = [&](const char* header, const char* name) {
    return WorkedValue(frame, header, name);
  };
  rtl::Response rsp = {};
  rsp.fa_lo = to.local_fa_lo;
  rsp.mac = to.mac;
  rsp.dscp = frame.dscp;
  rsp.entropy = frame.entropy;
  const bool nack = HasHeader(frame, "pds_nack");
  const char* const pds = nack ? "pds_nack" : "pds_ack";
  rsp.kind = nack                               ? rtl::ResponseKind::kNack
             : HasHeader(frame, "ses_response") ? rtl::ResponseKind::kAck
                                                : rtl::ResponseKind::kNone;
  rsp.spdcid = static_cast<uint16_t>(value(pds, "spdcid"));
  rsp.dpdcid = static_cast<uint16_t>(value(pds, "dpdcid"));
  rsp.nack_psn = static_cast<uint32_t>(value(pds, "nack_psn"));
  rsp.code = static_cast<uint8_t>(value(pds, "nack_code"));
  rsp.cack = static_cast<uint32_t>(value(pds, "cack_psn"));
  rsp.ack_offset = static_cast<uint16_t>(value(pds, "ack_psn_offset"));
  rsp.req = static_cast<contract::AckReq>(value(pds, "req"));
  const char* const ses = "ses_response";
  rsp.response = static_cast<uint8_t>(value(ses, "opcode"));
  rsp.return_code = static_cast<uint8_t>(value(ses, "return_code"));
  rsp.message_id = static_cast<uint16_t>(value(ses, "message_id"));
  rsp.job_id = static_cast<uint32_t>(value(ses, "job_id"));
  rsp.modified_length = static_cast<uint32_t>(value(ses, "modified_length"));
  return rsp;
}

// And the control packet of one, of PDC 3.
rtl::TxPacket WorkedControl(const WorkedFrame& frame) {
  const auto value = [&](const char* name) {
    return WorkedValue(frame, "pds_cp", name);
  };
  rtl::TxPacket pkt = {};
  pkt.pdc = 3;
  pkt.control = 1;
  pkt.cp_type = static_cast<contract::CpType>(value("cp_type"));
  pkt.psn = static_cast<uint32_t>(value("psn"));
  pkt.ar = static_cast<uint8_t>(value("ar"));
  pkt.clear_psn = static_cast<uint32_t>(value("payload"));
  pkt.tpdcid = static_cast<uint16_t>(value("dpdcid"));
  return pkt;
}

// UDP checksum 0, CRC with its most significant byte first.
TEST_F(TxBuildTest, AcksLeaveAsTheReferenceProviderEncodesThem) {
  size_t sent = 0;
  for (const WorkedFrame& reference : kWorkedFrames) {
    const bool control = HasHeader(reference, "pds_cp");
    const bool answer =
        HasHeader(reference, "pds_ack") || HasHeader(reference, "pds_nack");
    if (!reference.sent || (!control && !answer)) continue;
    SCOPED_TRACE(testing::Message()
                 << reference.name << ", " << reference.title);
    const contract::PortCfg from = WorkedPort(reference, /*sender=*/true);
    const contract::PortCfg to = WorkedPort(reference);
    dut_.config().mac = from.mac;
    dut_.config().local_fa_lo = from.local_fa_lo;
    dut_.config().crc = from.crc;
    dut_.config().ip_protocol = from.ip_protocol;
    dut_.SetConfig();
    if (answer) {
      dut_.Push(WorkedResponse(reference, to));
    } else {
      dut_.WriteHop(2, to.mac, 1);
      rtl::PdcPeer peer = {};
      peer.fa_lo = to.local_fa_lo;
      peer.hop = 2;
      peer.dscp = reference.dscp;
      peer.entropy = reference.entropy;
      peer.spdcid =
          static_cast<uint16_t>(WorkedValue(reference, "pds_cp", "spdcid"));
      dut_.WritePdc(3, peer);
      dut_.Push(WorkedControl(reference));
    }
    dut_.RunUntil(sent + 1, 50);
    EXPECT_EQ(dut_.sent()[sent++].bytes, WorkedBytes(reference));
  }
  EXPECT_GE(sent, 10u);
}

TEST_F(TxBuildTest, EightByteMessagesSustainOnePacketEveryTwoCycles) {
  dut_.WritePdc(0, SomePeer());
  dut_.WriteMessage(0, InlineMessage("12345678"));
  for (uint32_t i = 0; i < 200; ++i) {
    rtl::TxPacket pkt = {};
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
  rtl::MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 64;
  dut_.WriteMessage(0, msg);
  for (uint32_t i = 0; i < 400; ++i) {
    rtl::TxPacket pkt = {};
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
  rtl::MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 64;
  dut_.WriteMessage(0, msg);
  dut_.latency = 100;
  rtl::TxPacket pkt = {};
  pkt.last = 1;
  dut_.Push(pkt);
  for (int i = 0; i < 10; ++i) dut_.Cycle();
  rtl::Response rsp = {};
  rsp.kind = rtl::ResponseKind::kNone;
  for (int i = 0; i < 3; ++i) dut_.Push(rsp);
  dut_.RunUntil(4, 300);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(dut_.sent()[static_cast<size_t>(i)].bytes[42] >> 3, 7) << i;
  }
  EXPECT_EQ(dut_.sent()[3].bytes[42] >> 3, 3);
}

TEST_F(TxBuildTest, SequenceWaitsForThePayloadOfAPacket) {
  dut_.WritePdc(0, SomePeer());
  rtl::MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 64;
  dut_.WriteMessage(0, msg);
  dut_.latency = 60;
  rtl::TxPacket pkt = {};
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
  rtl::MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 3 * 4096;
  msg.iova = 0x10000;
  msg.ctx = 4;
  msg.gen = 9;
  DriveGens(dut_->gen_i, {{4, 9}});
  dut_.WriteMessage(2, msg);
  dut_.refused_page = 0x11;
  for (uint32_t i = 0; i < 3; ++i) {
    rtl::TxPacket pkt = {};
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
  rtl::TxPacket again = {};
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
  rtl::MsgPacket msg = InlineMessage("");
  msg.flags = 0;
  msg.length = 100;
  dut_.WriteMessage(0, msg);
  dut_.WriteMessage(1, msg);
  rtl::TxPacket pkt = {};
  pkt.last = 1;
  dut_->alive_i = 0xfffe;
  dut_.Push(pkt);
  dut_.RunUntil(1, 50);
  dut_->alive_i = 0xffff;
  DriveGens(dut_->gen_i, {{0, 1}});
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
  rtl::MsgPacket msg = InlineMessage("");
  msg.flags = contract::kTxFlagInlineExt;
  msg.length = 100;
  msg.iova = 0x7040;
  for (const uint16_t index : {uint16_t{4}, uint16_t{5}}) {
    dut_.WriteMessage(index, msg);
  }
  dut_->spill_base_i[2 * msg.ctx] = 0x90000;
  rtl::TxPacket pkt = {};
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

// Whatever a descriptor contains: payload is read in the NIC only if the NIC
// copied it there.
TEST_F(TxBuildTest, OnlyPayloadThatWasCopiedIsReadInTheNic) {
  std::mt19937 rng(TestSeed());
  dut_.WritePdc(0, SomePeer());
  constexpr uint32_t kNic = 3, kHost = 5, kArea = 2;
  dut_->in_nic_i = 1U << kNic;
  PutBits(dut_->nic_area_i, kNic * rtl::kSpillAreaW, rtl::kSpillAreaW, kArea);
  PutBits(dut_->spill_base_i, kHost * 64, 64, 0x90000);
  const auto send = [&](uint16_t index) {
    rtl::TxPacket pkt = {};
    pkt.last = 1;
    pkt.msg = index;
    dut_.Push(pkt);
    dut_.RunUntil(dut_.sent().size() + 1, 200);
    return dut_.gathers().back();
  };
  const auto row = [&](uint32_t slot) {
    return kArea << rtl::kSpillAreaLog2 | slot;
  };
  const auto move = [&](uint16_t index, uint16_t slot) {
    dut_->move_i = 1;
    dut_->move_msg_i = index;
    dut_->move_slot_i = slot;
    dut_.Cycle();
    dut_->move_i = 0;
  };
  for (int i = 0; i < 300; ++i) {
    const auto index = uint16_t(rng() % rtl::kNumMsg);
    rtl::MsgPacket msg = {};
    msg.ctx = uint8_t(rng() % 4 ? kNic : kHost);
    msg.opcode = rng() % 2 ? kSend : contract::Opcode::kWrite;
    msg.flags = uint8_t(rng() & ~uint32_t{contract::kTxFlagInline});
    msg.length = static_cast<uint32_t>(1 + rng() % 192);
    msg.iova = uint64_t{rng()} << 32 | rng();
    if (rng() % 2) msg.iova %= 0x20000;  // As slots of an area.
    msg.remote_offset = uint64_t{rng()} << 32 | rng();
    msg.match_bits = uint64_t{rng()} << 32 | rng();
    msg.inline_data_lo = uint64_t{rng()} << 32 | rng();
    msg.inline_data_hi = uint64_t{rng()} << 32 | rng();
    dut_.WriteMessage(index, msg);
    const rtl::GatherReq from_host = send(index);
    EXPECT_FALSE(from_host.in_nic);
    EXPECT_EQ(from_host.read.addr, msg.iova);
    const auto slot = uint16_t(rng() % (1U << rtl::kSpillAreaLog2));
    if (rng() % 2) {
      move(index, slot);
    } else {
      // It came from the area with its descriptor.
      msg.flags = contract::kTxFlagInlineExt;
      msg.iova = (msg.ctx == kHost ? 0x90000 : 0) + slot * 64U;
      dut_->msg_spilled_i = 1;
      dut_.WriteMessage(index, msg);
      dut_->msg_spilled_i = 0;
    }
    const rtl::GatherReq there = send(index);
    EXPECT_EQ(there.in_nic, msg.ctx == kNic);
    if (msg.ctx == kNic) {
      EXPECT_EQ(there.row, row(slot));
    } else {
      EXPECT_EQ(there.read.addr, 0x90000 + slot * 64U);
    }
    if (HasFailure()) return;
  }
}

TEST_F(TxBuildTest, APacketForAHopThatIsNotValidIsCountedAndNotSent) {
  rtl::PdcPeer peer = SomePeer();
  peer.hop = 255;
  dut_.WritePdc(0, peer);
  dut_.WriteMessage(0, InlineMessage("x"));
  rtl::TxPacket pkt = {};
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
  rtl::PdcPeer peer = SomePeer();
  peer.hop = 3;
  dut_.WriteHop(3, 0x02'00'00'00'00'33, 1);
  dut_.WritePdc(0, peer);
  dut_.WriteMessage(0, InlineMessage("x"));
  rtl::TxPacket pkt = {};
  pkt.last = 1;
  rtl::TableReq req = {};
  req.sel = contract::Table::kNextHop;
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
  rtl::TableReq req = {};
  req.sel = contract::Table::kNextHop;
  req.index = 1;
  const rtl::TableRsp rsp = dut_.TableAccess(req);
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
  rtl::TxPacket pkt = {};
  pkt.last = 1;
  dut_.Push(pkt);
  dut_.Push(rtl::Response{});
  for (int i = 0; i < 30; ++i) dut_.Cycle();
  EXPECT_TRUE(dut_.sent().empty());
  EXPECT_EQ(dut_->seq_done_o, 1);
}

}  // namespace
}  // namespace heddle::test
