// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/statistics.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_text.h"

namespace heddle::nic {
namespace {

constexpr std::span<const contract::text::Value> kStatistics =
    contract::text::kStatisticValues;

static_assert(kStatistics.size() <= contract::kBar0StatisticsCount);
// The index into this list is the one in the BAR.
static_assert([] {
  for (size_t index = 0; index < kStatistics.size(); ++index) {
    if (kStatistics[index].value != index) {
      return false;
    }
  }
  return true;
}());

}  // namespace

size_t StatisticCount() noexcept {
  return kStatistics.size();
}

const char* StatisticName(size_t index) noexcept {
  return index < kStatistics.size() ? kStatistics[index].name : nullptr;
}

const char* StatisticHelp(size_t index) noexcept {
  return index < kStatistics.size() ? kStatistics[index].doc : nullptr;
}

Result<size_t> AddStatistics(Device& device,
                             std::span<uint64_t> sums) noexcept {
  const size_t count = std::min(sums.size(), kStatistics.size());
  std::array<uint64_t, contract::kBar0StatisticsCount> values;
  for (size_t index = 0; index < count; ++index) {
    values[index] = device.ReadRegister64(contract::kBar0StatisticsOffset +
                                          static_cast<uint32_t>(index) *
                                              contract::kBar0StatisticsStride);
  }
  // Looked at last: what a lost device answers is not a count.
  if (device.failed()) {
    return Errno{EIO};
  }
  std::transform(values.begin(), values.begin() + count, sums.begin(),
                 sums.begin(),
                 [](uint64_t value, uint64_t sum) { return sum + value; });
  return count;
}

}  // namespace heddle::nic
