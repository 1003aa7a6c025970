// SPDX-License-Identifier: Apache-2.0
// The device's counters as a line of a file.
#pragma once

#include <string>

#include "driver/device.h"

namespace heddle::ofi {

// Appends one JSON object with the device's name and every counter to `path`,
// in one write; what cannot be written is logged.
void AppendStatistics(Device& device, const std::string& path) noexcept;

}  // namespace heddle::ofi
