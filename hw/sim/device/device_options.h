// SPDX-License-Identifier: Apache-2.0
// How a simulated device is opened, whatever its kind.
#pragma once

#include "hw/contract/settings/row.h"
#include "hw/sim/device/memory_options.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/wire/shared_wire.h"

namespace heddle::sim::device {

struct DeviceOptions {
  contract::Settings settings;
  // Made of the settings by `ParseSettings`: what a wire, its faults and the
  // host memory of `rtl` need of them, and what only tests ask for.
  wire::SharedWireOptions wire;
  fault::LineFaults faults;
  MemoryOptions memory;

  // Of `soft`: UDP sockets instead of the one-machine wire; `wire.name` is not
  // used, and the payload MTU follows the interface unless it is set.
  bool is_udp() const { return settings.wire == contract::kUdpWire; }
};

}  // namespace heddle::sim::device
