// SPDX-License-Identifier: Apache-2.0
// The device that a command is about.
#pragma once

#include <string>

#include "driver/control/open.h"
#include "host/lib/core/settings.h"

namespace heddle::tool {

// The address of a simulated device that the library opens with the settings.
std::string SimulatedAddress(const core::Settings& settings);

// How a simulated device of `kind` is opened that the settings describe, at
// `address`.
SimulatorOptions SimulatorAt(const std::string& kind,
                             const core::Settings& settings,
                             const std::string& address);

// Opens the device `name`: `soft` or `rtl`, a device private to this process;
// `vfio`, the first PCI function; or the PCI address of a function bound to
// vfio-pci. Empty: the value of FI_HEDDLE_DEVICE, or soft. Throws CommandError.
OpenedDevice OpenChosen(const std::string& name);

}  // namespace heddle::tool
