// SPDX-License-Identifier: Apache-2.0
// Addresses of the API as those of the device, and back.
#pragma once

#include <netinet/in.h>

#include "host/lib/core/address.h"
#include "host/lib/nic/peer_address.h"

namespace heddle::ofi {

nic::PeerAddress ToPeer(const core::SocketAddress& address) noexcept;
core::SocketAddress FromPeer(const nic::PeerAddress& peer) noexcept;

// SocketAddress::Text without an allocation.
struct AddressChars {
  char text[INET6_ADDRSTRLEN + 8] = "";  // "[", "]:65535".
};
AddressChars ToChars(const core::SocketAddress& address) noexcept;

}  // namespace heddle::ofi
