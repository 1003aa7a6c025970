// SPDX-License-Identifier: Apache-2.0
// The interface of this machine that has an address.
#pragma once

#include <cstdint>
#include <string>

#include "driver/result.h"
#include "hw/sim/frame/wire_address.h"

namespace heddle::soft::udp {

struct Interface {
  std::string name;
  uint32_t index = 0;
  uint32_t mtu = 0;  // Bytes, IP header included.
  bool up = false;   // Enabled, and with a carrier.
  bool loopback = false;
};

// Errors: EADDRNOTAVAIL when no interface has `address`; the errno of the
// system calls. All of 127.0.0.0/8 is on the loopback interface.
Result<Interface> FindInterface(const sim::frame::WireAddress& address);

// Looks at MTU and state again; a name that is gone is down.
void RefreshInterface(Interface* interface);

}  // namespace heddle::soft::udp
