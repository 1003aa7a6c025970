// SPDX-License-Identifier: Apache-2.0
#include "tools/heddle/frame.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"

namespace heddle::tool {
namespace {

namespace text = contract::text;
namespace wire = contract::wire;

// Source: IEEE 802 and IANA.
constexpr uint16_t kEtherIpv4 = 0x0800;
constexpr uint16_t kEtherIpv6 = 0x86dd;
constexpr uint16_t kEtherVlan = 0x8100;
constexpr uint8_t kUdpProtocol = 17;

// Byte of `header` where its field `name` starts.
size_t PlaceOf(const text::Header& header, std::string_view name) {
  const auto field =
      std::find_if(header.fields.begin(), header.fields.end(),
                   [&](const text::Field& f) { return f.name == name; });
  return field->bit / 8U;
}

bool IsRendezvous(contract::SesOpcode opcode) {
  return opcode == contract::SesOpcode::kRendezvousSend ||
         opcode == contract::SesOpcode::kRendezvousTsend;
}

bool IsAtomic(contract::SesOpcode opcode) {
  using contract::SesOpcode;
  return opcode == SesOpcode::kAtomic || opcode == SesOpcode::kFetchingAtomic ||
         opcode == SesOpcode::kTsendAtomic ||
         opcode == SesOpcode::kTsendFetchAtomic;
}

bool IsCompareAndSwap(contract::AmoOpcode opcode) {
  return opcode >= contract::AmoOpcode::kCswap &&
         opcode <= contract::AmoOpcode::kCswapGt;
}

// Takes a frame apart from its first byte on.
class Decoder {
 public:
  Decoder(Bytes frame, size_t wire_bytes, const FrameForm& form)
      : frame_(frame), whole_(frame.size() >= wire_bytes), form_(form) {}

  DecodedFrame Run() {
    const uint16_t ethertype = ReadEthernet();
    bool goes_on = false;
    if (ethertype == kEtherIpv4) {
      goes_on = ReadIpv4();
    } else if (ethertype == kEtherIpv6) {
      goes_on = ReadIpv6();
    }
    if (goes_on && (protocol_ == kUdpProtocol ? ReadUdp() : ReadEntropy())) {
      out_.is_uet = true;
      if (ReadPds()) {
        out_.payload_offset = at_;
        out_.payload_bytes = end_ - at_;
        CheckPayloadLength();
      }
    }
    // The trailer was found before the headers.
    if (trailer_ != 0) {
      out_.layers.push_back({&text::kCrcTrailer, trailer_});
    }
    CheckReserved();
    return std::move(out_);
  }

 private:
  Bytes Rest() const { return frame_.subspan(at_); }

  void Complain(std::string what) { out_.problems.push_back(std::move(what)); }

  // The next header, if there is room for it before `end_`.
  const uint8_t* Take(const text::Header& header) {
    if (end_ - at_ < header.bytes) {
      Complain(std::string(whole_ ? "ends before its header "
                                  : "was captured only before its header ") +
               header.name + " does");
      return nullptr;
    }
    out_.layers.push_back({&header, at_});
    const uint8_t* const bytes = frame_.data() + at_;
    at_ += header.bytes;
    return bytes;
  }

  // EtherType of what follows; 0 when the frame is too short.
  uint16_t ReadEthernet() {
    const uint8_t* const bytes = Take(text::kEthernet);
    if (bytes == nullptr) {
      return 0;
    }
    uint16_t ethertype = wire::Ethernet::Decode(bytes).ethertype;
    if (ethertype != kEtherVlan) {
      return ethertype;
    }
    // The tag stands in place of the EtherType, which follows it.
    constexpr size_t kTypeBytes = sizeof(ethertype);
    at_ -= kTypeBytes;
    if (Take(text::kVlan) == nullptr || end_ - at_ < kTypeBytes) {
      return 0;
    }
    ethertype = static_cast<uint16_t>(frame_[at_] << 8 | frame_[at_ + 1]);
    at_ += kTypeBytes;
    return ethertype;
  }

  // False when a datagram does not follow.
  bool ReadIpv4() {
    const size_t start = at_;
    const uint8_t* const bytes = Take(text::kIpv4);
    if (bytes == nullptr) {
      return false;
    }
    const auto ip = wire::Ipv4::Decode(bytes);
    const size_t header_bytes = size_t{ip.ihl} * 4;
    if (ip.version != 4 || header_bytes < wire::Ipv4::kBytes) {
      Complain("has a bad IPv4 header");
      return false;
    }
    if (start + header_bytes > end_) {
      Complain("ends before its IPv4 options do");
      return false;
    }
    at_ = start + header_bytes;
    InternetChecksum sum;
    sum.Add(frame_.subspan(start, header_bytes));
    out_.ip_checksum = sum.Value() == 0 ? Check::kGood : Check::kBad;
    if (out_.ip_checksum == Check::kBad) {
      Complain("has a wrong IPv4 header checksum");
    }
    addresses_ = frame_.subspan(start + 12, 8);
    constexpr uint8_t kMoreFragments = 1;
    if ((ip.flags & kMoreFragments) != 0 || ip.fragment_offset != 0) {
      return false;
    }
    return IsOurs(ip.protocol) && EndAt(start + ip.total_length);
  }

  // Parses protocols that may carry UET: UDP, and UET itself.
  bool IsOurs(uint8_t protocol) {
    protocol_ = protocol;
    return protocol == kUdpProtocol || protocol == form_.ip_protocol;
  }

  bool ReadIpv6() {
    const uint8_t* const bytes = Take(text::kIpv6);
    if (bytes == nullptr) {
      return false;
    }
    const auto ip = wire::Ipv6::Decode(bytes);
    if (ip.version != 6) {
      Complain("has a bad IPv6 header");
      return false;
    }
    addresses_ = frame_.subspan(at_ - 32, 32);
    return IsOurs(ip.next_header) && EndAt(at_ + ip.payload_length);
  }

  // The datagram ends there; what follows in the frame is padding.
  bool EndAt(size_t end) {
    if (end <= end_) {
      end_ = end;
    } else if (whole_) {
      Complain("is shorter than the length in its IP header");
      return false;
    }
    return end_ >= at_;
  }

  bool ReadUdp() {
    const size_t start = at_;
    const uint8_t* const bytes = Take(text::kUdp);
    if (bytes == nullptr) {
      return false;
    }
    const auto udp = wire::Udp::Decode(bytes);
    if (udp.destination_port != contract::kUetUdpPort) {
      return false;
    }
    if (udp.length < wire::Udp::kBytes ||
        (whole_ && start + udp.length > end_)) {
      Complain("has a wrong UDP length");
      return false;
    }
    end_ = std::min(end_, start + udp.length);
    CheckUdp(udp, frame_.subspan(start, end_ - start));
    std::array<uint8_t, wire::Udp::kBytes> header{};
    wire::Udp unchecked = udp;
    unchecked.checksum = 0;
    unchecked.Encode(header.data());
    return !form_.has_crc || SplitCrc(header);
  }

  bool ReadEntropy() {
    const uint8_t* const bytes = Take(text::kEntropy);
    return bytes != nullptr &&
           (!form_.has_crc || SplitCrc({bytes, wire::Entropy::kBytes}));
  }

  void CheckUdp(const wire::Udp& udp, Bytes datagram) {
    if (udp.checksum == 0) {
      return;
    }
    if (!whole_) {
      out_.udp_checksum = Check::kNotChecked;
      return;
    }
    InternetChecksum sum;
    sum.Add(addresses_);
    sum.AddWord(kUdpProtocol);
    sum.AddWord(udp.length);
    sum.Add(datagram);
    // A wrong one is no problem: receivers ignore it.
    out_.udp_checksum = sum.Value() == 0 ? Check::kGood : Check::kBad;
  }

  // Checks the CRC and removes it from the end. It covers `header` from the end
  // of the addresses on.
  bool SplitCrc(Bytes header) {
    if (!whole_) {
      out_.crc = Check::kNotChecked;
      return true;
    }
    if (end_ - at_ < wire::CrcTrailer::kBytes) {
      Complain("has no room for a CRC");
      return false;
    }
    trailer_ = end_ - wire::CrcTrailer::kBytes;
    Crc32c crc;
    crc.Add(addresses_);
    crc.Add(header);
    crc.Add(frame_.subspan(at_, trailer_ - at_));
    using contract::CrcOrder;
    const uint32_t sent =
        wire::CrcTrailer::Decode(frame_.data() + trailer_).crc;
    out_.crc_order = sent == crc.Value() ? CrcOrder::kMsbFirst
                     : __builtin_bswap32(sent) == crc.Value()
                         ? CrcOrder::kLsbFirst
                         : CrcOrder::kNone;
    out_.crc = out_.crc_order == CrcOrder::kNone ? Check::kBad : Check::kGood;
    if (out_.crc == Check::kBad) {
      Complain("has a wrong CRC");
    }
    end_ = trailer_;
    return true;
  }

  bool ReadPds() {
    if (end_ - at_ < wire::PdsPrologue::kBytes) {
      Complain("has no PDS header");
      return false;
    }
    const auto prologue = wire::PdsPrologue::Decode(frame_.data() + at_);
    using contract::PdsType;
    switch (prologue.type) {
      case PdsType::kRudReq:
      case PdsType::kRodReq:
        return Take(text::kPdsRequest) != nullptr && ReadSes(prologue.next_hdr);
      case PdsType::kRudCcReq:
      case PdsType::kRodCcReq:
        return Take(text::kPdsRequest) != nullptr &&
               Take(text::kPdsCcState) != nullptr && ReadSes(prologue.next_hdr);
      case PdsType::kUudReq:
        return Take(text::kPdsUud) != nullptr && ReadSes(prologue.next_hdr);
      case PdsType::kAck:
        return Take(text::kPdsAck) != nullptr && ReadSes(prologue.next_hdr);
      case PdsType::kAckCc:
        return Take(text::kPdsAck) != nullptr &&
               Take(text::kPdsAckCc) != nullptr && ReadSes(prologue.next_hdr);
      case PdsType::kNack:
        return Take(text::kPdsNack) != nullptr;
      case PdsType::kCp:
        return ReadCp();
      case PdsType::kTss:
      case PdsType::kRudiReq:
      case PdsType::kRudiResp:
      case PdsType::kAckCcx:
      case PdsType::kNackCcx:
        break;
    }
    const auto type = static_cast<unsigned>(prologue.type);
    const char* const name = NameOf(text::kPdsTypeValues, type);
    Complain("has PDS type " +
             (name != nullptr ? std::string(name) : std::to_string(type)) +
             ", which is not decoded");
    return true;
  }

  bool ReadCp() {
    const uint8_t* const bytes = Take(text::kPdsCp);
    if (bytes == nullptr ||
        wire::PdsCp::Decode(bytes).cp_type != contract::CpType::kNegotiation) {
      return bytes != nullptr;
    }
    at_ -= wire::PdsCp::kBytes - PlaceOf(text::kPdsCp, "payload");
    return Take(text::kPdsNegotiation) != nullptr;
  }

  bool ReadSes(contract::NextHdr next) {
    using contract::NextHdr;
    switch (next) {
      case NextHdr::kNone:
        return true;
      case NextHdr::kRequestSmall:
        return ReadSesRequest(text::kSesSmall);
      case NextHdr::kRequestMedium:
        return ReadSesRequest(text::kSesMedium);
      case NextHdr::kRequestStd:
        return ReadSesRequest(text::kSesStd);
      case NextHdr::kResponse:
        return Take(text::kSesResponse) != nullptr;
      case NextHdr::kResponseData:
        return Take(text::kSesResponseData) != nullptr;
      case NextHdr::kResponseDataSmall:
        return Take(text::kSesResponseDataSmall) != nullptr;
    }
    Complain("has next_hdr " + std::to_string(static_cast<unsigned>(next)) +
             ", which is not decoded");
    return true;
  }

  // With what its opcode adds.
  bool ReadSesRequest(const text::Header& layout) {
    const size_t start = at_;
    const uint8_t* const bytes = Take(layout);
    if (bytes == nullptr) {
      return false;
    }
    // The opcode is in the same place of all three.
    const auto opcode = static_cast<contract::SesOpcode>(bytes[0] & 0x3f);
    if (&layout == &text::kSesStd) {
      ShowTokens(opcode, start);
      if (IsRendezvous(opcode)) {
        return Take(text::kSesRendezvous) != nullptr;
      }
    }
    if (!IsAtomic(opcode)) {
      return true;
    }
    const uint8_t* const atomic = Take(text::kSesAtomic);
    if (atomic == nullptr) {
      return false;
    }
    return !IsCompareAndSwap(wire::SesAtomic::Decode(atomic).amo_opcode) ||
           Take(text::kSesCswap) != nullptr;
  }

  // Restart tokens stand in a field of the standard request at `start`.
  void ShowTokens(contract::SesOpcode opcode, size_t start) {
    using contract::SesOpcode;
    if (opcode == SesOpcode::kDeferrableSend ||
        opcode == SesOpcode::kDeferrableTsend) {
      out_.layers.push_back(
          {&text::kSesTokens, start + PlaceOf(text::kSesStd, "buffer_offset")});
    } else if (opcode == SesOpcode::kDeferrableRtr) {
      out_.layers.push_back(
          {&text::kSesTokens, start + PlaceOf(text::kSesStd, "match_bits")});
    }
  }

  void CheckPayloadLength() {
    for (const Layer& layer : out_.layers) {
      // IPv6 has a field of that name too.
      const bool is_ses =
          std::string_view(layer.header->name).starts_with("ses_");
      if (is_ses && whole_) {
        CheckPayloadLength(layer);
      }
    }
  }

  void CheckPayloadLength(const Layer& layer) {
    const Bytes header = frame_.subspan(layer.offset, layer.header->bytes);
    // Size of the data that a READ requests.
    const bool is_read = layer.header == &text::kSesStd &&
                         wire::SesStd::Decode(header.data()).opcode ==
                             contract::SesOpcode::kRead;
    for (const text::Field& field : layer.header->fields) {
      if (std::strcmp(field.name, "payload_length") == 0 &&
          IsPresent(header, *layer.header, field)) {
        ComparePayload(is_read ? 0 : FieldBits(header, field));
      }
    }
  }

  void ComparePayload(uint64_t said) {
    // The operands of a compare-and-swap count.
    const bool operands = out_.layers.back().header == &text::kSesCswap;
    const uint64_t found =
        out_.payload_bytes + (operands ? wire::SesCswap::kBytes : 0);
    if (said != found) {
      Complain("has a payload of " + std::to_string(found) +
               " bytes, its header specifies " + std::to_string(said));
    }
  }

  void CheckReserved() {
    for (const Layer& layer : out_.layers) {
      const Bytes header = frame_.subspan(layer.offset, layer.header->bytes);
      for (const text::Field& field : layer.header->fields) {
        if (field.is_reserved && IsPresent(header, *layer.header, field) &&
            FieldBits(header, field) != 0) {
          Complain(std::string("has reserved bits set in ") +
                   layer.header->name + "." + field.name);
        }
      }
    }
  }

  const Bytes frame_;
  const bool whole_;
  const FrameForm form_;
  size_t at_ = 0;
  size_t end_ = frame_.size();
  Bytes addresses_;       // Source and destination of the IP header.
  uint8_t protocol_ = 0;  // IP protocol number.
  size_t trailer_ = 0;    // 0: none.
  DecodedFrame out_;
};

}  // namespace

DecodedFrame DecodeFrame(Bytes frame, size_t wire_bytes,
                         const FrameForm& form) {
  return Decoder(frame, wire_bytes, form).Run();
}

uint64_t FieldBits(Bytes header, const text::Field& field) {
  uint64_t value = 0;
  for (size_t i = 0; i < field.bits; ++i) {
    const size_t bit = field.bit + i;
    value = value << 1 | (header[bit / 8] >> (7 - bit % 8) & 1U);
  }
  const uint64_t sign = uint64_t{1} << (field.bits - 1U) % 64;
  if (field.is_signed && (value & sign) != 0) {
    value |= ~(sign - 1);
  }
  return value;
}

bool IsPresent(Bytes header, const text::Header& layout,
               const text::Field& field) {
  if (field.selector == nullptr) {
    return true;
  }
  const auto selector =
      std::find_if(layout.fields.begin(), layout.fields.end(),
                   [&](const text::Field& candidate) {
                     return std::strcmp(candidate.name, field.selector) == 0;
                   });
  return selector != layout.fields.end() &&
         FieldBits(header, *selector) == field.selected;
}

const char* NameOf(std::span<const text::Value> values, uint64_t value) {
  for (const text::Value& candidate : values) {
    if (candidate.value == value) {
      return candidate.name;
    }
  }
  return nullptr;
}

}  // namespace heddle::tool
