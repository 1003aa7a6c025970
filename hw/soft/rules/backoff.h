// SPDX-License-Identifier: Apache-2.0
// How long a sender waits before its next attempt, as in heddle_pdc_tx and
// heddle_return_tx.
#pragma once

#include <cstdint>

namespace heddle::soft::rules {

// The RTO, or the wait after a refusal: twice as long after each attempt in
// vain. The unit of time is the caller's.
class Backoff {
 public:
  // It begins with `first` and never exceeds `limit`.
  constexpr uint64_t Time(uint64_t first, uint64_t limit) const {
    return first > (limit >> doublings_) ? limit : first << doublings_;
  }
  constexpr void NoteInVain() {
    doublings_ = static_cast<uint8_t>(doublings_ + (doublings_ < 31));
  }
  // The peer took a packet, or answered: the next attempt counts as the first.
  constexpr void Reset() { doublings_ = 0; }
  constexpr bool at_first() const { return doublings_ == 0; }

 private:
  uint8_t doublings_ = 0;
};

}  // namespace heddle::soft::rules
