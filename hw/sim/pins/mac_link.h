// SPDX-License-Identifier: Apache-2.0
// What a NIC's MAC interface is connected to.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "hw/sim/pins/host_memory.h"

namespace heddle::sim::pins {

// One beat of an AXI4-Stream of frames.
struct MacBeat {
  std::array<uint8_t, kMaxBusBytes> data{};
  uint32_t bytes = 0;  // Valid ones, from lane 0 on.
  bool last = false;
  bool error = false;  // Frame is bad; with the last beat.
};

// Called once per clock cycle, in the order of the members.
class MacLink {
 public:
  virtual ~MacLink() = default;

  // Whether a beat offered in this cycle is taken.
  virtual bool TransmitReady() = 0;
  // Beat that the NIC receives in this cycle; false if there is none.
  virtual bool Receive(MacBeat* beat) = 0;
  // Beat taken from the NIC in this cycle.
  virtual void Transmit(std::span<const uint8_t> bytes, bool last) = 0;
};

}  // namespace heddle::sim::pins
