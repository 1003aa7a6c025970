// SPDX-License-Identifier: Apache-2.0
// UET datagrams in Ethernet frames, as the RTL builds and judges them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/frame/frame.h"
#include "hw/soft/frame/header_stacks.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::frame {

// What a received frame is.
struct ParsedFrame {
  enum class Kind : uint8_t {
    kDatagram,  // For the transport.
    kSlowPath,  // ARP or Neighbor Discovery, for firmware.
    kDropped,   // Counted under `reason`.
    kIgnored,   // The port is disabled.
  };
  Kind kind = Kind::kIgnored;
  contract::Statistic reason = {};
  wire::Datagram datagram;  // Within the frame.
  uint64_t source_mac = 0;
};

// Layers 2 to 4, with UDP or as native IP (`port_cfg.ip_protocol`), and the
// end-to-end CRC (docs/rtl/net.md, docs/rtl/tx_build.md,
// docs/adr/0017-end-to-end-crc.md). Drops are counted under the same reasons as
// there, up to drop_crc; whether a datagram is as long as its PDS type needs,
// and all behind that, is for the transport to judge. Of a trimmed datagram,
// neither its UDP length nor a CRC is judged.
//
// Thread safety: none.
class FrameCodec {
 public:
  // Longest stack in front of a datagram.
  static constexpr size_t kHeadroom = HeaderStacks::kHeadroom;
  // CRC trailer, or what pads the shortest frame.
  static constexpr size_t kTailroom = 64;
  static constexpr size_t kShortestFrame = 60;  // Without FCS.

  void Configure(const contract::PortCfg& port) {
    port_ = port;
    stacks_.Forget();
  }
  const contract::PortCfg& port() const { return port_; }
  // The DSCPs of trimmed packets; without, none are.
  void SetTransport(const contract::TransportCfg& transport) {
    transport_ = transport;
  }

  // Puts headers in front of the datagram of `bytes` bytes at `kHeadroom` in
  // `buffer`, and trailer and padding behind it. The frame, within `buffer`.
  // Precondition: kTailroom bytes are free behind the datagram; the destination
  // is of the port's family. An `unchecked` one has room for a CRC, but
  // zeros there.
  std::span<const uint8_t> Build(const FrameHeader& header,
                                 std::span<uint8_t> buffer, size_t bytes,
                                 bool unchecked = false);

  // Judges `frame`, by all that its marks say is there.
  ParsedFrame Parse(std::span<const uint8_t> frame,
                    sim::frame::FrameMarks marks = {}) const;

 private:
  contract::PortCfg port_{};
  contract::TransportCfg transport_{};
  HeaderStacks stacks_;
};

}  // namespace heddle::soft::frame
