// SPDX-License-Identifier: Apache-2.0
#include "tests/rtl/net/rx_frames.h"

#include <algorithm>
#include <utility>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/rtl/crc32c.h"
#include "tests/rtl/net/stream.h"

namespace heddle::test {
namespace {

namespace wire = contract::wire;
using contract::CpType;
using contract::CrcOrder;
using contract::NextHdr;
using contract::PdsType;

template <typename Header>
void Append(Bytes& out, const Header& header) {
  out.resize(out.size() + Header::kBytes);
  header.Encode(out.data() + out.size() - Header::kBytes);
}

// Writes a datagram (PDS header to trailer) that the parser accepts.
class DatagramMaker {
 public:
  DatagramMaker(sim::base::Random& rng, const Shape& shape,
                const contract::PortCfg& port)
      : rng_(rng), shape_(shape), port_(port) {}

  Bytes Make() {
    switch (shape_.kind) {
      case Kind::kRequest:
        PutToTarget(NextHdr::kRequestStd);
        PutRequest();
        break;
      case Kind::kRead:
        PutToTarget(NextHdr::kRequestStd);
        PutRead();
        break;
      case Kind::kReturnData:
        PutToTarget(NextHdr::kResponseData);
        PutData();
        break;
      case Kind::kReturnError:
        PutToTarget(NextHdr::kResponse);
        PutResponse();
        break;
      case Kind::kAck:
        PutAck(NextHdr::kNone);
        break;
      case Kind::kAckResponse:
        PutAck(NextHdr::kResponse);
        PutResponse();
        break;
      case Kind::kAckData:
        PutAck(NextHdr::kResponseData);
        PutData();
        break;
      case Kind::kNack:
        PutNack();
        break;
      case Kind::kCp:
        PutControl();
        break;
    }
    if (port_.crc != CrcOrder::kNone) out_.resize(out_.size() + 4);
    return std::move(out_);
  }

 private:
  void PutToTarget(NextHdr next_hdr) {
    wire::PdsRequest h;
    h.type = Bit() ? PdsType::kRodReq : PdsType::kRudReq;
    h.next_hdr = next_hdr;
    h.retx = Bit();
    h.ar = Bit();
    h.syn = Bit();
    h.clear_psn_offset = static_cast<int16_t>(U16());
    h.psn = U32();
    h.spdcid = U16();
    h.dpdcid = U16();
    h.psn_offset = U16() & 0xfff;
    Append(out_, h);
  }

  void PutAck(NextHdr next_hdr) {
    wire::PdsAck h;
    h.type = Bit() ? PdsType::kAckCc : PdsType::kAck;
    h.next_hdr = next_hdr;
    h.m = Bit();
    h.retx = Bit();
    h.p = Bit();
    h.req = static_cast<contract::AckReq>(rng_.Below(4));
    h.ack_psn_offset = static_cast<int16_t>(U16());
    h.probe_opaque = U16();
    h.cack_psn = U32();
    h.spdcid = U16();
    h.dpdcid = U16();
    Append(out_, h);
    if (h.type == PdsType::kAck) return;
    wire::PdsAckCc cc;
    cc.cc_type = Bit();
    cc.mpr = static_cast<uint8_t>(U16());
    cc.sack_psn_offset = static_cast<int16_t>(U16());
    cc.sack_bitmap = rng_.Next();
    cc.service_time = U16();
    cc.rc = Bit();
    cc.rcv_cwnd_pend = U16() & 0x7f;
    cc.rcvd_bytes = U32() & 0xffffff;
    cc.nscc_ooo_count = U16();
    Append(out_, cc);
  }

  void PutResponse() {
    wire::SesResponse s;
    s.opcode = static_cast<contract::SesResponse>(rng_.Below(64));
    s.return_code = static_cast<contract::ReturnCode>(rng_.Below(64));
    s.message_id = U16();
    s.job_id = U32() & 0xffffff;
    s.modified_length = U32();
    Append(out_, s);
  }

  void PutData() {
    wire::SesResponseData s;
    s.opcode = static_cast<contract::SesResponse>(rng_.Below(64));
    s.return_code = static_cast<contract::ReturnCode>(rng_.Below(64));
    s.response_message_id = U16();
    s.job_id = U32() & 0xffffff;
    s.read_request_message_id = U16();
    s.payload_length = static_cast<uint16_t>(shape_.payload);
    s.message_offset = U32() >> 1;
    s.modified_length = s.message_offset +
                        static_cast<uint32_t>(shape_.payload) +
                        static_cast<uint32_t>(rng_.Below(2)) * 1000;
    Append(out_, s);
    PutPayload();
  }

  void PutRead() {
    wire::SesStd s;
    s.opcode = contract::SesOpcode::kRead;
    s.dc = Bit();
    s.eom = Bit();
    s.som = shape_.payload == 0 || Bit();
    s.message_id = U16();
    s.job_id = U32() & 0xffffff;
    s.pid_on_fep = U16() & 0xfff;
    s.resource_index = U16() & 0xfff;
    s.buffer_offset = rng_.Next();
    s.match_bits = rng_.Next();
    s.payload_length = static_cast<uint16_t>(shape_.payload);
    s.message_offset = U32() >> 1;
    s.request_length =
        s.som ? static_cast<uint32_t>(shape_.payload)
              : s.message_offset + static_cast<uint32_t>(shape_.payload);
    Append(out_, s);
  }

  void PutRequest() {
    wire::SesStd s;
    do {
      s.opcode = static_cast<contract::SesOpcode>(rng_.Below(64));
    } while (s.opcode == contract::SesOpcode::kRead);
    s.dc = Bit();
    s.rel = Bit();
    s.hd = Bit();
    s.eom = Bit();
    s.som = Bit();
    s.message_id = U16();
    s.ri_generation = static_cast<uint8_t>(U16());
    s.job_id = U32() & 0xffffff;
    s.pid_on_fep = U16() & 0xfff;
    s.resource_index = U16() & 0xfff;
    s.buffer_offset = rng_.Next();
    s.initiator = U32();
    s.match_bits = rng_.Next();
    s.header_data = rng_.Next();
    s.payload_length = static_cast<uint16_t>(shape_.payload);
    s.message_offset = U32() >> 1;
    s.request_length = s.message_offset +
                       static_cast<uint32_t>(shape_.payload) +
                       rng_.Below(2) * 1000;
    if (s.som) {
      s.request_length = static_cast<uint32_t>(shape_.payload);
      if (shape_.payload == port_.payload_mtu && Bit()) {
        s.request_length += U32() >> 4;
      }
      if (shape_.payload == 0 && Bit()) {
        s.ie = 1;
        s.request_length = U32();
      }
    } else if (shape_.payload == 0 && Bit()) {
      s.ie = 1;
      s.payload_length = 99;
    }
    Append(out_, s);
    PutPayload();
  }

  void PutNack() {
    wire::PdsNack h;
    h.type = PdsType::kNack;
    h.m = Bit();
    h.retx = Bit();
    h.nack_code = static_cast<contract::NackCode>(rng_.Below(256));
    h.vendor_code = static_cast<uint8_t>(U16());
    h.nack_psn = U32();
    h.spdcid = U16();
    h.dpdcid = U16();
    h.payload = U32();
    Append(out_, h);
  }

  void PutControl() {
    wire::PdsCp h;
    h.type = PdsType::kCp;
    h.cp_type = static_cast<CpType>(rng_.Below(16));
    h.isrod = Bit();
    h.retx = Bit();
    h.ar = Bit();
    h.syn = Bit();
    h.probe_opaque = U16();
    h.psn = U32();
    h.spdcid = U16();
    h.dpdcid = U16();
    h.psn_offset = U16() & 0xfff;
    h.payload = U32();
    Append(out_, h);
    if (h.cp_type == CpType::kNegotiation) {
      const Bytes rest = RandomBytes(rng_, 4);
      out_.insert(out_.end(), rest.begin(), rest.end());
    }
  }

  void PutPayload() {
    const Bytes payload = RandomBytes(rng_, shape_.payload);
    out_.insert(out_.end(), payload.begin(), payload.end());
  }

  uint8_t Bit() { return static_cast<uint8_t>(rng_.Below(2)); }
  uint16_t U16() { return static_cast<uint16_t>(rng_.Next()); }
  uint32_t U32() { return static_cast<uint32_t>(rng_.Next()); }

  sim::base::Random& rng_;
  const Shape& shape_;
  const contract::PortCfg& port_;
  Bytes out_;
};

}  // namespace

contract::PortCfg DefaultPort() {
  contract::PortCfg port;
  port.local_fa_lo = 0x0a000002;
  port.payload_mtu = 4096;
  port.udp_port = contract::kUetUdpPort;
  port.enable = 1;
  return port;
}

contract::PortCfg PortVariant(uint32_t variant) {
  contract::PortCfg port = DefaultPort();
  if (variant & 1) {
    port.ipv6 = 1;
    port.local_fa_hi = 0xfd00000000000001;
    port.local_fa_lo = 0x123456789abcdef0;
  }
  if (variant & 2) port.vlan = 5;
  if (variant & 4) port.ip_protocol = contract::kNativeIpProtocol;
  port.crc = static_cast<CrcOrder>(variant / kFirstWithCrc);
  return port;
}

uint32_t FrameCrc(Bytes frame, const Form& form, size_t end) {
  if (!form.native) PutHalf(frame, form.l4() + 6, 0);
  return Crc32c({frame.data() + form.source(), end - form.source()});
}

uint32_t DatagramSum(const Bytes& frame, const Form& form, size_t end) {
  uint32_t sum = static_cast<uint32_t>(17 + end - form.l4());
  sum = (sum & 0xffff) + (sum >> 16);
  return OnesSum(frame.data() + form.source(), end - form.source(), sum);
}

uint16_t Half(const Bytes& frame, size_t at) {
  return static_cast<uint16_t>(frame[at] << 8 | frame[at + 1]);
}

void PutHalf(Bytes& frame, size_t at, size_t value) {
  frame[at] = static_cast<uint8_t>(value >> 8);
  frame[at + 1] = static_cast<uint8_t>(value);
}

void PutUdpSum(Bytes& frame, const Form& form, size_t end, UdpSum how,
               sim::base::Random& rng) {
  if (form.native) return;
  if (how == UdpSum::kAny) how = static_cast<UdpSum>(rng.Below(3));
  PutHalf(frame, form.l4() + 6, 0);
  if (how == UdpSum::kZero) return;
  const uint32_t check = ~DatagramSum(frame, form, end) & 0xffff;
  const uint32_t wrong = how == UdpSum::kWrong ? 1 + rng.Below(0xfffe) : 0;
  PutHalf(frame, form.l4() + 6, (check == 0 ? 0xffff : check) ^ wrong);
}

void PutCrc(Bytes& frame, const Form& form, size_t end, CrcOrder order) {
  const uint32_t crc = FrameCrc(frame, form, end - 4);
  for (uint32_t i = 0; i < 4; ++i) {
    frame[end - 4 + i] = CrcByte(order, crc, i);
  }
}

void Finish(Bytes& frame, const Form& form, CrcOrder crc,
            sim::base::Random& rng, UdpSum how) {
  const size_t l4 = form.l4(), end = frame.size();
  if (form.ipv6) {
    PutHalf(frame, form.l3 + 4, end - l4);
  } else {
    PutHalf(frame, form.l3 + 2, end - form.l3);
    PutHalf(frame, form.l3 + 10, 0);
    PutHalf(frame, form.l3 + 10, ~OnesSum(frame.data() + form.l3, 20));
  }
  if (!form.native) PutHalf(frame, l4 + 4, end - l4);
  if (crc != CrcOrder::kNone && end >= form.pds() + 4)
    PutCrc(frame, form, end, crc);
  PutUdpSum(frame, form, end, how, rng);
  // Padding is not always zero.
  while (frame.size() < 60) {
    frame.push_back(static_cast<uint8_t>(rng.Chance(0.5) ? 0 : rng.Next()));
  }
}

void InsertTag(Bytes& frame, uint16_t vid, sim::base::Random& rng) {
  Bytes tag(4);
  wire::Vlan{.tpid = kTag,
             .pcp = static_cast<uint8_t>(rng.Below(8)),
             .dei = static_cast<uint8_t>(rng.Below(2)),
             .vid = vid}
      .Encode(tag.data());
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
}

Built Build(sim::base::Random& rng, const Shape& shape,
            const contract::PortCfg& port, UdpSum how) {
  Built built;
  Bytes& out = built.frame;
  const bool ipv6 = port.ipv6;
  Append(out, wire::Ethernet{.destination = rng.Next() & 0xffffffffffff,
                             .source = rng.Next() & 0xffffffffffff,
                             .ethertype = ipv6 ? kIpv6 : kIpv4});
  if (port.vlan || rng.Chance(0.2)) InsertTag(out, port.vlan, rng);
  const bool native = port.ip_protocol != 0;
  const uint8_t protocol = native ? port.ip_protocol : 17;
  built.form = {.ipv6 = ipv6, .l3 = out.size(), .native = native};
  const auto dscp = static_cast<uint8_t>(rng.Below(64));
  const auto ecn = static_cast<uint8_t>(rng.Below(4));
  if (ipv6) {
    wire::Ipv6 ip;
    ip.version = 6;
    ip.dscp = dscp;
    ip.ecn = ecn;
    ip.flow_label = static_cast<uint32_t>(rng.Next()) & 0xfffff;
    ip.next_header = protocol;
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
    ip.protocol = protocol;
    ip.source = static_cast<uint32_t>(rng.Next());
    ip.destination = static_cast<uint32_t>(port.local_fa_lo);
    Append(out, ip);
  }
  const auto entropy = static_cast<uint16_t>(rng.Next());
  if (native) {
    Append(out, wire::Entropy{.entropy = entropy,
                              .rsvd0 = static_cast<uint16_t>(rng.Next())});
  } else {
    Append(out, wire::Udp{.source_port = entropy,
                          .destination_port = port.udp_port});
  }
  const Bytes datagram = DatagramMaker(rng, shape, port).Make();
  out.insert(out.end(), datagram.begin(), datagram.end());
  built.end = out.size();
  Finish(out, built.form, port.crc, rng, how);
  return built;
}

Bytes GoodFrame(sim::base::Random& rng, const Shape& shape,
                const contract::PortCfg& port) {
  return Build(rng, shape, port).frame;
}

Bytes NeighborFrame(sim::base::Random& rng, const contract::PortCfg& port,
                    bool arp, uint8_t type) {
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

Shape RandomShape(sim::base::Random& rng, const contract::PortCfg& port) {
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

Bytes Trimmed(const Built& built, uint8_t dscp, size_t kept, bool rewrites_udp,
              sim::base::Random& rng) {
  Bytes frame = built.frame;
  const Form& form = built.form;
  const size_t l4 = form.l4();
  frame.resize(std::min(built.end, l4 + kept));
  const size_t length = frame.size() - l4;
  if (form.ipv6) {
    const uint16_t first = Half(frame, form.l3);
    PutHalf(frame, form.l3, (first & 0xf03f) | dscp << 6);
    PutHalf(frame, form.l3 + 4, length);
  } else {
    frame[form.l3 + 1] =
        static_cast<uint8_t>(dscp << 2 | (frame[form.l3 + 1] & 3));
    PutHalf(frame, form.l3 + 2, frame.size() - form.l3);
    PutHalf(frame, form.l3 + 10, 0);
    PutHalf(frame, form.l3 + 10, ~OnesSum(frame.data() + form.l3, 20));
  }
  if (rewrites_udp && !form.native) PutHalf(frame, l4 + 4, length);
  while (frame.size() < 60) frame.push_back(static_cast<uint8_t>(rng.Next()));
  return frame;
}

Bytes Mutated(Built built, const contract::PortCfg& port,
              sim::base::Random& rng) {
  Bytes& frame = built.frame;
  const Form& form = built.form;
  const auto below = [&](size_t limit) {
    return rng.Below(static_cast<uint32_t>(limit));
  };
  const auto flip = [&](size_t at) {
    frame[at] ^= static_cast<uint8_t>(1u << rng.Below(8));
  };
  const auto repair = [&] { Finish(frame, form, port.crc, rng); };
  const size_t pds = form.pds();
  const size_t headers = std::min<size_t>(frame.size(), pds + 56);
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
      frame[pds + below(headers - pds)] = static_cast<uint8_t>(rng.Next());
      repair();
      break;
    case 7:  // Another length, all repaired.
      frame.resize(pds + 2 + below(frame.size() - pds - 1));
      repair();
      break;
    case 8:  // A bit that the UDP checksum hides.
      flip(pds + below(built.end - pds));
      PutUdpSum(frame, form, built.end, UdpSum::kRight, rng);
      break;
    case 9:  // A UDP checksum of any kind.
      PutUdpSum(frame, form, built.end, UdpSum::kAny, rng);
      break;
    default: {  // A tag, perhaps the second one.
      const uint16_t vids[] = {0, port.vlan, 77};
      InsertTag(frame, vids[rng.Below(3)], rng);
      break;
    }
  }
  return std::move(frame);
}

}  // namespace heddle::test
