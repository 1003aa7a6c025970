// SPDX-License-Identifier: Apache-2.0
// UDP sockets as UET needs them, and what the network says about them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "driver/result.h"
#include "hw/sim/base/owned_fd.h"
#include "hw/sim/frame/wire_address.h"
#include "hw/soft/udp/interface.h"

namespace heddle::soft::udp {

// An address with its port as the sockets API takes it.
struct SocketName {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const {
    // NOLINTNEXTLINE: the sockets API takes its addresses so.
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

// `index` is of the interface, for IPv6 addresses of its link.
SocketName MakeName(const sim::frame::WireAddress& address, uint16_t port,
                    uint32_t index);
// Of what a datagram came from.
sim::frame::WireAddress AddressOf(const SocketName& name);
uint16_t PortOf(const SocketName& name);

// A socket bound to `address` and `port` (0: one that the kernel chooses), not
// blocking. Its datagrams are never fragmented, here or under way; it says how
// a datagram was marked, takes several as one from the kernel, and keeps what
// ICMP says in its error queue.
// Errors: EADDRINUSE, EACCES for a port of the privileged, and others of the
// system calls.
Result<sim::base::OwnedFd> OpenUdpSocket(const Interface& interface,
                                         const sim::frame::WireAddress& address,
                                         uint16_t port);

// What ICMP said. A peer that is refused may be about to start, and who sends
// ICMP is not authenticated: none of it proves that a peer is dead.
struct NetworkErrors {
  uint64_t refused = 0;      // Nobody has the port.
  uint64_t unreachable = 0;  // No way there.
  uint64_t too_big = 0;      // A link under way is too narrow for a datagram.
  uint64_t other = 0;
};

// Counts one error of sending or receiving, an errno.
void CountNetworkError(int error, NetworkErrors* errors);
// Empties the error queue of `fd` into `errors`.
void DrainErrorQueue(int fd, NetworkErrors* errors);

}  // namespace heddle::soft::udp
