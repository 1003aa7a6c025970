// SPDX-License-Identifier: Apache-2.0
// Looks at a one-machine wire from outside, pulls its plugs, resets its NICs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/result.h"
#include "hw/sim/wire/wire_segment.h"

namespace heddle::sim::wire {

// Takes no port, so any number of these may look at a wire. Keeps the wire
// alive as a port does. Thread safety: none.
class WireControl {
 public:
  struct Port {
    frame::WireAddress address;
    uint32_t function = 0;  // Of the wire.
    uint32_t pid = 0;
    bool link_up = true;
    bool tap = false;  // No function of a NIC.
  };

  // `name` as in FI_HEDDLE_WIRE: empty or "default" for the default wire.
  // Errors: ENOENT when nobody is on the wire; EPROTO as of WireSegment.
  static Result<WireControl> Open(const std::string& name,
                                  std::string* message);

  // The functions attached now.
  std::vector<Port> Ports() const;

  // Takes the links down, or up, of the functions at `address`: of all of them,
  // or of the one that is `function`. The number of functions.
  uint32_t SetLink(const frame::WireAddress& address,
                   std::optional<uint32_t> function, bool up);

  // Resets functions, named as for `SetLink`, under their owners: to those the
  // device has failed. The number of functions that were told; a tap is none.
  uint32_t Reset(const frame::WireAddress& address,
                 std::optional<uint32_t> function);

 private:
  // The functions of `SetLink` for which `act` returns true, woken after it.
  template <typename Act>
  uint32_t ForEach(const frame::WireAddress& address,
                   std::optional<uint32_t> function, Act act);

  explicit WireControl(std::unique_ptr<WireSegment> segment)
      : segment_(std::move(segment)) {}

  std::unique_ptr<WireSegment> segment_;
};

}  // namespace heddle::sim::wire
