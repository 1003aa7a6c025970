// SPDX-License-Identifier: Apache-2.0
#include "host/lib/base/socket_address.h"

#include <arpa/inet.h>
#include <rdma/fabric.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace heddle::base {
namespace {

constexpr std::string_view kUrl4 = "fi_sockaddr_in://";
constexpr std::string_view kUrl6 = "fi_sockaddr_in6://[";

// The read and written prefix of a sockaddr_in6 that holds a sockaddr_in.
static_assert(offsetof(sockaddr_in, sin_family) ==
              offsetof(sockaddr_in6, sin6_family));
static_assert(offsetof(sockaddr_in, sin_port) ==
              offsetof(sockaddr_in6, sin6_port));
static_assert(sizeof(sockaddr_in) < sizeof(sockaddr_in6));

bool HasPrefix(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// "" or ":4096"; false for anything else.
bool ParsePortSuffix(std::string_view text, uint16_t* port) {
  *port = 0;
  if (text.empty()) {
    return true;
  }
  if (text.front() != ':' || text.size() == 1) {
    return false;
  }
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 1, end, *port);
  return error == std::errc() && stop == end;
}

std::optional<SocketAddress> FromParts(std::string_view address,
                                       std::string_view suffix, int family) {
  uint16_t port = 0;
  const auto parsed = SocketAddress::FromText(std::string(address));
  if (!parsed || parsed->family() != family ||
      !ParsePortSuffix(suffix, &port)) {
    return std::nullopt;
  }
  return parsed->WithPort(port);
}

}  // namespace

SocketAddress::SocketAddress(const in_addr& address, uint16_t port) noexcept
    : address_{} {
  sockaddr_in whole = {};
  whole.sin_family = AF_INET;
  whole.sin_port = htons(port);
  whole.sin_addr = address;
  memcpy(&address_, &whole, sizeof(whole));
}

SocketAddress::SocketAddress(const in6_addr& address, uint16_t port) noexcept
    : address_{} {
  address_.sin6_family = AF_INET6;
  address_.sin6_port = htons(port);
  address_.sin6_addr = address;
}

std::optional<SocketAddress> SocketAddress::Read(const void* data,
                                                 size_t length) noexcept {
  if (data == nullptr || length < sizeof(sockaddr_in)) {
    return std::nullopt;
  }
  sockaddr_in ipv4;
  memcpy(&ipv4, data, sizeof(ipv4));
  if (ipv4.sin_family == AF_INET) {
    return SocketAddress(ipv4.sin_addr, ntohs(ipv4.sin_port));
  }
  sockaddr_in6 ipv6;
  if (ipv4.sin_family != AF_INET6 || length < sizeof(ipv6)) {
    return std::nullopt;
  }
  memcpy(&ipv6, data, sizeof(ipv6));
  return SocketAddress(ipv6.sin6_addr, ntohs(ipv6.sin6_port));
}

std::optional<SocketAddress> SocketAddress::FromText(const std::string& text) {
  in_addr ipv4;
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) {
    return SocketAddress(ipv4, 0);
  }
  in6_addr ipv6;
  if (inet_pton(AF_INET6, text.c_str(), &ipv6) == 1) {
    return SocketAddress(ipv6, 0);
  }
  return std::nullopt;
}

std::optional<SocketAddress> SocketAddress::FromUrl(std::string_view text) {
  if (HasPrefix(text, kUrl6)) {
    text.remove_prefix(kUrl6.size());
    const size_t end = text.find(']');
    return end == std::string_view::npos
               ? std::nullopt
               : FromParts(text.substr(0, end), text.substr(end + 1), AF_INET6);
  }
  if (HasPrefix(text, kUrl4)) {
    text.remove_prefix(kUrl4.size());
    const size_t end = std::min(text.find(':'), text.size());
    return FromParts(text.substr(0, end), text.substr(end), AF_INET);
  }
  return std::nullopt;
}

uint32_t SocketAddress::format() const noexcept {
  return is_ipv6() ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

uint16_t SocketAddress::port() const noexcept {
  return ntohs(address_.sin6_port);
}

SocketAddress SocketAddress::WithPort(uint16_t port) const noexcept {
  SocketAddress other = *this;
  other.address_.sin6_port = htons(port);
  return other;
}

in_addr SocketAddress::ipv4() const noexcept {
  sockaddr_in whole;
  memcpy(&whole, &address_, sizeof(whole));
  return whole.sin_addr;
}

in6_addr SocketAddress::ipv6() const noexcept {
  return address_.sin6_addr;
}

bool SocketAddress::is_any() const noexcept {
  return is_ipv6() ? IN6_IS_ADDR_UNSPECIFIED(&address_.sin6_addr) != 0
                   : ipv4().s_addr == INADDR_ANY;
}

bool SocketAddress::is_unicast() const noexcept {
  if (is_any()) {
    return false;
  }
  return is_ipv6() ? IN6_IS_ADDR_MULTICAST(&address_.sin6_addr) == 0
                   : ipv4().s_addr != INADDR_BROADCAST &&
                         !IN_MULTICAST(ntohl(ipv4().s_addr));
}

std::string SocketAddress::IpText() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv6()) {
    inet_ntop(AF_INET6, &address_.sin6_addr, text, sizeof(text));
  } else {
    const in_addr address = ipv4();
    inet_ntop(AF_INET, &address, text, sizeof(text));
  }
  return text;
}

std::string SocketAddress::Text() const {
  return ToChars().text;
}

SocketAddress::Chars SocketAddress::ToChars() const noexcept {
  char ip[INET6_ADDRSTRLEN] = "";
  if (is_ipv6()) {
    (void)inet_ntop(AF_INET6, &address_.sin6_addr, ip, sizeof(ip));
  } else {
    const in_addr bytes = ipv4();
    (void)inet_ntop(AF_INET, &bytes, ip, sizeof(ip));
  }
  Chars chars;
  (void)std::snprintf(chars.text, sizeof(chars.text),
                      is_ipv6() ? "[%s]:%u" : "%s:%u", ip, unsigned{port()});
  return chars;
}

std::string SocketAddress::Url() const {
  return (is_ipv6() ? "fi_sockaddr_in6://" : "fi_sockaddr_in://") + Text();
}

bool operator==(const SocketAddress& left,
                const SocketAddress& right) noexcept {
  return left.size() == right.size() &&
         memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace heddle::base
