// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/udp_socket.h"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "hw/contract/fabric_address_text.h"

namespace heddle::soft::udp {
namespace {

// As much as the kernel grants: a burst of a window of each of many peers.
constexpr int kBufferBytes = 4 << 20;

bool Set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

bool SetAll4(int fd) {
  return Set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) &&
         Set(fd, IPPROTO_IP, IP_RECVTOS, 1) &&
         Set(fd, IPPROTO_IP, IP_RECVERR, 1);
}

bool SetAll6(int fd) {
  return Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
         Set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
         Set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1) &&
         Set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
         Set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1) &&
         // A peer sends a UDP checksum of 0 (UE specification 1.0.3 3.5.10.1).
         Set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
}

bool IsLinkLocal(const sim::frame::WireAddress& address) {
  constexpr uint64_t kPrefix = 0xfe80;
  constexpr uint32_t kPrefixShift = 48;
  constexpr uint64_t kPrefixMask = 0xffc0;
  return address.ipv6 && (address.hi >> kPrefixShift & kPrefixMask) == kPrefix;
}

}  // namespace

SocketName MakeName(const sim::frame::WireAddress& address, uint16_t port,
                    uint32_t index) {
  SocketName name;
  if (address.ipv6) {
    sockaddr_in6 ipv6{};
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(port);
    ipv6.sin6_addr = contract::BytesOf(address);
    ipv6.sin6_scope_id = IsLinkLocal(address) ? index : 0;
    std::memcpy(&name.storage, &ipv6, sizeof(ipv6));
    name.bytes = sizeof(ipv6);
  } else {
    sockaddr_in ipv4{};
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(port);
    ipv4.sin_addr.s_addr = htonl(static_cast<uint32_t>(address.lo));
    std::memcpy(&name.storage, &ipv4, sizeof(ipv4));
    name.bytes = sizeof(ipv4);
  }
  return name;
}

sim::frame::WireAddress AddressOf(const SocketName& name) {
  if (name.storage.ss_family == AF_INET6) {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, &name.storage, sizeof(ipv6));
    return contract::FabricAddressOf(ipv6.sin6_addr);
  }
  sockaddr_in ipv4{};
  std::memcpy(&ipv4, &name.storage, sizeof(ipv4));
  return {ntohl(ipv4.sin_addr.s_addr)};
}

uint16_t PortOf(const SocketName& name) {
  // At one place in both families.
  sockaddr_in ipv4{};
  static_assert(offsetof(sockaddr_in, sin_port) ==
                offsetof(sockaddr_in6, sin6_port));
  std::memcpy(&ipv4, &name.storage, sizeof(ipv4));
  return ntohs(ipv4.sin_port);
}

Result<sim::base::OwnedFd> OpenUdpSocket(const Interface& interface,
                                         const sim::frame::WireAddress& address,
                                         uint16_t port) {
  sim::base::OwnedFd fd(socket(address.ipv6 ? AF_INET6 : AF_INET,
                               SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) {
    return Errno{errno};
  }
  if (!(address.ipv6 ? SetAll6(fd.get()) : SetAll4(fd.get()))) {
    return Errno{errno};
  }
  // Good to have: kernels before 5.0 do not know it, and limits may be lower.
  Set(fd.get(), IPPROTO_UDP, UDP_GRO, 1);
  Set(fd.get(), SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  Set(fd.get(), SOL_SOCKET, SO_SNDBUF, kBufferBytes);
  const SocketName name = MakeName(address, port, interface.index);
  if (bind(fd.get(), name.get(), name.bytes) != 0) {
    return Errno{errno};
  }
  return fd;
}

void CountNetworkError(int error, NetworkErrors* errors) {
  switch (error) {
    case ECONNREFUSED:
      ++errors->refused;
      break;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      ++errors->unreachable;
      break;
    case EMSGSIZE:
      ++errors->too_big;
      break;
    default:
      ++errors->other;
  }
}

void DrainErrorQueue(int fd, NetworkErrors* errors) {
  alignas(cmsghdr) std::array<uint8_t, 512> control;
  for (;;) {
    msghdr message{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
      return;
    }
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      const bool error =
          (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_RECVERR) ||
          (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_RECVERR);
      if (error) {
        sock_extended_err what{};
        std::memcpy(&what, CMSG_DATA(part), sizeof(what));
        // What this machine refused itself, the sender counts.
        if (what.ee_origin != SO_EE_ORIGIN_LOCAL) {
          CountNetworkError(static_cast<int>(what.ee_errno), errors);
        }
      }
    }
  }
}

}  // namespace heddle::soft::udp
