// SPDX-License-Identifier: Apache-2.0
// Addresses of endpoints: FI_SOCKADDR_IN and _IN6, in memory and as text.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::base {

// An IPv4 or IPv6 address with a port. Flow and scope of IPv6 are not kept:
// the wire has neither.
class SocketAddress {
 public:
  // 0.0.0.0, port 0.
  SocketAddress() noexcept : SocketAddress(in_addr{}, 0) {}
  SocketAddress(const in_addr& address, uint16_t port) noexcept;
  SocketAddress(const in6_addr& address, uint16_t port) noexcept;

  // Reads what an application passed as an address of `length` bytes, without
  // regard to its alignment. Empty unless it holds a whole sockaddr_in or
  // sockaddr_in6 with the family of its kind.
  static std::optional<SocketAddress> Read(const void* data,
                                           size_t length) noexcept;

  // "10.0.0.1" or "fd00::1", nothing else; the port is 0.
  static std::optional<SocketAddress> FromText(const std::string& text);

  // FI_ADDR_STR: "fi_sockaddr_in://10.0.0.1:4096",
  // "fi_sockaddr_in6://[fd00::1]:4096"; the port may be missing.
  static std::optional<SocketAddress> FromUrl(std::string_view text);

  bool is_ipv6() const noexcept { return address_.sin6_family == AF_INET6; }
  sa_family_t family() const noexcept { return address_.sin6_family; }
  // FI_SOCKADDR_IN or FI_SOCKADDR_IN6.
  uint32_t format() const noexcept;

  uint16_t port() const noexcept;
  SocketAddress WithPort(uint16_t port) const noexcept;

  // Precondition: the address is of that family.
  in_addr ipv4() const noexcept;
  in6_addr ipv6() const noexcept;

  // True for 0.0.0.0 and ::.
  bool is_any() const noexcept;
  // False also for multicast and broadcast.
  bool is_unicast() const noexcept;

  // The sockaddr_in or sockaddr_in6: 16 or 28 bytes.
  const void* data() const noexcept { return &address_; }
  size_t size() const noexcept {
    return is_ipv6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  }

  std::string IpText() const;  // "10.0.0.1", "fd00::1"
  std::string Text() const;    // "10.0.0.1:4096", "[fd00::1]:4096"
  // As `Text`, without an allocation.
  struct Chars {
    char text[INET6_ADDRSTRLEN + 8] = "";  // "[", "]:65535".
  };
  Chars ToChars() const noexcept;
  std::string Url() const;  // As FromUrl reads it.

  friend bool operator==(const SocketAddress& left,
                         const SocketAddress& right) noexcept;

 private:
  // Starts with the same two bytes of family and two of port as sockaddr_in.
  sockaddr_in6 address_;
};

}  // namespace heddle::base
