// SPDX-License-Identifier: Apache-2.0
// How long firmware waits for a unit that always finishes.
#pragma once

#include <stdint.h>

namespace heddle::firmware {

// Reads of a busy register before its unit is called stuck. Each takes a clock
// cycle or more; a host memory access takes some hundreds.
inline constexpr uint32_t kPollLimit = 1U << 20;

}  // namespace heddle::firmware
