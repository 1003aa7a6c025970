// SPDX-License-Identifier: Apache-2.0
// The user's settings as options of a simulated device.
#pragma once

#include <string>

#include "host/lib/core/address.h"
#include "host/lib/core/settings.h"
#include "host/lib/nic/nic.h"

namespace heddle::ofi {

// The device at `address`. What has its default is left out where an older
// simulator may not know it.
SimulatorOptions MakeSimulatorOptions(const core::Settings& settings,
                                      const core::SocketAddress& address);

// Environment variables that the user has set and that a function of the NIC
// does not obey, in one line; empty for none.
std::string SetForSimulatorsOnly(const core::Settings& settings);

}  // namespace heddle::ofi
