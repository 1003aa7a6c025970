// SPDX-License-Identifier: Apache-2.0
// The devices of a shared library that the driver loads. The C entry points
// come from the CMake target `heddle_device_library`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "driver/device.h"
#include "driver/result.h"
#include "driver/sim_factory.h"
#include "hw/contract/settings/device_kind.h"

namespace heddle::sim::device {

// Errors: one line in `message`. Both may throw std::bad_alloc.
struct LibraryDevice {
  contract::DeviceKind kind;
  Result<std::unique_ptr<Device>> (*open)(
      std::span<const HeddleSimOption> options, std::string* message);
  // The first words of BAR0.
  Result<bool> (*read_identity)(std::span<uint64_t> words,
                                std::string* message);
};

// Each library defines it.
std::span<const LibraryDevice> LibraryDevices();

}  // namespace heddle::sim::device
