// SPDX-License-Identifier: Apache-2.0
// The port configuration that the tests of the transport blocks begin with.
#pragma once

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::test {

inline contract::PortCfg StandardPort() {
  return {.payload_mtu = 4096, .udp_port = 4793, .enable = 1};
}

}  // namespace heddle::test
