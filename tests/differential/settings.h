// SPDX-License-Identifier: Apache-2.0
// How the devices of a stream are set.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/stream.h"

namespace heddle::differential {

// Names and values as of driver/sim_factory.h; in capitals and behind
// FI_HEDDLE_ those of the environment.
using Settings = std::vector<std::pair<std::string, std::string>>;

// The time of a run.
enum class Time : uint8_t {
  kReal,     // Waiting costs time, and a side may have to wait for a CPU.
  kVirtual,  // Neither.
};

// Of a side, whose device is `device`.
Settings SettingsOf(uint32_t side, const Stream& stream,
                    const std::string& device, Time time);

// For how long nothing must happen at a sync before which endpoints were closed
// under traffic, or sides began anew; longer than devices so set take to give a
// peer up.
std::chrono::nanoseconds QuietAfterCloses();
std::chrono::nanoseconds QuietAfterRenewals(Time time);

}  // namespace heddle::differential
