// SPDX-License-Identifier: Apache-2.0
// What the control program of a free-running simulated device is told.
#pragma once

#include <cstdint>

#include "firmware/base/hal.h"
#include "hw/sim/device/device_options.h"

namespace heddle::sim::device {

// What the wire gave a function.
struct WirePlace {
  uint16_t function = 0;  // Tells those of an address apart.
  uint8_t slot = 0;       // Of its PDCIDs, if it has one.
};

// For the function with `place` on its wire, whose transport counts time
// in ticks of `tick_ns`.
firmware::Board DeviceBoard(const DeviceOptions& options,
                            const WirePlace& place, uint64_t tick_ns);

}  // namespace heddle::sim::device
