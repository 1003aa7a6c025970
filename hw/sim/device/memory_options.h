// SPDX-License-Identifier: Apache-2.0
// How the host memory of a simulated NIC behaves, and where it is.
#pragma once

#include <cstdint>
#include <span>

#include "hw/sim/device/mapped_memory.h"

namespace heddle::sim::device {

struct MemoryOptions {
  uint64_t seed = 1;
  uint32_t bus_bytes = 64;
  // Address accepted to first beat: latency, plus 0 to jitter.
  uint32_t read_latency_cycles = 150;
  uint32_t read_jitter_cycles = 50;
  // Last beat accepted to commit: 1 to this.
  uint32_t write_delay_cycles = 60;
  // Commit to B: 1 to this.
  uint32_t response_delay_cycles = 40;
  // Each of these is in the middle of its range, for figures that are of the
  // device and not of the cycle in which it asked.
  bool steady = false;
  // Chance per cycle and channel that a ready or a valid is withheld.
  double stall = 0;
  // Broken on purpose: treats all writes as of different IDs. Only for the
  // test that shows that the order of writes is tested.
  bool ignore_write_order = false;
  // When not empty: IOVA `arena_iova` is its first byte, instead of IOVAs
  // being addresses of this process.
  std::span<uint8_t> arena;
  uint64_t arena_iova = 0;
  // When not null: what is mapped, and where; `Map` does not serve it. Outlives
  // the memory, which looks at it under its lock (`Quiesce`).
  MappedMemory* mapped = nullptr;
};

}  // namespace heddle::sim::device
