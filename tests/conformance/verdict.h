// SPDX-License-Identifier: Apache-2.0
// Verdicts of tests and requirements.
#pragma once

#include <span>
#include <string>

namespace heddle::conformance {

// From the weakest: of several tests of a requirement the strongest counts, so
// that no test that passes hides one that fails.
enum class Verdict {
  kNoTest,
  kNotOffered,  // fi_getinfo reports -FI_ENODATA.
  kRefused,     // As the page permits; the test asserts the errno.
  kPass,
  kFail,
  kHung,  // Ended by the runner at the limit.
  kCrashed,
};

const char* Name(Verdict verdict);
bool IsFailure(Verdict verdict);

// Result of a test, or of a requirement.
struct Outcome {
  Verdict verdict = Verdict::kNoTest;
  // First failed assertion, signal, limit, errno or what is not offered; of a
  // pass empty.
  std::string reason = {};
};

Outcome Strongest(std::span<const Outcome> outcomes);

}  // namespace heddle::conformance
