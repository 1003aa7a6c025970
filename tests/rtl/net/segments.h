// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/rtl/queue/bits.h"

namespace heddle::test {

// Local segments of a message, `segments_t` in RTL.
struct Segments {
  static constexpr size_t kCount = 4;

  std::array<uint64_t, kCount> iova{};
  std::array<uint32_t, kCount> length{};

  template <typename Port>
  void To(Port* port) const {
    BitWriter w(kCount * 96);
    for (size_t i = kCount; i-- > 0;) {
      w.Put(iova[i], 64);
    }
    for (size_t i = kCount; i-- > 0;) {
      w.Put(length[i], 32);
    }
    w.To(port);
  }
};

}  // namespace heddle::test
