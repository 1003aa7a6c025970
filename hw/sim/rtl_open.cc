// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/rtl_open.h"

#include <utility>

#include "hw/sim/rtl_device.h"

namespace heddle::sim {

Result<std::unique_ptr<Device>> OpenRtl(const DeviceOptions& options,
                                        std::string* message) {
  auto device = RtlDevice::Open(options, message);
  if (!device.ok()) {
    return device.error();
  }
  return std::unique_ptr<Device>(std::move(device.value()));
}

}  // namespace heddle::sim
