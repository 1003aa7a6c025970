// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/checker.h"

#include "tests/differential/memory_checker.h"
#include "tests/differential/message_checker.h"

namespace heddle::differential {

void Figures::Add(const Figures& other) {
  operations += other.operations;
  messages += other.messages;
  accesses += other.accesses;
  lost += other.lost;
  duplicated += other.duplicated;
  corrupted += other.corrupted;
}

Verdict Check(const Stream& stream, const Trace& trace) {
  Verdict verdict;
  if (!trace.failure.empty()) {
    verdict.violations.push_back("the run ended early: " + trace.failure);
  }
  MessageChecker messages(stream, &verdict);
  MemoryChecker memory(stream, &verdict);
  std::array<size_t, kMaxSides> next = {};
  bool more = true;
  while (more) {
    more = false;
    bool settled = true;
    for (uint32_t side = 0; side < stream.setup.sides; ++side) {
      const std::vector<Event>& events = trace.sides.at(side);
      size_t& at = next.at(side);
      while (at < events.size() && events[at].kind != EventKind::kSettled) {
        messages.Feed(side, events[at]);
        memory.Feed(side, events[at++]);
      }
      settled = settled && at < events.size();
      more = more || at + 1 < events.size();
      ++at;
    }
    // What a run that ended early still owes says why it did.
    if (settled || !trace.failure.empty()) {
      messages.Settle();
      memory.Settle();
    }
    more = more && settled;
  }
  return verdict;
}

}  // namespace heddle::differential
