// SPDX-License-Identifier: Apache-2.0
// Writes a capture of every kind of frame: uet_frames SEED PCAP MANIFEST.
//
// The manifest has a JSON object per frame: its name, the bytes of each UET
// header in order, and its payload. First come the worked packets of our notes
// on the UET specification, then each header with random fields.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/frame/capture.h"

namespace heddle::contract::wire {
namespace {

using Bytes = std::vector<uint8_t>;
using contract::AmoOpcode;
using contract::SesOpcode;

struct Part {
  std::string header;
  Bytes bytes;
  size_t shared = 0;  // First of them, which the header before has too.
};

struct Packet {
  std::string name;
  std::vector<Part> parts;
  Bytes payload;
};

Bytes FromHex(std::string_view hex) {
  Bytes bytes;
  int digits = 0;
  for (const char c : hex) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) {
      continue;
    }
    const int digit = std::isdigit(static_cast<unsigned char>(c)) != 0
                          ? c - '0'
                          : c - 'a' + 10;
    if (digits++ % 2 == 0) {
      bytes.push_back(0);
    }
    bytes.back() = static_cast<uint8_t>(bytes.back() << 4 | digit);
  }
  return bytes;
}

std::string ToHex(const Bytes& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

// ---------------------------------------------------------- the worked packets

constexpr std::string_view kStdTail =
    "0000 0000 0000 0007 0000 0000 0000 0000 0000 0000 0000 0000 ";

Bytes SixtyFourBytes() {
  Bytes bytes;
  for (uint8_t i = 0; i < 64; ++i) {
    bytes.push_back(i);
  }
  return bytes;
}

std::vector<Packet> WorkedPackets() {
  const Part ack = {"pds_ack", FromHex("3a00 0000 0001 2345 0022 0011")};
  return {
      {"X1",
       {{"pds_request", FromHex("198c ffff 0001 2345 0011 0000")},
        {"ses_std", FromHex("050b 0001 0000 0042 0003 0005 0000 0000 " +
                            std::string(kStdTail) + "0000 0008")}},
       FromHex("5545 5448 454c 4c4f")},
      {"X2",
       {ack, {"ses_response", FromHex("0000 0001 0000 0000 0000 0000")}},
       {}},
      {"X3",
       {ack, {"ses_response", FromHex("0101 0001 0000 0042 0000 0008")}},
       {}},
      {"X4",
       {{"pds_request", FromHex("1188 ffff 0005 4322 0031 0041")},
        {"ses_std",
         FromHex("012b 0002 0000 0042 0003 0000 0000 0000 0000 0100 0000 0000 "
                 "0000 0000 0000 1234 0000 0000 0000 0000 0000 0010")}},
       FromHex("0001 0203 0405 0607 0809 0a0b 0c0d 0e0f")},
      {"X5",
       {{"pds_request", FromHex("1188 ffff 0005 4323 0031 0041")},
        {"ses_std",
         FromHex("020b 0003 0000 0042 0003 0000 0000 0000 0000 0200 0000 0000 "
                 "0000 0000 0000 1234 0000 0000 0000 0000 0000 0040")}},
       {}},
      {"X6",
       {{"pds_ack", FromHex("3a00 0000 0005 4323 0041 0031")},
        {"ses_response", FromHex("0101 0003 0000 0042 0000 0040")}},
       {}},
      {"X7",
       {{"pds_request", FromHex("1288 ffff 0005 4321 0041 0031")},
        {"ses_response_data",
         FromHex("0201 0000 0000 0042 0003 0040 0000 0040 0000 0000")}},
       SixtyFourBytes()},
      {"X8",
       {{"pds_request", FromHex("1188 ffff 0005 4324 0031 0041")},
        {"ses_std",
         FromHex("040b 0004 0000 0042 0003 0000 0000 0000 0000 0300 0000 0000 "
                 "0000 0000 0000 1234 0000 0000 0000 0000 0000 0008")},
        {"ses_atomic", FromHex("0207 0000")}},
       FromHex("0000 0000 0000 0001")},
      {"X9",
       {{"pds_ack", FromHex("3a82 0001 0005 4323 0041 0031")},
        {"ses_response_data",
         FromHex("0201 0000 0000 0042 0004 0008 0000 0008 0000 0000")}},
       FromHex("0000 0000 0000 0029")},
      {"X10",
       {{"pds_cp", FromHex("5900 0000 0000 0000 0031 0041 0005 4324")}},
       {}},
      {"X11",
       {{"pds_cp", FromHex("5a08 0000 0005 4325 0031 0041 0000 0000")}},
       {}},
      {"X12", {{"pds_ack", FromHex("3800 0000 0005 4325 0041 0031")}}, {}},
      {"X13",
       {{"pds_nack", FromHex("5000 0700 0005 4325 0041 0031 0000 0000")}},
       {}},
      {"X14",
       {{"pds_ack", FromHex("4200 0003 0005 4330 0041 0031")},
        {"pds_ack_cc",
         FromHex("0008 0001 0000 0000 0000 0006 000a 0000 0004 0002")},
        {"ses_response", FromHex("0000 0000 0000 0000 0000 0000")}},
       {}},
      {"X15",
       {{"pds_request", FromHex("1088 ffff 0005 4340 0031 0041")},
        {"ses_small",
         FromHex("010b 0004 0000 0042 0003 0007 0000 0000 0000 0010")}},
       FromHex("dead beef")},
      {"X16",
       {{"pds_request", FromHex("1108 ffff 0005 4341 0031 0041")},
        {"ses_medium",
         FromHex("090f 0008 0000 0042 0003 0005 1122 3344 5566 7788 0000 0007 "
                 "0000 0000 0000 cafe")}},
       FromHex("5441 4747 4544 2121")},
  };
}

// ------------------------------------------------------------ random packets

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  std::vector<Packet> AllKinds() {
    for (const PdsType type : {PdsType::kRudReq, PdsType::kRodReq}) {
      Requests(type);
    }
    for (const PdsType type : {PdsType::kRudCcReq, PdsType::kRodCcReq}) {
      Begin("request with congestion state");
      AddRequest(type, NextHdr::kRequestStd, 0);
      Add("pds_cc_state", RandomHeader<PdsCcState>());
      AddSes(NextHdr::kRequestStd, 1);
    }
    Extensions();
    Acks();
    Begin("nack");
    PdsNack nack = RandomHeader<PdsNack>();
    nack.type = PdsType::kNack;
    nack.next_hdr = NextHdr::kNone;
    nack.rsvd0 = nack.rsvd1 = 0;
    Add("pds_nack", nack);
    ControlPackets();
    for (const NextHdr next : {NextHdr::kRequestStd, NextHdr::kRequestSmall,
                               NextHdr::kRequestMedium}) {
      Begin("datagram");
      Add("pds_uud", PdsUud{.type = PdsType::kUudReq, .next_hdr = next});
      AddSes(next, 1);
    }
    return std::move(packets_);
  }

 private:
  void Requests(PdsType type) {
    for (const uint8_t syn : {uint8_t{0}, uint8_t{1}}) {
      for (const NextHdr next :
           {NextHdr::kNone, NextHdr::kRequestSmall, NextHdr::kRequestMedium,
            NextHdr::kRequestStd, NextHdr::kResponseData,
            NextHdr::kResponseDataSmall}) {
        for (const uint8_t choice : {uint8_t{0}, uint8_t{1}}) {
          Begin("request");
          AddRequest(type, next, syn);
          AddSes(next, choice);
        }
      }
    }
  }

  // Each opcode that adds to a request, and each operation of the atomics.
  void Extensions() {
    for (const NextHdr next : {NextHdr::kRequestSmall, NextHdr::kRequestMedium,
                               NextHdr::kRequestStd}) {
      for (const SesOpcode opcode :
           {SesOpcode::kAtomic, SesOpcode::kFetchingAtomic,
            SesOpcode::kTsendAtomic, SesOpcode::kTsendFetchAtomic,
            SesOpcode::kDeferrableSend, SesOpcode::kDeferrableTsend,
            SesOpcode::kDeferrableRtr, SesOpcode::kRendezvousSend,
            SesOpcode::kRendezvousTsend}) {
        for (const uint8_t choice : {uint8_t{0}, uint8_t{1}}) {
          Begin("extension");
          AddRequest(PdsType::kRudReq, next, 0);
          AddSes(next, choice, opcode);
        }
      }
    }
    for (uint8_t operation = 0; operation < 24; ++operation) {
      Begin("atomic");
      AddRequest(PdsType::kRudReq, NextHdr::kRequestStd, 0);
      AddSes(NextHdr::kRequestStd, 0, SesOpcode::kAtomic,
             static_cast<contract::AmoOpcode>(operation));
    }
  }

  void Acks() {
    for (const NextHdr next :
         {NextHdr::kNone, NextHdr::kResponse, NextHdr::kResponseData,
          NextHdr::kResponseDataSmall}) {
      for (const uint8_t choice : {uint8_t{0}, uint8_t{1}}) {
        Begin("ack");
        AddAck(PdsType::kAck, next, choice);
        AddSes(next, choice);
        Begin("ack_cc");
        AddAck(PdsType::kAckCc, next, 0);
        Bytes random = RandomBytes(PdsAckCc::kBytes);
        random[0] = static_cast<uint8_t>(choice << 4);
        PdsAckCc state = PdsAckCc::Decode(random.data());
        state.credit_rsvd = 0;
        Add("pds_ack_cc", state);
        AddSes(next, choice);
      }
    }
  }

  void ControlPackets() {
    for (uint8_t kind = 0; kind < 16; ++kind) {
      for (const uint8_t syn : {uint8_t{0}, uint8_t{1}}) {
        Begin("cp");
        PdsCp cp = RandomUnion<PdsCp>(syn, &PdsCp::syn, 13);
        cp.type = PdsType::kCp;
        cp.cp_type = static_cast<CpType>(kind);
        cp.rsvd0 = cp.rsvd1 = 0;
        if (cp.cp_type == CpType::kNegotiation) {
          cp.payload &= 0xffff0000;  // Reserved bits.
        }
        Add("pds_cp", cp);
        if (cp.cp_type == CpType::kNegotiation) {
          AddInPlace("pds_negotiation", PdsNegotiation::kBytes,
                     PdsCp::kBytes - 4);
        }
      }
    }
  }

  void Begin(const std::string& name) {
    packets_.push_back({.name = name + " " + std::to_string(packets_.size()),
                        .parts = {},
                        .payload = {}});
  }

  template <typename Header>
  void Add(const std::string& name, const Header& header) {
    Bytes bytes(Header::kBytes);
    header.Encode(bytes.data());
    packets_.back().parts.push_back({name, bytes});
  }

  // A header that starts at byte `at` of the last one, and ends in it or in
  // random bytes behind it.
  void AddInPlace(const std::string& name, size_t bytes, size_t at) {
    const Bytes& last = packets_.back().parts.back().bytes;
    Part part = {
        .header = name,
        .bytes = Bytes(last.begin() + static_cast<ptrdiff_t>(at), last.end())};
    part.bytes.resize(std::min(part.bytes.size(), bytes));
    part.shared = part.bytes.size();
    const Bytes more = RandomBytes(bytes - part.shared);
    part.bytes.insert(part.bytes.end(), more.begin(), more.end());
    packets_.back().parts.push_back(part);
  }

  static bool IsAtomic(SesOpcode opcode) {
    return opcode == SesOpcode::kAtomic ||
           opcode == SesOpcode::kFetchingAtomic ||
           opcode == SesOpcode::kTsendAtomic ||
           opcode == SesOpcode::kTsendFetchAtomic;
  }
  static bool IsCswap(AmoOpcode operation) {
    return operation >= AmoOpcode::kCswap && operation <= AmoOpcode::kCswapGt;
  }

  void AddAtomic(AmoOpcode operation) {
    auto atomic = RandomHeader<SesAtomic>();
    atomic.amo_opcode = operation;
    atomic.rsvd0 = 0;
    Add("ses_atomic", atomic);
    if (IsCswap(operation)) {
      Add("ses_cswap", RandomHeader<SesCswap>());
    }
  }

  void AddTokens(SesOpcode opcode) {
    if (opcode == SesOpcode::kDeferrableSend ||
        opcode == SesOpcode::kDeferrableTsend) {
      AddInPlace("ses_tokens", SesTokens::kBytes, 12);  // buffer_offset
    } else if (opcode == SesOpcode::kDeferrableRtr) {
      AddInPlace("ses_tokens", SesTokens::kBytes, 24);  // match_bits
    }
  }

  Bytes RandomBytes(size_t count) {
    Bytes bytes(count);
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(random_());
    }
    return bytes;
  }

  template <typename Header>
  Header RandomHeader() {
    return Header::Decode(RandomBytes(Header::kBytes).data());
  }

  // With random fields in the case that `selector`, at bit `bit` of the header,
  // chooses by `value`.
  template <typename Header>
  Header RandomUnion(uint8_t value, uint8_t Header::*selector, size_t bit) {
    Bytes bytes = RandomBytes(Header::kBytes);
    const auto mask = static_cast<uint8_t>(0x80u >> (bit % 8));
    bytes[bit / 8] = static_cast<uint8_t>(value != 0 ? bytes[bit / 8] | mask
                                                     : bytes[bit / 8] & ~mask);
    const Header header = Header::Decode(bytes.data());
    if (header.*selector != value) {
      throw std::logic_error("selector is not at its bit");
    }
    return header;
  }

  void AddRequest(PdsType type, NextHdr next, uint8_t syn) {
    auto request = RandomUnion<PdsRequest>(syn, &PdsRequest::syn, 13);
    request.type = type;
    request.next_hdr = next;
    request.rsvd0 = request.rsvd1 = 0;
    Add("pds_request", request);
  }

  void AddAck(PdsType type, NextHdr next, uint8_t p) {
    auto ack = RandomUnion<PdsAck>(p, &PdsAck::p, 12);
    ack.type = type;
    ack.next_hdr = next;
    ack.rsvd0 = ack.rsvd1 = 0;
    Add("pds_ack", ack);
  }

  // The SES header that `next` names, and a payload of random length; `choice`
  // is the selector of its union, if it has one. Without `opcode` a random one.
  void AddSes(NextHdr next, uint8_t choice,
              std::optional<SesOpcode> opcode = {},
              std::optional<AmoOpcode> operation = {}) {
    if (!opcode) {
      opcode = static_cast<SesOpcode>(random_() % 64);
    }
    if (!operation) {
      operation = static_cast<AmoOpcode>(random_() % 32);
    }
    const bool atomic = IsAtomic(*opcode);
    // They count as payload.
    const size_t operands =
        atomic && IsCswap(*operation) ? SesCswap::kBytes : 0;
    Bytes payload = RandomBytes(std::uniform_int_distribution<size_t>(
        0, next == NextHdr::kNone ? 0 : 1400)(random_));
    const auto length = static_cast<uint16_t>(payload.size());
    switch (next) {
      case NextHdr::kRequestSmall: {
        auto ses = RandomHeader<SesSmall>();
        ses.opcode = *opcode;
        ses.rsvd0 = ses.rsvd1 = ses.rsvd2 = ses.rsvd3 = ses.rsvd4 = 0;
        Add("ses_small", ses);
        break;
      }
      case NextHdr::kRequestMedium: {
        auto ses = RandomUnion<SesMedium>(choice, &SesMedium::hd, 13);
        ses.opcode = *opcode;
        ses.rsvd0 = ses.rsvd1 = ses.rsvd2 = ses.rsvd3 = 0;
        Add("ses_medium", ses);
        break;
      }
      case NextHdr::kRequestStd: {
        auto ses = RandomUnion<SesStd>(choice, &SesStd::som, 15);
        ses.opcode = *opcode;
        ses.rsvd0 = ses.rsvd1 = ses.rsvd2 = 0;
        ses.rsvd3 = 0;
        ses.payload_length = static_cast<uint16_t>(length + operands);
        if (ses.opcode == SesOpcode::kRead) {  // Asks for them.
          payload.clear();
        }
        Add("ses_std", ses);
        AddTokens(*opcode);
        if (*opcode == SesOpcode::kRendezvousSend ||
            *opcode == SesOpcode::kRendezvousTsend) {
          Add("ses_rendezvous", RandomHeader<SesRendezvous>());
        }
        break;
      }
      case NextHdr::kResponse: {
        Add("ses_response", RandomHeader<SesResponse>());
        payload.clear();
        break;
      }
      case NextHdr::kResponseData: {
        auto ses = RandomHeader<SesResponseData>();
        ses.rsvd0 = ses.rsvd1 = 0;
        ses.payload_length = length;
        Add("ses_response_data", ses);
        break;
      }
      case NextHdr::kResponseDataSmall: {
        auto ses = RandomHeader<SesResponseDataSmall>();
        ses.rsvd0 = ses.rsvd1 = 0;
        ses.payload_length = length;
        Add("ses_response_data_small", ses);
        break;
      }
      case NextHdr::kNone:
        break;
    }
    if (atomic &&
        (next == NextHdr::kRequestSmall || next == NextHdr::kRequestMedium ||
         next == NextHdr::kRequestStd)) {
      AddAtomic(*operation);
    }
    packets_.back().payload = std::move(payload);
  }

  std::mt19937 random_;
  std::vector<Packet> packets_;
};

// ------------------------------------------------------------------ to a frame

void Append(Bytes* to, const Bytes& bytes) {
  to->insert(to->end(), bytes.begin(), bytes.end());
}

template <typename Header>
void AppendHeader(Bytes* to, const Header& header) {
  Bytes bytes(Header::kBytes);
  header.Encode(bytes.data());
  Append(to, bytes);
}

uint16_t InternetChecksum(const Bytes& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    sum += i % 2 == 0 ? bytes[i] << 8 : bytes[i];
  }
  while (sum > 0xffff) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>(~sum);
}

uint32_t Crc32c(const Bytes& bytes) {
  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
  }
  return ~crc;
}

constexpr uint8_t kUdpProtocol = 17;

// The IP header for `udp_bytes` behind it, and its two addresses.
std::pair<Bytes, Bytes> IpHeader(bool ipv6, size_t udp_bytes) {
  Bytes header;
  if (ipv6) {
    AppendHeader(&header,
                 Ipv6{.version = 6,
                      .payload_length = static_cast<uint16_t>(udp_bytes),
                      .next_header = kUdpProtocol,
                      .hop_limit = 64,
                      .source_hi = 0xfd00000000000000,
                      .source_lo = 1,
                      .destination_hi = 0xfd00000000000000,
                      .destination_lo = 2});
    return {header, Bytes(header.begin() + 8, header.end())};
  }
  Ipv4 ip{.version = 4,
          .ihl = 5,
          .total_length = static_cast<uint16_t>(Ipv4::kBytes + udp_bytes),
          .flags = 2,
          .ttl = 64,
          .protocol = kUdpProtocol,
          .source = 0x0a000001,
          .destination = 0x0a000002};
  AppendHeader(&header, ip);
  ip.checksum = InternetChecksum(header);
  header.clear();
  AppendHeader(&header, ip);
  return {header, Bytes(header.begin() + 12, header.end())};
}

// How the frames of a capture differ.
struct Form {
  bool ipv6;
  bool vlan;
  bool udp_checksum;  // Else 0.
  bool lsb_first;     // The CRC.
};

Bytes MakeFrame(const Packet& packet, const Form& form) {
  const auto [ipv6, vlan, has_checksum, lsb_first] = form;
  Bytes body;
  for (const Part& part : packet.parts) {
    body.insert(body.end(),
                part.bytes.begin() + static_cast<ptrdiff_t>(part.shared),
                part.bytes.end());
  }
  Append(&body, packet.payload);
  const size_t udp_bytes = Udp::kBytes + body.size() + CrcTrailer::kBytes;
  const auto [ip, addresses] = IpHeader(ipv6, udp_bytes);
  Udp udp{.source_port = 50000,
          .destination_port = kUetUdpPort,
          .length = static_cast<uint16_t>(udp_bytes)};
  Bytes covered = addresses;
  AppendHeader(&covered, udp);
  Append(&covered, body);
  const uint32_t crc = Crc32c(covered);
  for (int byte = 0; byte < 4; ++byte) {
    body.push_back(
        static_cast<uint8_t>(crc >> 8 * (lsb_first ? byte : 3 - byte)));
  }
  Bytes pseudo = addresses;
  Append(&pseudo, {0, kUdpProtocol, static_cast<uint8_t>(udp_bytes >> 8),
                   static_cast<uint8_t>(udp_bytes)});
  AppendHeader(&pseudo, udp);
  Append(&pseudo, body);
  const uint16_t checksum = InternetChecksum(pseudo);
  if (has_checksum) {
    udp.checksum = checksum == 0 ? 0xffff : checksum;
  }

  Bytes frame;
  const uint16_t ethertype = ipv6 ? 0x86dd : 0x0800;
  AppendHeader(&frame, Ethernet{.destination = 0x020000000002,
                                .source = 0x020000000001,
                                .ethertype = ethertype});
  if (vlan) {
    frame.resize(12);
    AppendHeader(&frame, Vlan{.tpid = 0x8100, .pcp = 3, .vid = 100});
    Append(&frame, {static_cast<uint8_t>(ethertype >> 8),
                    static_cast<uint8_t>(ethertype)});
  }
  Append(&frame, ip);
  AppendHeader(&frame, udp);
  Append(&frame, body);
  return frame;
}

void WriteAll(uint32_t seed, const std::string& pcap,
              const std::string& manifest) {
  auto capture = sim::frame::Capture::Open(pcap);
  if (!capture.ok()) {
    throw std::runtime_error(pcap + ": cannot be written");
  }
  std::ofstream lines(manifest);
  std::vector<Packet> packets = WorkedPackets();
  for (Packet& packet : Generator(seed).AllKinds()) {
    packets.push_back(std::move(packet));
  }
  uint64_t number = 0;
  for (const Packet& packet : packets) {
    const Form form = {.ipv6 = number % 2 != 0,
                       .vlan = number / 2 % 2 != 0,
                       .udp_checksum = number / 4 % 2 != 0,
                       .lsb_first = number % 3 == 2};
    nlohmann::json entry = {
        {"name", packet.name},
        {"ipv6", form.ipv6},
        {"vlan", form.vlan},
        {"udp_checksum", form.udp_checksum},
        {"crc_order", form.lsb_first ? "lsb_first" : "msb_first"},
        {"headers", nlohmann::json::array()},
        {"payload", ToHex(packet.payload)}};
    for (const Part& part : packet.parts) {
      entry["headers"].push_back({part.header, ToHex(part.bytes)});
    }
    lines << entry << '\n';
    capture.value()->Add(MakeFrame(packet, form), number);
    ++number;
  }
}

}  // namespace
}  // namespace heddle::contract::wire

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: uet_frames SEED PCAP MANIFEST\n";
    return 2;
  }
  try {
    heddle::contract::wire::WriteAll(
        static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)), argv[2],
        argv[3]);
  } catch (const std::exception& error) {
    std::cerr << "uet_frames: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
