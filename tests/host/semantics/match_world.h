// SPDX-License-Identifier: Apache-2.0
// Few tags and sources, so that random rules and messages often meet.
#pragma once

#include <cstdint>
#include <random>

#include "host/lib/semantics/match_rule.h"

namespace heddle::semantics {

// Sources that differ in one field each.
inline Source SomeSource(uint32_t which) {
  Source source = {0x0a000001, 0, 0x10100, false};
  switch (which % 4) {
    case 1:
      source.initiator = 0x10200;
      break;
    case 2:
      source.address_lo = 0x0a000002;
      break;
    case 3:
      source.ipv6 = true;
      source.address_hi = 1;
      break;
    default:
      break;
  }
  return source;
}

inline Envelope RandomMessage(std::mt19937& random) {
  return {random() % 8, SomeSource(static_cast<uint32_t>(random()))};
}

// `wild` of 8 rules ignore bits of the tag.
inline MatchRule RandomRule(std::mt19937& random, uint32_t wild) {
  MatchRule rule;
  rule.tag = random() % 8;
  if (random() % 8 < wild) {
    rule.ignore = random() % 4 == 0 ? ~uint64_t{0} : random() % 8;
  }
  rule.any_source = random() % 2 == 0;
  rule.source = SomeSource(static_cast<uint32_t>(random()));
  return rule;
}

}  // namespace heddle::semantics
