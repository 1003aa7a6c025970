// SPDX-License-Identifier: Apache-2.0
// The addresses of this machine, and the one that its functions have.
#pragma once

#include <string>
#include <vector>

#include "host/lib/base/socket_address.h"
#include "host/lib/core/settings.h"

namespace heddle::core {

struct InterfaceAddress {
  base::SocketAddress address;  // The port is 0.
  bool is_usable;               // The interface is up and is not a loopback.
};

// Addresses of the interfaces in this network namespace, in the kernel's order.
// Empty, with a warning, when the kernel does not list them. Throws
// std::bad_alloc.
std::vector<InterfaceAddress> ReadInterfaces();

// Who is on the wire of a device.
enum class WireReach {
  kMachine,  // Processes of one machine.
  kNetwork,  // Machines: the wire udp, or the port of a NIC.
};

// The wire of a simulated device.
WireReach SimulatedReach(const Settings& settings) noexcept;

// What addresses mean to the functions of one process on one wire. On the
// one-machine wire every address of the machine means the machine's default
// address of that family (ADR 0015); on others each address means itself.
//
// Thread safety: immutable.
class OwnAddresses {
 public:
  // `ip` is FI_HEDDLE_IP; empty: unset. Throws std::bad_alloc.
  OwnAddresses(WireReach reach, const std::string& ip,
               std::vector<InterfaceAddress> interfaces);

  // The same machine for a function that is at `own`, whatever FI_HEDDLE_IP is.
  OwnAddresses At(const base::SocketAddress& own) const;

  // The family of every address: that of FI_HEDDLE_IP, else AF_UNSPEC.
  int family() const noexcept;

  // The address of a function for which none is named, port 0: FI_HEDDLE_IP,
  // else the machine's default address; never 0.0.0.0 or ::. `family` is
  // AF_INET, AF_INET6 or, for that of FI_HEDDLE_IP and else IPv4, AF_UNSPEC.
  // Empty when FI_HEDDLE_IP is of the other family.
  std::optional<base::SocketAddress> Own(int family) const noexcept;

  // The machine's default address, port 0: that of the first interface that is
  // up and not a loopback, else the loopback's. `family` is AF_INET6, or
  // AF_INET for all others.
  base::SocketAddress Default(int family) const noexcept;

  // Whether `address` stands for this machine in either family: an address of
  // an interface, of 127.0.0.0/8, ::1, 0.0.0.0 or ::. False on a network.
  bool IsMachine(const base::SocketAddress& address) const noexcept;

  // The address that reaches what `address` names, with its port. The
  // function's own stays, as do 0.0.0.0 and ::, whose meaning depends on the
  // call.
  base::SocketAddress OnWire(const base::SocketAddress& address) const noexcept;

 private:
  WireReach reach_;
  std::vector<InterfaceAddress> interfaces_;
  std::optional<base::SocketAddress> own_;
};

}  // namespace heddle::core
