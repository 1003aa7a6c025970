// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace heddle::sim::vfio_user {

// Values, one behind the other.
template <typename... Parts>
std::vector<std::byte> Bytes(const Parts&... parts) {
  std::vector<std::byte> bytes;
  const auto add = [&](const auto& part) {
    const auto more = std::as_bytes(std::span(&part, 1));
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  (add(parts), ...);
  return bytes;
}

}  // namespace heddle::sim::vfio_user
