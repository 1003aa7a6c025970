// SPDX-License-Identifier: Apache-2.0
// A datagram with its PDS header read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/transport/receiver.h"
#include "hw/soft/transport/send_half.h"

namespace heddle::soft::transport {

// Most packets: a request without congestion state that is long enough.
inline bool IsPlainRequest(const contract::wire::PdsPrologue& prologue,
                           size_t bytes) {
  using contract::PdsType;
  return (prologue.type == PdsType::kRodReq ||
          prologue.type == PdsType::kRudReq) &&
         prologue.next_hdr == contract::NextHdr::kRequestStd &&
         bytes >= contract::wire::PdsRequest::kBytes +
                      contract::wire::SesStd::kBytes;
}

// Why a datagram of `bytes` bytes is no packet of the profile, by its type,
// next header and length alone, as the RTL's parser judges it
// (docs/rtl/net.md); empty for one that is.
std::optional<contract::Statistic> FindFault(
    const contract::wire::PdsPrologue& prologue, size_t bytes);

struct IncomingAck {
  AckFacts facts;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;
  contract::AckReq req = {};
  contract::NextHdr next_hdr = {};
  std::span<const uint8_t> ses;
};

// `probe`: the ACK answers a probe and says nothing else. False: too short.
bool ReadAck(std::span<const uint8_t> bytes, IncomingAck* ack, bool* probe);

struct IncomingNack {
  contract::NackCode code = {};
  uint32_t psn = 0;
  uint16_t spdcid = 0;
};

struct IncomingRequest {
  contract::wire::PdsRequest header;
  std::span<const uint8_t> ses;
  const wire::Datagram* datagram = nullptr;
  Arrival arrival;
};

// False: too short.
bool ReadRequest(const wire::Datagram& datagram, IncomingRequest* request);

rules::Packet PacketOf(const contract::wire::PdsCp& cp,
                       const wire::Datagram& datagram);

// Response of an ACK, of either kind; false when there is none, or none of SES
// itself.
bool ReadResponse(const IncomingAck& ack, contract::wire::SesResponse* response,
                  std::span<const uint8_t>* data, uint32_t* data_offset);

}  // namespace heddle::soft::transport
