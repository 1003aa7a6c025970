// SPDX-License-Identifier: Apache-2.0
// Where the switch sends a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "firmware/base/hal.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/frame/wire_address.h"

namespace heddle::sim::frame {

inline constexpr uint32_t kPdcids = 65536;
inline constexpr uint32_t kPdcidBlocks = kPdcids / contract::kPdcidBlock;
// A device that has all its PDCIDs from the start takes a slot of blocks.
inline constexpr uint32_t kSlots = 1U << contract::kSlotBits;
inline constexpr uint32_t kSlotBlocks = kPdcidBlocks / kSlots;

struct Route {
  enum class Kind : uint8_t {
    kNone,     // Not a frame the switch can route.
    kAddress,  // Not UET: to the port that has all of `ip`.
    kPort,     // To the function that claimed `name()` at `ip`.
    kBlock,    // To the function that has block `block` of PDCIDs at `ip`.
    kMac,      // To the function with MAC address `mac`.
    kAll,      // To all functions but the sender.
  };
  Kind kind = Kind::kNone;
  WireAddress ip;     // Destination.
  uint16_t port = 0;  // libfabric port: RI block x 4096 + PIDonFEP.
  uint32_t space = firmware::kAddressSpace;  // That the port is one of.
  uint16_t block = 0;
  uint64_t mac = 0;

  firmware::PortName name() const { return {.port = port, .space = space}; }
};

// Requests that open a PDC and datagrams go by their SES address, all other UET
// packets by the block of dpdcid, other IP packets by address. A name that
// nobody claimed goes to a function that has the port in another space, which
// refuses it as a NIC would. Neighbour frames (ARP, Neighbor Discovery) go by
// MAC address like on any Ethernet. Only lengths needed to read those fields
// are checked; bad frames reach their destination, which counts them.
// UET comes over UDP, or as native IP with the protocol `ip_protocol`.
Route FindRoute(std::span<const uint8_t> frame,
                uint8_t ip_protocol = contract::kNativeIpProtocol);
// Of a frame to `ip` with this datagram, PDS header first.
Route FindDatagramRoute(const WireAddress& ip,
                        std::span<const uint8_t> datagram);

// The IP address that a frame names as its sender: the source of an IP packet,
// the sender of an ARP message. Empty if it has none.
std::optional<WireAddress> FindSource(std::span<const uint8_t> frame);

// What follows the IP header of a UET frame, without what pads the frame: the
// UDP or entropy header first, then the PDS header. Empty if it is none, or
// shorter than the former.
struct Datagram {
  size_t offset = 0;  // In the frame.
  size_t bytes = 0;
  size_t layer4_bytes = 0;  // Of the UDP or entropy header.
  bool native = false;      // No UDP.
};
Datagram FindDatagram(std::span<const uint8_t> frame,
                      uint8_t ip_protocol = contract::kNativeIpProtocol);

}  // namespace heddle::sim::frame
