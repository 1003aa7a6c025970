// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/frame/crc32c.h"

#include <array>

#include "hw/soft/frame/crc32c_folded.h"
#include "hw/soft/frame/crc32c_shift.h"

namespace heddle::soft::frame {
namespace {

constexpr size_t kWord = 8;
constexpr uint32_t kValues = 256;

// Entry [i][b]: what byte b has made of the register i bytes later.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, kValues>, kWord> tables{};
  for (uint32_t byte = 0; byte < kValues; ++byte) {
    uint32_t state = Crc32cByte(0, static_cast<uint8_t>(byte));
    for (auto& table : tables) {
      table[byte] = state;
      state = Crc32cByte(state, 0);
    }
  }
  return tables;
}();

}  // namespace

uint32_t Crc32cByTable(uint32_t state, const uint8_t* bytes, size_t count) {
  for (; count >= kWord; bytes += kWord, count -= kWord) {
    uint32_t next = 0;
    for (size_t i = 0; i < kWord; ++i) {
      const uint32_t mixed =
          i < sizeof(state) ? bytes[i] ^ (state >> 8 * i & 0xff) : bytes[i];
      next ^= kTables[kWord - 1 - i][mixed];
    }
    state = next;
  }
  for (; count > 0; ++bytes, --count) {
    state = state >> 8 ^ kTables[0][(state ^ *bytes) & 0xff];
  }
  return state;
}

uint32_t Crc32cState(uint32_t state, std::span<const uint8_t> bytes) {
  static const Crc32cFunction kOfCpu = Crc32cOfCpu();
  static const Crc32cFunction kFolded = Crc32cFolded();
  if (bytes.size() >= kFoldedLeast && kFolded != nullptr) {
    return kFolded(state, bytes.data(), bytes.size());
  }
  return kOfCpu != nullptr ? kOfCpu(state, bytes.data(), bytes.size())
                           : Crc32cByTable(state, bytes.data(), bytes.size());
}

}  // namespace heddle::soft::frame
