// SPDX-License-Identifier: Apache-2.0
// Which ordered packets ahead of the expected one are reported with a NACK.
#pragma once

#include <cstdint>

#include "hw/sim/soft/transport/psn.h"

namespace heddle::sim::soft::transport {

// Reported is the first packet behind a gap, and then one of each pass of a
// sender that went back and whose retransmission of the expected packet was
// lost. A pass begins with a retransmission that is not behind the packet seen
// last, and is one when another follows behind that: a peer that sends again
// only what a NACK names, which the reference provider does five times at most,
// brings no second one. One that is none, at the end of a window, shows that
// the sender has not gone back: the NACK was lost, and is repeated. As
// heddle_rod_gap.
class RodGap {
 public:
  bool open() const { return open_; }
  // The expected packet came, or
  void Close() { *this = RodGap(); }
  // was trimmed and reported, or
  void Open() {
    Close();
    open_ = true;
  }
  // was refused: nothing behind it is reported.
  void Refuse() {
    Open();
    refused_ = true;
  }
  // A packet came `ahead` (less than 128) of the expected one. True: it is
  // reported.
  [[nodiscard]] bool Pass(uint32_t ahead, bool retx) {
    const bool turns = open_ && retx && ahead <= last_;
    const bool full = !retx && ahead == kWindow - 1;
    const bool reports =
        !open_ || (turned_ && retx && !turns) || (full && !refused_);
    open_ = true;
    turned_ = turns;
    last_ = static_cast<uint8_t>(ahead);
    return reports;
  }

 private:
  uint8_t last_ = 0;
  bool open_ = false;
  bool refused_ = false;
  bool turned_ = false;
};

}  // namespace heddle::sim::soft::transport
