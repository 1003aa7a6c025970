// SPDX-License-Identifier: Apache-2.0
// A peer on the one-machine wire whose every packet a test writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/wire/shared_wire.h"
#include "hw/soft/frame/frame_codec.h"

namespace heddle::sim::rtl {

// What came back, taken apart.
struct PeerPacket {
  contract::PdsType type = {};
  contract::NextHdr next_hdr = {};
  contract::wire::PdsAck ack;          // ACK and ACK_CC.
  contract::wire::PdsNack nack;        // NACK.
  contract::wire::PdsCp control;       // Control packet, its payload apart.
  contract::wire::PdsRequest request;  // Request, return data.
  contract::wire::SesStd ses;          // Request.
  contract::wire::SesResponse response;
  contract::wire::SesResponseData data;
  std::vector<uint8_t> payload;
  uint16_t entropy = 0;  // UDP source port.
  uint8_t dscp = 0;
};

// Thread safety: none.
class WirePeer {
 public:
  static constexpr uint32_t kStartPsn = 0x123456;
  static constexpr uint16_t kEntropy = 50000;

  // Null, with a failure, when it cannot attach.
  static std::unique_ptr<WirePeer> Attach(const std::string& wire, uint32_t ip,
                                          uint32_t target) {
    std::string error;
    auto attached = wire::SharedWire::Attach(
        {.name = wire, .ip = ip, .takes_slot = true}, &error);
    if (!attached.ok()) {
      ADD_FAILURE() << error;
      return nullptr;
    }
    auto peer = std::make_unique<WirePeer>();
    peer->wire_ = std::move(attached.value());
    peer->target_ = target;
    peer->codec_.Configure({.local_fa_lo = ip,
                            .mac = 0x02000a000001,
                            .payload_mtu = 4096,
                            .udp_port = contract::kUetUdpPort,
                            .enable = 1,
                            .crc = contract::CrcOrder::kMsbFirst});
    return peer;
  }

  // Another PDC, of which no packet has left yet.
  void Begin(bool ordered) {
    ordered_ = ordered;
    spdcid_ = static_cast<uint16_t>(
        uint32_t{wire_->slot()} << (16 - contract::kSlotBits) | ++opened_);
    tpdcid_ = 0;
    psn = kStartPsn;
  }

  // A request that asks for its ACK, and clears all answers of before.
  void Request(const contract::wire::SesStd& ses,
               std::span<const uint8_t> payload, bool retx = false) {
    Send(RequestPacket(ses, payload, retx));
  }
  // The same, as a switch with a full queue lets it through.
  void TrimmedRequest(const contract::wire::SesStd& ses, uint8_t dscp) {
    frame::Frame frame = FrameOf(RequestPacket(ses, {}));
    EXPECT_TRUE(fault::TrimRequest(dscp, &frame));
    SendFrame(frame);
  }
  std::vector<uint8_t> RequestPacket(const contract::wire::SesStd& ses,
                                     std::span<const uint8_t> payload,
                                     bool retx = false) const {
    contract::wire::PdsRequest pds;
    pds.type =
        ordered_ ? contract::PdsType::kRodReq : contract::PdsType::kRudReq;
    pds.next_hdr = contract::NextHdr::kRequestStd;
    pds.ar = 1;
    pds.retx = retx ? 1 : 0;
    pds.clear_psn_offset = -1;
    pds.psn = psn;
    pds.spdcid = spdcid_;
    if (tpdcid_ == 0) {
      pds.syn = 1;
      pds.psn_offset = static_cast<uint16_t>(psn - kStartPsn);
    } else {
      pds.dpdcid = tpdcid_;
    }
    constexpr size_t kSes = contract::wire::PdsRequest::kBytes;
    constexpr size_t kPayload = kSes + contract::wire::SesStd::kBytes;
    std::vector<uint8_t> bytes(kPayload + payload.size());
    pds.Encode(bytes.data());
    ses.Encode(bytes.data() + kSes);
    std::copy(payload.begin(), payload.end(), bytes.data() + kPayload);
    return bytes;
  }
  // An ACK Request for the PSN before the next one.
  void Query() { Send(ControlPacket(contract::CpType::kAckRequest)); }
  // A control packet that names that PSN, with `more` bytes behind its header.
  std::vector<uint8_t> ControlPacket(contract::CpType type, uint16_t opaque = 0,
                                     size_t more = 0) const {
    contract::wire::PdsCp cp;
    cp.type = contract::PdsType::kCp;
    cp.cp_type = type;
    cp.probe_opaque = opaque;
    cp.psn = psn - 1;
    cp.spdcid = spdcid_;
    cp.dpdcid = tpdcid_;
    std::vector<uint8_t> bytes(contract::wire::PdsCp::kBytes + more);
    cp.Encode(bytes.data());
    return bytes;
  }

  // Requests to the endpoint at `port` come to this peer.
  bool Claim(uint32_t port) { return wire_->ClaimPort({port}).granted; }
  // ACK of a request that came.
  void Acknowledge(const contract::wire::PdsRequest& request,
                   const contract::wire::SesResponse& response) {
    Send(AckPacket(request, response));
  }
  std::vector<uint8_t> AckPacket(
      const contract::wire::PdsRequest& request,
      const contract::wire::SesResponse& response) const {
    contract::wire::PdsAck ack;
    ack.type = contract::PdsType::kAck;
    ack.next_hdr = contract::NextHdr::kResponse;
    ack.cack_psn = request.psn;
    ack.spdcid = spdcid_;
    ack.dpdcid = request.spdcid;
    std::vector<uint8_t> bytes(contract::wire::PdsAck::kBytes +
                               contract::wire::SesResponse::kBytes);
    ack.Encode(bytes.data());
    response.Encode(bytes.data() + contract::wire::PdsAck::kBytes);
    return bytes;
  }
  // NACK of PSN `nack_psn` of the PDC of a request that came.
  std::vector<uint8_t> NackPacket(const contract::wire::PdsRequest& request,
                                  contract::NackCode code,
                                  uint32_t nack_psn) const {
    contract::wire::PdsNack nack;
    nack.type = contract::PdsType::kNack;
    nack.nack_code = code;
    nack.nack_psn = nack_psn;
    nack.dpdcid = request.spdcid;
    std::vector<uint8_t> bytes(contract::wire::PdsNack::kBytes);
    nack.Encode(bytes.data());
    return bytes;
  }

  // A datagram in a frame of its own.
  void Send(std::span<const uint8_t> pds) { SendFrame(FrameOf(pds)); }
  // That frame; `crc` is its own order.
  std::vector<uint8_t> FrameOf(
      std::span<const uint8_t> pds,
      contract::CrcOrder crc = contract::CrcOrder::kMsbFirst) {
    contract::PortCfg port = codec_.port();
    port.crc = crc;
    soft::frame::FrameCodec codec;
    codec.Configure(port);
    constexpr size_t kHead = soft::frame::FrameCodec::kHeadroom;
    std::vector<uint8_t> buffer(kHead + pds.size() +
                                soft::frame::FrameCodec::kTailroom);
    std::copy(pds.begin(), pds.end(), buffer.begin() + kHead);
    const std::span<const uint8_t> frame =
        codec.Build({.destination = {.lo = target_}, .entropy = kEntropy},
                    buffer, pds.size());
    return {frame.begin(), frame.end()};
  }
  // Any frame that the wire can route.
  void SendFrame(std::span<const uint8_t> frame) {
    EXPECT_EQ(wire_->Send(frame), wire::SharedWire::SendOutcome::kSent);
  }

  // The next UET packet that has come, of the present PDC or a request; empty
  // when there is none.
  std::optional<PeerPacket> Receive() {
    frame::Frame frame;
    frame::FrameMarks marks;
    while (wire_->Receive(&frame, &marks)) {
      const soft::frame::ParsedFrame parsed = codec_.Parse(frame, marks);
      if (parsed.kind == soft::frame::ParsedFrame::Kind::kDatagram) {
        PeerPacket packet = Take(parsed.datagram.bytes);
        packet.entropy = parsed.datagram.source_udp_port;
        packet.dscp = parsed.datagram.dscp;
        if (IsOfThisPdc(packet)) {
          return packet;
        }
      }
      EXPECT_NE(parsed.kind, soft::frame::ParsedFrame::Kind::kDropped);
    }
    return std::nullopt;
  }

  uint32_t psn = 0;  // Of the next request.
  uint16_t spdcid() const { return spdcid_; }
  uint16_t tpdcid() const { return tpdcid_; }  // 0: not known yet.

 private:
  // What is left of an earlier PDC comes again until it is given up.
  bool IsOfThisPdc(const PeerPacket& packet) {
    switch (packet.type) {
      case contract::PdsType::kNack:
        return packet.nack.dpdcid == spdcid_;
      case contract::PdsType::kCp:
        return packet.control.dpdcid == spdcid_;
      case contract::PdsType::kAck:
      case contract::PdsType::kAckCc:
        if (packet.ack.dpdcid == spdcid_) {
          tpdcid_ = packet.ack.spdcid;
        }
        return packet.ack.dpdcid == spdcid_;
      default:
        return packet.next_hdr == contract::NextHdr::kRequestStd ||
               packet.request.dpdcid == spdcid_;
    }
  }
  static PeerPacket Take(std::span<const uint8_t> bytes) {
    namespace wire = contract::wire;
    PeerPacket packet;
    const auto prologue = wire::PdsPrologue::Decode(bytes.data());
    packet.type = prologue.type;
    size_t ses = wire::PdsAck::kBytes;
    switch (packet.type) {
      case contract::PdsType::kNack:
        packet.nack = wire::PdsNack::Decode(bytes.data());
        return packet;
      case contract::PdsType::kCp:
        packet.control = wire::PdsCp::Decode(bytes.data());
        packet.payload.assign(bytes.begin() + wire::PdsCp::kBytes - 4,
                              bytes.end());
        return packet;
      case contract::PdsType::kAck:
      case contract::PdsType::kAckCc:
        packet.ack = wire::PdsAck::Decode(bytes.data());
        packet.next_hdr = packet.ack.next_hdr;
        ses += packet.type == contract::PdsType::kAckCc ? wire::PdsAckCc::kBytes
                                                        : 0;
        break;
      case contract::PdsType::kRodReq:
      case contract::PdsType::kRudReq:
        packet.request = wire::PdsRequest::Decode(bytes.data());
        packet.next_hdr = packet.request.next_hdr;
        break;
      default:
        ADD_FAILURE() << "type " << static_cast<int>(packet.type);
        return packet;
    }
    if (packet.next_hdr == contract::NextHdr::kRequestStd) {
      packet.ses = wire::SesStd::Decode(bytes.data() + ses);
    } else if (packet.next_hdr == contract::NextHdr::kResponse) {
      packet.response = wire::SesResponse::Decode(bytes.data() + ses);
    } else if (packet.next_hdr == contract::NextHdr::kResponseData) {
      packet.data = wire::SesResponseData::Decode(bytes.data() + ses);
      const auto payload = bytes.subspan(ses + wire::SesResponseData::kBytes,
                                         packet.data.payload_length);
      packet.payload.assign(payload.begin(), payload.end());
    }
    return packet;
  }

  std::unique_ptr<wire::SharedWire> wire_;
  soft::frame::FrameCodec codec_;
  uint32_t target_ = 0;
  bool ordered_ = true;
  uint16_t spdcid_ = 0;
  uint16_t tpdcid_ = 0;
  uint16_t opened_ = 0;
};

}  // namespace heddle::sim::rtl
