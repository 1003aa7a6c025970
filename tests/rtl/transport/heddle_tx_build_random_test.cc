// SPDX-License-Identifier: Apache-2.0
// Random packets against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <vector>

#include "tests/rtl/transport/tx_build_bench.h"

namespace heddle::test {
namespace {

// Random messages, PDCs, stalls and responses against the reference encoder.
TEST(TxBuildRandomTest, EveryPacketLeavesInOrderAsTheReferenceEncodesIt) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    std::printf("seed %lu\n", static_cast<unsigned long>(seed));
    SCOPED_TRACE(seed);
    sim::base::Random random(seed);
    TxBuild dut;
    dut.random = &random;
    dut.stall = 0.1 * static_cast<double>(random.Below(6));
    dut.packet_chance = 0.3 + 0.1 * static_cast<double>(random.Below(8));
    dut.latency = static_cast<int>(1 + random.Below(150));
    const uint16_t mtu = static_cast<uint16_t>(1024u << random.Below(4));
    contract::PortCfg& config = dut.config();
    config.payload_mtu = mtu;
    config.crc = static_cast<contract::CrcOrder>(random.Below(3));
    config.ipv6 = seed >> 1 & 1;
    config.ip_protocol = seed % 3 == 0 ? contract::kNativeIpProtocol : 0;
    config.vlan = random.Chance(0.5) ? random.Below(4096) & 0xfff : 0;
    config.local_fa_hi = random.Next();
    config.local_fa_lo = random.Next();
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
      to.source = config.local_fa_lo;
      to.destination = fa_lo;
      to.ipv6 = config.ipv6 != 0;
      to.source_hi = config.local_fa_hi;
      to.destination_hi = fa_hi;
      to.crc = config.crc;
      to.ip_protocol = config.ip_protocol;
      return to;
    };
    std::vector<rtl::PdcPeer> peers;
    for (uint8_t i = 0; i < 8; ++i) {
      rtl::PdcPeer peer = SomePeer();
      peer.ipv6 = config.ipv6;
      peer.fa_hi = random.Next();
      peer.fa_lo = random.Next();
      peer.hop = static_cast<uint8_t>(random.Below(256));
      peer.dscp = static_cast<uint8_t>(random.Below(64));
      peer.spdcid = static_cast<uint16_t>(random.Next());
      peer.start_psn = static_cast<uint32_t>(random.Next());
      peer.entropy = static_cast<uint16_t>(random.Next());
      peer.pid_on_fep = static_cast<uint16_t>(random.Below(4096));
      peer.rel = static_cast<uint8_t>(random.Below(2));
      dut.WritePdc(i, peer);
      peers.push_back(peer);
    }
    std::vector<rtl::MsgPacket> messages;
    for (uint16_t i = 0; i < 32; ++i) {
      rtl::MsgPacket msg = {};
      msg.opcode = random.Chance(0.5) ? kSend : kWrite;
      msg.flags = random.Chance(0.5) ? kFlagHeaderData : 0;
      if (random.Chance(0.5)) msg.flags |= kFlagDeliveryComplete;
      msg.job_id = random.Below(1 << 24);
      msg.source_pid = static_cast<uint16_t>(random.Below(4096));
      msg.source_ri = static_cast<uint16_t>(random.Below(4096));
      msg.resource_index = static_cast<uint16_t>(random.Below(4096));
      msg.header_data = random.Next();
      msg.match_bits = random.Next();
      msg.remote_offset = random.Next();
      msg.iova = random.Next() >> 8;
      msg.length = random.Below(40000);
      if (random.Chance(0.5)) {
        msg.flags |= kFlagInline;
        msg.length = random.Below(17);
        msg.inline_data_hi = random.Next();
        msg.inline_data_lo = random.Next();
      }
      dut.WriteMessage(static_cast<uint16_t>(i * 31), msg);
      messages.push_back(msg);
    }

    std::deque<Bytes> requests, responses;
    for (int i = 0; i < 300; ++i) {
      const uint32_t m = random.Below(32);
      const rtl::MsgPacket& msg = messages[m];
      rtl::TxPacket pkt = {};
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
          payload.push_back(
              (msg.flags & kFlagInline) == 0
                  ? MemoryByte(msg.iova + offset + b)
                  : static_cast<uint8_t>(
                        (b < 8 ? msg.inline_data_lo : msg.inline_data_hi) >>
                        (8 * (b % 8))));
        }
      }
      const rtl::PdcPeer& peer = peers[pkt.pdc];
      Route to = route(peer.fa_hi, peer.fa_lo);
      to.destination_mac = macs[peer.hop];
      to.dscp = peer.dscp;
      to.entropy = peer.entropy;
      to.vlan = vlans[peer.hop];
      if (pkt.control) {
        pkt.syn = 0;
        pkt.cp_type = static_cast<contract::CpType>(random.Below(10));
        requests.push_back(ControlFrame(pkt, peer, to));
      } else {
        requests.push_back(
            RequestFrame(pkt, msg, peer, to, mtu, pkt.failed, payload));
      }
      dut.Push(pkt);
    }
    for (int i = 0; i < 60; ++i) {
      rtl::Response rsp = {};
      rsp.kind = static_cast<rtl::ResponseKind>(random.Below(3));
      rsp.ipv6 = config.ipv6;
      rsp.fa_hi = random.Next();
      rsp.fa_lo = random.Next();
      rsp.mac = random.Next() >> 16;
      rsp.entropy = static_cast<uint16_t>(random.Next());
      rsp.dscp = static_cast<uint8_t>(random.Below(64));
      rsp.m = random.Chance(0.5);
      rsp.retx = random.Chance(0.5);
      rsp.req = static_cast<contract::AckReq>(random.Below(3));
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
      const size_t pds = HeaderBytes(
          {.ipv6 = config.ipv6 != 0,
           .vlan = static_cast<uint16_t>(frame.bytes[12] == 0x81 ? 1 : 0),
           .ip_protocol = config.ip_protocol});
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
