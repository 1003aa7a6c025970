// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire_control.h"

#include <utility>

namespace heddle::sim {

Result<WireControl> WireControl::Open(const std::string& name,
                                      std::string* message) {
  auto segment = WireSegment::Find(
      name.empty() || name == "default" ? WireSegment::DefaultName() : name,
      message);
  if (!segment.ok()) {
    return segment.error();
  }
  return WireControl(std::move(segment.value()));
}

std::vector<WireControl::Port> WireControl::Ports() const {
  std::vector<Port> ports;
  for (const WirePort& port : (*segment_)->ports) {
    const std::optional<PortOwner> owner = ReadPort(port);
    if (owner && port.process.Alive()) {
      ports.push_back({.address = owner->address,
                       .slot = owner->slot,
                       .pid = port.process.pid,
                       .link_up = port.link_down.load() == 0});
    }
  }
  return ports;
}

template <typename Act>
uint32_t WireControl::ForEach(const WireAddress& address,
                              std::optional<uint8_t> slot, Act act) {
  uint32_t count = 0;
  for (WirePort& port : (*segment_)->ports) {
    const std::optional<PortOwner> owner = ReadPort(port);
    if (!owner || owner->address != address || (slot && *slot != owner->slot)) {
      continue;
    }
    act(port);
    WakePort(port);
    ++count;
  }
  return count;
}

uint32_t WireControl::SetLink(const WireAddress& address,
                              std::optional<uint8_t> slot, bool up) {
  return ForEach(address, slot,
                 [up](WirePort& port) { port.link_down.store(up ? 0 : 1); });
}

uint32_t WireControl::Reset(const WireAddress& address,
                            std::optional<uint8_t> slot) {
  return ForEach(address, slot,
                 [](WirePort& port) { port.reset_wanted.store(1); });
}

}  // namespace heddle::sim
