// SPDX-License-Identifier: Apache-2.0
// Lets one process at a time open a function, to use or to inspect it.
#pragma once

#include <chrono>

#include "driver/vfio/pci_function.h"

namespace heddle::vfio {

// A process that inspects a function owns it for a moment. Without a turn,
// others that look or open at that time would find it busy.
//
// A lock on the function's entry in sysfs, which every user may take: so the
// constructor waits for at most `limit`, then continues without it.
class OpeningTurn {
 public:
  static constexpr std::chrono::seconds kLimit{5};

  OpeningTurn(const Sysfs& sysfs, const PciAddress& address,
              std::chrono::nanoseconds limit = kLimit);
  OpeningTurn(const OpeningTurn&) = delete;
  OpeningTurn& operator=(const OpeningTurn&) = delete;
  ~OpeningTurn();

  bool taken() const { return taken_; }

 private:
  int fd_ = -1;
  bool taken_ = false;
};

}  // namespace heddle::vfio
