// SPDX-License-Identifier: Apache-2.0
// Slots of the functions behind one address of a machine, without a daemon.
#pragma once

#include <cstdint>
#include <utility>

#include "driver/result.h"
#include "hw/sim/soft/wire/unique_fd.h"
#include "hw/sim/wire_address.h"

namespace heddle::sim::soft {

// A slot is a socket with an abstract name, which the kernel takes back when
// its process ends, however that happens, and which is one for a network
// namespace, as the address is. Any user can take slots: that denies service,
// nothing else.
class SlotClaim {
 public:
  // Errors: EBUSY when all 64 are taken; else the errno of the system call.
  static Result<SlotClaim> Take(const WireAddress& address);

  uint8_t slot() const { return slot_; }

 private:
  SlotClaim(UniqueFd fd, uint8_t slot) : fd_(std::move(fd)), slot_(slot) {}

  UniqueFd fd_;
  uint8_t slot_;
};

}  // namespace heddle::sim::soft
