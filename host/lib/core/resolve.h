// SPDX-License-Identifier: Apache-2.0
// Node and service of fi_getinfo to addresses.
#pragma once

#include <optional>
#include <string>

#include "host/lib/core/address.h"
#include "host/lib/core/getinfo.h"
#include "host/lib/core/info_memory.h"
#include "host/lib/core/settings.h"

namespace heddle::core {

// Both of one family.
struct Endpoints {
  SocketAddress source;
  std::optional<SocketAddress> destination;
};

// Source and destination as fi_getinfo(3) says: node and service name the
// source with FI_SOURCE and else the destination, hints fill what they do not
// name; 0.0.0.0 and :: become this host's address. The family is that of
// FI_HEDDLE_IP, of `addr_format`, of the addresses given or of what the node
// resolves to, IPv4 before IPv6. Asks a name server only for a name.
//
// 0; -FI_EINVAL: a service beside an FI_ADDR_STR node; -FI_ENODATA: cannot be
// resolved, or of different families. `*reason` says what is wrong.
int Resolve(const InfoRequest& request, const Hints& hints,
            const Settings& settings, Endpoints* endpoints,
            std::string* reason);

}  // namespace heddle::core
