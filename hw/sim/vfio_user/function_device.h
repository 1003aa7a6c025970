// SPDX-License-Identifier: Apache-2.0
// The simulated device behind a PCI function.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "driver/device.h"
#include "driver/result.h"
#include "hw/contract/settings/device_kind.h"
#include "hw/sim/device/device_options.h"
#include "hw/sim/vfio_user/guest_dma.h"

namespace heddle::sim::vfio_user {

// Its `Map` and `Unmap` do not serve: host memory is the client's.
struct FunctionDevice {
  std::unique_ptr<Device> device;
  // Calls `work` while the device accesses no memory.
  std::function<void(const std::function<void()>& work)> exclusively;
};

// `kind` is simulated; `memory` outlives the device. Errors: those of the
// device, one line in `message`.
Result<FunctionDevice> OpenFunctionDevice(const contract::DeviceKind& kind,
                                          const device::DeviceOptions& options,
                                          GuestDma& memory,
                                          std::string* message);

}  // namespace heddle::sim::vfio_user
