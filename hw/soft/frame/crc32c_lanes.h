// SPDX-License-Identifier: Apache-2.0
// CRC-32C by an instruction that takes several cycles while one can start in
// each: three parts of the message at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hw/soft/frame/crc32c_shift.h"

namespace heddle::soft::frame {

// `Cpu` has static members `Word(state, uint64_t)` and `Byte(state, uint8_t)`.
// Instantiated in one file for each CPU, which is compiled for it; `Cpu` is
// local to that file, so that no other gets this code.
template <typename Cpu>
class Crc32cLanes {
 public:
  static uint32_t Run(uint32_t state, const uint8_t* bytes, size_t count) {
    state = Blocks<kLong>(state, bytes, count);
    state = Blocks<kShort>(state, bytes, count);
    for (; count >= kWord; bytes += kWord, count -= kWord) {
      state = Cpu::Word(state, Load(bytes));
    }
    for (; count > 0; ++bytes, --count) {
      state = Cpu::Byte(state, *bytes);
    }
    return state;
  }

 private:
  static constexpr size_t kWord = 8;
  // Bytes of each part: the long ones for packets, the short ones for what is
  // left of them.
  static constexpr size_t kLong = 1024;
  static constexpr size_t kShort = 128;

  static uint64_t Load(const uint8_t* bytes) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, kWord);
    return word;
  }

  template <size_t kPart>
  static uint32_t Blocks(uint32_t state, const uint8_t*& bytes, size_t& count) {
    static constexpr Crc32cShift kShift(kPart);
    for (; count >= 3 * kPart; bytes += 3 * kPart, count -= 3 * kPart) {
      uint32_t second = 0;
      uint32_t third = 0;
      for (size_t at = 0; at < kPart; at += kWord) {
        state = Cpu::Word(state, Load(bytes + at));
        second = Cpu::Word(second, Load(bytes + kPart + at));
        third = Cpu::Word(third, Load(bytes + 2 * kPart + at));
      }
      state = kShift(kShift(state) ^ second) ^ third;
    }
    return state;
  }
};

}  // namespace heddle::soft::frame
