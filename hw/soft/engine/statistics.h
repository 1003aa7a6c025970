// SPDX-License-Identifier: Apache-2.0
// Event counts by contract `statistic`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::soft::engine {

// Thread safety: one thread at a time.
class Statistics {
 public:
  void Count(contract::Statistic which) noexcept {
    ++counts_[static_cast<size_t>(which) % kCount];
  }
  uint64_t value(contract::Statistic which) const noexcept {
    return counts_[static_cast<size_t>(which) % kCount];
  }

 private:
  static constexpr size_t kCount = contract::kBar0StatisticsCount;
  std::array<uint64_t, kCount> counts_ = {};
};

}  // namespace heddle::soft::engine
