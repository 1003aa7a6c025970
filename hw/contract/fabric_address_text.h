// SPDX-License-Identifier: Apache-2.0
// Fabric addresses from and to text and the bytes of a header.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hw/contract/fabric_address.h"

namespace heddle::contract {

// IPv6 from its bytes as they stand in a header, and back.
inline FabricAddress FabricAddressOf(const in6_addr& bytes) {
  FabricAddress address = FabricAddress::Ipv6(0, 0);
  for (size_t i = 0; i < 8; ++i) {
    address.hi = address.hi << 8U | bytes.s6_addr[i];
    address.lo = address.lo << 8U | bytes.s6_addr[8 + i];
  }
  return address;
}
inline in6_addr BytesOf(const FabricAddress& ipv6) {
  in6_addr bytes{};
  for (size_t i = 0; i < 8; ++i) {
    bytes.s6_addr[i] = static_cast<uint8_t>(ipv6.hi >> (56U - 8 * i));
    bytes.s6_addr[8 + i] = static_cast<uint8_t>(ipv6.lo >> (56U - 8 * i));
  }
  return bytes;
}

// As inet_ntop(3): "10.0.0.1", "fd00::1".
inline std::string Text(const FabricAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ipv6) {
    const in6_addr bytes = BytesOf(address);
    inet_ntop(AF_INET6, &bytes, text.data(), text.size());
  } else {
    const in_addr bytes{htonl(static_cast<uint32_t>(address.lo))};
    inet_ntop(AF_INET, &bytes, text.data(), text.size());
  }
  return text.data();
}

// As inet_pton(3), without port or scope; empty if `text` is no address.
inline std::optional<FabricAddress> ParseFabricAddress(std::string_view text) {
  const std::string terminated(text);
  in_addr ipv4{};
  if (inet_pton(AF_INET, terminated.c_str(), &ipv4) == 1) {
    return FabricAddress::Ipv4(ntohl(ipv4.s_addr));
  }
  in6_addr ipv6{};
  if (inet_pton(AF_INET6, terminated.c_str(), &ipv6) == 1) {
    return FabricAddressOf(ipv6);
  }
  return std::nullopt;
}

}  // namespace heddle::contract
