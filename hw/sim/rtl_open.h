// SPDX-License-Identifier: Apache-2.0
// Knows and opens the device `rtl`, in a simulator that has one.
#pragma once

#include <memory>
#include <string>

#include "driver/device.h"
#include "driver/result.h"
#include "hw/sim/device_options.h"

namespace heddle::sim {

// Errors: those of RtlDevice::Open; ENOTSUP where the simulator was built
// without the NIC's model (HEDDLE_RTL_DEVICE).
Result<std::unique_ptr<Device>> OpenRtl(const DeviceOptions& options,
                                        std::string* message);

// The capability register of the NIC's model: of one made for this, connected
// to nothing. Errors: EIO when the model fails; ENOTSUP as above.
Result<uint64_t> RtlCapability(std::string* message);

}  // namespace heddle::sim
