// SPDX-License-Identifier: Apache-2.0
// UET datagrams of a UDP socket as the frames that the kernel makes of them.
#pragma once

#include <cstdint>
#include <span>

#include "hw/sim/fault/faults.h"
#include "hw/sim/frame/wire_address.h"

namespace heddle::soft::udp {

// What headers below UET say.
struct UdpFlow {
  sim::frame::WireAddress source;
  sim::frame::WireAddress destination;
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint8_t tos = 0;  // DSCP and ECN.

  bool operator==(const UdpFlow&) const = default;
};

inline constexpr uint8_t kEcnMask = 3;
inline constexpr uint8_t kEcnCapable = 2;  // ECT(0).
inline constexpr uint8_t kDscpShift = 2;

// The end-to-end CRC of `payload`, which excludes it, in a datagram of `flow`
// (docs/adr/0017-end-to-end-crc.md).
uint32_t DatagramCrc(const UdpFlow& flow, std::span<const uint8_t> payload);

// An Ethernet frame with `payload`, CRC included, checksums right. The MAC
// addresses are made up, those of a virtual wire.
void BuildUdpFrame(const UdpFlow& flow, std::span<const uint8_t> payload,
                   sim::frame::Frame* frame);

// Flow and payload of such a frame; faults may have changed the payload and the
// ECN field. Precondition: no other part of it was damaged.
UdpFlow UdpFrameFlow(const sim::frame::Frame& frame);
std::span<const uint8_t> UdpFramePayload(const sim::frame::Frame& frame);

}  // namespace heddle::soft::udp
