// SPDX-License-Identifier: Apache-2.0
// The control program's clock and its one alarm.
#pragma once

#include <stdint.h>

#include "firmware/base/hal.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// Thread safety: none; the control program is single-threaded.
class Timer {
 public:
  explicit Timer(RegisterBus& bus) : bus_(bus) {}

  // Ticks, free-running. Stands still while no timer of the NIC runs and
  // nobody looks: fit for comparing, not for telling the time of day.
  uint32_t Now() { return bus_.Read(contract::kMgmtTicksOffset); }

  // Raises the event `timer` in `ticks`, and takes back the one that is up; 0
  // raises none.
  void Start(uint32_t ticks) { bus_.Write(contract::kMgmtTimerOffset, ticks); }

 private:
  RegisterBus& bus_;
};

}  // namespace heddle::firmware
