// SPDX-License-Identifier: Apache-2.0
// What a kind of device can do, without opening one.
#pragma once

#include <cstdint>
#include <string>

#include "driver/result.h"

namespace heddle::nic {

// The capability register (contract `capability`) of the devices of `kind`,
// which is read once in a process. `sim_path`: FI_HEDDLE_SIM_PATH. Errors, with
// one line in `message`: those of `SimulatedCapability`. Thread-safe.
Result<uint64_t> CapabilityOf(const std::string& kind,
                              const std::string& sim_path,
                              std::string& message);

}  // namespace heddle::nic
