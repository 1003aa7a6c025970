// SPDX-License-Identifier: Apache-2.0
// The generations of contexts as a port has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "tests/rtl/transport/packed.h"
#include "tests/rtl/widths.h"

namespace heddle::test {

// Of each context, 0 where `of` has none.
inline BitString Gens(const std::map<size_t, uint32_t>& of) {
  constexpr size_t kContexts = 16;
  BitString bits;
  for (size_t i = kContexts; i-- > 0;) {
    const auto gen = of.find(i);
    bits.Append(gen == of.end() ? 0 : gen->second, kGenBits);
  }
  return bits;
}

}  // namespace heddle::test
