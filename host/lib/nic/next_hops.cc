// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/next_hops.h"

#include <functional>

namespace heddle::nic {

size_t NextHops::Hash::operator()(const FabricAddress& address) const noexcept {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  return std::hash<uint64_t>()((address.lo ^ address.hi * kOdd) * kOdd);
}

Result<uint16_t> NextHops::Acquire(const FabricAddress& address) {
  if (!resolves_) {
    return uint16_t{0};
  }
  {
    const std::lock_guard lock(mutex_);
    const auto known = hops_.find(address);
    if (known != hops_.end()) {
      ++known->second.uses;
      return known->second.number;
    }
  }
  const Result<uint32_t> resolved = admin_.ResolveNextHop(address);
  if (!resolved.ok()) {
    return resolved.error();
  }
  const auto number = static_cast<uint16_t>(resolved.value());
  bool twice = false;
  try {
    const std::lock_guard lock(mutex_);
    Hop& hop = hops_[address];
    // Another thread may have asked at the same time.
    twice = hop.uses != 0;
    hop.number = number;
    ++hop.uses;
  } catch (...) {
    GiveBack(number);
    throw;
  }
  if (twice) {
    GiveBack(number);
  }
  return number;
}

void NextHops::Release(const FabricAddress& address) noexcept {
  if (!resolves_) {
    return;
  }
  uint16_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto known = hops_.find(address);
    if (known == hops_.end() || --known->second.uses != 0) {
      return;
    }
    number = known->second.number;
    hops_.erase(known);
  }
  GiveBack(number);
}

// A device that does not take it back has failed, and is told so elsewhere.
void NextHops::GiveBack(uint32_t hop) noexcept {
  try {
    (void)admin_.ReleaseNextHop(hop);
  } catch (...) {  // NOLINT(bugprone-empty-catch): see above.
  }
}

}  // namespace heddle::nic
