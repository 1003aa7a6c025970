// SPDX-License-Identifier: Apache-2.0
// Which ordered packets ahead of the expected one are reported with a NACK.
#pragma once

#include <cstdint>

#include "hw/soft/rules/psn.h"
#include "hw/soft/rules/trim.h"

namespace heddle::soft::rules {

// Reported is the first packet behind a gap, and then one of each pass of a
// sender that went back and whose retransmission of the expected packet was
// lost. A pass begins with a retransmission that is not behind the packet seen
// last, and is one when another follows behind that: a peer that sends again
// only what a NACK names, which the reference provider does five times at most,
// brings no second one. One that is none, at the end of a window, shows that
// the sender has not gone back: the NACK was lost, and is repeated.
//
// A trimmed packet overtakes those before it, so that it comes while the gap
// that these close is open. The first one of a pass that is not reported is
// remembered, and reported when it is the expected one: it may have been the
// last that the sender's window let out. What is reported behind it leaves it:
// the sender ignores that if it has not sent the packet again. As
// heddle_rod_gap.
class RodGap {
 public:
  struct State {
    bool open = false;
    bool refused = false;     // Since the expected packet was.
    bool turned = false;      // The last one began a pass of the sender.
                              // Unordered, not open: one was dropped.
    uint16_t last = 0;        // It was so far ahead.
    Trim lost = Trim::kNone;  // How one ahead was trimmed that is remembered,
    uint16_t lost_psn = 0;    // and the low 10 bits of its PSN; 0 without.

    bool operator==(const State&) const = default;
  };

  RodGap() = default;
  explicit RodGap(const State& state) : state_(state) {}
  const State& state() const { return state_; }

  bool open() const { return state_.open; }
  // The expected packet was trimmed and reported, or
  void Open() { state_ = {.open = true}; }
  // was refused: nothing behind it is reported.
  void Refuse() { state_ = {.open = true, .refused = true}; }

  // Unordered: a packet ahead was dropped, and not reported.
  void Miss() { state_.turned = true; }
  bool missed() const { return !state_.open && state_.turned; }

  // Is a packet `ahead` (less than kRodWindow) of the expected one reported?
  [[nodiscard]] bool Reports(uint32_t ahead, bool retx) const {
    const bool full = !retx && ahead == kWindow - 1;
    return !state_.open || (state_.turned && retx && !Turns(ahead, retx)) ||
           (full && !state_.refused);
  }
  // It came. True: it is reported.
  [[nodiscard]] bool Pass(uint32_t ahead, bool retx, uint32_t psn, Trim trim) {
    const bool turns = Turns(ahead, retx);
    const bool reports = Reports(ahead, retx);
    state_.open = true;
    state_.turned = turns;
    state_.last = static_cast<uint16_t>(ahead);
    const bool remembers =
        trim != Trim::kNone && retx && (state_.lost == Trim::kNone || turns);
    const bool behind =
        ((psn - state_.lost_psn) & kDistanceMask) - 1 < kFarthest;
    if ((reports && !behind) || (turns && !remembers)) {
      state_.lost = Trim::kNone;
      state_.lost_psn = 0;
    } else if (remembers && !reports) {
      state_.lost = trim;
      state_.lost_psn = static_cast<uint16_t>(psn & kDistanceMask);
    }
    return reports;
  }
  // The expected packet was accepted, and `next` is expected now. Not kNone:
  // that was trimmed there; report it and `Open`.
  [[nodiscard]] Trim Accept(uint32_t next) {
    if (!state_.open && !state_.turned && state_.lost == Trim::kNone) {
      return Trim::kNone;  // Nothing is known.
    }
    const Trim lost =
        state_.lost_psn == (next & kDistanceMask) ? state_.lost : Trim::kNone;
    if (lost == Trim::kNone) {
      state_ = {.lost = state_.lost, .lost_psn = state_.lost_psn};
    } else {
      state_ = {};
    }
    return lost;
  }

 private:
  // PSNs less than kRodWindow ahead differ in these bits, and earlier ones
  // from later ones.
  static constexpr uint32_t kDistanceMask = 2 * kRodWindow - 1;
  static constexpr uint32_t kFarthest = kRodWindow - 1;

  bool Turns(uint32_t ahead, bool retx) const {
    return state_.open && retx && ahead <= state_.last;
  }

  State state_;
};

}  // namespace heddle::soft::rules
