// SPDX-License-Identifier: Apache-2.0
// Node and service of fi_getinfo to addresses.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "host/lib/base/socket_address.h"
#include "host/lib/core/getinfo.h"
#include "host/lib/core/info_memory.h"
#include "host/lib/core/own_addresses.h"

namespace heddle::core {

// A node and a service as getaddrinfo(3) takes them.
struct NodeName {
  const char* node;  // Null: this machine.
  const char* service;
  bool is_numeric = false;  // The node is an address; no name is looked up.
};

// The address on the wire that `name` names: one of `family`, AF_INET or
// AF_INET6, if there is one, else one of the other family. A name of this
// machine names one of `family` always. Empty when it cannot be resolved;
// `*reason` then says why.
std::optional<base::SocketAddress> LookUp(const NodeName& name, int family,
                                          const OwnAddresses& own,
                                          std::string* reason);

// Both of one family.
struct Endpoints {
  base::SocketAddress source;
  std::optional<base::SocketAddress> destination;
};

// Source and destination as fi_getinfo(3) says: node and service name the
// source with FI_SOURCE and else the destination, hints fill what they do not
// name; 0.0.0.0 and :: become the function's own address, and other addresses
// of this machine its address on the wire. The family is that of
// FI_HEDDLE_IP, of `addr_format`, of the addresses given or of what the node
// resolves to, IPv4 before IPv6; a node that names this machine has either.
// Asks a name server only for a name.
//
// 0; -FI_EINVAL: a service beside an FI_ADDR_STR node; -FI_ENODATA: cannot be
// resolved, or of different families. `*reason` says what is wrong.
int Resolve(const InfoRequest& request, const Hints& hints,
            const OwnAddresses& own, Endpoints* endpoints, std::string* reason);

}  // namespace heddle::core
