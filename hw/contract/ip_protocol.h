// SPDX-License-Identifier: Apache-2.0
// Protocol numbers of native IP (UET 1.2).
// Freestanding: firmware, models and the host share it.
#pragma once

#include <stdint.h>

namespace heddle::contract {

// Whether UET may have this protocol number: not 0, nor those of ICMP, TCP, UDP
// and ICMPv6, which other hosts on the network interpret as such.
constexpr bool IsNativeIpProtocol(uint32_t number) {
  constexpr uint32_t kLast = 255;
  return number > 1 && number <= kLast && number != 6 && number != 17 &&
         number != 58;
}

}  // namespace heddle::contract
