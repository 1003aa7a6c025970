// SPDX-License-Identifier: Apache-2.0
// Compiled for SSE4.2; called where the CPU has it.
#include <nmmintrin.h>

#include "hw/soft/frame/crc32c.h"
#include "hw/soft/frame/crc32c_lanes.h"

namespace heddle::soft::frame {
namespace {

struct Sse42 {
  static uint32_t Word(uint32_t state, uint64_t word) {
    return static_cast<uint32_t>(_mm_crc32_u64(state, word));
  }
  static uint32_t Byte(uint32_t state, uint8_t byte) {
    return _mm_crc32_u8(state, byte);
  }
};

}  // namespace

Crc32cFunction Crc32cOfCpu() {
  return __builtin_cpu_supports("sse4.2") != 0 ? &Crc32cLanes<Sse42>::Run
                                               : nullptr;
}

}  // namespace heddle::soft::frame
