// SPDX-License-Identifier: Apache-2.0
// Where a wire leaves the frames that firmware is to see.
#pragma once

#include <cstdint>
#include <span>

namespace heddle::soft::wire {

class SlowPathSink {
 public:
  // ARP or Neighbor Discovery, from the Ethernet header on; copied.
  virtual void Accept(std::span<const uint8_t> frame) = 0;

 protected:
  ~SlowPathSink() = default;
};

}  // namespace heddle::soft::wire
