// SPDX-License-Identifier: Apache-2.0
// The content of an ACK. As heddle_cack, heddle_standing and
// heddle_accept_answer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hw/soft/rules/accept.h"

namespace heddle::soft::rules {

// What the ACK is sent for.
enum class AckFor : uint8_t {
  kTaken,   // A packet that was just taken as its initiator means it.
  kKnown,   // One that came before, or that is answered with an error.
  kNobody,  // All that came.
};

struct AckSays {
  uint32_t cack = 0;
  uint32_t psn = 0;     // That it names, by its offset from `cack`.
  bool stored = false;  // With the answer stored for `psn`, which the peer is
                        // to clear.
};

// `psn`: of what the ACK is for.
inline AckSays AckOf(const ReceiveWindow& window, AckFor what, uint32_t psn,
                     const AnswerRules& rules) {
  const uint32_t cack = window.cack();
  if (what == AckFor::kNobody && !rules.repeats) {
    return {cack, cack, false};
  }
  if (!rules.repeats) {
    return {cack, psn, window.Holds(psn)};
  }
  if (window.holds()) {
    return {cack, cack + 1, true};
  }
  const bool named =
      what == AckFor::kTaken || (what == AckFor::kKnown && Before(psn, cack));
  return {cack, named ? psn : cack, false};
}

// The bitmap of an ACK_CC: bit i: PSN cack + 1 + i came, also if what was
// answered to it is held back.
inline uint64_t SackBitmap(const ReceiveWindow& window) {
  return window.received();
}

// The field counts 256 bytes and wraps.
constexpr uint32_t ReceivedField(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + 255) >> 8) & 0xffffff;
}

// The field counts 128 ns and says 0 when the time is not known.
constexpr uint16_t ServiceField(uint64_t ns) {
  return static_cast<uint16_t>(std::clamp<uint64_t>(ns / 128, 1, 0xffff));
}

}  // namespace heddle::soft::rules
