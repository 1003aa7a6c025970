// SPDX-License-Identifier: Apache-2.0
// Access to the NIC's tables over the management bus.
#pragma once

#include <stdint.h>

#include "firmware/base/field.h"
#include "firmware/base/hal.h"
#include "firmware/base/status.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// One access at a time.
//
// Thread safety: none; the control program is single-threaded.
class TablePort {
 public:
  // Status codes: the table number on an access error, or this.
  static constexpr uint8_t kStuck = 0xff;

  explicit TablePort(RegisterBus& bus) : bus_(bus) {}

  // Writes a contract struct of 64 bytes; returns when the entry holds it.
  // Precondition: no drain runs.
  template <typename Entry>
  Status Write(contract::Table table, uint32_t index, const Entry& entry) {
    return WriteWords(table, index, Reinterpret<Words>(entry));
  }

  // Sends a drain token behind everything that the entry, which is disabled
  // already, has started. Returns at once: how long the token takes depends on
  // host memory and on what is queued, so the control program looks again in
  // its next step. Precondition: no drain runs.
  void StartDrain(contract::Table table, uint32_t index);

  // True while the token of `StartDrain` is under way; afterwards `status`
  // says whether the table accepted the drain.
  bool DrainRuns(Status& status);

  // True while an access or a drain has not ended.
  bool Runs();

 private:
  struct Words {
    uint32_t word[16];
  };

  Status WriteWords(contract::Table table, uint32_t index, const Words& words);
  void Start(contract::Table table, uint32_t index, contract::TableOp op);
  static Status Outcome(uint32_t control);

  RegisterBus& bus_;
};

}  // namespace heddle::firmware
