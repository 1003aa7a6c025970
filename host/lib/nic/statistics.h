// SPDX-License-Identifier: Apache-2.0
// The statistics of a NIC function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/device.h"
#include "driver/result.h"

namespace heddle::nic {

// How many there are; an index keeps its meaning from version to version.
size_t StatisticCount() noexcept;

// Static text; null beyond the last.
const char* StatisticName(size_t index) noexcept;
const char* StatisticHelp(size_t index) noexcept;

// Adds the first `sums.size()` statistics of `device`, at most
// `StatisticCount`, to `sums`; returns how many. Errors: EIO, `sums`
// unchanged, when the device has failed. Thread-safe.
Result<size_t> AddStatistics(Device& device, std::span<uint64_t> sums) noexcept;

}  // namespace heddle::nic
