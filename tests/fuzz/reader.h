// SPDX-License-Identifier: Apache-2.0
// An input of the fuzzer as a sequence of choices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::fuzz {

// Takes values off the front; zeros once it is empty.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  uint8_t Byte() { return static_cast<uint8_t>(Integer(1)); }
  uint16_t Half() { return static_cast<uint16_t>(Integer(2)); }
  uint32_t Word() { return static_cast<uint32_t>(Integer(4)); }
  uint64_t Double() { return Integer(8); }
  // 0 to `limit` - 1.
  uint32_t Below(uint32_t limit) { return Byte() % limit; }
  // `count` bytes, or what is left.
  std::span<const uint8_t> Bytes(size_t count) {
    const auto taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  uint64_t Integer(size_t bytes) {
    uint64_t value = 0;
    size_t at = 0;
    for (const uint8_t byte : Bytes(bytes)) {
      value |= uint64_t{byte} << 8 * at++;
    }
    return value;
  }

  std::span<const uint8_t> rest_;
};

}  // namespace heddle::fuzz
