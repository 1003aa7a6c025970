// SPDX-License-Identifier: Apache-2.0
// Frames of the slow path, over the management bus.
#pragma once

#include <stdint.h>

#include "firmware/base/hal.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// Thread safety: none; the control program is single-threaded.
class SlowPath {
 public:
  struct Frame {
    uint8_t byte[contract::kSlowPathRxBytes];
    uint32_t bytes;
  };
  static_assert(contract::kSlowPathTxBytes <= contract::kSlowPathRxBytes);

  explicit SlowPath(RegisterBus& bus) : bus_(bus) {}

  // Takes the waiting frame. False when there is none.
  bool Receive(Frame& frame);

  // Drops the waiting frame, if there is one.
  void Discard();

  // Sends `frame`, of at most `kSlowPathTxBytes`. Waits a bounded time for the
  // frame before it; false, and nothing is sent, when that has not left then:
  // neighbour protocols repeat what matters.
  bool Send(const Frame& frame);

 private:
  // Reads of the control register; the NIC lets a slow-path frame pass behind a
  // few data frames, so only a link that stands still takes longer.
  static constexpr uint32_t kSendPolls = 4096;

  RegisterBus& bus_;
};

}  // namespace heddle::firmware
