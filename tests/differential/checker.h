// SPDX-License-Identifier: Apache-2.0
// Whether what the sides saw is among the outcomes that the API allows.
#pragma once

#include <string>
#include <vector>

#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

struct Figures {
  uint64_t operations = 0;  // Calls that were made.
  uint64_t messages = 0;    // That arrived.
  uint64_t accesses = 0;    // Reads and writes that succeeded.
  uint64_t lost = 0;
  uint64_t duplicated = 0;
  uint64_t corrupted = 0;

  void Add(const Figures& other);
};

struct Verdict {
  // One sentence each, in the order of the run; empty when all was allowed.
  std::vector<std::string> violations;
  Figures figures;
};

// Allowed is, between two syncs:
//  - each call answers what its arguments ask for: 0, -FI_EAGAIN for a full
//    queue, the named error for an invalid call, which has no other effect;
//  - an operation that was accepted completes once when a completion was asked
//    for, else not; an error is always reported and needs a cause: a buffer
//    too short, a cancelled receive, an endpoint or a region that was closed,
//    an access that is refused;
//  - a message whose endpoints stayed open arrives exactly once, with its
//    bytes, data and sender, in the oldest buffer that has none; one whose
//    sender or receiver was closed arrives at most once;
//  - a transfer of a phase in which no side began anew succeeds, also to a side
//    that began anew before: it reaches the owner of the address;
//  - the successor of a process may get again what that one got, unless it was
//    acknowledged before that one's end;
//  - peers that leave in order and in peace cost no restart of a PDC;
//  - with `ordered`, messages of one endpoint to another are in order of
//    posting;
//  - no byte changes behind a message or after its completion;
//  - bytes of regions are as `MemoryChecker` says.
Verdict Check(const Stream& stream, const Trace& trace);

}  // namespace heddle::differential
