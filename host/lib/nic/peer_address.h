// SPDX-License-Identifier: Apache-2.0
// Where an endpoint is: IP address and libfabric port, and their UET form.
#pragma once

#include <arpa/inet.h>
#include <endian.h>

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "driver/control/admin_queue.h"
#include "host/lib/base/socket_address.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::nic {

// Source: contract parameters `pid_bits` and `ri_block`.
struct PeerAddress {
  static constexpr uint32_t kRiBits = 12;

  uint32_t ipv4 = 0;  // Host order: the first octet is most significant.
  uint16_t port = 0;  // RI block x 4096 + PIDonFEP.
  // Of IPv6, and `ipv4` is 0; the first octet is the most significant of `hi`.
  bool is_ipv6 = false;
  uint64_t ipv6_hi = 0;
  uint64_t ipv6_lo = 0;

  static PeerAddress Of(const base::SocketAddress& address) noexcept {
    if (!address.is_ipv6()) {
      return {.ipv4 = ntohl(address.ipv4().s_addr), .port = address.port()};
    }
    const auto words = std::bit_cast<std::array<uint64_t, 2>>(address.ipv6());
    return {.port = address.port(),
            .is_ipv6 = true,
            .ipv6_hi = be64toh(words[0]),
            .ipv6_lo = be64toh(words[1])};
  }
  base::SocketAddress socket_address() const noexcept {
    if (!is_ipv6) {
      return {in_addr{.s_addr = htonl(ipv4)}, port};
    }
    const std::array<uint64_t, 2> words = {htobe64(ipv6_hi), htobe64(ipv6_lo)};
    return {std::bit_cast<in6_addr>(words), port};
  }

  // The endpoint that sends as `initiator` from `address`.
  static PeerAddress OfSender(const FabricAddress& address,
                              uint32_t initiator) noexcept {
    const uint32_t pid = initiator >> kRiBits;
    const uint32_t block =
        (initiator & ((1U << kRiBits) - 1)) / contract::kRiBlock;
    const auto port = static_cast<uint16_t>(block << contract::kPidBits | pid);
    return address.ipv6 ? PeerAddress{.port = port,
                                      .is_ipv6 = true,
                                      .ipv6_hi = address.hi,
                                      .ipv6_lo = address.lo}
                        : PeerAddress{.ipv4 = static_cast<uint32_t>(address.lo),
                                      .port = port};
  }

  uint16_t pid_on_fep() const noexcept {
    return static_cast<uint16_t>(port & ((1U << contract::kPidBits) - 1));
  }
  uint16_t first_ri() const noexcept {
    return static_cast<uint16_t>((port >> contract::kPidBits) *
                                 contract::kRiBlock);
  }
  // UET initiator of what the endpoint sends: {8'b0, PIDonFEP, first RI}.
  uint32_t initiator() const noexcept {
    return (uint32_t{pid_on_fep()} << kRiBits) | first_ri();
  }

  FabricAddress fabric_address() const noexcept {
    return is_ipv6 ? FabricAddress{.lo = ipv6_lo, .hi = ipv6_hi, .ipv6 = true}
                   : FabricAddress{.lo = ipv4};
  }

  // "10.0.0.1", "fd00::1"
  std::string IpText() const { return socket_address().IpText(); }

  bool operator==(const PeerAddress&) const = default;
};

}  // namespace heddle::nic
