// SPDX-License-Identifier: Apache-2.0
// Fabric addresses from and to text and the bytes of a header.
#pragma once

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hw/contract/fabric_address.h"

namespace heddle::contract {

// IPv6 from its bytes as they stand in a header, and back.
inline FabricAddress FabricAddressOf(const in6_addr& bytes) {
  const auto words = std::bit_cast<std::array<uint64_t, 2>>(bytes);
  return FabricAddress::Ipv6(be64toh(words[0]), be64toh(words[1]));
}
inline in6_addr BytesOf(const FabricAddress& ipv6) {
  return std::bit_cast<in6_addr>(
      std::array<uint64_t, 2>{htobe64(ipv6.hi), htobe64(ipv6.lo)});
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
