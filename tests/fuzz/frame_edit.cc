// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/frame_edit.h"

#include <algorithm>
#include <array>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/rtl/crc32c.h"

namespace heddle::fuzz {
namespace {

namespace wire = contract::wire;

constexpr size_t kMaxFrame = 9216;

uint32_t Half(const sim::frame::Frame& frame, size_t at) {
  return uint32_t{frame[at]} << 8 | frame[at + 1];
}

void PutHalf(sim::frame::Frame* frame, size_t at, size_t value) {
  (*frame)[at] = static_cast<uint8_t>(value >> 8);
  (*frame)[at + 1] = static_cast<uint8_t>(value);
}

// Ones' complement sum of a range.
uint32_t Sum(const sim::frame::Frame& frame, size_t begin, size_t end,
             uint32_t sum) {
  for (size_t i = begin; i < end; ++i) {
    sum += uint32_t{frame[i]} << ((i - begin) % 2 == 0 ? 8 : 0);
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

// Behind the datagram, by the length of UDP or, without it, of IP; 0 when that
// does not fit.
size_t DatagramEnd(const Form& form, const sim::frame::Frame& frame) {
  const Layout layout(form);
  if (frame.size() < layout.pds) {
    return 0;
  }
  const size_t end = !form.native ? layout.l4 + Half(frame, layout.l4 + 4)
                     : form.ipv6  ? layout.l4 + Half(frame, layout.l3 + 4)
                                  : layout.l3 + Half(frame, layout.l3 + 2);
  return end <= frame.size() && end >= layout.pds ? end : 0;
}

// The packet at `pds` becomes one of the PDC that `mine` and `yours` name:
// these and its PSN are in the same places of all types with a PDC.
void Adopt(uint32_t psn, uint16_t mine, uint16_t yours, size_t pds,
           sim::frame::Frame* frame) {
  using contract::PdsType;
  if (frame->size() < pds + wire::PdsRequest::kBytes) {
    return;
  }
  const auto type = static_cast<PdsType>((*frame)[pds] >> 3);
  const bool back = type == PdsType::kAck || type == PdsType::kAckCc ||
                    type == PdsType::kNack;
  PutHalf(frame, pds + 4, psn >> 16);
  PutHalf(frame, pds + 6, psn & 0xffff);
  PutHalf(frame, pds + 8, back ? yours : mine);
  PutHalf(frame, pds + 10, back ? mine : yours);
}

}  // namespace

void FixLengths(const Form& form, sim::frame::Frame* frame) {
  const Layout layout(form);
  if (frame->size() < layout.pds) {
    return;
  }
  const size_t datagram = frame->size() - layout.l4;
  if (!form.native) {
    PutHalf(frame, layout.l4 + 4, datagram);
  }
  if (form.ipv6) {
    PutHalf(frame, layout.l3 + 4, datagram);
  } else {
    PutHalf(frame, layout.l3 + 2, frame->size() - layout.l3);
  }
}

void FixCrc(const Form& form, sim::frame::Frame* frame) {
  const Layout layout(form);
  const size_t end = DatagramEnd(form, *frame);
  if (form.crc == contract::CrcOrder::kNone ||
      end < layout.pds + contract::kCrcBytes) {
    return;
  }
  const size_t crc_at = end - contract::kCrcBytes;
  sim::frame::Frame covered(
      frame->begin() + static_cast<ptrdiff_t>(layout.source),
      frame->begin() + static_cast<ptrdiff_t>(crc_at));
  if (!form.native) {
    PutHalf(&covered, layout.l4 + 6 - layout.source, 0);
  }
  const uint32_t crc = test::Crc32c(covered);
  for (uint32_t i = 0; i < contract::kCrcBytes; ++i) {
    (*frame)[crc_at + i] = test::CrcByte(form.crc, crc, i);
  }
}

void FixIpChecksum(const Form& form, sim::frame::Frame* frame) {
  const Layout layout(form);
  if (form.ipv6 || frame->size() < layout.l4) {
    return;
  }
  PutHalf(frame, layout.l3 + 10, 0);
  PutHalf(frame, layout.l3 + 10,
          ~Sum(*frame, layout.l3, layout.l4, 0) & 0xffff);
}

bool Edit(const Form& form, Reader* input, sim::frame::Frame* frame) {
  const Layout layout(form);
  const uint8_t what = input->Byte();
  const sim::frame::Frame before = *frame;
  if ((what & 0x10) != 0) {  // Another length.
    const uint16_t bytes = input->Half();
    frame->resize(
        (what & 0x20) != 0
            ? std::min<size_t>(bytes, kMaxFrame)
            : std::min<size_t>(frame->size() + bytes % 64, kMaxFrame));
  }
  const std::array<size_t, 8> parts = {
      0,          layout.l3,       layout.l4,       layout.pds,
      layout.pds, layout.pds + 12, layout.pds + 12, frame->size() / 2};
  for (uint32_t i = 0; i < (what & 3U) + (what >> 7) * 4U; ++i) {
    const uint8_t where = input->Byte();
    const uint8_t value = input->Byte();
    const size_t at = parts[where >> 5] + (where & 0x1f);
    if (at < frame->size()) {
      (*frame)[at] = value;
    }
  }
  // Mostly whole, or else everything ends in the parser.
  const uint8_t fix = input->Byte();
  if ((fix & 3) != 1) {
    FixLengths(form, frame);
  }
  if ((fix & 0xc) != 4) {
    FixCrc(form, frame);
  }
  if ((fix & 0x30) == 0x10 && frame->size() >= layout.pds && !form.native) {
    PutHalf(frame, layout.l4 + 6, fix * 0x101U);  // Receivers ignore it.
  }
  if ((fix & 0xc0) != 0x40) {
    FixIpChecksum(form, frame);
  }
  // Without its CRC made new, a damaged frame must do nothing.
  return *frame != before &&
         (form.crc == contract::CrcOrder::kNone || (fix & 0xc) != 4);
}

sim::frame::Frame MakePacket(const Form& form, Reader* input,
                             const sim::frame::Frame& base) {
  const Layout layout(form);
  sim::frame::Frame frame(base.begin(),
                          base.begin() + static_cast<ptrdiff_t>(layout.pds));
  const auto append = [&frame](const auto& header) {
    const size_t at = frame.size();
    frame.resize(at + header.kBytes);
    header.Encode(frame.data() + at);
  };
  const auto old = wire::PdsRequest::Decode(base.data() + layout.pds);
  const uint8_t kind = input->Byte();
  const uint8_t flags = input->Byte();
  const uint32_t psn =
      old.psn + static_cast<uint32_t>(static_cast<int8_t>(input->Byte()));
  const uint8_t ids = input->Byte();
  const uint16_t mine = static_cast<uint16_t>(old.spdcid + (ids & 0xf));
  const uint16_t yours = static_cast<uint16_t>(old.dpdcid + (ids >> 4));
  const bool rud = old.type == contract::PdsType::kRudReq;
  const auto other_mode =
      rud ? contract::PdsType::kRodReq : contract::PdsType::kRudReq;
  bool payload = false;
  switch (kind % 8) {
    case 0:
    case 1:
    case 2: {
      append(wire::PdsRequest{
          .type = kind % 8 == 0 ? other_mode : old.type,
          .next_hdr = contract::NextHdr::kRequestStd,
          .retx = static_cast<uint8_t>(flags & 1),
          .ar = static_cast<uint8_t>(flags >> 1 & 1),
          .syn = static_cast<uint8_t>(flags >> 2 & 1),
          .clear_psn_offset = static_cast<int16_t>(-(flags >> 6)),
          .psn = psn,
          .spdcid = mine,
          .dpdcid = yours,
          .psn_offset = static_cast<uint16_t>(flags >> 3 & 7)});
      auto ses = wire::SesStd::Decode(base.data() + layout.pds +
                                      wire::PdsRequest::kBytes);
      const uint8_t how = input->Byte();
      ses.som = how & 1;
      ses.eom = how >> 1 & 1;
      ses.hd = how >> 2 & 1;
      ses.ie = how >> 3 & 1;
      ses.dc = how >> 4 & 1;
      ses.message_id = static_cast<uint16_t>(ses.message_id + (how >> 5));
      ses.payload_length = input->Half() % 1100;
      ses.message_offset = ses.som != 0 ? 0 : 1024U * input->Below(4);
      ses.request_length = ses.eom != 0
                               ? ses.message_offset + ses.payload_length
                               : 1024U * input->Below(8);
      if (ses.som != 0 && ses.hd != 0) {
        ses.header_data = input->Double();
      }
      append(ses);
      frame.resize(frame.size() + ses.payload_length, flags);
      payload = true;
      break;
    }
    case 3:
    case 4: {
      const bool selective = rud && kind % 8 == 4;
      append(wire::PdsAck{.type = selective ? contract::PdsType::kAckCc
                                            : contract::PdsType::kAck,
                          .next_hdr = contract::NextHdr::kResponse,
                          .m = static_cast<uint8_t>(flags & 1),
                          .retx = static_cast<uint8_t>(flags >> 1 & 1),
                          .p = static_cast<uint8_t>(flags >> 2 & 1),
                          .req = static_cast<contract::AckReq>(flags >> 3 & 3),
                          .ack_psn_offset = static_cast<int16_t>(flags >> 5),
                          .cack_psn = psn,
                          .spdcid = yours,
                          .dpdcid = mine});
      if (selective) {
        append(wire::PdsAckCc{
            .sack_psn_offset = static_cast<int8_t>(input->Byte()),
            .sack_bitmap = input->Double()});
      }
      append(wire::SesResponse{
          .opcode = static_cast<contract::SesResponse>(input->Byte() & 3),
          .return_code =
              static_cast<contract::ReturnCode>(input->Byte() & 0x3f),
          .message_id = input->Half(),
          .modified_length = input->Half()});
      break;
    }
    case 5:
      append(wire::PdsNack{
          .type = contract::PdsType::kNack,
          .nack_code = static_cast<contract::NackCode>(input->Byte()),
          .nack_psn = psn,
          .spdcid = yours,
          .dpdcid = mine,
          .payload = input->Word()});
      break;
    case 6:
      append(wire::PdsCp{.type = contract::PdsType::kCp,
                         .cp_type = static_cast<contract::CpType>(flags >> 4),
                         .retx = static_cast<uint8_t>(flags & 1),
                         .ar = static_cast<uint8_t>(flags >> 1 & 1),
                         .syn = static_cast<uint8_t>(flags >> 2 & 1),
                         .psn = psn,
                         .spdcid = (flags & 8) != 0 ? yours : mine,
                         .dpdcid = (flags & 8) != 0 ? mine : yours,
                         .payload = input->Word()});
      break;
    default: {  // Whatever the input says, behind the UDP header.
      const auto bytes = input->Bytes(flags % 128);
      frame.insert(frame.end(), bytes.begin(), bytes.end());
      if ((kind & 0x40) != 0) {
        Adopt(psn, mine, yours, layout.pds, &frame);
      }
      break;
    }
  }
  if (!payload && (kind & 0x80) != 0) {
    frame.resize(frame.size() + kind % 64, kind);
  }
  if (form.crc != contract::CrcOrder::kNone) {
    frame.resize(frame.size() + contract::kCrcBytes);
  }
  FixLengths(form, &frame);
  FixCrc(form, &frame);
  FixIpChecksum(form, &frame);
  return frame;
}

}  // namespace heddle::fuzz
