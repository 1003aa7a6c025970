// SPDX-License-Identifier: Apache-2.0
// A number in a message to the user.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace heddle {

// As "0x1f", without leading zeros.
inline std::string Hex(uint64_t value) {
  std::array<char, 16> digits{};
  const auto [end, error] = std::to_chars(
      digits.data(), digits.data() + digits.size(), value, /*base=*/16);
  return std::string("0x").append(digits.data(), end);
}

}  // namespace heddle
