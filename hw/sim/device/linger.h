// SPDX-License-Identifier: Apache-2.0
// How long what closes goes on to answer.
#pragma once

#include <cstdint>

namespace heddle::sim::device {

// A peer whose last ACK was lost asks again an RTO later, and two, four and so
// on after that. A closing device answers until its peers have been silent for
// so long: three such times and an RTO to arrive in.
inline constexpr uint64_t kLingerRtos = 8;
// But no longer than this, whoever talks to it.
inline constexpr uint64_t kLingerLimitNs = 2'000'000'000;

}  // namespace heddle::sim::device
