// SPDX-License-Identifier: Apache-2.0
// The demands of the manual pages of libfabric 1.17, in our own words.
#pragma once

namespace heddle::conformance {

// Requirements are numbered from 1 to this.
extern const int kRequirements;

// One line about the requirement of that number.
const char* Meaning(int number);

}  // namespace heddle::conformance
