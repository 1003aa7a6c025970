// SPDX-License-Identifier: Apache-2.0
// Node and service of fi_getinfo to addresses.
#pragma once

#include <netinet/in.h>

#include <optional>
#include <string>

#include "host/lib/core/getinfo.h"
#include "host/lib/core/info_memory.h"
#include "host/lib/core/settings.h"

namespace heddle::core {

struct Endpoints {
  sockaddr_in source;
  std::optional<sockaddr_in> destination;
};

// Source and destination as fi_getinfo(3) says: node and service name the
// source with FI_SOURCE and else the destination, hints fill what they do not
// name; 0.0.0.0 becomes this host's address. Empty, and `*reason` set, when
// they cannot be resolved. Asks a name server only for a name.
std::optional<Endpoints> Resolve(const InfoRequest& request, const Hints& hints,
                                 const Settings& settings, std::string* reason);

}  // namespace heddle::core
