// SPDX-License-Identifier: Apache-2.0
// What the tests of both DMA engines share: requests and the host's memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rtl/records.h"
#include "tests/rtl/pins.h"

namespace heddle::test {

constexpr uint32_t kStrobe = HEDDLE_DATA_W / 8;  // Bytes of a beat.
constexpr uint32_t kSplit = std::min(4096u, 256 * kStrobe);

struct Request {
  uint64_t addr = 0;
  uint32_t bytes = 0;
  uint8_t owner = 0;
};

// With this bit the host refuses every third 4 KiB page.
constexpr uint64_t kRefusedBit = uint64_t{1} << 40;

inline bool Refused(uint64_t addr) {
  return (addr & kRefusedBit) != 0 && (addr >> 12) % 3 == 0;
}

// Any byte of the request is refused.
inline bool Refused(const Request& request) {
  for (uint64_t page = request.addr >> 12;
       page <= (request.addr + request.bytes - 1) >> 12; ++page) {
    if (Refused(page << 12)) return true;
  }
  return false;
}

template <typename Port>
void PutRequest(Port& port, size_t client, const Request& request) {
  rtl::DriveElement(port, client,
                    rtl::DmaReq{.addr = request.addr,
                                .bytes = static_cast<uint16_t>(request.bytes),
                                .owner = request.owner});
}

// Content of host memory, a function of the address.
inline uint8_t HostByte(uint64_t addr) {
  return static_cast<uint8_t>((addr * 0x9e3779b97f4a7c15u) >> 56);
}

}  // namespace heddle::test
