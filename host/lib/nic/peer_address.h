// SPDX-License-Identifier: Apache-2.0
// Where an endpoint is: IP address and libfabric port, and their UET form.
#pragma once

#include <arpa/inet.h>
#include <endian.h>

#include <array>
#include <cstdint>
#include <string>

#include "driver/device/admin_queue.h"
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
  std::string IpText() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const in_addr four = {.s_addr = htonl(ipv4)};
    const std::array<uint64_t, 2> six = {htobe64(ipv6_hi), htobe64(ipv6_lo)};
    (void)(is_ipv6 ? inet_ntop(AF_INET6, six.data(), text.data(), text.size())
                   : inet_ntop(AF_INET, &four, text.data(), text.size()));
    return text.data();
  }

  bool operator==(const PeerAddress&) const = default;
};

}  // namespace heddle::nic
