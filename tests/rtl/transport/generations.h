// SPDX-License-Identifier: Apache-2.0
// The generations of contexts as a port has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "rtl/records.h"
#include "tests/rtl/pins.h"

namespace heddle::test {

// Puts the generation of each transmit or receive context on `port`: 0 where
// `of` has none.
template <typename Port>
void DriveGens(Port& port, const std::map<size_t, uint32_t>& of) {
  static_assert(rtl::kNumTx == rtl::kNumRx);
  for (size_t i = 0; i < rtl::kNumTx; ++i) {
    const auto gen = of.find(i);
    PutBits(port, i * rtl::kGenW, rtl::kGenW,
            gen == of.end() ? 0 : gen->second);
  }
}

}  // namespace heddle::test
