// SPDX-License-Identifier: Apache-2.0
// Which ordered packets ahead of the expected one are reported with a NACK.
#pragma once

#include <cstdint>

#include "hw/soft/transport/psn.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::transport {

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
  bool open() const { return open_; }
  // The expected packet was trimmed and reported, or
  void Open() {
    *this = RodGap();
    open_ = true;
  }
  // was refused: nothing behind it is reported.
  void Refuse() {
    Open();
    refused_ = true;
  }
  // A packet came `ahead` (less than 128) of the expected one. True: it is
  // reported.
  [[nodiscard]] bool Pass(uint32_t ahead, bool retx, uint32_t psn,
                          wire::Trim trim) {
    const bool turns = open_ && retx && ahead <= last_;
    const bool full = !retx && ahead == kWindow - 1;
    const bool reports =
        !open_ || (turned_ && retx && !turns) || (full && !refused_);
    open_ = true;
    turned_ = turns;
    last_ = static_cast<uint8_t>(ahead);
    const bool remembers = trim != wire::Trim::kNone && retx &&
                           (lost_ == wire::Trim::kNone || turns);
    const bool behind = ((psn - lost_psn_) & kDistanceMask) - 1 < kFarthest;
    if ((reports && !behind) || (turns && !remembers)) {
      lost_ = wire::Trim::kNone;
    } else if (remembers && !reports) {
      lost_ = trim;
      lost_psn_ = static_cast<uint8_t>(psn & kDistanceMask);
    }
    return reports;
  }
  // The expected packet was accepted, and `next` is expected now. Not kNone:
  // that was trimmed there; report it and `Open`.
  [[nodiscard]] wire::Trim Accept(uint32_t next) {
    const wire::Trim lost =
        lost_psn_ == (next & kDistanceMask) ? lost_ : wire::Trim::kNone;
    open_ = refused_ = turned_ = false;
    last_ = 0;
    if (lost != wire::Trim::kNone) {
      lost_ = wire::Trim::kNone;
    }
    return lost;
  }

 private:
  // PSNs less than 128 ahead differ in these bits.
  static constexpr uint32_t kDistanceMask = 127;
  static constexpr uint32_t kFarthest = 63;

  uint8_t lost_psn_ = 0;
  wire::Trim lost_ = wire::Trim::kNone;
  uint8_t last_ = 0;
  bool open_ = false;
  bool refused_ = false;
  bool turned_ = false;
};

}  // namespace heddle::soft::transport
