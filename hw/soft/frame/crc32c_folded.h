// SPDX-License-Identifier: Apache-2.0
// CRC-32C by carry-less multiplication of 64 bytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/soft/frame/crc32c.h"

namespace heddle::soft::frame {

// Where the CPU multiplies vectors of 512 bits; else null. At least
// `kFoldedLeast` bytes a call.
inline constexpr size_t kFoldedLeast = 256;
Crc32cFunction Crc32cFolded();

}  // namespace heddle::soft::frame
