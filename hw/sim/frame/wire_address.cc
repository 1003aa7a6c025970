// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/frame/wire_address.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>

#include <cstring>

namespace heddle::sim::frame {

WireAddress WireAddress::Ipv6(const std::array<uint8_t, 16>& bytes) {
  uint64_t high = 0;
  uint64_t low = 0;
  std::memcpy(&high, bytes.data(), sizeof(high));
  std::memcpy(&low, bytes.data() + sizeof(high), sizeof(low));
  return {be64toh(high), be64toh(low)};
}

std::string WireAddress::Text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (ipv6) {
    const std::array<uint64_t, 2> bytes = {htobe64(hi), htobe64(lo)};
    inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
  } else {
    const in_addr address{htonl(static_cast<uint32_t>(lo))};
    inet_ntop(AF_INET, &address, text.data(), text.size());
  }
  return text.data();
}

namespace {

// The function is in the second octet, and in the first above the bits that say
// group and locally administered.
constexpr uint32_t kLowShift = 32;
constexpr uint32_t kHighShift = 42;
constexpr uint32_t kLowBits = 8;

}  // namespace

uint64_t PortMac(const WireAddress& address, uint16_t function) {
  constexpr uint64_t kLocal = 0x020000000000;
  const uint64_t folded = address.hi ^ address.lo;
  return kLocal | uint64_t{function} >> kLowBits << kHighShift |
         (uint64_t{function} & 0xff) << kLowShift |
         static_cast<uint32_t>(folded ^ folded >> 32);
}

uint16_t FunctionOfMac(uint64_t mac) {
  return static_cast<uint16_t>((mac >> kHighShift & 0x3f) << kLowBits |
                               (mac >> kLowShift & 0xff));
}

bool ParseWireAddress(const std::string& text, WireAddress* address) {
  in_addr ipv4{};
  std::array<uint8_t, sizeof(in6_addr)> ipv6{};
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) {
    *address = WireAddress(ntohl(ipv4.s_addr));
  } else if (inet_pton(AF_INET6, text.c_str(), ipv6.data()) == 1) {
    *address = WireAddress::Ipv6(ipv6);
  } else {
    return false;
  }
  return address->hi != 0 || address->lo != 0;
}

}  // namespace heddle::sim::frame
