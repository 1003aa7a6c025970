// SPDX-License-Identifier: Apache-2.0
// Settings of a simulated device from text.
#pragma once

#include <cstddef>
#include <string>

#include "driver/result.h"
#include "driver/sim_factory.h"
#include "hw/sim/device_options.h"

namespace heddle::sim {

// Errors: EINVAL for an unknown name or a bad value; `*message` names it, its
// value and what is allowed.
Result<DeviceOptions> ParseSettings(const HeddleSimOption* options,
                                    size_t count, std::string* message);

}  // namespace heddle::sim
