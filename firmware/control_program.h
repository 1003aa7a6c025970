// SPDX-License-Identifier: Apache-2.0
// The control program of the NIC.
#pragma once

#include <stdint.h>

#include "firmware/admin/executor.h"
#include "firmware/base/hal.h"
#include "firmware/base/status.h"
#include "firmware/mgmt/mailbox.h"
#include "firmware/mgmt/slow_path.h"
#include "firmware/mgmt/table_port.h"
#include "firmware/mgmt/timer.h"
#include "firmware/net/neighbours.h"
#include "firmware/net/port.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// Owns the management bus: configures the port, serves the admin queue, the
// slow path and the host's reset request. The data path never waits for it.
//
// Commands are executed in order. Their answers fill the answer ring in the
// order in which they are known, which is the same but for commands that wait
// for a neighbour: `id` tells whose an answer is. (Where the command could not
// be read, `detail` does: its free-running count.)
//
// Each answer is one 64-byte DMA write whose last byte is the phase. That needs
// no further ordering: entries are 64-byte aligned, so an answer is one burst
// that crosses no boundary at which an interconnect may split it, and one PCIe
// write; and on a bus narrower than 64 bytes its beats arrive in address order,
// so that the eight bytes with the phase are the last to become visible.
//
// On a hardware fault `device_status.fatal` is set with `fatal_cause`, and
// nothing more is served until the host resets the function.
//
// Thread safety: none; all calls from one thread at a time.
// Ownership: borrows bus, switch and memory, which outlive it; copies the
// board.
class ControlProgram {
 public:
  // Status codes of module kControlProgram.
  static constexpr uint8_t kWrongContract = 1;
  static constexpr uint8_t kWrongLimits = 2;

  ControlProgram(RegisterBus& bus, Switch& ports, ObjectMemory& memory,
                 const Board& board);
  ControlProgram(const ControlProgram&) = delete;
  ControlProgram& operator=(const ControlProgram&) = delete;

  // Reads the NIC's limits, configures the port, reports the device ready.
  void Start();

  // The MAC's link went up or down; to be told before `Start` if it is down.
  // The host sees it in `device_status`; nothing else changes: what is lost
  // meanwhile is sent again.
  void SetLink(bool up);

  // Serves what `mgmt_events` shows, a bounded amount: at most one slow-path
  // frame, one look at the timer, and one admin command or look at a drain that
  // is under way. Costs one bus read when there is nothing. To be called while
  // the event output is high.
  void Step();

 private:
  enum class Doing : uint8_t {
    kWaiting,   // For events.
    kCommand,   // A command's drain token is under way.
    kTearDown,  // A reset's drain token is under way.
  };

  // Where the host put the admin queue, as of the command that runs.
  struct Ring {
    uint64_t command_base = 0;
    uint64_t answer_base = 0;
    uint32_t log2 = 0;
  };

  Status Configure();
  void ServeNeighbours(uint32_t events);
  void AnswerPending();
  bool IsUsable(uint16_t tail) const;
  void ServeCommand();
  void Settle(Executor::Progress progress);
  void WriteAnswer(contract::AdminAnswer answer);
  void ServeReset();
  void FinishReset();
  void Halt(Status cause);
  void TakeUpTo(uint16_t count);
  void DropUpTo(uint16_t count);
  uint64_t Read64(uint32_t offset);

  const Board board_;
  RegisterBus& bus_;
  Mailbox mailbox_;
  TablePort tables_;
  SlowPath slow_path_;
  Timer timer_;
  Port port_;
  Neighbours neighbours_;
  Executor executor_;
  Ring ring_;
  Doing doing_ = Doing::kWaiting;
  uint16_t head_ = 0;      // Commands taken, free-running.
  uint16_t answered_ = 0;  // Answers written, likewise.
  bool halted_ = false;
  bool ready_ = false;  // Has been, at least once.
  bool link_up_ = true;
};

}  // namespace heddle::firmware
