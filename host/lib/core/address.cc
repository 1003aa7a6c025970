// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <cstring>

namespace heddle::core {
namespace {

// Address of `entry` if it can carry our traffic, else INADDR_ANY.
in_addr UsableAddress(const ifaddrs& entry) noexcept {
  in_addr none = {};
  if (entry.ifa_addr == nullptr || entry.ifa_addr->sa_family != AF_INET ||
      (entry.ifa_flags & IFF_UP) == 0 ||
      (entry.ifa_flags & IFF_LOOPBACK) != 0) {
    return none;
  }
  sockaddr_in address;
  memcpy(&address, entry.ifa_addr, sizeof(address));
  return address.sin_addr;
}

}  // namespace

in_addr LocalAddress(const Settings& settings) noexcept {
  in_addr address = {};
  if (inet_pton(AF_INET, settings.ip.c_str(), &address) == 1) {
    return address;
  }
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) == 0) {
    for (const ifaddrs* entry = interfaces;
         entry != nullptr && address.s_addr == INADDR_ANY;
         entry = entry->ifa_next) {
      address = UsableAddress(*entry);
    }
    freeifaddrs(interfaces);
  }
  if (address.s_addr == INADDR_ANY) {
    address.s_addr = htonl(INADDR_LOOPBACK);
  }
  return address;
}

sockaddr_in MakeAddress(in_addr address, uint16_t port) noexcept {
  sockaddr_in result = {};
  result.sin_family = AF_INET;
  result.sin_addr = address;
  result.sin_port = htons(port);
  return result;
}

std::optional<sockaddr_in> ParseAddress(const void* data,
                                        size_t length) noexcept {
  sockaddr_in address = {};
  if (data == nullptr || length < sizeof(address)) {
    return std::nullopt;
  }
  memcpy(&address, data, sizeof(address));
  if (address.sin_family != AF_INET) {
    return std::nullopt;
  }
  return address;
}

std::string FormatAddress(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return std::string(text) + ":" + std::to_string(ntohs(address.sin_port));
}

}  // namespace heddle::core
