// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace heddle::soft::rules {

// Where the network cut off a packet's payload, and its CRC with it (UET 3.4).
enum class Trim : uint8_t { kNone, kPath, kLasthop };

}  // namespace heddle::soft::rules
