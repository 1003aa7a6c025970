// SPDX-License-Identifier: Apache-2.0
// Fabric addresses of ports, and the MAC addresses that follow from them.
#pragma once

#include <cstdint>
#include <string>

#include "hw/contract/fabric_address.h"

namespace heddle::sim::frame {

// As a number, or halves, for the many that are made of these.
struct WireAddress : contract::FabricAddress {
  WireAddress() = default;
  // IPv4, first octet most significant.
  WireAddress(uint32_t ipv4)  // NOLINT: it is that address.
      : FabricAddress(Ipv4(ipv4)) {}
  WireAddress(uint64_t high, uint64_t low) : FabricAddress(Ipv6(high, low)) {}
  WireAddress(const FabricAddress& address)  // NOLINT: it is that address.
      : FabricAddress(address) {}

  // As in inet_ntop(3).
  std::string Text() const;
};

// MAC address of function `function` of a wire, at `address`: locally
// administered, and different for all functions. Precondition: `function` is
// below `kMaxMacFunctions`.
uint64_t PortMac(const WireAddress& address, uint16_t function);
// The function that would have this MAC address.
uint16_t FunctionOfMac(uint64_t mac);
inline constexpr uint32_t kMaxMacFunctions = 16384;

// Reads an address as inet_pton(3) does; false if it is none, or the
// unspecified one.
bool ParseWireAddress(const std::string& text, WireAddress* address);

}  // namespace heddle::sim::frame
