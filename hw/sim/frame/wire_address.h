// SPDX-License-Identifier: Apache-2.0
// An IPv4 or IPv6 address on the wire, in the form of the contract.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace heddle::sim::frame {

struct WireAddress {
  WireAddress() = default;
  // IPv4, first octet most significant.
  WireAddress(uint32_t ipv4) : lo(ipv4) {}  // NOLINT: it is that address.
  WireAddress(uint64_t high, uint64_t low) : hi(high), lo(low), ipv6(true) {}

  // IPv6 from its bytes as they stand in a header.
  static WireAddress Ipv6(const std::array<uint8_t, 16>& bytes);

  // As in inet_ntop(3).
  std::string Text() const;

  bool operator==(const WireAddress&) const = default;

  // As `fa_hi` and `fa_lo` of the contract: IPv4 in the low 32 bits of `lo`.
  uint64_t hi = 0;
  uint64_t lo = 0;
  bool ipv6 = false;
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
