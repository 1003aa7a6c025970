// SPDX-License-Identifier: Apache-2.0
// The cost of loss and of peers without credit, in clock cycles.
#pragma once

#include <cstdint>

#include "bench/system/measurements.h"

namespace heddle::bench {

// Cycles for a stream of WRITEs of 64 KiB, several in flight at a time, when
// each frame is lost with the probability `loss`.
struct WriteStream {
  bool ordered = true;  // On ROD; otherwise on RUD.
  double loss = 0;
  uint32_t writes = 400;
};
uint64_t MeasureWriteStream(const Conditions& conditions,
                            const WriteStream& stream);

// Cycles until three peers have 8-byte SENDs and 4 KiB WRITEs in turn that come
// through one ring; `stuck` puts SENDs to a fourth between them, which has no
// receive buffer.
uint64_t MeasureOthersOfAStuckPeer(const Conditions& conditions, bool ordered,
                                   bool stuck);

// WRITEs of eight NICs to one, whose line has a queue that trims, with NSCC.
struct Incast {
  double goodput = 0;  // Payload in % of what the line carries meanwhile.
  uint64_t timeouts = 0;
  uint64_t trimmed = 0;          // Packets.
  uint64_t retransmissions = 0;  // Packets.
};
Incast MeasureIncast(const Conditions& conditions, bool ordered);

}  // namespace heddle::bench
