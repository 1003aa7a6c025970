// SPDX-License-Identifier: Apache-2.0
// Packets for heddle_accept, and what its answers must say.
#pragma once

#include <gtest/gtest.h>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/transport/accept_bench.h"

namespace heddle::test {

using contract::CpType;
using contract::NackCode;
using contract::PdsType;
using contract::ReturnCode;
using contract::SesOpcode;
using contract::Statistic;
using contract::Status;

constexpr uint32_t kStart = 0x12345;
constexpr uint32_t kJob = 0x42;
constexpr uint8_t kSlot = 9;
constexpr uint16_t kTargetRole = 1 << 9;  // In a PDCID.

class AcceptTest : public testing::Test {
 protected:
  AcceptTest() {
    bench_.config.slot = kSlot;
    bench_.config.pdc_seed = 5;
    bench_.SetConfig();
    Context context = {};
    context.pid = 3;
    context.ri = 5;
    context.job = kJob;
    bench_.contexts[2] = context;
  }

  // First and only packet of a message that opens the PDC.
  rtl::RxPacket Syn(uint32_t psn, uint32_t length) {
    rtl::RxPacket pkt = Packet(psn, length);
    pkt.syn = 1;
    pkt.psn_offset = static_cast<uint16_t>(psn - kStart);
    return pkt;
  }
  // First and only packet of a message on the PDC opened last.
  rtl::RxPacket Packet(uint32_t psn, uint32_t length) {
    rtl::RxPacket pkt = {};
    pkt.source_fa_lo = 0x0a000002;
    pkt.source_mac = 0x020000000002;
    pkt.source_port = 0xc123;
    pkt.dscp = 9;
    pkt.pds_type = type_;
    pkt.next_hdr = static_cast<uint8_t>(contract::NextHdr::kRequestStd);
    pkt.offset = static_cast<uint16_t>(kStart - 1 - psn);  // Clears nothing.
    pkt.psn = psn;
    pkt.spdcid = 0x11;
    pkt.dpdcid = tpdcid_;
    pkt.opcode = 5;
    pkt.som = 1;
    pkt.eom = 1;
    pkt.message_id = 1;
    pkt.job_id = kJob;
    pkt.pid_on_fep = 3;
    pkt.resource_index = 5;
    pkt.initiator = 7;
    pkt.request_length = length;
    pkt.payload_bytes = static_cast<uint16_t>(length);
    return pkt;
  }
  // A later packet of a message of `length` bytes.
  rtl::RxPacket Next(uint32_t psn, uint32_t offset, uint16_t bytes, bool eom,
                     uint32_t length) {
    rtl::RxPacket pkt = Packet(psn, length);
    pkt.som = 0;
    pkt.eom = eom;
    pkt.message_offset = offset;
    pkt.payload_bytes = bytes;
    return pkt;
  }
  rtl::RxPacket First(uint32_t psn, uint16_t bytes, uint32_t length) {
    rtl::RxPacket pkt = Packet(psn, length);
    pkt.eom = 0;
    pkt.payload_bytes = bytes;
    return pkt;
  }
  rtl::RxPacket Control(CpType type, uint32_t psn) {
    rtl::RxPacket pkt = Packet(psn, 0);
    pkt.pds_type = PdsType::kCp;
    pkt.next_hdr = static_cast<uint8_t>(type);
    return pkt;
  }
  // Opens the PDC with an 8-byte message; the next PSN is kStart + 1.
  void Open() {
    bench_.AddBuffer(2, 64, 0x1000, 100);
    tpdcid_ = bench_.Answer(Syn(kStart, 8)).spdcid;
    bench_.places.clear();
    bench_.credits_taken.clear();
  }
  int Count(Statistic statistic) {
    return bench_.stats[static_cast<size_t>(statistic)];
  }
  void ExpectNack(const rtl::Response& rsp, NackCode code, uint16_t spdcid,
                  uint32_t psn) {
    EXPECT_EQ(rsp.kind, rtl::ResponseKind::kNack);
    EXPECT_EQ(rsp.code, static_cast<uint8_t>(code));
    EXPECT_EQ(rsp.spdcid, spdcid);
    EXPECT_EQ(rsp.nack_psn, psn);
    EXPECT_EQ(rsp.dpdcid, 0x11);
  }
  void ExpectAck(const rtl::Response& rsp, uint32_t cack, int16_t offset,
                 ReturnCode code) {
    EXPECT_EQ(rsp.kind, rtl::ResponseKind::kAck);
    EXPECT_EQ(rsp.cack, cack);
    EXPECT_EQ(static_cast<int16_t>(rsp.ack_offset), offset);
    EXPECT_EQ(rsp.spdcid, tpdcid_);
    EXPECT_EQ(rsp.dpdcid, 0x11);
    EXPECT_EQ(rsp.return_code, static_cast<uint8_t>(code));
    EXPECT_EQ(rsp.response, code <= ReturnCode::kOk ? 0 : 1);
  }
  // The packet clears all error answers of before.
  static rtl::RxPacket Clearing(rtl::RxPacket pkt) {
    pkt.offset = static_cast<uint16_t>(-1);
    return pkt;
  }
  // Answer to the rest of a message that ended in an error.
  void ExpectRest(const rtl::Response& rsp, uint32_t psn, ReturnCode code) {
    ExpectAck(rsp, psn, 0, code);
    EXPECT_EQ(rsp.req, contract::AckReq::kNone);
  }
  // An error answer about `psn` that waits to be cleared.
  void ExpectError(const rtl::Response& rsp, uint32_t psn, ReturnCode code) {
    ExpectAck(rsp, psn - 1, 1, code);
    EXPECT_EQ(rsp.req, contract::AckReq::kClear);
  }

  AcceptBench bench_;
  uint16_t tpdcid_ = 0;
  PdsType type_ = PdsType::kRodReq;  // Of requests.
};

// Peers' writes into regions.
class AcceptWriteTest : public AcceptTest {
 protected:
  AcceptWriteTest() {
    bench_.region.code = ReturnCode::kOk;
    bench_.region.iova = 0x100000;
    bench_.region.owner = 0x21;
  }
  static rtl::RxPacket AsWrite(rtl::RxPacket pkt) {
    pkt.opcode = 1;
    pkt.match_bits = 0xabcd;
    pkt.buffer_offset = 0x40;
    return pkt;
  }
  void SetCode(ReturnCode code) { bench_.region.code = code; }
};

}  // namespace heddle::test
