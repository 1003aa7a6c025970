// SPDX-License-Identifier: Apache-2.0
// For CPUs whose instructions for CRC-32C, if any, are not used here.
#include "hw/soft/frame/crc32c.h"
#include "hw/soft/frame/crc32c_folded.h"

namespace heddle::soft::frame {

Crc32cFunction Crc32cOfCpu() {
  return nullptr;
}

Crc32cFunction Crc32cFolded() {
  return nullptr;
}

}  // namespace heddle::soft::frame
