// SPDX-License-Identifier: Apache-2.0
// What the control program of a free-running simulated device is told.
#pragma once

#include <cstdint>

#include "firmware/base/hal.h"
#include "hw/sim/device_options.h"

namespace heddle::sim {

// For the function that the wire put into `slot`, whose transport counts time
// in ticks of `tick_ns`.
firmware::Board DeviceBoard(const DeviceOptions& options, uint8_t slot,
                            uint64_t tick_ns);

}  // namespace heddle::sim
