// SPDX-License-Identifier: Apache-2.0
// For CPUs whose instructions for CRC-32C, if any, are not used here.
#include "hw/sim/soft/frame/crc32c.h"
#include "hw/sim/soft/frame/crc32c_folded.h"

namespace heddle::sim::soft::frame {

Crc32cFunction Crc32cOfCpu() {
  return nullptr;
}

Crc32cFunction Crc32cFolded() {
  return nullptr;
}

}  // namespace heddle::sim::soft::frame
