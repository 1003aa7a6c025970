// SPDX-License-Identifier: Apache-2.0
// Options of a simulated device from text, by the table of settings.
#pragma once

#include <span>
#include <string>

#include "driver/result.h"
#include "driver/sim_factory.h"
#include "hw/contract/settings/row.h"
#include "hw/sim/device/device_options.h"

namespace heddle::sim::device {

// The option `name` of a simulated device; null for none.
const contract::SettingRow* FindOption(const char* name);

// Errors: EINVAL for an unknown name, a bad value, or one that is not the
// default where devices of `kind` do not obey the setting; `*message` names it,
// its value and what is allowed.
Result<DeviceOptions> ParseSettings(const contract::DeviceKind& kind,
                                    std::span<const HeddleSimOption> options,
                                    std::string* message);

}  // namespace heddle::sim::device
