// SPDX-License-Identifier: Apache-2.0
// Addresses of endpoints: FI_SOCKADDR_IN, in memory and as text.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <optional>
#include <string>

#include "host/lib/core/settings.h"

namespace heddle::core {

// The address of this host on the wire: FI_HEDDLE_IP, else that of the first
// interface that is up and not the loopback, else 127.0.0.1; never 0.0.0.0.
in_addr LocalAddress(const Settings& settings) noexcept;

sockaddr_in MakeAddress(in_addr address, uint16_t port) noexcept;

// Reads what an application passed as an address of `length` bytes; empty
// unless it holds a whole sockaddr_in of family AF_INET.
std::optional<sockaddr_in> ParseAddress(const void* data,
                                        size_t length) noexcept;

// "10.0.0.1:4096".
std::string FormatAddress(const sockaddr_in& address);

}  // namespace heddle::core
