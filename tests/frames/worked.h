// SPDX-License-Identifier: Apache-2.0
// The worked frames of UET (tests/interop/frames.toml) for C++, and what Heddle
// makes of each (tests/frames/outcomes.toml). They come from a generator of
// their own, their fields from a second implementation; none of it from this
// project's code. CRC included, without padding.
//
// A is 02:00:00:00:00:01, 192.0.2.1 and 2001:db8::1, B 02:00:00:00:00:02,
// 192.0.2.2 and 2001:db8::2. UDP checksums are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "worked_frames.h"

namespace heddle::test {

inline std::vector<uint8_t> FromHex(std::string_view hex) {
  const auto digit = [&](size_t at) {
    const char c = hex[at];
    return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::vector<uint8_t> bytes;
  for (size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes.push_back(static_cast<uint8_t>(digit(at) << 4 | digit(at + 1)));
  }
  return bytes;
}

inline std::vector<uint8_t> WorkedBytes(const WorkedFrame& frame) {
  return FromHex(frame.hex);
}

// From the PDS header to the end of the payload.
inline std::vector<uint8_t> WorkedPacket(const WorkedFrame& frame) {
  const std::vector<uint8_t> bytes = WorkedBytes(frame);
  return {bytes.begin() + static_cast<std::ptrdiff_t>(frame.pds),
          bytes.end() - contract::kCrcBytes};
}

inline const WorkedFrame& Worked(std::string_view name) {
  for (const WorkedFrame& frame : kWorkedFrames) {
    if (frame.name == name) {
      return frame;
    }
  }
  throw std::out_of_range(std::string(name));
}

inline bool HasHeader(const WorkedFrame& frame, std::string_view header) {
  for (const WorkedField& field : frame.fields) {
    if (field.header == header) {
      return true;
    }
  }
  return false;
}

// 0 for a field that the frame does not have.
inline uint64_t WorkedValue(const WorkedFrame& frame, std::string_view header,
                            std::string_view name) {
  for (const WorkedField& field : frame.fields) {
    if (field.header == header && field.name == name) {
      return field.value;
    }
  }
  return 0;
}

// The port that the frame is for; `sender`: that it comes from.
inline contract::PortCfg WorkedPort(const WorkedFrame& frame,
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
  port.ip_protocol = frame.native ? contract::kNativeIpProtocol : 0;
  return port;
}

}  // namespace heddle::test
