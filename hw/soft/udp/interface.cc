// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "hw/contract/fabric_address_text.h"

namespace heddle::soft::udp {
namespace {

constexpr uint32_t kLoopbackNet = 0x7f;
constexpr uint32_t kNetShift = 24;

bool IsLoopback4(const sim::frame::WireAddress& address) {
  return !address.ipv6 && address.lo >> kNetShift == kLoopbackNet;
}

bool Has(const ifaddrs& entry, const sim::frame::WireAddress& address) {
  if (entry.ifa_addr == nullptr) {
    return false;
  }
  if (entry.ifa_addr->sa_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, entry.ifa_addr, sizeof(ipv4));
    return address == sim::frame::WireAddress(ntohl(ipv4.sin_addr.s_addr)) ||
           (IsLoopback4(address) && (entry.ifa_flags & IFF_LOOPBACK) != 0);
  }
  if (entry.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, entry.ifa_addr, sizeof(ipv6));
    return address == contract::FabricAddressOf(ipv6.sin6_addr);
  }
  return false;
}

}  // namespace

Result<Interface> FindInterface(const sim::frame::WireAddress& address) {
  ifaddrs* entries = nullptr;
  if (getifaddrs(&entries) != 0) {
    return Errno{errno};
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(entries,
                                                               &freeifaddrs);
  for (const ifaddrs* entry = entries; entry != nullptr;
       entry = entry->ifa_next) {
    if (Has(*entry, address)) {
      Interface interface {
        .name = entry->ifa_name, .index = if_nametoindex(entry->ifa_name),
        .mtu = 0, .up = false,
        .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0
      };
      RefreshInterface(&interface);
      if (interface.mtu == 0) {
        return Errno{ENODEV};
      }
      return interface;
    }
  }
  return Errno{EADDRNOTAVAIL};
}

void RefreshInterface(Interface* interface) {
  interface->up = false;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return;
  }
  ifreq request{};
  interface->name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  if (ioctl(fd, SIOCGIFMTU, &request) == 0) {
    interface->mtu = static_cast<uint32_t>(request.ifr_mtu);
  }
  if (ioctl(fd, SIOCGIFFLAGS, &request) == 0) {
    constexpr unsigned kUp = IFF_UP | IFF_RUNNING;
    interface->up = (static_cast<unsigned>(request.ifr_flags) & kUp) == kUp;
  }
  close(fd);
}

}  // namespace heddle::soft::udp
