// SPDX-License-Identifier: Apache-2.0
// Whole frames in the layout of UEC's reference provider
// (ultraethernet/uet-ref-prov), CRC included and without padding. They come
// from a generator of their own, not from this project's code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::test {

struct ReferenceFrame {
  const char* name;
  bool ipv6;
  bool to_initiator;  // Else to the target.
  size_t bytes;
  std::string_view hex;
};

// The initiator is 02:00:00:00:00:01, 192.0.2.1 and 2001:db8::1, the target
// 02:00:00:00:00:02, 192.0.2.2 and 2001:db8::2. UDP checksums are 0.
inline constexpr std::array kReferenceFrames = {
    ReferenceFrame{
        "ROD SYN SEND of 16 bytes", false, false, 118,
        "0200000000020200000000010800"
        "45000068000040004011b681c0000201c0000202f25a12b900540000"
        "198cffff0012345600010000"
        "050b0000000000010000000f0000000000000000000000100000000000000000"
        "000000000000000000000010486564646c6520524f442053454e4421f486167c"},
    ReferenceFrame{"ACK with a response", false, true, 70,
                   "0200000000010200000000020800"
                   "45b80038000040004011b5f9c0000202c0000201f25a12b900240000"
                   "3a0000000012345600070001"
                   "0001000000000001000000108a90bd86"},
    ReferenceFrame{"ACK of a Close Command, shorter than Ethernet's minimum",
                   false, true, 58,
                   "0200000000010200000000020800"
                   "45b8002c000040004011b605c0000202c0000201424212b900180000"
                   "380000002345679000080002c244d3ba"},
    ReferenceFrame{
        "RUD WRITE of 16 bytes over IPv6", true, false, 138,
        "02000000000202000000000186dd"
        "600000000054114020010db800000000000000000000000120010db800000000"
        "0000000000000002f25a12b900540000"
        "1188ffff2345678a00020008"
        "010b0001000000010000000f0000000000000100000000100001000000000003"
        "000000000000000000000010000102030405060708090a0b0c0d0e0f"
        "2328ee18"},
};

inline std::vector<uint8_t> ReferenceBytes(const ReferenceFrame& frame) {
  const auto digit = [&](size_t at) {
    const char c = frame.hex[at];
    return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::vector<uint8_t> bytes;
  for (size_t at = 0; at + 1 < frame.hex.size(); at += 2) {
    bytes.push_back(static_cast<uint8_t>(digit(at) << 4 | digit(at + 1)));
  }
  return bytes;
}

// The port that the frame is for; `sender`: that it comes from.
inline contract::PortCfg ReferencePort(const ReferenceFrame& frame,
                                       bool sender = false) {
  const uint8_t last = frame.to_initiator != sender ? 1 : 2;
  contract::PortCfg port;
  port.local_fa_hi = frame.ipv6 ? 0x20010db800000000 : 0;
  port.local_fa_lo = frame.ipv6 ? last : 0xc0000200U + last;
  port.mac = 0x020000000000 + last;
  port.ipv6 = frame.ipv6 ? 1 : 0;
  port.payload_mtu = 4096;
  port.udp_port = contract::kUetUdpPort;
  port.enable = 1;
  port.crc = contract::CrcOrder::kMsbFirst;
  return port;
}

}  // namespace heddle::test
