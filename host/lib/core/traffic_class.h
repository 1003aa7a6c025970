// SPDX-License-Identifier: Apache-2.0
// Traffic classes of the API as the DSCP that packets carry.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <optional>

namespace heddle::core {

// DSCP of a class other than FI_TC_UNSPEC; empty for none that is defined.
constexpr std::optional<uint8_t> DscpOf(uint32_t traffic_class) noexcept {
  // Source: RFC 4594 section 2.3 and RFC 8622 (scavenger: lower effort).
  switch (traffic_class) {
    case FI_TC_BEST_EFFORT:
      return 0;
    case FI_TC_LOW_LATENCY:
      return 46;  // EF.
    case FI_TC_DEDICATED_ACCESS:
      return 34;  // AF41.
    case FI_TC_BULK_DATA:
      return 10;  // AF11.
    case FI_TC_SCAVENGER:
      return 1;  // LE.
    case FI_TC_NETWORK_CTRL:
      return 48;  // CS6.
    default:
      break;
  }
  constexpr uint32_t kMostDscp = 63;
  const uint32_t dscp = traffic_class ^ FI_TC_DSCP;
  return dscp <= kMostDscp ? std::optional(static_cast<uint8_t>(dscp))
                           : std::nullopt;
}

}  // namespace heddle::core
