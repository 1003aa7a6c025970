// SPDX-License-Identifier: Apache-2.0
// Streams of operations, under loss and congestion, in clock cycles.
#pragma once

#include <cstdint>

#include "bench/system/measurements.h"

namespace heddle::bench {

// Operations of one kind from one NIC to another: 1 MiB of them is outstanding,
// at most 1,000.
struct Stream {
  contract::Opcode opcode = contract::Opcode::kWrite;  // Or kRead, kSend.
  uint32_t bytes = 65536;
  uint32_t operations = 200;  // Measured, after those outstanding at first.
  bool ordered = true;        // On ROD; otherwise on RUD.
  bool delivery_complete = false;
  double loss = 0;  // Probability for each frame.
};
// Cycles for them, from completion to completion.
uint64_t MeasureStream(const Conditions& conditions, const Stream& stream);

// WRITEs of eight NICs to one, whose line has a queue that trims, with NSCC.
struct Incast {
  double goodput = 0;  // Payload in % of what the line carries meanwhile.
  uint64_t timeouts = 0;
  uint64_t trimmed = 0;          // Packets.
  uint64_t retransmissions = 0;  // Packets.
};
Incast MeasureIncast(const Conditions& conditions, bool ordered);

}  // namespace heddle::bench
