// SPDX-License-Identifier: Apache-2.0
// DMA between host memory and the mailbox buffer of the management bus.
#pragma once

#include <stdint.h>

#include "firmware/base/hal.h"
#include "firmware/base/status.h"

namespace heddle::firmware {

// One DMA at a time; each call returns when it has ended.
//
// Thread safety: none; the control program is single-threaded.
class Mailbox {
 public:
  // 64 bytes: an admin command or answer.
  struct Block {
    uint32_t words[16];
  };

  static constexpr uint8_t kHostRefused = 1;  // Status codes.
  static constexpr uint8_t kStuck = 2;

  explicit Mailbox(RegisterBus& bus) : bus_(bus) {}

  // Host memory at `address`, a multiple of 64, into `block`.
  // kRefused when host memory refused the access; `block` is then unchanged.
  Status ReadHost(uint64_t address, Block& block);

  // `block` to host memory at `address`, a multiple of 64; returns when the
  // write has been answered.
  Status WriteHost(uint64_t address, const Block& block);

  // True while a DMA that was `kStuck` has not ended.
  bool Runs();

 private:
  Status Run(uint64_t address, uint32_t direction);

  RegisterBus& bus_;
};

}  // namespace heddle::firmware
