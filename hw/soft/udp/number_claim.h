// SPDX-License-Identifier: Apache-2.0
// Numbers that tell the functions behind one address of a machine apart,
// without a daemon.
#pragma once

#include <cstdint>
#include <utility>

#include "driver/result.h"
#include "hw/sim/base/owned_fd.h"
#include "hw/sim/frame/wire_address.h"

namespace heddle::soft::udp {

// A number is a socket with an abstract name, which the kernel takes back when
// its process ends, however that happens, and which is one for a network
// namespace, as the address is. Any user can take numbers: that denies service,
// nothing else.
class NumberClaim {
 public:
  // A block of PDCIDs; not always the first free one, so that a new function
  // does not get what is still on its way to the last one. Errors: EBUSY when
  // all are taken; else the errno of the system call.
  static Result<NumberClaim> TakePdcidBlock(
      const sim::frame::WireAddress& address);
  // The lowest ordinal that no other function at the address has: unlike the
  // block it is the same in each run. Errors: as above.
  static Result<NumberClaim> TakeOrdinal(
      const sim::frame::WireAddress& address);

  uint32_t number() const { return number_; }

 private:
  NumberClaim(sim::base::OwnedFd fd, uint32_t number)
      : fd_(std::move(fd)), number_(number) {}

  static Result<NumberClaim> Take(const sim::frame::WireAddress& address,
                                  const char* kind, uint64_t start,
                                  uint32_t count);

  sim::base::OwnedFd fd_;
  uint32_t number_;
};

}  // namespace heddle::soft::udp
