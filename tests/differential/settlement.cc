// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/settlement.h"

#include <algorithm>
#include <utility>

namespace heddle::differential {
void Settlement::Feed(uint32_t side, Event event) {
  balance_.Feed(side, event);
  if (event.kind == EventKind::kCalled) {
    called_ = true;
    const Verb verb = stream_.operations.at(event.number).verb;
    renewed_ = renewed_ || IsRenewal(verb);
    transferred_ = transferred_ || IsSend(verb) || IsRma(verb);
  }
  trace_.sides.at(side).push_back(std::move(event));
}

std::optional<std::chrono::nanoseconds> Settlement::quiet() const {
  const auto sides = static_cast<ptrdiff_t>(stream_.setup.sides);
  if (!std::all_of(settling_.begin(), settling_.begin() + sides,
                   [](bool settling) { return settling; })) {
    return std::nullopt;
  }
  const std::chrono::nanoseconds none{0};
  return !called_                     ? none
         : (renewed_ && transferred_) ? QuietAfterRenewals(time_)
         : balance_.vague()           ? QuietAfterCloses()
                                      : none;
}

bool Settlement::LetGoOn(std::chrono::nanoseconds silence) {
  const auto wanted = quiet();
  if (!wanted || silence < *wanted || !balance_.settled()) {
    return false;
  }
  called_ = renewed_ = transferred_ = false;
  settling_ = {};
  return true;
}

}  // namespace heddle::differential
