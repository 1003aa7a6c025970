// SPDX-License-Identifier: Apache-2.0
// How many objects of each kind a device has, and of what kinds.
#pragma once

#include <stdint.h>

#include "firmware/base/hal.h"

namespace heddle::firmware {

struct Limits {
  uint32_t tx_contexts = 0;
  uint32_t rx_contexts = 0;
  uint32_t cqs = 0;
  uint32_t vectors = 0;
  uint32_t counters = 0;
  uint32_t regions = 0;  // 0 or a power of two.
  // Bits of contract `capability` that flags of contexts need.
  uint32_t capability = 0;

  // As the registers say.
  static Limits Read(RegisterBus& bus);

  // False for numbers that no device may have (contract).
  bool legal() const;
};

}  // namespace heddle::firmware
