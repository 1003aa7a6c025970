// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/peer_name.h"

#include <arpa/inet.h>
#include <endian.h>

#include <cstdio>
#include <cstring>

namespace heddle::ofi {

nic::PeerAddress ToPeer(const core::SocketAddress& address) noexcept {
  if (!address.is_ipv6()) {
    return {.ipv4 = ntohl(address.ipv4().s_addr), .port = address.port()};
  }
  uint64_t words[2];
  const in6_addr bytes = address.ipv6();
  std::memcpy(words, &bytes, sizeof(words));
  return {.port = address.port(),
          .is_ipv6 = true,
          .ipv6_hi = be64toh(words[0]),
          .ipv6_lo = be64toh(words[1])};
}

core::SocketAddress FromPeer(const nic::PeerAddress& peer) noexcept {
  if (!peer.is_ipv6) {
    return {in_addr{.s_addr = htonl(peer.ipv4)}, peer.port};
  }
  const uint64_t words[2] = {htobe64(peer.ipv6_hi), htobe64(peer.ipv6_lo)};
  in6_addr bytes;
  std::memcpy(&bytes, words, sizeof(bytes));
  return {bytes, peer.port};
}

AddressChars ToChars(const core::SocketAddress& address) noexcept {
  char ip[INET6_ADDRSTRLEN] = "";
  if (address.is_ipv6()) {
    const in6_addr bytes = address.ipv6();
    (void)inet_ntop(AF_INET6, &bytes, ip, sizeof(ip));
  } else {
    const in_addr bytes = address.ipv4();
    (void)inet_ntop(AF_INET, &bytes, ip, sizeof(ip));
  }
  AddressChars chars;
  (void)std::snprintf(chars.text, sizeof(chars.text),
                      address.is_ipv6() ? "[%s]:%u" : "%s:%u", ip,
                      unsigned{address.port()});
  return chars;
}

}  // namespace heddle::ofi
