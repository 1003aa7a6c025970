// SPDX-License-Identifier: Apache-2.0
#include "tests/rtl/net/rx_reference.h"

#include <algorithm>
#include <optional>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/rtl/crc32c.h"
#include "tests/rtl/net/stream.h"

namespace heddle::test {
namespace {

namespace wire = contract::wire;
using contract::CrcOrder;
using contract::NextHdr;
using contract::PdsType;
using contract::Statistic;

constexpr size_t kMaxPayload = 8192;  // Largest payload MTU.
constexpr uint8_t kUdp = 17, kIcmpv6 = 58;
constexpr uint8_t kNeighborSolicitation = 135, kNeighborAdvertisement = 136;

Verdict Drop(Statistic reason) {
  return {.reason = reason, .fields = {}, .payload = {}};
}

// Reads one frame, layer by layer. A layer that ends the reading says how.
class Reader {
 public:
  Reader(const Bytes& frame, const contract::PortCfg& port, const Trims& trims)
      : frame_(frame), port_(port), trims_(trims) {
    form_.native = port.ip_protocol != 0;
  }

  Verdict Read() {
    if (auto end = ReadLink()) return *end;
    if (auto end = ReadIp()) return *end;
    if (auto end = trimmed() ? ReadTrimmed() : ReadDatagram()) return *end;
    if (auto end = CheckAddress()) return *end;
    if (auto end = CheckSums()) return *end;
    if (trimmed()) return JudgeTrimmed();
    if (!known()) return Drop(Statistic::kDropPdsType);
    left_ -= header_bytes() + trailer();
    NoteLowerLayers();
    NotePds();
    if (auto end = NoteSes()) return *end;
    std::erase_if(f_, [](const auto& field) { return field.second == 0; });
    return {.reason = Statistic::kRxFrames, .fields = f_, .payload = payload_};
  }

 private:
  using End = std::optional<Verdict>;

  static Verdict Quiet() {
    Verdict verdict;
    verdict.quiet = true;
    return verdict;
  }

  uint8_t protocol() const {
    return port_.ip_protocol != 0 ? port_.ip_protocol : kUdp;
  }

  size_t trailer() const { return port_.crc != CrcOrder::kNone ? 4 : 0; }

  End ReadLink() {
    if (frame_.size() < 14) return Drop(Statistic::kDropTruncated);
    eth_ = wire::Ethernet::Decode(frame_.data());
    uint16_t ethertype = eth_.ethertype;
    uint16_t vid = 0;
    if (ethertype == kTag) {
      if (frame_.size() < 18) return Drop(Statistic::kDropTruncated);
      vid = wire::Vlan::Decode(frame_.data() + 12).vid;
      ethertype = Half(frame_, 16);
      form_.l3 = 18;
    }
    if (vid != port_.vlan) return Drop(Statistic::kDropVlan);
    if (ethertype == kArp) return Quiet();
    if (ethertype != kIpv4 && ethertype != kIpv6) {
      return Drop(Statistic::kDropEthertype);
    }
    form_.ipv6 = ethertype == kIpv6;
    return std::nullopt;
  }

  End ReadIp() {
    if (frame_.size() < form_.l4()) return Drop(Statistic::kDropTruncated);
    bool good = false;
    if (form_.ipv6) {
      v6_ = wire::Ipv6::Decode(frame_.data() + form_.l3);
      end_ = form_.l4() + v6_.payload_length;
      good = v6_.version == 6 && v6_.next_header == protocol();
    } else {
      v4_ = wire::Ipv4::Decode(frame_.data() + form_.l3);
      end_ = form_.l3 + v4_.total_length;
      good = v4_.version == 4 && v4_.ihl == 5 && !(v4_.flags & 1) &&
             v4_.fragment_offset == 0 && v4_.protocol == protocol();
    }
    if (end_ > frame_.size()) return Drop(Statistic::kDropTruncated);
    if (IsNeighborDiscovery()) return Quiet();
    return good ? End() : Drop(Statistic::kDropIpHeader);
  }

  bool IsNeighborDiscovery() const {
    if (!form_.ipv6 || v6_.version != 6 || v6_.next_header != kIcmpv6 ||
        v6_.payload_length == 0) {
      return false;
    }
    const uint8_t type = frame_[form_.l4()];
    return type == kNeighborSolicitation || type == kNeighborAdvertisement;
  }

  uint64_t trimmed() const {
    const uint8_t dscp = form_.ipv6 ? v6_.dscp : v4_.dscp;
    if (dscp == 0) return 0;
    return dscp == trims_.path ? 1 : dscp == trims_.lasthop ? 2 : 0;
  }

  // UDP or entropy header and 16 bytes more are left.
  End ReadTrimmed() {
    if (end_ < form_.pds() + 16) return Drop(Statistic::kDropTruncated);
    NoteLayer4();
    prologue_ = wire::PdsPrologue::Decode(pds_);
    return std::nullopt;
  }

  Verdict JudgeTrimmed() {
    if (prologue_.type != PdsType::kRodReq &&
        prologue_.type != PdsType::kRudReq) {
      return Drop(Statistic::kDropTrimmed);
    }
    NoteLowerLayers();
    NoteToTarget(wire::PdsRequest::Decode(pds_));
    f_["trim"] = trimmed();
    std::erase_if(f_, [](const auto& field) { return field.second == 0; });
    return {.reason = Statistic::kRxFrames, .fields = f_, .payload = {}};
  }

  // The layer's own bytes are there.
  void NoteLayer4() {
    const uint8_t* const l4 = frame_.data() + form_.l4();
    if (form_.native) {
      udp_.source_port = wire::Entropy::Decode(l4).entropy;
    } else {
      udp_ = wire::Udp::Decode(l4);
    }
    pds_ = frame_.data() + form_.pds();
  }

  // And which packet of the profile it is.
  End ReadDatagram() {
    if (end_ < form_.pds() + 2 + trailer()) {
      return Drop(Statistic::kDropTruncated);
    }
    NoteLayer4();
    if (!form_.native && udp_.length != end_ - form_.l4()) {
      return Drop(Statistic::kDropTruncated);
    }
    left_ = end_ - form_.pds();
    Classify();
    return known() && left_ < header_bytes() + trailer()
               ? Drop(Statistic::kDropTruncated)
               : End();
  }

  void Classify() {
    prologue_ = wire::PdsPrologue::Decode(pds_);
    const PdsType type = prologue_.type;
    const NextHdr next = prologue_.next_hdr;
    const bool to_target = type == PdsType::kRodReq || type == PdsType::kRudReq;
    cc_ = type == PdsType::kAckCc;
    const bool answer = type == PdsType::kAck || cc_;
    request_ = to_target && next == NextHdr::kRequestStd;
    response_ = (to_target || answer) && next == NextHdr::kResponse;
    data_ = (to_target || answer) && next == NextHdr::kResponseData;
    back_ = to_target && (response_ || data_);
    ack_ = answer && (response_ || data_ || next == NextHdr::kNone);
    nack_ = type == PdsType::kNack && next == NextHdr::kNone &&
            !(prologue_.flags & 8);
    cp_ = type == PdsType::kCp;
  }

  bool known() const { return request_ || back_ || ack_ || nack_ || cp_; }

  bool negotiates() const {
    return static_cast<uint8_t>(prologue_.next_hdr) ==
           static_cast<uint8_t>(contract::CpType::kNegotiation);
  }

  // Of ACK_CC, behind the ACK.
  size_t extra() const { return ack_ && cc_ ? wire::PdsAckCc::kBytes : 0u; }

  size_t header_bytes() const {
    if (request_) return 56;
    if (data_) return 32 + extra();
    if (response_) return 24 + extra();
    if (cp_ && negotiates()) return 20;
    return ack_ ? 12 + extra() : 16;
  }

  bool Ipv4SumFits() const {
    return OnesSum(frame_.data() + form_.l3, 20) == 0xffff;
  }

  End CheckAddress() const {
    if (!form_.ipv6 && !Ipv4SumFits()) {
      return Drop(Statistic::kDropIpChecksum);
    }
    const bool ours = form_.ipv6 ? v6_.destination_hi == port_.local_fa_hi &&
                                       v6_.destination_lo == port_.local_fa_lo
                                 : v4_.destination ==
                                       static_cast<uint32_t>(port_.local_fa_lo);
    return ours && form_.ipv6 == (port_.ipv6 != 0)
               ? End()
               : Drop(Statistic::kDropIpAddress);
  }

  End CheckSums() const {
    if (!form_.native && udp_.destination_port != port_.udp_port) {
      return Drop(Statistic::kDropUdpPort);
    }
    if (port_.crc == CrcOrder::kNone || trimmed()) return std::nullopt;
    const uint32_t crc = FrameCrc(frame_, form_, end_ - 4);
    for (uint32_t i = 0; i < 4; ++i) {
      if (frame_[end_ - 4 + i] != CrcByte(port_.crc, crc, i)) {
        return Drop(Statistic::kDropCrc);
      }
    }
    return std::nullopt;
  }

  void NoteLowerLayers() {
    f_["ipv6"] = form_.ipv6;
    f_["source_fa_hi"] = form_.ipv6 ? v6_.source_hi : 0;
    f_["source_fa_lo"] = form_.ipv6 ? v6_.source_lo : v4_.source;
    f_["source_mac"] = eth_.source;
    f_["source_port"] = udp_.source_port;
    f_["dscp"] = form_.ipv6 ? v6_.dscp : v4_.dscp;
    f_["ce"] = (form_.ipv6 ? v6_.ecn : v4_.ecn) == 3;
    f_["pds_type"] = static_cast<uint64_t>(prologue_.type);
    f_["next_hdr"] = static_cast<uint64_t>(prologue_.next_hdr);
  }

  void NotePds() {
    if (request_ || back_) {
      NoteToTarget(wire::PdsRequest::Decode(pds_));
    } else if (ack_) {
      NoteAck(wire::PdsAck::Decode(pds_));
    } else if (nack_) {
      NoteNack(wire::PdsNack::Decode(pds_));
    } else {
      NoteControl(wire::PdsCp::Decode(pds_));
    }
  }

  // What requests and control packets have in common.
  template <typename Header>
  void NoteSequenced(const Header& h) {
    f_["retx"] = h.retx;
    f_["ar"] = h.ar;
    f_["syn"] = h.syn;
    f_["psn"] = h.psn;
    f_["spdcid"] = h.spdcid;
    f_["dpdcid"] = h.dpdcid;
    f_["psn_offset"] = h.psn_offset;
  }

  void NoteToTarget(const wire::PdsRequest& h) {
    NoteSequenced(h);
    f_["offset"] = static_cast<uint16_t>(h.clear_psn_offset);
  }

  void NoteAck(const wire::PdsAck& h) {
    f_["retx"] = h.retx;
    f_["m"] = h.m;
    f_["probe"] = h.p;
    f_["req"] = static_cast<uint64_t>(h.req);
    f_["offset"] =
        h.p ? h.probe_opaque : static_cast<uint16_t>(h.ack_psn_offset);
    f_["psn"] = h.cack_psn;
    f_["spdcid"] = h.spdcid;
    f_["dpdcid"] = h.dpdcid;
    if (!cc_) return;
    const auto cc = wire::PdsAckCc::Decode(pds_ + wire::PdsAck::kBytes);
    f_["sack_offset"] = static_cast<uint16_t>(cc.sack_psn_offset);
    f_["match_bits"] = cc.sack_bitmap;
    f_["nack_code"] = cc.mpr;
    if (cc.cc_type == 0) {
      f_["header_data"] = uint64_t{cc.service_time} << 48 |
                          uint64_t{cc.rc} << 47 |
                          uint64_t{cc.rcv_cwnd_pend} << 40 |
                          uint64_t{cc.rcvd_bytes} << 16 | cc.nscc_ooo_count;
    }
  }

  void NoteNack(const wire::PdsNack& h) {
    f_["retx"] = h.retx;
    f_["nack_code"] = static_cast<uint64_t>(h.nack_code);
    f_["psn"] = h.nack_psn;
    f_["spdcid"] = h.spdcid;
    f_["dpdcid"] = h.dpdcid;
    f_["pds_payload"] = h.payload;
  }

  void NoteControl(const wire::PdsCp& h) {
    NoteSequenced(h);
    f_["pds_payload"] = h.payload;
    f_["offset"] = h.probe_opaque;
  }

  End NoteSes() {
    if (request_) return NoteRequest(wire::SesStd::Decode(pds_ + 12));
    const uint8_t* const ses = pds_ + 12 + extra();
    if (data_) return NoteData(wire::SesResponseData::Decode(ses));
    if (response_) {
      const auto s = wire::SesResponse::Decode(ses);
      if (s.ver != 0) return Drop(Statistic::kDropSes);
      f_["response"] = static_cast<uint64_t>(s.opcode);
      f_["return_code"] = static_cast<uint64_t>(s.return_code);
      f_["message_id"] = s.message_id;
      f_["job_id"] = s.job_id;
    }
    return left_ != 0 ? Drop(Statistic::kDropSes) : End();
  }

  // Bytes that a READ packet asks for.
  uint64_t Asked(const wire::SesStd& s) const {
    return s.som ? std::min<uint64_t>(s.request_length, port_.payload_mtu)
                 : s.payload_length;
  }

  bool LengthsFit(const wire::SesStd& s) const {
    const uint64_t mtu = port_.payload_mtu;
    if (left_ > mtu) return false;
    if (s.opcode == contract::SesOpcode::kRead) {
      const uint64_t asked = Asked(s);
      return left_ == 0 && asked <= mtu &&
             (s.som ||
              ((asked > 0 || s.ie != 0) &&
               uint64_t{s.message_offset} + asked <= s.request_length));
    }
    if (s.som) {
      return left_ == (s.ie ? 0 : std::min<uint64_t>(s.request_length, mtu));
    }
    return (left_ == s.payload_length || (s.ie && left_ == 0)) &&
           uint64_t{s.message_offset} + left_ <= s.request_length;
  }

  End NoteRequest(const wire::SesStd& s) {
    f_["ses_ver"] = s.ver;
    const bool read = s.opcode == contract::SesOpcode::kRead;
    f_["contradicts"] = LengthsFit(s) ? 0 : 1;
    f_["other_gen"] = s.ri_generation != 0 ? 1 : 0;
    f_["opcode"] = static_cast<uint64_t>(s.opcode);
    f_["dc"] = s.dc;
    f_["ie"] = s.ie;
    f_["rel"] = s.rel;
    f_["hd"] = s.hd;
    // The last packet of a READ follows from its length.
    f_["eom"] =
        s.eom || (read && s.ie == 0 &&
                  uint64_t{s.message_offset} + Asked(s) == s.request_length);
    f_["som"] = s.som;
    f_["message_id"] = s.message_id;
    f_["job_id"] = s.job_id;
    f_["pid_on_fep"] = s.pid_on_fep;
    f_["resource_index"] = s.resource_index;
    f_["buffer_offset"] = s.buffer_offset;
    f_["initiator"] = s.initiator;
    f_["match_bits"] = s.match_bits;
    f_["header_data"] = s.header_data;
    f_["message_offset"] = s.message_offset;
    f_["request_length"] = s.request_length;
    const size_t kept = left_ > kMaxPayload ? 0 : left_;
    f_["payload_bytes"] = kept;
    f_["read_bytes"] = read ? Asked(s) % (1 << 14) : 0;
    payload_.assign(pds_ + 56, pds_ + 56 + kept);
    return std::nullopt;
  }

  End NoteData(const wire::SesResponseData& s) {
    if (s.ver != 0 || left_ > port_.payload_mtu || left_ != s.payload_length ||
        uint64_t{s.message_offset} + left_ > s.modified_length) {
      return Drop(Statistic::kDropSes);
    }
    f_["response"] = static_cast<uint64_t>(s.opcode);
    f_["return_code"] = static_cast<uint64_t>(s.return_code);
    f_["message_id"] = s.read_request_message_id;
    f_["job_id"] = s.job_id;
    f_["message_offset"] = s.message_offset;
    f_["request_length"] = s.modified_length;
    f_["payload_bytes"] = left_;
    const uint8_t* const data = pds_ + 32 + extra();
    payload_.assign(data, data + left_);
    return std::nullopt;
  }

  const Bytes& frame_;
  const contract::PortCfg& port_;
  const Trims& trims_;
  Form form_;
  wire::Ethernet eth_;
  wire::Ipv4 v4_;
  wire::Ipv6 v6_;
  wire::Udp udp_;
  size_t end_ = 0;  // Of the datagram.
  const uint8_t* pds_ = nullptr;
  size_t left_ = 0;  // From `pds_` on; in the end, of payload.
  wire::PdsPrologue prologue_;
  bool request_ = false, back_ = false, ack_ = false, nack_ = false,
       cp_ = false;
  bool cc_ = false, response_ = false, data_ = false;
  Fields f_;
  Bytes payload_;
};

}  // namespace

Verdict Judge(const Bytes& frame, bool mac_error, const contract::PortCfg& port,
              const Trims& trims) {
  return mac_error ? Drop(Statistic::kDropMacError)
                   : Reader(frame, port, trims).Read();
}

}  // namespace heddle::test
