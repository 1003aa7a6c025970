// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/stepped_device.h"

#include <utility>

namespace heddle::bench {

SteppedDevice::SteppedDevice(std::shared_ptr<test::LoopbackWire> wire,
                             uint32_t ipv4)
    : inner_(std::move(wire),
             {.ipv4 = ipv4, .own_thread = false, .rma = true}) {}

void SteppedDevice::WriteRegister32(uint32_t offset, uint32_t value) {
  inner_.WriteRegister32(offset, value);
  Step();
}

void SteppedDevice::WriteRegister64(uint32_t offset, uint64_t value) {
  inner_.WriteRegister64(offset, value);
  Step();
}

Doorbell SteppedDevice::doorbell(uint32_t bar2_offset) {
  static_assert(contract::kDoorbellTailOffset == 0 &&
                contract::kDoorbellCqConsumerOffset == 0);
  if (bar2_offset % contract::kDoorbellPageBytes != 0) {
    return inner_.doorbell(bar2_offset);  // Cold: each write counts.
  }
  return {.address = &words_.at(bar2_offset / contract::kDoorbellPageBytes)};
}

void SteppedDevice::Step() {
  for (size_t page = 0; page < kPages; ++page) {
    if (words_[page] != taken_[page]) {
      taken_[page] = words_[page];
      const Doorbell bell = inner_.doorbell(static_cast<uint32_t>(page) *
                                            contract::kDoorbellPageBytes);
      bell.notify(bell.cookie, bell.bar2_offset, words_[page]);
    }
  }
  inner_.Step();
}

}  // namespace heddle::bench
