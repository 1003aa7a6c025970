// SPDX-License-Identifier: Apache-2.0
// One process at a time opens a function, whether to use or to ask it.
#pragma once

#include <chrono>

#include "driver/vfio/pci_function.h"

namespace heddle::vfio {

// Whoever asks a function what it can do owns it for a moment. Without a turn,
// others that look or open at that time would take it for busy.
//
// A lock on the function's entry in sysfs, which every user may take: so it is
// waited for no longer than `limit`, then done without.
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
