// SPDX-License-Identifier: Apache-2.0
// Layers 2 to 4 in front of a datagram, kept for each destination.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/wire/fabric_address.h"

namespace heddle::soft::frame {

// Where a frame goes; all else is the port's.
struct FrameHeader {
  wire::FabricAddress destination;
  uint64_t destination_mac = 0;
  uint16_t vlan = 0;     // 0: no tag.
  uint16_t entropy = 0;  // UDP source port.
  uint8_t dscp = 0;
};

// All packets to a destination differ in lengths, entropy and checksums
// only. Thread safety: none.
class HeaderStacks {
 public:
  // The longest.
  static constexpr size_t kHeadroom =
      contract::wire::Ethernet::kBytes + contract::wire::Vlan::kBytes +
      contract::wire::Ipv6::kBytes + contract::wire::Udp::kBytes;

  // To be called when the port changes.
  void Forget() { stacks_ = {}; }

  // Writes the headers to the end of `out`, whose front is undefined then: with
  // UDP and a checksum of 0, or as native IP with the entropy header in its
  // place, as the port has it. `ip_payload` bytes follow the IP header. Returns
  // the headers' bytes.
  size_t Put(const contract::PortCfg& port, const FrameHeader& header,
             uint16_t ip_payload, std::span<uint8_t, kHeadroom> out);

 private:
  static constexpr size_t kStacks = 32;

  struct Stack {
    size_t bytes = 0;  // 0: unused.
    wire::FabricAddress destination;
    uint64_t mac = 0;
    uint16_t vlan = 0;
    uint8_t dscp = 0;
    uint64_t ip_sum = 0;  // Of the IPv4 header without length and checksum.
    std::array<uint8_t, kHeadroom> image = {};
  };

  static void Fill(const contract::PortCfg& port, const FrameHeader& header,
                   Stack* stack);

  std::array<Stack, kStacks> stacks_;
};

}  // namespace heddle::soft::frame
