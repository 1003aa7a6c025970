// SPDX-License-Identifier: Apache-2.0
// One direction of a bad wire: what it does to a stream of frames.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "hw/sim/fault/faults.h"
#include "hw/sim/fault/shaper.h"

namespace heddle::sim::fault {

// Longest that a frame is held back for reordering where time is in ns.
inline constexpr uint64_t kHoldNs = 1000000;

// Says which frames leave, in which order, when. Faults come first, then rate
// and delay. Of a frame that is both doubled and damaged, the first copy is
// good. Thread safety: none.
class FaultyLine {
 public:
  // A frame held back for reordering leaves after `hold` at the latest. Time is
  // in the unit of `options`.
  FaultyLine(const FaultOptions& options, uint64_t hold)
      : hold_(hold),
        ip_protocol_(options.ip_protocol),
        shapes_(options.shapes()),
        injector_(options),
        shaper_(options) {}

  // Takes the next frame at `now`, which never goes back; appends to `out` the
  // frames that leave now.
  void Push(LineFrame frame, uint64_t now, std::vector<LineFrame>* out);
  void Push(frame::Frame frame, uint64_t now, std::vector<LineFrame>* out);

  // Appends the frames whose time has come.
  void Release(uint64_t now, std::vector<LineFrame>* out);
  // When `Release` has something; UINT64_MAX if nothing is held.
  uint64_t next() const;

  // False: each frame leaves at once and unchanged; `Push` can be spared.
  bool active() const { return shapes_ || injector_.active(); }
  const FaultInjector& injector() const { return injector_; }
  const Shaper& shaper() const { return shaper_; }
  // Lines `PREFIXname value` of what happened to frames.
  std::string StatisticsText(const std::string& prefix) const;

 private:
  struct Held {
    LineFrame frame;
    uint32_t remaining;  // Frames that still pass it.
    uint64_t until;
  };

  // Moves `leaving_` on.
  void Leave(uint64_t now, std::vector<LineFrame>* out);

  const uint64_t hold_;
  const uint8_t ip_protocol_;
  const bool shapes_;
  FaultInjector injector_;
  Shaper shaper_;
  std::deque<Held> held_;
  std::vector<LineFrame> leaving_;  // Scratch.
};

}  // namespace heddle::sim::fault
