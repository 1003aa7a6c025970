// SPDX-License-Identifier: Apache-2.0
// The device that a command is about.
#pragma once

#include <string>

#include "driver/device/open.h"
#include "host/lib/core/settings.h"

namespace heddle::tool {

// The address of a simulated device that the library opens with the settings.
std::string SimulatedAddress(const core::Settings& settings);

// How a simulated device is opened that the settings describe, at `address`.
SimulatorOptions SimulatorAt(const core::Settings& settings,
                             const std::string& address);

// Opens what `name` says: `soft` or `rtl`, a device of this process alone, or
// `vfio`, the first function in PCI, or the PCI
// address of one that vfio-pci drives. Empty: what
// FI_HEDDLE_DEVICE says, or soft. Throws CommandError.
OpenedDevice OpenChosen(const std::string& name);

}  // namespace heddle::tool
