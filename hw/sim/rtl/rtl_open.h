// SPDX-License-Identifier: Apache-2.0
// Identity and opening of the device `rtl`.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "driver/device.h"
#include "driver/result.h"
#include "hw/sim/device/device_options.h"
#include "hw/sim/device/mapped_memory.h"

namespace heddle::sim::rtl {

// Errors: those of RtlDevice::Open.
Result<std::unique_ptr<Device>> OpenRtl(const device::DeviceOptions& options,
                                        std::string* message);

// One whose host memory others map and unmap.
struct RtlOnMemory {
  std::unique_ptr<Device> device;
  // Calls `work` while the device accesses no memory.
  std::function<void(const std::function<void()>& work)> exclusively;
};

// `memory` outlives the device. Errors: as above; ENOTSUP in a build without
// the NIC's model (HEDDLE_RTL_DEVICE).
Result<RtlOnMemory> OpenRtlOn(const device::DeviceOptions& options,
                              device::MappedMemory& memory,
                              std::string* message);

// What BAR0 of the NIC's model holds from offset 0 on: of one made for this,
// connected to nothing. Errors: EIO when the model fails.
Result<bool> ReadRtlIdentity(std::span<uint64_t> words, std::string* message);

}  // namespace heddle::sim::rtl
