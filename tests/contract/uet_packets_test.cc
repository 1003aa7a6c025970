// SPDX-License-Identifier: Apache-2.0
// The worked packets of our notes on the UET specification, byte for byte.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"

namespace heddle::contract::wire {
namespace {

std::vector<uint8_t> Bytes(std::string_view hex) {
  std::vector<uint8_t> bytes;
  int digits = 0;
  for (const char c : hex) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    const int digit = std::isdigit(static_cast<unsigned char>(c)) != 0
                          ? c - '0'
                          : c - 'a' + 10;
    if (digits++ % 2 == 0) bytes.push_back(0);
    bytes.back() = static_cast<uint8_t>(bytes.back() << 4 | digit);
  }
  return bytes;
}

// `header` is exactly `hex`, in both directions.
template <typename Header>
void ExpectOnWire(const Header& header, std::string_view hex) {
  const std::vector<uint8_t> expected = Bytes(hex);
  ASSERT_EQ(expected.size(), Header::kBytes);
  std::vector<uint8_t> encoded(Header::kBytes, 0xa5);
  header.Encode(encoded.data());
  EXPECT_EQ(encoded, expected);
  EXPECT_EQ(Header::Decode(expected.data()), header);
}

constexpr uint32_t kJob = 0x42;
constexpr uint16_t kPid = 3;
constexpr uint32_t kInitiator = 7;

SesStd StdRequest(SesOpcode opcode, uint16_t message_id, uint32_t length) {
  SesStd ses;
  ses.opcode = opcode;
  ses.rel = 1;
  ses.som = 1;
  ses.eom = 1;
  ses.message_id = message_id;
  ses.job_id = kJob;
  ses.pid_on_fep = kPid;
  ses.initiator = kInitiator;
  ses.request_length = length;
  return ses;
}

PdsRequest RudRequest(uint32_t psn, NextHdr next) {
  PdsRequest pds;
  pds.type = PdsType::kRudReq;
  pds.next_hdr = next;
  pds.ar = 1;
  pds.clear_psn_offset = -1;
  pds.psn = psn;
  pds.spdcid = 0x31;
  pds.dpdcid = 0x41;
  return pds;
}

PdsAck Ack(NextHdr next, uint32_t cack, uint16_t spdcid, uint16_t dpdcid) {
  PdsAck pds;
  pds.type = PdsType::kAck;
  pds.next_hdr = next;
  pds.cack_psn = cack;
  pds.spdcid = spdcid;
  pds.dpdcid = dpdcid;
  return pds;
}

SesResponse Response(contract::SesResponse opcode, ReturnCode code,
                     uint16_t message_id, uint32_t job, uint32_t length) {
  SesResponse ses;
  ses.opcode = opcode;
  ses.return_code = code;
  ses.message_id = message_id;
  ses.job_id = job;
  ses.modified_length = length;
  return ses;
}

TEST(UetPacket, X1SynRodRequestWithSend) {
  PdsRequest pds;
  pds.type = PdsType::kRodReq;
  pds.next_hdr = NextHdr::kRequestStd;
  pds.ar = 1;
  pds.syn = 1;
  pds.clear_psn_offset = -1;
  pds.psn = 0x12345;
  pds.spdcid = 0x11;
  ExpectOnWire(pds, "198c ffff 0001 2345 0011 0000");
  SesStd ses = StdRequest(SesOpcode::kSend, 1, 8);
  ses.resource_index = 5;
  ExpectOnWire(ses,
               "050b 0001 0000 0042 0003 0005 0000 0000 0000 0000 0000 0007 "
               "0000 0000 0000 0000 0000 0000 0000 0000 0000 0008");
}

TEST(UetPacket, X2AckWithDefaultResponse) {
  ExpectOnWire(Ack(NextHdr::kResponse, 0x12345, 0x22, 0x11),
               "3a00 0000 0001 2345 0022 0011");
  ExpectOnWire(Response(contract::SesResponse::kDefaultResponse,
                        ReturnCode::kNull, 1, 0, 0),
               "0000 0001 0000 0000 0000 0000");
}

TEST(UetPacket, X3AckWithResponseOk) {
  ExpectOnWire(
      Response(contract::SesResponse::kResponse, ReturnCode::kOk, 1, kJob, 8),
      "0101 0001 0000 0042 0000 0008");
}

TEST(UetPacket, X4RudRequestWithWriteAndDeliveryComplete) {
  ExpectOnWire(RudRequest(0x54322, NextHdr::kRequestStd),
               "1188 ffff 0005 4322 0031 0041");
  SesStd ses = StdRequest(SesOpcode::kWrite, 2, 16);
  ses.initiator = 0;
  ses.dc = 1;
  ses.buffer_offset = 0x100;
  ses.match_bits = 0x1234;
  ExpectOnWire(ses,
               "012b 0002 0000 0042 0003 0000 0000 0000 0000 0100 0000 0000 "
               "0000 0000 0000 1234 0000 0000 0000 0000 0000 0010");
}

TEST(UetPacket, X5RudRequestWithRead) {
  SesStd ses = StdRequest(SesOpcode::kRead, 3, 64);
  ses.initiator = 0;
  ses.buffer_offset = 0x200;
  ses.match_bits = 0x1234;
  ExpectOnWire(ses,
               "020b 0003 0000 0042 0003 0000 0000 0000 0000 0200 0000 0000 "
               "0000 0000 0000 1234 0000 0000 0000 0000 0000 0040");
}

TEST(UetPacket, X6AckOfTheRead) {
  ExpectOnWire(Ack(NextHdr::kResponse, 0x54323, 0x41, 0x31),
               "3a00 0000 0005 4323 0041 0031");
  ExpectOnWire(
      Response(contract::SesResponse::kResponse, ReturnCode::kOk, 3, kJob, 64),
      "0101 0003 0000 0042 0000 0040");
}

TEST(UetPacket, X7ReturnDirectionResponseWithData) {
  PdsRequest pds = RudRequest(0x54321, NextHdr::kResponseData);
  pds.spdcid = 0x41;
  pds.dpdcid = 0x31;
  ExpectOnWire(pds, "1288 ffff 0005 4321 0041 0031");
  SesResponseData ses;
  ses.opcode = contract::SesResponse::kResponseWData;
  ses.return_code = ReturnCode::kOk;
  ses.job_id = kJob;
  ses.read_request_message_id = 3;
  ses.payload_length = 64;
  ses.modified_length = 64;
  ExpectOnWire(ses, "0201 0000 0000 0042 0003 0040 0000 0040 0000 0000");
}

TEST(UetPacket, X8RudRequestWithFetchingAtomic) {
  SesStd ses = StdRequest(SesOpcode::kFetchingAtomic, 4, 8);
  ses.initiator = 0;
  ses.buffer_offset = 0x300;
  ses.match_bits = 0x1234;
  ExpectOnWire(ses,
               "040b 0004 0000 0042 0003 0000 0000 0000 0000 0300 0000 0000 "
               "0000 0000 0000 1234 0000 0000 0000 0000 0000 0008");
}

TEST(UetPacket, X9AckWithDataAsksForAClear) {
  PdsAck pds = Ack(NextHdr::kResponseData, 0x54323, 0x41, 0x31);
  pds.req = AckReq::kClear;
  pds.ack_psn_offset = 1;
  ExpectOnWire(pds, "3a82 0001 0005 4323 0041 0031");
}

TEST(UetPacket, X10ClearCommand) {
  PdsCp pds;
  pds.type = PdsType::kCp;
  pds.cp_type = CpType::kClearCommand;
  pds.spdcid = 0x31;
  pds.dpdcid = 0x41;
  pds.payload = 0x54324;
  ExpectOnWire(pds, "5900 0000 0000 0000 0031 0041 0005 4324");
}

TEST(UetPacket, X11CloseCommand) {
  PdsCp pds;
  pds.type = PdsType::kCp;
  pds.cp_type = CpType::kCloseCommand;
  pds.ar = 1;
  pds.psn = 0x54325;
  pds.spdcid = 0x31;
  pds.dpdcid = 0x41;
  ExpectOnWire(pds, "5a08 0000 0005 4325 0031 0041 0000 0000");
}

TEST(UetPacket, X12AckOfTheClose) {
  ExpectOnWire(Ack(NextHdr::kNone, 0x54325, 0x41, 0x31),
               "3800 0000 0005 4325 0041 0031");
}

TEST(UetPacket, X13NackNoPacketBuffer) {
  PdsNack pds;
  pds.type = PdsType::kNack;
  pds.nack_code = NackCode::kNoPktBuffer;
  pds.nack_psn = 0x54325;
  pds.spdcid = 0x41;
  pds.dpdcid = 0x31;
  ExpectOnWire(pds, "5000 0700 0005 4325 0041 0031 0000 0000");
}

TEST(UetPacket, X14AckWithNsccState) {
  PdsAck pds = Ack(NextHdr::kResponse, 0x54330, 0x41, 0x31);
  pds.type = PdsType::kAckCc;
  pds.ack_psn_offset = 3;
  ExpectOnWire(pds, "4200 0003 0005 4330 0041 0031");
  PdsAckCc cc;
  cc.mpr = 8;
  cc.sack_psn_offset = 1;
  cc.sack_bitmap = 6;
  cc.service_time = 10;
  cc.rcvd_bytes = 4;
  cc.nscc_ooo_count = 2;
  ExpectOnWire(cc, "0008 0001 0000 0000 0000 0006 000a 0000 0004 0002");
}

TEST(UetPacket, X15RudRequestWithSmallWrite) {
  ExpectOnWire(RudRequest(0x54340, NextHdr::kRequestSmall),
               "1088 ffff 0005 4340 0031 0041");
  SesSmall ses;
  ses.opcode = SesOpcode::kWrite;
  ses.rel = 1;
  ses.eom = 1;
  ses.som = 1;
  ses.request_length = 4;
  ses.job_id = kJob;
  ses.pid_on_fep = kPid;
  ses.resource_index = 7;
  ses.buffer_offset = 0x10;
  ExpectOnWire(ses, "010b 0004 0000 0042 0003 0007 0000 0000 0000 0010");
}

TEST(UetPacket, X16RudRequestWithMediumTaggedSend) {
  ExpectOnWire(RudRequest(0x54341, NextHdr::kRequestMedium),
               "1108 ffff 0005 4341 0031 0041");
  SesMedium ses;
  ses.opcode = SesOpcode::kTaggedSend;
  ses.rel = 1;
  ses.hd = 1;
  ses.eom = 1;
  ses.som = 1;
  ses.request_length = 8;
  ses.job_id = kJob;
  ses.pid_on_fep = kPid;
  ses.resource_index = 5;
  ses.header_data = 0x1122334455667788;
  ses.initiator = kInitiator;
  ses.match_bits = 0xcafe;
  ExpectOnWire(ses,
               "090f 0008 0000 0042 0003 0005 1122 3344 5566 7788 0000 0007 "
               "0000 0000 0000 cafe");
}

// The other side of each union, which the worked packets do not show.

TEST(UetPacket, LaterSynPacketCarriesItsOffsetFromTheFirst) {
  PdsRequest pds = RudRequest(0x12347, NextHdr::kRequestStd);
  pds.type = PdsType::kRodReq;
  pds.syn = 1;
  pds.retx = 1;
  pds.dpdcid = 0;
  pds.psn_offset = 2;
  ExpectOnWire(pds, "199c ffff 0001 2347 0031 0002");
}

TEST(UetPacket, MiddlePacketOfAMessageCarriesLengthAndOffset) {
  SesStd ses = StdRequest(SesOpcode::kSend, 1, 0x2800);
  ses.rel = 0;
  ses.som = 0;
  ses.eom = 0;
  ses.resource_index = 1;
  ses.payload_length = 0x1000;
  ses.message_offset = 0x1000;
  ExpectOnWire(ses,
               "0500 0001 0000 0042 0003 0001 0000 0000 0000 0000 0000 0007 "
               "0000 0000 0000 0000 0000 1000 0000 1000 0000 2800");
}

TEST(UetPacket, AckOfAProbeEchoesItsOpaque) {
  PdsAck pds = Ack(NextHdr::kNone, 0x10, 1, 2);
  pds.m = 1;
  pds.p = 1;
  pds.probe_opaque = 0xbeef;
  ExpectOnWire(pds, "3828 beef 0000 0010 0001 0002");
}

TEST(UetPacket, AckOffsetIsNegativeForAnEarlierPacket) {
  PdsAck pds = Ack(NextHdr::kNone, 0x10, 1, 2);
  pds.ack_psn_offset = -2;
  ExpectOnWire(pds, "3800 fffe 0000 0010 0001 0002");
}

TEST(UetPacket, MediumRequestWithoutDataCarriesAnOffset) {
  SesMedium ses;
  ses.opcode = SesOpcode::kTaggedSend;
  ses.eom = 1;
  ses.som = 1;
  ses.buffer_offset = 0x0102030405060708;
  ExpectOnWire(ses,
               "0903 0000 0000 0000 0000 0000 0102 0304 0506 0708 0000 0000 "
               "0000 0000 0000 0000");
}

TEST(UetPacket, ProbeHasItsOpaqueWhereOthersHaveZero) {
  PdsCp pds;
  pds.type = PdsType::kCp;
  pds.cp_type = CpType::kProbe;
  pds.isrod = 1;
  pds.probe_opaque = 0x1234;
  ExpectOnWire(pds, "5b20 1234 0000 0000 0000 0000 0000 0000");
}

// UET 4.6: 8-bit generation, then two numbers of 12 bits.
TEST(UetPacket, RendezvousExtension) {
  ExpectOnWire(SesRendezvous{.eager_length = 4096,
                             .read_ri_generation = 1,
                             .read_pid_on_fep = 0x234,
                             .read_resource_index = 0x567,
                             .read_offset = 0x8000,
                             .read_memory_key = 0x1234},
               "00001000 01234567 00000000 00008000 00000000 00001234");
}

}  // namespace
}  // namespace heddle::contract::wire
