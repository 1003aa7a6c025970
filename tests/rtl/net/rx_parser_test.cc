// SPDX-License-Identifier: Apache-2.0
// Random frames, good and malformed, against a parser written from the wire
// layouts alone.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "Vheddle_rx_parser.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/clocked_model.h"
#include "tests/rtl/crc32c.h"
#include "tests/rtl/net/stream.h"

namespace heddle::test {
namespace {

namespace wire = contract::wire;
using contract::CpType;
using contract::NextHdr;
using contract::PdsType;
using contract::Statistic;

using Bytes = std::vector<uint8_t>;
using Fields = std::map<std::string, uint64_t>;

struct FieldLayout {
  const char* name;
  size_t bits;
};

// rx_packet_t from its least significant bit up; wide fields in halves.
constexpr FieldLayout kFields[] = {
    {"read_bytes", 14},
    {"payload_bytes", 14},
    {"return_code", 6},
    {"response", 6},
    {"request_length", 32},
    {"message_offset", 32},
    {"header_data", 64},
    {"match_bits", 64},
    {"initiator", 32},
    {"buffer_offset", 64},
    {"resource_index", 12},
    {"pid_on_fep", 12},
    {"job_id", 24},
    {"message_id", 16},
    {"som", 1},
    {"eom", 1},
    {"hd", 1},
    {"rel", 1},
    {"ie", 1},
    {"dc", 1},
    {"ses_ver", 2},
    {"opcode", 6},
    {"pds_payload", 32},
    {"nack_code", 8},
    {"psn_offset", 12},
    {"dpdcid", 16},
    {"spdcid", 16},
    {"psn", 32},
    {"offset", 16},
    {"mpr", 8},
    {"sack_offset", 16},
    {"req", 2},
    {"probe", 1},
    {"m", 1},
    {"syn", 1},
    {"ar", 1},
    {"retx", 1},
    {"next_hdr", 4},
    {"pds_type", 5},
    {"ce", 1},
    {"dscp", 6},
    {"source_port", 16},
    {"source_mac", 48},
    {"source_fa_lo", 64},
    {"source_fa_hi", 64},
    {"ipv6", 1},
};

template <typename Port>
Fields ReadPacket(const Port& port) {
  Fields fields;
  size_t low = 0;
  for (const FieldLayout& field : kFields) {
    if (const uint64_t value = GetBits(port, low, field.bits)) {
      fields[field.name] = value;
    }
    low += field.bits;
  }
  return fields;
}

contract::PortCfg DefaultPort() {
  contract::PortCfg port;
  port.local_fa_lo = 0x0a000002;
  port.payload_mtu = 4096;
  port.udp_port = contract::kUetUdpPort;
  port.enable = 1;
  return port;
}

struct Verdict {
  // Counter of the drop; kRxFrames for a good frame.
  Statistic reason = Statistic::kRxFrames;
  Fields fields;
  Bytes payload;
  bool quiet = false;  // Left to the slow path.
};

Verdict Drop(Statistic reason) {
  return {reason, {}, {}};
}

uint16_t Half(const Bytes& frame, size_t at) {
  return static_cast<uint16_t>(frame[at] << 8 | frame[at + 1]);
}

void PutHalf(Bytes& frame, size_t at, size_t value) {
  frame[at] = static_cast<uint8_t>(value >> 8);
  frame[at + 1] = static_cast<uint8_t>(value);
}

// Where the parts of a frame are.
struct Form {
  bool ipv6 = false;
  size_t l3 = 14;

  size_t l4() const { return l3 + (ipv6 ? 40 : 20); }
  size_t source() const { return l3 + (ipv6 ? 8 : 12); }
};

// CRC of the frame whose datagram ends at `end`, without the CRC's own bytes.
uint32_t FrameCrc(Bytes frame, const Form& form, size_t end) {
  PutHalf(frame, form.l4() + 6, 0);
  return Crc32c({frame.data() + form.source(), end - form.source()});
}

// Sum of a datagram with its pseudo header.
uint32_t DatagramSum(const Bytes& frame, const Form& form, size_t end) {
  uint32_t sum = static_cast<uint32_t>(17 + end - form.l4());
  sum = (sum & 0xffff) + (sum >> 16);
  return OnesSum(frame.data() + form.source(), end - form.source(), sum);
}

constexpr uint16_t kIpv4 = 0x0800, kArp = 0x0806, kTag = 0x8100, kIpv6 = 0x86dd;

// What the parser's header says of a whole frame.
Verdict Judge(const Bytes& frame, bool mac_error,
              const contract::PortCfg& port) {
  if (mac_error) return Drop(Statistic::kDropMacError);
  if (frame.size() < 14) return Drop(Statistic::kDropTruncated);
  const auto eth = wire::Ethernet::Decode(frame.data());
  Form form;
  uint16_t ethertype = eth.ethertype;
  uint16_t vid = 0;
  if (ethertype == kTag) {
    if (frame.size() < 18) return Drop(Statistic::kDropTruncated);
    vid = wire::Vlan::Decode(frame.data() + 12).vid;
    ethertype = Half(frame, 16);
    form.l3 = 18;
  }
  if (vid != port.vlan) return Drop(Statistic::kDropVlan);
  Verdict quiet;
  quiet.quiet = true;
  if (ethertype == kArp) return quiet;
  if (ethertype != kIpv4 && ethertype != kIpv6) {
    return Drop(Statistic::kDropEthertype);
  }
  form.ipv6 = ethertype == kIpv6;
  if (frame.size() < form.l4()) return Drop(Statistic::kDropTruncated);
  wire::Ipv4 v4;
  wire::Ipv6 v6;
  size_t end = 0;
  bool header_ok = false;
  if (form.ipv6) {
    v6 = wire::Ipv6::Decode(frame.data() + form.l3);
    end = form.l4() + v6.payload_length;
    header_ok = v6.version == 6 && v6.next_header == 17;
  } else {
    v4 = wire::Ipv4::Decode(frame.data() + form.l3);
    end = form.l3 + v4.total_length;
    header_ok = v4.version == 4 && v4.ihl == 5 && !(v4.flags & 1) &&
                v4.fragment_offset == 0 && v4.protocol == 17;
  }
  if (end > frame.size()) return Drop(Statistic::kDropTruncated);
  if (form.ipv6 && v6.version == 6 && v6.next_header == 58 &&
      v6.payload_length > 0 &&
      (frame[form.l4()] == 135 || frame[form.l4()] == 136)) {
    return quiet;
  }
  if (!header_ok) return Drop(Statistic::kDropIpHeader);
  const size_t trailer = port.crc ? 4 : 0;
  if (end < form.l4() + 8 + 2 + trailer) {
    return Drop(Statistic::kDropTruncated);
  }
  const auto udp = wire::Udp::Decode(frame.data() + form.l4());
  if (udp.length != end - form.l4()) return Drop(Statistic::kDropTruncated);
  const uint8_t* pds = frame.data() + form.l4() + 8;
  size_t left = udp.length - 8u;
  const auto prologue = wire::PdsPrologue::Decode(pds);
  const bool request = (prologue.type == PdsType::kRodReq ||
                        prologue.type == PdsType::kRudReq) &&
                       prologue.next_hdr == NextHdr::kRequestStd;
  const bool pds_request =
      prologue.type == PdsType::kRodReq || prologue.type == PdsType::kRudReq;
  const bool pds_cc = prologue.type == PdsType::kAckCc;
  const bool pds_ack = prologue.type == PdsType::kAck || pds_cc;
  const bool response =
      (pds_request || pds_ack) && prologue.next_hdr == NextHdr::kResponse;
  const bool data =
      (pds_request || pds_ack) && prologue.next_hdr == NextHdr::kResponseData;
  const bool back = pds_request && (response || data);
  const bool ack =
      pds_ack && (response || data || prologue.next_hdr == NextHdr::kNone);
  const bool nack = prologue.type == PdsType::kNack &&
                    prologue.next_hdr == NextHdr::kNone &&
                    !(prologue.flags & 8);
  const bool cp = prologue.type == PdsType::kCp;
  const bool known = request || back || ack || nack || cp;
  const size_t extra = ack && pds_cc ? wire::PdsAckCc::kBytes : 0u;
  const size_t header = (request    ? 56u
                         : data     ? 32u
                         : response ? 24u
                         : ack      ? 12u
                                    : 16u) +
                        extra;
  if (known && left < header + trailer) return Drop(Statistic::kDropTruncated);
  if (form.ipv6 != (port.ipv6 != 0)) {
    const bool sum_ok =
        form.ipv6 || OnesSum(frame.data() + form.l3, 20) == 0xffff;
    return Drop(sum_ok ? Statistic::kDropIpAddress
                       : Statistic::kDropIpChecksum);
  }
  if (form.ipv6) {
    if (v6.destination_hi != port.local_fa_hi ||
        v6.destination_lo != port.local_fa_lo) {
      return Drop(Statistic::kDropIpAddress);
    }
  } else {
    if (OnesSum(frame.data() + form.l3, 20) != 0xffff) {
      return Drop(Statistic::kDropIpChecksum);
    }
    if (v4.destination != static_cast<uint32_t>(port.local_fa_lo)) {
      return Drop(Statistic::kDropIpAddress);
    }
  }
  if (udp.destination_port != port.udp_port) {
    return Drop(Statistic::kDropUdpPort);
  }
  if ((udp.checksum != 0 || form.ipv6) &&
      (udp.checksum == 0 || DatagramSum(frame, form, end) != 0xffff)) {
    return Drop(Statistic::kDropUdpChecksum);
  }
  if (port.crc) {
    uint32_t crc = 0;
    for (size_t i = 0; i < 4; ++i) crc |= uint32_t{frame[end - 4 + i]} << 8 * i;
    if (crc != FrameCrc(frame, form, end - 4)) {
      return Drop(Statistic::kDropCrc);
    }
  }
  if (!known) return Drop(Statistic::kDropPdsType);
  left -= header + trailer;

  Fields f;
  f["ipv6"] = form.ipv6;
  f["source_fa_hi"] = form.ipv6 ? v6.source_hi : 0;
  f["source_fa_lo"] = form.ipv6 ? v6.source_lo : v4.source;
  f["source_mac"] = eth.source;
  f["source_port"] = udp.source_port;
  f["dscp"] = form.ipv6 ? v6.dscp : v4.dscp;
  f["ce"] = (form.ipv6 ? v6.ecn : v4.ecn) == 3;
  f["pds_type"] = static_cast<uint64_t>(prologue.type);
  f["next_hdr"] = static_cast<uint64_t>(prologue.next_hdr);
  Bytes payload;
  if (request) {
    const auto h = wire::PdsRequest::Decode(pds);
    const auto s = wire::SesStd::Decode(pds + 12);
    const uint64_t mtu = port.payload_mtu;
    const bool read = s.opcode == contract::SesOpcode::kRead;
    const uint64_t asked =
        s.som ? std::min<uint64_t>(s.request_length, mtu) : s.payload_length;
    bool good = s.ver == 0 && left <= mtu;
    if (read) {
      good = good && left == 0 && asked <= mtu &&
             (s.som || (asked > 0 && uint64_t{s.message_offset} + asked <=
                                         s.request_length));
    } else if (s.som) {
      good = good &&
             left == (s.ie ? 0 : std::min<uint64_t>(s.request_length, mtu));
    } else {
      good = good && (left == s.payload_length || (s.ie && left == 0)) &&
             uint64_t{s.message_offset} + left <= s.request_length;
    }
    if (!good) return Drop(Statistic::kDropSes);
    f["retx"] = h.retx;
    f["ar"] = h.ar;
    f["syn"] = h.syn;
    f["offset"] = static_cast<uint16_t>(h.clear_psn_offset);
    f["psn"] = h.psn;
    f["spdcid"] = h.spdcid;
    f["dpdcid"] = h.dpdcid;
    f["psn_offset"] = h.psn_offset;
    f["opcode"] = static_cast<uint64_t>(s.opcode);
    f["dc"] = s.dc;
    f["ie"] = s.ie;
    f["rel"] = s.rel;
    f["hd"] = s.hd;
    f["eom"] = s.eom;
    f["som"] = s.som;
    f["message_id"] = s.message_id;
    f["job_id"] = s.job_id;
    f["pid_on_fep"] = s.pid_on_fep;
    f["resource_index"] = s.resource_index;
    f["buffer_offset"] = s.buffer_offset;
    f["initiator"] = s.initiator;
    f["match_bits"] = s.match_bits;
    f["header_data"] = s.header_data;
    f["message_offset"] = s.message_offset;
    f["request_length"] = s.request_length;
    f["payload_bytes"] = left;
    f["read_bytes"] = read ? asked : 0;
    payload.assign(pds + 56, pds + 56 + left);
  } else if (back) {
    const auto h = wire::PdsRequest::Decode(pds);
    f["retx"] = h.retx;
    f["ar"] = h.ar;
    f["syn"] = h.syn;
    f["offset"] = static_cast<uint16_t>(h.clear_psn_offset);
    f["psn"] = h.psn;
    f["spdcid"] = h.spdcid;
    f["dpdcid"] = h.dpdcid;
    f["psn_offset"] = h.psn_offset;
  } else if (ack) {
    const auto h = wire::PdsAck::Decode(pds);
    f["retx"] = h.retx;
    f["m"] = h.m;
    f["probe"] = h.p;
    f["req"] = static_cast<uint64_t>(h.req);
    f["offset"] =
        h.p ? h.probe_opaque : static_cast<uint16_t>(h.ack_psn_offset);
    f["psn"] = h.cack_psn;
    f["spdcid"] = h.spdcid;
    f["dpdcid"] = h.dpdcid;
    if (pds_cc) {
      const auto cc = wire::PdsAckCc::Decode(pds + wire::PdsAck::kBytes);
      f["sack_offset"] = static_cast<uint16_t>(cc.sack_psn_offset);
      f["mpr"] = cc.mpr;
      f["match_bits"] = cc.sack_bitmap;
      if (cc.cc_type == 0) {
        f["header_data"] = uint64_t{cc.service_time} << 48 |
                           uint64_t{cc.rc} << 47 |
                           uint64_t{cc.rcv_cwnd_pend} << 40 |
                           uint64_t{cc.rcvd_bytes} << 16 | cc.nscc_ooo_count;
      }
    }
  } else if (nack) {
    const auto h = wire::PdsNack::Decode(pds);
    f["retx"] = h.retx;
    f["nack_code"] = static_cast<uint64_t>(h.nack_code);
    f["psn"] = h.nack_psn;
    f["spdcid"] = h.spdcid;
    f["dpdcid"] = h.dpdcid;
    f["pds_payload"] = h.payload;
  } else {
    const auto h = wire::PdsCp::Decode(pds);
    f["retx"] = h.retx;
    f["ar"] = h.ar;
    f["syn"] = h.syn;
    f["psn"] = h.psn;
    f["spdcid"] = h.spdcid;
    f["dpdcid"] = h.dpdcid;
    f["psn_offset"] = h.psn_offset;
    f["pds_payload"] = h.payload;
  }
  if (response) {
    const auto s = wire::SesResponse::Decode(pds + 12 + extra);
    if (s.ver != 0) return Drop(Statistic::kDropSes);
    f["response"] = static_cast<uint64_t>(s.opcode);
    f["return_code"] = static_cast<uint64_t>(s.return_code);
    f["message_id"] = s.message_id;
    f["job_id"] = s.job_id;
  }
  if (data) {
    const auto s = wire::SesResponseData::Decode(pds + 12 + extra);
    if (s.ver != 0 || left > port.payload_mtu || left != s.payload_length ||
        uint64_t{s.message_offset} + left > s.modified_length) {
      return Drop(Statistic::kDropSes);
    }
    f["response"] = static_cast<uint64_t>(s.opcode);
    f["return_code"] = static_cast<uint64_t>(s.return_code);
    f["message_id"] = s.read_request_message_id;
    f["job_id"] = s.job_id;
    f["message_offset"] = s.message_offset;
    f["request_length"] = s.modified_length;
    f["payload_bytes"] = left;
    payload.assign(pds + 32 + extra, pds + 32 + extra + left);
  }
  if (!request && !data && left != 0) return Drop(Statistic::kDropSes);
  std::erase_if(f, [](const auto& field) { return field.second == 0; });
  return {Statistic::kRxFrames, f, payload};
}

template <typename Header>
void Append(Bytes& out, const Header& header) {
  out.resize(out.size() + Header::kBytes);
  header.Encode(out.data() + out.size() - Header::kBytes);
}

enum class UdpSum { kRight, kZero, kMaybeZero };

// Makes the UDP checksum fit, or leaves it out.
void PutUdpSum(Bytes& frame, const Form& form, size_t end, UdpSum how,
               sim::Random& rng) {
  PutHalf(frame, form.l4() + 6, 0);
  if (how == UdpSum::kZero) return;
  if (how == UdpSum::kMaybeZero && !form.ipv6 && rng.Chance(0.1)) return;
  const uint32_t check = ~DatagramSum(frame, form, end) & 0xffff;
  PutHalf(frame, form.l4() + 6, check == 0 ? 0xffff : check);
}

void PutCrc(Bytes& frame, const Form& form, size_t end) {
  const uint32_t crc = FrameCrc(frame, form, end - 4);
  for (size_t i = 0; i < 4; ++i) {
    frame[end - 4 + i] = static_cast<uint8_t>(crc >> 8 * i);
  }
}

// Writes length fields, CRC and checksums that fit, then pads to 60 bytes.
void Finish(Bytes& frame, const Form& form, bool crc, sim::Random& rng,
            UdpSum how = UdpSum::kMaybeZero) {
  const size_t l4 = form.l4(), end = frame.size();
  if (form.ipv6) {
    PutHalf(frame, form.l3 + 4, end - l4);
  } else {
    PutHalf(frame, form.l3 + 2, end - form.l3);
    PutHalf(frame, form.l3 + 10, 0);
    PutHalf(frame, form.l3 + 10, ~OnesSum(frame.data() + form.l3, 20));
  }
  PutHalf(frame, l4 + 4, end - l4);
  if (crc && end >= l4 + 12) PutCrc(frame, form, end);
  PutUdpSum(frame, form, end, how, rng);
  // Padding is not always zero.
  while (frame.size() < 60) {
    frame.push_back(static_cast<uint8_t>(rng.Chance(0.5) ? 0 : rng.Next()));
  }
}

enum class Kind {
  kRequest,
  kAck,
  kAckResponse,
  kNack,
  kCp,
  kRead,
  kReturnData,
  kReturnError,
  kAckData
};

// Payload bytes of those that carry some; what a READ asks for.
struct Shape {
  Kind kind = Kind::kRequest;
  size_t payload = 0;
};

// A datagram (PDS header to trailer) that the parser accepts.
Bytes GoodDatagram(sim::Random& rng, const Shape& shape,
                   const contract::PortCfg& port) {
  Bytes out;
  const auto bit = [&] { return static_cast<uint8_t>(rng.Below(2)); };
  const auto u16 = [&] { return static_cast<uint16_t>(rng.Next()); };
  const auto u32 = [&] { return static_cast<uint32_t>(rng.Next()); };
  const auto pds_request = [&](NextHdr next_hdr) {
    wire::PdsRequest h;
    h.type = bit() ? PdsType::kRodReq : PdsType::kRudReq;
    h.next_hdr = next_hdr;
    h.retx = bit();
    h.ar = bit();
    h.syn = bit();
    h.clear_psn_offset = static_cast<int16_t>(u16());
    h.psn = u32();
    h.spdcid = u16();
    h.dpdcid = u16();
    h.psn_offset = u16() & 0xfff;
    Append(out, h);
  };
  const auto pds_ack = [&](NextHdr next_hdr) {
    wire::PdsAck h;
    h.type = bit() ? PdsType::kAckCc : PdsType::kAck;
    h.next_hdr = next_hdr;
    h.m = bit();
    h.retx = bit();
    h.p = bit();
    h.req = static_cast<contract::AckReq>(rng.Below(4));
    h.ack_psn_offset = static_cast<int16_t>(u16());
    h.probe_opaque = u16();
    h.cack_psn = u32();
    h.spdcid = u16();
    h.dpdcid = u16();
    Append(out, h);
    if (h.type == PdsType::kAck) return;
    wire::PdsAckCc cc;
    cc.cc_type = bit();
    cc.mpr = static_cast<uint8_t>(u16());
    cc.sack_psn_offset = static_cast<int16_t>(u16());
    cc.sack_bitmap = rng.Next();
    cc.service_time = u16();
    cc.rc = bit();
    cc.rcv_cwnd_pend = u16() & 0x7f;
    cc.rcvd_bytes = u32() & 0xffffff;
    cc.nscc_ooo_count = u16();
    Append(out, cc);
  };
  const auto response = [&] {
    wire::SesResponse s;
    s.opcode = static_cast<contract::SesResponse>(rng.Below(64));
    s.return_code = static_cast<contract::ReturnCode>(rng.Below(64));
    s.message_id = u16();
    s.job_id = u32() & 0xffffff;
    s.modified_length = u32();
    Append(out, s);
  };
  const auto data = [&] {
    wire::SesResponseData s;
    s.opcode = static_cast<contract::SesResponse>(rng.Below(64));
    s.return_code = static_cast<contract::ReturnCode>(rng.Below(64));
    s.response_message_id = u16();
    s.job_id = u32() & 0xffffff;
    s.read_request_message_id = u16();
    s.payload_length = static_cast<uint16_t>(shape.payload);
    s.message_offset = u32() >> 1;
    s.modified_length = s.message_offset +
                        static_cast<uint32_t>(shape.payload) +
                        static_cast<uint32_t>(rng.Below(2)) * 1000;
    Append(out, s);
    const Bytes payload = RandomBytes(rng, shape.payload);
    out.insert(out.end(), payload.begin(), payload.end());
  };
  switch (shape.kind) {
    case Kind::kRead: {
      pds_request(NextHdr::kRequestStd);
      wire::SesStd s;
      s.opcode = contract::SesOpcode::kRead;
      s.dc = bit();
      s.eom = bit();
      s.som = shape.payload == 0 || bit();
      s.message_id = u16();
      s.job_id = u32() & 0xffffff;
      s.pid_on_fep = u16() & 0xfff;
      s.resource_index = u16() & 0xfff;
      s.buffer_offset = rng.Next();
      s.match_bits = rng.Next();
      s.payload_length = static_cast<uint16_t>(shape.payload);
      s.message_offset = u32() >> 1;
      s.request_length =
          s.som ? static_cast<uint32_t>(shape.payload)
                : s.message_offset + static_cast<uint32_t>(shape.payload);
      Append(out, s);
      break;
    }
    case Kind::kReturnData:
      pds_request(NextHdr::kResponseData);
      data();
      break;
    case Kind::kReturnError:
      pds_request(NextHdr::kResponse);
      response();
      break;
    case Kind::kAckData:
      pds_ack(NextHdr::kResponseData);
      data();
      break;
    case Kind::kRequest: {
      pds_request(NextHdr::kRequestStd);
      wire::SesStd s;
      do {
        s.opcode = static_cast<contract::SesOpcode>(rng.Below(64));
      } while (s.opcode == contract::SesOpcode::kRead);
      s.dc = bit();
      s.rel = bit();
      s.hd = bit();
      s.eom = bit();
      s.som = bit();
      s.message_id = u16();
      s.ri_generation = static_cast<uint8_t>(u16());
      s.job_id = u32() & 0xffffff;
      s.pid_on_fep = u16() & 0xfff;
      s.resource_index = u16() & 0xfff;
      s.buffer_offset = rng.Next();
      s.initiator = u32();
      s.match_bits = rng.Next();
      s.header_data = rng.Next();
      s.payload_length = static_cast<uint16_t>(shape.payload);
      s.message_offset = u32() >> 1;
      s.request_length = s.message_offset +
                         static_cast<uint32_t>(shape.payload) +
                         rng.Below(2) * 1000;
      if (s.som) {
        s.request_length = static_cast<uint32_t>(shape.payload);
        if (shape.payload == port.payload_mtu && bit()) {
          s.request_length += u32() >> 4;
        }
        if (shape.payload == 0 && bit()) {
          s.ie = 1;
          s.request_length = u32();
        }
      } else if (shape.payload == 0 && bit()) {
        s.ie = 1;
        s.payload_length = 99;
      }
      Append(out, s);
      const Bytes payload = RandomBytes(rng, shape.payload);
      out.insert(out.end(), payload.begin(), payload.end());
      break;
    }
    case Kind::kAck:
      pds_ack(NextHdr::kNone);
      break;
    case Kind::kAckResponse:
      pds_ack(NextHdr::kResponse);
      response();
      break;
    case Kind::kNack: {
      wire::PdsNack h;
      h.type = PdsType::kNack;
      h.m = bit();
      h.retx = bit();
      h.nack_code = static_cast<contract::NackCode>(rng.Below(256));
      h.vendor_code = static_cast<uint8_t>(u16());
      h.nack_psn = u32();
      h.spdcid = u16();
      h.dpdcid = u16();
      h.payload = u32();
      Append(out, h);
      break;
    }
    case Kind::kCp: {
      wire::PdsCp h;
      h.type = PdsType::kCp;
      h.cp_type = static_cast<CpType>(rng.Below(16));
      h.isrod = bit();
      h.retx = bit();
      h.ar = bit();
      h.syn = bit();
      h.probe_opaque = u16();
      h.psn = u32();
      h.spdcid = u16();
      h.dpdcid = u16();
      h.psn_offset = u16() & 0xfff;
      h.payload = u32();
      Append(out, h);
      break;
    }
  }
  if (port.crc) out.resize(out.size() + 4);
  return out;
}

struct Built {
  Bytes frame;
  Form form;
  size_t end = 0;  // Of the datagram.
};

void InsertTag(Bytes& frame, uint16_t vid, sim::Random& rng) {
  Bytes tag(4);
  wire::Vlan{.tpid = kTag,
             .pcp = static_cast<uint8_t>(rng.Below(8)),
             .dei = static_cast<uint8_t>(rng.Below(2)),
             .vid = vid}
      .Encode(tag.data());
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
}

Built Build(sim::Random& rng, const Shape& shape, const contract::PortCfg& port,
            UdpSum how = UdpSum::kMaybeZero) {
  Built built;
  Bytes& out = built.frame;
  const bool ipv6 = port.ipv6;
  Append(out, wire::Ethernet{.destination = rng.Next() & 0xffffffffffff,
                             .source = rng.Next() & 0xffffffffffff,
                             .ethertype = ipv6 ? kIpv6 : kIpv4});
  if (port.vlan || rng.Chance(0.2)) InsertTag(out, port.vlan, rng);
  built.form = {.ipv6 = ipv6, .l3 = out.size()};
  const auto dscp = static_cast<uint8_t>(rng.Below(64));
  const auto ecn = static_cast<uint8_t>(rng.Below(4));
  if (ipv6) {
    wire::Ipv6 ip;
    ip.version = 6;
    ip.dscp = dscp;
    ip.ecn = ecn;
    ip.flow_label = static_cast<uint32_t>(rng.Next()) & 0xfffff;
    ip.next_header = 17;
    ip.hop_limit = static_cast<uint8_t>(rng.Next());
    ip.source_hi = rng.Next();
    ip.source_lo = rng.Next();
    ip.destination_hi = port.local_fa_hi;
    ip.destination_lo = port.local_fa_lo;
    Append(out, ip);
  } else {
    wire::Ipv4 ip;
    ip.version = 4;
    ip.ihl = 5;
    ip.dscp = dscp;
    ip.ecn = ecn;
    ip.identification = static_cast<uint16_t>(rng.Next());
    ip.flags = static_cast<uint8_t>(2 * rng.Below(2));
    ip.ttl = static_cast<uint8_t>(rng.Next());
    ip.protocol = 17;
    ip.source = static_cast<uint32_t>(rng.Next());
    ip.destination = static_cast<uint32_t>(port.local_fa_lo);
    Append(out, ip);
  }
  wire::Udp udp;
  udp.source_port = static_cast<uint16_t>(rng.Next());
  udp.destination_port = port.udp_port;
  Append(out, udp);
  const Bytes datagram = GoodDatagram(rng, shape, port);
  out.insert(out.end(), datagram.begin(), datagram.end());
  built.end = out.size();
  Finish(out, built.form, port.crc, rng, how);
  return built;
}

Bytes GoodFrame(sim::Random& rng, const Shape& shape,
                const contract::PortCfg& port) {
  return Build(rng, shape, port).frame;
}

// ARP, or a neighbour discovery message of `type`, for the port's VLAN.
Bytes NeighborFrame(sim::Random& rng, const contract::PortCfg& port, bool arp,
                    uint8_t type = 135) {
  Bytes out;
  Append(out, wire::Ethernet{.destination = 0xffffffffffff,
                             .source = rng.Next() & 0xffffffffffff,
                             .ethertype = arp ? kArp : kIpv6});
  if (port.vlan) InsertTag(out, port.vlan, rng);
  if (arp) {
    const Bytes body = RandomBytes(rng, 28);
    out.insert(out.end(), body.begin(), body.end());
  } else {
    wire::Ipv6 ip;
    ip.version = 6;
    ip.payload_length = 32;
    ip.next_header = 58;
    ip.hop_limit = 255;
    ip.source_lo = rng.Next();
    ip.destination_hi = 0xff02000000000000;
    ip.destination_lo = rng.Next();
    Append(out, ip);
    const Bytes body = RandomBytes(rng, 32);
    out.push_back(type);
    out.insert(out.end(), body.begin() + 1, body.end());
  }
  if (out.size() < 60) out.resize(60);
  return out;
}

Shape RandomShape(sim::Random& rng, const contract::PortCfg& port) {
  Shape shape;
  shape.kind =
      rng.Chance(0.5) ? Kind::kRequest : static_cast<Kind>(1 + rng.Below(8));
  const uint32_t mtu = port.payload_mtu;
  switch (rng.Below(5)) {
    case 0:
      shape.payload = 0;
      break;
    case 1:
      shape.payload = rng.Below(9);
      break;
    case 2:
      shape.payload = rng.Below(3 * kStrobe);
      break;
    case 3:
      shape.payload = mtu - rng.Below(2);
      break;
    default:
      shape.payload = rng.Below(mtu + 1);
      break;
  }
  return shape;
}

// Breaks a frame in one of many ways; some leave it good.
Bytes Mutated(Built built, const contract::PortCfg& port, sim::Random& rng) {
  Bytes& frame = built.frame;
  const Form& form = built.form;
  const auto below = [&](size_t limit) {
    return rng.Below(static_cast<uint32_t>(limit));
  };
  const auto flip = [&](size_t at) {
    frame[at] ^= static_cast<uint8_t>(1u << rng.Below(8));
  };
  const auto repair = [&] { Finish(frame, form, port.crc, rng); };
  const size_t udp = form.l4();
  const size_t headers = std::min<size_t>(frame.size(), udp + 64);
  switch (rng.Below(11)) {
    case 0:  // A bit anywhere.
      flip(below(frame.size()));
      break;
    case 1:  // A bit of a header, checksums and CRC repaired.
    case 2:
    case 3:
      flip(below(headers));
      repair();
      break;
    case 4:  // Cut short.
      frame.resize(1 + below(frame.size()));
      break;
    case 5: {  // Longer than its lengths say.
      const Bytes more = RandomBytes(rng, 1 + rng.Below(100));
      frame.insert(frame.end(), more.begin(), more.end());
      break;
    }
    case 6:  // A byte of PDS or SES header at random, all repaired.
      frame[udp + 8 + below(headers - udp - 8)] =
          static_cast<uint8_t>(rng.Next());
      repair();
      break;
    case 7:  // Another length, all repaired.
      frame.resize(udp + 10 + below(frame.size() - udp - 9));
      repair();
      break;
    case 8:  // A bit that the UDP checksum hides.
      flip(udp + 8 + below(built.end - udp - 8));
      PutUdpSum(frame, form, built.end, UdpSum::kRight, rng);
      break;
    case 9:  // No UDP checksum.
      PutUdpSum(frame, form, built.end, UdpSum::kZero, rng);
      break;
    default: {  // A tag, perhaps the second one.
      const uint16_t vids[] = {0, port.vlan, 77};
      InsertTag(frame, vids[rng.Below(3)], rng);
      break;
    }
  }
  return std::move(frame);
}

struct Sent {
  Bytes frame;
  Verdict verdict;
  bool bad = false;  // MAC error.
};

class Bench {
 public:
  explicit Bench(uint64_t seed, const contract::PortCfg& port = DefaultPort())
      : rng_(seed) {
    std::cout << "seed " << seed << ", " << HEDDLE_DATA_W << " bits\n";
    SetPort(port);
    dut_->tvalid_i = 0;
    dut_->pkt_ready_i = 0;
    dut_->pay_ready_i = 0;
  }

  double gap = 0.2;  // Chance of a cycle without a beat.
  double take = 1;   // Chance that a packet or beat is taken.
  bool may_overflow = false;

  void SetPort(const contract::PortCfg& port) {
    port_ = port;
    std::memcpy(&dut_->port_i, &port, sizeof port);
  }
  const contract::PortCfg& port() const { return port_; }

  void Post(Bytes frame, bool bad = false) {
    Verdict verdict = Judge(frame, bad, port_);
    todo_.push_back({std::move(frame), std::move(verdict), bad});
  }

  void Step() {
    dut_->tvalid_i = 0;
    if (!todo_.empty() && !rng_.Chance(gap)) DriveBeat();
    dut_->pkt_ready_i = rng_.Chance(take);
    dut_->pay_ready_i = rng_.Chance(take);
    dut_.Settle();
    WatchStatistics();
    if (dut_->pkt_valid_o) {
      ASSERT_FALSE(due_packets_.empty()) << "a packet is not Verified";
      if (first_valid_ < 0) first_valid_ = cycle_;
    }
    if (dut_->pay_valid_o && first_pay_ < 0) first_pay_ = cycle_;
    if (dut_->pkt_valid_o && dut_->pkt_ready_i) {
      ASSERT_EQ(ReadPacket(dut_->pkt_o), due_packets_.front());
      due_packets_.pop_front();
      ++packets;
    }
    if (dut_->pay_valid_o && dut_->pay_ready_i) WatchPayload();
    dut_.Tick();
    ++cycle_;
  }

  // Until all frames are judged; then, if all is taken, until idle.
  void RunToEnd(int limit) {
    int steps = 0;
    for (; steps < limit; ++steps) {
      if (todo_.empty() && in_flight_.empty() && due_packets_.empty() &&
          due_payload_.empty()) {
        break;
      }
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_LT(steps, limit);
    for (int i = 0; i < 10; ++i) Step();
    EXPECT_TRUE(dut_->idle_o);
    EXPECT_FALSE(dut_->pkt_valid_o);
    EXPECT_FALSE(dut_->pay_valid_o);
  }
  void RunInput(int limit) {
    for (int i = 0; i < limit; ++i) {
      if (todo_.empty() && in_flight_.empty()) return;
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    FAIL() << "not all frames judged";
  }

  sim::Random& rng() { return rng_; }
  std::map<Statistic, uint64_t> counts;
  uint64_t packets = 0;
  int64_t last_sent() const { return last_sent_; }
  int64_t first_valid() const { return first_valid_; }
  int64_t first_pay() const { return first_pay_; }

 private:
  void DriveBeat() {
    const Sent& sent = todo_.front();
    PutBeat(dut_->tdata_i, sent.frame, beat_, rng_);
    const bool last = beat_ + 1 == Beats(sent.frame.size());
    for (size_t i = 0; i < kStrobe; ++i) {
      PutBits(dut_->tkeep_i, i, 1, beat_ * kStrobe + i < sent.frame.size());
    }
    dut_->tvalid_i = 1;
    dut_->tlast_i = last;
    dut_->tuser_i = last && sent.bad;
    ++beat_;
    if (last) {
      in_flight_.push_back(sent);
      todo_.pop_front();
      beat_ = 0;
      last_sent_ = cycle_;
    }
  }

  void WatchStatistics() {
    const uint64_t stat = GetBits(dut_->stat_o, 0, 64);
    if (stat == 0) {
      ASSERT_EQ(dut_->rx_bytes_o, 0);
      return;
    }
    ASSERT_FALSE(in_flight_.empty());
    const Sent sent = in_flight_.front();
    in_flight_.pop_front();
    ASSERT_EQ(dut_->rx_bytes_o, sent.frame.size());
    const auto bit = [](Statistic s) {
      return uint64_t{1} << static_cast<unsigned>(s);
    };
    uint64_t expected = bit(Statistic::kRxFrames);
    Statistic reason = sent.verdict.reason;
    const bool good = reason == Statistic::kRxFrames;
    if (!port_.enable) {
      ASSERT_EQ(stat, expected);
      return;
    }
    if (!sent.verdict.quiet) expected |= bit(reason);
    if (may_overflow && good && !sent.verdict.quiet &&
        stat == (expected | bit(Statistic::kDropOverflow))) {
      ++counts[Statistic::kDropOverflow];
      return;
    }
    ASSERT_EQ(stat, expected)
        << "expected reason " << static_cast<int>(reason) << " of a frame of "
        << sent.frame.size() << " bytes";
    ++counts[reason];
    if (!good || sent.verdict.quiet) return;
    due_packets_.push_back(sent.verdict.fields);
    if (!sent.verdict.payload.empty()) {
      due_payload_.push_back(sent.verdict.payload);
    }
  }

  void WatchPayload() {
    ASSERT_FALSE(due_payload_.empty());
    const Bytes& payload = due_payload_.front();
    for (size_t i = 0; i < kStrobe; ++i) {
      const size_t at = out_beat_ * kStrobe + i;
      if (at < payload.size()) {
        ASSERT_EQ(PinBytes(dut_->pay_data_o)[i], payload[at])
            << "byte " << at << " of " << payload.size();
      }
    }
    if (++out_beat_ == Beats(payload.size())) {
      out_beat_ = 0;
      due_payload_.pop_front();
    }
  }

  sim::ClockedModel<Vheddle_rx_parser> dut_;
  sim::Random rng_;
  contract::PortCfg port_;
  int64_t cycle_ = 0;
  int64_t last_sent_ = -1, first_valid_ = -1, first_pay_ = -1;
  std::deque<Sent> todo_, in_flight_;
  size_t beat_ = 0, out_beat_ = 0;
  std::deque<Fields> due_packets_;
  std::deque<Bytes> due_payload_;
};

// Each family, VLAN and trailer.
constexpr uint32_t kVariants = 8;

contract::PortCfg PortVariant(uint32_t variant) {
  contract::PortCfg port = DefaultPort();
  if (variant & 1) {
    port.ipv6 = 1;
    port.local_fa_hi = 0xfd00000000000001;
    port.local_fa_lo = 0x123456789abcdef0;
  }
  if (variant & 2) port.vlan = 5;
  port.crc = (variant & 4) != 0;
  return port;
}

TEST(RxParserTest, GoodFramesBecomePacketsAndAlignedPayload) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    contract::PortCfg port = PortVariant(variant);
    port.payload_mtu = static_cast<uint16_t>(1024u << variant % 4);
    Bench bench(1 + variant, port);
    bench.gap = variant % 3 ? 0 : 0.3;
    for (int i = 0; i < 400; ++i) {
      bench.Post(GoodFrame(bench.rng(), RandomShape(bench.rng(), port), port));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
    EXPECT_EQ(bench.packets, 400u);
  }
}

TEST(RxParserTest, MalformedFramesAreDroppedAndCountedByTheFirstReason) {
  std::map<Statistic, uint64_t> counts;
  for (uint32_t variant = 0; variant < 2 * kVariants; ++variant) {
    contract::PortCfg port = PortVariant(variant % kVariants);
    port.payload_mtu = variant % 2 ? 1024 : 8192;
    Bench bench(11 + variant, port);
    bench.gap = variant % 3 ? 0 : 0.3;
    for (int i = 0; i < 1000; ++i) {
      Shape shape = RandomShape(bench.rng(), port);
      if (i % 4 != 0) shape.payload %= 200;
      Built built = Build(bench.rng(), shape, port);
      if (bench.rng().Chance(0.05)) {  // The other family.
        built = Build(bench.rng(), shape, PortVariant(variant % kVariants ^ 1));
      } else if (bench.rng().Chance(0.05)) {
        built.frame = NeighborFrame(bench.rng(), port, bench.rng().Chance(0.5),
                                    bench.rng().Chance(0.5) ? 135 : 136);
        built.form = {};
        built.end = built.frame.size();
      }
      if (bench.rng().Chance(0.7)) {
        built.frame = Mutated(std::move(built), port, bench.rng());
      }
      bench.Post(std::move(built.frame), bench.rng().Chance(0.03));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
    for (const auto& [reason, count] : bench.counts) counts[reason] += count;
  }
  for (const Statistic reason :
       {Statistic::kRxFrames, Statistic::kDropMacError,
        Statistic::kDropTruncated, Statistic::kDropEthertype,
        Statistic::kDropIpHeader, Statistic::kDropIpChecksum,
        Statistic::kDropIpAddress, Statistic::kDropUdpPort,
        Statistic::kDropUdpChecksum, Statistic::kDropCrc,
        Statistic::kDropPdsType, Statistic::kDropSes, Statistic::kDropVlan}) {
    EXPECT_GE(counts[reason], 10u) << static_cast<int>(reason);
  }
}

// READs and their data beyond what lengths and MTU allow, by one byte.
TEST(RxParserTest, ReadsAndTheirDataKeepToTheirLengths) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    Bench bench(300 + variant, port);
    const auto post = [&](Kind kind, size_t payload, size_t word,
                          uint32_t add) {
      Built built = Build(bench.rng(), {kind, payload}, port);
      built.frame.resize(built.end);
      // A 32-bit field behind the PDS header.
      const uint8_t* pds = built.frame.data() + built.form.l4() + 8;
      const bool cc = wire::PdsPrologue::Decode(pds).type == PdsType::kAckCc;
      const size_t at =
          built.form.l4() + 8 + 12 + word + (cc ? wire::PdsAckCc::kBytes : 0);
      uint32_t value =
          uint32_t{Half(built.frame, at)} << 16 | Half(built.frame, at + 2);
      value += add;
      PutHalf(built.frame, at, value >> 16);
      PutHalf(built.frame, at + 2, value & 0xffff);
      Finish(built.frame, built.form, port.crc, bench.rng());
      bench.Post(std::move(built.frame));
    };
    constexpr size_t kRequestLength = 40, kModifiedLength = 12;
    for (int i = 0; i < 8; ++i) {
      for (const size_t over : {size_t{0}, size_t{1}}) {
        post(Kind::kRead, port.payload_mtu + over, 0, 0);
        post(Kind::kReturnData, port.payload_mtu + over, 0, 0);
        post(Kind::kAckData, 16, kModifiedLength,
             0U - static_cast<uint32_t>(over));
        post(Kind::kReturnData, 100, kModifiedLength,
             0U - static_cast<uint32_t>(over) * 1001);
        post(Kind::kRead, 100, kRequestLength,
             0U - static_cast<uint32_t>(over));
      }
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
    EXPECT_GT(bench.counts[Statistic::kDropSes], 16U);
    EXPECT_GT(bench.packets, 40U);
  }
}

// Corruption that keeps the UDP checksum right, at each byte of frames of many
// lengths: what the CRC covers is never taken, and what it does not cover is.
TEST(RxParserTest, TheCrcCatchesAChangeOfAnyByteThatItCovers) {
  for (uint32_t variant = 4; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    Bench bench(100 + variant, port);
    bench.gap = 0;
    uint64_t intact = 0, crc_errors = 0;
    for (size_t payload = 0; payload < 2 * kStrobe + 3; ++payload) {
      const Built built = Build(bench.rng(), {Kind::kRequest, payload}, port);
      const size_t udp = built.form.l4();
      // MAC addresses, TTL or hop limit.
      for (const size_t at :
           {size_t{0}, size_t{8}, built.form.l3 + (port.ipv6 ? 7 : 8)}) {
        Bytes frame = built.frame;
        frame[at] ^= 0x40;
        if (!port.ipv6) {
          PutHalf(frame, built.form.l3 + 10, 0);
          PutHalf(frame, built.form.l3 + 10,
                  ~OnesSum(frame.data() + built.form.l3, 20));
        }
        bench.Post(std::move(frame));
        ++intact;
      }
      for (size_t at = built.form.source(); at < built.end; ++at) {
        // Of a long payload, what is near its ends.
        if (at > udp + 100 && at + 2 * kStrobe < built.end) continue;
        if (at == udp + 6 || at == udp + 7) continue;  // UDP checksum.
        Bytes frame = built.frame;
        frame[at] ^= static_cast<uint8_t>(1u << bench.rng().Below(8));
        if (!port.ipv6) {
          PutHalf(frame, built.form.l3 + 10, 0);
          PutHalf(frame, built.form.l3 + 10,
                  ~OnesSum(frame.data() + built.form.l3, 20));
        }
        PutUdpSum(frame, built.form, built.end, UdpSum::kRight, bench.rng());
        // Address, port and length have reasons of their own.
        const bool own_reason =
            (at >= udp - (port.ipv6 ? 16 : 4) && at < udp) ||
            (at >= udp + 2 && at < udp + 6);
        crc_errors += !own_reason;
        bench.Post(std::move(frame));
      }
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
    EXPECT_EQ(bench.packets, intact);
    // A change of type or header may be a frame shorter than its header.
    EXPECT_GE(bench.counts[Statistic::kDropCrc] +
                  bench.counts[Statistic::kDropTruncated],
              crc_errors);
    EXPECT_GT(bench.counts[Statistic::kDropCrc], crc_errors * 9 / 10);
  }
}

TEST(RxParserTest, ShortFramesBackToBackAreAllJudgedAndTaken) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    Bench bench(200 + variant, port);
    bench.gap = 0;
    for (int i = 0; i < 2000; ++i) {
      const auto kind = static_cast<Kind>(1 + bench.rng().Below(4));
      Built built = Build(bench.rng(), {kind}, port);
      if (i % 3 == 0 && port.crc) {
        built.frame[built.end - 1 - bench.rng().Below(4)] ^= 0x10;
        PutUdpSum(built.frame, built.form, built.end, UdpSum::kRight,
                  bench.rng());
      }
      bench.Post(std::move(built.frame));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(100000));
    EXPECT_EQ(bench.packets, port.crc ? 1333u : 2000u);
    EXPECT_EQ(bench.counts[Statistic::kDropCrc], port.crc ? 667u : 0u);
  }
}

TEST(RxParserTest, OnlyFramesOfThePortsVlanAreTaken) {
  struct Case {
    uint16_t port;
    std::vector<uint16_t> tags;  // Outermost last.
    Statistic reason;
  };
  const Case cases[] = {
      {0, {}, Statistic::kRxFrames},
      {0, {0}, Statistic::kRxFrames},
      {0, {5}, Statistic::kDropVlan},
      {5, {}, Statistic::kDropVlan},
      {5, {0}, Statistic::kDropVlan},
      {5, {5}, Statistic::kRxFrames},
      {5, {4}, Statistic::kDropVlan},
      {4095, {4095}, Statistic::kRxFrames},
      {5, {5, 5}, Statistic::kDropEthertype},
      {0, {0, 0}, Statistic::kDropEthertype},
      {5, {5, 0}, Statistic::kDropVlan},
  };
  for (uint8_t ipv6 = 0; ipv6 < 2; ++ipv6) {
    for (const Case& c : cases) {
      contract::PortCfg port = PortVariant(ipv6);
      Bench bench(300, port);
      Built built;
      do {
        built = Build(bench.rng(), {Kind::kRequest, 100}, port);
      } while (built.form.l3 != 14);
      for (const uint16_t vid : c.tags) {
        InsertTag(built.frame, vid, bench.rng());
      }
      port.vlan = c.port;
      bench.SetPort(port);
      // Cut inside the IP header, and inside a tag if there is one.
      for (const size_t size : {built.frame.size(), size_t{30}, size_t{17}}) {
        built.frame.resize(size);
        bench.Post(built.frame);
      }
      ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000));
      EXPECT_GE(bench.counts[c.reason], 1u)
          << "port " << c.port << ", " << c.tags.size() << " tags";
    }
  }
}

TEST(RxParserTest, Ipv6NeedsAUdpChecksumAndIpv4DoesNot) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    Bench bench(310 + variant, port);
    bench.Post(
        Build(bench.rng(), {Kind::kRequest, 20}, port, UdpSum::kZero).frame);
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000));
    EXPECT_EQ(bench.counts[Statistic::kDropUdpChecksum], port.ipv6 ? 1u : 0u);
    EXPECT_EQ(bench.packets, port.ipv6 ? 0u : 1u);
  }
}

TEST(RxParserTest, AFrameForTheOtherFamilysAddressIsNotOurs) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    contract::PortCfg other = PortVariant(variant ^ 1);
    other.local_fa_lo = port.local_fa_lo;
    other.local_fa_hi = port.local_fa_hi;
    Bench bench(320 + variant, port);
    bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, 20}, other));
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000));
    EXPECT_EQ(bench.counts[Statistic::kDropIpAddress], 1u);
  }
}

TEST(RxParserTest, EachBitOfAnIpv6AddressIsCompared) {
  contract::PortCfg port = PortVariant(1);
  Bench bench(330, port);
  for (size_t bit = 0; bit < 128; ++bit) {
    Built built = Build(bench.rng(), {Kind::kRequest, 20}, port);
    built.frame[built.form.l3 + 24 + bit / 8] ^=
        static_cast<uint8_t>(1u << bit % 8);
    PutUdpSum(built.frame, built.form, built.end, UdpSum::kRight, bench.rng());
    bench.Post(std::move(built.frame));
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
  EXPECT_EQ(bench.counts[Statistic::kDropIpAddress], 128u);
}

// Neither offered nor counted as dropped, even when no packet finds room.
TEST(RxParserTest, NeighborFramesAreLeftToTheSlowPath) {
  for (uint32_t variant = 0; variant < 4; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    Bench bench(340 + variant, port);
    bench.may_overflow = true;
    bench.take = 0;
    for (int i = 0; i < 70; ++i) {
      bench.Post(GoodFrame(bench.rng(), {Kind::kAck}, port));
    }
    for (int i = 0; i < 10; ++i) {
      bench.Post(NeighborFrame(bench.rng(), port, true));
      bench.Post(NeighborFrame(bench.rng(), port, false, 135));
      bench.Post(NeighborFrame(bench.rng(), port, false, 136));
      bench.Post(NeighborFrame(bench.rng(), port, false, 134));
      bench.Post(NeighborFrame(bench.rng(), port, true), true);
      contract::PortCfg other = port;
      other.vlan = 6;
      bench.Post(NeighborFrame(bench.rng(), other, true));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunInput(10000));
    bench.take = 1;
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
    EXPECT_EQ(bench.packets, 64u);
    EXPECT_EQ(bench.counts[Statistic::kDropOverflow], 6u);
    EXPECT_EQ(bench.counts[Statistic::kRxFrames], 64u + 30u);
    EXPECT_EQ(bench.counts[Statistic::kDropIpHeader], 10u);
    EXPECT_EQ(bench.counts[Statistic::kDropMacError], 10u);
    EXPECT_EQ(bench.counts[Statistic::kDropVlan], 10u);
  }
}

TEST(RxParserTest, NothingElseIsTakenForAFrameOfOurs) {
  Bench bench(21);
  for (int i = 0; i < 3000; ++i) {
    bench.Post(RandomBytes(bench.rng(), 1 + bench.rng().Below(200)));
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000000));
  EXPECT_EQ(bench.packets, 0u);
}

// Unhurried: nothing is taken, so what finds no room is dropped whole.
TEST(RxParserTest, FramesThatFindNoRoomAreDroppedWholeAndCounted) {
  for (const size_t payload : {size_t{8}, size_t{4096}}) {
    Bench bench(31 + payload);
    bench.may_overflow = true;
    bench.gap = 0;
    for (int round = 0; round < 3; ++round) {
      bench.take = 0;
      for (int i = 0; i < 100; ++i) {
        bench.Post(
            GoodFrame(bench.rng(), {Kind::kRequest, payload}, bench.port()));
      }
      ASSERT_NO_FATAL_FAILURE(bench.RunInput(200000));
      bench.take = 0.7;
      ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(200000));
    }
    const uint64_t dropped = bench.counts[Statistic::kDropOverflow];
    EXPECT_EQ(bench.packets + dropped, 300u);
    // 64 short frames or 64 KiB of payload find room.
    EXPECT_GE(bench.packets, 3u * (payload == 8 ? 64 : 65536 / payload));
    EXPECT_GE(dropped, 3u * 30);
    std::cout << bench.packets / 3 << " frames of " << payload << " bytes\n";
  }
}

// Overflow while frames keep coming and the reader is slow.
TEST(RxParserTest, ASlowReaderSeesOnlyWholePackets) {
  Bench bench(41);
  bench.may_overflow = true;
  bench.gap = 0;
  bench.take = 0.2;
  for (int i = 0; i < 600; ++i) {
    bench.Post(GoodFrame(bench.rng(), RandomShape(bench.rng(), bench.port()),
                         bench.port()));
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
  EXPECT_GT(bench.counts[Statistic::kDropOverflow], 20u);
}

TEST(RxParserTest, ADisabledPortCountsFramesOnly) {
  contract::PortCfg port = DefaultPort();
  port.enable = 0;
  Bench bench(51, port);
  for (int i = 0; i < 50; ++i) {
    Built built = Build(bench.rng(), {Kind::kRequest, 100}, port);
    if (i % 2) built.frame = Mutated(std::move(built), port, bench.rng());
    bench.Post(std::move(built.frame));
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
  port.enable = 1;
  bench.SetPort(port);
  bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, 100}, port));
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
  EXPECT_EQ(bench.packets, 1u);
}

TEST(RxParserTest, APacketIsOfferedFiveCyclesAfterItsLastBeat) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    Bench bench(61, port);
    bench.gap = 0;
    bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, 1000}, port));
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
    EXPECT_EQ(bench.first_valid() - bench.last_sent(), 5);
    EXPECT_EQ(bench.first_pay() - bench.last_sent(), 6);
  }
}

}  // namespace
}  // namespace heddle::test
