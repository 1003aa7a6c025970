// SPDX-License-Identifier: Apache-2.0
// Random streams.
#pragma once

#include <cstdint>

#include "tests/differential/stream.h"

namespace heddle::differential {

struct Profile {
  struct Sides {
    uint32_t least = 2;
    uint32_t most = 2;
  };
  Sides sides = {};          // At most kMaxSides.
  uint32_t operations = 60;  // Without syncs.
  // At most; the default keeps streams on simulated RTL short.
  uint32_t max_bytes = 20'000;
  bool rma = false;  // Writes and reads, some streams with their order.
  // With `rma`. A device without reads has no counters either, which tell when
  // writes that are not reported have ended: there are none then.
  bool reads = true;
  bool tagged = false;     // Some streams have tagged messages, too.
  bool unordered = false;  // Some streams do not ask for order.
  bool closes = false;     // Some streams close endpoints under traffic.
  bool unplugs = false;    // Some streams take a link down for a moment.
  bool kills = false;      // Some streams kill the process of a side.
  bool resets = false;     // Some streams reset the NIC of a side.
  // In some streams a side leaves in order and comes back, in a new domain or a
  // new process: under traffic, or in peace, without any fault of the wire.
  bool leaves = false;
  // Then streams have no transfers but reads.
  double read_again = 0;
  WireFaults faults = {};
};

// The same for the same seed and profile. Ends with a sync. In streams that
// end endpoints under traffic, in which messages may be missing, every message
// is long enough to be told from all others.
Stream Generate(uint64_t seed, const Profile& profile);

}  // namespace heddle::differential
