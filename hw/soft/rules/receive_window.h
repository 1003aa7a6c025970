// SPDX-License-Identifier: Apache-2.0
// Which packets of one direction of a PDC have come.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "hw/soft/rules/psn.h"

namespace heddle::soft::rules {

// Where a PSN lies in a receive window.
enum class Place : uint8_t {
  kNext,       // It is the next one.
  kAhead,      // Unordered: new, and one before it is missing.
  kEarly,      // Ordered: one before it is missing.
  kDuplicate,  // Came before.
  kOutside,    // Too far above or below.
};

// How far a receiver reaches.
struct Reach {
  uint32_t window = kWindow;  // PSNs from the next one on.
  // Nor more than these above `cack`: an answer can be held for each of them.
  // 0: any number, but then nothing can be held but the answer to `cack` + 1.
  uint32_t above_cack = kWindow;
  // How far an ordered packet may be ahead to be told what is missing.
  uint32_t early = kRodWindow;
  // As far below as an ACK's offset can name.
  uint32_t behind = 1u << 15;
};

// All PSNs before `next` have come, and those of a bitmap behind it. Done are
// those up to `cack`: none from the first on whose stored answer is not cleared
// yet (UET 2.15).
class ReceiveWindow {
 public:
  struct State {
    uint32_t cack = 0;
    uint32_t next = 1;
    uint64_t ahead = 0;  // Bit i: PSN next + i came; bit 0 never.
    uint64_t held = 0;   // Bit i: the answer to cack + 1 + i is not cleared.
  };

  ReceiveWindow() = default;
  explicit ReceiveWindow(const State& state) : state_(state) {}

  void Open(uint32_t start) {
    state_ = {.cack = start - 1, .next = start};
    owed_ = 0;
  }

  uint32_t cack() const { return state_.cack; }
  uint32_t next() const { return state_.next; }
  // Some PSN below one that came is missing.
  bool gap() const { return state_.ahead != 0; }
  // Answers wait to be cleared,
  bool holds() const { return state_.held != 0; }
  // so many.
  uint32_t held() const {
    return static_cast<uint32_t>(std::popcount(state_.held));
  }
  bool Holds(uint32_t psn) const {
    const uint32_t above = psn - state_.cack - 1;
    return above < kWindow && (state_.held & Bit(above)) != 0;
  }
  const State& state() const { return state_; }

  // Bit i: PSN cack + 1 + i came. Of those further up nothing is said.
  uint64_t received() const {
    const uint32_t back = state_.next - 1 - state_.cack;
    return back < kWindow ? state_.ahead << back | LowBits(back) : ~uint64_t{0};
  }

  Place Find(uint32_t psn, bool ordered, const Reach& reach) const {
    const uint32_t ahead = psn - state_.next;
    if (ahead == 0 && state_.held == 0) {
      return Place::kNext;
    }
    if (ahead >= 0u - reach.behind) {
      return Place::kDuplicate;
    }
    if (ahead >= reach.window ||
        (reach.above_cack != 0 && psn - state_.cack - 1 >= reach.above_cack)) {
      return ordered && ahead != 0 && ahead < reach.early ? Place::kEarly
                                                          : Place::kOutside;
    }
    if (ahead == 0) {
      return Place::kNext;
    }
    if (ordered) {
      return Place::kEarly;
    }
    return (state_.ahead & Bit(ahead)) != 0 ? Place::kDuplicate : Place::kAhead;
  }

  // `psn` came, which was next or ahead; `hold`: its answer is to be cleared.
  void Accept(uint32_t psn, bool hold) {
    if (psn == state_.next && (state_.ahead | state_.held) == 0 && !hold) {
      ++state_.next;
      ++state_.cack;
      owed_ >>= 1;
      return;
    }
    if (hold) {
      state_.held |= Bit(psn - state_.cack - 1);
    }
    const uint64_t came = state_.ahead | Bit(psn - state_.next);
    const auto run = static_cast<uint32_t>(std::countr_one(came));
    state_.next += run;
    state_.ahead = MovedUp(came, run);
    Advance();
  }

  // Answers up to `psn` are with the peer. True if `cack` moved.
  bool Clear(uint32_t psn) {
    if (!Clears(psn)) {
      return false;
    }
    const uint32_t before = state_.cack;
    state_.held &= ~LowBits(psn - state_.cack);
    Advance();
    return state_.cack != before;
  }
  // An answer up to `psn` waits for that.
  bool Clears(uint32_t psn) const {
    return state_.held != 0 && Before(state_.cack, psn) &&
           (state_.held & LowBits(psn - state_.cack)) != 0;
  }

  // `psn` came, and its acknowledgement waits; CACK may come to say it, too.
  void Owe(uint32_t psn) {
    const uint32_t above = psn - state_.cack - 1;
    owed_ |= above < kWindow ? Bit(above) : 0;
  }
  // That the source cannot learn from CACK. Bit i: PSN cack + 1 + i.
  uint64_t owed() const { return owed_; }
  void Pay(uint32_t psn) { owed_ &= ~Bit(psn - state_.cack - 1); }

 private:
  void Advance() {
    const uint32_t came = state_.next - 1 - state_.cack;
    const uint32_t count =
        state_.held == 0
            ? came
            : std::min(came,
                       static_cast<uint32_t>(std::countr_zero(state_.held)));
    state_.cack += count;
    state_.held = MovedUp(state_.held, count);
    owed_ = MovedUp(owed_, count);
  }

  State state_;
  uint64_t owed_ = 0;
};

}  // namespace heddle::soft::rules
