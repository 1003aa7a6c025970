// SPDX-License-Identifier: Apache-2.0
// What a kind of device is, without opening one.
#pragma once

#include <string>

#include "driver/result.h"
#include "host/lib/backend/device_profile.h"

namespace heddle {
struct DeviceInfo;
}

namespace heddle::nic {

// What a device says of itself.
backend::DeviceProfile ProfileOf(const DeviceInfo& info);

// What the registers of the devices of `kind` say, which are read once in a
// process. `sim_path`: FI_HEDDLE_SIM_PATH. Errors, with one line in `message`:
// those of `SimulatedInfo`. Thread-safe.
Result<backend::DeviceProfile> SimulatedProfile(const std::string& kind,
                                                const std::string& sim_path,
                                                std::string& message);

}  // namespace heddle::nic
