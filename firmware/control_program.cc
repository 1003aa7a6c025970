// SPDX-License-Identifier: Apache-2.0
#include "firmware/control_program.h"

#include "firmware/base/field.h"

namespace heddle::firmware {
namespace {

constexpr uint32_t kMaxAdminLog2 = 8;
constexpr uint64_t kEntryBytes = sizeof(contract::AdminCommand);
static_assert(sizeof(contract::AdminAnswer) == kEntryBytes);
static_assert(sizeof(Mailbox::Block) == kEntryBytes);

// The bus serves one function, so every command is that function's.
constexpr Function kFunction = 0;

constexpr uint32_t ReadyStatus(bool link_up) {
  return contract::kBar0DeviceStatusReadyMask |
         (link_up ? contract::kBar0DeviceStatusLinkMask : 0);
}

}  // namespace

ControlProgram::ControlProgram(RegisterBus& bus, Switch& ports,
                               ObjectMemory& memory, const Board& board)
    : board_(board),
      bus_(bus),
      mailbox_(bus),
      tables_(bus),
      slow_path_(bus),
      timer_(bus),
      port_(bus_, tables_, board_),
      neighbours_(tables_, slow_path_, timer_, board_),
      executor_({.tables = tables_,
                 .port = port_,
                 .neighbours = neighbours_,
                 .ports = ports,
                 .memory = memory},
                board_.key_secret) {}

void ControlProgram::Start() {
  const Status status = Configure();
  if (!status.ok()) {
    Halt(status);
    return;
  }
  bus_.Write(contract::kMgmtStatusOffset, ReadyStatus(link_up_));
  ready_ = true;
}

Status ControlProgram::Configure() {
  const uint32_t major =
      GetField(bus_.Read(contract::kMgmtVersionOffset),
               contract::kBar0VersionMajorMask, contract::kBar0VersionMajorLsb);
  if (major != contract::kContractMajor) {
    return {Module::kControlProgram, kWrongContract, StatusClass::kMismatch};
  }
  const Limits limits = Limits::Read(bus_);
  if (!limits.legal()) {
    return {Module::kControlProgram, kWrongLimits, StatusClass::kMismatch};
  }
  executor_.SetLimits(limits);
  const Status status =
      port_.Start(GetField(bus_.Read(contract::kMgmtDatapathOffset),
                           contract::kBar0DatapathPayloadMtuMaxMask,
                           contract::kBar0DatapathPayloadMtuMaxLsb));
  return status.ok() ? neighbours_.Start() : status;
}

void ControlProgram::SetLink(bool up) {
  link_up_ = up;
  if (ready_ && !halted_) {
    bus_.Write(contract::kMgmtStatusOffset, ReadyStatus(link_up_));
  }
}

void ControlProgram::Step() {
  const uint32_t events = bus_.Read(contract::kMgmtEventsOffset);
  if ((events & contract::kMgmtEventsResetMask) != 0) {
    ServeReset();
    return;
  }
  ServeNeighbours(events);
  if (halted_) {
    return;
  }
  if (doing_ != Doing::kWaiting) {
    Settle(executor_.Continue());
  } else if ((events & contract::kMgmtEventsAdminMask) != 0) {
    ServeCommand();
  }
  AnswerPending();
}

void ControlProgram::ServeNeighbours(uint32_t events) {
  const bool frame = (events & contract::kMgmtEventsSlowPathRxMask) != 0;
  const bool timer = (events & contract::kMgmtEventsTimerMask) != 0;
  if (halted_) {
    // Nobody will ever ask for these: the events must not stay up.
    if (frame) {
      slow_path_.Discard();
    }
    if (timer) {
      timer_.Start(0);
    }
    return;
  }
  if (frame) {
    neighbours_.ServeFrame();
  }
  if (timer) {
    neighbours_.ServeTimer();
  }
}

void ControlProgram::AnswerPending() {
  // The table port is the drain's until that ends.
  if (halted_ || doing_ != Doing::kWaiting) {
    return;
  }
  const Status status = neighbours_.Flush();
  if (!status.ok()) {
    Halt(status);
    return;
  }
  contract::AdminAnswer answer;
  while (!halted_ && neighbours_.TakeAnswer(answer)) {
    WriteAnswer(answer);
  }
}

bool ControlProgram::IsUsable(uint16_t tail) const {
  return ring_.log2 <= kMaxAdminLog2 &&
         static_cast<uint16_t>(tail - head_) <= 1U << ring_.log2 &&
         ring_.command_base % kEntryBytes == 0 &&
         ring_.answer_base % kEntryBytes == 0;
}

void ControlProgram::ServeCommand() {
  const auto tail = static_cast<uint16_t>(GetField(
      bus_.Read(contract::kMgmtAdminTailOffset),
      contract::kBar0AdminTailCountMask, contract::kBar0AdminTailCountLsb));
  ring_ = {.command_base = Read64(contract::kMgmtAdminCommandBaseOffset),
           .answer_base = Read64(contract::kMgmtAdminAnswerBaseOffset),
           .log2 = GetField(bus_.Read(contract::kMgmtAdminSizeOffset),
                            contract::kBar0AdminSizeLog2Mask,
                            contract::kBar0AdminSizeLog2Lsb)};
  // A reset clears these registers when it is asked for: what was read may be
  // neither what the host wrote nor all of it.
  if ((bus_.Read(contract::kMgmtEventsOffset) &
       contract::kMgmtEventsResetMask) != 0) {
    return;
  }
  if (!IsUsable(tail)) {
    // There is no place for an answer: the host gets none.
    neighbours_.Abandon();
    DropUpTo(tail);
    return;
  }
  const uint32_t slot = head_ & ((1U << ring_.log2) - 1);
  Mailbox::Block block{};
  const Status status =
      mailbox_.ReadHost(ring_.command_base + slot * kEntryBytes, block);
  if (status.ok()) {
    Settle(executor_.Execute(Reinterpret<contract::AdminCommand>(block),
                             kFunction));
  } else if (status.value() == Status(Module::kMailbox, Mailbox::kHostRefused,
                                      StatusClass::kRefused)
                                   .value()) {
    WriteAnswer({.status = contract::AdminStatus::kDmaError, .detail = head_});
    TakeUpTo(static_cast<uint16_t>(head_ + 1));
  } else {
    Halt(status);
  }
}

void ControlProgram::Settle(Executor::Progress progress) {
  switch (progress) {
    case Executor::Progress::kAnswered:
      doing_ = Doing::kWaiting;
      WriteAnswer(executor_.answer());
      TakeUpTo(static_cast<uint16_t>(head_ + 1));
      return;
    case Executor::Progress::kPending:
      TakeUpTo(static_cast<uint16_t>(head_ + 1));
      return;
    case Executor::Progress::kRunning:
      doing_ = Doing::kCommand;
      return;
    case Executor::Progress::kFailed:
      doing_ = Doing::kWaiting;
      Halt(executor_.fault());
      return;
  }
}

void ControlProgram::WriteAnswer(contract::AdminAnswer answer) {
  const bool odd_pass = ((answered_ >> ring_.log2) & 1) != 0;
  answer.phase = odd_pass ? 0 : 1;
  const uint32_t slot = answered_ & ((1U << ring_.log2) - 1);
  const Status status =
      mailbox_.WriteHost(ring_.answer_base + slot * kEntryBytes,
                         Reinterpret<Mailbox::Block>(answer));
  if (!status.ok()) {
    Halt(status);
    return;
  }
  ++answered_;
}

void ControlProgram::ServeReset() {
  Executor::Progress progress = Executor::Progress::kAnswered;
  if (doing_ == Doing::kWaiting) {
    // One that was called stuck may still end, and until it does the NIC
    // touches memory and takes no other.
    if (mailbox_.Runs() || tables_.Runs()) {
      return;
    }
    progress = executor_.TearDown();
    if (progress == Executor::Progress::kAnswered) {
      FinishReset();
      return;
    }
    doing_ = Doing::kTearDown;
  } else {
    // Also a command's token: its answer is dropped with everything else.
    progress = executor_.Continue();
    if (progress == Executor::Progress::kAnswered) {
      doing_ = Doing::kWaiting;
    }
  }
  if (progress == Executor::Progress::kFailed) {
    doing_ = Doing::kWaiting;
    Halt(executor_.fault());
  }
}

void ControlProgram::FinishReset() {
  const Status status = Configure();
  if (!status.ok()) {
    Halt(status);
    return;
  }
  // Commands published before the reset are dropped with the objects. The tail
  // is read before the host sees the reset's end and publishes the next.
  DropUpTo(static_cast<uint16_t>(GetField(
      bus_.Read(contract::kMgmtAdminTailOffset),
      contract::kBar0AdminTailCountMask, contract::kBar0AdminTailCountLsb)));
  halted_ = false;
  ready_ = true;
  bus_.Write(contract::kMgmtFatalCauseOffset, 0);
  bus_.Write(contract::kMgmtStatusOffset, ReadyStatus(link_up_));
  bus_.Write(contract::kMgmtResetDoneOffset, 1);
}

void ControlProgram::Halt(Status cause) {
  halted_ = true;
  bus_.Write(contract::kMgmtFatalCauseOffset, cause.value());
  bus_.Write(contract::kMgmtStatusOffset, contract::kBar0DeviceStatusFatalMask);
}

void ControlProgram::TakeUpTo(uint16_t count) {
  head_ = count;
  bus_.Write(contract::kMgmtAdminHeadOffset, head_);
}

// Answers continue where commands do.
void ControlProgram::DropUpTo(uint16_t count) {
  answered_ = count;
  TakeUpTo(count);
}

uint64_t ControlProgram::Read64(uint32_t offset) {
  const uint64_t low = bus_.Read(offset);
  return uint64_t{bus_.Read(offset + 4)} << 32 | low;
}

}  // namespace heddle::firmware
