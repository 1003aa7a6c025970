// SPDX-License-Identifier: Apache-2.0
// Rates of small messages, in clock cycles.
#pragma once

#include <cstdint>

#include "bench/system/measurements.h"

namespace heddle::bench {

// 8-byte SENDs from one context to `peers` entries of its address vector in
// turn; one completion in 16.
struct Messages {
  uint32_t peers = 1;
  uint32_t endpoints = 0;   // That the entries name, in turn; 0: one each.
  uint32_t burst = 1;       // So many at a time to each.
  uint32_t warm_up = 2000;  // And 20 for each endpoint, while PDCs open.
  uint32_t count = 3000;    // Measured.
  // Log2 of the slots of a target's receive ring: 256 buffers last for 510
  // cycles at full rate, and may take longer to come back.
  uint8_t rx_log2 = 10;
  bool ordered = true;  // On ROD; otherwise on RUD.
  double loss = 0;      // Probability for each frame.
  bool ipv6 = false;
  bool doorbells = false;           // One for each message.
  bool congestion_control = false;  // NSCC.
  bool spill = false;               // The context has a spill area.
  bool early_release = false;       // It may use one in the NIC.
  // Every tenth operation goes to one more peer, without receive buffers. The
  // others are counted.
  bool stuck_peer = false;
};
struct MessageRate {
  double cycles = 0;     // Each.
  uint64_t arrived = 0;  // Those of the warm-up, too.
  bool stopped = false;  // Nothing more arrived.
  uint64_t dropped = 0;  // Frames that found a receive buffer full.
};
MessageRate MeasureMessages(const Conditions& conditions,
                            const Messages& messages);

}  // namespace heddle::bench
