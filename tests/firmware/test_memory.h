// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/firmware/fake_management_bus.h"

namespace heddle::firmware {

// Host memory from `kBase` on; the rest refuses access.
class TestMemory final : public HostMemory {
 public:
  static constexpr uint64_t kBase = 0x7f00'0000'0000;

  bool read_only = false;
  uint32_t accesses = 0;  // That were asked for.

  bool Read(uint64_t address, void* data, size_t bytes) override {
    ++accesses;
    if (!Has(address, bytes)) {
      return false;
    }
    std::memcpy(data, &memory_[address - kBase], bytes);
    return true;
  }
  bool Write(uint64_t address, const void* data, size_t bytes) override {
    ++accesses;
    if (!Has(address, bytes) || read_only) {
      return false;
    }
    std::memcpy(&memory_[address - kBase], data, bytes);
    return true;
  }

 private:
  bool Has(uint64_t address, size_t bytes) const {
    return address >= kBase && address + bytes <= kBase + memory_.size();
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(65536);
};

}  // namespace heddle::firmware
