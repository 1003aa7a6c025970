// SPDX-License-Identifier: Apache-2.0
// When the sides of a run may go on from a sync.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "tests/differential/balance.h"
#include "tests/differential/settings.h"
#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

// Fed with what the sides say, and keeps it. Time is that of the run.
// Thread safety: none.
class Settlement {
 public:
  // `stream` must live as long.
  Settlement(const Stream& stream, Time time)
      : stream_(stream), time_(time), balance_(stream) {}

  void Feed(uint32_t side, Event event);
  // The side waits at a sync.
  void SaySettling(uint32_t side) { settling_.at(side) = true; }
  bool settling(uint32_t side) const { return settling_.at(side); }

  // For how long no event may come, once all sides wait at a sync, before they
  // may go on.
  std::optional<std::chrono::nanoseconds> quiet() const;
  // Whether all may go on, when no event came for `silence`. Once true,
  // they have gone on.
  bool LetGoOn(std::chrono::nanoseconds silence);

  Trace& trace() { return trace_; }

 private:
  const Stream& stream_;
  const Time time_;
  Balance balance_;
  Trace trace_;
  std::array<bool, kMaxSides> settling_ = {};
  // Since they last went on: anything was called, a side began anew, there were
  // transfers.
  bool called_ = false;
  bool renewed_ = false;
  bool transferred_ = false;
};

}  // namespace heddle::differential
