// SPDX-License-Identifier: Apache-2.0
// An operation on its way out: when it may complete, and how.
#pragma once

#include <cstdint>

#include "host/lib/semantics/outcome.h"
#include "host/lib/semantics/range_set.h"

namespace heddle::semantics {

// Initiator side of a SEND, WRITE or READ (UET 4.14).
//
// Two ends, which may be apart: `completion_due` says that the application may
// be told, `retired` that nothing of the operation can come any more, so that
// its entry and slot are free. The levels (libfabric 258 to 260, 262):
//
// - inject complete: when the library has a copy of the payload, at once; else
//   as transmit complete, because a retransmission reads the buffer again;
// - transmit complete: every packet is acknowledged and the target answered;
// - delivery complete: the same. The request says dc=1, and a target answers
//   such packets only when the data are visible.
//
// A READ is complete when all its bytes are placed. An error completes when
// every packet is acknowledged, or nothing can come any more (`Abandon`): until
// then return data may touch the buffer. The first error stays.
//
// Thread safety: one thread at a time.
class InitiatorMessage {
 public:
  enum class Level : uint8_t { kInject, kTransmit, kDelivery };
  struct Spec {
    contract::Opcode opcode = contract::Opcode::kSend;
    uint32_t length = 0;
    uint32_t packets = 1;  // Requests, at least 1.
    Level level = Level::kTransmit;
    bool copied = false;  // The payload does not come from the caller's buffer.
  };

  explicit InitiatorMessage(const Spec& spec) noexcept : spec_(spec) {}

  // `dc` of its packets.
  bool delivery_complete() const noexcept {
    return spec_.level == Level::kDelivery;
  }

  // That many packets more are acknowledged, each counted once. False, and
  // unchanged, when there are not so many.
  [[nodiscard]] bool Acknowledged(uint32_t packets) noexcept;
  // The target answered. A default response counts as kOk.
  void Answered(contract::ReturnCode code) noexcept;

  enum class Data : uint8_t {
    kPlace,      // New; place it.
    kDiscard,    // Came before, or the operation failed; do not.
    kMalformed,  // No READ, or outside it; unchanged.
    kFull,       // More gaps than a legal target makes; unchanged.
  };
  // Bytes [offset, offset + length) of the result of a READ came.
  [[nodiscard]] Data Returned(uint32_t offset, uint32_t length) noexcept;

  // The operation failed here: payload that could not be read or placed.
  void Fail(contract::Status status, uint16_t detail) noexcept;
  // The operation begins anew, at another incarnation of its target: what was
  // acknowledged, answered and returned so far counts no more. It has not
  // failed and not retired.
  void Restart() noexcept;
  // Its PDC or peer is gone: fails, and nothing comes any more.
  void Abandon(contract::Status status, uint16_t detail) noexcept;

  // A failure before the owner asked takes back what inject complete made due:
  // it is reported once retired. One reported before has no second completion.
  bool completion_due() const noexcept {
    return retired() || (spec_.level == Level::kInject && spec_.copied &&
                         status_ == contract::Status::kOk);
  }
  bool retired() const noexcept;
  // Final once retired.
  Outcome outcome() const noexcept;

 private:
  bool read() const noexcept { return spec_.opcode == contract::Opcode::kRead; }

  // Return data are requests of the target's, with a window of their own.
  RangeSet<contract::kPdcWindow / 2 + 1> returned_;
  Spec spec_;
  uint32_t acknowledged_ = 0;
  contract::Status status_ = contract::Status::kOk;
  uint16_t detail_ = 0;
  bool answered_ = false;
  bool abandoned_ = false;
};

}  // namespace heddle::semantics
