// SPDX-License-Identifier: Apache-2.0
// The soft device as tests of devices open it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "hw/soft/soft_device.h"
#include "tests/sim/device/device_test.h"

namespace heddle::sim::device {

inline DeviceKind SoftKind() {
  return {.name = "soft",
          .domain = "soft0",
          .thread = "heddle-soft",
          .open = [](const DeviceOptions& options,
                     std::string* message) -> Result<std::unique_ptr<Device>> {
            auto device = soft::SoftDevice::Open(options, message);
            if (!device.ok()) {
              return device.error();
            }
            return std::unique_ptr<Device>(std::move(device.value()));
          }};
}

}  // namespace heddle::sim::device
