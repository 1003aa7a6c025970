// SPDX-License-Identifier: Apache-2.0
// Compiled for the CRC extension of ARMv8; called where the CPU has it.
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "hw/soft/frame/crc32c.h"
#include "hw/soft/frame/crc32c_folded.h"
#include "hw/soft/frame/crc32c_lanes.h"

namespace heddle::soft::frame {
namespace {

struct Armv8 {
  static uint32_t Word(uint32_t state, uint64_t word) {
    return __crc32cd(state, word);
  }
  static uint32_t Byte(uint32_t state, uint8_t byte) {
    return __crc32cb(state, byte);
  }
};

}  // namespace

Crc32cFunction Crc32cOfCpu() {
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0 ? &Crc32cLanes<Armv8>::Run
                                                  : nullptr;
}

Crc32cFunction Crc32cFolded() {
  return nullptr;
}

}  // namespace heddle::soft::frame
