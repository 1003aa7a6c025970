// SPDX-License-Identifier: Apache-2.0
// Random frames for heddle_rx_parser, good and malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/random.h"

namespace heddle::test {

using Bytes = std::vector<uint8_t>;

inline constexpr uint16_t kIpv4 = 0x0800, kArp = 0x0806, kTag = 0x8100,
                          kIpv6 = 0x86dd;

contract::PortCfg DefaultPort();

// Each family, VLAN, encapsulation and CRC order.
inline constexpr uint32_t kVariants = 24;
inline constexpr uint32_t kFirstWithCrc = 8;
contract::PortCfg PortVariant(uint32_t variant);

// Where the parts of a frame are.
struct Form {
  bool ipv6 = false;
  size_t l3 = 14;
  bool native = false;  // No UDP.

  size_t l4_bytes() const { return native ? 4 : 8; }
  size_t pds() const { return l4() + l4_bytes(); }
  size_t l4() const { return l3 + (ipv6 ? 40 : 20); }
  size_t source() const { return l3 + (ipv6 ? 8 : 12); }
};

// CRC of the frame whose datagram ends at `end`, without the CRC's own bytes.
uint32_t FrameCrc(Bytes frame, const Form& form, size_t end);
// Sum of a datagram with its pseudo header.
uint32_t DatagramSum(const Bytes& frame, const Form& form, size_t end);

enum class UdpSum { kRight, kZero, kWrong, kAny };
// Writes the UDP checksum, which receivers ignore; nothing without UDP.
void PutUdpSum(Bytes& frame, const Form& form, size_t end, UdpSum how,
               sim::base::Random& rng);
// Writes length fields, CRC and checksums that fit, then pads to 60 bytes.
void Finish(Bytes& frame, const Form& form, contract::CrcOrder crc,
            sim::base::Random& rng, UdpSum how = UdpSum::kAny);

enum class Kind {
  kRequest,
  kAck,
  kAckResponse,
  kNack,
  kCp,
  kRead,
  kReturnData,
  kReturnError,
  kAckData
};

// Payload bytes of those that carry some; what a READ asks for.
struct Shape {
  Kind kind = Kind::kRequest;
  size_t payload = 0;
};
Shape RandomShape(sim::base::Random& rng, const contract::PortCfg& port);

struct Built {
  Bytes frame;
  Form form;
  size_t end = 0;  // Of the datagram.
};
// A frame that the parser of `port` accepts.
Built Build(sim::base::Random& rng, const Shape& shape,
            const contract::PortCfg& port, UdpSum how = UdpSum::kAny);
Bytes GoodFrame(sim::base::Random& rng, const Shape& shape,
                const contract::PortCfg& port);
// ARP, or a neighbour discovery message of `type`, for the port's VLAN.
Bytes NeighborFrame(sim::base::Random& rng, const contract::PortCfg& port,
                    bool arp, uint8_t type = 135);

void InsertTag(Bytes& frame, uint16_t vid, sim::base::Random& rng);
uint16_t Half(const Bytes& frame, size_t at);
void PutHalf(Bytes& frame, size_t at, size_t value);
void PutCrc(Bytes& frame, const Form& form, size_t end,
            contract::CrcOrder order);
// What a switch with a full queue makes of a frame: `kept` bytes behind the IP
// header, with `dscp`. The UDP length stays unless `rewrites_udp`.
Bytes Trimmed(const Built& built, uint8_t dscp, size_t kept, bool rewrites_udp,
              sim::base::Random& rng);
// Breaks a frame in one of many ways; some leave it good.
Bytes Mutated(Built built, const contract::PortCfg& port,
              sim::base::Random& rng);

}  // namespace heddle::test
