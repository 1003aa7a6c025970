// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/verdict.h"

#include <algorithm>

namespace heddle::conformance {

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNoTest:
      return "no test";
    case Verdict::kNotOffered:
      return "not offered";
    case Verdict::kRefused:
      return "refused";
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    case Verdict::kHung:
      return "hung";
    case Verdict::kCrashed:
      return "crashed";
  }
  return "";
}

bool IsFailure(Verdict verdict) {
  return verdict >= Verdict::kFail;
}

Outcome Strongest(std::span<const Outcome> outcomes) {
  const auto found = std::max_element(
      outcomes.begin(), outcomes.end(),
      [](const Outcome& a, const Outcome& b) { return a.verdict < b.verdict; });
  return found == outcomes.end() ? Outcome{} : *found;
}

}  // namespace heddle::conformance
