// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire/wire_control.h"

#include <utility>

namespace heddle::sim::wire {

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
  uint32_t function = 0;
  for (const WirePort& port : (*segment_)->ports) {
    const std::optional<PortOwner> owner = ReadPort(port);
    if (owner && port.process.Alive()) {
      ports.push_back({.address = owner->address,
                       .function = function,
                       .pid = port.process.pid,
                       .link_up = port.link_down.load() == 0,
                       .tap = owner->tap});
    }
    ++function;
  }
  return ports;
}

template <typename Act>
uint32_t WireControl::ForEach(const frame::WireAddress& address,
                              std::optional<uint32_t> function, Act act) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kMaxPorts; ++i) {
    WirePort& port = (*segment_)->ports[i];
    const std::optional<PortOwner> owner = ReadPort(port);
    if (!owner || owner->address != address || (function && *function != i)) {
      continue;
    }
    if (act(port, *owner)) {
      WakePort(port);
      ++count;
    }
  }
  return count;
}

uint32_t WireControl::SetLink(const frame::WireAddress& address,
                              std::optional<uint32_t> function, bool up) {
  return ForEach(address, function, [up](WirePort& port, const PortOwner&) {
    port.link_down.store(up ? 0 : 1);
    return true;
  });
}

uint32_t WireControl::Reset(const frame::WireAddress& address,
                            std::optional<uint32_t> function) {
  return ForEach(address, function, [](WirePort& port, const PortOwner& owner) {
    if (!owner.tap) {
      port.reset_wanted.store(1);
    }
    return !owner.tap;
  });
}

}  // namespace heddle::sim::wire
