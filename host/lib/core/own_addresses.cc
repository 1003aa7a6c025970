// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/own_addresses.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "host/lib/base/log.h"

namespace heddle::core {
namespace {

struct InterfaceListDeleter {
  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};

// The address of `entry` if it is IPv4 or IPv6.
std::optional<base::SocketAddress> AddressOf(const ifaddrs& entry) noexcept {
  if (entry.ifa_addr == nullptr) {
    return std::nullopt;
  }
  const auto address = base::SocketAddress::Read(
      entry.ifa_addr, entry.ifa_addr->sa_family == AF_INET6
                          ? sizeof(sockaddr_in6)
                          : sizeof(sockaddr_in));
  return address && !address->is_any() ? std::optional(address->WithPort(0))
                                       : std::nullopt;
}

// A link-local IPv6 address is ambiguous without its interface.
bool IsLinkLocal(const base::SocketAddress& address) noexcept {
  if (!address.is_ipv6()) {
    return false;
  }
  const in6_addr bytes = address.ipv6();
  return IN6_IS_ADDR_LINKLOCAL(&bytes);
}

base::SocketAddress Loopback(int family) noexcept {
  return family == AF_INET6 ? base::SocketAddress(in6addr_loopback, 0)
                            : base::SocketAddress(
                                  in_addr{.s_addr = htonl(INADDR_LOOPBACK)}, 0);
}

bool IsLoopback(const base::SocketAddress& address) noexcept {
  return address.is_ipv6() ? address.WithPort(0) == Loopback(AF_INET6)
                           : ntohl(address.ipv4().s_addr) >> IN_CLASSA_NSHIFT ==
                                 IN_LOOPBACKNET;
}

}  // namespace

std::vector<InterfaceAddress> ReadInterfaces() {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) {
    if (errno == ENOMEM) {
      throw std::bad_alloc();
    }
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kCore,
              "cannot list the interfaces of this machine: %s; using the "
              "loopback's addresses; set FI_HEDDLE_IP to use another",
              std::strerror(errno));
    return {};
  }
  const std::unique_ptr<ifaddrs, InterfaceListDeleter> list(found);
  std::vector<InterfaceAddress> interfaces;
  for (const ifaddrs* entry = found; entry != nullptr;
       entry = entry->ifa_next) {
    if (const auto address = AddressOf(*entry)) {
      constexpr unsigned kMask = IFF_UP | IFF_LOOPBACK;
      interfaces.push_back({*address, (entry->ifa_flags & kMask) == IFF_UP});
    }
  }
  return interfaces;
}

WireReach SimulatedReach(const Settings& settings) noexcept {
  return settings.is_udp() ? WireReach::kNetwork : WireReach::kMachine;
}

OwnAddresses::OwnAddresses(WireReach reach, const std::string& ip,
                           std::vector<InterfaceAddress> interfaces)
    : reach_(reach), interfaces_(std::move(interfaces)) {
  const auto named = base::SocketAddress::FromText(ip);
  if (named) {
    own_ = OnWire(*named);
  }
}

OwnAddresses OwnAddresses::At(const base::SocketAddress& own) const {
  OwnAddresses moved = *this;
  moved.own_ = own.WithPort(0);
  return moved;
}

int OwnAddresses::family() const noexcept {
  return own_ ? own_->family() : AF_UNSPEC;
}

std::optional<base::SocketAddress> OwnAddresses::Own(
    int family) const noexcept {
  if (!own_) {
    return Default(family);
  }
  return family == AF_UNSPEC || family == own_->family() ? own_ : std::nullopt;
}

base::SocketAddress OwnAddresses::Default(int family) const noexcept {
  const int wanted = family == AF_INET6 ? AF_INET6 : AF_INET;
  const auto found = std::find_if(interfaces_.begin(), interfaces_.end(),
                                  [wanted](const InterfaceAddress& each) {
                                    return each.is_usable &&
                                           each.address.family() == wanted &&
                                           !IsLinkLocal(each.address);
                                  });
  return found != interfaces_.end() ? found->address : Loopback(wanted);
}

bool OwnAddresses::IsMachine(
    const base::SocketAddress& address) const noexcept {
  return reach_ == WireReach::kMachine &&
         (address.is_any() || IsLoopback(address) ||
          std::any_of(interfaces_.begin(), interfaces_.end(),
                      [bare = address.WithPort(0)](const auto& each) {
                        return each.address == bare;
                      }));
}

base::SocketAddress OwnAddresses::OnWire(
    const base::SocketAddress& address) const noexcept {
  const bool stays =
      address.is_any() || address.WithPort(0) == own_ || !IsMachine(address);
  return stays ? address : Default(address.family()).WithPort(address.port());
}

}  // namespace heddle::core
